// What sync refused: both payloads stay for the operator, and each cause raises one alert.
// Codes: conflict_not_found.
import type { AlertRow, SyncConflictRow } from "../db/schema.ts";
import type { Stores, Tx } from "../db/tx.ts";
import type { ConflictsAnswer, SyncConflict, SyncConflictDetail } from "../protocol/alerts.ts";
import { HubError } from "../protocol/errors.ts";
import { iso, isoOrNone } from "../protocol/time.ts";
import * as alerts from "./alerts.ts";

/** An event that was refused, with what was stored before it. */
export type Refused = Pick<
  SyncConflictRow,
  "project" | "projectId" | "runId" | "sequence" | "code" | "runtimeId" | "existingHash" | "hash" | "record"
>;
const SUMMARY: Record<string, string> = {
  sync_sequence_reused: "two different events claim the same place in a run",
  sync_project_mismatch: "a Runtime pushed events of a project that another hub project owns",
  sync_home_runtime_mismatch: "a Runtime pushed events of a run that lives on another Runtime",
};
/** Above every id. */
const TOP = "~";

/** Keeps a refused event, or counts its repeat, and raises one alert per run, sequence and payload. */
export async function keep(tx: Tx, refused: Refused): Promise<void> {
  const known = await tx.conflicts.findKey(refused);
  if (known) return tx.conflicts.update({ ...known, lastAt: tx.now, count: known.count + 1 });
  const id = tx.newId("cfl");
  const open = { acknowledgedAt: null, acknowledgedBy: null, reason: null };
  await tx.conflicts.insert({ ...refused, id, firstAt: tx.now, lastAt: tx.now, count: 1, ...open });
  const { project, projectId, runId, sequence, hash, code, runtimeId, existingHash } = refused;
  await alerts.raise(tx, {
    project,
    kind: "sync_conflict",
    dedupeKey: causeOf(refused),
    severity: "security",
    summary: SUMMARY[code]!,
    subject: id,
    data: { code, projectId, runId, sequence, runtimeId, hash, existingHash },
  });
}

/** What "the same cause" means for the alert of a conflict. */
const causeOf = ({ projectId, runId, sequence, hash }: Pick<SyncConflictRow, "projectId" | "runId" | "sequence" | "hash">): string =>
  JSON.stringify([projectId, runId, sequence, hash]);

/** The alert that was raised for a conflict's cause. */
export const alertOf = (read: Pick<Stores, "alerts">, conflict: SyncConflictRow): Promise<AlertRow | undefined> =>
  read.alerts.findKey(conflict.project, "sync_conflict", causeOf(conflict));

/** Takes note of a conflict, once; a repeat changes nothing. @throws HubError conflict_not_found */
export async function acknowledge(tx: Tx, by: alerts.By, id: string, reason: string): Promise<SyncConflictRow> {
  const conflict = await tx.conflicts.find(id);
  if (!conflict) throw notFound(id);
  if (conflict.acknowledgedAt !== null) return conflict;
  const noted = { ...conflict, acknowledgedAt: tx.now, acknowledgedBy: by.actor, reason };
  await tx.conflicts.update(noted);
  const { project, runId, sequence, code } = conflict;
  const audit = { role: by.role, reason, origin: by.origin };
  tx.append({ project, topic: "sync", type: "conflict_acknowledged", subjectId: id, actor: by.actor, data: { runId, sequence, code }, audit });
  return noted;
}

/** One conflict with both payloads. @param project the caller's only project, or null for every one @throws HubError conflict_not_found */
export async function find(read: Stores, id: string, project: string | null): Promise<SyncConflictDetail & { project: string }> {
  const row = await read.conflicts.find(id);
  if (!row || (project !== null && row.project !== project)) throw notFound(id);
  const owner = await read.sync.owner(row.projectId);
  // What another hub project stored is not shown here, also when this one was refused because of it.
  const existing = owner?.project === row.project ? await read.sync.findEvent(row.projectId, row.runId, row.sequence) : undefined;
  return { ...conflictOf(row), refused: JSON.parse(row.record), ...(existing && { existing: JSON.parse(existing.record) }) };
}

/** A page of a project's conflicts, newest first, without payloads. */
export async function list(
  read: Stores,
  project: string,
  { state, after = TOP, limit }: { state: "open" | "all"; after?: string | undefined; limit: number },
): Promise<ConflictsAnswer> {
  const rows = await (state === "open" ? read.conflicts.openPage : read.conflicts.page)(project, after, limit + 1);
  const shown = rows.slice(0, limit);
  return { conflicts: shown.map(conflictOf), ...(rows.length > limit && { next: shown.at(-1)!.id }) };
}

const conflictOf = (row: SyncConflictRow): SyncConflict => ({
  id: row.id,
  project: row.project,
  projectId: row.projectId,
  runId: row.runId,
  sequence: row.sequence,
  code: row.code,
  runtimeId: row.runtimeId,
  existingHash: row.existingHash ?? undefined,
  hash: row.hash,
  firstAt: iso(row.firstAt),
  lastAt: iso(row.lastAt),
  count: row.count,
  acknowledgedAt: isoOrNone(row.acknowledgedAt),
  acknowledgedBy: row.acknowledgedBy ?? undefined,
  reason: row.reason ?? undefined,
});

const notFound = (id: string) => new HubError("conflict_not_found", `there is no sync conflict ${id}`);
