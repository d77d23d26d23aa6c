// The events that close an attempt which gave no answer of its own: it was not wanted any more, or we failed while we carried it out.
import { RuntimeRefusal } from "../../protocol/runtime-errors.ts";
import type { Failure } from "../harness/result.ts";
import type { NewEvent } from "../store/events.ts";
import { failed, type Work } from "./agent-attempt.ts";
import { type Attempt, type Execution, stepOf } from "./execution.ts";
import { uncertain } from "./gate-attempt.ts";
import { mayRepeat } from "./moves.ts";

/** What an error of ours means for the run. A refusal says what to do; anything else is a bug, whose cause is in the log. */
function failureOf(error: unknown): Failure {
  if (error instanceof RuntimeRefusal) return { class: error.code, sentence: error.message, retryable: true };
  const { code } = (error ?? {}) as { code?: unknown };
  if (code === "ENOSPC" || code === "EDQUOT")
    return { class: "disk_full", sentence: "the disk is full: nothing of the attempt could be written", retryable: true };
  return { class: "internal_error", sentence: "the Runtime failed while it carried out the attempt; its log has the cause", retryable: false };
}

/** Closes an attempt that we could not carry out. Whatever runs of it is ended; an effect that may have happened by then stays uncertain. */
export async function closeFailed(work: Work, error: unknown): Promise<NewEvent[]> {
  const { attempt, context } = work;
  const { programs } = context.machine;
  const { attemptId, folder, process, kind, effectClass } = attempt;
  const failure = failureOf(error);
  const mayHaveHappened = kind === "gate" && !mayRepeat(effectClass) && (attempt.status === "executing" || programs.hasStarted(folder));
  await programs.endAttempt({ mark: process, attemptId }, 0);
  return mayHaveHappened ? uncertain(work, `the Runtime could not see the command to its end: ${failure.sentence}`) : closeWith(work, failure);
}

/** Closes an attempt with a failure. */
export function closeWith(work: Work, failure: Failure): NewEvent[] {
  const { run, attempt } = work;
  const visit = run.visit!;
  const step = stepOf(run, visit.stepId);
  const assignment = visit.assignments.find(({ assignmentId }) => assignmentId === attempt.assignmentId);
  if (assignment) return failed(work, step, assignment, failure);
  const error = { class: failure.class, component: step.gate ?? step.id, retryable: failure.retryable };
  const identity = { stepId: visit.stepId, stepAttempt: visit.stepAttempt, attemptId: attempt.attemptId };
  return [{ type: "attempt.status_changed", payload: { ...identity, status: "failed", error, reason: failure.sentence }, local: { failure } }];
}

/** Closes an attempt that was never started and is not wanted any more. */
export function closeUnstarted(run: Execution, attempt: Attempt): NewEvent[] {
  const { stepId, stepAttempt } = run.visit!;
  const { attemptId, assignmentId } = attempt;
  const identity = { stepId, stepAttempt, attemptId, ...(assignmentId && { assignmentId }) };
  const closed: NewEvent = { type: "attempt.status_changed", payload: { ...identity, status: "cancelled", previousStatus: "created" } };
  return assignmentId ? [closed, { type: "assignment.terminal", payload: { ...identity, status: "terminal", outcome: "cancelled" } }] : [closed];
}
