// What each kind of step takes, and what its outcomes are. Pure; the graph rules in graph.ts stand on this.

import type { Static } from "@sinclair/typebox";
import { type Edge, type Step, TERMINAL, type TerminalStatus } from "../../protocol/workflow-file.ts";

const COMMON = ["id", "kind", "description", "instructions", "timeoutMs", "on"] as const;
const FIELDS: Record<Step["kind"], { needs: readonly (keyof Step)[]; may: readonly (keyof Step)[] }> = {
  agent: { needs: ["agent"], may: ["maxAttempts", "repositories", "requiredEvidence"] },
  moa: { needs: ["assignments", "join"], may: ["maxAttempts", "repositories", "requiredEvidence"] },
  gate: { needs: ["gate"], may: ["expect", "maxAttempts", "requiredEvidence"] },
  approval: { needs: [], may: ["requiredEvidence"] },
  wait: { needs: ["signal"], may: [] },
};

/** Fields the step's kind does not take, and fields it needs. */
export function misplacedFields(step: Step): { forbidden: (keyof Step)[]; missing: (keyof Step)[] } {
  const rule = FIELDS[step.kind];
  const allowed = new Set<string>([...COMMON, ...rule.needs, ...rule.may]);
  const given = (Object.keys(step) as (keyof Step)[]).filter((field) => step[field] !== undefined);
  return { forbidden: given.filter((field) => !allowed.has(field)), missing: rule.needs.filter((field) => step[field] === undefined) };
}

/** Where one outcome of a step leads, with defaults filled in. */
export type Route = { outcome: string; target: string; maxTransitions?: number; terminalStatus: TerminalStatus; declared: boolean };

/** The outcomes a step of this kind always has, apart from those that `on` adds. */
export function builtInOutcomes(step: Step): string[] {
  if (step.kind === "gate") return ["passed", step.expect === "fail" ? "repro-missing" : "implementation-failure"];
  if (step.kind === "approval") return ["passed", "rejected", "cancelled"];
  if (step.kind === "moa") return ["passed", "failed", "quorum-not-met"];
  return ["passed", "failed"];
}

/** Outcomes `on` may name beyond the built-in ones: agents declare their own, a signal brings its own. Gates and approvals cannot. */
export const takesOwnOutcomes = (step: Step): boolean => step.kind === "agent" || step.kind === "moa" || step.kind === "wait";

const terminalFor = (outcome: string): TerminalStatus => (outcome === "passed" ? "completed" : outcome === "cancelled" ? "cancelled" : "failed");

/**
 * All routes out of a step. `passed` goes on to the next step unless `on` says otherwise; every other outcome without a rule ends the run
 * (after the attempts are used up).
 */
export function routesOf(steps: Step[], index: number): Route[] {
  const step = steps[index]!;
  const rules = step.on ?? {};
  const outcomes = [...new Set([...builtInOutcomes(step), ...Object.keys(rules)])];
  return outcomes.map((outcome) => {
    const rule = rules[outcome] as string | Static<typeof Edge> | undefined;
    if (rule === undefined) {
      const next = outcome === "passed" ? (steps[index + 1]?.id ?? TERMINAL) : TERMINAL;
      return { outcome, target: next, terminalStatus: terminalFor(outcome), declared: false };
    }
    const edge = typeof rule === "string" ? { target: rule } : rule;
    return {
      outcome,
      target: edge.target,
      maxTransitions: edge.maxTransitions,
      terminalStatus: edge.terminalStatus ?? terminalFor(outcome),
      declared: true,
    };
  });
}
