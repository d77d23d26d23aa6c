// Runs as they are read: from the folded row, so that a list or a page costs the same for a run of ten events and of a million.
// Codes: run_not_found.
import type { SyncRunRow } from "../db/schema.ts";
import type { RunCursor } from "../db/sync.ts";
import type { Stores } from "../db/tx.ts";
import { HubError } from "../protocol/errors.ts";
import { EVENTS_PAGE_BYTES_MAX } from "../protocol/limits.ts";
import type { RunDetail, RunEventItem, RunEventsAnswer, RunSummary, RunsAnswer } from "../protocol/runs.ts";
import { iso, isoOrNone } from "../protocol/time.ts";
import type { Hub } from "./hub.ts";
import { tokensOf } from "./projection-usage.ts";
import { presenceOf } from "./runtimes.ts";

const READ_ROWS = 25;
const FILTER_PAGES = 20; // pages that a filter by two things looks through for one page

export type RunsFilter = { status?: string | undefined; runtimeId?: string | undefined; after?: string | undefined; limit: number };

/** A page of a project's runs, newest change first. */
export async function list(hub: Hub, project: string, filter: RunsFilter): Promise<RunsAnswer> {
  const { read } = hub.engine;
  const { rows, next } = await pageOf(read, project, filter);
  return { runs: await summaries(hub, rows), ...(next && { next: `${next.lastReceivedAt}.${next.runId}` }) };
}

/** One run in full. @param project the caller's only project, or null for every one @throws HubError run_not_found */
export async function find(hub: Hub, project: string | null, projectId: string, runId: string): Promise<RunDetail> {
  const run = await findRow(hub.engine.read, project, projectId, runId);
  const [summary] = await summaries(hub, [run]);
  return { ...summary!, projection: run.projection };
}

/** The row of a run. @throws HubError run_not_found */
export async function findRow(read: Stores, project: string | null, projectId: string, runId: string): Promise<SyncRunRow> {
  const run = await read.sync.findRun(projectId, runId);
  if (!run || (project !== null && run.project !== project)) throw new HubError("run_not_found", `there is no run ${runId} of ${projectId}`);
  return run;
}

/** A page of a run's events in order, bounded in number and bytes; held ones are marked. */
export async function events(read: Stores, run: SyncRunRow, { after, limit }: { after: number; limit: number }): Promise<RunEventsAnswer> {
  const items: RunEventItem[] = [];
  let [bytes, last] = [0, after];
  for (;;) {
    const rows = await read.sync.eventsAfter(run.projectId, run.runId, last, Math.min(READ_ROWS, limit - items.length + 1));
    for (const { sequence, hash, receivedAt, record } of rows) {
      bytes += Buffer.byteLength(record);
      if (items.length === limit || (items.length > 0 && bytes > EVENTS_PAGE_BYTES_MAX)) return { events: items, next: last };
      items.push({ sequence, hash, receivedAt: iso(receivedAt), held: sequence > run.cursor, event: JSON.parse(record) });
      last = sequence;
    }
    if (rows.length === 0) return { events: items };
  }
}

/** Rows with what lists show of them. */
export async function summaries(hub: Hub, rows: SyncRunRow[]): Promise<RunSummary[]> {
  const { read } = hub.engine;
  const runtimes = new Map<string, RunSummary["presence"]>();
  for (const { project, homeRuntimeId } of rows) {
    const key = JSON.stringify([project, homeRuntimeId]);
    if (!runtimes.has(key)) runtimes.set(key, presenceOf(await read.runtimes.find(project, homeRuntimeId), hub.clock(), hub.settings.staleMs));
  }
  return rows.map((row) => summaryOf(row, runtimes.get(JSON.stringify([row.project, row.homeRuntimeId]))!));
}

function summaryOf(row: SyncRunRow, presence: RunSummary["presence"]): RunSummary {
  const { projection } = row;
  const done = projection.steps.items.filter(({ attempts }) => attempts.at(-1)?.endedAt !== undefined).length;
  return {
    project: row.project,
    projectId: row.projectId,
    runId: row.runId,
    runtimeId: row.homeRuntimeId,
    status: row.status ?? undefined,
    workflowId: row.workflowId ?? undefined,
    displayTitle: row.displayTitle ?? undefined,
    stepId: row.stepId ?? undefined,
    startedAt: isoOrNone(row.startedAt),
    updatedAt: isoOrNone(row.updatedAt),
    endedAt: isoOrNone(row.endedAt),
    firstReceivedAt: iso(row.firstReceivedAt),
    lastReceivedAt: iso(row.lastReceivedAt),
    lastSequence: row.cursor,
    pendingGap: row.held > 0,
    held: row.held,
    presence,
    orphaned: presence !== "online",
    waiting: projection.waiting,
    costs: projection.usage.costs,
    tokens: tokensOf(projection.usage),
    stepsDone: done,
    stepsEntered: projection.steps.items.length + projection.steps.dropped,
  };
}

/** One page by an index. Status and Runtime together have none: the Runtime's runs are looked through, a bounded number of pages at a time. */
async function pageOf(read: Stores, project: string, { status, runtimeId, after, limit }: RunsFilter) {
  let from = after === undefined ? undefined : readCursor(after);
  const rows: SyncRunRow[] = [];
  const page = () =>
    runtimeId !== undefined
      ? read.sync.runsOfRuntime(project, runtimeId, limit + 1, from)
      : status !== undefined
        ? read.sync.runsOfStatus(project, status, limit + 1, from)
        : read.sync.runsOfProject(project, limit + 1, from);
  for (let looked = 1; ; looked++) {
    const found = await page();
    for (const row of found) {
      if (status !== undefined && row.status !== status) continue;
      if (rows.length === limit) return { rows, next: rows.at(-1)! };
      rows.push(row);
    }
    const last = found.at(-1);
    if (!last || found.length <= limit) return { rows };
    if (looked === FILTER_PAGES) return { rows, next: last };
    from = { at: last.lastReceivedAt, runId: last.runId };
  }
}

function readCursor(text: string): RunCursor {
  const [, at, runId] = /^(\d{1,16})\.(.+)$/.exec(text) ?? [];
  if (at === undefined || runId === undefined) throw new HubError("protocol_error", "after is not a cursor of this list");
  return { at: Number(at), runId };
}
