// What stands in a large hub besides messages and agents, as rows to put straight into the file, and the pages that show them.
import { sha256 } from "../../src/protocol/canonical.ts";
import { HASH } from "../support/sync-events.ts";

export type Row = Record<string, string | number | null>;
/** How many of each there are in the large hub; the small one has a hundredth. */
const COUNTS = {
  approvals: 2_000,
  audit: 100_000,
  workflow_journal: 50_000,
  context_items: 20_000,
  search_documents: 100_000,
  sync_conflicts: 1_000,
  alerts: 1_000,
  webhooks_out: 20,
  webhook_deliveries: 20_000,
  saved_views: 20,
} as const;
type Table = keyof typeof COUNTS;
type Making = { now: number; id: (prefix: string, n: number) => string };

const AUTHORED = { authority: "evidence", confidence: "verified" };
const CATEGORIES = ["plan", "decision", "error", "lesson", "observation"];

/** The rows of each table. */
const ROWS: Record<Table, (n: number, making: Making) => Row> = {
  approvals: (n, { now, id }) => ({
    ...{ id: id("apr", n), project: "shop", project_id: "prj_bench00001", run_id: id("run", n % 500), runtime_id: `rtm_${"0".repeat(24)}` },
    ...{ step_id: "deliver", attempt: 1, title: `git push ${n}`, content: JSON.stringify({ command: `git push ${n}` }), content_hash: HASH },
    ...{
      status: n < 200 ? "pending" : n % 3 ? "approved" : "rejected",
      requested_at: now - n * 1_000,
      decided_at: n < 200 ? null : now - n * 500,
      updated_at: now,
    },
  }),
  audit: (n, { now, id }) => ({
    ...{ project: "shop", seq: n + 1, at: now - n * 1_000, actor: id("ses", n % 50), role: "operator", action: n % 2 ? "opened" : "force_released" },
    ...{ subject_id: id("msg", n), data: "{}" },
  }),
  workflow_journal: (n, { now, id }) => {
    const category = CATEGORIES[n % CATEGORIES.length]!;
    const said = { category, area: "gates", severity: "info", summary: `Entry ${n}` };
    const record = {
      id: id("journal", n),
      runId: id("run", n % 100),
      agentId: id("agt", n % 500),
      ...said,
      evidence: ["run notes"],
      relatedEntryIds: [],
      createdAt: new Date(now).toISOString(),
    };
    return {
      id: record.id,
      project: "shop",
      run_id: record.runId,
      agent_id: record.agentId,
      ...said,
      created_at: now - n,
      hash: "h",
      revision: n + 1,
      record: JSON.stringify(record),
    };
  },
  context_items: (n, { now, id }) => {
    const status = n < 100 ? "proposed" : n < 5_000 ? "current" : "superseded";
    const key = `area/${n < 4_900 ? n : n - 4_900}`; // a hundred keys have two values
    const item = {
      id: id("ctx", n),
      kind: "state",
      project: "shop",
      summary: `Value ${n}`,
      ...AUTHORED,
      stateKey: key,
      status,
      provenance: { sourceType: "peer", sourceRef: `proposed-by:${id("agt", n % 500)}` },
    };
    const times = { observed_at: now, valid_from: now - n, valid_until: status === "superseded" ? now - 1 : null, created_at: now };
    return {
      id: item.id,
      project: "shop",
      kind: "state",
      state_key: key,
      status,
      summary: item.summary,
      ...AUTHORED,
      source_type: "peer",
      ...times,
      revision: n + 1,
      record: JSON.stringify(item),
    };
  },
  search_documents: (n, { now, id }) => ({
    ...{
      doc_id: n + 1,
      kind: n % 2 ? "message" : "journal",
      subject_id: id(n % 2 ? "msg" : "journal", n),
      project: "shop",
      at: now - n,
      sender: `agent-${n % 500}`,
    },
    ...{
      title: `Title ${n}`,
      body: `The ledger settles batch ${n % 997} with word${n % 10_007}`,
      scope: `px${sha256("shop").slice(0, 16)} kx${n % 2 ? "message" : "journal"}`,
      through: 0,
    },
  }),
  sync_conflicts: (n, { now, id }) => ({
    ...{ id: id("cfl", n), project: "shop", project_id: "prj_bench00001", run_id: id("run", n % 500), sequence: n + 1, code: "sync_sequence_reused" },
    ...{
      runtime_id: `rtm_${"0".repeat(24)}`,
      existing_hash: "h",
      hash: `h${n}`,
      record: "{}",
      first_at: now - n,
      last_at: now,
      count: 1,
      acknowledged_at: n < 100 ? null : now,
    },
  }),
  alerts: (n, { now, id }) => ({
    ...{ id: id("alt", n), project: "shop", kind: "wal_size", dedupe_key: `k${n}`, severity: "warning", summary: `Alert ${n}`, data: "{}" },
    ...{ raised_at: now - n, last_at: now, count: 1, acknowledged_at: n < 100 ? null : now },
  }),
  webhooks_out: (n, { now, id }) => ({
    ...{
      id: id("whk", n),
      project: "shop",
      url: `https://ci-${n}.example.org/hooks`,
      event_types: '["approvals.*"]',
      secrets: "[]",
      allow_bodies: 0,
      allow_private: 0,
    },
    ...{ last_seq: 0, created_at: now, created_by: "admin" },
  }),
  webhook_deliveries: (n, { now, id }) => ({
    ...{ id: id("dlv", n), webhook_id: id("whk", n % 20), project: "shop", event_seq: n + 1, event_type: "approvals.requested", state: "delivered" },
    ...{ attempts: "[]", body: "{}", created_at: now - n, finished_at: now - n },
  }),
  saved_views: (n, { now, id }) => ({
    ...{
      id: id("view", n),
      owner: "hub operator *",
      place: ["runs", "messages", "agents", "leases", "audit"][n % 5]!,
      name: `View ${n}`,
      name_folded: `view ${n}`,
    },
    ...{
      query: `project=shop&q=${["status:failed", "mode:steer", "machine:machine-3", "holder:agent-9", "action:opened"][n % 5]!}`,
      created_at: now,
    },
  }),
};

/** Fills the tables of this file. @param put inserts so many rows of a table @param share 1 for the large hub */
export function fillMore(put: (table: string, count: number, row: (n: number) => Row) => void, share: number, making: Making): void {
  for (const [table, count] of Object.entries(COUNTS)) put(table, Math.max(20, Math.floor(count * share)), (n) => ROWS[table as Table](n, making));
  const { now } = making;
  const [hour, day] = [3_600_000, 86_400_000];
  const sums = (dimension: string, at: number, name: string): Row => ({
    ...{ project: "shop", dimension, at, name, currency: "USD", amount: 1_250_000, estimated: 0, input_tokens: 9_000, output_tokens: 900 },
    ...{ cache_read_tokens: 0, cache_write_tokens: 0, uses: 3, unknown: 0 },
  });
  put("cost_sums", 24 * 35, (n) => sums("hour", Math.floor(now / hour) * hour - n * hour, ""));
  put("cost_sums", 35, (n) => sums("day", Math.floor(now / day) * day - n * day, ""));
  for (const dimension of ["machine", "agent", "harness", "model"])
    put("cost_sums", 35 * 50, (n) => sums(dimension, Math.floor(now / day) * day - Math.floor(n / 50) * day, `${dimension}-${n % 50}`));
}

/** Every list, with filters that are cheap and filters that are dear. */
export const listsOf = (id: Making["id"]): readonly (readonly [name: string, path: string])[] => [
  ["agents, who works", "/agents?project=shop&show=working"],
  ["agents, who needs a person", "/agents?project=shop&show=needs"],
  ["agents, retired", "/agents?project=shop&show=retired"],
  ["agents, of a machine", "/agents?project=shop&q=machine:machine-3"],
  ["runs, 500 moving", "/runs?project=shop"],
  ["runs, all", "/runs?project=shop&view=all"],
  ["runs, a rare word (looks at 1,000)", "/runs?project=shop&view=all&q=nothing"],
  ["one run", `/runs/prj_bench00001/${id("run", 3)}?project=shop`],
  ["one run, its trouble", `/runs/prj_bench00001/${id("run", 3)}?project=shop&events=trouble`],
  ["leases", "/leases?project=shop"],
  ["leases, a rare holder", "/leases?project=shop&q=holder:nobody"],
  ["approvals", "/approvals?project=shop"],
  ["approvals, decided", "/approvals?project=shop&view=decided"],
  ["runtimes", "/runtimes?project=shop"],
  ["sync, conflicts", "/sync?project=shop"],
  ["sync, alerts", "/sync?project=shop&tab=alerts"],
  ["sync, gaps", "/sync?project=shop&tab=gaps"],
  ["journal", "/journal?project=shop"],
  ["journal, a category", "/journal?project=shop&category=lesson"],
  ["context", "/context?project=shop"],
  ["context, one key", "/context?project=shop&key=area/3"],
  ["cost", "/cost?project=shop"],
  ["audit", "/audit?project=shop"],
  ["audit, a rare action", "/audit?project=shop&q=action:nothing"],
  ["search", "/search?project=shop&q=ledger"],
  ["search, a rare word", "/search?project=shop&q=word77"],
  ["webhooks", "/webhooks?project=shop"],
  ["one webhook", `/webhooks/${id("whk", 3)}?project=shop`],
  ["settings", "/settings"],
  ["saved lists", "/views"],
  ["the rail alone", "/ui/nav?project=shop"],
];
