// The MCP endpoint as real clients use it: the official SDK's client, and raw requests as some programs send them.
import { expect, test } from "bun:test";
import * as tokens from "../../src/hub/tokens.ts";
import { TOOLS } from "../../src/mcp/catalogue.ts";
import { offered } from "../../src/mcp/exchange.ts";
import { newSecret } from "../../src/protocol/ids.ts";
import { openMcpWorld } from "../support/mcp.ts";

const { listed: LISTED } = offered({ agentMailNames: false });
const initialize = (protocolVersion: string) => ({
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion, capabilities: {}, clientInfo: { name: "x", version: "1" } },
});

test("the SDK's client connects, is told how to work, and lists every tool with honest hints", async () => {
  await using it = await openMcpWorld();
  const client = await it.connect("ann");
  expect(client.getInstructions()).toContain("kxm_inbox");
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).toEqual(TOOLS.map(({ name }) => name));
  const hints = Object.fromEntries(tools.map(({ name, annotations }) => [name, annotations]));
  expect(hints["kxm_inbox"]).toMatchObject({ readOnlyHint: true, destructiveHint: false, idempotentHint: true });
  expect(hints["kxm_send"]).toMatchObject({ readOnlyHint: false, destructiveHint: false });
  expect(hints["kxm_cancel"]).toMatchObject({ readOnlyHint: false, destructiveHint: true });
});

test("nothing that has a default is required, because clients check calls against the schema and fill in nothing", () => {
  const demanded = LISTED.flatMap(({ name, inputSchema: { properties, required = [] } }) =>
    required.filter((field: string) => "default" in properties[field]).map((field: string) => `${name}.${field}`),
  );
  expect(demanded).toEqual([]);
  expect(LISTED.find(({ name }) => name === "kxm_lease_acquire")?.inputSchema.required).toEqual(["name"]);
});

test("the whole list costs a model at most 6,000 tokens", () => {
  const tokens = (agentMailNames: boolean) => Math.ceil(JSON.stringify(offered({ agentMailNames }).listed).length / 4);
  expect(tokens(false)).toBeLessThanOrEqual(4_500);
  expect(tokens(true)).toBeLessThanOrEqual(6_000);
});

test("two agents find each other, ask, wait, answer and read", async () => {
  await using it = await openMcpWorld();
  const [ann, bob] = [await it.connect("ann"), await it.connect("bob")];
  await it.tool(bob, "kxm_inbox");
  expect((await it.tool(ann, "kxm_list")).agents.map(({ name }: any) => name)).toEqual(["bob"]);
  const { messageId, next } = await it.tool(ann, "kxm_send", { target: "bob", content: "Is <b>main</b> green?" });
  expect(next).toContain("kxm_await");
  const waiting = it.tool(ann, "kxm_await", { messageId, timeoutMs: 20_000 });
  const { open } = await it.tool(bob, "kxm_inbox");
  expect(open).toMatchObject([{ messageId, from: "ann", content: "Is <b>main</b> green?", status: "queued" }]);
  await it.tool(bob, "kxm_reply", { messageId, content: "yes" });
  expect(await waiting).toMatchObject({ messageId, status: "replied", reply: "yes" });
  expect((await it.tool(bob, "kxm_inbox")).open).toEqual([]);
  expect(await it.tool(bob, "kxm_reply", { messageId, content: "again" })).toMatchObject({ isError: true, code: "duplicate_reply" });
});

test("a fan-out gathers replies, and a repeat with its prefix finds the same messages", async () => {
  await using it = await openMcpWorld();
  const [ann, bob, cid] = [await it.connect("ann"), await it.connect("bob"), await it.connect("cid")];
  for (const client of [bob, cid]) await it.tool(client, "kxm_inbox");
  const ask = { targets: ["bob", "cid", "nobody"], content: "?", idempotencyKeyPrefix: "p", correlationId: "c" };
  const first = await it.tool(ann, "kxm_fanout", { ...ask, timeoutMs: 100 });
  expect(first.outcomes.map(({ status }: any) => status)).toEqual(["pending", "pending", "refused"]);
  await it.tool(bob, "kxm_reply", { messageId: first.outcomes[0].messageId, content: "b" });
  const second = await it.tool(ann, "kxm_fanout", { ...ask, timeoutMs: 100 });
  expect(second.outcomes[0]).toMatchObject({ messageId: first.outcomes[0].messageId, status: "replied", reply: "b" });
  expect(second.outcomes[1].messageId).toBe(first.outcomes[1].messageId);
  expect(await it.tool(ann, "kxm_fanout", { targets: ["bob", "BOB"], content: "?" })).toMatchObject({ isError: true, code: "protocol_error" });
  expect(await it.tool(ann, "kxm_fanout", { targets: ["a", "b", "c", "d"], content: "?" })).toMatchObject({ isError: true, code: "protocol_error" });
});

test("a request passed on counts its hops and ends the circle", async () => {
  await using it = await openMcpWorld();
  const [ann, bob] = [await it.connect("ann"), await it.connect("bob")];
  for (const client of [ann, bob]) await it.tool(client, "kxm_inbox");
  let id = (await it.tool(ann, "kxm_send", { target: "bob", content: "0" })).messageId;
  for (let hop = 1; hop < 5; hop++) {
    const [from, target] = hop % 2 ? [bob, "ann"] : [ann, "bob"];
    id = (await it.tool(from, "kxm_send", { target, content: String(hop), replyTo: id })).messageId;
  }
  expect(await it.tool(bob, "kxm_send", { target: "ann", content: "5", replyTo: id })).toMatchObject({ isError: true, code: "hop_limit_reached" });
});

test("one agent takes a lease and the other is refused by name, with what to do", async () => {
  await using it = await openMcpWorld();
  const [ann, bob] = [await it.connect("ann"), await it.connect("bob")];
  const lease = await it.tool(ann, "kxm_lease_acquire", { name: "branch:main" });
  expect(lease).toMatchObject({ fencingToken: 1, holderAgentName: "ann" });
  const refused = await it.tool(bob, "kxm_lease_acquire", { name: "branch:main" });
  expect(refused).toMatchObject({ isError: true, code: "lease_held", lease: { holderAgentName: "ann" } });
  expect(refused.next).toContain("waitMs");
  await it.tool(ann, "kxm_lease_release", { name: "branch:main", fencingToken: 1 });
  expect((await it.tool(bob, "kxm_lease_acquire", { name: "branch:main" })).fencingToken).toBe(2);
});

test("state is proposed by an agent and context is read", async () => {
  await using it = await openMcpWorld();
  const ann = await it.connect("ann");
  expect(
    await it.tool(ann, "kxm_promote", { key: "db", summary: "SQLite", authority: "evidence", confidence: "verified", evidenceRefs: ["c1"] }),
  ).toMatchObject({ status: "proposed" });
  expect((await it.tool(ann, "kxm_state", { key: "db" })).state).toBeNull();
  expect((await it.tool(ann, "kxm_context", { role: "planner", task: "x" })).currentState).toEqual([]);
  expect((await it.tool(ann, "kxm_recall", { query: "sqlite" })).items).toHaveLength(1);
  expect((await it.tool(ann, "kxm_episode")).episodes).toEqual([]);
  expect((await it.tool(ann, "kxm_improvement_report")).signals).toEqual([]);
  expect((await it.tool(ann, "kxm_workflow_list")).runs).toEqual([]);
  expect(await it.tool(ann, "kxm_workflow_get", { runId: "run_none" })).toMatchObject({ isError: true, code: "workflow_not_found" });
});

test("bad fields and unknown tools are answers a model can read, and store nothing", async () => {
  await using it = await openMcpWorld();
  const ann = await it.connect("ann");
  expect(await it.tool(ann, "kxm_send", { target: 7, content: "x" })).toMatchObject({
    isError: true,
    code: "protocol_error",
    error: "target must be a string",
  });
  expect(await it.tool(ann, "kxm_send", { target: "ann", content: "x" })).toMatchObject({ isError: true, code: "self_target" });
  expect(await it.tool(ann, "kxm_nothing")).toMatchObject({ isError: true, code: "protocol_error" });
  expect(await it.tool(ann, "kxm_get", { messageId: "msg_1" })).toMatchObject({ isError: true, code: "message_not_found" });
});

test("every revision the SDK speaks is answered, with and without the version header", async () => {
  await using it = await openMcpWorld();
  for (const version of ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]) {
    const answer = await it.mcp({ body: initialize(version) });
    expect([answer.status, answer.body.result.protocolVersion]).toEqual([200, version]);
    const listed = await it.mcp({ body: { jsonrpc: "2.0", id: 2, method: "tools/list" } });
    expect(listed.body.result.tools).toHaveLength(TOOLS.length);
  }
});

test("a discovery probe of a later revision is answered at once, and not with 401", async () => {
  await using it = await openMcpWorld();
  const probe = await it.mcp({
    body: { jsonrpc: "2.0", id: 1, method: "server/discover", params: {} },
    headers: { "mcp-protocol-version": "2026-07-28" },
  });
  expect([200, 400, 404, 405]).toContain(probe.status);
  const plain = await it.mcp({ body: { jsonrpc: "2.0", id: 1, method: "server/discover", params: {} } });
  expect([plain.status, plain.body.error.code]).toEqual([200, -32601]);
});

test("a late cancellation of an answered call is taken and undoes nothing", async () => {
  await using it = await openMcpWorld();
  const [ann, bob] = [await it.connect("ann"), await it.connect("bob")];
  await it.tool(bob, "kxm_inbox");
  const { messageId } = await it.tool(ann, "kxm_send", { target: "bob", content: "x" });
  const late = await it.mcp({
    body: { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 2 } },
    headers: { "x-kxm-agent-name": "ann" },
  });
  expect(late.status).toBe(202);
  expect((await it.tool(ann, "kxm_get", { messageId })).status).toBe("queued");
});

test("GET and DELETE say 405, other types 415, broken JSON 400, and the hub lives on", async () => {
  await using it = await openMcpWorld();
  expect((await it.mcp({ method: "GET" })).status).toBe(405);
  expect((await it.mcp({ method: "DELETE" })).status).toBe(405);
  expect((await it.mcp({ body: "{}", headers: { "content-type": "text/plain" } })).body.code).toBe("unsupported_media_type");
  for (const body of ["{", '{"a":1,"a":2}', `${"[".repeat(40)}${"]".repeat(40)}`, '"\\ud800"'])
    expect((await it.mcp({ body })).body.code).toBe("invalid_json");
  expect((await it.mcp({ body: { hello: 1 } })).status).toBe(400);
  expect((await it.mcp({ body: `{"a":"${"x".repeat(262_200)}"}` })).body.code).toBe("payload_too_large");
  expect((await it.mcp({ body: initialize("2025-11-25") })).status).toBe(200);
});

test("other hosts and origins are refused, a missing origin is not", async () => {
  await using it = await openMcpWorld();
  expect((await it.mcp({ body: initialize("2025-11-25"), headers: { origin: "http://evil.example" } })).body.code).toBe("origin_forbidden");
  expect((await it.mcp({ body: initialize("2025-11-25"), headers: { host: "evil.example:7331" } })).body.code).toBe("host_forbidden");
});

test("an agent needs a name, the project's token where there is one, and cannot take a name somebody holds a key for", async () => {
  await using it = await openMcpWorld({ projectTokenHashes: new Map([["locked", new Bun.CryptoHasher("sha256").update("pass").digest("hex")]]) });
  expect((await it.mcp({ body: initialize("2025-11-25"), headers: { "x-kxm-agent-name": "" } })).body.code).toBe("invalid_agent_identity");
  expect((await it.mcp({ body: initialize("2025-11-25"), headers: { "x-kxm-project": "locked" } })).status).toBe(401);
  expect((await it.mcp({ body: initialize("2025-11-25"), headers: { "x-kxm-project": "locked", authorization: "Bearer pass" } })).status).toBe(200);
  await it.call("POST", "/v1/agents/register", { body: { name: "keyed", project: "shop" } });
  expect((await it.mcp({ body: initialize("2025-11-25"), headers: { "x-kxm-agent-name": "KEYED" } })).body.code).toBe("duplicate_agent_name");
});

test("an agent with id and key is itself over MCP too", async () => {
  await using it = await openMcpWorld();
  const { body } = await it.call("POST", "/v1/agents/register", { body: { name: "keyed", project: "shop" } });
  const client = await it.connect("ignored", { "x-kxm-agent-id": body.agent.id, "x-kxm-agent-key": body.agentKey });
  expect((await it.tool(client, "kxm_list")).you).toBe("keyed");
});

test("a named agent goes offline by itself when it falls silent, and comes back as the same one", async () => {
  await using it = await openMcpWorld();
  const ann = await it.connect("ann");
  await it.tool(ann, "kxm_inbox");
  const bob = await it.connect("bob");
  it.clock.now += 31_000;
  expect((await it.tool(bob, "kxm_list", { includeOffline: true })).agents).toMatchObject([{ name: "ann", presence: "stale" }]);
  await it.tool(ann, "kxm_inbox");
  expect((await it.tool(bob, "kxm_list")).agents).toMatchObject([{ name: "ann", presence: "online" }]);
  expect((await it.call("GET", "/health")).body.agents).toBe(2);
});

test("200 calls at once are all answered", async () => {
  await using it = await openMcpWorld();
  const ann = await it.connect("ann");
  const answers = await Promise.all(Array.from({ length: 200 }, (_, n) => it.tool(ann, "kxm_lease_acquire", { name: `r${n}` })));
  expect(answers.every(({ fencingToken }) => fencingToken === 1)).toBe(true);
});

test("a token made for one agent names it, whatever the request says", async () => {
  await using it = await openMcpWorld();
  const secret = newSecret("kxp");
  await it.hub.engine.write("shop", (tx) =>
    tokens.create(
      tx,
      { actor: "admin", role: "admin" },
      { secret, name: "desk", scope: "project", project: "shop", agentName: "ann", expiresAt: null },
    ),
  );
  const headers = { authorization: `Bearer ${secret}`, "x-kxm-project": "shop", "x-kxm-agent-name": "bob" };
  const message = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "kxm_list", arguments: {} } };
  expect((await it.mcp({ body: message, headers })).status).toBe(200);
  expect((await it.hub.engine.read.agents.findByName("shop", "ann"))?.online).toBe(1);
  expect(await it.hub.engine.read.agents.findByName("shop", "bob")).toBeUndefined();
});

test("an agent's messages count against its limit, those of a batch one by one, and no one else's", async () => {
  await using it = await openMcpWorld({ rateLimit: { max: 5, windowMs: 60_000 } });
  const ping = (id: number) => ({ jsonrpc: "2.0", id, method: "ping" });
  const as = (name: string, body: unknown) => it.mcp({ body, headers: { "x-kxm-agent-name": name } });
  expect((await as("loop", [ping(1), ping(2), ping(3)])).status).toBe(200);
  expect((await as("loop", ping(4))).headers.get("x-ratelimit-remaining")).toBe("1");
  const refused = await as("loop", [ping(5), ping(6)]);
  expect([refused.status, refused.body.code, refused.headers.get("retry-after")]).toEqual([429, "rate_limited", "60"]);
  expect((await as("other", ping(1))).status).toBe(200);
  it.clock.now += 60_000;
  expect((await as("loop", ping(7))).status).toBe(200);
});

test("a client that calls itself something else each time makes only so many agents", async () => {
  await using it = await openMcpWorld({ rateLimit: { max: 5, windowMs: 60_000 } });
  const as = async (name: string) =>
    (await it.mcp({ body: { jsonrpc: "2.0", id: 1, method: "ping" }, headers: { "x-kxm-agent-name": name } })).status;
  for (let n = 0; n < 5; n++) expect(await as(`session-${n}`)).toBe(200);
  expect(await as("session-5")).toBe(429);
  expect(await as("session-0")).toBe(200); // whoever is there already
  expect(await it.hub.engine.read.agents.findByName("shop", "session-5")).toBeUndefined();
  it.clock.now += 60_000;
  expect(await as("session-5")).toBe(200);
});

test("a name that no store keeps is refused", async () => {
  await using it = await openMcpWorld();
  const headers = { "x-kxm-agent-name": "a%00b" };
  const { status, body } = await it.mcp({ body: { jsonrpc: "2.0", id: 1, method: "ping" }, headers });
  expect([status, body.code]).toEqual([400, "protocol_error"]);
});
