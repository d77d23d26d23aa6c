// Ingest of Runtime events of about 900 bytes in batches of 100: in process from the body's bytes to the durable row, and over HTTP beside a ceiling.
// Goals: 20,000 events/s in process, 12,000 over HTTP, and in a run of 100,000 at most 1.25 times the cost per event of a run of 100.
import { join } from "node:path";
import * as sync from "../../src/hub/sync.ts";
import { parseBody } from "../../src/protocol/json.ts";
import { RUNTIME, syncEvents } from "../support/sync-events.ts";
import { best, openBenchHub, print, type Rate, rateOf } from "./measure.ts";

const ROUNDS = 3;
const BATCH = 100;
const LONG_RUN = 100_000;
const encoder = new TextEncoder();
let runs = 0;
const newRun = () => `run_${(++runs).toString(16).padStart(16, "0")}`;
const bodyOf = (runId: string, first: number): Uint8Array<ArrayBuffer> =>
  encoder.encode(JSON.stringify({ project: "bench", runtimeId: RUNTIME, events: syncEvents(first, first + BATCH - 1, { runId }) }));
const bodiesOf = (count: number, runId?: string, first = 1) =>
  Array.from({ length: count }, (_, index) => (runId ? bodyOf(runId, first + index * BATCH) : bodyOf(newRun(), 1)));

console.log(`one event: ${JSON.stringify(syncEvents(1, 1)[0]).length} bytes; batches of ${BATCH}`);
await inProcess();
await overHttp();

async function inProcess() {
  const { hub, close } = await openBenchHub();
  const push = async (body: Uint8Array, outcome: string) => {
    const { project, runtimeId, events } = parseBody(body) as { project: string; runtimeId: string; events: unknown };
    const { results } = await sync.ingest(hub, { project, runtimeId, events });
    if (results.some((result) => result.outcome !== outcome)) throw new Error(`expected ${outcome}: ${JSON.stringify(results[0])}`);
  };
  const pushAll = (bodies: Uint8Array[], callers: number, outcome = "accepted") =>
    rateOf({ rounds: bodies.length, callers, each: BATCH }, (round) => push(bodies[round]!, outcome));
  await pushAll(bodiesOf(50), 8); // warm
  const long = newRun();
  for (let at = 1; at + 10_000 <= LONG_RUN; at += 10_000) await pushAll(bodiesOf(100, long, at), 1);
  const [short, grown, repeated]: Rate[][] = [[], [], []];
  for (let round = 0; round < ROUNDS; round++) {
    short!.push(await pushAll(bodiesOf(60), 1));
    const bodies = bodiesOf(60, long, LONG_RUN - 10_000 + round * 60 * BATCH + 1);
    grown!.push(await pushAll(bodies, 1));
    repeated!.push(await pushAll(bodies, 1, "duplicate"));
  }
  const many = best([await pushAll(bodiesOf(200), 8), await pushAll(bodiesOf(200), 8)]);
  const ratio = best(grown!).cpuUs / best(short!).cpuUs;
  print("in process, 8 Runtimes side by side", many, "goal 20,000/s");
  print("in process, one Runtime, runs of 100", best(short!));
  print(`in process, one Runtime, a run of ${LONG_RUN.toLocaleString("en")}`, best(grown!), `${ratio.toFixed(2)} x of runs of 100, goal 1.25`);
  print("in process, the same once more (duplicates)", best(repeated!));
  await close();
}

async function overHttp() {
  const bodies = bodiesOf(300);
  const [ours, ceiling] = [await measureServer("hub", bodies), await measureServer("ceiling", bodies)];
  print("over HTTP, 8 Runtimes side by side", ours, "goal 12,000/s");
  print("over HTTP, ceiling: bare route, one insert an event", ceiling, `ours is ${(ours.perSecond / ceiling.perSecond).toFixed(2)} of it`);
}

async function measureServer(kind: string, bodies: Uint8Array<ArrayBuffer>[]): Promise<Rate> {
  let told = Promise.withResolvers<any>();
  const child = Bun.spawn([process.execPath, "--no-env-file", join(import.meta.dir, "sync-server.ts"), kind], {
    ipc: (message) => told.resolve(message),
    stdio: ["ignore", "inherit", "inherit"],
  });
  const ask = async () => {
    told = Promise.withResolvers();
    child.send("cpu");
    return (await told.promise).cpu as number;
  };
  const { port } = await told.promise;
  const rate = await rateOf({ rounds: bodies.length, callers: 8, each: BATCH, cpu: ask }, async (round) => {
    const body = bodies[round]!;
    const answer = await fetch(`http://127.0.0.1:${port}/v1/sync/events`, { method: "POST", headers: { "content-type": "application/json" }, body });
    if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`);
    await answer.arrayBuffer();
  });
  child.disconnect();
  await child.exited;
  return rate;
}
