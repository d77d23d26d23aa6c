// What a coordinator is told: at the start of a run, when a signal resumes it, when a wait ran out.
import { own } from "../../protocol/own.ts";
import type { StageState, WorkflowDefinition, WorkflowRun } from "../../protocol/workflows.ts";

/** Fills `{{ dotted.path }}` from a payload: strings as they are, objects and arrays as JSON, missing as nothing. Only own members are looked at. */
function renderTemplate(template: string, payload: unknown): string {
  return template.replaceAll(/\{\{\s*([^{}]{1,256}?)\s*\}\}/g, (_, path: string) => {
    const value = valueAt(payload, path);
    return value === undefined || value === null ? "" : typeof value === "string" ? value : JSON.stringify(value);
  });
}

/** The value at a dotted path: own members of objects only; arrays are not descended. */
export function valueAt(payload: unknown, path: string): unknown {
  let value = payload;
  for (const name of path.split(".")) {
    if (typeof value !== "object" || value === null || Array.isArray(value) || !Object.hasOwn(value, name)) return undefined;
    value = (value as Record<string, unknown>)[name];
  }
  return value;
}

const requirement = (stage: StageState, key: string) => {
  const policy = own(stage.resolvedEvidencePolicies, key);
  return policy ? `${key} (answers of ${policy.minProducers} of: ${policy.eligibleProducers.map(({ name }) => name).join(", ")})` : key;
};

function stageLines(stage: StageState, index: number): string {
  const needs = stage.requiredEvidence.length > 0 ? stage.requiredEvidence.map((key) => requirement(stage, key)).join("; ") : "none";
  return `${index + 1}. ${stage.id} — ${stage.label} (at most ${stage.maxAttempts} attempts)\n   ${stage.instructions.replaceAll("\n", "\n   ")}\n   Required evidence: ${needs}`;
}

/** The first prompt of a run: what to do, the stages in order, and how to report. */
export function promptFor(run: WorkflowRun, definition: WorkflowDefinition, payload: unknown): string {
  return [
    `KXM workflow run ${run.id} of ${definition.id}.`,
    renderTemplate(definition.promptTemplate, payload),
    `Stages, in order:\n${run.stages.map(stageLines).join("\n")}`,
    [
      "How to work:",
      "- Work on the current stage only. Record findings, decisions and errors with kxm_workflow_record.",
      "- Ask eligible peers with kxm_send and workflowContext where a requirement names them, and pass their message ids as evidenceRefs.",
      "- End each stage with kxm_workflow_checkpoint: status passed with every required evidence key, or warning or failed with what went wrong.",
      "- Wait for something outside with kxm_workflow_wait; a signed signal resumes the run.",
      "- Do not reply to this message before the run is complete: an early reply fails the run.",
    ].join("\n"),
  ].join("\n\n");
}

/** Tells the coordinator that a signal arrived and which stage it works on now. */
export function resumeFor(
  run: WorkflowRun,
  signal: { signalKey: string; status: string; summary: string; evidence: Record<string, string> },
): string {
  const evidence = Object.entries(signal.evidence).map(([key, value]) => `- ${key}: ${value}`);
  return [
    `KXM workflow run ${run.id} goes on: the signal ${signal.signalKey} arrived with status ${signal.status}.`,
    signal.summary,
    ...(evidence.length > 0 ? [`Evidence:\n${evidence.join("\n")}`] : []),
    `Current stage: ${run.currentStage}. Continue with kxm_workflow_checkpoint when it is done.`,
  ].join("\n\n");
}

/** Tells the coordinator that nothing came in time. */
export const timeoutFor = (run: WorkflowRun, waiting: { stageId: string; signalKey: string }): string =>
  `KXM workflow run ${run.id} failed: the wait for the signal ${waiting.signalKey} in stage ${waiting.stageId} timed out. Nothing more is to be done for this run.`;
