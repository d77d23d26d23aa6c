// A Runtime with a backlog: fills its outbox, waits for a line on its input, and pushes until nothing is pending. Says how long it took and what it held.
import { statSync } from "node:fs";
import { runtimeClient } from "../../src/client/runtime-client.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { newId } from "../../src/runtime/ids.ts";
import { knownSecrets } from "../../src/runtime/redact/known-secrets.ts";
import { createRedactor } from "../../src/runtime/redact/redactor.ts";
import { openEventStore } from "../../src/runtime/store/event-store.ts";
import { pusher } from "../../src/runtime/sync/push.ts";
import { aRun } from "../runtime/support.ts";

export type DrainSetup = {
  path: string;
  hub: string;
  token?: string;
  project: string;
  projectId: string;
  runtimeId: string;
  rows: number;
  runs: number;
};
export type DrainReport = { drainedMs: number; rssBefore: number; rssPeak: number; bytesBefore: number; bytesAfter: number; counts: unknown };

const { path, hub, token, project, projectId, runtimeId, rows, runs }: DrainSetup = JSON.parse(process.argv[2]!);
const store = openEventStore({ path, projectId, runtimeId, generation: 1, redactor: createRedactor(knownSecrets()), clock: systemClock, newId });
const ids = store.commit((tx) => Array.from({ length: runs }, () => tx.createRun(aRun()).runId));
for (let made = runs; made < rows; )
  store.commit((tx) => {
    for (let index = 0; index < 1000 && made < rows; index++, made++)
      tx.append(ids[made % runs]!, {
        type: "step.status_changed",
        payload: { stepId: "build", status: "running", summary: `Step ${made} went on as planned.` },
      });
  });
const bytes = () => [path, `${path}-wal`].reduce((sum, file) => sum + (statSync(file, { throwIfNoEntry: false })?.size ?? 0), 0);
Bun.gc(true);
process.stdout.write(`${JSON.stringify({ ready: true })}\n`);
for await (const _ of console) break;

const client = runtimeClient({ url: hub, token }, { project, runtimeId });
const push = pusher({ store, projectId, clock: systemClock });
const [rssBefore, bytesBefore, began] = [process.memoryUsage.rss(), bytes(), performance.now()];
let [rssPeak, bytesPeak] = [rssBefore, bytesBefore];
while (store.read.outbox.pending(0, 1).length > 0) {
  const step = await push.step(client);
  [rssPeak, bytesPeak] = [Math.max(rssPeak, process.memoryUsage.rss()), Math.max(bytesPeak, bytes())];
  if (step === "failed") await Bun.sleep(Math.max(1, push.nextAttemptAt - Date.now()));
}
const report: DrainReport = {
  drainedMs: performance.now() - began,
  rssBefore,
  rssPeak,
  bytesBefore,
  bytesAfter: bytesPeak,
  counts: store.read.outbox.counts(),
};
process.stdout.write(`${JSON.stringify(report)}\n`);
store.close();
process.exit(0);
