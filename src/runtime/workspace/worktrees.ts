// Where steps work: Git worktrees outside the checkout, one per write attempt on a branch of its own, one per commit for reading. Work that is not
// proven to be kept elsewhere is never deleted.
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { RuntimeRefusal } from "../../protocol/runtime-errors.ts";
import type { Changes, Workspace } from "../engine/local.ts";
import { git, tryGit } from "./git.ts";

const AUTHOR = { GIT_AUTHOR_NAME: "KXM", GIT_AUTHOR_EMAIL: "kxm@localhost", GIT_COMMITTER_NAME: "KXM", GIT_COMMITTER_EMAIL: "kxm@localhost" };
/** A fixed time: the commit that stands for an empty repository is the same on every machine. */
const EPOCH = { GIT_AUTHOR_DATE: "2000-01-01T00:00:00Z", GIT_COMMITTER_DATE: "2000-01-01T00:00:00Z" };

/** The commit a run starts from, and whether the checkout has changes that are not in it. */
export type Pinned = { base: string; dirty: boolean };

/**
 * Pins the commit that a run starts from: HEAD, or in a repository without commits an empty one that no branch names.
 * @throws RuntimeRefusal repository_unusable when the folder is not in a Git repository
 */
export async function pinHead(root: string): Promise<Pinned> {
  const inside = await tryGit(root, ["rev-parse", "--is-inside-work-tree"]);
  if (inside.code !== 0 || inside.stdout.trim() !== "true")
    throw new RuntimeRefusal("repository_unusable", `${root} is not in a Git repository`, { hint: "Run `git init` there first." });
  const head = await tryGit(root, ["rev-parse", "--verify", "-q", "HEAD^{commit}"]);
  const dirty = (await git(root, ["status", "--porcelain", "--untracked-files=no"])) !== "";
  if (head.code === 0) return { base: head.stdout.trim(), dirty };
  const tree = await git(root, ["hash-object", "-t", "tree", "-w", "--stdin"], { input: "" });
  const base = await git(root, ["commit-tree", tree, "-m", "Empty start"], { env: { ...AUTHOR, ...EPOCH } });
  return { base, dirty };
}

/** One change of a repository's worktrees at a time: git's own locks would make the others fail, and members of a panel share a checkout. */
const lines = new Map<string, Promise<unknown>>();
function inLine<T>(root: string, work: () => Promise<T>): Promise<T> {
  const result = (lines.get(root) ?? Promise.resolve()).then(work, work);
  lines.set(root, result);
  return result;
}

/** Makes the folder an attempt works in, unless it is there already. Safe to call again after a crash. @throws RuntimeRefusal repository_unusable */
export const materialize = (root: string, workspace: Workspace): Promise<void> => inLine(root, () => makeWorktree(root, workspace));

/** Beside each worktree: says that git had finished with it. Without it, a start was cut short and nothing has worked there yet. */
const READY = ".ready";

async function makeWorktree(root: string, { path, base, branch }: Workspace): Promise<void> {
  if (existsSync(path)) {
    if (existsSync(path + READY)) return;
    await tryGit(root, ["worktree", "remove", "--force", "--force", path]);
    rmSync(path, { recursive: true, force: true });
  }
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  } catch (cause) {
    throw new RuntimeRefusal("worktree_unusable", `the folder ${dirname(path)} cannot be made (${(cause as NodeJS.ErrnoException).code})`, { cause });
  }
  await git(root, ["worktree", "prune"]);
  await git(root, ["worktree", "add", "--quiet", "--force", ...(branch ? ["-B", branch] : ["--detach"]), path, base]);
  writeFileSync(path + READY, "");
}

/** Brings a reading checkout back to its commit; what a read-only step left there was never allowed. Answers what it had left. */
export async function restore(workspace: Workspace): Promise<string[]> {
  const left = await git(workspace.path, ["status", "--porcelain"]);
  if (left === "") return [];
  await git(workspace.path, ["checkout", "--quiet", "--force", "--detach", workspace.base]);
  await git(workspace.path, ["clean", "--quiet", "-fd"]);
  return left.split("\n").map((line) => line.slice(3));
}

/**
 * Keeps what a write attempt did: commits what is uncommitted onto its branch.
 * @returns what changed since the base; undefined when nothing did
 */
export async function capture(workspace: Workspace, message: string): Promise<Changes | undefined> {
  const { path, base, branch } = workspace;
  if (!branch) return undefined;
  await git(path, ["add", "-A"]);
  const staged = await tryGit(path, ["diff", "--cached", "--quiet"]);
  if (staged.code !== 0) await git(path, ["commit", "--quiet", "--no-verify", "-m", message], { env: await author(path) });
  const commit = await git(path, ["rev-parse", "HEAD"]);
  if (commit === base) return undefined;
  // The agent may have moved to another branch: the result is what it stands on.
  const on = await tryGit(path, ["symbolic-ref", "-q", "--short", "HEAD"]);
  if (on.stdout.trim() !== branch) await git(path, ["branch", "--force", branch, commit]);
  return { commit, branch, ...(await difference(path, base, commit)) };
}

/** The user's own name where git knows one. */
async function author(path: string): Promise<Record<string, string>> {
  const name = await tryGit(path, ["var", "GIT_AUTHOR_IDENT"]);
  return name.code === 0 ? {} : AUTHOR;
}

async function difference(path: string, base: string, commit: string): Promise<Omit<Changes, "commit" | "branch">> {
  const names = (await git(path, ["diff", "--name-status", "--no-renames", "-z", base, commit])).split("\0").filter((field) => field !== "");
  const [added, modified, deleted]: [string[], string[], string[]] = [[], [], []];
  for (let at = 0; at + 1 < names.length; at += 2) (names[at] === "A" ? added : names[at] === "D" ? deleted : modified).push(names[at + 1]!);
  const counts = (await git(path, ["diff", "--numstat", "--no-renames", base, commit])).split("\n").map((line) => line.split("\t"));
  const sum = (column: number) => counts.reduce((total, fields) => total + (Number.parseInt(fields[column] ?? "", 10) || 0), 0);
  return { added, modified, deleted, linesAdded: sum(0), linesRemoved: sum(1) };
}

/** A worktree of KXM as `kxm runs worktrees` shows it. */
export type WorktreeReport = {
  path: string;
  runId: string;
  branch?: string;
  commit: string;
  /** Files that are not committed, and commits that no other branch or remote has. */
  uncommitted: number;
  unpushed: number;
  missing: boolean;
  /** Disk it takes; undefined where that cannot be told quickly. */
  bytes?: number;
};

/** All worktrees below `folder`, with what would be lost if they were removed. */
export async function listWorktrees(root: string, folder: string): Promise<WorktreeReport[]> {
  const blocks = (await git(root, ["worktree", "list", "--porcelain"])).split("\n\n");
  const reports: WorktreeReport[] = [];
  for (const block of blocks) {
    const field = (name: string) =>
      block
        .split("\n")
        .find((line) => line.startsWith(`${name} `))
        ?.slice(name.length + 1);
    const path = field("worktree");
    if (!path?.startsWith(`${folder}/`)) continue;
    const [runId = ""] = path.slice(folder.length + 1).split("/");
    const commit = field("HEAD") ?? "";
    const branch = field("branch")?.replace("refs/heads/", "");
    const missing = !existsSync(path);
    const status = missing ? "" : await git(path, ["status", "--porcelain"]);
    const elsewhere = branch ? ["--not", `--exclude=${branch}`, "--branches", "--remotes"] : ["--not", "--branches", "--remotes"];
    const unpushed = commit ? Number(await git(root, ["rev-list", "--count", commit, ...elsewhere])) : 0;
    const bytes = missing ? undefined : await diskUse(path);
    reports.push({ path, runId, branch, commit, uncommitted: status === "" ? 0 : status.split("\n").length, unpushed, missing, bytes });
  }
  return reports;
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
  if (report.uncommitted > 0) return `${report.uncommitted} files are not committed`;
  if (!report.branch && report.unpushed > 0) return `${report.unpushed} commits are on no branch`;
  return undefined;
};

/** Removes one worktree whose work is proven to be kept. @throws RuntimeRefusal worktree_unproven */
export const removeWorktree = (root: string, report: WorktreeReport): Promise<void> => inLine(root, () => remove(root, report));

async function remove(root: string, report: WorktreeReport): Promise<void> {
  const why = whyKeep(report);
  if (why) throw new RuntimeRefusal("worktree_unproven", `${report.path} stays: ${why}`);
  // Without --force git itself refuses once more when something is uncommitted.
  if (report.missing) await git(root, ["worktree", "prune"]);
  else await git(root, ["worktree", "remove", report.path]);
  rmSync(report.path + READY, { force: true });
}
