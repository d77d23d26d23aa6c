// R31. Many requests with one idempotency key at once: one effect, one answer for all, and a conflict for whoever means something else.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { purgeMessages } from "../../src/hub/message-sweep.ts";
import * as messages from "../../src/hub/messages.ts";
import { range, WORLDS } from "../support/engines.ts";
import { type Fleet, openFleet, type Registered } from "../support/fleet.ts";

const FULL = process.env["KXM_FAULTS"] === "full";
const CALLERS = 64;

describe.each(WORLDS)("%s", (kind, open) => {
  const ROUNDS = FULL ? 200 : kind === "sqlite" ? 40 : 8;
  let it: Fleet;
  let [ada, bob, cy]: Registered[] = [] as unknown as [Registered, Registered, Registered];
  beforeAll(async () => {
    it = await openFleet(open);
    [ada, bob, cy] = [await it.register("Ada"), await it.register("Bob"), await it.register("Cy")];
  }, 30_000);
  afterAll(() => it[Symbol.asyncDispose]());

  const send = (body: Record<string, unknown>, as: Registered = ada!) =>
    it.call(as, "POST", "/v1/messages", { target: "bob", content: "x", ...body });
  const lastSeq = () => it.world.engine.read.events.lastSeq("p");
  /** How many messages the recipient was given since a number. */
  const received = async (after: number) => (await it.world.engine.read.messages.inbox(bob!.id, after, 10_000)).length;
  const newest = async () => (await it.world.engine.read.messages.streamStart("p", bob!.id)).recipientSeq;

  test(`${CALLERS} at once with one key and one body are one message, ${ROUNDS} times`, async () => {
    for (const round of range(ROUNDS)) {
      const [before, events] = [await newest(), await lastSeq()];
      const answers = await Promise.all(range(CALLERS).map(() => send({ idempotencyKey: `race-${round}` })));
      expect(new Set(answers.map(({ body }) => body.message.id)).size).toBe(1);
      expect(answers.map(({ status }) => status).sort()).toEqual([...range(CALLERS - 1).map(() => 200), 202]);
      expect(answers.filter(({ body }) => !body.idempotent)).toHaveLength(1);
      expect([await received(before), (await lastSeq()) - events]).toEqual([1, 1]);
    }
  }, 120_000);

  test(`another body under the same key is a conflict, also in flight, ${ROUNDS} times`, async () => {
    for (const round of range(ROUNDS)) {
      const before = await newest();
      const answers = await Promise.all(range(CALLERS).map((n) => send({ idempotencyKey: `mixed-${round}`, content: n % 2 ? "left" : "right" })));
      const [winner] = answers.filter(({ status }) => status === 202);
      const agreed = answers.filter(({ status }) => status === 200);
      const refused = answers.filter(({ body }) => body.code === "idempotency_conflict");
      expect([agreed.length, refused.length]).toEqual([CALLERS / 2 - 1, CALLERS / 2]);
      expect(agreed.every(({ body }) => body.message.content === winner!.body.message.content)).toBe(true);
      expect(refused.every(({ status, body }) => status === 409 && typeof body.hint === "string")).toBe(true);
      expect(await received(before)).toBe(1);
    }
  }, 120_000);

  test("two hubs, two agents, one key: one message for each agent", async () => {
    const other = await it.another();
    const before = await newest();
    const body = { target: "bob", content: "x", idempotencyKey: "shared" };
    const seats = [it, other];
    const answers = await Promise.all(range(CALLERS).map((n) => seats[n % 2]!.call(n % 4 < 2 ? ada : cy, "POST", "/v1/messages", body)));
    expect(new Set(answers.map(({ body }) => body.message.id)).size).toBe(2);
    expect(answers.filter(({ status }) => status === 202)).toHaveLength(2);
    expect(await received(before)).toBe(2);
  });

  test("a key does not outlive its message, and while it lives it outlives the hub", async () => {
    await using world = await openFleet(open);
    const [a, b] = [await world.register("a"), await world.register("b")];
    const request = { target: "b", content: "x", idempotencyKey: "lasting" };
    const ask = (seat: Pick<Fleet, "call">) => seat.call(a, "POST", "/v1/messages", request);
    const first = (await ask(world)).body.message.id;
    if (kind === "postgres") {
      const restarted = await world.another(); // a hub that has never heard of it
      expect((await ask(restarted)).body).toMatchObject({ idempotent: true, message: { id: first } });
    }
    await world.call(b, "POST", `/v1/messages/${first}/reply`, { content: "y" });
    expect((await ask(world)).body).toMatchObject({ idempotent: true, message: { id: first, status: "replied" } });
    world.clock.now += 1;
    expect(await purgeMessages(world.hub, world.clock.now)).toBe(1);
    const again = await ask(world);
    expect([again.status, again.body.message.id === first]).toEqual([202, false]);
  }, 30_000);

  test("the check fails for a hub that ignores the key", async () => {
    const before = await newest();
    const forgetful = () =>
      it.world.engine.write("p", (tx) =>
        messages.sendAs(
          tx,
          { id: ada!.id, project: "p", name: "Ada" },
          { target: "bob", content: "x", delivery: "followUp", hops: 0, maxHops: 5, allowOffline: false },
          { ttlMs: 60_000 },
        ),
      );
    await Promise.all(range(CALLERS).map(forgetful));
    expect(await received(before)).toBe(CALLERS);
  });
});

test("a key outlives a restart of the process that stored it", async () => {
  const [, open] = WORLDS[0]!;
  const world = await open();
  try {
    const sender = { id: "agt_a", project: "p", name: "a" };
    const { agentRow } = await import("../support/rows.ts");
    await world.engine.write("p", (tx) => tx.agents.insert(agentRow("agt_b", "p", "b")));
    const request = { target: "b", content: "x", delivery: "followUp" as const, hops: 0, maxHops: 5, allowOffline: false, idempotencyKey: "k" };
    const send = () => world.engine.write("p", (tx) => messages.sendAs(tx, sender, request, { ttlMs: 60_000 }));
    const first = await send();
    await world.reopen();
    const second = await send();
    expect([first.idempotent, second.idempotent, second.message.id]).toEqual([false, true, first.message.id]);
  } finally {
    await world[Symbol.asyncDispose]();
  }
});
