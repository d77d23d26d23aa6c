// What runs used and cost since a time: summed from the projections of the newest runs, so that a page costs the same however much is stored.
import type { SyncRunRow } from "../db/schema.ts";
import type { RunCursor } from "../db/sync.ts";
import type { Stores } from "../db/tx.ts";
import type { UsageSum } from "../protocol/runs.ts";
import { emptySum } from "./projection-usage.ts";

const PAGE = 100;
const RUNS_MAX = 500; // looked at over all projects
const RUNS_MIN = 10; // of each project, however many there are

/** What a run used, and when it last changed (ms). */
export type RunCost = { project: string; projectId: string; runId: string; title: string; at: number; usage: UsageSum };
export type Costs = {
  total: UsageSum;
  /** The same sum by model and by agent, the dearest first. `runs` is how many runs have a part in it. */
  models: (UsageSum & { runs: number })[];
  agents: (UsageSum & { runs: number })[];
  /** The newest first. */
  runs: RunCost[];
  /** Older runs since that time were not looked at. */
  capped: boolean;
};

/** @param since ms: runs that changed from then on, each with all it ever used */
export async function costs(read: Stores, projects: readonly string[], since: number): Promise<Costs> {
  const limit = Math.max(RUNS_MIN, Math.floor(RUNS_MAX / Math.max(1, projects.length)));
  const found = await Promise.all(projects.map((project) => newest(read, project, since, limit)));
  const rows = found.flatMap((one) => one.rows).sort((a, b) => b.lastReceivedAt - a.lastReceivedAt);
  const total = emptySum("");
  const [models, agents] = [new Map<string, UsageSum & { runs: number }>(), new Map<string, UsageSum & { runs: number }>()];
  for (const { projection } of rows) {
    add(total, projection.usage);
    for (const [sums, section] of [
      [models, projection.models],
      [agents, projection.agents],
    ] as const) {
      for (const sum of section.items) {
        const into = sums.get(sum.name) ?? { ...emptySum(sum.name), runs: 0 };
        add(into, sum);
        into.runs++;
        sums.set(sum.name, into);
      }
    }
  }
  return {
    total,
    models: dearestFirst(models),
    agents: dearestFirst(agents),
    runs: rows.map(({ project, projectId, runId, displayTitle, workflowId, lastReceivedAt, projection }) => ({
      project,
      projectId,
      runId,
      title: displayTitle ?? workflowId ?? runId,
      at: lastReceivedAt,
      usage: projection.usage,
    })),
    capped: found.some((one) => one.capped),
  };
}

async function newest(read: Stores, project: string, since: number, limit: number): Promise<{ rows: SyncRunRow[]; capped: boolean }> {
  const rows: SyncRunRow[] = [];
  for (let after: RunCursor | undefined; ; ) {
    const page = await read.sync.runsOfProject(project, PAGE, after);
    for (const row of page) {
      if (row.lastReceivedAt < since) return { rows, capped: false };
      if (rows.length === limit) return { rows, capped: true };
      rows.push(row);
    }
    const last = page.at(-1);
    if (!last || page.length < PAGE) return { rows, capped: false };
    after = { at: last.lastReceivedAt, runId: last.runId };
  }
}

function add(into: UsageSum, sum: UsageSum): void {
  for (const kind of ["inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "unknown"] as const)
    into[kind] = Math.min(into[kind] + sum[kind], Number.MAX_SAFE_INTEGER);
  into.estimated ||= sum.estimated;
  for (const [currency, cost] of Object.entries(sum.costs)) into.costs[currency] = Math.round(((into.costs[currency] ?? 0) + cost) * 1e6) / 1e6;
}

/** The cost of a sum in the currency that has most of it; amounts in others only break ties. */
const weight = ({ costs: byCurrency }: UsageSum): number => Math.max(0, ...Object.values(byCurrency));
const dearestFirst = <Sum extends UsageSum>(sums: ReadonlyMap<string, Sum>): Sum[] =>
  [...sums.values()].sort((a, b) => weight(b) - weight(a) || (a.name < b.name ? -1 : 1));
