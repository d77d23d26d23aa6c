// A hub, or the ceiling (a bare route with one insert per event and nothing else), in a process of its own for sync.bench.ts. Tells its port, then its
// processor time whenever it is asked.
import { Database } from "bun:sqlite";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Elysia } from "elysia";
import { createApi } from "../../src/api/server.ts";
import { hostsOf } from "../../src/http/admission.ts";
import { newId } from "../../src/protocol/ids.ts";
import { cpuOfThis, openBenchHub } from "./measure.ts";

const hosts = new Set<string>();
let close: () => unknown = () => {};
const app = process.argv[2] === "ceiling" ? ceiling() : await hubApp();
app.listen({ port: 0, hostname: "127.0.0.1" });
const port = app.server!.port!;
for (const host of hostsOf(port, [])) hosts.add(host);
process.on("message", () => process.send!({ cpu: cpuOfThis() }));
process.on("disconnect", async () => {
  await app.stop(true);
  await close();
  process.exit(0);
});
process.send!({ port });

async function hubApp() {
  const { hub, close: closeHub } = await openBenchHub();
  close = closeHub;
  return createApi(hub, { newRequestId: () => newId("req"), hosts });
}

function ceiling() {
  const folder = mkdtempSync(join(tmpdir(), "kxm-bench-"));
  const database = new Database(join(folder, "ceiling.db"));
  database.run("pragma journal_mode = wal");
  database.run("pragma synchronous = full");
  database.run("create table events (run text, sequence integer, record text, primary key (run, sequence)) strict");
  const insert = database.prepare("insert or ignore into events values (?, ?, ?)");
  close = () => {
    database.close(true);
    rmSync(folder, { recursive: true, force: true });
  };
  return new Elysia().post("/v1/sync/events", ({ body }: { body: any }) => {
    database.transaction(() => {
      for (const event of body.events) insert.run(event.runId, event.sequence, JSON.stringify(event));
    })();
    return { results: body.events.length };
  });
}
