// The client of agents against a real hub behind a real socket: every call, and what it does when the line or the hub breaks.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { registerAgent } from "../../src/client/calls.ts";
import type { StreamEvent } from "../../src/client/events.ts";
import { type Connection, HubRefusal, HubUnreachable } from "../../src/client/http.ts";
import { type HubClient, hubClient } from "../../src/client/hub-client.ts";
import { sqliteWorld } from "../support/engines.ts";
import { type Fleet, openFleet, until } from "../support/fleet.ts";

let it: Fleet;
let server: ReturnType<Fleet["listen"]>;
let to: Connection;
const stop = { controller: new AbortController() };
const QUICK = { firstMs: 1, maxMs: 5 };

beforeEach(async () => {
  stop.controller = new AbortController();
  it = await openFleet(sqliteWorld);
  server = it.listen();
  to = { url: server.url };
});
afterEach(async () => {
  stop.controller.abort();
  await server.stop();
  await it[Symbol.asyncDispose]();
});

async function join(name: string, more: { model?: string } = {}): Promise<HubClient & { key: string }> {
  const { agent, agentKey } = await registerAgent(to, { name, project: "p", ...more });
  return { ...hubClient(to, { id: agent.id, key: agentKey }, { signal: stop.controller.signal, backoff: QUICK }), key: agentKey };
}
/** A connection whose requests go through `before`, which may fail or answer them itself. */
const through = (before: (request: Request) => Promise<Response | undefined>): Connection => ({
  ...to,
  fetch: async (request) => (await before(request)) ?? fetch(request),
});
const refused = (error: unknown) => (error instanceof HubRefusal ? error.code : (error as Error).name);

test("two agents see each other, ask, acknowledge, answer, list and leave", async () => {
  const [ada, bob] = [await join("ada"), await join("bob")];
  expect((await ada.agents()).map(({ name }) => name)).toEqual(["ada", "bob"]);
  expect((await ada.heartbeat()).presence).toBe("online");
  const { message, idempotent } = await ada.send({ target: "bob", content: "ready?", delivery: "steer", correlationId: "t" });
  expect([idempotent, message.delivery, message.idempotencyKey?.length]).toEqual([false, "steer", 41]);
  const ended = ada.ended(message.id);
  expect((await bob.inbox()).messages.map(({ id }) => id)).toEqual([message.id]);
  expect((await bob.acknowledge(message.id)).status).toBe("delivered");
  expect((await bob.acknowledge(message.id, "turn")).turnStartedAt).toBeString();
  await bob.reply(message.id, " yes ");
  expect((await ended).reply?.content).toBe("yes");
  const second = (await ada.send({ target: bob.id, content: "and now?" })).message;
  expect((await ada.cancel(second.id)).status).toBe("cancelled");
  expect((await ada.list({ box: "sent", status: "cancelled" })).messages.map(({ id }) => id)).toEqual([second.id]);
  expect((await ada.get(second.id)).error).toContain("cancelled");
  await bob.signOff();
  expect((await ada.agents({ includeOffline: true })).map(({ presence }) => presence)).toEqual(["online", "offline"]);
});

test("a restarted program is the same agent with the key it kept; a wrong key is refused", async () => {
  const ada = await join("ada");
  const again = hubClient(to, { id: ada.id, key: ada.key });
  expect((await again.heartbeat()).id).toBe(ada.id);
  await expect(hubClient(to, { id: ada.id, key: "kxa_wrong" }).heartbeat()).rejects.toThrow("do not name a known agent");
  expect(await registerAgent(to, { name: "ada", project: "p" }).catch(refused)).toBe("duplicate_agent_name");
});

test("a send whose answer is lost is sent again under the same key, and counts once", async () => {
  const [ada, bob] = [await join("ada"), await join("bob")];
  let lost = 0;
  const flaky = through(async (request) => {
    if (request.method !== "POST" || lost >= 3) return;
    lost++;
    if (lost === 2)
      return new Response(JSON.stringify({ error: "x", code: "storage_unavailable" }), { status: 503, headers: { "retry-after": "0" } });
    await fetch(request); // the hub did it, the answer never arrived
    throw new TypeError("the line broke");
  });
  const shaky = hubClient(flaky, { id: ada.id, key: ada.key }, { backoff: QUICK });
  const { message, idempotent } = await shaky.send({ target: "bob", content: "once" });
  expect([lost, idempotent]).toEqual([3, true]);
  expect((await bob.inbox()).messages.map(({ id }) => id)).toEqual([message.id]);
  lost = 0;
  const replies = hubClient(flaky, { id: bob.id, key: bob.key }, { backoff: QUICK });
  expect((await replies.reply(message.id, "done")).reply?.content).toBe("done");
  expect(await replies.reply(message.id, "something else").catch(refused)).toBe("duplicate_reply");
});

test("a refusal is not tried again, and no answer at all is given up in the end", async () => {
  const ada = await join("ada");
  let asked = 0;
  const counting = hubClient(
    through(async () => void asked++),
    { id: ada.id, key: ada.key },
    { backoff: QUICK },
  );
  expect(await counting.send({ target: "nobody", content: "x" }).catch(refused)).toBe("target_not_found");
  expect(asked).toBe(1);
  const dead = through(async () => {
    asked++;
    throw new TypeError("the line broke");
  });
  asked = 0;
  expect(
    await hubClient(dead, { id: ada.id, key: ada.key }, { backoff: QUICK })
      .send({ target: "x", content: "x" })
      .catch((e) => e),
  ).toBeInstanceOf(HubUnreachable);
  expect(asked).toBe(5);
});

test("waiting for the end stops when its time is up", async () => {
  const [ada, bob] = [await join("ada"), await join("bob")];
  const { message } = await ada.send({ target: bob.id, content: "?" });
  expect((await ada.ended(message.id, { forMs: 30 })).status).toBe("queued");
});

test("events come typed and with a cursor, and go on after a break from where they were", async () => {
  const [ada, bob] = [await join("ada"), await join("bob")];
  const heard: StreamEvent[] = [];
  const following = (async () => {
    for await (const event of bob.events()) heard.push(event);
  })();
  const names = () => heard.map(({ event }) => event).join();
  await until(() => names() === "ready");
  const first = (await ada.send({ target: "bob", content: "1" })).message;
  await until(() => names() === "ready,message");
  const port = server.port;
  await server.stop();
  await it.call({ id: ada.id, key: ada.key }, "POST", "/v1/messages", { target: "bob", content: "2" });
  server = it.listen({ port });
  await until(() => names() === "ready,message,ready,message");
  const messages = heard.flatMap((one) => (one.event === "message" ? one : []));
  expect(messages.map(({ message }) => message.content)).toEqual(["1", "2"]);
  expect(messages[0]!.message.id).toBe(first.id);
  expect(messages.every(({ cursor }) => cursor?.startsWith("gen_"))).toBe(true);
  await bob.reply(first.id, "ok");
  await until(() => it.hub.streams.size === 1);
  stop.controller.abort();
  await following;
  await until(() => it.hub.streams.size === 0, "the end of the stream");
});

test("a kept cursor resumes; one the hub cannot use is told as a reset", async () => {
  const [ada, bob] = [await join("ada"), await join("bob")];
  await ada.send({ target: "bob", content: "waits" });
  const upTo = async (from: string | undefined, count: number) => {
    const events: StreamEvent[] = [];
    for await (const event of bob.events(from === undefined ? {} : { from })) if (events.push(event) === count) break;
    return events;
  };
  const first = await upTo(undefined, 2);
  expect(first.map(({ event }) => event)).toEqual(["ready", "message"]);
  await ada.send({ target: "bob", content: "later" });
  const second = await upTo(first[1]!.cursor, 2);
  expect(second.map((one) => (one.event === "message" ? one.message.content : one.event))).toEqual(["ready", "later"]);
  const third = await upTo("nonsense", 3);
  expect(third.slice(0, 2).map((one) => (one.event === "reset" ? one.reason : one.event))).toEqual(["ready", "unreadable"]);
});

test("the cursor of a heartbeat is kept, too", async () => {
  const ada = await join("ada");
  const seen: (string | null)[] = [];
  const id = `${it.world.engine.generation}.0`;
  const quiet = through(async (request) => {
    seen.push(request.headers.get("last-event-id"));
    if (seen.length > 2) return new Response(JSON.stringify({ error: "no", code: "invalid_agent_identity" }), { status: 401 });
    return new Response(`: heartbeat\nid: ${id}\n\n`, { headers: { "content-type": "text/event-stream" } });
  });
  const events = hubClient(quiet, { id: ada.id, key: ada.key }, { backoff: QUICK }).events();
  expect(await events.next().catch(refused)).toBe("invalid_agent_identity");
  expect(seen).toEqual([null, id, id]);
});

test("a stream that the hub will not serve ends with its refusal instead of asking for ever", async () => {
  const ada = await join("ada");
  const client = hubClient(to, { id: ada.id, key: "kxa_wrong" }, { backoff: QUICK });
  expect(await client.events().next().catch(refused)).toBe("invalid_agent_identity");
  const presence = hubClient(to, { id: ada.id, key: ada.key }, { backoff: QUICK }).events({ presenceOnly: true });
  expect(await presence.next().catch(refused)).toBe("presence_stream_forbidden");
  const tui = await join("tui", { model: "tui" });
  const watching = tui.events({ presenceOnly: true });
  expect((await watching.next()).value).toMatchObject({ event: "ready" });
  await join("newcomer");
  expect((await watching.next()).value).toMatchObject({ event: "presence", agent: { name: "newcomer" } });
  await watching.return();
});
