// Runs of both kinds in one list: those that Runtimes push and those of the hub's own workflows, newest change first.
// Only the heads of many runs are looked at; the records are read for the rows of one page.

import type { SyncRunRow } from "../db/schema.ts";
import type { RunHead } from "../db/sync.ts";
import type { WorkflowHead } from "../db/workflows.ts";
import { COUNT_EXACT_MAX, LIST_SCAN_ROWS_MAX } from "../protocol/limits.ts";
import type { RunSummary } from "../protocol/runs.ts";
import type { WorkflowRun } from "../protocol/workflows.ts";
import type { Hub } from "./hub.ts";
import { summaries } from "./runs.ts";
import { runOf } from "./workflows/runs.ts";

/** What people look for, and the statuses of either kind that it means. `all` also holds runs whose first event is still missing. */
export const RUN_VIEWS = {
  moving: {
    runtime: ["queued", "pending", "created", "preparing", "running", "waiting", "blocked_uncertain", "cancelling"],
    workflow: ["running", "waiting"],
  },
  waiting: { runtime: ["waiting", "blocked_uncertain"], workflow: ["waiting"] },
  failed: { runtime: ["failed"], workflow: ["failed"] },
  completed: { runtime: ["completed"], workflow: ["completed"] },
  cancelled: { runtime: ["cancelled"], workflow: [] },
  all: { runtime: undefined, workflow: undefined },
} as const satisfies Record<string, { runtime: readonly string[] | undefined; workflow: readonly string[] | undefined }>;
export type RunView = keyof typeof RUN_VIEWS;
export type RunKind = "runtime" | "workflow";

/** What narrows a list beside its view. */
export type RunFilter = {
  view: RunView;
  kind?: RunKind | undefined;
  status?: string | undefined;
  /** Part of the Runtime's id, or of its host's name as `hosts` says. */
  runtimeId?: string | undefined;
  workflow?: string | undefined;
  /** Part of a title or an id. */
  words?: string | undefined;
};
export type RunPlace = { at: number; id: string };

/** A run with what a list shows of it. */
export type ListedRun =
  | { kind: "runtime"; at: number; id: string; run: RunSummary; row: SyncRunRow; host: string | undefined }
  | { kind: "workflow"; at: number; id: string; run: WorkflowRun };

type Head = { kind: "runtime"; at: number; id: string; head: RunHead } | { kind: "workflow"; at: number; id: string; head: WorkflowHead };

/**
 * One page over projects. A filter looks at a bounded number of runs: a rare word gives a short page with a way on, not a slow one.
 * @returns the rows, and the place behind which the next page begins
 */
export async function list(
  hub: Hub,
  projects: readonly string[],
  filter: RunFilter,
  { after, limit }: { after: RunPlace | undefined; limit: number },
): Promise<{ runs: ListedRun[]; next: RunPlace | undefined }> {
  const { kept, next } = await keptHeads(hub, projects, filter, { after, limit });
  return { runs: await listed(hub, kept), next };
}

/** How many runs fit a filter, at most `limit`; `more` when there may be others. Costs no more than a page. */
export async function countFitting(
  hub: Hub,
  projects: readonly string[],
  filter: RunFilter,
  limit: number,
): Promise<{ count: number; more: boolean }> {
  const { kept, next } = await keptHeads(hub, projects, filter, { after: undefined, limit });
  return { count: kept.length, more: next !== undefined };
}

async function keptHeads(
  hub: Hub,
  projects: readonly string[],
  filter: RunFilter,
  { after, limit }: { after: RunPlace | undefined; limit: number },
): Promise<{ kept: Head[]; next: RunPlace | undefined }> {
  const keeps = keeper(filter);
  const kept: Head[] = [];
  let [from, looked] = [after, 0];
  for (;;) {
    const heads = await headsAfter(hub, projects, filter, { after: from, limit: limit + 1 });
    for (const head of heads) {
      if (kept.length === limit || looked++ === LIST_SCAN_ROWS_MAX) return { kept, next: from };
      from = { at: head.at, id: head.id };
      if (keeps(head)) kept.push(head);
    }
    if (heads.length <= limit) return { kept, next: undefined };
  }
}

/** How many runs a view has; beyond COUNT_EXACT_MAX it means "or more". */
export async function count({ engine: { read } }: Hub, projects: readonly string[], view: RunView): Promise<number> {
  const { runtime, workflow } = RUN_VIEWS[view];
  const limit = COUNT_EXACT_MAX + 1;
  const counts = projects.flatMap((project) => [
    ...(runtime ? runtime.map((status) => read.sync.countRunsOfStatus(project, status, limit)) : [read.sync.countRuns(project, limit)]),
    ...(workflow ? workflow.map((status) => read.workflows.count(project, status, limit)) : [read.workflows.count(project, undefined, limit)]),
  ]);
  return (await Promise.all(counts)).reduce((sum, one) => sum + one, 0);
}

/** The newest heads behind a place, at most `limit`, from every index that can have some. */
async function headsAfter(
  { engine: { read } }: Hub,
  projects: readonly string[],
  { view, kind, status, runtimeId }: RunFilter,
  { after, limit }: { after: RunPlace | undefined; limit: number },
): Promise<Head[]> {
  const statuses = (of: readonly string[] | undefined) => (status === undefined ? of : of === undefined || of.includes(status) ? [status] : []);
  const runtime = kind === "workflow" ? [] : statuses(RUN_VIEWS[view].runtime);
  const workflow = kind === "runtime" || runtimeId !== undefined ? [] : statuses(RUN_VIEWS[view].workflow);
  const from = after && { at: after.at, runId: after.id };
  const sources = projects.flatMap((project) => [
    ...(runtimeId !== undefined && runtime?.length !== 0
      ? [read.sync.heads(project, { runtimeId }, limit, from)]
      : (runtime ?? [undefined]).map((one) => read.sync.heads(project, one === undefined ? {} : { status: one }, limit, from))),
    ...(workflow ?? [undefined]).map((one) => read.workflows.heads(project, one, limit, after)),
  ]);
  const heads = (await Promise.all(sources))
    .flat()
    .map(
      (head): Head =>
        "runId" in head
          ? { kind: "runtime", at: head.lastReceivedAt, id: head.runId, head }
          : { kind: "workflow", at: head.updatedAt, id: head.id, head },
    );
  return heads.sort((a, b) => b.at - a.at || (a.id < b.id ? 1 : -1)).slice(0, limit);
}

function keeper({ view, status, runtimeId, workflow, words }: RunFilter): (head: Head) => boolean {
  const wanted = status === undefined ? RUN_VIEWS[view].runtime : [status];
  const [flow, text] = [workflow?.toLowerCase(), words?.toLowerCase()];
  const has = (part: string | undefined, ...texts: (string | null)[]) => !part || texts.some((one) => one?.toLowerCase().includes(part));
  return (one) => {
    if (one.kind === "workflow") return has(flow, one.head.definitionId) && has(text, one.head.definitionId, one.id);
    const { head } = one;
    // One index cannot serve status and Runtime together.
    if (runtimeId !== undefined && wanted && !(wanted as readonly (string | null)[]).includes(head.status)) return false;
    return has(flow, head.workflowId) && has(text, head.displayTitle, head.workflowId, head.runId);
  };
}

/** The rows of one page with their records, in the order of the heads. A run that retention took meanwhile is left out. */
async function listed(hub: Hub, heads: readonly Head[]): Promise<ListedRun[]> {
  const { read } = hub.engine;
  const found = await Promise.all(
    heads.map(async (one) =>
      one.kind === "runtime"
        ? { one, row: await read.sync.findRun(one.head.projectId, one.head.runId) }
        : { one, flow: await read.workflows.find(one.id) },
    ),
  );
  const rows = found.flatMap(({ row }) => (row ? [row] : []));
  const shown = new Map((await summaries(hub, rows)).map((run, index) => [rows[index]!, run]));
  const hosts = new Map<string, string | undefined>();
  for (const { project, homeRuntimeId } of rows) {
    const key = JSON.stringify([project, homeRuntimeId]);
    if (!hosts.has(key)) hosts.set(key, (await read.runtimes.find(project, homeRuntimeId))?.host ?? undefined);
  }
  return found.flatMap(({ one: { at, id }, row, flow }): ListedRun[] => {
    if (row) return [{ kind: "runtime", at, id, run: shown.get(row)!, row, host: hosts.get(JSON.stringify([row.project, row.homeRuntimeId])) }];
    return flow ? [{ kind: "workflow", at, id, run: runOf(flow) }] : [];
  });
}
