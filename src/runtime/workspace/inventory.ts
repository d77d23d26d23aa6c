// The worktrees that runs have left: what they hold, what would be lost with them, and removing those that hold nothing. Work that is not proven to be kept
// elsewhere is never deleted.
import { existsSync, readdirSync, rmdirSync, rmSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { RuntimeRefusal } from "../../protocol/runtime-errors.ts";
import type { Repository } from "../project/repositories.ts";
import { git, gitlinksIn } from "./git.ts";
import { isTreeOf } from "./own-tree.ts";
import { inLine, ownOnly, READY, STATUS } from "./worktrees.ts";

/** A worktree of KXM as `kxm runs worktrees` shows it. */
export type WorktreeReport = {
  path: string;
  runId: string;
  /** The repository it belongs to, and where that one is. */
  repository: string;
  checkout: string;
  /** The folder that a step works in: its own, or one that it shares with worktrees of other repositories. */
  workspace: string;
  branch?: string;
  commit: string;
  /** Files that are not committed, and commits that no other branch or remote has. */
  uncommitted: number;
  unpushed: number;
  missing: boolean;
  /** Whether its folder holds something else now, in which git is not asked. */
  replaced: boolean;
  /** Folders that are repositories of their own: a commit of the worktree names theirs, and holds nothing of them. */
  nested: string[];
  /** Disk it takes; undefined where that cannot be told quickly. */
  bytes?: number;
};
type Found = Pick<WorktreeReport, "path" | "runId" | "repository" | "checkout" | "workspace" | "branch" | "commit">;

/** All worktrees of some repositories below `folder`, with what would be lost if they were removed; those that lie in another one come before it. */
export async function listWorktrees(root: string, folder: string, repositories: Repository[]): Promise<WorktreeReport[]> {
  const found: Found[] = [];
  for (const { id, path } of repositories) found.push(...(await worktreesOf(join(root, path), id, folder)));
  found.sort((a, b) => b.path.length - a.path.length);
  const reports: WorktreeReport[] = [];
  for (const one of found) {
    const inner = reports.filter(({ path }) => path.startsWith(one.path + sep));
    reports.push(await inspect(one, inner));
  }
  return reports;
}

async function worktreesOf(checkout: string, repository: string, folder: string): Promise<Found[]> {
  const blocks = (await git(checkout, ["worktree", "list", "--porcelain"])).split("\n\n");
  return blocks.flatMap((block) => {
    const lines = block.split("\n");
    const field = (name: string) => lines.find((line) => line.startsWith(`${name} `))?.slice(name.length + 1);
    const path = field("worktree");
    if (!path?.startsWith(folder + sep)) return [];
    const [runId = "", name = ""] = relative(folder, path).split(sep);
    const branch = field("branch")?.replace("refs/heads/", "");
    return [{ path, runId, repository, checkout, workspace: join(folder, runId, name), branch, commit: field("HEAD") ?? "" }];
  });
}

async function inspect(found: Found, inner: WorktreeReport[]): Promise<WorktreeReport> {
  const { path, checkout, branch, commit } = found;
  const missing = !existsSync(path);
  const replaced = !missing && !(await isTreeOf(checkout, found.workspace, relative(found.workspace, path) || "."));
  const asked = !missing && !replaced;
  const own = ownOnly(inner.map((one) => relative(path, one.path)));
  const status = asked ? await git(path, ["status", ...STATUS, ...own]) : "";
  const elsewhere = branch ? ["--not", `--exclude=${branch}`, "--branches", "--remotes"] : ["--not", "--branches", "--remotes"];
  const unpushed = commit ? Number(await git(checkout, ["rev-list", "--count", commit, ...elsewhere])) : 0;
  const all = missing ? undefined : await diskUse(path);
  const nested = asked ? await nestedIn(path, inner) : [];
  const bytes = all && inner.reduce((left, one) => left - (one.bytes ?? 0), all);
  return { ...found, uncommitted: status === "" ? 0 : status.split("\n").length, unpushed, missing, replaced, nested, bytes };
}

/** Submodules that somebody filled, and repositories that were made there. @param inner worktrees of other repositories, which are looked at by themselves */
async function nestedIn(path: string, inner: { path: string }[]): Promise<string[]> {
  return (await gitlinksIn(path)).filter((link) => !inner.some((one) => one.path === join(path, link)) && holdsSomething(join(path, link)));
}

function holdsSomething(folder: string): boolean {
  try {
    return readdirSync(folder).length > 0;
  } catch {
    return false;
  }
}

const DISK_USE_MS_MAX = 5000;

async function diskUse(path: string): Promise<number | undefined> {
  const child = Bun.spawn(["du", "-sk", path], { stdin: "ignore", stdout: "pipe", stderr: "ignore", timeout: DISK_USE_MS_MAX });
  const [text, code] = await Promise.all([new Response(child.stdout).text(), child.exited]);
  const blocks = Number.parseInt(text, 10);
  return code === 0 && Number.isSafeInteger(blocks) ? blocks * 1024 : undefined;
}

/** Why a worktree must stay; undefined when all in it is kept elsewhere. Its branch stays in any case, so committed work is never lost with it. */
export const whyKeep = (report: WorktreeReport): string | undefined => {
  if (report.replaced) return "something else was put in its place";
  if (report.uncommitted > 0) return `${report.uncommitted} files are not committed`;
  if (report.nested.length > 0) return `${report.nested.join(", ")} is a repository of its own, which is kept nowhere else`;
  if (!report.branch && report.unpushed > 0) return `${report.unpushed} commits are on no branch`;
  return undefined;
};

/**
 * Removes one worktree whose work is proven to be kept.
 * @param root the project's root
 * @throws RuntimeRefusal worktree_unproven, repository_unusable
 */
export const removeWorktree = (root: string, report: WorktreeReport): Promise<void> => inLine(root, () => remove(report));

async function remove(seen: WorktreeReport): Promise<void> {
  const { path, checkout, workspace } = seen;
  // What git itself would not refuse once more is looked at again: the report may be old.
  const report = { ...seen, nested: seen.missing ? [] : await nestedIn(path, []) };
  const why = whyKeep(report);
  if (why) throw new RuntimeRefusal("worktree_unproven", `${path} stays: ${why}`);
  // Without --force git itself refuses once more when something is uncommitted. With a submodule it always refuses, also when that is only an empty folder.
  const force = !report.missing && (await hasOnlyEmptySubmodules(path));
  await git(checkout, ["worktree", "remove", ...(force ? ["--force"] : []), path]);
  for (let parent = dirname(path); parent === workspace || parent.startsWith(workspace + sep); parent = dirname(parent))
    if (!removeEmpty(parent)) return;
  if (!existsSync(workspace)) rmSync(workspace + READY, { force: true });
}

async function hasOnlyEmptySubmodules(path: string): Promise<boolean> {
  if (existsSync(await git(path, ["rev-parse", "--path-format=absolute", "--git-path", "modules"]))) return false; // and what is nested was looked for
  return (await gitlinksIn(path)).length > 0;
}

/** Whether the folder was empty and is gone. */
function removeEmpty(folder: string): boolean {
  try {
    rmdirSync(folder);
    return true;
  } catch {
    return false;
  }
}
