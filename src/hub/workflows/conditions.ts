// "What is missing?": each required key of the current stage, met or not, by whom, with which evidence, and what would satisfy it.
import { own } from "../../protocol/own.ts";
import type { Condition, Conditions, WorkflowRun } from "../../protocol/workflows.ts";
import { requirementsOf } from "./evidence.ts";

/** The condition matrix of a run's current stage. A run that has ended has no conditions. */
export function conditionsOf(run: WorkflowRun): Conditions {
  const stage = run.stages.find(({ id }) => id === run.currentStage);
  if (!stage) return { stageId: null, attempt: 0, attemptsLeft: 0, blockers: [], conditions: [] };
  const conditions = requirementsOf(stage).map((requirement): Condition => {
    const { requirementKey, kind, met, degraded, values } = requirement;
    if (kind === "evidence") {
      return {
        requirementKey,
        kind,
        met,
        degraded,
        has: values.map((value) => ({ by: run.targetAgentName, value })),
        needs: met ? "" : `The coordinator ${run.targetAgentName} gives ${requirementKey} as evidence at its checkpoint.`,
      };
    }
    const proofs = (own(stage.verifiedEvidence, requirementKey) ?? []).filter(({ context }) => context.attempt === stage.attempts + 1);
    const policy = own(stage.resolvedEvidencePolicies, requirementKey)!;
    const missing = policy.eligibleProducers.filter(({ id }) => !requirement.producers!.includes(id)).map(({ name }) => name);
    const need = requirement.effectiveMinProducers!;
    return {
      requirementKey,
      kind,
      met,
      degraded,
      has: proofs.map(({ producerName, messageId, repliedAt }) => ({ by: producerName, value: messageId, at: repliedAt, messageId })),
      quorum: { have: requirement.producers!.length, need, of: policy.eligibleProducers.map(({ name }) => name), normally: policy.minProducers },
      needs: met
        ? ""
        : `${need - requirement.producers!.length} more answered request${need - requirement.producers!.length === 1 ? "" : "s"} from ${missing.join(", ")} for attempt ${stage.attempts + 1}.`,
    };
  });
  const waiting = run.waiting ? [`Waits for the signal ${run.waiting.signalKey} until ${run.waiting.expiresAt}: ${run.waiting.summary}`] : [];
  return { stageId: stage.id, attempt: stage.attempts + 1, attemptsLeft: stage.maxAttempts - stage.attempts, blockers: waiting, conditions };
}
