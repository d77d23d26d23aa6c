// The rules of approvals, each inside one write. A run asks, a person decides once over the hash that was shown, a command carries the decision,
// and what the Runtime records is the truth.
import type { ApprovalRow, CommandRow, SyncRunRow } from "../db/schema.ts";
import type { Tx } from "../db/tx.ts";
import type { Decision } from "../protocol/approvals.ts";
import { HubError } from "../protocol/errors.ts";
import * as alerts from "./alerts.ts";
import * as commands from "./command-rules.ts";
import type { Consequence } from "./projection.ts";

const APPROVALS_OF_RUN = 1_000;
const APPROVED = new Set(["approved", "passed", "approve"]);
const REJECTED = new Set(["rejected", "reject", "failed"]);

/** Carries out what a folded event means for approvals. */
export async function follow(tx: Tx, run: SyncRunRow, consequence: Exclude<Consequence, { kind: "used" }>): Promise<void> {
  switch (consequence.kind) {
    case "approval_requested":
      return request(tx, run, consequence);
    case "approval_recorded":
      for (const id of consequence.ids) await recordOutcome(tx, run, id, consequence);
      return;
    case "approval_moot":
      return cancel(tx, run, await tx.approvals.lock(consequence.id));
    case "run_ended":
      for (const approval of await tx.approvals.ofRun(run.projectId, run.runId, APPROVALS_OF_RUN)) await cancel(tx, run, approval);
  }
}

/**
 * Decides what is pending and sends the decision to the Runtime, in one transaction.
 * @throws HubError approval_not_found, approval_decided, run_not_accepting, approval_content_changed
 */
export async function decide(
  tx: Tx,
  by: alerts.By,
  id: string,
  { decision, reason, contentHash }: { decision: Decision; reason?: string | undefined; contentHash: string },
): Promise<{ approval: ApprovalRow; command: CommandRow }> {
  const approval = await tx.approvals.lock(id);
  if (!approval) throw new HubError("approval_not_found", `there is no approval ${id}`);
  if (approval.status === "cancelled") throw new HubError("run_not_accepting", "the run does not ask for this any more");
  if (approval.status !== "pending") throw new HubError("approval_decided", `it was ${approval.status} by ${approval.decidedBy}`);
  if (approval.contentHash !== contentHash) {
    throw new HubError("approval_content_changed", "what is pending now is not what was decided on", { contentHash: approval.contentHash });
  }
  const { project, projectId, runId, runtimeId } = approval;
  const payload = { approvalId: id, contentHash, ...(reason !== undefined && { reason }) };
  const command = { project, runtimeId, kind: decision, projectId, runId, payload, actor: by.actor, idempotencyKey: null };
  const sent = await commands.create(tx, command);
  const decided: ApprovalRow = {
    ...approval,
    status: decision === "approve" ? "approved" : "rejected",
    decidedAt: tx.now,
    decidedBy: by.actor,
    reason: reason ?? null,
    commandId: sent.command.id,
    updatedAt: tx.now,
  };
  await tx.approvals.update(decided);
  record(tx, decided, decided.status, by.actor, { role: by.role, reason, origin: by.origin });
  return { approval: decided, command: sent.command };
}

/** A decision that its Runtime refused, or that nobody fetched in time, was not made: the run still waits for a person. */
export async function undecide(tx: Tx, command: CommandRow): Promise<void> {
  const id = command.payload["approvalId"];
  if (typeof id !== "string" || (command.kind !== "approve" && command.kind !== "reject")) return;
  const approval = await tx.approvals.lock(id);
  if (approval?.commandId !== command.id || (approval.status !== "approved" && approval.status !== "rejected")) return;
  const open: ApprovalRow = { ...approval, status: "pending", decidedAt: null, decidedBy: null, reason: null, updatedAt: tx.now };
  await tx.approvals.update(open);
  record(tx, open, "reopened", "hub");
}

async function request(tx: Tx, run: SyncRunRow, asked: Extract<Consequence, { kind: "approval_requested" }>): Promise<void> {
  const { id, hash, stepId, attempt, content } = asked;
  const known = await tx.approvals.lock(id);
  if (known && !isOf(known, run)) return alertReuse(tx, run, id);
  if (known && known.contentHash === hash && (known.status === "pending" || (await isUnderway(tx, known)))) return;
  const pending: ApprovalRow = {
    id,
    project: run.project,
    projectId: run.projectId,
    runId: run.runId,
    runtimeId: run.homeRuntimeId,
    stepId,
    attempt,
    title: run.displayTitle ?? [run.workflowId, run.runId].filter(Boolean).join(" "), // a run without a prompt has no title
    content,
    contentHash: hash,
    status: "pending",
    requestedAt: tx.now,
    decidedAt: null,
    decidedBy: null,
    reason: null,
    commandId: known?.commandId ?? null,
    updatedAt: tx.now,
  };
  await (known ? tx.approvals.update(pending) : tx.approvals.insert(pending));
  record(tx, pending, "requested", run.homeRuntimeId);
}

async function recordOutcome(
  tx: Tx,
  run: SyncRunRow,
  id: string,
  { outcome, actor, reason }: { outcome: string; actor: string; reason: string | null },
) {
  const approval = await tx.approvals.lock(id);
  const status = APPROVED.has(outcome) ? "approved" : REJECTED.has(outcome) ? "rejected" : "cancelled";
  if (!approval || !isOf(approval, run) || approval.status === status) return;
  const recorded: ApprovalRow = { ...approval, status, decidedAt: tx.now, decidedBy: actor, reason, updatedAt: tx.now };
  await tx.approvals.update(recorded);
  record(tx, recorded, status, actor);
}

async function cancel(tx: Tx, run: SyncRunRow, approval: ApprovalRow | undefined): Promise<void> {
  if (approval?.status !== "pending" || !isOf(approval, run)) return;
  const cancelled: ApprovalRow = { ...approval, status: "cancelled", updatedAt: tx.now };
  await tx.approvals.update(cancelled);
  record(tx, cancelled, "cancelled", run.homeRuntimeId);
}

const isOf = (approval: ApprovalRow, { projectId, runId, project }: SyncRunRow) =>
  approval.projectId === projectId && approval.runId === runId && approval.project === project;

/** Whether a decision is on its way: then a Runtime that asks the same thing again has not seen it yet. */
async function isUnderway(tx: Tx, { commandId }: ApprovalRow): Promise<boolean> {
  const command = commandId === null ? undefined : await tx.commands.find(commandId);
  return command?.state === "sent" || command?.state === "received";
}

/** An id is another run's: nothing of that run may be touched, and somebody should look. */
async function alertReuse(tx: Tx, { project, projectId, runId, homeRuntimeId }: SyncRunRow, id: string): Promise<void> {
  await alerts.raise(tx, {
    project,
    kind: "approval_id_reused",
    dedupeKey: JSON.stringify([projectId, runId, id]),
    severity: "security",
    summary: "a run asks for an approval under the id of another run's",
    subject: runId,
    data: { projectId, runId, runtimeId: homeRuntimeId, approvalId: id },
  });
}

function record(tx: Tx, approval: ApprovalRow, type: string, actor: string, audit?: Parameters<Tx["append"]>[0]["audit"]) {
  const { project, id, projectId, runId, runtimeId, stepId, contentHash } = approval;
  const data = { projectId, runId, runtimeId, stepId, contentHash };
  tx.append({ project, topic: "approvals", type, subjectId: id, actor, data, ...(audit && { audit }) });
}
