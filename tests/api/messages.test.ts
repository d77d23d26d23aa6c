// The routes of messages on both engines: what the wire contract promises, line by line, and what lists and waits add to it.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { expireMessages, purgeMessages } from "../../src/hub/message-sweep.ts";
import { sha256 } from "../../src/protocol/canonical.ts";
import { InboxAnswer, ListAnswer, MessageAnswer, SendAnswer } from "../../src/protocol/messages.ts";
import { answersLike } from "../support/answers.ts";
import { range, WORLDS } from "../support/engines.ts";
import { type Fleet, openFleet, type Registered, until } from "../support/fleet.ts";

const iso = (ms: number) => new Date(ms).toISOString();
const DAY = 86_400_000;

describe.each(WORLDS)("%s messages", (_, open) => {
  let it: Fleet;
  let [ada, bob, cy, eve]: Registered[] = [] as unknown as [Registered, Registered, Registered, Registered];
  let names = 0;
  beforeAll(async () => {
    it = await openFleet(open);
    [ada, bob, cy] = [await it.register("Ada"), await it.register("Bob"), await it.register("Cy")];
    eve = await it.register("Eve", { project: "elsewhere" });
  }, 30_000);
  afterAll(() => it[Symbol.asyncDispose]());

  const fresh = (word = "agent") => it.register(`${word}-${++names}`);
  const send = (body: unknown, as: Registered = ada!) => it.call(as, "POST", "/v1/messages", body);
  const sent = async (more: Record<string, unknown> = {}, as: Registered = ada!) => {
    const { status, body } = await send({ target: "bob", content: "hello", ...more }, as);
    if (status !== 202) throw new Error(`not sent: ${status} ${body.code}`);
    return body.message;
  };
  const on = (as: Registered | undefined, method: string, id: string, verb = "", body: unknown = method === "POST" ? {} : undefined) =>
    it.call(as, method, `/v1/messages/${id}${verb}`, body);
  const get = (as: Registered, id: string, query = "") => it.call(as, "GET", `/v1/messages/${id}${query}`);
  const ack = (as: Registered, id: string, body: unknown = {}) => on(as, "POST", id, "/ack", body);
  const reply = (as: Registered, id: string, content: unknown = "done") => on(as, "POST", id, "/reply", { content });
  const cancel = (as: Registered, id: string) => on(as, "DELETE", id);
  const code = ({ status, body }: { status: number; body: any }) => [status, body.code];
  const eventsOf = async (id: string) =>
    (await it.world.engine.read.events.after("p", 0, 100_000)).filter(({ subjectId }) => subjectId === id).map(({ type, data }) => [type, data]);

  describe("sending", () => {
    test("is answered 202 with the whole record, queued, and nothing that was not asked for", async () => {
      const { status, body } = await send({ target: "BOB", content: "  please look  ", from: "mallory", status: "replied", workflowRunId: "run_x" });
      expect(status).toBe(202);
      answersLike(SendAnswer, body);
      expect(body).toEqual({
        message: {
          id: expect.stringMatching(/^msg_[0-9a-f]{32}$/),
          project: "p",
          from: ada!.id,
          fromName: "Ada",
          to: bob!.id,
          toName: "Bob",
          content: "please look",
          delivery: "followUp",
          hops: 0,
          maxHops: 5,
          seq: expect.any(Number),
          createdAt: iso(it.clock.now),
          expiresAt: iso(it.clock.now + DAY),
          status: "queued",
        },
        idempotent: false,
      });
      const { recipientId, senderId, recipientSeq, status: state } = (await eventsOf(body.message.id))[0]![1] as any;
      expect([recipientId, senderId, recipientSeq, state]).toEqual([bob!.id, ada!.id, body.message.seq, "queued"]);
    });

    test("carries every field that was given", async () => {
      const more = { delivery: "steer", correlationId: "thread-1", replyTo: "msg_1", hops: 3, maxHops: 20, ttlMs: 1000, idempotencyKey: "k-1" };
      const { ttlMs, ...echoed } = more;
      expect(await sent({ target: bob!.id, ...more })).toMatchObject({ ...echoed, expiresAt: iso(it.clock.now + ttlMs) });
    });

    test.each([
      [{ content: "x" }, "protocol_error", "target must be a string"],
      [{ target: "t".repeat(81), content: "x" }, "protocol_error", "target exceeds 80 characters"],
      [{ target: "bob" }, "protocol_error", "content must be a string"],
      [{ target: "bob", content: " \n " }, "protocol_error", "content cannot be empty"],
      [{ target: "bob", content: "x", delivery: null }, "protocol_error", "delivery must be a string"],
      [{ target: "bob", content: "x", delivery: "now" }, "protocol_error", "delivery must be one of steer, followUp, nextTurn"],
      [{ target: "bob", content: "x", workflowContext: {} }, "invalid_workflow_context", "workflowContext needs runId of 1 to 80 characters"],
      [{ target: "bob", content: "x", correlationId: "c".repeat(129) }, "protocol_error", "correlationId exceeds 128 characters"],
      [{ target: "bob", content: "x", replyTo: 7 }, "protocol_error", "replyTo must be a string"],
      [{ target: "bob", content: "x", hops: "1" }, "protocol_error", "hops must be an integer between 0 and 100"],
      [{ target: "bob", content: "x", hops: 101 }, "protocol_error", "hops must be an integer between 0 and 100"],
      [{ target: "bob", content: "x", hops: null }, "protocol_error", "hops must be an integer between 0 and 100"],
      [{ target: "bob", content: "x", maxHops: 0 }, "protocol_error", "maxHops must be an integer between 1 and 20"],
      [{ target: "bob", content: "x", maxHops: 21 }, "protocol_error", "maxHops must be an integer between 1 and 20"],
      [{ target: "bob", content: "x", ttlMs: 999 }, "protocol_error", "ttlMs must be an integer between 1000 and 604800000"],
      [{ target: "bob", content: "x", ttlMs: 604_800_001 }, "protocol_error", "ttlMs must be an integer between 1000 and 604800000"],
      [{ target: "bob", content: "x", ttlMs: null }, "protocol_error", "ttlMs must be an integer between 1000 and 604800000"],
      [{ target: "bob", content: "x", ttlMs: 1000.5 }, "protocol_error", "ttlMs must be an integer between 1000 and 604800000"],
      [{ target: "bob", content: "x", allowOffline: "yes" }, "protocol_error", "allowOffline must be a boolean"],
      [{ target: "bob", content: "x", idempotencyKey: "k".repeat(129) }, "protocol_error", "idempotencyKey exceeds 128 characters"],
    ])("%j is refused with %s: %s", async (body, expected, error) => {
      const before = (await it.log()).length;
      const answer = await send(body);
      expect(answer.status).toBe(400);
      expect(answer.body).toMatchObject({ code: expected, error, hint: expect.any(String), requestId: expect.any(String) });
      expect((await it.log()).length).toBe(before);
    });

    test("content of 32,000 characters fits, one more does not", async () => {
      expect((await send({ target: "bob", content: "é".repeat(32_000) })).status).toBe(202);
      expect((await send({ target: "bob", content: "é".repeat(32_001) })).body.error).toBe("content exceeds 32000 characters");
    });

    test("the hop limit comes after the fields before it and before those after it", async () => {
      const spent = { target: "bob", content: "x", hops: 5 };
      expect(code(await send({ ...spent, ttlMs: "never" }))).toEqual([400, "hop_limit_reached"]);
      expect(code(await send({ ...spent, maxHops: 99 }))).toEqual([400, "protocol_error"]);
      expect(code(await send({ ...spent, maxHops: 6 }))).toEqual([202, undefined]);
      expect(code(await send({ ...spent, hops: 20, maxHops: 20 }))).toEqual([400, "hop_limit_reached"]);
    });

    test("a workflow context without such a run is forbidden", async () => {
      const workflowContext = { runId: "run_1", stageId: "s", requirementKey: "k", attempt: 1 };
      expect(code(await send({ target: "bob", content: "x", workflowContext }))).toEqual([403, "workflow_context_forbidden"]);
      const loose = { ...workflowContext, extra: 1 };
      expect(code(await send({ target: "bob", content: "x", workflowContext: loose }))).toEqual([400, "invalid_workflow_context"]);
    });

    test("a target is an id or a name of the same project, and never oneself", async () => {
      for (const target of ["nobody", "msg_1", eve!.id, "Eve"]) {
        for (const allowOffline of [false, true]) {
          expect(code(await send({ target, content: "x", allowOffline }))).toEqual([404, "target_not_found"]);
        }
      }
      for (const target of ["Ada", "ADA", ada!.id]) expect(code(await send({ target, content: "x" }))).toEqual([400, "self_target"]);
      expect((await send({ target: bob!.id, content: "x" })).status).toBe(202);
    });

    test("an offline agent is not found, unless its mail may wait", async () => {
      const gone = await fresh();
      await it.call(gone, "DELETE", `/v1/agents/${gone.id}`);
      expect(code(await send({ target: gone.name, content: "x" }))).toEqual([404, "target_not_found"]);
      expect((await send({ target: gone.name, content: "x", allowOffline: true })).status).toBe(202);
    });

    test("numbers are 1, 2, 3 … per recipient, without gap under load and with refusals in between", async () => {
      const [one, two] = [await fresh(), await fresh()];
      await Promise.all(
        range(60).map((n) => send({ target: n % 3 === 2 ? "nobody" : n % 3 === 1 ? one.name : two.name, content: `${n}` }, n % 2 ? ada! : cy!)),
      );
      for (const agent of [one, two]) {
        const inbox = (await it.call(agent, "GET", `/v1/agents/${agent.id}/inbox`)).body.messages;
        expect(inbox.map(({ seq }: any) => seq)).toEqual(range(20).map((n) => n + 1));
      }
    });
  });

  describe("idempotency", () => {
    const base = { target: "bob", content: "once", correlationId: "c", replyTo: "r", hops: 1, maxHops: 9, ttlMs: 5_000, delivery: "steer" };

    test("the same key and request is answered 200 with the current record; nothing is created", async () => {
      const key = { idempotencyKey: "same-1" };
      const first = await sent({ ...base, ...key });
      await ack(bob!, first.id);
      const before = (await it.log()).length;
      for (const target of ["bob", "BOB", bob!.id]) {
        const { status, body } = await send({ ...base, ...key, target, allowOffline: true });
        expect([status, body.idempotent, body.message.id, body.message.status]).toEqual([200, true, first.id, "delivered"]);
      }
      expect((await it.log()).length).toBe(before);
    });

    test.each([
      { target: "cy" },
      { content: "twice" },
      { correlationId: "d" },
      { correlationId: undefined },
      { replyTo: "s" },
      { hops: 2 },
      { maxHops: 8 },
      { ttlMs: 5_001 },
      { delivery: "nextTurn" },
    ])("the same key with %j is a conflict", async (change) => {
      const idempotencyKey = `differs-${JSON.stringify(change)}`;
      await sent({ ...base, idempotencyKey });
      expect(code(await send({ ...base, idempotencyKey, ...change }))).toEqual([409, "idempotency_conflict"]);
    });

    test("a key belongs to its sender", async () => {
      const one = await sent({ idempotencyKey: "mine" });
      const two = await sent({ idempotencyKey: "mine" }, cy!);
      expect(two.id).not.toBe(one.id);
    });

    test("a retry succeeds although the recipient has left meanwhile", async () => {
      const target = await fresh();
      const request = { target: target.name, content: "x", idempotencyKey: "left" };
      const first = await sent(request);
      await it.call(target, "DELETE", `/v1/agents/${target.id}`);
      const again = await send(request);
      expect([again.status, again.body.message.id]).toEqual([200, first.id]);
    });

    test("a key is free again once its message was purged", async () => {
      const first = await sent({ idempotencyKey: "reborn" });
      await cancel(ada!, first.id);
      it.clock.now += 1;
      await purgeMessages(it.hub, it.clock.now);
      const { status, body } = await send({ target: "bob", content: "other", idempotencyKey: "reborn" });
      expect([status, body.message.id === first.id]).toEqual([202, false]);
    });
  });

  describe("reading one", () => {
    test("is for its sender and recipient; within the project others are forbidden, elsewhere it does not exist", async () => {
      const { id } = await sent();
      for (const who of [ada!, bob!]) {
        const { status, body } = await get(who, id);
        expect([status, body.message.id]).toEqual([200, id]);
        answersLike(MessageAnswer, body);
      }
      const unknown = "msg_00000000000000000000000000000000";
      for (const [method, verb] of [
        ["GET", ""],
        ["POST", "/ack"],
        ["POST", "/reply"],
        ["DELETE", ""],
      ] as const) {
        const body = verb === "/reply" ? { content: "x" } : method === "POST" ? {} : undefined;
        expect(code(await on(cy!, method, id, verb, body))).toEqual([403, "message_forbidden"]);
        const strip = ({ requestId: _, ...rest }: any) => JSON.stringify(rest).replaceAll(/msg_[0-9a-f]+/g, "ID");
        const [theirs, nobodys] = [await on(eve!, method, id, verb, body), await on(eve!, method, unknown, verb, body)];
        expect(code(theirs)).toEqual([404, "message_not_found"]);
        expect(strip(theirs.body)).toBe(strip(nobodys.body));
      }
      expect((await get(ada!, id)).body.message.status).toBe("queued");
    });
  });

  describe("acknowledging", () => {
    test("delivers once, also twice; only for the recipient", async () => {
      const { id } = await sent();
      expect(code(await ack(ada!, id))).toEqual([403, "message_forbidden"]);
      it.clock.now += 5;
      const first = (await ack(bob!, id)).body.message;
      expect(first).toMatchObject({ status: "delivered", deliveredAt: iso(it.clock.now) });
      it.clock.now += 5;
      expect((await ack(bob!, id, { phase: null, anything: [1] })).body.message).toEqual(first);
      expect((await eventsOf(id)).map(([type]) => type)).toEqual(["queued", "delivered"]);
    });

    test("with phase turn also tells that a turn has started, once", async () => {
      const { id } = await sent();
      const started = (await ack(bob!, id, { phase: "turn" })).body.message;
      expect(started).toMatchObject({ status: "delivered", deliveredAt: iso(it.clock.now), turnStartedAt: iso(it.clock.now) });
      it.clock.now += 5;
      expect((await ack(bob!, id, { phase: "turn" })).body.message).toEqual(started);
      expect((await ack(bob!, id)).body.message).toEqual(started);
      const other = (await sent()).id;
      const at = iso(it.clock.now);
      await ack(bob!, other);
      it.clock.now += 5;
      expect((await ack(bob!, other, { phase: "turn" })).body.message).toMatchObject({ deliveredAt: at, turnStartedAt: iso(it.clock.now) });
      expect((await eventsOf(other)).map(([type]) => type)).toEqual(["queued", "delivered", "turn_started"]);
      expect(code(await ack(bob!, other, { phase: "later" }))).toEqual([400, "protocol_error"]);
    });

    test("is refused once the message has ended", async () => {
      const { id } = await sent();
      await reply(bob!, id);
      expect(code(await ack(bob!, id))).toEqual([409, "invalid_message_state"]);
    });
  });

  describe("replying", () => {
    test("ends the message, straight from queued, with one time for reply and end", async () => {
      const { id } = await sent();
      it.clock.now += 5;
      const { status, body } = await reply(bob!, id, "  42  ");
      expect(status).toBe(200);
      answersLike(MessageAnswer, body);
      const at = iso(it.clock.now);
      expect(body.message).toMatchObject({ status: "replied", repliedAt: at, reply: { content: "42", createdAt: at } });
      expect(body.message).not.toHaveProperty("error");
      const row = (await it.world.engine.read.messages.find(id))!;
      expect([row.replyHash, row.contentHash]).toEqual([sha256("42"), sha256("hello")]);
    });

    test("happens once: 64 at once, one wins", async () => {
      const { id } = await sent();
      const answers = await Promise.all(range(64).map((n) => reply(bob!, id, `${n}`)));
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
      expect(new Set(answers.filter(({ status }) => status !== 200).map(({ body }) => body.code))).toEqual(new Set(["duplicate_reply"]));
    });

    test("is judged by state before its content", async () => {
      const { id } = await sent();
      expect(code(await reply(bob!, id, ""))).toEqual([400, "protocol_error"]);
      expect(code(await reply(ada!, id, ""))).toEqual([403, "message_forbidden"]);
      expect((await get(bob!, id)).body.message.status).toBe("queued");
      await reply(bob!, id);
      for (const content of ["", 5, undefined, "x".repeat(32_001)]) expect(code(await reply(bob!, id, content))).toEqual([409, "duplicate_reply"]);
      const other = await sent();
      await cancel(ada!, other.id);
      expect(code(await reply(bob!, other.id, ""))).toEqual([409, "invalid_message_state"]);
    });
  });

  describe("cancelling", () => {
    test("is for the sender, repeats unchanged, and ends nothing that has ended", async () => {
      const { id } = await sent();
      expect(code(await cancel(bob!, id))).toEqual([403, "message_forbidden"]);
      it.clock.now += 5;
      const first = (await cancel(ada!, id)).body.message;
      expect(first).toMatchObject({ status: "cancelled", cancelledAt: iso(it.clock.now), error: "message cancelled by sender" });
      it.clock.now += 5;
      const before = it.hub.metrics.read().get("messages_cancelled");
      const again = await cancel(ada!, id);
      expect([again.status, again.body.message, it.hub.metrics.read().get("messages_cancelled")]).toEqual([200, first, before]);
      const other = await sent();
      await reply(bob!, other.id);
      expect(code(await cancel(ada!, other.id))).toEqual([409, "invalid_message_state"]);
    });
  });

  describe("expiry", () => {
    const due = async () => {
      const message = await sent({ ttlMs: 1_000 });
      it.clock.now += 1_000;
      return message.id as string;
    };
    const expired = { status: "expired", error: "message expired before a reply was received" };

    test("is seen by the first who looks, acknowledges, replies or cancels, and is written down", async () => {
      const looked = await due();
      expect((await get(ada!, looked)).body.message).toMatchObject(expired);
      for (const act of [(id: string) => ack(bob!, id), (id: string) => reply(bob!, id, ""), (id: string) => cancel(ada!, id)]) {
        const id = await due();
        expect(code(await act(id))).toEqual([409, "invalid_message_state"]);
        expect((await it.world.engine.read.messages.find(id))!).toMatchObject(expired);
        expect((await eventsOf(id)).map(([type]) => type)).toEqual(["queued", "expired"]);
      }
    });

    test("a sweep takes all that are due, also delivered ones, and none before its time", async () => {
      await using world = await openFleet(open);
      const [a, b] = [await world.register("a"), await world.register("b")];
      const post = async (ttlMs: number) => (await world.call(a, "POST", "/v1/messages", { target: "b", content: "x", ttlMs })).body.message.id;
      const [later, acked] = [await post(5_000), await post(2_000)];
      await world.call(b, "POST", `/v1/messages/${acked}/ack`, {});
      await Promise.all(range(620).map(() => post(2_000)));
      world.clock.now += 1_999;
      expect(await expireMessages(world.hub)).toBe(0);
      world.clock.now += 1;
      expect(await expireMessages(world.hub)).toBe(621);
      expect(world.hub.metrics.read().get("messages_expired")).toBe(621);
      const read = async (id: string) => (await world.call(b, "GET", `/v1/messages/${id}`)).body.message;
      expect(await read(acked)).toMatchObject({ ...expired, deliveredAt: expect.any(String) });
      expect((await read(later)).status).toBe("queued");
    }, 30_000);
  });

  describe("purging", () => {
    test("deletes what has ended before a time, nothing open, and never reuses a number", async () => {
      await using world = await openFleet(open);
      const [a, b] = [await world.register("a"), await world.register("b")];
      const post = async () => (await world.call(a, "POST", "/v1/messages", { target: "b", content: "x", ttlMs: 604_800_000 })).body.message;
      const old = await post();
      await world.call(b, "POST", `/v1/messages/${old.id}/reply`, { content: "y" });
      const open1 = await post();
      world.clock.now += 10;
      const young = await post();
      await world.call(a, "DELETE", `/v1/messages/${young.id}`);
      expect(await purgeMessages(world.hub, world.clock.now)).toBe(1);
      expect((await world.call(a, "GET", `/v1/messages/${old.id}`)).body.code).toBe("message_not_found");
      for (const { id } of [open1, young]) expect((await world.call(a, "GET", `/v1/messages/${id}`)).status).toBe(200);
      expect((await post()).seq).toBe(4);
      expect((await world.log()).filter((line) => line === "messages.purged")).toHaveLength(1);
      expect(await purgeMessages(world.hub, world.clock.now)).toBe(0);
    }, 30_000);
  });

  describe("waiting for the end", () => {
    test.each(["reply", "cancel", "expire"])("is answered by a %s as soon as it is stored", async (how) => {
      const { id } = await sent({ ttlMs: 1_000 });
      const waiting = get(ada!, id, "?waitMs=20000");
      await until(() => it.hub.feeds.size > 0, "the wait");
      await ack(bob!, id); // no end yet
      if (how === "reply") await reply(bob!, id);
      if (how === "cancel") await cancel(ada!, id);
      if (how === "expire") {
        it.clock.now += 1_000;
        await expireMessages(it.hub);
      }
      const { status, body } = await waiting;
      expect([status, body.message.status]).toEqual([200, { reply: "replied", cancel: "cancelled", expire: "expired" }[how]]);
      await until(() => it.hub.feeds.size === 0, "the end of following");
    });

    test("is answered at once when it has ended, and with the record as it is when time is up or the caller leaves", async () => {
      const { id } = await sent();
      const { body } = await get(ada!, id, "?waitMs=20");
      expect(body.message.status).toBe("queued");
      const leave = new AbortController();
      const left = it.call(ada, "GET", `/v1/messages/${id}?waitMs=60000`, undefined, { signal: leave.signal });
      await until(() => it.hub.feeds.size > 0, "the wait");
      leave.abort();
      await left.catch(() => {});
      await until(() => it.hub.feeds.size === 0, "the end of following");
      await reply(bob!, id);
      expect((await get(ada!, id, "?waitMs=60000")).body.message.status).toBe("replied");
    });

    test("a message that expires unnoticed during the wait is expired in the answer", async () => {
      const { id } = await sent({ ttlMs: 1_000 });
      const waiting = get(ada!, id, "?waitMs=50");
      await until(() => it.hub.feeds.size > 0, "the wait");
      it.clock.now += 1_000;
      expect((await waiting).body.message.status).toBe("expired");
    });

    test("is refused before it waits, and its length is bounded", async () => {
      const { id } = await sent();
      expect(code(await get(cy!, id, "?waitMs=60000"))).toEqual([403, "message_forbidden"]);
      expect(code(await get(eve!, id, "?waitMs=60000"))).toEqual([404, "message_not_found"]);
      for (const waitMs of ["60001", "-1", "1.5", "soon"]) expect(code(await get(ada!, id, `?waitMs=${waitMs}`))).toEqual([400, "protocol_error"]);
      expect(it.hub.feeds.size).toBe(0);
    });

    test("a stopping hub answers those who wait", async () => {
      const other = await it.another();
      const { id } = await sent();
      const waiting = other.call(ada, "GET", `/v1/messages/${id}?waitMs=60000`);
      await until(() => other.hub.feeds.size > 0, "the wait");
      other.stop();
      expect((await waiting).body.message.status).toBe("queued");
    });

    test("a reply through one hub answers who waits at another", async () => {
      const other = await it.another();
      const { id } = await sent();
      const waiting = other.call(ada, "GET", `/v1/messages/${id}?waitMs=20000`);
      await until(() => other.hub.feeds.size > 0, "the wait");
      await reply(bob!, id);
      expect((await waiting).body.message.status).toBe("replied");
    });

    test("400 who wait cost one follower", async () => {
      const messages = await Promise.all(range(400).map(() => sent()));
      const waits = messages.map(({ id }) => get(ada!, id, "?waitMs=20000"));
      await until(() => it.hub.feeds.size === 1, "the wait");
      await Promise.all(messages.map(({ id }) => reply(bob!, id)));
      expect((await Promise.all(waits)).every(({ body }) => body.message.status === "replied")).toBe(true);
    }, 30_000);
  });

  describe("inbox", () => {
    test("lists open requests oldest first by pages, and acknowledges nothing", async () => {
      const me = await fresh();
      const ids = [];
      for (const n of range(7)) ids.push((await sent({ target: me.name, content: `${n}` })).id);
      await ack(me, ids[1]);
      await reply(me, ids[2]);
      await cancel(ada!, ids[3]);
      const page = async (query: string) => (await it.call(me, "GET", `/v1/agents/${me.id}/inbox?${query}`)).body;
      const first = await page("limit=3");
      answersLike(InboxAnswer, first);
      expect([first.messages.map(({ id }: any) => id), first.next]).toEqual([[ids[0], ids[1], ids[4]], 5]);
      const second = await page(`limit=3&after=${first.next}`);
      expect([second.messages.map(({ id }: any) => id), second.next]).toEqual([[ids[5], ids[6]], undefined]);
      expect(first.messages.map(({ status }: any) => status)).toEqual(["queued", "delivered", "queued"]);
      expect((await page("after=7")).messages).toEqual([]);
      for (const query of ["limit=0", "limit=201", "after=-1", "after=x"]) expect((await page(query)).code).toBe("protocol_error");
    });
  });

  describe("lists", () => {
    const collect = async (who: Registered, query: string) => {
      const pages: string[][] = [];
      for (let next = ""; ; ) {
        const { status, body } = await it.call(who, "GET", `/v1/messages?${query}${next && `&after=${next}`}`);
        if (status !== 200) throw new Error(`${status} ${body.code}`);
        answersLike(ListAnswer, body);
        pages.push(body.messages.map(({ content }: any) => content));
        if (!body.next) return pages;
        next = body.next;
      }
    };

    test("page through what came in and what was sent, from either end, by state and by thread", async () => {
      const [me, peer] = [await fresh(), await fresh()];
      const ids: string[] = [];
      for (const n of range(6)) {
        ids.push((await sent({ target: me.name, content: `in-${n}`, correlationId: n % 2 ? "odd" : "even" }, peer)).id);
        await sent({ target: peer.name, content: `out-${n}`, correlationId: "odd" }, me);
      }
      await sent({ target: me.name, content: "stranger", correlationId: "odd" }, cy!);
      await ack(me, ids[0]!);
      await reply(me, ids[1]!);
      await cancel(peer, ids[5]!);
      expect(await collect(me, "limit=4")).toEqual([
        ["in-0", "in-1", "in-2", "in-3"],
        ["in-4", "in-5", "stranger"],
      ]);
      expect(await collect(me, "limit=4&order=newest")).toEqual([
        ["stranger", "in-5", "in-4", "in-3"],
        ["in-2", "in-1", "in-0"],
      ]);
      expect(await collect(me, "box=sent&limit=3")).toEqual([
        ["out-0", "out-1", "out-2"],
        ["out-3", "out-4", "out-5"],
      ]);
      expect(await collect(me, "box=sent&order=newest&limit=5")).toEqual([["out-5", "out-4", "out-3", "out-2", "out-1"], ["out-0"]]);
      expect((await collect(me, "status=queued")).flat()).toEqual(["in-2", "in-3", "in-4", "stranger"]);
      expect((await collect(me, "status=replied")).flat()).toEqual(["in-1"]);
      expect((await collect(me, "status=cancelled&order=newest")).flat()).toEqual(["in-5"]);
      expect((await collect(me, "status=expired")).flat()).toEqual([]);
      expect((await collect(me, "correlationId=odd&limit=2")).flat()).toEqual(["in-1", "in-3", "in-5", "stranger"]);
      expect((await collect(me, "box=sent&correlationId=odd&status=queued&limit=2&order=newest")).flat()).toEqual(
        range(6)
          .map((n) => `out-${n}`)
          .reverse(),
      );
      expect((await collect(cy!, "box=sent&correlationId=even")).flat()).toEqual([]);
    });

    test("never show messages of others, whatever is asked for", async () => {
      const [me, peer] = [await fresh(), await fresh()];
      await sent({ target: peer.name, content: "secret", correlationId: "shared" }, bob!);
      for (const query of ["", "box=sent", "correlationId=shared", "box=sent&correlationId=shared"])
        expect((await collect(me, query)).flat()).toEqual([]);
      expect((await collect(eve!, "correlationId=shared")).flat()).toEqual([]);
    });

    test("a cursor of another list, an unknown word and a bad number are refused", async () => {
      const bad = ["after=x", "box=sent&after=12", `after=${"9".repeat(16)}`, "box=trash", "status=error", "order=up", "limit=1e2", "limit=-0"];
      for (const query of bad) expect(code(await it.call(ada, "GET", `/v1/messages?${query}`))).toEqual([400, "protocol_error"]);
    });
  });

  test("each change is one event and one count", async () => {
    await using world = await openFleet(open);
    const [a, b] = [await world.register("a"), await world.register("b")];
    const post = async (more = {}) => (await world.call(a, "POST", "/v1/messages", { target: "b", content: "x", ...more })).body.message.id;
    const [one, two, three] = [await post(), await post(), await post({ ttlMs: 1_000 })];
    await world.call(b, "POST", `/v1/messages/${one}/reply`, { content: "y" });
    await world.call(a, "DELETE", `/v1/messages/${two}`);
    world.clock.now += 1_000;
    await world.call(a, "GET", `/v1/messages/${three}`);
    await purgeMessages(world.hub, world.clock.now + 1);
    const changes = ["queued", "queued", "queued", "replied", "cancelled", "expired", "purged"];
    expect((await world.log()).slice(2)).toEqual(changes.map((type) => `messages.${type}`));
    const counts = world.hub.metrics.read();
    const counters = ["sent", "replied", "cancelled", "expired", "purged"] as const;
    expect(counters.map((name) => counts.get(`messages_${name}`))).toEqual([3, 1, 1, 1, 3]);
  }, 30_000);

  test("texts of any kind come back as they were sent", async () => {
    for (const content of ["<img src=x onerror=alert(1)>", "\u202e\u2028\u0007\u001b[2J", "😀é漢", "a\n\n\tb", "'; drop table messages; --"]) {
      expect((await sent({ content })).content).toBe(content.trim());
    }
  });
});
