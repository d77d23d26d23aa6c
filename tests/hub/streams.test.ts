// Streams and feeds below the API: a feed that is behind, one that is lost, and a client that goes at a bad moment.
import { afterEach, beforeEach, expect, test } from "bun:test";
import type { AgentRow, EventRow } from "../../src/db/schema.ts";
import * as agents from "../../src/hub/agents.ts";
import type { Sink } from "../../src/hub/channel.ts";
import { createFeeds, type Feeds, type Listener } from "../../src/hub/feed.ts";
import type { Frame } from "../../src/hub/frames.ts";
import { createStreams } from "../../src/hub/streams.ts";
import { range, sqliteWorld } from "../support/engines.ts";
import { type Fleet, openFleet, until } from "../support/fleet.ts";

let it: Fleet;
let [me, ada]: AgentRow[] = [] as unknown as [AgentRow, AgentRow];
beforeEach(async () => {
  it = await openFleet(sqliteWorld);
  [me, ada] = [await it.agent("me"), await it.agent("ada")];
});
afterEach(() => it[Symbol.asyncDispose]());

/** A client that takes `room` frames before it stops reading. */
function client(room = Number.POSITIVE_INFINITY) {
  const gone = new AbortController();
  const frames: Frame[] = [];
  const sink: Sink = {
    cursor: undefined,
    signal: gone.signal,
    send: (frame) => !gone.signal.aborted && frames.push(frame) > 0,
    drained: async () => {
      if (frames.length < room || gone.signal.aborted) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      gone.signal.addEventListener("abort", () => resolve());
      await promise;
    },
  };
  return { sink, frames, leave: () => gone.abort() };
}
const post = async (content: string) => (await it.call(ada, "POST", "/v1/messages", { target: "me", content })).body.message.id as string;
const log = () => it.world.engine.read.events.after("p", 0, 1_000);
const contents = (frames: Frame[]) => frames.filter(({ event }) => event === "message").map(({ data }) => JSON.parse(data).message.content);
const serve = (streams: ReturnType<typeof createStreams>, sink: Sink, lastEventId: string | null = null) =>
  streams.serve({ agent: me!, presenceOnly: false, lastEventId }, sink);

/** A feed that stands where the test puts it, as one does at a hub that hears of another's commits late. */
function heldFeed(position: number) {
  let listener: Listener | undefined;
  let left = false;
  const feeds: Feeds = {
    size: 1,
    async join(_project, joined) {
      listener = joined;
      return { position, leave: () => void (left = true) };
    },
  };
  return { feeds, deliver: async (event: EventRow) => listener!.event(event), lose: () => listener!.lost(new Error("gone")), isLeft: () => left };
}

test("a stream that is ahead of its hub's feed is not told again what the feed tells late", async () => {
  for (const n of range(4)) await post(`${n}`);
  const events = await log();
  const feed = heldFeed(1); // the log has four
  const streams = createStreams({ ...it.hub, feeds: feed.feeds });
  const [fresh, resumed] = [client(), client()];
  void serve(streams, fresh.sink);
  void serve(streams, resumed.sink, `${it.world.engine.generation}.3`);
  await until(() => fresh.sink.cursor !== undefined && resumed.sink.cursor !== undefined, "both streams");
  expect([contents(fresh.frames), contents(resumed.frames)]).toEqual([["0", "1", "2", "3"], []]);
  expect(resumed.sink.cursor!()).toEndWith(".3"); // not back to where the feed stands
  for (const event of events.slice(1)) await feed.deliver(event);
  expect([contents(fresh.frames), contents(resumed.frames)]).toEqual([["0", "1", "2", "3"], ["3"]]);
  fresh.leave();
  resumed.leave();
  await until(() => feed.isLeft(), "the end of the channel");
});

test("a lost feed ends every stream on it, also one that is still catching up, and the next stream gets a new one", async () => {
  const feed = heldFeed(0);
  const streams = createStreams({ ...it.hub, feeds: feed.feeds });
  const [live, slow] = [client(), client(1)];
  await post("waits");
  const [first, second] = [serve(streams, live.sink), serve(streams, slow.sink)];
  await until(() => live.sink.cursor !== undefined, "the live stream");
  feed.lose();
  await first;
  expect(it.logged.map(({ event, streams: count }) => [event, count])).toContainEqual(["feed_lost", 2]);
  slow.leave();
  await second;
  expect(streams.size).toBe(0);
  const next = client();
  const third = serve(streams, next.sink);
  await until(() => next.sink.cursor !== undefined, "a new channel");
  next.leave();
  await third;
});

test("a client that does not read holds its own replay back and nobody else's", async () => {
  for (const n of range(60)) await post(`${n}`);
  const [slow, quick] = [client(5), client()];
  const streams = createStreams(it.hub);
  const [one, two] = [serve(streams, slow.sink), serve(streams, quick.sink)];
  await until(() => contents(quick.frames).length === 60, "the quick client");
  expect(slow.frames.length).toBeLessThan(30); // a page, not the mailbox
  slow.leave();
  quick.leave();
  await Promise.all([one, two]);
  await until(() => it.hub.feeds.size === 0, "the end of following");
});

test("a stream ends that caught up for an agent with another key by now, or for one that signed off meanwhile", async () => {
  const streams = createStreams(it.hub);
  const neverLive = async (agent: AgentRow) => {
    const { sink } = client();
    await streams.serve({ agent, presenceOnly: false, lastEventId: null }, sink);
    expect(sink.cursor).toBeUndefined();
  };
  await neverLive({ ...me!, keyHash: "of the key before" });
  await it.world.engine.write("p", (tx) => agents.signOff(tx, me!.id));
  await neverLive(me!);
});

test("a stream ends when retention took what it still had to read, so that its client learns of the gap", async () => {
  for (const n of range(4)) await post(`${n}`);
  const resumed = client();
  const drained = async () => {
    await it.world.engine.write("p", (tx) => tx.events.prune("p", Number.MAX_SAFE_INTEGER, 1_000));
  };
  const sink = { ...resumed.sink, drained };
  await serve(createStreams(it.hub), sink, `${it.world.engine.generation}.1`);
  expect(sink.cursor).toBeUndefined();
  expect(contents(resumed.frames).length).toBeGreaterThan(0);
});

test("one follower serves all listeners of a project; each gets what comes after its position, in order; the last to leave ends it", async () => {
  const feeds = createFeeds(it.world.engine);
  await post("before");
  const heard: number[][] = [];
  const joined = await Promise.all(range(20).map((n) => feeds.join("p", { event: ({ seq }) => void (heard[n] ??= []).push(seq), lost: () => {} })));
  expect(feeds.size).toBe(1);
  const { position } = joined[0]!;
  const about: string[] = [];
  const id = await post("first");
  const one = await feeds.join("p", { event: ({ type }) => void about.push(type), lost: () => {} }, id);
  await post("second");
  await it.call(me, "POST", `/v1/messages/${id}/ack`, {});
  await until(() => about.length === 1, "the acknowledgement");
  expect(about).toEqual(["delivered"]);
  await until(() => heard.every(({ length }) => length === 3), "all listeners");
  for (const seqs of heard) expect(seqs).toEqual(range(3).map((n) => position + 1 + n));
  for (const { leave } of joined) leave();
  expect(feeds.size).toBe(1);
  one.leave();
  one.leave();
  expect(feeds.size).toBe(0);
});

test("a feed whose log is cut off tells its listeners", async () => {
  const feeds = createFeeds({
    ...it.world.engine,
    async *follow() {
      yield undefined;
      throw new Error("cut off");
    },
  });
  const { promise, resolve } = Promise.withResolvers<unknown>();
  await feeds.join("p", { event: () => {}, lost: resolve });
  expect(String(await promise)).toContain("cut off");
  expect(feeds.size).toBe(0);
});
