// R21: many Runtimes come back to a hub that refuses for half a minute. In simulated time, so that every request's moment is exact and repeatable.
import { expect, test } from "bun:test";
import { HubRefusal } from "../../src/client/http.ts";
import type { RuntimeClient } from "../../src/client/runtime-client.ts";
import { pusher } from "../../src/runtime/sync/push.ts";
import { seeded } from "../runtime/redact/corpus.ts";
import { aRun, fakeClock, PROJECT_ID, store } from "../runtime/support.ts";

const RUNTIMES = 50;
const REFUSES_MS = 30_000;
const RETRY_AFTER_S = 2;

/** Plays the storm; answers every request's time since its start, per Runtime, and when the last one had drained. */
async function storm(seed: number, random?: () => number) {
  const clock = fakeClock();
  const began = clock.now();
  const now = () => clock.now() - began;
  const times: number[][] = [];
  const draw = random ?? seeded(seed);
  const runtimes = Array.from({ length: RUNTIMES }, (_, index) => {
    const events = store({ clock });
    const { runId } = events.commit((tx) => tx.createRun(aRun()));
    times[index] = [];
    const client = {
      push: async () => {
        times[index]!.push(now());
        if (now() < REFUSES_MS) throw new HubRefusal(503, "storage_unavailable", "busy", undefined, undefined, { retryAfterSeconds: RETRY_AFTER_S });
        return { results: [{ projectId: PROJECT_ID, runId, sequence: 1, outcome: "accepted" }], cursors: [] };
      },
    } as unknown as RuntimeClient;
    return { events, client, push: pusher({ store: events, projectId: PROJECT_ID, clock, random: draw }), done: false };
  });
  while (runtimes.some(({ done }) => !done)) {
    const due = Math.min(...runtimes.filter(({ done }) => !done).map(({ push }) => Math.max(push.nextAttemptAt, clock.now())));
    clock.advance(due - clock.now());
    for (const runtime of runtimes) {
      if (runtime.done || runtime.push.nextAttemptAt > clock.now()) continue;
      if ((await runtime.push.step(runtime.client)) === "moved") runtime.done = runtime.events.read.outbox.counts().pending === 0;
    }
  }
  return { times, drainedMs: now() };
}

/** The most requests in any one second against the mean, of the retries while the hub refuses. */
function peak(times: number[][]): number {
  const retries = times.flatMap((of) => of.slice(1)).filter((at) => at < REFUSES_MS);
  const most = Math.max(...retries.map((at) => retries.filter((other) => other >= at && other < at + 1_000).length));
  return most / (retries.length / ((REFUSES_MS - RETRY_AFTER_S * 1_000) / 1_000));
}

test("R21: retries are spread, the hub's own time is kept, and everything is there within two minutes", async () => {
  for (const seed of [1, 2, 3, 4, 5]) {
    const { times, drainedMs } = await storm(seed);
    expect([seed, peak(times) <= 3]).toEqual([seed, true]);
    for (const of of times) {
      expect(of.length).toBeGreaterThan(1);
      const refused = of.filter((at) => at < REFUSES_MS);
      refused.forEach((at, index) => index > 0 && expect(at - refused[index - 1]!).toBeGreaterThanOrEqual(RETRY_AFTER_S * 1_000));
    }
    expect([seed, drainedMs <= 120_000]).toEqual([seed, true]);
  }
});

test("R21: without jitter the same storm comes back all at once", async () => {
  const { times } = await storm(1, () => 0.5);
  expect(peak(times)).toBeGreaterThan(3);
});
