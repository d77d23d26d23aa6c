// How long a gate may count on its lease: by what the hub said last and this machine's own clock, here one that moves only when told.
import { expect, test } from "bun:test";
import { HubRefusal, HubUnreachable } from "../../../src/client/http.ts";
import { hubLeases } from "../../../src/runtime/engine/leases.ts";
import type { HubAgent } from "../../../src/runtime/hub-agent.ts";
import { fakeClock } from "../support.ts";

const TTL_MS = 60_000;
const RENEW_MS = 15_000;
const refusal = (status: number, code: string) => new HubRefusal(status, code, "the hub says no", undefined, undefined, {});

type Answers = { renew?: () => void; release?: () => Promise<void>; acquire?: () => { renewed: boolean } | undefined };
/** A port over a hub that grants, and answers otherwise only as it is told. */
function setup(answers: Answers | (() => void) = {}) {
  const { renew, release, acquire }: Answers = typeof answers === "function" ? { renew: answers } : answers;
  const clock = fakeClock();
  const asked: string[] = [];
  const hub = { answerAfterMs: 0 };
  let fence = 1;
  const agent = {
    ask: async (_: string, path: string) => {
      const verb = path.split("/").at(-1)!;
      asked.push(verb);
      clock.advance(hub.answerAfterMs);
      if (verb === "renew") renew?.();
      if (verb === "release") await release?.().then(() => fence++);
      const granted = verb === "acquire" ? acquire?.() : undefined;
      return { body: { lease: { name: "deploy", fencingToken: fence, acquiredAt: "", expiresAt: "" }, renewed: granted?.renewed ?? false } };
    },
  } as unknown as HubAgent;
  const leases = hubLeases(agent, { log: () => {}, clock, ttlMs: TTL_MS, renewMs: RENEW_MS });
  /** Lets the machine's time go on to the next renewal. */
  const nextRenewal = async (ms = RENEW_MS) => {
    clock.advance(ms);
    await new Promise((answered) => setImmediate(answered));
  };
  return { clock, asked, hub, leases, nextRenewal };
}
/** Why it was lost, if it is by now. */
const lossOf = (lease: { lost: Promise<string> }) => Promise.race([lease.lost, Promise.resolve(undefined)]);

test("a lease that is renewed is not lost", async () => {
  const { asked, leases, nextRenewal } = setup();
  const lease = await leases.acquire("deploy");
  for (let round = 0; round < 8; round++) await nextRenewal();
  expect(await lossOf(lease)).toBeUndefined();
  expect(asked.filter((verb) => verb === "renew")).toHaveLength(8);
  lease.leave();
  await nextRenewal();
  expect(asked.filter((verb) => verb === "renew")).toHaveLength(8);
});

test("a hub that fails, is busy or does not answer costs the lease only once its time is over; one that refuses, at once", async () => {
  for (const trouble of [refusal(503, "storage_unavailable"), refusal(429, "rate_limited"), new HubUnreachable("the hub", "it does not answer")]) {
    const { leases, nextRenewal } = setup(() => {
      throw trouble;
    });
    const lease = await leases.acquire("deploy");
    for (let round = 0; round < 3; round++) await nextRenewal();
    expect([trouble.message, await lossOf(lease)]).toEqual([trouble.message, undefined]);
    await nextRenewal();
    expect(await lossOf(lease)).toBeString();
  }
  const refused = setup(() => {
    throw refusal(409, "lease_superseded");
  });
  const lease = await refused.leases.acquire("deploy");
  await refused.nextRenewal();
  expect(await lossOf(lease)).toBe("the hub says no");
});

test("time counts from when it was asked for, not from the answer", async () => {
  const { hub, leases, nextRenewal } = setup(() => {
    throw refusal(503, "storage_unavailable");
  });
  hub.answerAfterMs = 30_000;
  const lease = await leases.acquire("deploy");
  hub.answerAfterMs = 0;
  await nextRenewal();
  expect(await lossOf(lease)).toBeUndefined();
  await nextRenewal();
  expect(await lossOf(lease)).toBeString();
});

test("a machine that slept past the end does not ask: somebody else may hold it by now", async () => {
  const { asked, leases, nextRenewal } = setup();
  const lease = await leases.acquire("deploy");
  await nextRenewal(TTL_MS);
  expect(await lossOf(lease)).toBe("it could not be renewed in time");
  expect(asked).toEqual(["acquire"]);
});

test("an answer that comes after the end is too late", async () => {
  const late = setup(() => {
    throw new HubUnreachable("the hub", "it does not answer");
  });
  const lease = await late.leases.acquire("deploy");
  for (let round = 0; round < 2; round++) await late.nextRenewal();
  late.hub.answerAfterMs = RENEW_MS - 1_000;
  await late.nextRenewal();
  expect(await lossOf(lease)).toBe("the hub did not answer before it ran out");
});

test("a lease whose time is over is lost at that moment, not when it would be renewed the next time", async () => {
  const { leases, nextRenewal } = setup(() => {
    throw new HubUnreachable("the hub", "it does not answer");
  });
  const lease = await leases.acquire("deploy");
  for (let round = 0; round < 3; round++) await nextRenewal();
  await nextRenewal(TTL_MS - 2_000 - 3 * RENEW_MS);
  expect([await lossOf(lease), lease.overdue()]).toEqual([undefined, undefined]);
  await nextRenewal(1);
  expect([await lossOf(lease), lease.overdue()]).toEqual(["the hub did not answer before it ran out", "the hub did not answer before it ran out"]);
});

test("the next gate of this machine asks only once the one before has given it back", async () => {
  const freed = Promise.withResolvers<void>();
  const { asked, leases, nextRenewal } = setup({ release: () => freed.promise });
  const first = await leases.acquire("deploy");
  const next = leases.acquire("deploy");
  const released = first.release();
  await nextRenewal(0);
  expect(asked).toEqual(["acquire", "release"]);
  freed.resolve();
  await released;
  expect([first.fence, (await next).fence, asked]).toEqual([1, 2, ["acquire", "release", "acquire"]]);
});

test("a lease that is still ours from a gate before is given back first: no late word about that one ends this one", async () => {
  const renewed = [true, false];
  const { asked, leases } = setup({ acquire: () => ({ renewed: renewed.shift()! }), release: async () => {} });
  expect((await leases.acquire("deploy")).fence).toBe(2);
  expect(asked).toEqual(["acquire", "release", "acquire"]);
});

test.each([
  ["a hub that starts again is waited for, but not for long", new HubUnreachable("the hub", "nobody answers"), 60_000],
  ["a busy hub likewise", refusal(503, "storage_unavailable"), 60_000],
  ["our own name, whose registration got no answer, is free again soon", refusal(409, "duplicate_agent_name"), 600_000],
])("%s", async (_, trouble, limitMs) => {
  for (const ends of [true, false]) {
    let troubled = true;
    const { clock, leases, nextRenewal } = setup({
      acquire: () => {
        if (troubled) throw trouble;
        return undefined;
      },
    });
    const began = clock.monotonicNs();
    const outcome = leases.acquire("deploy").then(
      ({ fence }) => fence,
      (error) => error,
    );
    let over = false;
    void outcome.then(() => (over = true));
    await nextRenewal(0);
    await nextRenewal(limitMs / 2);
    expect(over).toBe(false);
    if (ends) troubled = false;
    while (!over) await nextRenewal(2_000);
    expect(await outcome).toBe(ends ? 1 : (trouble as never));
    expect((clock.monotonicNs() - began) / 1e6).toBeLessThan(limitMs + 5_000);
  }
});

test("a supervisor whose place was taken asks for nothing any more, and gives nothing back that is the next one's", async () => {
  let ours = true;
  const confirm = () => {
    if (!ours) throw new Error("fenced");
  };
  const late = setup({
    acquire: () => {
      ours = false;
      return { renewed: true };
    },
  });
  expect(late.leases.acquire("deploy", { confirm })).rejects.toThrow("fenced");
  await late.nextRenewal();
  expect(late.leases.acquire("deploy", { confirm })).rejects.toThrow("fenced");
  await late.nextRenewal();
  expect(late.asked).toEqual(["acquire"]);
});
