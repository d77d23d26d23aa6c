// How a run leaves a step attempt whose outcome is recorded: another attempt, the next step, or the end. Pure.

import { TERMINAL } from "../../protocol/workflow-file.ts";
import type { Route } from "../project/steps.ts";
import type { NewEvent } from "../store/events.ts";
import { type Execution, stepOf } from "./execution.ts";
import type { StepResult, TransitionLocal } from "./local.ts";
import { bounded, enterStep, runStatus, type Setting, stopRun, takesNoAttempt } from "./moves.ts";

/** The events that leave the current visit. */
export function leave(run: Execution, _setting: Setting): NewEvent[] {
  const visit = run.visit!;
  const step = stepOf(run, visit.stepId);
  const result = visit.outcome!;
  const route = step.routes.find(({ outcome }) => outcome === result.outcome);
  const ruled = route !== undefined && (route.declared || result.outcome === "passed");
  const triesLeft = visit.tryNo < step.maxAttempts;
  // Somebody looked and said to try again, or the Runtime was stopped: the step goes on also when it has used its attempts.
  if (takesNoAttempt(result.failure)) return [enterStep(run, visit.stepId, true)];
  if (result.declared && ruled) return take(run, route, result);
  const mayRetry = result.declared || (result.failure?.retryable ?? true);
  if (triesLeft && mayRetry) return [enterStep(run, visit.stepId, true)];
  if (ruled || (result.declared && route && step.maxAttempts === 1)) return take(run, route, result);
  return exhausted(run, result, step.maxAttempts, triesLeft);
}

/** No rule covers what happened and nothing may be tried again: the run ends and says why. */
function exhausted(run: Execution, result: StepResult, maxAttempts: number, triesLeft: boolean): NewEvent[] {
  const last = result.failure ? `${result.failure.class}: ${result.failure.sentence}` : `the step ended with ${result.outcome}`;
  if (triesLeft || maxAttempts === 1) return [stopRun(run, "failed", bounded(`${last} (step ${result.stepId})`), result.failure?.class)];
  const sentence = `budget_step_attempts: step ${result.stepId} used its ${maxAttempts} attempts; the last: ${last}`;
  return [stopRun(run, "failed", bounded(sentence), "budget_step_attempts")];
}

/** Takes a route, within the budgets of its edge and of the run. */
function take(run: Execution, route: Route, result: StepResult): NewEvent[] {
  const taken = run.edges[`${result.stepId}>${route.outcome}`] ?? 0;
  if (route.maxTransitions !== undefined && taken >= route.maxTransitions) {
    const sentence = `budget_edge: ${result.stepId} → ${route.target} by ${route.outcome} was taken ${taken} times, ${route.maxTransitions} are allowed`;
    return [stopRun(run, "failed", sentence, "budget_edge")];
  }
  const toTerminal = route.target === TERMINAL;
  const { maxTransitions } = run.plan.limits;
  if (!toTerminal && maxTransitions !== undefined && run.transitions >= maxTransitions) {
    const sentence = `budget_transitions: the run entered another step ${run.transitions} times, ${maxTransitions} are allowed`;
    return [stopRun(run, "failed", sentence, "budget_transitions")];
  }
  if (!toTerminal && run.plan.requirePlanHash.includes(route.target) && run.pinned.planHash === undefined) {
    return [stopRun(run, "failed", `plan_hash_required: ${route.target} starts only once a plan is pinned`, "plan_hash_required")];
  }
  const local: TransitionLocal = toTerminal ? { terminal: route.terminalStatus } : {};
  const moved: NewEvent = {
    type: "step.transitioned",
    payload: { fromStepId: result.stepId, outcome: route.outcome, ...(!toTerminal && { toStepId: route.target }) },
    local,
  };
  if (!toTerminal) return [moved, enterStep(run, route.target, false)];
  const reason =
    route.terminalStatus === "completed" ? undefined : `${result.stepId} ended with ${route.outcome}${result.summary ? `: ${result.summary}` : ""}`;
  return [moved, runStatus(run, route.terminalStatus, reason)];
}
