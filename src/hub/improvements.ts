// Improvements: what the journal of a project teaches, ranked. Computed on demand over bounded, recent entries.
import type { Stores } from "../db/tx.ts";
import {
  type AreaReport,
  type Category,
  type ImprovementSignal,
  type Improvements,
  type JournalEntry,
  SEVERITIES,
  type Severity,
} from "../protocol/journal.ts";
import { AREAS, type WorkflowRun } from "../protocol/workflows.ts";
import { entryOf } from "./journal.ts";
import { runOf } from "./workflows/runs.ts";

/** Entries and runs looked at, newest first: keeps the report's cost independent of what is stored. */
const ENTRIES_MAX = 5_000;
const RUNS_MAX = 1_000;
const PAGE = 500;
const WEIGHT: Record<Severity, number> = { error: 3, warning: 2, info: 1 };
const REPORTED: readonly Category[] = ["error", "contradiction", "lesson", "skill-candidate"];

/** The report of a project. */
export async function improvements(read: Stores, project: string): Promise<Improvements> {
  const entries: JournalEntry[] = [];
  for (let before = "￿"; entries.length < ENTRIES_MAX; ) {
    const page = await read.journal.ofProject(project, before, PAGE);
    entries.push(...page.map(entryOf));
    if (page.length < PAGE) break;
    before = page.at(-1)!.id;
  }
  const runs = new Map((await read.workflows.ofProject(project, Number.MAX_SAFE_INTEGER, RUNS_MAX)).map((row) => [row.id, runOf(row)]));
  return { reports: reportsOf(entries), signals: signalsOf(entries, runs), entries: await read.journal.count(project) };
}

function reportsOf(entries: JournalEntry[]): AreaReport[] {
  const byArea = Map.groupBy(entries, ({ area }) => area);
  return AREAS.flatMap((area) => {
    const own = byArea.get(area);
    if (!own) return [];
    const count = (category: Category) => own.filter((entry) => entry.category === category).length;
    const priorities = own
      .filter(({ category }) => REPORTED.includes(category))
      .sort((a, b) => WEIGHT[b.severity] - WEIGHT[a.severity] || b.createdAt.localeCompare(a.createdAt) || a.id.localeCompare(b.id))
      .slice(0, 10);
    return [{ area, total: own.length, errors: count("error"), contradictions: count("contradiction"), lessons: count("lesson"), priorities }];
  });
}

function signalsOf(entries: JournalEntry[], runs: ReadonlyMap<string, WorkflowRun>): ImprovementSignal[] {
  const answered = new Set(
    entries.filter(({ category }) => category === "decision" || category === "lesson").flatMap(({ relatedEntryIds }) => relatedEntryIds),
  );
  const open = entries.filter(({ id, category, promotion }) => {
    if (category === "contradiction") return !answered.has(id);
    if (category === "skill-candidate") return (promotion ?? []).length === 0;
    return category === "error" || category === "lesson";
  });
  const groups = Map.groupBy(open, (entry) => keyOf(entry, runs).key);
  return [...groups.values()]
    .map((group) => signalOf(group, runs))
    .sort(
      (a, b) =>
        Number(b.overrideTier === "security") - Number(a.overrideTier === "security") ||
        b.priority - a.priority ||
        b.frequency - a.frequency ||
        a.key.localeCompare(b.key),
    )
    .slice(0, 20);
}

function keyOf(entry: JournalEntry, runs: ReadonlyMap<string, WorkflowRun>): { key: string; basis: ImprovementSignal["basis"] } {
  const named = entry.evidence
    .map((line) => /^class:([a-z0-9_]{1,64})$/.exec(line.trim())?.[1])
    .find((name) => name !== undefined && name !== "unknown");
  if (named) return { key: `${entry.category}|class:${named}`, basis: "class" };
  const run = runs.get(entry.runId);
  if (entry.category === "error" && entry.stageId && run) return { key: `error|stage:${run.definitionId}/${entry.stageId}`, basis: "stage" };
  return {
    key: `${entry.category}|summary:${entry.summary
      .normalize("NFKC")
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}]+/gu, " ")
      .trim()
      .slice(0, 200)}`,
    basis: "summary",
  };
}

function signalOf(group: JournalEntry[], runs: ReadonlyMap<string, WorkflowRun>): ImprovementSignal {
  const newest = group.reduce((a, b) => (b.createdAt > a.createdAt ? b : a));
  const runIds = [...new Set(group.map(({ runId }) => runId))];
  const areas = [...Map.groupBy(group, ({ area }) => area)].sort(
    ([a, own], [b, other]) => other.length - own.length || AREAS.indexOf(a) - AREAS.indexOf(b),
  );
  const severity = SEVERITIES.toReversed().find((level) => group.some((entry) => entry.severity === level))!;
  const costs = runIds.flatMap((id) => {
    const run = runs.get(id);
    return run ? [Math.max(1, run.stages.reduce((sum, { attempts }) => sum + attempts, 0) + (run.transitions?.length ?? 0))] : [];
  });
  const workflowCost = costs.length > 0 ? costs.reduce((a, b) => a + b, 0) / costs.length : null;
  const confidence = 0.5 + 0.5 * (group.filter(({ evidence }) => evidence.length > 0).length / group.length);
  const area = areas[0]![0];
  return {
    ...keyOf(newest, runs),
    category: newest.category,
    area,
    ...(area === "security" && { overrideTier: "security" as const }),
    frequency: runIds.length,
    runIds: runIds.slice(0, 16),
    entryIds: group.map(({ id }) => id).slice(0, 16),
    severity,
    severityWeight: WEIGHT[severity],
    workflowCost,
    costBasis: workflowCost === null ? "unknown" : "run-attempts",
    confidence,
    priority: Math.round(runIds.length * WEIGHT[severity] * (workflowCost ?? 1) * confidence * 1000) / 1000,
    summary: newest.summary,
  };
}
