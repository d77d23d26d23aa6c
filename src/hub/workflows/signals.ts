// Signed signals: they end the waiting stage of a run like a checkpoint and wake its coordinator. Each delivery id counts once.
// Codes: workflow_not_found, workflow_signal_delivery_conflict, workflow_signal_context_mismatch, workflow_not_waiting, workflow_signal_mismatch, workflow_evidence_incomplete.
import type { Tx } from "../../db/tx.ts";
import { HubError } from "../../protocol/errors.ts";
import { own } from "../../protocol/own.ts";
import { iso } from "../../protocol/time.ts";
import type { SignalReceipt, SignalRequest, WorkflowRun } from "../../protocol/workflows.ts";
import { failOverdue } from "./endings.ts";
import { readEvidence } from "./evidence.ts";
import { tell } from "./notices.ts";
import { resumeFor } from "./prompts.ts";
import { lockRun, saveRun } from "./runs.ts";
import { checkEnding, currentStage, endStage } from "./stages.ts";

export type SignalDelivery = { definitionId: string; runId: string; signalKey: string; deliveryId: string; payloadHash: string };
export type SignalResult = {
  duplicate: boolean;
  status: string;
  stageId: string;
  signalKey: string;
  receivedAt?: string;
  retry?: boolean;
  completed?: boolean;
  degraded: boolean;
  degradedRequirements: string[];
  resumed: boolean;
};

/** @param readRequest reads the body's fields; called only for a delivery that is not a known one */
export async function signal(tx: Tx, delivery: SignalDelivery, readRequest: () => SignalRequest): Promise<SignalResult> {
  const { definitionId, runId, signalKey, deliveryId, payloadHash } = delivery;
  const run = await lockRun(tx, runId);
  if (run.definitionId !== definitionId) throw new HubError("workflow_not_found", `there is no workflow run ${runId} of ${definitionId}`);
  if (deliveryId.trim() === "" || deliveryId.length > 128) throw new HubError("protocol_error", "the delivery id must have 1 to 128 characters");
  const known = run.signalReceipts?.find((receipt) => receipt.deliveryId === deliveryId);
  if (known && (known.signalKey !== signalKey || known.payloadHash !== payloadHash)) {
    throw new HubError("workflow_signal_delivery_conflict", "this delivery id was used for another signal");
  }
  if (known) return duplicateOf(known);
  const request = readRequest();
  const evidence = readEvidence(request.evidence);
  await failOverdue(tx, run);
  const { waiting } = run;
  if (waiting) requireContext(evidence, { "workflow.run": run.id, "workflow.stage": waiting.stageId, "workflow.signal": signalKey });
  if (run.status !== "waiting" || !waiting) throw new HubError("workflow_not_waiting", `the run is ${run.status} and waits for no signal`);
  if (waiting.signalKey !== signalKey) throw new HubError("workflow_signal_mismatch", `the run waits for ${waiting.signalKey}, not ${signalKey}`);
  const stage = currentStage(run, waiting.stageId, "waiting");
  const { status, summary } = request;
  const ending = {
    status,
    outcome: undefined,
    summary,
    evidence,
    verified: new Map(),
    actor: `signal:${definitionId}`,
    fallbackArea: "gates" as const,
  };
  checkEnding(run, stage, ending);
  const { retry } = await endStage(tx, run, stage, ending);
  const receipt: SignalReceipt = {
    deliveryId,
    payloadHash,
    signalKey,
    stageId: stage.id,
    status,
    receivedAt: iso(tx.now),
    ...(stage.degraded && { degraded: true, degradedRequirements: stage.degradedRequirements ?? [] }),
  };
  const resumed = (run.status as WorkflowRun["status"]) === "running";
  if (resumed) {
    const content = resumeFor(run, { signalKey, status, summary, evidence });
    run.messageId = receipt.messageId = await tell(tx, run, { fromName: `signal:${definitionId}`, content });
  }
  run.signalReceipts = [...(run.signalReceipts ?? []), { ...receipt, resumed }];
  await saveRun(tx, run, `signal.${status}`, `signal:${definitionId}`, { stage: stage.id, signalKey, deliveryId });
  return {
    duplicate: false,
    status,
    stageId: stage.id,
    signalKey,
    retry,
    completed: (run.status as WorkflowRun["status"]) === "completed",
    degraded: stage.degraded ?? false,
    degradedRequirements: stage.degradedRequirements ?? [],
    resumed,
  };
}

const duplicateOf = ({ status, stageId, signalKey, receivedAt, degraded, degradedRequirements, resumed }: SignalReceipt): SignalResult => ({
  duplicate: true,
  status,
  stageId,
  signalKey,
  receivedAt,
  degraded: degraded ?? false,
  degradedRequirements: degradedRequirements ?? [],
  resumed: resumed ?? false,
});

/** A sender may bind its evidence to run, stage and signal; then they must be these. */
function requireContext(evidence: Record<string, string>, expected: Record<string, string>) {
  for (const [contextKey, value] of Object.entries(expected)) {
    if ((own(evidence, contextKey) ?? value) !== value) {
      throw new HubError("workflow_signal_context_mismatch", `the evidence names another ${contextKey}`, { contextKey });
    }
  }
}
