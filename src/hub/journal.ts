// The journal of workflow runs: what was planned, decided, found and learned. Entries are appended, promoted once, and never edited.
// Codes: invalid_journal_relation, invalid_improvement_area, journal_evidence_required, journal_not_found, journal_promotion_invalid.
import type { JournalRow } from "../db/schema.ts";
import type { AuditNote, Tx } from "../db/tx.ts";
import { canonical, sha256 } from "../protocol/canonical.ts";
import { HubError } from "../protocol/errors.ts";
import { type JournalEntry, type JournalRequest, PROMOTABLE, type PromotionRequest } from "../protocol/journal.ts";
import { iso } from "../protocol/time.ts";
import { AREAS, type WorkflowRun } from "../protocol/workflows.ts";

/** The entry of a row, as the wire shows it. */
export const entryOf = (row: JournalRow): JournalEntry => row.record as unknown as JournalEntry;

/** Appends an entry as it is given; the rules of workflows use it for what they record themselves. */
export async function append(tx: Tx, project: string, entry: Omit<JournalEntry, "id" | "createdAt">): Promise<JournalEntry> {
  const written: JournalEntry = { id: tx.newId("journal"), ...entry, createdAt: iso(tx.now) };
  const { id, runId, agentId, category, area, severity, summary, stageId } = written;
  await tx.journal.insert({
    id,
    project,
    runId,
    agentId,
    category,
    area,
    severity,
    summary,
    stageId: stageId ?? null,
    createdAt: tx.now,
    promotedTo: null,
    hash: sha256(canonical(written)),
    revision: await tx.context.takeRevision(project),
    record: written as unknown as Record<string, unknown>,
  });
  tx.append({ project, topic: "journal", type: category, subjectId: id, actor: agentId, data: { runId, area, severity } });
  return written;
}

/** Records what the coordinator of a run writes, in any state of the run. `attempt` is derived, never taken. */
export async function record(tx: Tx, run: WorkflowRun, agentId: string, request: JournalRequest): Promise<JournalEntry> {
  const { category, stageId, severity, summary, details, evidence, relatedEntryIds } = request;
  const stage = stageId === undefined ? undefined : run.stages.find(({ id }) => id === stageId);
  if (stageId !== undefined && !stage) throw new HubError("invalid_journal_relation", `the run has no stage ${stageId}`);
  const area = request.area ?? stage?.area;
  if (!area) throw new HubError("invalid_improvement_area", `area is missing and the stage has none: one of ${AREAS.join(", ")}`);
  const related = await tx.journal.someOf(relatedEntryIds);
  if (relatedEntryIds.some((id) => related.find((entry) => entry.id === id)?.runId !== run.id)) {
    throw new HubError("invalid_journal_relation", "relatedEntryIds names an entry that is not of this run");
  }
  if ((category === "lesson" || category === "skill-candidate") && evidence.length === 0) {
    throw new HubError("journal_evidence_required", `a ${category} needs at least one line of evidence`);
  }
  const attempt = stage && attemptOf(stage.status, stage.attempts);
  return append(tx, run.project, {
    runId: run.id,
    agentId,
    category,
    area,
    severity,
    summary,
    evidence,
    relatedEntryIds,
    ...(details !== undefined && { details }),
    ...(stageId !== undefined && { stageId }),
    ...(attempt !== undefined && { attempt }),
  });
}

function attemptOf(status: WorkflowRun["stages"][number]["status"], attempts: number): number | undefined {
  if (status === "in_progress" || status === "waiting") return attempts + 1;
  if (status === "pending") return attempts > 0 ? attempts : undefined;
  return Math.max(1, attempts);
}

/** Approves, rejects or quarantines a candidate, once. @throws HubError journal_not_found, journal_promotion_invalid */
export async function promote(tx: Tx, id: string, request: PromotionRequest, by: { actor: string } & AuditNote): Promise<JournalEntry> {
  const row = await tx.journal.lock(id);
  if (!row) throw new HubError("journal_not_found", `there is no journal entry ${id}`);
  const entry = entryOf(row);
  if (!PROMOTABLE.includes(entry.category) || row.promotedTo !== null) {
    throw new HubError(
      "journal_promotion_invalid",
      row.promotedTo === null ? `a ${entry.category} is not promoted` : `the entry is ${row.promotedTo} already`,
    );
  }
  if (request.evidenceRefs.length === 0) throw new HubError("journal_promotion_invalid", "a promotion needs at least one evidence reference");
  const { to, evidenceRefs, reason } = request;
  const promotion = {
    schema: "kxm.journal-promotion.v1" as const,
    from: "proposed" as const,
    to,
    evidenceRefs,
    decidedBy: "kxm-admin",
    reason,
    decidedAt: iso(tx.now),
  };
  const promoted: JournalEntry = { ...entry, promotion: [...(entry.promotion ?? []), promotion] };
  await tx.journal.update({
    ...row,
    promotedTo: to,
    hash: sha256(canonical(promoted)),
    revision: await tx.context.takeRevision(row.project),
    record: promoted as unknown as Record<string, unknown>,
  });
  tx.append({
    project: row.project,
    topic: "journal",
    type: `promoted.${to}`,
    subjectId: id,
    actor: by.actor,
    data: { runId: row.runId },
    audit: { role: by.role, origin: by.origin, reason },
  });
  return promoted;
}
