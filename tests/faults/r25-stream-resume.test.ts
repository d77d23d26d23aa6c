// R25. Streams that break at random places and come back by their cursor: each event once and in order, or `reset` and the whole mailbox; never silence.
// First against the log as an oracle, with retention and restores in between; then against a hub process that is killed.
import { expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { createServer } from "node:net";
import { ask } from "../../src/client/http.ts";
import { backUp } from "../../src/db/backup.ts";
import { restore } from "../../src/db/restore.ts";
import type { EventRow } from "../../src/db/schema.ts";
import { newId } from "../../src/protocol/ids.ts";
import { range, sqliteWorld } from "../support/engines.ts";
import { type Fleet, type HubSeat, openFleet, type Registered, until } from "../support/fleet.ts";
import { openPlace } from "../support/program.ts";
import { openStream, readStream, type Seen } from "../support/stream.ts";

const FULL = process.env["KXM_FAULTS"] === "full";

/** Numbers between 0 and 1 from a seed that a failure prints. */
function randomFrom(seed: number) {
  return () => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed / 2_147_483_647;
  };
}

/** What breaks the promise to a stream, in words. `seen` is one connection's frames; `log` holds every event of its project. */
function breaches(seen: readonly Seen[], from: { seq: number } | "reset" | "new", log: readonly EventRow[], me: string): string[] {
  const [ready, ...rest] = seen;
  if (!ready) return [];
  if (ready.event !== "ready") return [`the first frame was ${ready.event}`];
  if (from === "reset" && rest[0] && rest[0].event !== "reset") return [`a cursor of no use was answered with ${rest[0].event}`];
  if (from !== "reset" && rest.some(({ event }) => event === "reset")) return ["a good cursor was reset"];
  const frames = rest.filter(({ event }) => event !== "reset");
  const expected = log.filter(
    ({ topic, type, subjectId, data, seq }) =>
      (typeof from === "string" || seq > from.seq) &&
      ((topic === "messages" && type === "queued" && data["recipientId"] === me) ||
        (topic === "agents" && subjectId !== me && typeof from !== "string")),
  );
  // A new or reset stream starts with the mailbox; comings and goings of before are not told again.
  const heard = typeof from === "string" ? frames.filter(({ event }) => event === "message") : frames;
  return heard.flatMap((frame, index) => {
    const subject = frame.data.message?.id ?? frame.data.agent?.id;
    const due = expected[index];
    return due?.subjectId === subject ? [] : [`frame ${index} was about ${subject}, not ${due?.subjectId} (event ${due?.seq})`];
  });
}

test("random drops with retention, restores and hostile cursors: every connection gets exactly what it must", async () => {
  const [seed, rounds] = [FULL ? Date.now() % 1_000_000 : 4_711, FULL ? 500 : 120];
  const random = randomFrom(seed + 1);
  const [chance, upTo] = [(share: number) => random() < share, (n: number) => Math.floor(random() * (n + 1))];
  await using it: Fleet = await openFleet(sqliteWorld);
  const [me, ada, eve] = [await it.register("me"), await it.register("ada"), await it.register("eve")];
  let seat: HubSeat = it;
  let cursor = "";
  const old: string[] = ["garbage", `${newId("gen")}.1`, "x".repeat(65_536)];
  const counts = { resumed: 0, reset: 0, fresh: 0, pruned: 0, restored: 0 };
  const engine = () => it.world.engine;
  const post = (n: number) =>
    Promise.all(range(n).map(() => seat.call(ada, "POST", "/v1/messages", { target: "me", content: "x", allowOffline: true })));
  const lastSeq = () => engine().read.events.lastSeq("p");

  for (const round of range(rounds)) {
    await post(upTo(6));
    if (chance(0.3)) await seat.call(eve, "DELETE", `/v1/agents/${eve.id}`);
    if (chance(0.3)) await seat.call(eve, "GET", "/v1/agents");
    if (chance(0.05)) {
      const kept = upTo(10); // so few that the cursor of this round may be cut off
      const old = (await lastSeq()) - ((await engine().read.events.oldest("p"))?.seq ?? 0) - kept;
      await engine().write("p", (tx) => tx.events.prune("p", it.clock.now + 1, Math.max(1, old)));
      counts.pruned++;
    }
    if (round % 40 === 39) {
      seat = await restoreOlder(it, post);
      counts.restored++;
    }
    const lastEventId = chance(0.15) ? old[upTo(old.length - 1)]! : chance(0.1) ? "" : cursor;
    const from = await placeOf(lastEventId);
    counts[typeof from === "object" ? "resumed" : from === "reset" ? "reset" : "fresh"]++;
    const client = await openStream(seat, me, { lastEventId });
    const seen: Seen[] = [];
    const wanted = upTo(12);
    const late = chance(0.5) ? post(upTo(8)) : Promise.resolve([]);
    while (seen.length < wanted && client.seen.length + (await pending(from, seen)) > 0) seen.push((await client.next())!);
    await late;
    const log = await engine().read.events.after("p", 0, 1_000_000);
    const wrong = breaches(seen, from, await whole(log), me.id);
    if (wrong.length > 0) throw new Error(`seed ${seed}, round ${round}, from ${JSON.stringify(from)}: ${wrong.join("; ")}`);
    const cursors = seen.map(({ lastEventId: at }) => at).filter((at) => at !== "");
    for (const [index, at] of cursors.entries()) if (index > 0) expect(seqOf(at)).toBeGreaterThanOrEqual(seqOf(cursors[index - 1]!));
    cursor = cursors.at(-1) ?? (from === "new" || from === "reset" ? "" : cursor);
    old.push(cursor);
    await client.close();
    if (chance(0.4)) await acknowledgeAll();
  }
  expect(counts.resumed).toBeGreaterThan(rounds / 4);
  expect(Math.min(counts.reset, counts.fresh, counts.pruned, counts.restored)).toBeGreaterThan(0);

  /** Deals with what waits, so that mailboxes are short at times. */
  async function acknowledgeAll() {
    for (const { id } of await engine().read.messages.inbox(me.id, 0, 100_000)) await seat.call(me, "POST", `/v1/messages/${id}/ack`, {});
  }
  /** What the hub must make of a cursor, by the store alone. */
  async function placeOf(text: string): Promise<{ seq: number } | "reset" | "new"> {
    if (text === "") return "new";
    const [generation, seq] = text.split(".");
    const oldest = (await engine().read.events.oldest("p"))?.seq ?? 0;
    const usable = generation === engine().generation && Number(seq) <= (await lastSeq()) && oldest <= Number(seq) + 1;
    return usable ? { seq: Number(seq) } : "reset";
  }
  /** How many frames must still come without anything else happening: then it is safe to wait for one. */
  async function pending(from: { seq: number } | "reset" | "new", seen: readonly Seen[]): Promise<number> {
    const log = await whole(await engine().read.events.after("p", 0, 1_000_000));
    const frames = breachFree(from, log) + 1 + (from === "reset" ? 1 : 0);
    return frames - seen.length;
  }
  function breachFree(from: { seq: number } | "reset" | "new", log: readonly EventRow[]): number {
    return log.filter(({ topic, type, subjectId, data, seq }) =>
      typeof from === "string"
        ? topic === "messages" && type === "queued" && data["recipientId"] === me.id
        : seq > from.seq &&
          ((topic === "agents" && subjectId !== me.id) || (topic === "messages" && type === "queued" && data["recipientId"] === me.id)),
    ).length;
  }
  /** The retained log as a stream must tell it: without requests that were dealt with, and with those whose event retention took. */
  async function whole(log: readonly EventRow[]): Promise<EventRow[]> {
    const queued = (await engine().read.messages.inbox(me.id, 0, 100_000)).filter(({ status }) => status === "queued").map(({ id }) => id);
    const [still, known] = [new Set(queued), new Set(log.filter(({ type }) => type === "queued").map(({ subjectId }) => subjectId))];
    const data = { recipientId: me.id };
    const lost = queued.filter((id) => !known.has(id));
    const made = lost.map((id) => ({ project: "p", seq: 0, at: 0, topic: "messages" as const, type: "queued", subjectId: id, actor: "", data }));
    return [...made, ...log.filter(({ type, subjectId }) => type !== "queued" || still.has(subjectId))];
  }
}, 300_000);

const seqOf = (cursor: string) => Number(cursor.split(".")[1]);

/** Backs the store up, lets it go on, and puts the backup in its place. @returns a hub over it */
async function restoreOlder(it: Fleet, post: (n: number) => Promise<unknown>): Promise<HubSeat> {
  const { location: path } = it.world;
  const backup = `${path}.backup-${newId("gen")}`;
  await backUp({ path, target: backup, now: it.clock.now });
  await post(5); // what the restored store will not know
  await it.world.engine.close();
  await restore({ backup, path, clock: () => it.clock.now, newId });
  await it.world.reopen();
  for (const file of [backup, `${backup}.json`]) rmSync(file);
  return it.another();
}

test("the check finds a frame that is missing, doubled, out of order, or a reset that was not said", () => {
  const log = range(4).map(
    (n) => ({ seq: n + 1, topic: "messages", type: "queued", subjectId: `msg_${n}`, data: { recipientId: "me" } }) as unknown as EventRow,
  );
  const frame = (n: number): Seen => ({ event: "message", data: { message: { id: `msg_${n}` } }, lastEventId: `g.${n + 1}` });
  const ready: Seen = { event: "ready", data: {}, lastEventId: "" };
  const reset: Seen = { event: "reset", data: {}, lastEventId: "" };
  const check = (from: { seq: number } | "reset" | "new", ...seen: Seen[]) => breaches(seen, from, log, "me").length;
  expect([check({ seq: 1 }, ready, frame(1), frame(2)), check("reset", ready, reset, frame(0)), check("new", ready, frame(0), frame(1))]).toEqual([
    0, 0, 0,
  ]);
  expect(check({ seq: 1 }, ready, frame(2))).toBe(1);
  expect(check({ seq: 1 }, ready, frame(1), frame(1))).toBe(1);
  expect(check({ seq: 1 }, ready, frame(2), frame(1))).toBe(2);
  expect(check("reset", ready, frame(0))).toBe(1);
  expect(check({ seq: 1 }, ready, reset, frame(0))).toBe(1);
});

test(`a hub that is killed ${FULL ? 25 : 3} times under drops: every acknowledged message arrives once and in order`, async () => {
  const kills = FULL ? 25 : 3;
  await using place = await openPlace();
  const env = { KXM_PORT: String(await freePort()) };
  let hub = await place.startHub({ env });
  const to = { url: hub.url };
  const join = async (name: string): Promise<Registered> => {
    const { agent, agentKey } = (await ask(to, "POST", "/v1/agents/register", { body: { name, project: "p" } })).body;
    return { id: agent.id, key: agentKey, name };
  };
  const [ada, bob] = [await join("ada"), await join("bob")];
  const sent: string[] = [];
  let [sending, reading] = [true, true];
  const headers = { "x-kxm-agent-id": ada.id, "x-kxm-agent-key": ada.key };
  const sender = (async () => {
    for (let n = 0; sending; n++) {
      const body = { target: "bob", content: `${n}`, allowOffline: true, idempotencyKey: `${n}` };
      for (let answered = false; !answered; ) {
        const answer = await ask(to, "POST", "/v1/messages", { body, headers }).catch(() => undefined);
        if (answer) sent.push(answer.body.message.id);
        answered = answer !== undefined;
      }
    }
  })();
  const received: { id: string; cursor: string }[] = [];
  const random = randomFrom(99);
  let [drops, resets, cursor] = [0, 0, ""];
  const receiver = (async () => {
    while (reading) {
      const abort = new AbortController();
      const mine = { "x-kxm-agent-key": bob.key, ...(cursor !== "" && { "last-event-id": cursor }) } as Record<string, string>;
      const response = await fetch(`${to.url}/v1/events?agentId=${bob.id}`, { headers: mine, signal: abort.signal }).catch(() => undefined);
      if (!response) continue;
      await using client = readStream(response, abort);
      for (let frames = 1 + Math.floor(random() * 40); frames > 0 && reading; frames--) {
        const one = await client.next().catch(() => undefined); // undefined: the hub is gone, or nothing came for a while
        if (!one) break;
        if (one.event === "reset") resets++;
        if (one.event === "message") received.push({ id: one.data.message.id, cursor: one.lastEventId });
        cursor = one.lastEventId || cursor;
      }
      drops++;
    }
  })();
  for (const kill of range(kills)) {
    const goal = sent.length + 100;
    await until(() => sent.length >= goal && received.length >= goal / 2, `the traffic before kill ${kill}`, 30_000);
    await hub.end("SIGKILL");
    hub = await place.startHub({ env });
  }
  sending = false;
  await sender;
  await until(() => received.length >= sent.length, "the last messages", 30_000);
  reading = false;
  await ask(to, "POST", "/v1/messages", { body: { target: "bob", content: "wakes the reader" }, headers });
  await receiver;
  expect(received.slice(0, sent.length).map(({ id }) => id)).toEqual(sent);
  const seqs = received.map(({ cursor: at }) => seqOf(at));
  expect(seqs).toEqual([...new Set(seqs)].sort((a, b) => a - b));
  expect([resets, drops > kills]).toEqual([0, true]);
}, 300_000);

async function freePort(): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>();
  const server = createServer().listen(0, "127.0.0.1", () => {
    const { port } = server.address() as { port: number };
    server.close(() => resolve(port));
  });
  return promise;
}
