// R29. Hostile and broken JSON at every route that takes a body, made from the table of routes: the listed code, never a 5xx, nothing stored.
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Route } from "../../src/api/route.ts";
import { ROUTES } from "../../src/api/routes.ts";
import { sha256 } from "../../src/protocol/canonical.ts";
import { sqliteWorld } from "../support/engines.ts";
import { ADMIN_TOKEN, type Fleet, headersOf, openFleet, type Registered, type Sender } from "../support/fleet.ts";

const bytes = (...parts: (string | number[])[]) => Buffer.concat(parts.map((part) => Buffer.from(part as string)));
const nested = (depth: number) => `{"a":${"[".repeat(depth - 1)}${"]".repeat(depth - 1)}}`;

/** What must be refused as invalid_json, whatever the route. */
const BROKEN: [string, string | Uint8Array][] = [
  ["cut off", '{"a":'],
  ["a trailing comma", '{"a":1,}'],
  ["a comment", '{"a":1/* x */}'],
  ["single quotes", "{'a':1}"],
  ["NaN", '{"a":NaN}'],
  ["Infinity", '{"a":-Infinity}'],
  ["a byte order mark", bytes([0xef, 0xbb, 0xbf], '{"a":1}')],
  ["invalid UTF-8", bytes('{"a":"', [0xff, 0xfe], '"}')],
  ["an overlong encoding", bytes('{"a":"', [0xc0, 0xaf], '"}')],
  ["an encoded surrogate", bytes('{"a":"', [0xed, 0xa0, 0x80], '"}')],
  ["a lone surrogate", '{"a":"\\ud800"}'],
  ["a lone surrogate in a key", '{"\\udc00":1}'],
  ["NUL", '{"a":"x\\u0000y"}'],
  ["a raw NUL", '{"a":"x\0y"}'],
  ["a raw line break in a string", '{"a":"x\ny"}'],
  ["a duplicate key", '{"a":1,"a":2}'],
  ["a duplicate key, escaped", '{"a":1,"\\u0061":2}'],
  ["a duplicate key further in", '{"a":[{"b":1,"b":1}]}'],
  ["__proto__", '{"__proto__":{"polluted":1}}'],
  ["__proto__, escaped and further in", '{"a":{"\\u005f_proto__":{"polluted":1}}}'],
  ["constructor", '{"a":[{"constructor":{"prototype":{"polluted":1}}}]}'],
  ["prototype", '{"prototype":{}}'],
  ["33 levels", nested(33)],
  ["100,000 levels", `{"a":${"[".repeat(100_000)}${"]".repeat(100_000)}}`],
  ["10,001 members", `{"a":[${"0,".repeat(10_000)}0]}`],
  ["an integer that loses digits", '{"a":9007199254740993}'],
  ["a number beyond all", '{"a":1e400}'],
  ["an array", "[]"],
  ["a text", '"a"'],
  ["a number", "7"],
  ["null", "null"],
  ["white space", " \n "],
  ["two values", '{"a":1}{"b":2}'],
  ["one megabyte of a key", `{"${"k".repeat(250_000)}":1,}`],
];
const TYPES: [string, Record<string, string>][] = [
  ["plain text", { "content-type": "text/plain" }],
  ["a form", { "content-type": "application/x-www-form-urlencoded" }],
  ["multipart", { "content-type": "multipart/form-data; boundary=x" }],
  ["no type", {}],
  ["another charset", { "content-type": "application/json; charset=utf-16" }],
  ["a look-alike", { "content-type": "application/jsonp" }],
  ["compression", { "content-type": "application/json", "content-encoding": "gzip" }],
];

const MUTATING = ROUTES.filter(({ method, rawBody }) => method === "POST" && !rawBody); // signed bodies are judged by their signature first
const READING = MUTATING.filter(({ body }) => body !== undefined);

let it: Fleet;
let ada: Registered;
beforeAll(async () => {
  it = await openFleet(sqliteWorld, { adminTokenHash: sha256(ADMIN_TOKEN) });
  const { body } = await it.call(ADMIN_TOKEN, "POST", "/v1/agents/register", { name: "ada", project: "p" });
  ada = { id: body.agent.id, key: body.agentKey, name: "ada" };
});
afterAll(() => it[Symbol.asyncDispose]());

/** Somebody whom the route lets in, so that the body is read. */
function headersFor({ credential }: Route): Record<string, string> {
  const token: Sender = ADMIN_TOKEN;
  return credential.startsWith("agent") ? { ...headersOf(ada), ...headersOf(token) } : credential === "none" ? {} : headersOf(token);
}
async function post(route: Route, body: string | Uint8Array, headers: Record<string, string> = { "content-type": "application/json" }) {
  const path = route.path.replaceAll(/:(\w+)/g, (_, name: string) => (name === route.agentIdFrom?.path ? ada.id : "unknown"));
  const init = { method: "POST", headers: { ...headersFor(route), ...headers }, body } as RequestInit;
  const response = await it.fetch(new Request(`http://127.0.0.1:7331${path}`, init));
  const text = await response.text();
  return { status: response.status, code: text === "" ? undefined : JSON.parse(text).code };
}

/** Everything that is stored, as one hash. */
function stored(): string {
  using database = new Database(it.world.location, { readonly: true });
  const tables = database.query("select name from sqlite_schema where type = 'table' and name not like 'sqlite_%' order by name").values();
  return sha256(JSON.stringify(tables.map(([name]) => [name, database.query(`select * from "${name}"`).values()])));
}

test("the table has bodies to torture, and a plain parser would take several of them", () => {
  expect(READING.length).toBeGreaterThan(15);
  const lenient = BROKEN.filter(([, body]) => {
    try {
      return typeof JSON.parse(new TextDecoder().decode(Buffer.from(body as string))) === "object";
    } catch {
      return false;
    }
  });
  expect(lenient.length).toBeGreaterThan(12);
});

describe.each(READING.map((route) => [route.operationId, route] as const))("%s", (_, route) => {
  test("refuses every broken body, stores nothing, and takes the next request", async () => {
    const before = stored();
    const answers = new Map<string, unknown>();
    for (const [name, body] of BROKEN) answers.set(name, await post(route, body));
    expect(Object.fromEntries(answers)).toEqual(Object.fromEntries(BROKEN.map(([name]) => [name, { status: 400, code: "invalid_json" }])));
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
    expect(stored()).toBe(before);
    for (const body of ["", "{}", '{"unheard":{"of":[1,2,3]}}']) {
      const { status, code } = await post(route, body);
      expect([body, code === "invalid_json", status < 500]).toEqual([body, false, true]);
    }
  });
});

describe.each(MUTATING.map((route) => [route.operationId, route] as const))("%s", (_, route) => {
  test("takes JSON in UTF-8 alone, and no more than the limit", async () => {
    const before = stored();
    for (const [name, headers] of TYPES) {
      const body = new Blob(["{}"]); // with a text fetch would name a type of its own
      const path = route.path.replaceAll(/:(\w+)/g, (_, part: string) => (part === route.agentIdFrom?.path ? ada.id : "unknown"));
      const response = await it.fetch(
        new Request(`http://127.0.0.1:7331${path}`, { method: "POST", headers: { ...headersFor(route), ...headers }, body }),
      );
      expect([name, response.status, ((await response.json()) as any).code]).toEqual([name, 415, "unsupported_media_type"]);
    }
    const large = `{"padding":"${"x".repeat(262_145 - 14)}"}`;
    expect([large.length, await post(route, large)]).toEqual([262_145, { status: 413, code: "payload_too_large" }]);
    expect(stored()).toBe(before);
  });
});
