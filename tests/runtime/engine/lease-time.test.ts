// How long a gate may count on its lease: by what the hub said last and this machine's own clock, here one that moves only when told.
import { expect, test } from "bun:test";
import { HubRefusal, HubUnreachable } from "../../../src/client/http.ts";
import { hubLeases } from "../../../src/runtime/engine/leases.ts";
import type { HubAgent } from "../../../src/runtime/hub-agent.ts";
import { fakeClock } from "../support.ts";

const TTL_MS = 60_000;
const RENEW_MS = 15_000;
const refusal = (status: number, code: string) => new HubRefusal(status, code, "the hub says no", undefined, undefined, {});

/** A port over a hub that grants, and answers renewals as `renewal` says. */
function setup(renewal: () => void = () => {}) {
  const clock = fakeClock();
  const asked: string[] = [];
  const hub = { answerAfterMs: 0 };
  const agent = {
    ask: async (_: string, path: string) => {
      const verb = path.split("/").at(-1)!;
      asked.push(verb);
      clock.advance(hub.answerAfterMs);
      if (verb === "renew") renewal();
      return { body: { lease: { name: "deploy", fencingToken: 1, acquiredAt: "", expiresAt: "" } } };
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
