// One exchange with a hub: what comes back, what a refusal carries, and how trouble on the way is told apart.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { ask, askReady, HubRefusal, HubTimeout, HubUnreachable } from "../../src/client/http.ts";
import { readFrames } from "../../src/client/sse.ts";
import { attempt } from "../support/engines.ts";

let server: ReturnType<typeof Bun.serve>;
let seen: { method: string; path: string; headers: Headers; body: string }[] = [];
let answer: (request: Request) => Response | Promise<Response>;
beforeAll(() => {
  server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      seen.push({ method: request.method, path: pathname + search, headers: request.headers, body: await request.text() });
      return answer(request);
    },
  });
});
afterAll(() => server.stop(true));

const to = () => ({ url: `http://127.0.0.1:${server.port}`, token: "secret" });
const failure = async (work: Promise<unknown>) => (await attempt(work)).error!;

test("a request carries the token, JSON and its query; the answer's body is read", async () => {
  const mine = () => seen.filter(({ path }) => path.startsWith("/v1/x")); // an earlier test's request may be tried again meanwhile
  answer = () => Response.json({ ok: true }, { status: 201 });
  const got = await ask(to(), "POST", "/v1/x", {
    body: { a: "ü" },
    query: { n: 5, yes: true, none: undefined },
    headers: { "x-kxm-client": "test" },
  });
  expect([got.status, got.body]).toEqual([201, { ok: true }]);
  expect(mine()[0]).toMatchObject({ method: "POST", path: "/v1/x?n=5&yes=true", body: '{"a":"ü"}' });
  expect(["authorization", "content-type", "x-kxm-client"].map((name) => mine()[0]!.headers.get(name))).toEqual([
    "Bearer secret",
    "application/json",
    "test",
  ]);
  answer = () => new Response(null, { status: 204 });
  expect(await ask({ url: to().url }, "DELETE", "/v1/x")).toMatchObject({ status: 204, body: undefined });
  expect(mine()[1]!.headers.get("authorization")).toBeNull();
  await ask(to(), "POST", "/v1/x");
  expect(mine()[2]!.body).toBe("{}"); // a POST without a body is an empty object, as the contract wants it
});

describe("what is not an answer", () => {
  test("a refusal has the hub's code, sentence, hint, extras and retry-after", async () => {
    answer = () =>
      Response.json(
        { error: "held", code: "lease_held", requestId: "req_1", hint: "wait", lease: { name: "x" } },
        { status: 409, headers: { "retry-after": "7" } },
      );
    const error = (await failure(ask(to(), "GET", "/"))) as HubRefusal;
    expect(error).toBeInstanceOf(HubRefusal);
    expect([error.status, error.code, error.message, error.hint, error.requestId, error.retryAfterSeconds]).toEqual([
      409,
      "lease_held",
      "held",
      "wait",
      "req_1",
      7,
    ]);
    expect(error.extras).toEqual({ lease: { name: "x" }, retryAfterSeconds: 7 });
  });

  test("something that is no hub is unreachable, whatever it says", async () => {
    for (const response of [
      new Response("<h1>hi</h1>"),
      new Response("nope", { status: 500 }),
      Response.json({ message: "x" }, { status: 404 }),
      Response.json(null, { status: 400 }),
    ]) {
      answer = () => response.clone(); // a connection that was just closed is tried once more
      expect(await failure(ask(to(), "GET", "/"))).toBeInstanceOf(HubUnreachable);
    }
    answer = () => new Response("", { status: 413 }); // the socket layer's own answer to a huge body
    expect(((await failure(ask(to(), "POST", "/"))) as HubRefusal).code).toBe("payload_too_large");
  });

  test("a redirect is not followed: a token must not go along", async () => {
    seen = [];
    answer = () => new Response(null, { status: 302, headers: { location: `${to().url}/elsewhere` } });
    expect(await failure(ask(to(), "GET", "/"))).toBeInstanceOf(HubUnreachable);
    expect(seen.map(({ path }) => path)).not.toContain("/elsewhere");
  });

  test("a port where nothing listens, a time limit and an interruption are three things", async () => {
    const free = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response() });
    const { port } = free;
    await free.stop(true);
    const gone = await failure(ask({ url: `http://127.0.0.1:${port}` }, "GET", "/"));
    expect([gone.name, gone.message]).toEqual(["HubUnreachable", `no hub answers at http://127.0.0.1:${port}: nothing listens there`]);
    const never = Promise.withResolvers<void>();
    answer = () => never.promise.then(() => new Response("{}")); // one for each of the two that wait
    expect(await failure(ask(to(), "GET", "/", { timeoutMs: 50 }))).toBeInstanceOf(HubTimeout);
    const stop = new AbortController();
    const waiting = failure(ask(to(), "GET", "/", { signal: stop.signal, timeoutMs: 10_000 }));
    stop.abort();
    expect((await waiting).name).toBe("AbortError");
    never.resolve();
  });
});

describe("an address that is almost right says what is wrong with it", () => {
  test("https to a hub that speaks plain HTTP", async () => {
    const { port } = server;
    const url = `https://127.0.0.1:${port}`;
    // Now and then the server has closed the line before the handshake is known to have failed.
    for (const call of [() => ask({ url }, "GET", "/"), () => askReady(url)]) {
      const said = (await failure(call())) as HubUnreachable;
      expect(said.message).toMatch(/: (what listens there does not speak TLS|the connection was closed before an answer came)$/);
      expect(said.hint).toContain(`write http://127.0.0.1:${port}`);
    }
  });

  test.each([
    ["ENOTFOUND", "http://hub.invalid", "the name hub.invalid is not known here", "typing mistake"],
    [
      "DEPTH_ZERO_SELF_SIGNED_CERT",
      "https://hub.example",
      "its certificate is not trusted here (DEPTH_ZERO_SELF_SIGNED_CERT)",
      "NODE_EXTRA_CA_CERTS",
    ],
    ["ECONNRESET", "http://hub.example:7331", "the connection was closed before an answer came", "write https://hub.example:7331"],
    ["EPROTO", "https://hub.example", "what listens there does not speak TLS", "write http://hub.example"],
    ["ECONNRESET", "https://hub.example", "the connection was closed before an answer came", "write http://hub.example"],
    ["EPIPE", "https://hub.example", "the connection failed", undefined],
  ])("%s at %s", async (code, url, why, hint) => {
    for (const trouble of [{ code }, { cause: { code } }]) {
      const fetch = () => Promise.reject(Object.assign(new TypeError("fetch failed"), trouble));
      const said = (await failure(ask({ url, fetch }, "GET", "/"))) as HubUnreachable;
      expect(said.message).toEndWith(`: ${why}`);
      if (hint === undefined) expect(said.hint).toBeUndefined();
      else expect(said.hint).toContain(hint);
    }
  });
});

describe("a stream of events", () => {
  const read = async (text: string, cuts: number[] = []) => {
    const bytes = new TextEncoder().encode(text);
    const parts = [0, ...cuts, bytes.length].slice(0, -1).map((from, index) => bytes.slice(from, [...cuts, bytes.length][index]));
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const part of parts) controller.enqueue(part);
        controller.close();
      },
    });
    return Array.fromAsync(readFrames(new Response(body)));
  };
  const TEXT = 'event: message\nid: gen_1.5\ndata: {"a":"ü"}\n\n: heartbeat\n\nretry: 1000\n\ndata: one\ndata:two\n\nevent: ops\r\ndata: x\r\n\r\n';
  const FRAMES = [
    { event: "message", id: "gen_1.5", data: '{"a":"ü"}' },
    { event: "message", id: undefined, data: "one\ntwo" },
    { event: "ops", id: undefined, data: "x" },
  ];

  test("is read frame by frame, whatever pieces it comes in", async () => {
    expect(await read(TEXT)).toEqual(FRAMES);
    const { length } = new TextEncoder().encode(TEXT);
    for (let cut = 1; cut < length; cut++) {
      if (TEXT.slice(0, cut).endsWith("\r")) continue; // a sender of ours never ends lines so
      expect([cut, await read(TEXT, [cut])]).toEqual([cut, FRAMES]);
    }
  });

  test("that was cut in the middle of a frame ends without it", async () => {
    expect(await read("data: whole\n\ndata: ha")).toEqual([{ event: "message", id: undefined, data: "whole" }]);
    expect(await read("")).toEqual([]);
  });

  test("with a frame that never ends is given up", async () => {
    expect((await failure(read(`data: ${"x".repeat(5_000_000)}`))).message).toContain("without end");
  });
});

test("an answer without an end is read as far as it may be long, and not further", async () => {
  let pulled = 0;
  let cancelled = false;
  const endless = () =>
    new ReadableStream<Uint8Array>({
      pull: (controller) => {
        pulled++;
        controller.enqueue(new Uint8Array(65_536).fill(32));
      },
      cancel: () => void (cancelled = true),
    });
  for (const status of [200, 500]) {
    cancelled = false;
    pulled = 0;
    const from = { url: "http://127.0.0.1:1", fetch: async () => new Response(endless(), { status }) };
    const error = await failure(ask(from, "GET", "/v1/x", { maxBytes: 1_000_000 }));
    expect(error).toBeInstanceOf(HubUnreachable);
    expect(error.message).toContain(status === 200 ? "its answer is longer than 1000000 bytes" : "not a KXM hub");
    expect(cancelled).toBe(true);
    expect(pulled).toBeLessThan(25);
  }
  answer = () => Response.json({ text: "ü".repeat(30_000) });
  expect((await ask(to(), "GET", "/v1/long", { maxBytes: 100_000 })).body.text).toBe("ü".repeat(30_000));
});
