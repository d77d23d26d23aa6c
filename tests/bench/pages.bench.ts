// The dashboard's pages at scale: 1,000,000 messages, 1,000,000 events of the log, 2,000 agents, 5,000 runs of which 500 move, 100,000 synced events and
// what pages-rows.ts adds, in one project. `npm run bench -- pages`; KXM_BENCH_MESSAGES=100000 makes it a smaller one.
// Goals: the overview in 20 ms, any list in 50 ms. The same hub with 1,000 messages stands beside it.
import { Database } from "bun:sqlite";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Elysia } from "elysia";
import { openEngine } from "../../src/db/open.ts";
import { openHub } from "../../src/hub/hub.ts";
import { silent } from "../../src/hub/log.ts";
import { emptyProjection } from "../../src/hub/projection.ts";
import * as sessions from "../../src/hub/sessions.ts";
import { defaultSettings } from "../../src/hub/settings.ts";
import { newId, newSecret } from "../../src/protocol/ids.ts";
import { csrfOf } from "../../src/views/cookies.ts";
import { createViews } from "../../src/views/server.tsx";
import { syncEvent } from "../support/sync-events.ts";
import { cpuOfThis } from "./measure.ts";
import { fillMore, listsOf, type Row } from "./pages-rows.ts";

const LARGE = {
  messages: Number(process.env["KXM_BENCH_MESSAGES"] ?? 1_000_000),
  agents: 2_000,
  online: 500,
  runs: 5_000,
  syncEvents: 100_000,
  leases: 300,
};
const SMALL = { messages: 1_000, agents: 20, online: 20, runs: 20, syncEvents: 1_000, leases: 10 };
const ROUNDS = 40;
const NOW = Date.now();
const HOST = "127.0.0.1:7331";
type Scale = typeof LARGE;
/** One page: by the clock, and by the processor. On a busy machine the second says more. */
type Sample = { ms: number; cpuMs: number };

const id = (prefix: string, n: number) => `${prefix}_${(NOW - 1_000_000 + n).toString(16).padStart(12, "0")}${n.toString(16).padStart(20, "0")}`;

function messageRow(n: number, { messages, agents }: Scale): Row {
  // Of 1,000 messages one is open, one has expired, one was cancelled; the rest have their reply. A week of them.
  const status = n % 1_000 === 7 ? "queued" : n % 1_000 === 8 ? "expired" : n % 1_000 === 9 ? "cancelled" : "replied";
  const at = NOW - Math.floor(((messages - n) / messages) * 7 * 86_400_000);
  const [sender, recipient] = [n % agents, (n * 7 + 1) % agents];
  return {
    ...{ id: id("msg", n), project: "shop", sender_id: id("agt", sender), sender_name: `agent-${sender}` },
    ...{
      recipient_id: id("agt", recipient),
      recipient_name: `agent-${recipient}`,
      recipient_seq: n,
      status,
      delivery: "followUp",
      hops: 0,
      max_hops: 5,
    },
    ...{
      content: "x".repeat(400),
      content_hash: "h",
      is_open: status === "queued" ? 1 : 0,
      correlation_id: n % 10 === 0 ? `task-${n % 5_000}` : null,
    },
    ...{
      created_at: at,
      expires_at: at + 86_400_000,
      pushed_at: at + 200,
      delivered_at: at + 400,
      turn_started_at: status === "queued" ? null : at + 2_000,
    },
    ...{ replied_at: status === "replied" ? at + 30_000 : null, ended_at: status === "queued" ? null : at + 30_000 },
    ...{ reply_content: status === "replied" ? "done" : null, reply_hash: status === "replied" ? "h" : null },
  };
}

/** Puts rows straight into the file: through the rules it would take an hour. */
function fill(path: string, scale: Scale) {
  const { messages, agents, online, runs, syncEvents, leases } = scale;
  const database = new Database(path, { strict: true });
  database.run("pragma synchronous = off");
  database.run("pragma cache_size = -262144");
  const put = (table: string, count: number, row: (n: number) => Row) => {
    const names = Object.keys(row(0));
    const statement = database.prepare(`insert into ${table} (${names.join(", ")}) values (${names.map((name) => `$${name}`).join(", ")})`);
    database.run("begin");
    for (let n = 0; n < count; n++) statement.run(row(n));
    database.run("commit");
  };
  const told = syncEvent(1, { type: "attempt.status_changed", payload: { status: "running", summary: "x".repeat(500) }, at: NOW });
  const projection = JSON.stringify(emptyProjection());
  const runtime = (n: number) => `rtm_${String(n % 5).padStart(24, "0")}`;
  put("agents", agents, (n) => ({
    ...{
      id: id("agt", n),
      project: "shop",
      name: `agent-${n}`,
      name_folded: `agent-${n}`,
      purpose: "bench",
      host: `machine-${n % 8}`,
      key_hash: "h",
    },
    ...{ online: n < online ? 1 : 0, registered_at: NOW, connected_at: NOW, last_seen_at: NOW },
  }));
  put("messages", messages, (n) => messageRow(n, scale));
  put("events", messages, (n) => ({
    ...{ project: "shop", seq: n + 1, at: NOW - (messages - n) * 10, topic: "messages", type: n % 2 ? "replied" : "queued" },
    ...{ subject_id: id("msg", n), actor: id("agt", n % agents), data: "{}" },
  }));
  put("event_counters", 1, () => ({ project: "shop", last_seq: messages }));
  put("sync_runs", runs, (n) => ({
    ...{
      project_id: "prj_bench00001",
      run_id: id("run", n),
      project: "shop",
      home_runtime_id: runtime(n),
      cursor: Math.floor(syncEvents / runs),
      held: 0,
    },
    ...{
      held_bytes: 0,
      first_received_at: NOW,
      last_received_at: NOW - n,
      display_title: `Run ${n}`,
      status: n < 500 ? "running" : n % 5 ? "completed" : "failed",
      updated_at: NOW,
    },
    ...{ started_at: NOW - 60_000, ended_at: n < 500 ? null : NOW - n * 1_000, projection },
  }));
  put("sync_events", syncEvents, (n) => ({
    ...{
      project_id: "prj_bench00001",
      run_id: id("run", n % runs),
      sequence: Math.floor(n / runs) + 1,
      hash: "h",
      received_at: NOW,
      record: JSON.stringify({ ...told, sequence: Math.floor(n / runs) + 1 }),
    },
  }));
  put("runtime_presence", 5, (n) => ({ project: "shop", runtime_id: runtime(n), host: `machine-${n}`, registered_at: NOW, heartbeat_at: NOW }));
  put("leases", leases, (n) => ({
    ...{
      resource: `shop/lease-${n}`,
      project: "shop",
      name: `lease-${n}`,
      fence: 1,
      holder_id: id("agt", n),
      holder_name: `agent-${n}`,
      ttl_ms: 60_000,
    },
    ...{ acquired_at: NOW, renewed_at: NOW, expires_at: NOW + 600_000, last_waiter: 0 },
  }));
  put("activity_hours", 24 * 3, (n) => ({
    ...{
      project: "shop",
      topic: "messages",
      type: ["queued", "replied", "expired"][n % 3]!,
      hour: Math.floor(NOW / 3_600_000) - Math.floor(n / 3),
      count: 100,
    },
  }));
  put("search_cursors", 1, () => ({ project: "shop", seq: messages })); // a search first makes searchable what is not yet
  fillMore(put, messages / LARGE.messages, { now: NOW, id });
  database.close(true);
}

const PAGES: readonly (readonly [name: string, path: string])[] = [
  ["overview", "/?project=shop"],
  ["overview, all projects", "/"],
  ["agents", "/agents?project=shop"],
  ["agents, by name", "/agents?project=shop&q=agent-19"],
  ["one agent", `/agents/${id("agt", 8)}?project=shop`],
  ["messages, open", "/messages?project=shop"],
  ["messages, dead letters", "/messages?project=shop&box=dead"],
  ["messages, all", "/messages?project=shop&box=all"],
  ["messages, cancelled", "/messages?project=shop&box=all&q=status:cancelled"],
  ["messages, to one agent", "/messages?project=shop&box=all&q=to:agent-8"],
  ["messages, one thread", "/messages?project=shop&box=all&q=thread:task-50"],
  ["messages, a rare mode (looks at 1,000)", "/messages?project=shop&box=all&q=mode:steer"],
  ["one message", `/messages/${id("msg", 7)}?project=shop`],
  ["compose", "/messages/new?project=shop"],
  ["palette", "/ui/palette?project=shop&q=agent-1"],
  ...listsOf(id),
];

async function measure(scale: Scale): Promise<Map<string, Sample[]>> {
  const folder = mkdtempSync(join(tmpdir(), "kxm-bench-"));
  const path = join(folder, "kxm.db");
  try {
    await (await openEngine({ path, clock: () => NOW, newId })).close();
    fill(path, scale);
    const engine = await openEngine({ path, clock: () => NOW, newId });
    const hub = openHub({
      engine,
      clock: () => NOW,
      settings: { ...defaultSettings(), rateLimit: undefined },
      log: silent,
      stopping: new AbortController().signal,
    });
    const app = new Elysia().use(createViews(hub, { newRequestId: () => newId("req"), hosts: new Set([HOST]) }));
    const secret = newSecret("kxs");
    await engine.write("", (tx) => sessions.begin(tx, { role: "operator", project: null, tokenId: null }, { session: secret, csrf: csrfOf(secret) }));
    const get = async (target: string) => {
      const response = await app.handle(new Request(`http://${HOST}${target}`, { headers: { cookie: `kxm_session_7331=${secret}` } }));
      const text = await response.text();
      if (response.status !== 200) throw new Error(`${target}: ${response.status} ${text.slice(0, 200)}`);
    };
    const times = new Map<string, Sample[]>();
    for (const [name, target] of PAGES) {
      const each: Sample[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        const [began, cpu] = [performance.now(), cpuOfThis()];
        await get(target);
        each.push({ ms: performance.now() - began, cpuMs: (cpuOfThis() - cpu) / 1_000 });
      }
      times.set(name, each);
    }
    await engine.close();
    return times;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const at = (values: number[], share: number) => values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))]!;
const cells = (samples: Sample[]) => {
  const [ms, cpu] = [samples.map((one) => one.ms), samples.map((one) => one.cpuMs)];
  return [at(ms, 0.5), at(ms, 0.95), at(cpu, 0.5)].map((value) => value.toFixed(2).padStart(8)).join("");
};
const [small, large] = [await measure(SMALL), await measure(LARGE)];
console.log(
  `${"whole page, ms: median, p95, processor".padEnd(42)}${`${SMALL.messages.toLocaleString("en")} messages`.padStart(24)}   ${`${LARGE.messages.toLocaleString("en")} messages`.padStart(24)}`,
);
for (const [name, samples] of large) {
  const [before, after] = [small.get(name)!, samples].map((each) =>
    at(
      each.map(({ cpuMs }) => cpuMs),
      0.5,
    ),
  ) as [number, number];
  console.log(`${name.padEnd(42)}${cells(small.get(name)!)}   ${cells(samples)}   ${(after / before).toFixed(1)} × of the processor`);
}
