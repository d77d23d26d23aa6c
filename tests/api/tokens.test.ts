// Tokens, sign-in links, and what is left of them in the audit and the log.
import { expect, test } from "bun:test";
import { sha256 } from "../../src/protocol/canonical.ts";
import { openHubWorld } from "../support/hub.ts";

const ADMIN = "admin-token-of-this-test";
const as = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
const openWorld = () => openHubWorld({ adminTokenHash: sha256(ADMIN) });

test("a token is shown once, works in its scope and project, and is dead once revoked", async () => {
  await using it = await openWorld();
  const made = await it.call("POST", "/v1/tokens", { ...as(ADMIN), body: { name: "ci", scope: "viewer", project: "shop" } });
  expect(made.status).toBe(201);
  const { token, secret } = made.body;
  expect(secret).toMatch(/^kxm_[\w-]{43}$/);
  expect(token).toMatchObject({ name: "ci", scope: "viewer", project: "shop", createdBy: "admin", prefix: secret.slice(0, 10) });

  expect((await it.call("GET", "/v1/log?project=shop", as(secret))).status).toBe(200);
  expect((await it.call("GET", "/v1/log?project=other", as(secret))).body.code).toBe("role_forbidden");
  expect((await it.call("GET", "/v1/tokens", as(secret))).body.code).toBe("role_forbidden");
  expect((await it.call("POST", "/v1/signin-links", { ...as(secret), body: {} })).body.code).toBe("role_forbidden");

  const listed = await it.call("GET", "/v1/tokens", as(ADMIN));
  expect(listed.body.tokens).toEqual([token]);
  expect(JSON.stringify(listed.body)).not.toContain(secret.slice(10));

  const revoked = await it.call("DELETE", `/v1/tokens/${token.id}`, as(ADMIN));
  expect(revoked.body.token.revokedBy).toBe("admin");
  expect((await it.call("DELETE", `/v1/tokens/${token.id}`, as(ADMIN))).body).toEqual(revoked.body);
  expect((await it.call("GET", "/v1/log?project=shop", as(secret))).status).toBe(401);
  expect((await it.call("DELETE", "/v1/tokens/tok_00", as(ADMIN))).body.code).toBe("token_not_found");
});

test("taking a project's last token away leaves the project closed, not open to everybody", async () => {
  await using it = await openHubWorld({ localAdminTokenHash: sha256(ADMIN) }); // a hub of one machine, open to its agents
  const register = (name: string, project: string, headers = {}) => it.call("POST", "/v1/agents/register", { headers, body: { name, project } });
  expect((await register("ann", "shop")).status).toBe(201);
  const make = () =>
    it.call("POST", "/v1/tokens", { ...as(ADMIN), body: { name: "shop", scope: "project", project: "shop", expiresInMs: 86_400_000 } });
  const { token, secret } = (await make()).body;
  expect((await register("bob", "shop")).status).toBe(401);
  expect((await register("bob", "shop", as(secret).headers)).status).toBe(201);
  await it.call("DELETE", `/v1/tokens/${token.id}`, as(ADMIN));
  expect((await register("cid", "shop")).status).toBe(401);
  expect((await register("cid", "other")).status).toBe(201);
  const again = (await make()).body.secret;
  expect((await register("cid", "shop", as(again).headers)).status).toBe(201);
  it.clock.now += 86_400_000;
  expect((await register("dan", "shop")).status).toBe(401);
});

test("a token ends by itself at its time", async () => {
  await using it = await openWorld();
  const { secret } = (await it.call("POST", "/v1/tokens", { ...as(ADMIN), body: { name: "day", scope: "operator", expiresInMs: 86_400_000 } })).body;
  it.clock.now += 86_399_999;
  expect((await it.call("GET", "/v1/projects", as(secret))).status).toBe(200);
  it.clock.now += 1;
  expect((await it.call("GET", "/v1/projects", as(secret))).status).toBe(401);
});

test("a token of scope project needs a project, and no token makes one beyond its own", async () => {
  await using it = await openWorld();
  expect((await it.call("POST", "/v1/tokens", { ...as(ADMIN), body: { name: "x", scope: "project" } })).body.code).toBe("protocol_error");
  expect((await it.call("POST", "/v1/tokens", { ...as(ADMIN), body: { name: "x", scope: "root" } })).body.code).toBe("protocol_error");
  const own = (await it.call("POST", "/v1/tokens", { ...as(ADMIN), body: { name: "a", scope: "admin", project: "shop" } })).body.secret;
  expect((await it.call("POST", "/v1/tokens", { ...as(own), body: { name: "b", scope: "admin" } })).body.code).toBe("role_forbidden");
  expect((await it.call("POST", "/v1/tokens", { ...as(own), body: { name: "b", scope: "viewer", project: "other" } })).body.code).toBe(
    "role_forbidden",
  );
  const inside = await it.call("POST", "/v1/tokens", { ...as(own), body: { name: "b", scope: "viewer", project: "shop" } });
  expect(inside.status).toBe(201);
  expect((await it.call("GET", "/v1/tokens", as(own))).body.tokens).toHaveLength(2);
});

test("an admin of one project does not read the workflow definitions of all projects again", async () => {
  await using it = await openWorld();
  let reads = 0;
  it.hub.reloadDefinitions = () => ++reads;
  const own = (await it.call("POST", "/v1/tokens", { ...as(ADMIN), body: { name: "a", scope: "admin", project: "shop" } })).body.secret;
  const reload = (token: string) => it.call("POST", "/v1/workflow-definitions/reload", { ...as(token), body: {} });
  expect((await reload(own)).body.code).toBe("role_forbidden");
  expect(reads).toBe(0);
  expect((await reload(ADMIN)).body).toEqual({ count: 1 });
});

test("without an admin token of any kind the hub says so instead of opening up", async () => {
  await using it = await openHubWorld();
  for (const [method, path] of [
    ["POST", "/v1/tokens"],
    ["GET", "/v1/tokens"],
    ["DELETE", "/v1/tokens/tok_1"],
    ["POST", "/v1/signin-links"],
    ["GET", "/v1/audit"],
  ] as const) {
    const answer = await it.call(method, path, method === "POST" ? { body: {} } : {});
    expect([answer.status, answer.body.code]).toEqual([503, "admin_auth_not_configured"]);
  }
});

test("this machine's own operator token opens the admin routes of a hub without KXM_AUTH_TOKEN, and is never asked of agents", async () => {
  await using it = await openHubWorld({ localAdminTokenHash: sha256("local") });
  expect((await it.call("GET", "/v1/tokens", as("local"))).status).toBe(200);
  expect((await it.call("GET", "/v1/tokens", as("wrong"))).status).toBe(401);
  expect((await it.call("GET", "/v1/tokens")).status).toBe(401);
});

test("an operator's link names this hub, lasts a minute, and gives no more than its maker has", async () => {
  await using it = await openWorld();
  const operator = (await it.call("POST", "/v1/tokens", { ...as(ADMIN), body: { name: "op", scope: "operator", project: "shop" } })).body.secret;
  const link = await it.call("POST", "/v1/signin-links", { ...as(operator), body: {} });
  expect(link.status).toBe(201);
  expect(link.body).toMatchObject({ role: "operator", project: "shop", expiresAt: new Date(it.clock.now + 60_000).toISOString() });
  expect(link.body.url).toMatch(/^http:\/\/127\.0\.0\.1:7331\/signin\?link=kxl_[\w-]{43}$/);
  expect((await it.call("POST", "/v1/signin-links", { ...as(operator), body: { role: "admin" } })).body.code).toBe("role_forbidden");
  expect((await it.call("POST", "/v1/signin-links", { ...as(operator), body: { project: "other" } })).body.code).toBe("role_forbidden");
  expect((await it.call("POST", "/v1/signin-links", { ...as(operator), body: { role: "viewer" } })).body.role).toBe("viewer");
});

test("behind a proxy the link carries the public address", async () => {
  await using it = await openHubWorld({ adminTokenHash: sha256(ADMIN), publicUrl: "https://kxm.example.com" });
  const link = await it.call("POST", "/v1/signin-links", { ...as(ADMIN), body: {} });
  expect(link.body.url).toStartWith("https://kxm.example.com/signin?link=");
});

test("the audit says who did what, newest first, page by page; a project's viewer sees that project alone", async () => {
  await using it = await openWorld();
  const make = (name: string, project?: string) => {
    it.clock.now += 1_000;
    return it.call("POST", "/v1/tokens", { headers: { ...as(ADMIN).headers, "x-kxm-client": "cli" }, body: { name, scope: "viewer", project } });
  };
  const shop = (await make("one", "shop")).body;
  for (const name of ["two", "three"]) await make(name, "shop");
  await make("four", "other");
  await make("five");
  const names = (answer: { body: { entries: { data: { name?: string } }[] } }) => answer.body.entries.map(({ data }) => data.name);

  const first = await it.call("GET", "/v1/audit?limit=2", as(ADMIN));
  expect(names(first)).toEqual(["five", "four"]);
  expect(first.body.entries[0]).toMatchObject({ project: "", actor: "admin", role: "admin", action: "token.created", origin: "cli" });
  const second = await it.call("GET", `/v1/audit?limit=2&after=${first.body.next}`, as(ADMIN));
  const third = await it.call("GET", `/v1/audit?limit=2&after=${second.body.next}`, as(ADMIN));
  expect([...names(second), ...names(third)]).toEqual(["three", "two", "one"]);
  expect(third.body.next).toBeUndefined();

  expect(names(await it.call("GET", "/v1/audit", as(shop.secret)))).toEqual(["three", "two", "one"]);
  expect((await it.call("GET", "/v1/audit?project=other", as(shop.secret))).body.code).toBe("role_forbidden");
  expect(names(await it.call("GET", `/v1/audit?subject=${shop.token.id}`, as(ADMIN)))).toEqual(["one"]);
  expect(names(await it.call("GET", "/v1/audit?action=token.revoked", as(ADMIN)))).toEqual([]);
  const since = encodeURIComponent(new Date(it.clock.now - 1_000).toISOString());
  expect(names(await it.call("GET", `/v1/audit?since=${since}`, as(ADMIN)))).toEqual(["five", "four"]);
  expect(names(await it.call("GET", `/v1/audit?until=${since}&actor=admin`, as(ADMIN)))).toEqual(["three", "two", "one"]);
  for (const bad of ["after=x", "after=W10", "since=tomorrow", "limit=0", "limit=1e9", "after=%00"])
    expect((await it.call("GET", `/v1/audit?${bad}`, as(ADMIN))).body.code).toBe("protocol_error");
});

test("the log is read in order and says when its start is gone; projects are listed by name", async () => {
  await using it = await openWorld();
  for (const project of ["b", "a"])
    for (const name of ["x", "y", "z"]) await it.call("POST", "/v1/tokens", { ...as(ADMIN), body: { name, scope: "viewer", project } });
  const log = await it.call("GET", "/v1/log?project=a&limit=2", as(ADMIN));
  expect(log.body).toMatchObject({ lastSeq: 3, truncated: false });
  expect(log.body.entries.map(({ seq, topic, type }: { seq: number; topic: string; type: string }) => [seq, topic, type])).toEqual([
    [1, "settings", "token.created"],
    [2, "settings", "token.created"],
  ]);
  expect((await it.call("GET", "/v1/log?project=a&after=3", as(ADMIN))).body).toEqual({ entries: [], lastSeq: 3, truncated: false });
  expect((await it.call("GET", "/v1/log?project=nowhere", as(ADMIN))).body).toEqual({ entries: [], lastSeq: 0, truncated: false });
  expect((await it.call("GET", "/v1/log", as(ADMIN))).body.code).toBe("protocol_error");

  const page = await it.call("GET", "/v1/projects?limit=1", as(ADMIN));
  expect(page.body).toEqual({ projects: [{ name: "a", lastSeq: 3, agentsOnline: 0 }], next: "a" });
  expect((await it.call("GET", "/v1/projects?limit=1&after=a", as(ADMIN))).body).toEqual({ projects: [{ name: "b", lastSeq: 3, agentsOnline: 0 }] });
});

test("a token made for one agent registers and speaks for that agent alone", async () => {
  await using it = await openWorld();
  const create = (body: object) => it.call("POST", "/v1/tokens", { ...as(ADMIN), body });
  const { secret, token } = (await create({ name: "desk", scope: "project", project: "shop", agent: "ann" })).body;
  expect(token).toMatchObject({ agent: "ann" });
  const register = (name: string, bearer: string) =>
    it.call("POST", "/v1/agents/register", { ...as(bearer), body: { name, purpose: "test", project: "shop" } });
  const ann = (await register("ann", secret)).body;
  expect(ann.agent.name).toBe("ann");
  expect(await register("bob", secret)).toMatchObject({ status: 403, body: { code: "role_forbidden" } });
  const bob = (await register("bob", (await create({ name: "any", scope: "project", project: "shop" })).body.secret)).body;
  const list = ({ agent, agentKey }: any) =>
    it.call("GET", "/v1/agents", { headers: { ...as(secret).headers, "x-kxm-agent-id": agent.id, "x-kxm-agent-key": agentKey } });
  expect((await list(ann)).status).toBe(200);
  expect(await list(bob)).toMatchObject({ status: 403, body: { code: "role_forbidden" } });
  expect(await it.call("GET", "/v1/runtimes?project=shop", as(secret))).not.toMatchObject({ status: 200 });
  expect((await create({ name: "x", scope: "viewer", agent: "ann" })).body.code).toBe("protocol_error");
});
