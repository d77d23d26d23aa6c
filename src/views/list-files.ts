// Files of the lists whose pages only show them: journal, context, sync and machines. Each holds at most EXPORT_ROWS_MAX rows, from the place of its address on.
import type { AlertRow, SyncConflictRow, SyncRunRow } from "../db/schema.ts";
import * as state from "../hub/context/state.ts";
import * as journal from "../hub/journal.ts";
import * as runtimes from "../hub/runtimes.ts";
import type { ContextItem } from "../protocol/context.ts";
import type { JournalEntry } from "../protocol/journal.ts";
import { PAGE_ROWS_MAX } from "../protocol/limits.ts";
import type { Runtime } from "../protocol/runtimes.ts";
import { download, type ExportColumn } from "./export.ts";
import { EXPORT_ROWS_MAX } from "./file-links.tsx";
import { categoryOf, entriesBefore, placeOf as journalPlace } from "./journal.tsx";
import { projectsOf } from "./listing.ts";
import { type Screen, screen, type Visit } from "./screen.ts";
import { showsAll, tabOf } from "./sync.tsx";

const ABOVE_ALL = "~";
const iso = (at: number | null | undefined) => (at === null || at === undefined ? undefined : new Date(at).toISOString());

/** Rows of pages behind one another. @param page gives up to so many rows behind the last one */
async function gathered<Row>(page: (last: Row | undefined, limit: number) => Promise<Row[]>): Promise<Row[]> {
  const rows: Row[] = [];
  for (;;) {
    const found = await page(rows.at(-1), Math.min(PAGE_ROWS_MAX, EXPORT_ROWS_MAX - rows.length));
    rows.push(...found);
    if (found.length < PAGE_ROWS_MAX || rows.length >= EXPORT_ROWS_MAX) return rows;
  }
}

const JOURNAL: readonly ExportColumn<JournalEntry & { project: string }>[] = [
  ["id", ({ id }) => id],
  ["project", ({ project }) => project],
  ["createdAt", ({ createdAt }) => createdAt],
  ["category", ({ category }) => category],
  ["area", ({ area }) => area],
  ["severity", ({ severity }) => severity],
  ["summary", ({ summary }) => summary],
  ["details", ({ details }) => details],
  ["evidence", ({ evidence }) => evidence.join("\n")],
  ["agentId", ({ agentId }) => agentId],
  ["runId", ({ runId }) => runId],
  ["stageId", ({ stageId }) => stageId],
  ["decided", ({ promotion }) => promotion?.at(-1)?.to],
];

async function journalFile(visit: Visit): Promise<Response> {
  const [projects, category] = [projectsOf(visit), categoryOf(visit.url)];
  const rows = await gathered<{ id: string } & Parameters<typeof journal.entryOf>[0]>(async (last, limit) => {
    const page = await entriesBefore(visit.hub.engine.read, projects, category, last?.id ?? journalPlace(visit.url), limit);
    return page.rows;
  });
  return download(
    "journal",
    visit.params["format"]!,
    JOURNAL,
    rows.map((row) => ({ ...journal.entryOf(row), project: row.project })),
  );
}

const CONTEXT: readonly ExportColumn<ContextItem>[] = [
  ["id", ({ id }) => id],
  ["project", ({ project }) => project],
  ["key", ({ stateKey }) => stateKey],
  ["value", ({ summary }) => summary],
  ["authority", ({ authority }) => authority],
  ["confidence", ({ confidence }) => confidence],
  ["since", ({ validFrom }) => validFrom],
  ["from", ({ provenance }) => provenance.sourceRef ?? provenance.sourceType],
  ["evidence", ({ evidenceRefs }) => evidenceRefs?.join("\n")],
];

/** What holds now, by project and key. */
async function contextFile(visit: Visit): Promise<Response> {
  const { context } = visit.hub.engine.read;
  const items: ContextItem[] = [];
  for (const project of projectsOf(visit)) {
    const rows = await gathered<Awaited<ReturnType<typeof context.currentAfter>>[number]>((last, limit) =>
      context.currentAfter(project, last?.stateKey ?? "", limit),
    );
    items.push(...rows.map(state.itemOf));
    if (items.length >= EXPORT_ROWS_MAX) break;
  }
  return download("context", visit.params["format"]!, CONTEXT, items.slice(0, EXPORT_ROWS_MAX));
}

const LOOKED: readonly ExportColumn<SyncConflictRow | AlertRow>[] = [
  ["acknowledgedAt", ({ acknowledgedAt }) => iso(acknowledgedAt)],
  ["acknowledgedBy", ({ acknowledgedBy }) => acknowledgedBy],
  ["reason", ({ reason }) => reason],
];
const CONFLICTS: readonly ExportColumn<SyncConflictRow>[] = [
  ["id", ({ id }) => id],
  ["project", ({ project }) => project],
  ["code", ({ code }) => code],
  ["projectId", ({ projectId }) => projectId],
  ["runId", ({ runId }) => runId],
  ["sequence", ({ sequence }) => sequence],
  ["runtimeId", ({ runtimeId }) => runtimeId],
  ["firstAt", ({ firstAt }) => iso(firstAt)],
  ["lastAt", ({ lastAt }) => iso(lastAt)],
  ["count", ({ count }) => count],
  ...LOOKED,
];
const ALERTS: readonly ExportColumn<AlertRow>[] = [
  ["id", ({ id }) => id],
  ["project", ({ project }) => project],
  ["kind", ({ kind }) => kind],
  ["severity", ({ severity }) => severity],
  ["summary", ({ summary }) => summary],
  ["raisedAt", ({ raisedAt }) => iso(raisedAt)],
  ["lastAt", ({ lastAt }) => iso(lastAt)],
  ["count", ({ count }) => count],
  ...LOOKED,
];
const GAPS: readonly ExportColumn<SyncRunRow>[] = [
  ["project", ({ project }) => project],
  ["projectId", ({ projectId }) => projectId],
  ["runId", ({ runId }) => runId],
  ["title", ({ displayTitle }) => displayTitle],
  ["runtimeId", ({ homeRuntimeId }) => homeRuntimeId],
  ["waitsForSequence", ({ cursor }) => cursor + 1],
  ["held", ({ held }) => held],
  ["lastReceivedAt", ({ lastReceivedAt }) => iso(lastReceivedAt)],
];

/** The tab of the address, one project after another, each newest first. */
async function syncFile(visit: Visit): Promise<Response> {
  const { conflicts, alerts, sync } = visit.hub.engine.read;
  const [projects, all, format] = [projectsOf(visit), showsAll(visit.url), visit.params["format"]!];
  const over = async <Row>(page: (project: string, last: Row | undefined, limit: number) => Promise<Row[]>): Promise<Row[]> => {
    const each = await Promise.all(projects.map((project) => gathered<Row>((last, limit) => page(project, last, limit))));
    return each.flat().slice(0, EXPORT_ROWS_MAX);
  };
  const tab = tabOf(visit.url);
  if (tab === "alerts")
    return download(
      "alerts",
      format,
      ALERTS,
      await over<AlertRow>((project, last, limit) => (all ? alerts.page : alerts.openPage)(project, last?.id ?? ABOVE_ALL, limit)),
    );
  if (tab === "gaps")
    return download(
      "gaps",
      format,
      GAPS,
      await over<SyncRunRow>((project, last, limit) => sync.gaps(project, limit, last && { at: last.lastReceivedAt, runId: last.runId })),
    );
  const rows = await over<SyncConflictRow>((project, last, limit) =>
    (all ? conflicts.page : conflicts.openPage)(project, last?.id ?? ABOVE_ALL, limit),
  );
  return download("conflicts", format, CONFLICTS, rows);
}

const MACHINES: readonly ExportColumn<Runtime>[] = [
  ["runtimeId", ({ runtimeId }) => runtimeId],
  ["project", ({ project }) => project],
  ["host", ({ host }) => host],
  ["version", ({ version }) => version],
  ["presence", ({ presence }) => presence],
  ["heartbeatAt", ({ heartbeatAt }) => heartbeatAt],
  ["runs", ({ runTotal }) => runTotal],
  ["pending", ({ report }) => report?.outbox?.reduce((sum, { pending }) => sum + pending, 0)],
];

async function runtimesFile(visit: Visit): Promise<Response> {
  const { hub } = visit;
  const each = await Promise.all(
    projectsOf(visit).map(async (project) => (await runtimes.known(hub.engine.read, project)).map(({ runtimeId }) => ({ project, runtimeId }))),
  );
  const known = each.flat().slice(0, EXPORT_ROWS_MAX);
  return download(
    "runtimes",
    visit.params["format"]!,
    MACHINES,
    await Promise.all(known.map(({ project, runtimeId }) => runtimes.find(hub, project, runtimeId))),
  );
}

const file = (list: string, run: (visit: Visit) => Promise<Response>) =>
  screen({ method: "GET", path: `/${list}/export/:format`, role: "viewer", run });
/** One address for each file: `/journal/export/csv`. */
export const screens: readonly Screen[] = [
  file("journal", journalFile),
  file("context", contextFile),
  file("sync", syncFile),
  file("runtimes", runtimesFile),
];
