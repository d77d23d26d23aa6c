// The ops snapshot, the metrics and the log at scale: 1,000,000 messages and 100,000 synced events in one project. Goal: a snapshot in 20 ms.
// The same hub with 1,000 messages stands beside it: what is asked must not cost more because more is stored.
import { Database } from "bun:sqlite";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createApi } from "../../src/api/server.ts";
import { openEngine } from "../../src/db/open.ts";
import { openHub } from "../../src/hub/hub.ts";
import { silent } from "../../src/hub/log.ts";
import { defaultSettings } from "../../src/hub/settings.ts";
import { sha256 } from "../../src/protocol/canonical.ts";
import { newId } from "../../src/protocol/ids.ts";

const LARGE = { messages: Number(process.argv[2] ?? 1_000_000), agents: 200, runs: 500, events: 100_000 };
const SMALL = { messages: 1_000, agents: 20, runs: 20, events: 1_000 };
const OPEN_SHARE = 200; // one message in so many is still open
const ROUNDS = 60;
const TOKEN = "bench";

type Scale = typeof LARGE;

/** Puts rows straight into the file: through the rules it would take an hour. */
function fill(path: string, { messages, agents, runs, events }: Scale) {
  const database = new Database(path, { strict: true });
  database.run("pragma synchronous = off");
  database.run("pragma cache_size = -262144");
  const now = Date.now();
  const insert = (table: string, names: string[]) =>
    database.prepare(`insert into ${table} (${names.join(", ")}) values (${names.map((name) => `$${name}`).join(", ")})`);
  const id = (prefix: string, n: number) => `${prefix}_${(now - 1_000_000 + n).toString(16).padStart(12, "0")}${n.toString(16).padStart(20, "0")}`;
  const columns = (row: object) => Object.keys(row);
  const agent = (n: number) => ({
    id: id("agt", n),
    project: "shop",
    name: `agent-${n}`,
    name_folded: `agent-${n}`,
    purpose: "bench",
    key_hash: "h",
    online: n % 4 === 0 ? 0 : 1,
    registered_at: now,
    connected_at: now,
    last_seen_at: now,
  });
  const message = (n: number) => {
    const open = n % OPEN_SHARE === 0;
    return {
      id: id("msg", n),
      project: "shop",
      sender_id: id("agt", n % agents),
      sender_name: `agent-${n % agents}`,
      recipient_id: id("agt", (n + 1) % agents),
      recipient_name: `agent-${(n + 1) % agents}`,
      recipient_seq: n,
      status: open ? "queued" : "replied",
      is_open: open ? 1 : 0,
      delivery: "followUp",
      hops: 0,
      max_hops: 5,
      content: "x".repeat(200),
      content_hash: "h",
      correlation_id: n % 10 === 0 ? `task-${n}` : null,
      created_at: now - n,
      expires_at: now + 86_400_000,
      replied_at: open ? null : now,
      ended_at: open ? null : now,
      reply_content: open ? null : "done",
      reply_hash: open ? null : "h",
    };
  };
  const run = (n: number) => ({
    project_id: "prj_bench00001",
    run_id: id("run", n),
    project: "shop",
    home_runtime_id: `rtm_${String(n % 5).padStart(24, "0")}`,
    cursor: Math.floor(events / runs),
    held: 0,
    held_bytes: 0,
    first_received_at: now,
    last_received_at: now - n,
    display_title: `Run ${n}`,
    status: "running",
    updated_at: now,
    projection: "{}",
  });
  const event = (n: number) => ({
    project_id: "prj_bench00001",
    run_id: id("run", n % runs),
    sequence: Math.floor(n / runs) + 1,
    hash: "h",
    received_at: now,
    record: "x".repeat(900),
  });
  const put = (table: string, count: number, row: (n: number) => object) => {
    const statement = insert(table, columns(row(0)));
    database.run("begin");
    for (let n = 0; n < count; n++) statement.run(row(n) as never);
    database.run("commit");
  };
  put("agents", agents, agent);
  put("messages", messages, message);
  put("sync_runs", runs, run);
  put("sync_events", events, event);
  for (let n = 0; n < 5; n++)
    database.run("insert into runtime_presence (project, runtime_id, registered_at, heartbeat_at) values ('shop', ?, ?, ?)", [
      `rtm_${String(n).padStart(24, "0")}`,
      now,
      now,
    ]);
  database.run("analyze");
  database.close(true);
}

async function measure(scale: Scale): Promise<Map<string, number[]>> {
  const folder = mkdtempSync(join(tmpdir(), "kxm-bench-"));
  const path = join(folder, "kxm.db");
  try {
    await (await openEngine({ path, clock: Date.now, newId })).close();
    fill(path, scale);
    const engine = await openEngine({ path, clock: Date.now, newId });
    const settings = { ...defaultSettings(), localAdminTokenHash: sha256(TOKEN), rateLimit: undefined };
    const hub = openHub({ engine, clock: Date.now, settings, log: silent, stopping: new AbortController().signal });
    const api = createApi(hub, { newRequestId: () => newId("req"), hosts: new Set(["localhost"]) });
    const get = async (target: string) => {
      const response = await api.handle(new Request(`http://localhost${target}`, { headers: { authorization: `Bearer ${TOKEN}` } }));
      const text = await response.text();
      if (response.status !== 200) throw new Error(`${target}: ${response.status} ${text.slice(0, 200)}`);
    };
    const times = new Map<string, number[]>();
    for (const target of ["/v1/ops/snapshot?project=shop", "/v1/projects", "/health"]) {
      const each: number[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        const began = performance.now();
        await get(target);
        each.push(performance.now() - began);
      }
      times.set(target, each);
    }
    const began = performance.now();
    await get("/metrics");
    times.set("/metrics (counts all messages, at most every 10 s)", [performance.now() - began]);
    await engine.close();
    return times;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const at = (times: number[], share: number) => times.toSorted((a, b) => a - b)[Math.min(times.length - 1, Math.floor(times.length * share))]!;
const [small, large] = [await measure(SMALL), await measure(LARGE)];
console.log(`${"".padEnd(52)} ${SMALL.messages.toLocaleString("en")} messages    ${LARGE.messages.toLocaleString("en")} messages`);
for (const [target, times] of large) {
  const before = small.get(target)!;
  const cells = [before, times].map((one) => `${at(one, 0.5).toFixed(2).padStart(7)} / ${at(one, 0.95).toFixed(2).padStart(6)} ms`);
  console.log(`${target.padEnd(52)} ${cells.join("     ")}   ${(at(times, 0.5) / at(before, 0.5)).toFixed(1)} ×   (median / p95)`);
}
