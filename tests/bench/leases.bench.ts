// Leases in process on a durable store: cycles of acquire and release, refusals, checks, and how soon those who wait are served.
import type { AgentRow } from "../../src/db/schema.ts";
import * as leases from "../../src/hub/leases.ts";
import { newId } from "../../src/protocol/ids.ts";
import { agentRow } from "../support/rows.ts";
import { best, openBenchHub, print, rateOf } from "./measure.ts";

const CALLERS = 64;
const ROUNDS = 3;
const MANY = 100_000;
const { hub, engine, close } = await openBenchHub();
const agents = await Promise.all(
  Array.from({ length: CALLERS }, async (_, n): Promise<AgentRow> => {
    const agent = agentRow(newId("agt"), "bench", `agent ${n}`);
    await engine.write("bench", (tx) => tx.agents.insert(agent));
    return agent;
  }),
);
const ask = (name: string) => ({ name, ttlMs: 600_000, waitMs: 0 });
const cycle = async (round: number, name = `r${round % CALLERS}`) => {
  const agent = agents[round % CALLERS]!;
  const { lease } = await leases.acquire(hub, agent, ask(name));
  await leases.release(hub, agent, name, lease.fencingToken);
};
const measure = async (rounds: number, work: (round: number) => Promise<unknown>) => {
  const rates = [];
  for (let round = 0; round < ROUNDS; round++) rates.push(await rateOf({ rounds, callers: CALLERS }, work));
  return best(rates);
};

await measure(2_000, cycle);
const few = await measure(10_000, cycle);
print("acquire and release, 64 callers", few);
const held = await leases.acquire(hub, agents[0]!, ask("held"));
print("refused: somebody else holds it", await measure(10_000, (n) => leases.acquire(hub, agents[1 + (n % 63)]!, ask("held")).catch(() => {})));
print("check of a token", await measure(50_000, () => leases.check(hub, "bench", "held", held.lease.fencingToken)));
await served();
await rateOf({ rounds: MANY, callers: CALLERS }, (n) => cycle(n, `old${n}`));
const many = await measure(10_000, cycle);
print(`acquire and release, ${MANY.toLocaleString("en")} resources known`, many, `${(many.cpuUs / few.cpuUs).toFixed(2)} x of few`);
const started = performance.now();
for (let n = 0; n < 100; n++) await leases.list(hub, "bench", { state: "held", limit: 50 });
console.log(`list of held leases: ${((performance.now() - started) / 100).toFixed(2)} ms`);
await close();

/** A line of 63: each holder releases at once; the time from a release to the answer of the next. */
async function served() {
  const times: number[] = [];
  let releasedAt = 0;
  const never = new AbortController().signal;
  const { lease } = await leases.acquire(hub, agents[0]!, ask("line"));
  const line = agents.slice(1).map(async (agent) => {
    const granted = await leases.acquire(hub, agent, { ...ask("line"), waitMs: 30_000 }, { until: never, gone: never });
    times.push(performance.now() - releasedAt);
    releasedAt = performance.now();
    await leases.release(hub, agent, "line", granted.lease.fencingToken);
  });
  while ((await leases.find(hub, "bench", "line")).waiting.length < line.length) await new Promise((turn) => setImmediate(turn));
  releasedAt = performance.now();
  await leases.release(hub, agents[0]!, "line", lease.fencingToken);
  await Promise.all(line);
  times.sort((a, b) => a - b);
  console.log(`a line of ${line.length}: served after ${times[times.length >> 1]!.toFixed(1)} ms (median), ${times.at(-1)!.toFixed(1)} ms (longest)`);
}
