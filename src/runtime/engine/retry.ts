// Running work again from one of its steps: a new run begins where an earlier one was when it last came to that step, with what that one had by then.
// What stands before the step must still have been passed as the project's files are now. Pure, but for reading the earlier run's events.
import { canonical } from "../../protocol/canonical.ts";
import { RuntimeRefusal } from "../../protocol/runtime-errors.ts";
import { EVIDENCE_MINIMUM_MAX } from "../../protocol/workflow-file.ts";
import { walk } from "../project/graph.ts";
import type { Plan, PlanStep } from "../project/plan.ts";
import type { EngineContext } from "./context.ts";
import { emptyExecution, fromRow, isOver, learn } from "./execution.ts";
import { eventsAfter, load, planOf } from "./load.ts";
import type { BoundEvidence, Carried, EnteredLocal } from "./local.ts";

type Reads = Pick<EngineContext, "store">;

/**
 * Checks that a run may be run again.
 * @param stepId from this step; undefined from the beginning
 * @throws RuntimeRefusal run_not_found; run_not_accepting when it has not ended, or never came to the step
 */
export function requireRetryable(context: Reads, runId: string, stepId: string | undefined): void {
  const run = load(context, runId);
  if (!isOver(run)) throw new RuntimeRefusal("run_not_accepting", `run ${runId} is ${run.status}: only a run that has ended can be run again`);
  if (stepId === undefined || run.counts[stepId]) return;
  const entered = run.plan.steps.filter(({ id }) => run.counts[id]).map(({ id }) => id);
  const came = entered.length > 0 ? `it came to ${entered.join(", ")}` : "it came to none";
  throw new RuntimeRefusal("run_not_accepting", `run ${runId} never came to a step ${stepId}; ${came}`);
}

/** What a run had when it last came to a step: folded from its events up to there. @throws RuntimeRefusal run_not_accepting when it never did */
export function carriedFrom(context: Reads, runId: string, stepId: string): { carried: Carried; plan: Plan } {
  const { plan, planHash } = planOf(context, runId);
  let visit = 0;
  let before = 0;
  for (const { eventType, payload, sequence } of eventsAfter(context, runId, 0)) {
    if (eventType !== "step.entered" || payload.stepId !== stepId) continue;
    const entered = payload.local as unknown as EnteredLocal;
    if (entered.visit !== visit) before = sequence; // further attempts of the same visit are no new beginning
    visit = entered.visit;
  }
  if (before === 0) throw new RuntimeRefusal("run_not_accepting", `run ${runId} never came to a step ${stepId}`);
  const run = emptyExecution(runId, plan, planHash);
  for (const row of eventsAfter(context, runId, 0)) {
    if (row.sequence === before) break;
    learn(run, fromRow(row));
  }
  const { repositories, results, pinned } = run;
  return { carried: { runId, stepId, repositories, results, evidence: worthCarrying(run.evidence), pinned }, plan };
}

/** Evidence is only counted, and never beyond what a step may ask for: a run that went round for days carries no more than others. */
function worthCarrying(evidence: BoundEvidence[]): BoundEvidence[] {
  const alike = Map.groupBy(evidence, ({ key, kind, producer }) => canonical([key, kind, producer]));
  return [...alike.values()].flatMap((pieces) => pieces.slice(-EVIDENCE_MINIMUM_MAX));
}

/**
 * Why a plan may not begin at a step with what was carried over: a gate or an approval would be left out, or there is no plan pinned that it needs.
 * @returns undefined when it may
 */
export function whyNotFrom(now: Plan, before: Plan, { stepId, results, pinned }: Carried): string | undefined {
  if (!now.steps.some(({ id }) => id === stepId)) return `the workflow ${now.workflowId} has no step ${stepId} any more`;
  if (now.requirePlanHash.includes(stepId) && pinned.planHash === undefined)
    return `${stepId} starts only once a plan is pinned, and the run had none`;
  const passed = new Map(checksBefore(before, stepId).map((step) => [step.id, step]));
  for (const step of checksBefore(now, stepId)) {
    const then = passed.get(step.id);
    if (!then || results[step.id]?.outcome !== "passed") return `the ${step.kind} ${step.id} comes before ${stepId}, and the run had not passed it`;
    if (meaningOf(now, step) !== meaningOf(before, then))
      return `the ${step.kind} ${step.id} comes before ${stepId}, and it has changed since the run passed it`;
  }
  return undefined;
}

/** What was pinned, as far as the plan would still pin the same: by the same step, as the same evidence. */
export function stillPinned(now: Plan, before: Plan, { planHash, oracle }: Carried["pinned"]): Carried["pinned"] {
  const same = (name: "planHash" | "reproOracle") => canonical(now[name] ?? null) === canonical(before[name] ?? null);
  return { ...(planHash !== undefined && same("planHash") && { planHash }), ...(oracle !== undefined && same("reproOracle") && { oracle }) };
}

/** The gates and approvals without whose passing a run never comes to a step. */
function checksBefore({ steps }: Plan, stepId: string): PlanStep[] {
  const index = new Map(steps.map(({ id }, at) => [id, at]));
  const graph = { routes: steps.map(({ routes }) => routes), index };
  const target = index.get(stepId)!;
  return steps.filter(({ kind, id }, at) => {
    if (id === stepId || (kind !== "gate" && kind !== "approval")) return false;
    return !walk(graph, 0, (from, route) => from !== at || route.outcome !== "passed").seen.has(target);
  });
}

/** All that decides what passing a gate or an approval means. Where it leads does not. */
const meaningOf = (plan: Plan, step: PlanStep): string =>
  canonical([{ ...step, routes: [], outcomes: [] }, step.gate ? plan.gates[step.gate]! : null]);
