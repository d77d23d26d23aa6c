// R19: the hub was away for hours. Its return drains the backlog in order and once, without the Runtime growing.
import { expect, test } from "bun:test";
import { hubStandIn } from "../runtime/hub-stand-in.ts";
import { PROJECT_ID, RUNTIME_ID, temporaryFolder } from "../runtime/support.ts";
import { drainProcess } from "./drain-client.ts";

const FULL = process.env["KXM_FAULTS"] === "full";
const ROWS = FULL ? 100_000 : 5_000;
const RUNS = 7;
const MS_MAX = 60_000 * (ROWS / 100_000) + 5_000; // five seconds for the start of both sides on a busy machine
/** The write-ahead log between two checkpoints, which weighs nothing at full size. */
const WAL_BYTES = 4 * 1024 * 1024;
const RSS_MAX = 64 * 1024 * 1024;

test(`R19: ${ROWS} pending rows drain in order, once, in bounded memory and disk`, async () => {
  using folder = temporaryFolder();
  using hub = hubStandIn();
  const order = new Map<string, number>();
  let outOfOrder = 0;
  let double = 0;
  hub.failWith(({ path, body }) => {
    if (path !== "/v1/sync/events") return undefined;
    for (const { runId, sequence } of body.events) {
      const last = order.get(runId) ?? 0;
      if (sequence === last) double++;
      if (sequence !== last + 1) outOfOrder++;
      order.set(runId, sequence);
    }
    return undefined;
  });
  const setup = {
    path: folder.file("run-events.db"),
    hub: hub.url,
    project: "demo",
    projectId: PROJECT_ID,
    runtimeId: RUNTIME_ID,
    rows: ROWS,
    runs: RUNS,
  };
  const process = await drainProcess(setup);
  const report = await process.go();
  expect(hub.events.size).toBe(ROWS);
  expect([outOfOrder, double]).toEqual([0, 0]);
  expect(report.counts).toEqual({ pending: 0, acked: ROWS, refused: {} });
  expect(report.drainedMs).toBeLessThan(MS_MAX);
  expect(report.rssPeak - report.rssBefore).toBeLessThan(RSS_MAX);
  expect(report.bytesAfter).toBeLessThan(report.bytesBefore * 1.2 + WAL_BYTES);
  if (FULL)
    console.log(`R19: ${ROWS} rows in ${Math.round(report.drainedMs)} ms, RSS +${Math.round((report.rssPeak - report.rssBefore) / 2 ** 20)} MiB`);
}, 240_000);
