// R19: the hub was away for hours. Its return drains the backlog in order and once, without the Runtime growing.
import { expect, test } from "bun:test";
import { hubStandIn } from "../runtime/hub-stand-in.ts";
import { PROJECT_ID, RUNTIME_ID, temporaryFolder } from "../runtime/support.ts";
import type { DrainReport, DrainSetup } from "./runtime-drain-process.ts";

const FULL = process.env["KXM_FAULTS"] === "full";
const ROWS = FULL ? 100_000 : 5_000;
const RUNS = 7;
const MS_MAX = 60_000 * (ROWS / 100_000) + 5_000; // five seconds for the start of both sides on a busy machine
/** The write-ahead log between two checkpoints, which weighs nothing at full size. */
const WAL_BYTES = 4 * 1024 * 1024;
const RSS_MAX = 64 * 1024 * 1024;

/** A drain process that is full and waits; `go` lets it push. */
export async function drainProcess(setup: DrainSetup): Promise<{ go(): Promise<DrainReport>; kill(): void }> {
  const child = Bun.spawn([process.execPath, `${import.meta.dir}/runtime-drain-process.ts`, JSON.stringify(setup)], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  const lines = linesOf(child.stdout);
  if (!JSON.parse(await lines.next()).ready) throw new Error("the drain process did not start");
  return {
    go: async () => {
      child.stdin.write("go\n");
      await child.stdin.end();
      return JSON.parse(await lines.next());
    },
    kill: () => child.kill("SIGKILL"),
  };
}

function linesOf(stream: ReadableStream<Uint8Array>) {
  const reader = stream.pipeThrough(new TextDecoderStream() as any).getReader() as ReadableStreamDefaultReader<string>;
  let held = "";
  return {
    next: async (): Promise<string> => {
      while (!held.includes("\n")) {
        const { value, done } = await reader.read();
        if (done) throw new Error(`the process ended after ${JSON.stringify(held)}`);
        held += value;
      }
      const at = held.indexOf("\n");
      const line = held.slice(0, at);
      held = held.slice(at + 1);
      return line;
    },
  };
}

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
