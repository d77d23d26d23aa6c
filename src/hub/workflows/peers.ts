// Messages that ask a peer for evidence: bound to run, stage, key and attempt when they are sent, so that the answer can be proven later.
// Codes: invalid_workflow_context, workflow_context_forbidden, workflow_context_inactive, workflow_evidence_policy_missing, workflow_context_attempt_mismatch,
// workflow_evidence_producer_forbidden, workflow_context_correlation_mismatch.
import type { Tx } from "../../db/tx.ts";
import { HubError } from "../../protocol/errors.ts";
import { own } from "../../protocol/own.ts";
import { type MessageContext, normalizeKey } from "../../protocol/workflows.ts";
import type { Caller } from "../agents.ts";
import { runOf } from "./runs.ts";

const MEMBERS = ["runId", "stageId", "requirementKey", "attempt"];

/** The shape of workflowContext on a message. @throws HubError invalid_workflow_context */
export function readContext(value: unknown): Omit<MessageContext, "schema"> {
  const bad = (why: string) => new HubError("invalid_workflow_context", `workflowContext ${why}`);
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw bad("must be an object");
  const { runId, stageId, requirementKey, attempt } = value as Record<string, unknown>;
  if (Object.keys(value).some((member) => !MEMBERS.includes(member))) throw bad("has a member that is not known");
  const text = (name: string, given: unknown, max: number) => {
    if (typeof given !== "string" || given.trim() === "" || given.trim().length > max) throw bad(`needs ${name} of 1 to ${max} characters`);
    return given.trim();
  };
  const context = {
    runId: text("runId", runId, 80),
    stageId: text("stageId", stageId, 64),
    requirementKey: normalizeKey(text("requirementKey", requirementKey, 128)),
  };
  if (!Number.isSafeInteger(attempt) || (attempt as number) < 1 || (attempt as number) > 20) throw bad("needs attempt, an integer between 1 and 20");
  return { ...context, attempt: attempt as number };
}

/** The context as a message stores it. */
export const contextOf = (context: Omit<MessageContext, "schema">): MessageContext => ({ schema: "pi-mesh.workflow-message-context.v1", ...context });

/** Checks that the sender may ask this target for this evidence now. @returns what the message is stored with */
export async function bindContext(
  tx: Tx,
  sender: Caller,
  request: { context: Omit<MessageContext, "schema">; target: string; correlationId?: string },
): Promise<MessageContext> {
  const { context, target, correlationId } = request;
  const row = await tx.workflows.find(context.runId);
  const run = row && runOf(row);
  if (!run || run.project !== sender.project || run.targetAgentId !== sender.id)
    throw new HubError("workflow_context_forbidden", "only the coordinator of the run asks for its evidence");
  const stage = run.stages.find(({ id }) => id === context.stageId);
  if (run.status !== "running" || run.currentStage !== context.stageId || stage?.status !== "in_progress") {
    throw new HubError("workflow_context_inactive", `stage ${context.stageId} is not in progress`);
  }
  const policy = own(stage.resolvedEvidencePolicies, context.requirementKey);
  if (!policy) throw new HubError("workflow_evidence_policy_missing", `${context.requirementKey} takes no peer evidence in stage ${stage.id}`);
  if (context.attempt !== stage.attempts + 1)
    throw new HubError("workflow_context_attempt_mismatch", `the current attempt is ${stage.attempts + 1}, not ${context.attempt}`);
  const eligible = policy.eligibleProducers.some(({ id, name }) => id === target || name.toLowerCase() === target.toLowerCase());
  if (!eligible) throw new HubError("workflow_evidence_producer_forbidden", `${target} is not an eligible producer of ${context.requirementKey}`);
  if (correlationId !== undefined && correlationId !== run.id)
    throw new HubError("workflow_context_correlation_mismatch", "correlationId must be the run id");
  return contextOf(context);
}
