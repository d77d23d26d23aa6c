// What comes next inside the current step attempt, one function per kind of step. Pure.

import type { Failure } from "../harness/result.ts";
import type { PlanStep } from "../project/plan.ts";
import type { NewEvent } from "../store/events.ts";
import { piece, refusal } from "./evidence.ts";
import { type Assignment, type Attempt, attemptsOf, type Execution } from "./execution.ts";
import { agentAttempt, askAbout, bounded, gateAttempt, recordOutcome, runStatus, type Setting, takesNoAttempt } from "./moves.ts";
import { judge, nextAgent, wanted } from "./panel.ts";

const lastAttempt = (assignment: Assignment): Attempt | undefined => assignment.attempts[assignment.attempts.length - 1];

function createAssignment(run: Execution, step: PlanStep, setting: Setting, agentId: string): { assignmentId: string; events: NewEvent[] } {
  const assignmentId = setting.newId("asg");
  const visit = run.visit!;
  const identity = { stepId: step.id, stepAttempt: visit.stepAttempt, assignmentId, agentId, instanceNo: Math.min(visit.assignments.length + 1, 64) };
  const events: NewEvent[] = [
    { type: "assignment.created", payload: { ...identity, status: "created" } },
    { type: "assignment.accepted", payload: { ...identity, status: "accepted" } },
  ];
  return { assignmentId, events };
}

const terminal = (run: Execution, step: PlanStep, assignment: Assignment, outcome: string): NewEvent => ({
  type: "assignment.terminal",
  payload: {
    stepId: step.id,
    stepAttempt: run.visit!.stepAttempt,
    assignmentId: assignment.assignmentId,
    agentId: assignment.agentId,
    status: "terminal",
    outcome,
  },
});

/** One agent, one assignment, one attempt: another attempt is another step attempt. */
export function decideAgent(run: Execution, step: PlanStep, setting: Setting): NewEvent[] {
  const visit = run.visit!;
  const [assignment] = visit.assignments;
  if (!assignment) {
    const { assignmentId, events } = createAssignment(run, step, setting, step.agent!);
    return [...events, ...agentAttempt(run, step, setting, { assignmentId, agentId: step.agent! })];
  }
  if (assignment.status === "result_recorded") return [terminal(run, step, assignment, assignment.outcome!)];
  if (assignment.status !== "terminal") return [];
  const { outcome = "failed", summary = "", evidence, changes, failure } = assignment;
  return [settle(run, step, { outcome, summary, evidence, changes, failure, progress: changes.map(({ commit }) => commit).join("\n") })];
}

type Settled = {
  outcome: string;
  summary: string;
  evidence: Assignment["evidence"];
  changes?: Assignment["changes"];
  failure?: Failure;
  progress?: string;
};

/** Records the outcome; a step that declares `passed` is held to its evidence. */
function settle(run: Execution, step: PlanStep, end: Settled): NewEvent {
  const refused = end.outcome === "passed" && !end.failure ? refusal(run, step, end.evidence) : undefined;
  const failure = end.failure ?? refused;
  const outcome = failure ? "failed" : end.outcome;
  return recordOutcome(run, {
    ...end,
    outcome,
    failure,
    summary: failure ? failure.sentence : end.summary,
    declared: failure === undefined,
    status: outcome === "passed" ? "passed" : "failed",
  });
}

/** A panel: assignments up to the target, as many at once as may be, until the join is decided. */
export function decidePanel(run: Execution, step: PlanStep, setting: Setting): NewEvent[] {
  const panel = step.panel!;
  const { assignments } = run.visit!;
  const recorded = assignments.find(({ status }) => status === "result_recorded");
  if (recorded) return endOrRetry(run, step, recorded);
  const verdict = judge(step, assignments);
  if (verdict) {
    const open = assignments.filter(({ status }) => status !== "terminal");
    const idle = open.filter((one) => (lastAttempt(one)?.status ?? "ended") === "ended");
    if (panel.cancelRemaining && idle.length > 0) return idle.map((one) => terminal(run, step, one, "cancelled"));
    if (open.length > 0 && (panel.cancelRemaining || idle.length < open.length)) return [];
    if (open.length === 0) return [settlePanel(run, step, verdict)];
  }
  if (assignments.length < wanted(panel, assignments)) {
    const agentId = nextAgent(panel, run.plan.agents, assignments);
    if (agentId) return createAssignment(run, step, setting, agentId).events;
  }
  const busy = assignments.filter((one) => (lastAttempt(one)?.status ?? "ended") !== "ended").length;
  const waiting = assignments.find(({ status }) => status === "accepted" || status === "retry_pending");
  if (!waiting || busy >= panel.maxParallel) return [];
  return agentAttempt(run, step, setting, waiting);
}

function endOrRetry(run: Execution, step: PlanStep, assignment: Assignment): NewEvent[] {
  const lost = assignment.failure;
  const counted = assignment.attempts.filter(({ failure }) => !takesNoAttempt(failure)).length;
  const again = lost?.retryable && lost.class !== "cancelled" && counted < step.panel!.maxAttempts && !judge(step, run.visit!.assignments);
  if (!again) return [terminal(run, step, assignment, assignment.outcome ?? "failed")];
  const { assignmentId, agentId } = assignment;
  return [
    {
      type: "assignment.retry_pending",
      payload: {
        stepId: step.id,
        stepAttempt: run.visit!.stepAttempt,
        assignmentId,
        agentId,
        status: "retry_pending",
        reason: bounded(lost.sentence),
      },
    },
  ];
}

function settlePanel(run: Execution, step: PlanStep, verdict: { outcome: string; why: string }): NewEvent {
  const { assignments } = run.visit!;
  const evidence = assignments.flatMap((one) => (one.failure ? [] : one.evidence));
  const winner = step.panel!.strategy === "first-success" ? assignments.find(({ outcome, failure }) => outcome === "passed" && !failure) : undefined;
  const words = assignments.map((one) => `${one.agentId}: ${one.failure ? one.failure.class : one.outcome}`).join(", ");
  const lostAll = assignments.every(({ failure }) => failure !== undefined);
  const failure: Failure | undefined = lostAll ? assignments[0]?.failure : undefined;
  return settle(run, step, { outcome: verdict.outcome, summary: `${verdict.why} (${words})`, evidence, changes: winner?.changes, failure });
}

/** A gate: one attempt; its answer is the outcome, read by what was expected. */
export function decideGate(run: Execution, step: PlanStep, setting: Setting): NewEvent[] {
  const [attempt] = run.visit!.gateAttempts;
  if (!attempt) return [gateAttempt(run, step, setting)];
  if (attempt.status !== "ended") return [];
  const { failure, passed, evidence, tail = "" } = attempt;
  if (failure || passed === undefined) {
    const lost = failure ?? { class: "no_answer", sentence: "the gate gave no answer", retryable: true };
    return [settle(run, step, { outcome: "failed", summary: lost.sentence, evidence: [], failure: lost })];
  }
  const expected = step.expect === "fail" ? !passed : passed;
  const outcome = expected ? "passed" : step.expect === "fail" ? "repro-missing" : "implementation-failure";
  const summary = `${step.gate} ${passed ? "passed" : "failed"}${step.expect === "fail" ? ", failure was expected" : ""}`;
  return [settle(run, step, { outcome, summary, evidence: expected ? evidence : [], progress: tail })];
}

/** An approval: asks once over the exact state of the run, and takes the decision. */
export function decideApproval(run: Execution, step: PlanStep, setting: Setting): NewEvent[] {
  const visit = run.visit!;
  if (!visit.asked) {
    const question = step.instructions || step.description || `may the run go on after ${step.id}?`;
    const deadline = step.timeoutMs === undefined ? undefined : setting.steady + step.timeoutMs;
    return askAbout(run, setting, "step", question, undefined, deadline);
  }
  const { approvalId, contentHash, deadline } = visit.asked;
  const expired = visit.answer === undefined && deadline !== undefined && setting.steady >= deadline;
  if (!visit.answer && !expired) return [];
  const { outcome, actor, reason } = visit.answer ?? { outcome: "cancelled", actor: "runtime", reason: "nobody decided in time" };
  const mapped = outcome === "approved" ? "passed" : outcome;
  const evidence =
    mapped === "passed"
      ? [piece(setting.newId, { key: step.id, kind: "approval", producer: actor, text: `${approvalId} ${contentHash} ${actor}` })]
      : [];
  const summary = `${outcome} by ${actor}${reason ? `: ${reason}` : ""}`;
  return [...(run.status === "waiting" ? [runStatus(run, "running")] : []), settle(run, step, { outcome: mapped, summary, evidence })];
}

/** A wait: until its signal comes or its time is over. */
export function decideWait(run: Execution, step: PlanStep, setting: Setting): NewEvent[] {
  const visit = run.visit!;
  const { signal, stepId, stepAttempt } = visit;
  if (visit.status !== "waiting") {
    const deadline = step.timeoutMs === undefined ? undefined : setting.steady + step.timeoutMs;
    return [
      {
        type: "step.status_changed",
        payload: { stepId, stepAttempt, status: "waiting", previousStatus: "running", reason: `waits for the signal ${step.signal}` },
        local: { deadline },
      },
      ...(run.status === "running" ? [runStatus(run, "waiting", `waits for the signal ${step.signal}`)] : []),
    ];
  }
  const resumed = run.status === "waiting" ? [runStatus(run, "running")] : [];
  if (signal) {
    const known = step.outcomes.includes(signal.status);
    const failure = known
      ? undefined
      : { class: "signal_unknown", sentence: `the signal said ${signal.status}, the step knows ${step.outcomes.join(", ")}`, retryable: false };
    return [
      ...resumed,
      settle(run, step, { outcome: signal.status, summary: signal.summary ?? `${step.signal}: ${signal.status}`, evidence: [], failure }),
    ];
  }
  if (visit.waitDeadline === undefined || setting.steady < visit.waitDeadline) return [];
  const failure = { class: "wait_timeout", sentence: `the signal ${step.signal} did not come in time`, retryable: true };
  return [...resumed, settle(run, step, { outcome: "failed", summary: failure.sentence, evidence: [], failure })];
}

/** Attempts that should stop: all when the run is being ended, the rest of a panel that is decided. */
export function attemptsToStop(run: Execution): Attempt[] {
  const open = attemptsOf(run.visit).filter(({ status }) => status === "created" || status === "executing");
  if (run.ending || run.cancel) return open;
  const step = run.visit && run.plan.steps.find(({ id }) => id === run.visit!.stepId);
  if (!step?.panel?.cancelRemaining) return [];
  return judge(step, run.visit!.assignments) ? open : [];
}
