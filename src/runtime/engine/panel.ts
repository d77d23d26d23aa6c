// A panel of agents: who is assigned, when the join holds, and what may be stopped. Pure functions over the assignments of one visit.
import type { PlanAgent, PlanPanel, PlanStep } from "../project/plan.ts";
import type { Assignment } from "./execution.ts";

export type Verdict = { outcome: string; why: string };
const isTerminal = ({ status }: Assignment) => status === "terminal";
const hasPassed = (assignment: Assignment) => isTerminal(assignment) && assignment.outcome === "passed";
/** Ended without a declared result: another assignment may take its place. */
const isLost = (assignment: Assignment) => isTerminal(assignment) && assignment.failure !== undefined;

/** How many assignments must exist now: the target, and one more for each that was lost, up to the maximum. */
export function wanted(panel: PlanPanel, assignments: Assignment[]): number {
  return Math.min(panel.maximum, panel.target + assignments.filter(isLost).length);
}

/** The outcome of the panel once nothing can change it, else undefined. */
export function judge(step: PlanStep, assignments: Assignment[]): Verdict | undefined {
  const panel = step.panel!;
  const passed = assignments.filter(hasPassed).length;
  const settled = assignments.filter(isTerminal);
  const missing = wanted(panel, assignments) - settled.length; // those that run and those still to be made
  const results = settled.filter((one) => !isLost(one) && one.outcome !== "cancelled").length;
  const severe = () => ({ outcome: mostSevere(step, settled), why: `${passed} of ${settled.length} passed` });
  const short = () => ({
    outcome: "quorum-not-met",
    why: `${passed} passed, ${panel.minimumPassed} are needed; ${results} results, ${panel.minimum} are needed`,
  });
  switch (panel.strategy) {
    case "all": {
      if (settled.some((one) => !hasPassed(one) && !isLost(one))) return severe();
      if (passed >= panel.target) return { outcome: "passed", why: `all ${passed} passed` };
      return missing === 0 ? severe() : undefined;
    }
    case "all-settled": {
      if (missing > 0) return undefined;
      if (results < panel.minimum) return short();
      return passed >= panel.minimumPassed ? { outcome: "passed", why: `${passed} of ${settled.length} passed` } : severe();
    }
    case "quorum": {
      if (passed >= panel.minimumPassed && results >= panel.minimum)
        return { outcome: "passed", why: `${passed} passed, ${panel.minimumPassed} were needed` };
      return passed + missing < panel.minimumPassed || missing === 0 ? short() : undefined;
    }
    case "first-success": {
      const winner = assignments.find(hasPassed);
      if (winner) return { outcome: "passed", why: `${winner.agentId} passed first` };
      return missing === 0 ? severe() : undefined;
    }
  }
}

/** The most severe of what was declared: `failed` before all, then the outcome that the step lists last. */
function mostSevere(step: PlanStep, settled: Assignment[]): string {
  const outcomes = settled
    .map((one) => (isLost(one) ? "failed" : (one.outcome ?? "failed")))
    .filter((outcome) => outcome !== "passed" && outcome !== "cancelled");
  if (outcomes.length === 0) return "quorum-not-met";
  if (outcomes.includes("failed")) return "failed";
  return outcomes.toSorted((a, b) => step.outcomes.indexOf(b) - step.outcomes.indexOf(a))[0]!;
}

/** Whose turn the next assignment is: somebody who is not on the panel yet, and differs where the panel must differ; else whoever has the fewest. */
export function nextAgent(panel: PlanPanel, agents: Record<string, PlanAgent>, assignments: Assignment[]): string | undefined {
  const trait = (id: string) => (panel.distinctBy ? (agents[id]!.model?.[panel.distinctBy] ?? id) : id);
  const standing = assignments.filter((one) => !isLost(one));
  const taken = new Set(standing.map(({ agentId }) => trait(agentId)));
  const times = (id: string) => assignments.filter(({ agentId }) => agentId === id).length;
  const candidates = panel.distinctBy ? panel.agents.filter((id) => !taken.has(trait(id))) : panel.agents;
  return candidates.toSorted((a, b) => times(a) - times(b))[0];
}
