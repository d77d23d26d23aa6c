// Where an attempt will work: a branch and folder of its own for writing, one clean checkout per commit for reading.

import { sha256 } from "../../protocol/canonical.ts";
import type { PlanStep } from "../project/plan.ts";
import type { Access } from "../project/repositories.ts";
import type { EngineContext } from "./context.ts";
import { type Attempt, type Execution, openAttempts } from "./execution.ts";
import type { Tree, Workspace } from "./local.ts";

/** The folder of all worktrees of a project. */
export const worktreesFolder = (context: Pick<EngineContext, "folder">): string => `${context.folder}/worktrees`;

/** @param attemptId tells the members of a writing panel apart */
export function workspaceFor(context: EngineContext, run: Execution, step: PlanStep, granted: Record<string, Access>, attemptId: string): Workspace {
  const folder = `${worktreesFolder(context)}/${run.runId}`;
  const seen = run.plan.repositories.filter(({ id }) => granted[id] !== "none");
  const headed = seen.map((repository) => ({ ...repository, base: run.repositories[repository.id]!.head }));
  if (!Object.values(granted).includes("write")) return { access: "read", path: `${folder}/read-${contentOf(headed)}`, trees: headed };
  const { stepAttempt } = run.visit!;
  const name = step.kind === "moa" ? `${step.id}-${attemptId.slice(-8)}` : stepAttempt === 1 ? step.id : `${step.id}-${stepAttempt}`;
  const branch = `kxm/${run.runId}/${name}`;
  const trees = headed.map((tree) => (granted[tree.id] === "write" ? { ...tree, branch } : tree));
  return { access: "write", path: `${folder}/${name}`, trees };
}

/** Names what a reading checkout holds: those that hold the same may share it. */
function contentOf(trees: Tree[]): string {
  const [only] = trees;
  const content = trees.length === 1 ? only!.base : sha256(trees.map(({ id, base }) => `${id}=${base}`).join("\n"));
  return content.slice(0, 12);
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
  if (workspace.access === "read" && !others) await worktrees.restore(context.root, workspace);
}
