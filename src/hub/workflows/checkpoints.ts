// Checkpoints and waits of a run's coordinator.
// Codes: workflow_terminal, workflow_not_running, workflow_evidence_incomplete and those of evidence.ts and stages.ts.
import type { Tx } from "../../db/tx.ts";
import { HubError } from "../../protocol/errors.ts";
import { iso } from "../../protocol/time.ts";
import type { CheckpointRequest, WaitRequest, WorkflowRun } from "../../protocol/workflows.ts";
import type { Caller } from "../agents.ts";
import { failOverdue } from "./endings.ts";
import { readEvidence, readEvidenceRefs, verifyRefs } from "./evidence.ts";
import { lockRun, requireCoordinator, saveRun } from "./runs.ts";
import { checkEnding, currentStage, endStage, mergeEvidence } from "./stages.ts";

export type CheckpointResult = { run: WorkflowRun; retry: boolean; completed: boolean; instruction: string };

/** Ends an attempt at the current stage. Refusals consume no attempt and change nothing. */
export async function checkpoint(tx: Tx, agent: Caller, runId: string, request: CheckpointRequest): Promise<CheckpointResult> {
  const evidence = readEvidence(request.evidence);
  const refs = readEvidenceRefs(request.evidenceRefs);
  if (refs.size > 0 && request.status !== "passed") throw new HubError("invalid_workflow_evidence_refs", "evidenceRefs go with status passed only");
  const run = await lockRun(tx, runId);
  requireCoordinator(run, agent, "checkpoint");
  if (run.status !== "running") throw new HubError("workflow_terminal", `the run is ${run.status}`);
  const stage = currentStage(run, request.stageId, "in_progress");
  checkEnding(run, stage, { status: "warning", evidence, verified: new Map() }); // oracle and plan hash before the proof of references
  const verified = await verifyRefs(tx, run, stage, refs);
  checkEnding(run, stage, { status: request.status, evidence, verified });
  const { status, outcome, summary } = request;
  const { retry } = await endStage(tx, run, stage, { status, outcome, summary, evidence, verified, actor: agent.id, fallbackArea: "workflow" });
  await saveRun(tx, run, `checkpoint.${status}`, agent.id, { stage: stage.id, attempt: stage.attempts });
  return { run, retry, completed: (run.status as WorkflowRun["status"]) === "completed", instruction: instructionFor(run, retry) };
}

/** One sentence that says what to do next. */
export function instructionFor(run: WorkflowRun, retry: boolean): string {
  if (retry) return `Correct what went wrong in stage ${run.currentStage} and checkpoint it again.`;
  if (run.status === "completed") return "The workflow is complete: reply to its message with a summary.";
  if (run.status === "failed") return "The workflow has failed: stop working on it.";
  if (run.status === "waiting") return `The run waits for the signal ${run.waiting?.signalKey}: stop until it resumes you.`;
  return `Continue with stage ${run.currentStage}.`;
}

/** Puts the run to sleep until a signed signal or the timeout. Uses no attempt; evidence counts later. */
export async function wait(tx: Tx, agent: Caller, runId: string, request: WaitRequest): Promise<{ run: WorkflowRun; instruction: string }> {
  const evidence = readEvidence(request.evidence);
  const refs = readEvidenceRefs(request.evidenceRefs);
  const run = await lockRun(tx, runId);
  requireCoordinator(run, agent, "wait");
  await failOverdue(tx, run);
  if (run.status !== "running") throw new HubError("workflow_not_running", `the run is ${run.status}`);
  const stage = currentStage(run, request.stageId, "in_progress");
  checkEnding(run, stage, { status: "warning", evidence, verified: new Map() });
  mergeEvidence(stage, evidence, await verifyRefs(tx, run, stage, refs));
  stage.status = "waiting";
  stage.updatedAt = iso(tx.now);
  run.status = "waiting";
  run.waiting = {
    stageId: stage.id,
    signalKey: request.signalKey,
    summary: request.summary,
    createdAt: iso(tx.now),
    expiresAt: iso(tx.now + request.timeoutMs),
  };
  await saveRun(tx, run, "waiting", agent.id, { stage: stage.id, signalKey: request.signalKey });
  return { run, instruction: instructionFor(run, false) };
}
