// What operators can do to a run, as events: each checks that the run takes it now, and appends. Synchronous, inside the transaction of its command.

import { RuntimeRefusal } from "../../protocol/runtime-errors.ts";
import type { CommandPayload } from "../../protocol/sync.ts";
import type { NewId } from "../ids.ts";
import type { NewEvent } from "../store/events.ts";
import { piece, refusal } from "./evidence.ts";
import { type Execution, isOver, stepOf } from "./execution.ts";
import type { EvidencePiece } from "./local.ts";
import { bounded, effectOf, RESOLVED_ABSENT } from "./moves.ts";

type Actor = { kind: "human" | "runtime" | "hub" | "agent" | "adapter"; id: string };
export const human = (actor: string): Actor => ({ kind: "human", id: actor.slice(0, 200) });

const refuse = (run: Execution, what: string): never => {
  throw new RuntimeRefusal("run_not_accepting", `run ${run.runId} is ${run.status}: it cannot be ${what}`);
};

/** Asks for the end of a run; what runs is stopped first. */
export function cancel(run: Execution, actor: string, reason: string | undefined): NewEvent[] {
  if (isOver(run) || run.cancel) return refuse(run, run.cancel ? "cancelled twice" : "cancelled");
  return [{ type: "run.cancel_requested", payload: { actor: human(actor), reason: bounded(reason ?? `cancelled by ${actor}`) } }];
}

/** A decision on what is asked. The hash must be that of what is asked now. */
export function decideApproval(run: Execution, outcome: "approved" | "rejected", actor: string, payload: CommandPayload<"approve">): NewEvent[] {
  const asked = run.visit?.asked;
  if (!asked || asked.approvalId !== payload.approvalId || run.visit?.answer)
    throw new RuntimeRefusal("approval_not_found", `run ${run.runId} does not wait for a decision on ${payload.approvalId}`);
  if (asked.contentHash !== payload.contentHash)
    throw new RuntimeRefusal("approval_content_changed", `what ${payload.approvalId} asks for is not what was decided on`);
  return [
    {
      type: "approval.recorded",
      payload: {
        stepId: run.visit!.stepId,
        stepAttempt: run.visit!.stepAttempt,
        actor: human(actor),
        outcome,
        ...(payload.reason && { reason: bounded(payload.reason) }),
        suppliedRefs: [{ id: asked.approvalId, kind: "approval-request", hash: asked.contentHash }],
      },
    },
  ];
}

/** A signal for the step that waits for it. */
export function signal(run: Execution, actor: string, given: CommandPayload<"signal">, signalId: string): NewEvent[] {
  const step = run.visit && run.plan.steps.find(({ id }) => id === run.visit!.stepId);
  if (isOver(run) || step?.kind !== "wait" || run.visit!.status !== "waiting" || run.visit!.signal) return refuse(run, "signalled");
  if (step.signal !== given.signal)
    throw new RuntimeRefusal("run_not_accepting", `run ${run.runId} waits for the signal ${step.signal}, not ${given.signal}`);
  return [
    {
      type: "approval.recorded",
      payload: {
        stepId: step.id,
        stepAttempt: run.visit!.stepAttempt,
        actor: human(actor),
        outcome: given.status ?? "passed",
        ...(given.summary && { summary: bounded(given.summary) }),
        suppliedRefs: [{ id: signalId, kind: "signal" }],
      },
    },
  ];
}

/** What an operator may say about an effect that nobody can prove. */
export const RESOLUTIONS = ["mark-completed", "confirm-absent-and-retry", "compensate-and-retry", "mark-failed", "cancel"] as const;

/**
 * Resolves an uncertain effect: the attempt is closed as the operator says, with who, why and on what grounds.
 * `mark-completed`: it happened; `…-and-retry`: it did not, or was undone: the step is tried again; `mark-failed`: the step failed; `cancel`: end the run.
 */
export function resolve(run: Execution, actor: string, given: CommandPayload<"resolve">, newId: NewId): NewEvent[] {
  const open = Object.values(run.uncertain);
  const found = open.filter(({ effectId, stepId }) => (given.effectId ? effectId === given.effectId : given.stepId ? stepId === given.stepId : true));
  if (found.length !== 1)
    throw new RuntimeRefusal("run_not_accepting", `run ${run.runId} has ${found.length} uncertain effects that fit; name one by its id`);
  const { effectId, attemptId, stepId } = found[0]!;
  const attempt = run.visit?.gateAttempts.find((one) => one.attemptId === attemptId);
  const identity = { stepId, stepAttempt: run.visit!.stepAttempt, attemptId };
  const { action } = given;
  const effect = effectOf(effectId, attempt?.effectClass ?? "unknown", attemptId);
  const sentence = `${action} by ${actor}: ${given.reason}`;
  const retryable = action === "confirm-absent-and-retry" || action === "compensate-and-retry";
  const local =
    action === "mark-completed"
      ? { passed: stepOf(run, stepId).expect === "pass", evidence: vouched(run, stepId, actor, given, newId) }
      : { failure: { class: retryable ? RESOLVED_ABSENT : "resolved_failed", sentence: bounded(sentence), retryable } };
  return [
    {
      type: "effect.uncertainty_resolved",
      payload: {
        ...identity,
        effect,
        resolvedBy: human(actor),
        resolutionAction: action,
        reason: bounded(given.reason),
        suppliedRefs: (given.refs ?? []).map((ref) => ({
          id: newId("evd"),
          kind: "reference",
          status: "supplied",
          ...(REF_ID.test(ref) && { id: ref }),
        })),
      },
      local: { refs: given.refs ?? [] },
    },
    {
      type: "attempt.status_changed",
      payload: { ...identity, status: action === "mark-completed" ? "passed" : "failed", reason: bounded(sentence) },
      local,
    },
    ...(action === "cancel" && !run.cancel
      ? [{ type: "run.cancel_requested" as const, payload: { actor: human(actor), reason: bounded(given.reason) } }]
      : []),
  ];
}

/**
 * What somebody who says that it happened shows for it: their word for the gate, and each reference as a receipt.
 * @throws RuntimeRefusal run_not_accepting when the step asks for more: it would be tried again for what is missing, and so happen twice
 */
function vouched(run: Execution, stepId: string, actor: string, { reason, refs = [] }: CommandPayload<"resolve">, newId: NewId): EvidencePiece[] {
  const step = stepOf(run, stepId);
  const of = { key: step.gate ?? stepId, producer: actor };
  const shown = [piece(newId, { ...of, kind: "gate", text: reason }), ...refs.map((ref) => piece(newId, { ...of, kind: "receipt", text: ref }))];
  const refused = refusal(run, step, shown);
  if (refused) throw new RuntimeRefusal("run_not_accepting", `${refused.sentence}; a receipt: name it with --ref`);
  return shown;
}

/** References that are ids of ours travel as they are; others stay on this machine and get an id that stands for them. */
const REF_ID = /^[a-z][a-z0-9]{1,15}_[A-Za-z0-9][A-Za-z0-9_-]{5,127}$/;
