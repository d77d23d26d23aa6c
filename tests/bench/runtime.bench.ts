// The Runtime's core: appends with their outbox rows against the ceiling of the same file and durability, opening a large store, redaction, a drain into
// a real hub, and a supervisor that has nothing to do. `KXM_BENCH_EVENTS=1000000` fills the store to its full figure.
import { Database } from "bun:sqlite";
import { mkdirSync } from "node:fs";
import { knownSecrets } from "../../src/runtime/redact/known-secrets.ts";
import { createRedactor } from "../../src/runtime/redact/redactor.ts";
import { drainProcess } from "../faults/drain-client.ts";
import { startHub } from "../runtime/hub-process.ts";
import { startRuntime } from "../runtime/runtime-process.ts";
import { aRun, PROJECT_ID, RUNTIME_ID, store, temporaryFolder } from "../runtime/support.ts";
import { cpuOfThis } from "./measure.ts";

const EVENTS = Number(process.env["KXM_BENCH_EVENTS"] ?? 100_000);
const ROWS = 20_000;
const IDLE_MS = 10_000;

using folder = temporaryFolder();
const show = (name: string, figure: string) => console.log(`${name.padEnd(56)} ${figure}`);
const perSecond = (count: number, ms: number) => `${Math.round(count / (ms / 1000)).toLocaleString("en")}/s`;
const timed = (work: () => void): number => {
  const began = performance.now();
  work();
  return performance.now() - began;
};

function ceiling(group: number, count: number): number {
  const db = new Database(folder.file(`ceiling-${group}.db`), { create: true });
  for (const pragma of ["journal_mode = wal", "synchronous = full"]) db.run(`pragma ${pragma}`);
  db.run("create table events (run_id text, sequence integer, payload text, primary key (run_id, sequence)) strict, without rowid");
  const insert = db.prepare("insert into events values (?, ?, ?)");
  const payload = "x".repeat(900);
  const ms = timed(() => {
    for (let made = 0; made < count; ) {
      db.run("begin immediate");
      for (let index = 0; index < group; index++) insert.run("run", ++made, payload);
      db.run("commit");
    }
  });
  db.close();
  return ms;
}

const known = knownSecrets();
for (let index = 0; index < 20; index++) known.add(`${crypto.randomUUID()}${index}`, "known");
const path = folder.file("run-events.db");
const events = store({ path, known });
const { runId } = events.commit((tx) => tx.createRun(aRun()));
const summary = (made: number) => `The step went on and wrote a summary that is about as long as such summaries are; this is number ${made} of them.`;
const append = (group: number, count: number) =>
  timed(() => {
    for (let made = 0; made < count; )
      events.commit((tx) => {
        for (let index = 0; index < group; index++, made++)
          tx.append(runId, {
            type: "step.status_changed",
            payload: {
              stepId: "build",
              stepAttempt: 1,
              status: "running",
              summary: summary(made),
              usage: { inputTokens: 1, cost: 0.1, costKind: "estimated" },
            },
            local: { pid: 12, argv: ["node", "x.js"] },
          });
      });
  });
for (const [group, count] of [
  [1, 500],
  [10, 3_000],
  [100, 20_000],
] as const) {
  const before = cpuOfThis();
  const ours = append(group, count);
  const cpuUs = (cpuOfThis() - before) / count;
  const bare = ceiling(group, count);
  show(
    `append ${group} a commit (event, projection, outbox, redacted)`,
    `${perSecond(count, ours)}   ${(bare / ours).toFixed(2)} of a bare insert   ${cpuUs.toFixed(0)} us of processor each`,
  );
}
for (let made = events.read.events.last(runId); made < EVENTS; made += 5_000) append(5_000, 5_000);
events.close();
let again = store({ path, known });
again.close();
show(`open a store of ${EVENTS.toLocaleString("en")} events`, `${timed(() => void (again = store({ path, known }))).toFixed(1)} ms`);
show("count its outbox", `${timed(() => void again.read.outbox.counts()).toFixed(1)} ms`);
again.close();

const redactor = createRedactor(known, { folders: ["/home/somebody"] });
const text = `${summary(1)}\n`.repeat(Math.ceil(262_144 / 115)).slice(0, 262_144);
redactor.leaving(text);
show("redact 256 KiB of ordinary text", `${Math.min(...[1, 2, 3, 4, 5].map(() => timed(() => void redactor.leaving(text)))).toFixed(1)} ms`);

{
  await using hub = await startHub(folder.path);
  const setup = {
    path: folder.file("drain.db"),
    hub: hub.url,
    token: hub.token,
    project: "demo",
    projectId: PROJECT_ID,
    runtimeId: RUNTIME_ID,
    rows: ROWS,
    runs: 7,
  };
  const { drainedMs, rssPeak, rssBefore } = await (await drainProcess(setup)).go();
  show(
    `drain ${ROWS.toLocaleString("en")} rows into a real hub`,
    `${perSecond(ROWS, drainedMs)}   RSS +${Math.round((rssPeak - rssBefore) / 2 ** 20)} MiB`,
  );
}
{
  mkdirSync(folder.file("state-root"));
  await using runtime = await startRuntime(folder.file("state-root"), { KXM_RUNTIME_SYNC_INTERVAL_MS: "10000" });
  const { pid } = runtime.facts!;
  const ticks = async () =>
    (await Bun.file(`/proc/${pid}/stat`).text())
      .split(" ")
      .slice(13, 15)
      .reduce((sum, ticks) => sum + Number(ticks), 0);
  await Bun.sleep(2_000);
  const before = await ticks();
  await Bun.sleep(IDLE_MS);
  const rss = /VmRSS:\s+(\d+)/.exec(await Bun.file(`/proc/${pid}/status`).text())?.[1];
  show(
    "a supervisor with nothing to do, from source",
    `${Math.round(Number(rss) / 1024)} MiB RSS, ${(((await ticks()) - before) / (IDLE_MS / 1000)).toFixed(1)} % of a core`,
  );
}
