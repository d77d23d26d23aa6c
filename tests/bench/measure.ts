// What the benchmarks share: a store on disk, callers side by side, and rates that say how much of them the processor spent.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Engine } from "../../src/db/engine.ts";
import { openEngine } from "../../src/db/open.ts";
import { type Hub, openHub } from "../../src/hub/hub.ts";
import { silent } from "../../src/hub/log.ts";
import { defaultSettings } from "../../src/hub/settings.ts";
import { newId } from "../../src/protocol/ids.ts";

/** A rate: operations a second by the wall clock, and microseconds of processor per operation. The second says more on a busy machine. */
export type Rate = { perSecond: number; cpuUs: number };

/** A hub on a durable store in a folder of its own. @param change what to do with the data file before it is used */
export async function openBenchHub(change?: (path: string) => void): Promise<{ hub: Hub; engine: Engine; close(): Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), "kxm-bench-"));
  const path = join(folder, "kxm.db");
  if (change) {
    await (await openEngine({ path, clock: Date.now, newId })).close();
    change(path);
  }
  const engine = await openEngine({ path, clock: Date.now, newId });
  const stop = new AbortController();
  const settings = { ...defaultSettings(), rateLimit: undefined };
  const hub = openHub({ engine, clock: Date.now, settings, log: silent, stopping: stop.signal });
  return {
    hub,
    engine,
    async close() {
      stop.abort();
      await engine.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Processor time of this process so far, in microseconds. */
export const cpuOfThis = (): number => {
  const { user, system } = process.cpuUsage();
  return user + system;
};

/** Runs `work(n)` for n = 0..rounds-1, `callers` at a time, and counts `each` operations per round. */
export async function rateOf(
  { rounds, callers, each = 1, cpu = cpuOfThis }: { rounds: number; callers: number; each?: number; cpu?: () => number | Promise<number> },
  work: (round: number) => Promise<unknown>,
): Promise<Rate> {
  const [before, started] = [await cpu(), performance.now()];
  let next = 0;
  const call = async () => {
    while (next < rounds) await work(next++);
  };
  await Promise.all(Array.from({ length: callers }, call));
  const [seconds, operations] = [(performance.now() - started) / 1_000, rounds * each];
  return { perSecond: operations / seconds, cpuUs: ((await cpu()) - before) / operations };
}

/** The better of several runs of the same thing: noise only ever adds. */
export const best = (rates: Rate[]): Rate => ({
  perSecond: Math.max(...rates.map(({ perSecond }) => perSecond)),
  cpuUs: Math.min(...rates.map(({ cpuUs }) => cpuUs)),
});

/** One line of a benchmark's table. */
export function print(name: string, { perSecond, cpuUs }: Rate, note = ""): void {
  const rate = Math.round(perSecond).toLocaleString("en").padStart(9);
  console.log(`${name.padEnd(52)} ${rate}/s  ${cpuUs.toFixed(1).padStart(7)} us of processor each  ${note}`);
}
