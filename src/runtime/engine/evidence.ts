// Evidence: what a step must show before it passes, and the two pieces a run pins (its plan, its reproduction). Evidence counts for its own attempt.
import { taggedSha256 } from "../../protocol/canonical.ts";
import type { EvidenceKind } from "../../protocol/workflow-file.ts";
import type { Failure } from "../harness/result.ts";
import type { NewId } from "../ids.ts";
import type { PlanStep } from "../project/plan.ts";
import { type Execution, hashOf } from "./execution.ts";
import type { EvidencePiece } from "./local.ts";

/** Characters of one piece that are kept with the event. */
const TEXT_MAX = 4000;

/** A new piece; its hash is that of the whole text. */
export const piece = (newId: NewId, given: { key: string; kind: EvidenceKind; producer: string; text: string }): EvidencePiece => ({
  id: newId("evd"),
  key: given.key,
  kind: given.kind,
  producer: given.producer,
  hash: taggedSha256(given.text),
  text: given.text.slice(0, TEXT_MAX),
});

/** What is missing before the step may pass, in words; an empty list when nothing is. */
function missingEvidence(run: Execution, step: PlanStep, shown: EvidencePiece[]): string[] {
  return step.requiredEvidence.flatMap(({ key, kind, minimum, reusable, distinct }) => {
    const pool = reusable ? [...run.evidence, ...shown] : shown;
    const fitting = pool.filter((one) => one.key === key && one.kind === kind);
    const count = distinct ? new Set(fitting.map(({ producer }) => producer)).size : fitting.length;
    return count >= minimum ? [] : [`${key} (${kind}): ${count} of ${minimum}${distinct ? " from different producers" : ""}`];
  });
}

/**
 * Why a step that says it passed may not: evidence is missing, or the reproduction it shows is another one than was pinned.
 * @returns undefined when it may
 */
export function refusal(run: Execution, step: PlanStep, shown: EvidencePiece[]): Failure | undefined {
  const missing = missingEvidence(run, step, shown);
  if (missing.length > 0)
    return { class: "evidence_missing", sentence: `the step declared passed without the evidence it needs: ${missing.join("; ")}`, retryable: true };
  const oracle = run.plan.reproOracle;
  const again = oracle && run.pinned.oracle !== undefined ? hashOf(shown, oracle.evidenceKey) : undefined;
  if (again !== undefined && again !== run.pinned.oracle)
    return {
      class: "weakened_reproduction",
      sentence: `the evidence ${oracle!.evidenceKey} differs from the reproduction that was pinned`,
      retryable: true,
    };
  const plan = run.plan.planHash;
  if (plan?.step === step.id && !hashOf(shown, plan.evidenceKey))
    return { class: "evidence_missing", sentence: `the step must show ${plan.evidenceKey}, which pins the plan`, retryable: true };
  if (oracle?.step === step.id && !hashOf(shown, oracle.evidenceKey))
    return { class: "evidence_missing", sentence: `the step must show ${oracle.evidenceKey}, which pins the reproduction`, retryable: true };
  return undefined;
}
