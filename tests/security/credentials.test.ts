// Every route of the table against every kind of caller (items 22 to 25): made from the table, so that a new route is tested the day it exists.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Credential } from "../../src/api/credentials.ts";
import type { Route } from "../../src/api/route.ts";
import { ROUTES } from "../../src/api/routes.ts";
import { sha256 } from "../../src/protocol/canonical.ts";
import { type HubWorld, openHubWorld } from "../support/hub.ts";

const ADMIN = "admin-token-of-this-test";
const SHOP = "shop-token-of-this-test";
const OTHER = "other-token-of-this-test";

let it: HubWorld;
let agent: { id: string; headers: Record<string, string> };
let stranger: { id: string; headers: Record<string, string> };
const tokens: Record<string, string> = {};
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

beforeAll(async () => {
  it = await openHubWorld({
    adminTokenHash: sha256(ADMIN),
    projectTokenHashes: new Map([
      ["shop", sha256(SHOP)],
      ["other", sha256(OTHER)],
    ]),
    rateLimit: undefined,
  });
  agent = await register("shop", SHOP);
  stranger = await register("other", OTHER);
  for (const scope of ["viewer", "operator", "admin"]) {
    const made = await it.call("POST", "/v1/tokens", { headers: bearer(ADMIN), body: { name: scope, scope } });
    tokens[scope] = made.body.secret;
  }
  const shopViewer = await it.call("POST", "/v1/tokens", { headers: bearer(ADMIN), body: { name: "shop viewer", scope: "viewer", project: "shop" } });
  tokens["shopViewer"] = shopViewer.body.secret;
});
afterAll(() => it[Symbol.asyncDispose]());

async function register(project: string, token: string) {
  const { agent, agentKey } = (await it.call("POST", "/v1/agents/register", { headers: bearer(token), body: { name: "a", project } })).body;
  return { id: agent.id as string, headers: { ...bearer(token), "x-kxm-agent-id": agent.id as string, "x-kxm-agent-key": agentKey as string } };
}

/** Calls a route as somebody. Parameters are ids that do not exist, so that a caller who may gets a refusal of the rule, not of the door. */
async function callAs(route: Route, headers: Record<string, string>, own: { id: string } = agent) {
  it.clock.now += 60_000; // guessing is slowed down after twenty tries a minute; here the answer itself is looked at
  const idName = route.agentIdFrom?.path;
  const path = route.path.replaceAll(/:(\w+)/g, (_, name: string) => (name === idName ? own.id : "msg_00000000000000000000000000000000"));
  const query = new URLSearchParams({ project: "shop", ...(route.agentIdFrom?.query && { [route.agentIdFrom.query]: own.id }) });
  const controller = new AbortController();
  const request = new Request(`http://127.0.0.1:7331${path}?${query}`, {
    method: route.method,
    headers: { ...headers, ...(route.method === "POST" && { "content-type": "application/json" }) },
    ...(route.method === "POST" && {
      body: JSON.stringify({ name: "x", purpose: "x", project: "shop", runtimeId: "rtm_000000000000000000000000", events: [] }),
    }),
    signal: controller.signal,
  });
  const response = await it.fetch(request);
  const isJson = response.headers.get("content-type")?.startsWith("application/json");
  const code = isJson ? (((await response.json()) as { code?: string }).code ?? "") : "";
  controller.abort();
  return { status: response.status, code };
}

const guarded = ROUTES.filter(({ credential }) => credential !== "none");
const open = ROUTES.filter(({ credential }) => credential === "none");
const named = (routes: readonly Route[]) => routes.map((route) => [`${route.method} ${route.path} (${route.credential})`, route] as const);
/** Statuses of the door: wrong credentials, or right ones of too low a rank. */
const atTheDoor = ({ status }: { status: number }) => status === 401 || status === 403;

test("only these routes ask for no credential: what monitors and browsers need before anybody is known, and signed requests", () => {
  expect(open.map(({ method, path }) => `${method} ${path}`).sort()).toEqual(
    [
      "GET /health",
      "GET /ready",
      "GET /openapi.json",
      ...open.filter(({ path }) => path.startsWith("/v1/webhooks/")).map(({ method, path }) => `${method} ${path}`),
    ].sort(),
  );
});

describe("without a credential, and with one that is wrong, nobody gets in", () => {
  const WRONG: Record<string, Record<string, string>> = {
    nothing: {},
    "an empty token": { authorization: "" },
    "no token": { authorization: "Bearer" },
    "a word": { authorization: "Bearer null" },
    "another word": { authorization: "Bearer undefined" },
    "a lower-case scheme": { authorization: `bearer ${ADMIN}` },
    "a space behind": { authorization: `Bearer ${ADMIN} x` },
    "two tokens": { authorization: `Bearer ${ADMIN}, Bearer ${SHOP}` },
    "another scheme": { authorization: `Basic ${btoa(`admin:${ADMIN}`)}` },
    "a long token": { authorization: `Bearer ${"x".repeat(8_000)}` },
    "the right start": { authorization: `Bearer ${ADMIN.slice(0, -1)}` },
    "a role of its own making": { "x-role": "admin", "x-scope": "admin" },
    "an agent id without its key": { "x-kxm-agent-id": "agt_00000000000000000000000000000000" },
  };
  test.each(named(guarded))("%s", async (_, route) => {
    for (const [what, headers] of Object.entries(WRONG)) {
      const { status } = await callAs(route, headers);
      expect([what, status === 401]).toEqual([what, true]);
    }
  });
});

describe("an agent of another project, or one with another's key, is not let in", () => {
  test.each(named(guarded.filter(({ credential }) => credential === "agent")))("%s", async (_, route) => {
    expect((await callAs(route, { ...agent.headers, "x-kxm-agent-key": stranger.headers["x-kxm-agent-key"]! })).status).toBe(401);
    expect((await callAs(route, { ...agent.headers, ...bearer(OTHER) })).status).toBe(401); // its own project's token, or none
    expect((await callAs(route, { ...agent.headers, ...bearer(ADMIN) })).status).toBe(401); // the admin's does not count where a project has one
    if (route.agentIdFrom) expect((await callAs(route, stranger.headers, agent)).status).toBe(401); // somebody else's id in the address
  });
});

/** Ranks that may use a route of a kind; agents and projects aside. */
const MAY: Partial<Record<Credential, string[]>> = {
  admin: ["admin"],
  "admin-configured": ["admin"],
  operator: ["operator", "admin"],
  viewer: ["viewer", "operator", "admin"],
  "agent-or-admin": ["admin"],
  "agent-or-operator": ["operator", "admin"],
  "agent-or-viewer": ["viewer", "operator", "admin"],
};

describe("a token opens what its rank may, and nothing above", () => {
  test.each(named(guarded.filter(({ credential }) => MAY[credential as Credential])))("%s", async (_, route) => {
    const may = MAY[route.credential as Credential]!;
    for (const rank of ["viewer", "operator", "admin"]) {
      const answer = await callAs(route, bearer(tokens[rank]!));
      if (may.includes(rank)) expect([rank, answer.status === 401 || answer.code === "invalid_auth"]).toEqual([rank, false]);
      else expect([rank, answer.code === "role_forbidden" || atTheDoor(answer)]).toEqual([rank, true]);
    }
    const asProject = await callAs(route, bearer(SHOP)); // a project's token is an agent's place, not a rank
    expect([asProject.status, asProject.status === 401]).toEqual([asProject.status, true]);
  });
});

test("a viewer of one project sees that project alone, whatever the address says", async () => {
  const reads = guarded.filter(({ credential, query }) => credential === "viewer" && query?.properties["project"]);
  expect(reads.length).toBeGreaterThan(3);
  for (const route of reads) {
    const request = new Request(`http://127.0.0.1:7331${route.path.replaceAll(/:(\w+)/g, "x")}?project=other`, {
      headers: bearer(tokens["shopViewer"]!),
    });
    const response = await it.fetch(request);
    expect([route.path, response.status]).toEqual([route.path, 403]);
  }
});

test("every refusal at the door says the same, whoever asked and whatever for", async () => {
  const bodies = new Set<string>();
  for (const token of ["x", "kxm_x", ADMIN.slice(1), tokens["viewer"]!.slice(0, -1)]) {
    const { body, status } = await it.call("GET", "/v1/tokens", { headers: bearer(token) });
    expect(status).toBe(401);
    bodies.add(JSON.stringify({ ...body, requestId: "" }));
  }
  expect(bodies.size).toBe(1);
});

test("guessing is slowed down after twenty tries a minute, while the right credential from the same place still works", async () => {
  it.clock.now += 60_000;
  const statuses: number[] = [];
  for (let n = 0; n < 30; n++) statuses.push((await it.call("GET", "/v1/tokens", { headers: bearer(`guess-${n}`) })).status);
  expect(statuses).toEqual([...Array(20).fill(401), ...Array(10).fill(429)]);
  expect((await it.call("GET", "/v1/tokens", { headers: bearer(ADMIN) })).status).toBe(200);
  expect((await it.call("GET", "/v1/agents", { headers: agent.headers })).status).toBe(200);
  const refused = await it.call("GET", "/v1/tokens", { headers: bearer("guess") });
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  it.clock.now += 60_000;
  expect((await it.call("GET", "/v1/tokens", { headers: bearer("guess") })).status).toBe(401);
});
