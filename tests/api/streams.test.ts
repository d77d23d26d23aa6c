// Agents' streams on both engines: framing, replay, live events, resuming, and how they end. In process; a real socket is in streams-socket.test.ts.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { expireMessages, purgeMessages } from "../../src/hub/message-sweep.ts";
import { sweepStale } from "../../src/hub/presence.ts";
import { revoke as revokeToken } from "../../src/hub/tokens.ts";
import { sha256 } from "../../src/protocol/canonical.ts";
import { CancelledFrame, ExpiredFrame, MessageFrame, PresenceFrame, ReadyFrame, ReplyFrame, ResetFrame } from "../../src/protocol/events.ts";
import { newId } from "../../src/protocol/ids.ts";
import { answersLike } from "../support/answers.ts";
import { range, WORLDS } from "../support/engines.ts";
import { type Fleet, type HubSeat, openFleet, type Registered, until } from "../support/fleet.ts";
import { openStream, readStream, type Seen, type StreamClient } from "../support/stream.ts";

const SCHEMAS: Record<string, any> = {
  ready: ReadyFrame,
  message: MessageFrame,
  reply: ReplyFrame,
  cancelled: CancelledFrame,
  expired: ExpiredFrame,
  presence: PresenceFrame,
  reset: ResetFrame,
};
const kinds = (seen: (Seen | undefined)[]) => seen.map((one) => one?.event);
const seqOf = (cursor: string) => Number(cursor.split(".")[1]);

describe.each(WORLDS)("%s streams", (kind, open) => {
  let it: Fleet;
  let [ada, bob]: Registered[] = [] as unknown as [Registered, Registered];
  let names = 0;
  const opened: StreamClient[] = [];
  beforeAll(async () => {
    it = await openFleet(open);
    [ada, bob] = [await it.register("Ada"), await it.register("Bob")];
  }, 30_000);
  afterEach(async () => {
    for (const client of opened.splice(0)) await client.close();
  });
  afterAll(() => it[Symbol.asyncDispose]());

  const fresh = (more = {}) => it.register(`agent-${++names}`, more);
  const stream = async (agent: Registered, options: Parameters<typeof openStream>[2] = {}, seat: HubSeat = it) => {
    const client = await openStream(seat, agent, options);
    opened.push(client);
    return client;
  };
  /** Opens a stream and waits until it is live: whatever happens afterwards comes by the feed. */
  const live = async (agent: Registered, options: Parameters<typeof openStream>[2] = {}, seat: HubSeat = it) => {
    const client = await stream(agent, options, seat);
    expect((await client.next())!.event).toBe("ready");
    return client;
  };
  const take = async (client: StreamClient, count: number) => {
    const seen: Seen[] = [];
    while (seen.length < count) seen.push((await client.next())!);
    return seen;
  };
  const post = async (to: Registered, content = "x", more = {}, from: Registered = ada!) => {
    const { status, body } = await it.call(from, "POST", "/v1/messages", { target: to.id, content, allowOffline: true, ...more });
    if (status !== 202) throw new Error(body.code);
    return body.message;
  };
  const on = (as: Registered, method: string, id: string, verb = "", body: unknown = method === "POST" ? {} : undefined) =>
    it.call(as, method, `/v1/messages/${id}${verb}`, body);
  const contents = (seen: Seen[]) => seen.map(({ data }) => data.message.content);
  const lastSeq = () => it.world.engine.read.events.lastSeq("p");

  describe("framing", () => {
    test("the answer is an event stream that no proxy keeps back, and ready comes first", async () => {
      const me = await fresh(); // with an empty mailbox: there is a place to resume from at once
      const client = await stream(me);
      expect(client.status).toBe(200);
      const headers = Object.fromEntries(client.headers);
      expect(headers).toMatchObject({
        "content-type": "text/event-stream",
        "cache-control": "no-cache, no-transform",
        connection: "keep-alive",
        "x-accel-buffering": "no",
        "x-content-type-options": "nosniff",
        "x-request-id": expect.any(String),
      });
      expect(headers).not.toHaveProperty("x-kxm-events-mode");
      const ready = (await client.next())!;
      expect(ready.event).toBe("ready");
      expect(ready.data).toMatchObject({ agent: { id: me.id, presence: "online" } });
      expect(ready.data).not.toHaveProperty("type");
      const [generation, seq] = ready.lastEventId.split(".");
      expect([generation, Number(seq) <= (await lastSeq())]).toEqual([it.world.engine.generation, true]);
    });

    test("every frame matches its schema, and its cursor is the number of its event", async () => {
      const me = await fresh();
      const client = await live(me);
      const [one, two, three] = [await post(me), await post(me), await post(me, "z", { ttlMs: 1_000 })];
      const seen = await take(client, 3); // a stream that comes to a message after its end does not hand it over any more
      await on(me, "POST", one.id, "/ack");
      await on(ada!, "DELETE", two.id);
      it.clock.now += 1_000;
      await expireMessages(it.hub);
      const mine = await post(ada!, "question", {}, me);
      await on(ada!, "POST", mine.id, "/reply", { content: "answer" });
      await fresh();
      seen.push(...(await take(client, 4)));
      expect(kinds(seen)).toEqual(["message", "message", "message", "cancelled", "expired", "reply", "presence"]);
      for (const { event, data } of seen) answersLike(SCHEMAS[event], data);
      for (const { data, event } of seen) expect(data.type).toBe(event);
      const log = new Map((await it.world.engine.read.events.after("p", 0, 10_000)).map(({ seq, subjectId }) => [seq, subjectId]));
      for (const { data, lastEventId } of seen) expect(log.get(seqOf(lastEventId))).toBe((data.message ?? data.agent).id);
      expect(seen.at(-2)!.data.message.reply.content).toBe("answer");
      expect(three.id).toBe(seen[4]!.data.message.id);
    });

    test("hostile text stays inside its frame", async () => {
      const me = await fresh();
      const client = await live(me);
      const content = "a\n\nevent: cancelled\ndata: {}\r\n\r\nid: 1\u2028\u2029 b";
      await post(me, content);
      const frame = (await client.next())!;
      expect([frame.event, frame.data.message.content]).toEqual(["message", content]);
      await fresh();
      expect((await client.next())!.event).toBe("presence");
    });
  });

  describe("replay", () => {
    test("holds every queued message oldest first, also one older than an acknowledged one, and no other", async () => {
      const me = await fresh();
      const sent = [];
      for (const n of range(6)) sent.push(await post(me, `${n}`));
      await on(me, "POST", sent[2].id, "/ack");
      await on(me, "POST", sent[3].id, "/reply", { content: "y" });
      await on(ada!, "DELETE", sent[4].id);
      const before = await lastSeq();
      const client = await stream(me);
      const seen = await take(client, 4);
      expect(kinds(seen)).toEqual(["ready", "message", "message", "message"]);
      expect(contents(seen.slice(1))).toEqual(["0", "1", "5"]);
      const cursors = seen.map(({ lastEventId }) => lastEventId);
      expect(cursors.slice(0, 3)).toEqual(["", "", ""]); // only the last frame moves the cursor
      expect(seqOf(cursors[3]!)).toBeGreaterThanOrEqual(before);
    });

    test("leaves out a message whose time is over, which expires", async () => {
      const me = await fresh();
      const [late, good] = [await post(me, "late", { ttlMs: 1_000 }), await post(me, "good")];
      it.clock.now += 1_000;
      const client = await stream(me);
      const seen = await take(client, 3);
      expect(kinds(seen)).toEqual(["ready", "message", "expired"]);
      expect([seen[1]!.data.message.id, seen[2]!.data.message.id]).toEqual([good.id, late.id]);
    });

    test("of a full mailbox comes page by page, whole, with whatever is queued meanwhile, each once", async () => {
      const me = await fresh();
      const big = "x".repeat(20_000);
      await Promise.all(range(150).map((n) => post(me, `${n}:${big}`)));
      const client = await stream(me);
      const more = Promise.all(range(60).map((n) => post(me, `${150 + n}:`)));
      const seen = await take(client, 211);
      await more;
      expect(kinds(seen.slice(1)).every((event) => event === "message")).toBe(true);
      const order = seen.slice(1).map(({ data }) => data.message.seq);
      expect(order).toEqual(range(210).map((n) => n + 1));
    }, 20_000);
  });

  describe("live", () => {
    test("several streams of an agent each get every event; others get none of it", async () => {
      const me = await fresh();
      const streams = await Promise.all(range(3).map(() => live(me)));
      const other = await live(await fresh());
      await post(me, "for all three");
      for (const client of streams) {
        let heard = (await client.next())!;
        while (heard.event === "presence") heard = (await client.next())!;
        expect(contents([heard])).toEqual(["for all three"]);
      }
      const late = await fresh();
      for (let heard: Seen | undefined; heard?.data.agent.id !== late.id; ) {
        heard = (await other.next())!;
        expect(heard.event).toBe("presence"); // and nothing else
      }
      for (const client of [...streams, other]) await client.close();
    });

    test("another project hears nothing", async () => {
      const eve = await it.register(`eve-${++names}`, { project: "elsewhere" });
      const client = await live(eve);
      await post(bob!);
      await fresh();
      await it.register(`adam-${++names}`, { project: "elsewhere" });
      const first = (await client.next())!;
      expect([first.event, first.data.agent.project]).toEqual(["presence", "elsewhere"]);
    });

    test("nothing of another project comes, also by resuming with one of its cursors", async () => {
      await using world = await openFleet(open);
      const of = async (project: string) => {
        const [a, b] = [await world.register("a", { project }), await world.register("b", { project })];
        const send = (n: number) => world.call(a, "POST", "/v1/messages", { target: "b", content: `${project} ${n}` });
        return { b, send };
      };
      const [red, blue] = [await of("red"), await of("blue")];
      for (const n of range(30)) await Promise.all([red.send(n), blue.send(n)]);
      const cursors: string[] = [];
      {
        await using theirs = await openStream(world, blue.b);
        for (const _ of range(31)) cursors.push((await theirs.next())!.lastEventId);
        await blue.send(30);
        cursors.push((await theirs.next())!.lastEventId);
      }
      for (const lastEventId of ["", ...new Set(cursors)]) {
        await using mine = await openStream(world, red.b, { lastEventId });
        expect((await mine.next())!.event).toBe("ready");
        await red.send(99);
        for (let last = ""; last !== "red 99"; ) {
          const { data } = (await mine.nextOf("message"))!;
          last = data.message.content;
          expect([data.message.project, last.startsWith("red ")]).toEqual(["red", true]);
        }
        for (const { id } of await world.world.engine.read.messages.inbox(red.b.id, 0, 1_000)) {
          await world.call(red.b, "POST", `/v1/messages/${id}/ack`, {});
        }
      }
    }, 30_000);

    test("comings and goings reach the others, not the agent itself", async () => {
      const [me, peer] = [await fresh(), await fresh()];
      const client = await live(me);
      await it.call(peer, "DELETE", `/v1/agents/${peer.id}`);
      const seen = await take(client, 1);
      await it.call(peer, "GET", "/v1/agents");
      seen.push(...(await take(client, 1)));
      expect(seen.map(({ data }) => [data.agent.id, data.agent.presence])).toEqual([
        [peer.id, "offline"],
        [peer.id, "online"],
      ]);
      expect(kinds(seen)).toEqual(["presence", "presence"]);
    });

    test("a message that was written to a stream has pushedAt, once, and one event tells of the batch", async () => {
      const me = await fresh();
      const waiting = await post(me, "waits");
      expect(waiting).not.toHaveProperty("pushedAt");
      it.clock.now += 50;
      const at = new Date(it.clock.now).toISOString();
      const client = await stream(me);
      await take(client, 2);
      const record = async () => (await it.call(me, "GET", `/v1/messages/${waiting.id}`)).body.message;
      await until(async () => (await record()).pushedAt !== undefined, "pushedAt");
      expect((await record()).pushedAt).toBe(at);
      it.clock.now += 50;
      await Promise.all(range(10).map((n) => post(me, `${n}`)));
      await take(client, 10);
      const again = await live(me).catch(() => undefined);
      await until(async () => (await it.world.engine.read.messages.inbox(me.id, 1, 50)).every(({ pushedAt }) => pushedAt !== null), "pushedAt");
      expect((await record()).pushedAt).toBe(at);
      const batches = (await it.world.engine.read.events.after("p", 0, 10_000)).filter(({ type }) => type === "pushed");
      const named = batches.flatMap(({ data }) => data["messageIds"] as string[]);
      expect(named.filter((id) => id === waiting.id)).toHaveLength(1);
      expect(new Set(named).size).toBe(named.length);
      await client.close();
      await again?.close();
    });

    test("a message through one hub reaches a stream at another within half a second", async () => {
      const other = await it.another();
      const me = await fresh();
      const client = await live(me, {}, other);
      const started = performance.now();
      await post(me, "over there");
      expect(contents(await take(client, 1))).toEqual(["over there"]);
      expect(performance.now() - started).toBeLessThan(500);
    });
  });

  describe("presenceOnly", () => {
    test("is for the model tui alone, replays nothing and carries comings and goings only", async () => {
      const refused = await it.fetch(
        new Request(`http://127.0.0.1:7331/v1/events?agentId=${bob!.id}&presenceOnly=true`, { headers: { "x-kxm-agent-key": bob!.key } }),
      );
      expect([refused.status, ((await refused.json()) as any).code]).toEqual([403, "presence_stream_forbidden"]);
      const me = await fresh({ model: "tui" });
      await post(me, "not shown");
      const client = await stream(me, { presenceOnly: true });
      expect(client.headers.get("x-kxm-events-mode")).toBe("presence");
      const [ready] = await take(client, 1); // where it starts is read when it begins, not when it is asked for
      expect(ready!.event).toBe("ready");
      await post(me, "not shown either");
      await fresh();
      expect(kinds(await take(client, 1))).toEqual(["presence"]);
      const back = await live(me, { presenceOnly: true, lastEventId: ready!.lastEventId });
      expect(kinds(await take(back, 1))).toEqual(["presence"]);
      await client.close();
      await back.close();
    });
  });

  describe("resuming", () => {
    test("gives exactly what was missed, in order, with records as they are now, and no replay", async () => {
      const me = await fresh();
      const waiting = await post(me, "already seen");
      const first = await stream(me);
      const lastEventId = (await take(first, 2)).at(-1)!.lastEventId;
      await first.close();
      const [one, two, three] = [await post(me, "1"), await post(me, "2"), await post(me, "3")];
      await on(me, "POST", one.id, "/ack"); // dealt with by other means
      await on(ada!, "DELETE", two.id);
      const mine = await post(ada!, "q", {}, me);
      await on(ada!, "POST", mine.id, "/reply", { content: "a" });
      const client = await live(me, { lastEventId });
      const seen = await take(client, 3);
      expect(kinds(seen)).toEqual(["message", "cancelled", "reply"]);
      expect(seen.map(({ data }) => data.message.id)).toEqual([three.id, two.id, mine.id]);
      expect(seen.map(({ data }) => data.message.id)).not.toContain(waiting.id);
      const cursors = seen.map(({ lastEventId: cursor }) => seqOf(cursor));
      expect(cursors).toEqual([...cursors].sort((a, b) => a - b));
    });

    test("from where nothing was missed says ready and goes on live", async () => {
      const me = await fresh();
      const first = await live(me);
      const client = await live(me, { lastEventId: first.lastEventId() });
      await post(me, "next");
      expect(contents(await take(client, 1))).toEqual(["next"]);
      await first.close();
    });

    test("a long way behind skips what concerns others", async () => {
      const me = await fresh();
      const first = await live(me);
      await first.close();
      const others = await Promise.all(range(8).map(() => it.register(`quiet-${++names}`, { project: "p" })));
      await Promise.all(range(2_400).map((n) => post(others[n % 8]!, "noise")));
      await post(me, "mine");
      const client = await live(me, { lastEventId: first.lastEventId() });
      const seen = await take(client, 9);
      expect(kinds(seen)).toEqual([...range(8).map(() => "presence"), "message"]);
    }, 30_000);

    test.each([
      ["unreadable", "garbage"],
      ["unreadable", "../../etc/passwd"],
      ["unreadable", "x".repeat(65_536)],
      ["unreadable", "GENERATION.-1"],
      ["unreadable", "GENERATION.1e3"],
      ["unreadable", "GENERATION.99999999999999999999"],
      ["other_generation", `${newId("gen")}.1`],
      ["from_the_future", "GENERATION.9007199254740991"],
    ])("a cursor that is %s gets ready, reset and the replay, then goes on", async (reason, cursor) => {
      const me = await fresh();
      await post(me, "waits");
      const client = await stream(me, { lastEventId: cursor.replace("GENERATION", it.world.engine.generation) });
      const seen = await take(client, 3);
      expect(kinds(seen)).toEqual(["ready", "reset", "message"]);
      expect(seen[1]!.data).toEqual({ type: "reset", reason });
      await post(me, "live");
      expect(contents(await take(client, 1))).toEqual(["live"]);
    });

    test("a cursor that is older than the retained log gets reset; one at its edge does not", async () => {
      await using world = await openFleet(open);
      const [a, b] = [await world.register("a"), await world.register("b")];
      for (const _ of range(4)) await world.call(a, "POST", "/v1/messages", { target: "b", content: "x" });
      const { engine } = world.world;
      expect(await engine.write("p", (tx) => tx.events.prune("p", world.clock.now + 1, 3))).toBe(3); // 4, 5, 6 stay
      const first = async (seq: number): Promise<(string | undefined)[]> => {
        await using client = await openStream(world, b, { lastEventId: `${engine.generation}.${seq}` });
        return kinds([await client.next(), await client.next()]);
      };
      expect(await first(2)).toEqual(["ready", "reset"]);
      expect(await first(3)).toEqual(["ready", "message"]);
    }, 30_000);

    test("a message that was purged meanwhile is left out", async () => {
      const me = await fresh();
      const first = await live(me);
      await first.close();
      const mine = await post(ada!, "q", {}, me);
      await on(ada!, "POST", mine.id, "/reply", { content: "a" });
      it.clock.now += 1;
      await purgeMessages(it.hub, it.clock.now);
      await post(me, "after");
      const client = await live(me, { lastEventId: first.lastEventId() });
      expect(contents(await take(client, 1))).toEqual(["after"]);
    });
  });

  describe("ending", () => {
    test("a new key ends the streams opened with the old one, and only those", async () => {
      const me = await fresh();
      const client = await live(me);
      it.clock.now += 30_000; // silent for the whole window: may be resumed
      const { body } = await it.call(undefined, "POST", "/v1/agents/register", { name: me.name, project: "p" });
      const next = await live({ ...me, key: body.agentKey });
      const started = performance.now();
      await client.ended;
      expect(performance.now() - started).toBeLessThan(1_000);
      await post(me, "still there");
      expect(contents([(await next.nextOf("message"))!])).toEqual(["still there"]);
      await next.close();
    });

    test("signing off ends them; coming back opens new ones", async () => {
      const me = await fresh();
      const streams = [await live(me), await live(me)];
      await it.call(me, "DELETE", `/v1/agents/${me.id}`);
      for (const client of streams) await client.ended;
      const next = await live(me);
      await post(me, "again");
      expect(contents(await take(next, 1))).toEqual(["again"]);
      await next.close();
    });

    test("revoking the token they were opened with ends them, and leaves those of others open", async () => {
      await using world = await openFleet(open);
      const tokens = { own: await world.token("project", "p"), other: await world.token("project", "p") };
      const join = async (name: string, token: string) => {
        const { body } = await world.call(token, "POST", "/v1/agents/register", { name, project: "p" });
        const headers = { "x-kxm-agent-key": body.agentKey, authorization: `Bearer ${token}` };
        const abort = new AbortController();
        const url = `http://127.0.0.1:7331/v1/events?agentId=${body.agent.id}`;
        const client = readStream(await world.fetch(new Request(url, { headers, signal: abort.signal })), abort);
        opened.push(client);
        expect((await client.nextOf("ready")).event).toBe("ready");
        return client;
      };
      const [first, second] = [await join("one", tokens.own), await join("two", tokens.other)];
      const revoke = async (secret: string) => {
        const row = (await world.world.engine.read.tokens.findByHash(sha256(secret)))!;
        await world.world.engine.write("p", (tx) => revokeToken(tx, { actor: "admin", role: "admin" }, row.id));
      };
      await revoke(tokens.own);
      await first.ended;
      await world.call(tokens.other, "POST", "/v1/agents/register", { name: "three", project: "p" });
      expect((await second.nextOf("presence")).data.agent.name).toBe("three");
    }, 30_000);

    test("the end of the token's time ends them", async () => {
      await using world = await openFleet(open);
      const secret = await world.token("project", "p", world.clock.now + 1_000);
      const { body } = await world.call(secret, "POST", "/v1/agents/register", { name: "one", project: "p" });
      const headers = { "x-kxm-agent-key": body.agentKey, authorization: `Bearer ${secret}` };
      const abort = new AbortController();
      const url = `http://127.0.0.1:7331/v1/events?agentId=${body.agent.id}`;
      const client = readStream(await world.fetch(new Request(url, { headers, signal: abort.signal })), abort);
      opened.push(client);
      expect((await client.nextOf("ready")).event).toBe("ready");
      let over = false;
      void client.ended.then(() => {
        over = true;
      });
      const sweep = () => {
        for (const one of world.hub.sweepers) one(world.clock.now);
      };
      world.clock.now += 999;
      sweep();
      await world.call(undefined, "GET", "/ready"); // turns enough for an end to be seen
      expect(over).toBe(false);
      world.clock.now += 1;
      // `ready` may be read before the stream has begun to watch its token
      await until(() => {
        sweep();
        return over;
      }, "the end of the stream");
    }, 30_000);

    test("falling silent does not: what comes is still written", async () => {
      const me = await fresh();
      const client = await live(me);
      await sweepStale(it.hub);
      it.clock.now += 15_000;
      await sweepStale(it.hub);
      it.clock.now += 15_000;
      await it.call(ada, "GET", "/v1/agents");
      await sweepStale(it.hub);
      expect((await it.world.engine.read.agents.find(me.id))!.online).toBe(0);
      await post(me, "wake up");
      expect((await client.nextOf("message")).data.message.content).toBe("wake up");
    });

    test("an agent has twenty streams at most, and a closed one makes room", async () => {
      const me = await fresh();
      const streams = await Promise.all(range(20).map(() => live(me)));
      const refused = await it.call(me, "GET", `/v1/events?agentId=${me.id}`);
      expect([refused.status, refused.body.code]).toEqual([429, "too_many_streams"]);
      await streams.pop()!.close();
      await until(async () => {
        const client = await stream(me);
        const ok = client.status === 200;
        await client.close();
        return ok;
      }, "room for a stream");
      for (const client of streams) await client.close();
      await until(() => it.hub.streams.size === 0, "the end of all streams");
      await until(() => it.hub.feeds.size === 0, "the end of following");
    });

    test("a stopping hub says when to come back and ends", async () => {
      const other = await it.another();
      const me = await fresh();
      const response = await other.fetch(new Request(`http://127.0.0.1:7331/v1/events?agentId=${me.id}`, { headers: { "x-kxm-agent-key": me.key } }));
      await until(() => other.hub.streams.size === 1, "the stream");
      const text = response.text();
      await until(() => other.hub.feeds.size === 1, "the feed");
      other.stop();
      expect(await text).toEndWith("retry: 1000\n\n");
      await until(() => other.hub.streams.size === 0, "the end of the stream");
    });
  });

  test("a stream needs the agent's id and its key, and no other origin", async () => {
    const ask = async (query: string, headers: Record<string, string>) => {
      const response = await it.fetch(new Request(`http://127.0.0.1:7331/v1/events${query}`, { headers }));
      return [response.status, ((await response.json()) as any).code];
    };
    const key = { "x-kxm-agent-key": bob!.key };
    expect(await ask("", key)).toEqual([400, "protocol_error"]);
    expect(await ask(`?agentId=${bob!.id}`, {})).toEqual([401, "invalid_agent_identity"]);
    expect(await ask(`?agentId=${bob!.id}&x-kxm-agent-key=${bob!.key}`, {})).toEqual([401, "invalid_agent_identity"]);
    expect(await ask(`?agentId=${ada!.id}`, key)).toEqual([401, "invalid_agent_identity"]);
    expect(await ask(`?agentId=${bob!.id}`, { ...key, origin: "http://evil.example" })).toEqual([403, "origin_forbidden"]);
    expect(kind).toBeOneOf(["sqlite", "postgres"]);
  });
});
