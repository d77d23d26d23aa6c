// One project at a glance, the stream that says it changed, and what monitors read.
import { expect, test } from "bun:test";
import { readFrames } from "../../src/client/sse.ts";
import { COUNTERS } from "../../src/hub/metrics.ts";
import { sha256 } from "../../src/protocol/canonical.ts";
import { type HubWorld, openHubWorld } from "../support/hub.ts";

const ADMIN = "admin-token-of-this-test";
const asAdmin = { authorization: `Bearer ${ADMIN}` };
const openWorld = () => openHubWorld({ localAdminTokenHash: sha256(ADMIN) });

async function register(it: HubWorld, name: string, project = "shop") {
  const { agent, agentKey } = (await it.call("POST", "/v1/agents/register", { body: { name, project, purpose: "test" } })).body;
  return { id: agent.id as string, headers: { "x-kxm-agent-id": agent.id, "x-kxm-agent-key": agentKey } };
}
const send = async (it: HubWorld, from: { headers: Record<string, string> }, target: string, content: string, more = {}) =>
  (await it.call("POST", "/v1/messages", { headers: from.headers, body: { target, content, allowOffline: true, ...more } })).body.message;
const snapshot = async (it: HubWorld, project = "shop") => (await it.call("GET", `/v1/ops/snapshot?project=${project}`, { headers: asAdmin })).body;

/** Frames of the stream until `count` of them came. */
async function frames(
  it: HubWorld,
  count: number,
  options: { headers?: Record<string, string>; project?: string; during?: () => Promise<unknown> } = {},
) {
  const abort = new AbortController();
  const url = `http://127.0.0.1:7331/v1/ops/events?project=${options.project ?? "shop"}`;
  const response = await it.fetch(new Request(url, { headers: { ...asAdmin, ...options.headers }, signal: abort.signal }));
  expect(response.status).toBe(200);
  const found: { event: string; id: string | undefined; data: any }[] = [];
  for await (const { event, id, data } of readFrames(response)) {
    found.push({ event, id, data: JSON.parse(data) });
    if (found.length === 1) await options.during?.();
    if (found.length >= count) break;
  }
  abort.abort();
  return found;
}

test("an empty project has an empty glance of the exact shape", async () => {
  await using it = await openWorld();
  expect(await snapshot(it)).toEqual({
    project: "shop",
    fetchedAt: new Date(it.clock.now).toISOString(),
    agents: [],
    openMessages: [],
    openMessageTotal: 0,
    runs: [],
    runTotal: 0,
    homeRuntimes: [],
    plans: [],
  });
  expect((await it.call("GET", "/v1/ops/snapshot", { headers: asAdmin })).body.code).toBe("protocol_error");
  expect((await it.call("GET", `/v1/ops/snapshot?project=${"x".repeat(129)}`, { headers: asAdmin })).body.code).toBe("protocol_error");
  expect((await it.call("GET", "/v1/ops/snapshot?project=shop")).status).toBe(401);
});

test("the glance shows agents online first and open messages newest first, and never what they say", async () => {
  await using it = await openWorld();
  const [zoe, adam, bea] = [await register(it, "zoe"), await register(it, "adam"), await register(it, "bea")];
  await register(it, "stranger", "other");
  await it.call("DELETE", `/v1/agents/${adam.id}`, { headers: adam.headers });
  const first = await send(it, zoe, "bea", "SECRET-BODY-1", { correlationId: "thread-1" });
  const second = await send(it, zoe, "adam", "SECRET-BODY-2");
  const answered = await send(it, zoe, "bea", "SECRET-BODY-3");
  await it.call("POST", `/v1/messages/${answered.id}/reply`, { headers: bea.headers, body: { content: "SECRET-REPLY" } });
  const short = await send(it, zoe, "bea", "SECRET-BODY-4", { ttlMs: 1_000 });
  it.clock.now += 1_000;
  const glance = await snapshot(it);
  expect(glance.agents.map(({ name, online }: { name: string; online: boolean }) => [name, online])).toEqual([
    ["bea", true],
    ["zoe", true],
    ["adam", false],
  ]);
  expect(glance.openMessages).toEqual([
    { id: second.id, status: "queued", fromName: "zoe", toName: "adam", delivery: "followUp", createdAt: second.createdAt },
    { id: first.id, status: "queued", fromName: "zoe", toName: "bea", delivery: "followUp", createdAt: first.createdAt, correlationId: "thread-1" },
  ]);
  expect(glance.openMessages.map(({ id }: { id: string }) => id)).not.toContain(short.id);
  expect(JSON.stringify(glance)).not.toContain("SECRET");
});

test("lists are cut, totals are not", async () => {
  await using it = await openWorld();
  const zoe = await register(it, "zoe");
  await register(it, "bea");
  for (let n = 0; n < 20; n++) await send(it, zoe, "bea", `message ${n}`);
  const glance = await snapshot(it);
  expect([glance.openMessages.length, glance.openMessageTotal]).toEqual([16, 20]);
});

test("the stream says which part changed, first ready, with ids that rise", async () => {
  await using it = await openWorld();
  const found = await frames(it, 4, {
    during: async () => {
      const [zoe, bea] = [await register(it, "zoe"), await register(it, "bea")];
      await it.call("POST", "/v1/leases/x/acquire", { headers: zoe.headers, body: {} }); // leases are not part of the glance
      await send(it, zoe, "bea", "SECRET-BODY");
      await register(it, "stranger", "other"); // nor are other projects
      expect(bea.id).toBeString();
    },
  });
  expect(found.map(({ event, data }) => [event, data.type, data.project, data.topic])).toEqual([
    ["ready", "ops", "shop", "agents"],
    ["ops", "ops", "shop", "agents"],
    ["ops", "ops", "shop", "agents"],
    ["ops", "ops", "shop", "messages"],
  ]);
  const seqs = found.map(({ id }) => Number(id!.split(".")[1]));
  expect(seqs).toEqual([0, 1, 2, 4]);
  expect(JSON.stringify(found)).not.toContain("SECRET");
});

test("a client that was away is told what changed meanwhile, or to read everything again", async () => {
  await using it = await openWorld();
  const zoe = await register(it, "zoe");
  const [ready] = await frames(it, 1);
  await send(it, zoe, "zoe2", "x").catch(() => {});
  await register(it, "bea");
  await send(it, zoe, "bea", "hello");
  const resumed = await frames(it, 3, { headers: { "last-event-id": ready!.id! } });
  expect(resumed.map(({ event, data }) => [event, data.topic])).toEqual([
    ["ready", "agents"],
    ["ops", "agents"],
    ["ops", "messages"],
  ]);
  const generation = ready!.id!.split(".")[0];
  for (const id of ["", "garbage", "gen_00000000000000000000000000000000.1", `${generation}.999`, `${generation}.-1`, "x".repeat(65_536)]) {
    const [, second] = await frames(it, 2, { headers: { "last-event-id": id } });
    expect([id.slice(0, 20), second!.event]).toEqual([id.slice(0, 20), "reset"]);
  }
  const unchanged = await frames(it, 2, { headers: { "last-event-id": resumed.at(-1)!.id! }, during: () => register(it, "late") });
  expect(unchanged[1]!.event).toBe("ops"); // nothing was missed: the next frame is the next change
});

test("a stream ends when its token is revoked, and a token may open only so many", async () => {
  await using it = await openHubWorld({ localAdminTokenHash: sha256(ADMIN), streamsPerToken: 2 });
  const { token, secret } = (await it.call("POST", "/v1/tokens", { headers: asAdmin, body: { name: "wall", scope: "viewer" } })).body;
  const open = () => it.fetch(new Request("http://127.0.0.1:7331/v1/ops/events?project=shop", { headers: { authorization: `Bearer ${secret}` } }));
  const [first, second] = [await open(), await open()];
  const third = await open();
  expect([first.status, second.status, third.status]).toEqual([200, 200, 429]);
  const read = async (response: Response) => {
    const names = [];
    for await (const { event } of readFrames(response)) {
      names.push(event);
      if (names.length === 1) readied.push(response);
      if (readied.length === 2) await it.call("DELETE", `/v1/tokens/${token.id}`, { headers: asAdmin });
    }
    return names;
  };
  const readied: Response[] = [];
  expect(await Promise.all([read(first), read(second)])).toEqual([["ready"], ["ready"]]);
  expect((await open()).status).toBe(401);
});

test("a stream ends when the time of its token is over", async () => {
  await using it = await openHubWorld({ localAdminTokenHash: sha256(ADMIN) });
  const body = { name: "day", scope: "viewer", expiresInMs: 86_400_000 };
  const { secret } = (await it.call("POST", "/v1/tokens", { headers: asAdmin, body })).body;
  const request = new Request("http://127.0.0.1:7331/v1/ops/events?project=shop", { headers: { authorization: `Bearer ${secret}` } });
  const frames = readFrames(await it.fetch(request));
  expect((await frames.next()).value).toMatchObject({ event: "ready" });
  const next = frames.next();
  it.clock.now += 86_399_999;
  for (const sweep of it.hub.sweepers) sweep(it.clock.now);
  await it.call("GET", "/ready"); // turns enough for an end to be seen
  expect(Bun.peek.status(next)).toBe("pending");
  it.clock.now += 1;
  for (const sweep of it.hub.sweepers) sweep(it.clock.now);
  expect((await next).done).toBe(true);
});

test("metrics have the exact names and types, in text", async () => {
  await using it = await openWorld();
  const zoe = await register(it, "zoe");
  await register(it, "bea");
  await send(it, zoe, "bea", "hi");
  const answer = await it.call("GET", "/metrics", { headers: asAdmin });
  expect(answer.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  const values = new Map([...(answer.body as string).matchAll(/^(kxm_\w+) (\d+)$/gm)].map(([, name, value]) => [name, Number(value)]));
  for (const name of COUNTERS)
    expect(answer.body).toContain(`# TYPE kxm_${name}_total counter\nkxm_${name}_total ${values.get(`kxm_${name}_total`)}\n`);
  for (const name of ["kxm_online_agents", "kxm_messages"]) expect(answer.body).toContain(`# TYPE ${name} gauge\n`);
  expect(values.get("kxm_online_agents")).toBe(2);
  expect(values.get("kxm_messages")).toBe(1);
  expect(values.get("kxm_registrations_total")).toBe(2);
  expect(values.get("kxm_messages_sent_total")).toBe(1);
  expect(values.get("kxm_requests_total")).toBe(4);
});

test("metrics are the admin's, and open on a loopback hub without any token", async () => {
  await using locked = await openHubWorld({ adminTokenHash: sha256(ADMIN) });
  expect((await locked.call("GET", "/metrics")).status).toBe(401);
  await using open = await openHubWorld();
  expect((await open.call("GET", "/metrics")).status).toBe(200);
});

test("ready proves the writer and says why it does not write", async () => {
  await using it = await openWorld();
  expect(await it.call("GET", "/ready")).toMatchObject({ status: 200, body: { ok: true, storage: "sqlite" } });
  const broken = {
    ...it.hub.engine,
    health: async () => ({ ok: false, queued: 3, reason: "disk_full" as const, message: "The disk is full.", degradedSince: it.clock.now }),
  };
  Object.assign(it.hub, { engine: broken });
  expect(await it.call("GET", "/ready")).toMatchObject({
    status: 503,
    body: { ok: false, storage: "sqlite", reason: "disk_full", message: "The disk is full.", degradedSince: new Date(it.clock.now).toISOString() },
  });
  await using memory = await openHubWorld({ durable: false });
  expect((await memory.call("GET", "/ready")).body).toEqual({ ok: true, storage: "memory" });
});
