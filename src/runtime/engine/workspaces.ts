// Where an attempt will work: a branch and folder of its own for writing, one clean checkout per commit for reading.

import type { PlanStep } from "../project/plan.ts";
import type { EngineContext } from "./context.ts";
import { type Attempt, type Execution, openAttempts } from "./execution.ts";
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

/**
 * Makes the attempt's folder ready. A reading checkout is brought back to its commit first, unless somebody reads in it now.
 * @throws RuntimeRefusal repository_unusable
 */
export async function prepareWorkspace(context: EngineContext, run: Execution, attempt: Attempt): Promise<void> {
  const { workspace, attemptId } = attempt;
  const { worktrees } = context.machine;
  await worktrees.materialize(context.root, workspace);
  const others = openAttempts(run).some((one) => one.attemptId !== attemptId && one.workspace.path === workspace.path && one.status === "executing");
  if (workspace.access === "read" && !others) await worktrees.restore(workspace);
}
