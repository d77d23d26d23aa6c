// A connected agent: seen while its program runs, the same one after the hub came back, registered again when the hub has lost everything.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { type ConnectedHub, type ConnectOptions, connectHub } from "../../src/client/connect.ts";
import type { StreamEvent } from "../../src/client/events.ts";
import { HubRefusal } from "../../src/client/http.ts";
import { sqliteWorld } from "../support/engines.ts";
import { type Fleet, openFleet, until } from "../support/fleet.ts";

let it: Fleet;
let server: ReturnType<Fleet["listen"]>;
let connected: ConnectedHub[];
const QUICK = { backoff: { firstMs: 1, maxMs: 5 } };

beforeEach(async () => {
  connected = [];
  it = await openFleet(sqliteWorld);
  server = it.listen();
});
afterEach(async () => {
  await Promise.all(connected.map((hub) => hub.close()));
  await server.stop();
  await it[Symbol.asyncDispose]();
});

async function connect(name: string, more: Partial<ConnectOptions> = {}): Promise<ConnectedHub> {
  const hub = await connectHub({ url: server.url, name, project: "p", ...QUICK, ...more });
  connected.push(hub);
  return hub;
}
const refused = (error: unknown) => (error instanceof HubRefusal ? error.code : (error as Error).name);
/** The hub loses everything: another empty store behind the same address. */
async function loseState() {
  const { port } = server;
  await server.stop();
  await it[Symbol.asyncDispose]();
  it = await openFleet(sqliteWorld);
  server = it.listen({ port });
}

test("an agent is online while it is connected, gives its leases back at the end and is gone", async () => {
  const [ada, bob] = [await connect("ada", { heartbeatMs: 5 }), await connect("bob")];
  const seen = (await bob.agents())[0]!.lastSeenAt;
  it.clock.now += 20_000;
  await until(async () => (await bob.agents())[0]!.lastSeenAt > seen, "a sign of life");
  await ada.leases.hold("deploy");
  await ada.close();
  expect((await bob.agents({ includeOffline: true })).map(({ name, presence }) => `${name} ${presence}`)).toEqual(["ada offline", "bob online"]);
  expect(await bob.leases.get("deploy").catch(refused)).toBe("lease_not_found");
});

test("a name in use is refused; with the identity of last time it is the same agent", async () => {
  const kept: { id: string; key: string }[] = [];
  const ada = await connect("ada", { onIdentity: (identity) => void kept.push(identity) });
  expect(await connect("ada").catch(refused)).toBe("duplicate_agent_name");
  const again = await connect("ada", { identity: kept[0]! });
  expect([again.id, kept.length]).toEqual([ada.id, 1]);
  const other = await connect("new", { identity: { id: ada.id, key: "kxa_wrong" } });
  expect(other.id).not.toBe(ada.id);
});

test("after the hub lost its state the agent is registered again, once, and its calls go on", async () => {
  const kept: string[] = [];
  const ada = await connect("ada", { onIdentity: ({ id }) => void kept.push(id) });
  const first = ada.id;
  await loseState();
  const bob = await connect("bob");
  const answers = await Promise.all([ada.send({ target: "bob", content: "1" }), ada.agents(), ada.heartbeat()]);
  expect([answers[0].message.status, kept.length, kept[1] === ada.id, ada.id === first]).toEqual(["queued", 2, true, false]);
  expect((await bob.inbox()).messages.map(({ fromName, content }) => `${fromName}: ${content}`)).toEqual(["ada: 1"]);
});

test("its stream says that something may have been missed, and goes on as the new agent", async () => {
  const ada = await connect("ada");
  const heard: StreamEvent[] = [];
  const end = new AbortController();
  const following = (async () => {
    for await (const event of ada.events({ signal: end.signal })) heard.push(event);
  })();
  await until(() => heard.length === 1 && it.hub.streams.size === 1, "the stream");
  await loseState();
  const bob = await connect("bob");
  await until(() => it.hub.streams.size === 1, "the stream again");
  await bob.send({ target: "ada", content: "after" });
  await until(() => heard.some((one) => one.event === "message"), "the message");
  const resets = heard.flatMap((one) => (one.event === "reset" ? one.reason : []));
  expect(resets).toEqual(["other_generation"]);
  end.abort();
  await following;
});

test("somebody else's key is never taken over by registering again", async () => {
  const ada = await connect("ada");
  await it.hub.engine.write("p", async (tx) => tx.agents.resume({ ...(await tx.agents.find(ada.id))!, keyHash: "somebody-else" }));
  expect(await ada.send({ target: "x", content: "x" }).catch(refused)).toBe("duplicate_agent_name");
});

test("the caller's signal ends it; heartbeats that fail are told and tried again", async () => {
  const troubles: string[] = [];
  const own = new AbortController();
  let away = true;
  const ada = await connect("ada", {
    heartbeatMs: 5,
    signal: own.signal,
    onTrouble: ({ name }) => void troubles.push(name),
    fetch: async (request) => {
      if (away && request.url.endsWith("/heartbeat")) throw new TypeError("the line broke");
      return fetch(request);
    },
  });
  await until(() => troubles.length >= 2, "troubles");
  expect(troubles[0]).toBe("HubUnreachable");
  away = false;
  const bob = await connect("bob");
  own.abort();
  await until(async () => (await bob.agents({ includeOffline: true }))[0]!.presence === "offline", "the end");
  expect(await ada.agents().catch(refused)).toBe("AbortError");
});

test("a stream that went silent is opened again", async () => {
  let opened = 0;
  const ada = await connect("ada", {
    silenceMs: 30,
    fetch: async (request) => {
      if (!request.url.includes("/v1/events")) return fetch(request);
      opened++;
      const { signal } = request;
      const body = new ReadableStream({ start: (controller) => signal.addEventListener("abort", () => controller.error(signal.reason)) });
      return new Response(body, { headers: { "content-type": "text/event-stream" } });
    },
  });
  const end = new AbortController();
  const following = ada.events({ signal: end.signal }).next();
  await until(() => opened >= 3, "another connection");
  end.abort();
  await following;
});

test("one call asks several agents, waits, and names who refused; asking again finds the same messages", async () => {
  const [ada, bob] = [await connect("ada"), await connect("bob")];
  await connect("cid");
  const request = { targets: ["bob", "cid", "nobody"], content: "ready?", idempotencyKeyPrefix: "round-1", correlationId: "c" };
  const waiting = ada.fanout(request, { forMs: 50 });
  await until(async () => (await bob.inbox()).messages.length === 1, "the request");
  const { id } = (await bob.inbox()).messages[0]!;
  await bob.reply(id, "yes");
  const first = await waiting;
  expect(first.map(({ message, refusal }) => message?.status ?? refusal!.code)).toEqual(["replied", "queued", "target_not_found"]);
  const second = await ada.fanout(request, { forMs: 0 });
  expect(second.map(({ message }) => message?.id)).toEqual(first.map(({ message }) => message?.id));
  expect(await ada.fanout({ targets: ["a", "b", "c", "d"], content: "x" }).catch(refused)).toBe("RangeError");
});

test("asking waits for the reply, and context and search are about the agent's own project", async () => {
  const [ada, bob] = [await connect("ada"), await connect("bob")];
  const asked = ada.ask({ target: "bob", content: "which port?" }, { forMs: 20_000 });
  for await (const event of bob.events())
    if (event.event === "message") {
      await bob.reply(event.message.id, "7331");
      break;
    }
  expect((await asked).reply?.content).toBe("7331");
  const proposed = await ada.context.propose({ key: "port", summary: "7331", authority: "evidence", confidence: "verified", evidenceRefs: ["c1"] });
  expect(proposed).toStartWith("ctx_");
  expect(await ada.context.state("port")).toBeUndefined();
  expect((await ada.context.recall({ query: "7331" })).items).toHaveLength(1);
  expect((await ada.context.get({ role: "planner", task: "x" })).packet.currentState).toEqual([]);
  expect((await ada.context.explain(proposed)).found).toBe(true);
  expect([await ada.context.episodes(), await ada.workflows.list(), (await ada.workflows.improvements()).signals]).toEqual([[], [], []]);
  expect((await ada.search("kind:agent bob")).hits.length).toBeGreaterThanOrEqual(0);
  expect(await ada.workflows.get("run_none").catch(refused)).toBe("workflow_not_found");
});
