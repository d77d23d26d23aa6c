// Where an attempt will work, as a pure decision: a branch and folder of its own for writing, one clean checkout per commit for reading.
import type { PlanStep } from "../project/plan.ts";
import type { EngineContext } from "./context.ts";
import type { Execution } from "./execution.ts";
import type { Workspace } from "./local.ts";

/** The folder of all worktrees of a project. */
export const worktreesFolder = (context: Pick<EngineContext, "folder">): string => `${context.folder}/worktrees`;

/** @param attemptId tells the members of a writing panel apart */
export function workspaceFor(context: EngineContext, run: Execution, step: PlanStep, access: "read" | "write", attemptId: string): Workspace {
  const folder = `${worktreesFolder(context)}/${run.runId}`;
  if (access === "read") return { access, path: `${folder}/read-${run.head.slice(0, 12)}`, base: run.head };
  const { stepAttempt } = run.visit!;
  const name = step.kind === "moa" ? `${step.id}-${attemptId.slice(-8)}` : stepAttempt === 1 ? step.id : `${step.id}-${stepAttempt}`;
  return { access, path: `${folder}/${name}`, base: run.head, branch: `kxm/${run.runId}/${name}` };
}
