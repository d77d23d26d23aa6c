// What happens next in a run: a pure function from what is known to the events that come now. Acts (processes, files, leases) follow from the
// events that were committed, never the other way round.
import type { NewEvent } from "../store/events.ts";
import { asksForMoney, breach, withoutProgress } from "./budgets.ts";
import { decideAgent, decideApproval, decideGate, decidePanel, decideWait } from "./decide-step.ts";
import { type Execution, isOver, learn, openAttempts, stepOf } from "./execution.ts";
import { leave } from "./leave.ts";
import { askAbout, enterStep, goOn, runStatus, type Setting, stopRun } from "./moves.ts";

/** Rounds of one decision; more would be a loop in the engine itself. */
const ROUNDS_MAX = 10_000;

/**
 * All events that come now, in order. `run` learns each of them.
 * @returns an empty list when the run waits for something from outside
 */
export function decide(run: Execution, setting: Setting): NewEvent[] {
  const decided: NewEvent[] = [];
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const events = nextMove(run, setting);
    if (events.length === 0) return decided;
    for (const event of events) learn(run, { ...event, at: event.occurredAt ?? setting.now });
    decided.push(...events);
  }
  throw new Error(`assertion failed: run ${run.runId} makes no end of its own moves`);
}

function nextMove(run: Execution, setting: Setting): NewEvent[] {
  if (isOver(run) || run.status === "created" || run.status === "queued") return [];
  if (run.status === "preparing") return [runStatus(run, "running")];
  if (Object.keys(run.uncertain).length > 0) return block(run);
  if (run.cancel && !run.ending) return [stopRun(run, "cancelled", run.cancel.reason ?? "cancelled")];
  if (run.ending) return finish(run);
  if (run.status === "blocked_uncertain") return [runStatus(run, "running")];
  const used = breach(run, setting);
  if (used) return [stopRun(run, "failed", `${used.code}: ${used.sentence}`, used.code)];
  if (!run.visit) return [enterStep(run, run.from?.stepId ?? run.plan.steps[0]!.id, false)];
  if (run.visit.outcome) return leave(run, setting);
  const asked = decideQuestion(run, setting);
  return asked ?? decideKind(run, setting);
}

/** A run with an effect that nobody can prove stands still until somebody resolves it. */
function block(run: Execution): NewEvent[] {
  if (run.status === "blocked_uncertain" || openAttempts(run).some(({ status }) => status === "executing")) return [];
  const [first] = Object.values(run.uncertain);
  return [runStatus(run, "blocked_uncertain", first!.reason)];
}

/** The last move, once nothing runs any more. */
function finish(run: Execution): NewEvent[] {
  if (openAttempts(run).length > 0) return [];
  const { as, reason } = run.ending!;
  const visit = run.visit;
  const step: NewEvent[] =
    visit && !visit.outcome
      ? [{ type: "step.status_changed", payload: { stepId: visit.stepId, stepAttempt: visit.stepAttempt, status: as, ...(reason && { reason }) } }]
      : [];
  return [...step, runStatus(run, as, reason)];
}

function decideKind(run: Execution, setting: Setting): NewEvent[] {
  const step = stepOf(run, run.visit!.stepId);
  switch (step.kind) {
    case "agent":
      return decideAgent(run, step, setting);
    case "moa":
      return decidePanel(run, step, setting);
    case "gate":
      return decideGate(run, step, setting);
    case "approval":
      return decideApproval(run, step, setting);
    case "wait":
      return decideWait(run, step, setting);
  }
}

/** Questions about the run itself come before a step does anything: its money, and whether it gets anywhere. */
function decideQuestion(run: Execution, setting: Setting): NewEvent[] | undefined {
  const visit = run.visit!;
  const purpose = visit.asked?.content.purpose;
  if (purpose === "cost" || purpose === "no-progress") {
    if (!visit.answer) return [];
    if (visit.answer.outcome === "approved") return goOn(run);
    const code = purpose === "cost" ? "cost_rejected" : "no_progress";
    return [stopRun(run, "failed", `${code}: ${visit.answer.actor} decided not to go on`, code)];
  }
  if (visit.assignments.length > 0 || visit.gateAttempts.length > 0 || visit.status !== "running") return undefined;
  const money = asksForMoney(run);
  if (money) {
    const currency = run.plan.limits.currency;
    const question = `the run has cost ${money.spent.toFixed(4)} of ${money.limit} ${currency}; may it go on?`;
    return askAbout(run, setting, "cost", question, { spent: money.spent, limit: money.limit, currency });
  }
  const times = withoutProgress(run, visit.stepId);
  if (times === undefined) return undefined;
  const last = run.results[visit.stepId]!;
  const question = `${visit.stepId} ended ${times} times in a row with ${last.outcome} and the same evidence; may it go on?`;
  return askAbout(run, setting, "no-progress", question, { times, outcome: last.outcome });
}
