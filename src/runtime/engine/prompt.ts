// What an agent is told: who it is, what the run is for, what came before, what to do, and how to declare its outcome. Pure.
import type { PlanStep } from "../project/plan.ts";
import type { Execution } from "./execution.ts";
import type { Workspace } from "./local.ts";

/** Characters of earlier summaries and of one piece of evidence that are passed on. */
const BEFORE_CHARS_MAX = 12_000;
const PIECE_CHARS_MAX = 1000;

/** The step's instructions with the run's prompt filled in. */
export const instructionsOf = (step: PlanStep, prompt: string): string => step.instructions.replaceAll(PROMPT, () => prompt);
const PROMPT = /\{\{\s*prompt\s*\}\}/g;

/** The whole prompt of one attempt. @param prompt what the run was started with */
export function composePrompt(
  run: Execution,
  step: PlanStep,
  { agentId, workspace }: { agentId: string; workspace: Workspace },
  prompt: string,
): string {
  const agent = run.plan.agents[agentId]!;
  const task = instructionsOf(step, prompt);
  const parts = [
    run.plan.coordinator?.instructions,
    `You are ${agent.id}: ${agent.purpose}`,
    agent.instructions,
    prompt && step.instructions.search(PROMPT) === -1 ? `# The run\n\n${prompt}` : undefined,
    places(run, workspace),
    before(run),
    again(run, step),
    `# Your step: ${step.id}\n\n${[step.description, task].filter(Boolean).join("\n\n") || "Do what the run asks for."}`,
    declare(step),
  ];
  return parts.filter((part) => part !== undefined && part !== "").join("\n\n");
}

/** Where the repositories lie, for whoever works in more than one. */
function places(run: Execution, { trees }: Workspace): string | undefined {
  if (run.plan.repositories.length === 1) return undefined;
  const lines = trees.map(
    ({ id, path, branch }) => `- ${id}: ${path === "." ? "this folder" : `${path}/`}${branch ? "" : ", to read: changes there are thrown away"}`,
  );
  return lines.length === 0 ? undefined : `# Repositories\n\n${lines.join("\n")}`;
}

function before(run: Execution): string | undefined {
  const lines = Object.values(run.results).map(({ stepId, outcome, summary, evidence, changes }) => {
    const shown = evidence.map(({ key, text }) => `  - ${key}: ${text.slice(0, PIECE_CHARS_MAX)}`);
    const several = run.plan.repositories.length > 1;
    const commits = changes.map((one) => `  - commit ${one.commit} on ${one.branch}${several ? ` of ${one.repositoryId}` : ""}`);
    return [`- ${stepId}: ${outcome}. ${summary}`, ...commits, ...shown].join("\n");
  });
  return lines.length === 0 ? undefined : `# Steps so far\n\n${lines.join("\n").slice(-BEFORE_CHARS_MAX)}`;
}

/** On another attempt: what went wrong with the one before. */
function again(run: Execution, step: PlanStep): string | undefined {
  const last = run.results[step.id];
  if (!last || run.visit!.tryNo === 1) return undefined;
  return `# This is attempt ${run.visit!.tryNo} of ${step.maxAttempts}\n\nThe one before ended with ${last.failure ? `${last.failure.class}: ${last.failure.sentence}` : last.outcome}.`;
}

function declare(step: PlanStep): string {
  const evidence = step.requiredEvidence.filter(({ kind }) => kind === "assignment-result" || kind === "artifact").map(({ key }) => key);
  const example = {
    outcome: "passed",
    summary: "one or two sentences",
    ...(evidence.length > 0 && { evidence: Object.fromEntries(evidence.map((key) => [key, "…"])) }),
  };
  return [
    "# How to answer",
    `End your reply with one JSON object on lines of its own, nothing after it. outcome is one of: ${step.outcomes.join(", ")}.`,
    ...(evidence.length > 0 ? [`evidence must hold: ${evidence.join(", ")}.`] : []),
    `${JSON.stringify(example)}`,
    "Without that object the step fails, whatever the rest of the reply says.",
  ].join("\n\n");
}
