// R19 against a real hub: while a backlog drains, the hub's other callers hardly notice.
import { expect, test } from "bun:test";
import { startHub } from "../runtime/hub-process.ts";
import { PROJECT_ID, RUNTIME_ID, temporaryFolder } from "../runtime/support.ts";
import { drainProcess } from "./drain-client.ts";

const FULL = process.env["KXM_FAULTS"] === "full";
const ROWS = FULL ? 100_000 : 5_000;
const MS_MAX = FULL ? 60_000 : 15_000;
const API_P99_MS = 150;
const RSS_MAX = 64 * 1024 * 1024;

test(`R19: ${ROWS} rows drain into a real hub while its other callers hardly notice`, async () => {
  using folder = temporaryFolder();
  await using hub = await startHub(folder.path);
  const setup = {
    path: folder.file("run-events.db"),
    hub: hub.url,
    token: hub.token,
    project: "demo",
    projectId: PROJECT_ID,
    runtimeId: RUNTIME_ID,
    rows: ROWS,
    runs: 7,
  };
  const drain = await drainProcess(setup);
  const delays: number[] = [];
  let draining = true;
  const caller = (async () => {
    while (draining) {
      const began = performance.now();
      await hub.call("GET", "/v1/agents/none/inbox").catch(() => {}); // a refusal passes the same steps
      await hub.call("GET", "/v1/approvals?project=demo");
      delays.push((performance.now() - began) / 2);
      await new Promise((resume) => setTimeout(resume, 20));
    }
  })();
  const report = await drain.go();
  draining = false;
  await caller;
  const p99 = delays.toSorted((a, b) => a - b)[Math.floor(delays.length * 0.99)]!;
  if (FULL) console.log(`R19: ${ROWS} rows in ${Math.round(report.drainedMs)} ms, API p99 ${p99.toFixed(1)} ms of ${delays.length} calls`);
  expect(report.counts).toEqual({ pending: 0, acked: ROWS, refused: {} });
  expect(report.drainedMs).toBeLessThan(MS_MAX);
  expect(report.rssPeak - report.rssBefore).toBeLessThan(RSS_MAX);
  expect(p99).toBeLessThan(API_P99_MS);
}, 300_000);
