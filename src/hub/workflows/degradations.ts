// An admin lowers the number of peers a requirement needs, for one attempt, with a reason. It passes nothing by itself.
// Codes: workflow_terminal, workflow_stage_not_found, workflow_stage_out_of_order, workflow_degradation_forbidden, workflow_degradation_conflict.
import type { AuditNote, Tx } from "../../db/tx.ts";
import { HubError } from "../../protocol/errors.ts";
import { own } from "../../protocol/own.ts";
import { iso } from "../../protocol/time.ts";
import { type DegradationApproval, type DegradationRequest, normalizeKey, type WorkflowRun } from "../../protocol/workflows.ts";
import * as journal from "../journal.ts";
import { lockRun } from "./runs.ts";

export type DegradationResult = { run: WorkflowRun; approval: DegradationApproval; duplicate: boolean };

/**
 * Approves, once and with a reason, that the current stage passes with fewer producers than a requirement asks for.
 * @throws HubError workflow_not_found, workflow_terminal, workflow_stage_not_found, workflow_stage_out_of_order, workflow_degradation_forbidden,
 *   workflow_degradation_conflict
 */
export async function degrade(tx: Tx, runId: string, request: DegradationRequest, by: { actor: string } & AuditNote): Promise<DegradationResult> {
  const run = await lockRun(tx, runId);
  if (run.status !== "running" && run.status !== "waiting") throw new HubError("workflow_terminal", `the run is ${run.status}`);
  const stage = run.stages.find(({ id }) => id === request.stageId);
  if (!stage) throw new HubError("workflow_stage_not_found", `the run has no stage ${request.stageId}`);
  if (run.currentStage !== stage.id || (stage.status !== "in_progress" && stage.status !== "waiting")) {
    throw new HubError("workflow_stage_out_of_order", `the current stage is ${run.currentStage ?? "none"}, not ${stage.id}`);
  }
  const requirementKey = normalizeKey(request.requirementKey);
  const policy = own(stage.resolvedEvidencePolicies, requirementKey);
  if (!policy?.degradation) throw new HubError("workflow_degradation_forbidden", `the definition allows no degradation of ${requirementKey}`);
  const attempt = stage.attempts + 1;
  const known = stage.degradationApprovals?.find((given) => given.requirementKey === requirementKey && given.attempt === attempt);
  if (known && known.reason !== request.reason) throw new HubError("workflow_degradation_conflict", "it was approved with another reason already");
  if (known) return { run, approval: known, duplicate: true };
  const approval: DegradationApproval = {
    schema: "pi-mesh.workflow-degradation-approval.v1",
    id: tx.newId("approval"),
    requirementKey,
    attempt,
    policyMinProducers: policy.minProducers,
    approvedMinProducers: policy.degradation.minProducers,
    approvedBy: "kxm-admin",
    reason: request.reason,
    approvedAt: iso(tx.now),
  };
  stage.degradationApprovals = [...(stage.degradationApprovals ?? []), approval];
  await journal.append(tx, run.project, {
    runId: run.id,
    agentId: "kxm-admin",
    category: "decision",
    area: stage.area ?? "workflow",
    severity: "warning",
    summary:
      `${requirementKey} may pass with ${approval.approvedMinProducers} instead of ${approval.policyMinProducers} producers: ${request.reason}`.slice(
        0,
        1000,
      ),
    evidence: [],
    relatedEntryIds: [],
    stageId: stage.id,
    attempt,
  });
  run.updatedAt = iso(tx.now);
  const row = (await tx.workflows.find(run.id))!;
  await tx.workflows.update({ ...row, updatedAt: tx.now, record: run as unknown as Record<string, unknown> });
  tx.append({
    project: run.project,
    topic: "workflows",
    type: "degraded",
    subjectId: run.id,
    actor: by.actor,
    data: { stage: stage.id, requirementKey, attempt },
    audit: { role: by.role, origin: by.origin, reason: request.reason },
  });
  return { run, approval, duplicate: false };
}
