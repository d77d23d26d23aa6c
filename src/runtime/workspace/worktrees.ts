// Where steps work: folders outside the checkout that are laid out as the project is, with a Git worktree of each of its repositories. Those that write have
// one of their own on a branch of its own; those that read the same commits share one.
import { existsSync, mkdirSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { RuntimeRefusal } from "../../protocol/runtime-errors.ts";
import type { Changes, Pinned, Position, Tree, Workspace } from "../engine/local.ts";
import { isWithin, type Repository } from "../project/repositories.ts";
import { git, gitlinksIn, tryGit } from "./git.ts";
import { isTreeOf, linkIn } from "./own-tree.ts";

const AUTHOR = { GIT_AUTHOR_NAME: "KXM", GIT_AUTHOR_EMAIL: "kxm@localhost", GIT_COMMITTER_NAME: "KXM", GIT_COMMITTER_EMAIL: "kxm@localhost" };
/** A fixed time: the commit that stands for an empty repository is the same on every machine. */
const EPOCH = { GIT_AUTHOR_DATE: "2000-01-01T00:00:00Z", GIT_COMMITTER_DATE: "2000-01-01T00:00:00Z" };

/**
 * Pins the commit that a run starts from in each repository: HEAD, or in one without commits an empty commit that no branch names.
 * @param root the project's root
 * @throws RuntimeRefusal repository_unusable when a folder is not a Git repository of its own in the project
 */
export async function pinHeads(root: string, repositories: Repository[]): Promise<Record<string, Pinned>> {
  for (const repository of repositories) await requireRepository(root, repository, repositories.length > 1);
  const pinned: Record<string, Pinned> = {};
  for (const { id, path } of repositories) {
    const folder = join(root, path);
    const inner = repositories.filter((other) => isWithin(other.path, path));
    for (const other of inner) await requireApart(folder, relative(folder, join(root, other.path)), { outer: id, inner: other.id });
    pinned[id] = await pinHead(
      folder,
      inner.map((other) => relative(path, other.path)),
    );
  }
  return pinned;
}

const unusable = (sentence: string, hint: string) => new RuntimeRefusal("repository_unusable", sentence, { hint });

/** A single repository at the root may begin above it; all others must be where the project says. */
async function requireRepository(root: string, { id, path }: Repository, several: boolean): Promise<void> {
  const folder = join(root, path);
  if (!existsSync(folder))
    throw unusable(`the repository ${id} is not there: ${folder} does not exist`, "Clone it to that folder, or correct .kxm/project.yaml.");
  if (realpathSync(folder) !== join(realpathSync(root), path))
    throw unusable(`the folder ${path} of the repository ${id} is a link`, "A repository of a project must lie in the project's own folders.");
  const top = await tryGit(folder, ["rev-parse", "--is-inside-work-tree", "--show-prefix"]);
  const [inside, prefix = ""] = top.stdout.trim().split("\n");
  if (top.code !== 0 || inside !== "true") throw unusable(`${folder} is not in a Git repository`, "Run `git init` there first.");
  if ((several || path !== ".") && prefix !== "")
    throw unusable(
      `${folder} is a folder of another repository, not the repository ${id}`,
      "Run `git init` there first, or correct .kxm/project.yaml.",
    );
}

/** Commits in a repository must not take up one that lies in it. */
async function requireApart(folder: string, path: string, names: { outer: string; inner: string }): Promise<void> {
  if ((await tryGit(folder, ["check-ignore", "-q", `./${path}`])).code === 0) return;
  if ((await tryGit(folder, ["ls-files", "--stage", "--", `:(literal)${path}`])).stdout.startsWith("160000 ")) return;
  throw unusable(
    `the repository ${names.inner} lies in ${names.outer}, which would take it up in its own commits`,
    `Add /${path}/ to the .gitignore of ${names.outer}.`,
  );
}

/** Limits a git command to what is the repository's own. @param inner folders of other repositories in it */
export const ownOnly = (inner: string[]): string[] => (inner.length === 0 ? [] : ["--", ".", ...inner.map((path) => `:(exclude,literal)${path}`)]);

async function pinHead(folder: string, inner: string[]): Promise<Pinned> {
  const head = await tryGit(folder, ["rev-parse", "--verify", "-q", "HEAD^{commit}"]);
  const dirty = (await git(folder, ["status", "--porcelain", "--untracked-files=no", ...ownOnly(inner)])) !== "";
  if (head.code === 0) return { base: head.stdout.trim(), dirty };
  const tree = await git(folder, ["hash-object", "-t", "tree", "-w", "--stdin"], { input: "" });
  const base = await git(folder, ["commit-tree", tree, "-m", "Empty start"], { env: { ...AUTHOR, ...EPOCH } });
  return { base, dirty };
}

/** Whether the commits that a run would go on from are still there. @throws RuntimeRefusal repository_unusable */
export async function requireCommits(root: string, repositories: Repository[], positions: Record<string, Pick<Position, "head">>): Promise<void> {
  for (const { id, path } of repositories) {
    const commit = positions[id]?.head;
    if (!commit || (await tryGit(join(root, path), ["cat-file", "-e", `${commit}^{commit}`])).code === 0) continue;
    throw unusable(`the commit ${commit.slice(0, 12)} of the repository ${id} is not there any more`, "Run the work again from its beginning.");
  }
}

/** One change of a project's worktrees at a time: git's own locks would make the others fail, and members of a panel share a checkout. */
const lines = new Map<string, Promise<unknown>>();
export function inLine<T>(root: string, work: () => Promise<T>): Promise<T> {
  const result = (lines.get(root) ?? Promise.resolve()).then(work, work);
  lines.set(root, result);
  return result;
}

/** Makes the folder an attempt works in, unless it is there already. Safe to call again after a crash. @throws RuntimeRefusal repository_unusable, worktree_unusable */
export const materialize = (root: string, workspace: Workspace): Promise<void> => inLine(root, () => makeWorkspace(root, workspace));

/** Beside each workspace: says that git had finished with it. Without it, a start was cut short and nothing has worked there yet. */
export const READY = ".ready";

async function makeWorkspace(root: string, workspace: Workspace): Promise<void> {
  const { path, trees } = workspace;
  const outerFirst = trees.toSorted((a, b) => a.path.length - b.path.length);
  const linked = (tree: Tree): boolean => linkIn(path, tree.path) !== undefined;
  if (existsSync(path) && (!existsSync(path + READY) || (workspace.access === "read" && trees.some(linked)))) {
    // Through a link, git would remove the worktree that it finds there.
    for (const tree of outerFirst.toReversed().filter((one) => !linked(one)))
      await tryGit(join(root, tree.path), ["worktree", "remove", "--force", "--force", join(path, tree.path)]);
    rmSync(path, { recursive: true, force: true });
  }
  makeFolder(trees.some((tree) => tree.path === ".") ? dirname(path) : path);
  for (const tree of outerFirst) await makeTree(join(root, tree.path), workspace, tree);
  writeFileSync(path + READY, "");
}

async function makeTree(repository: string, workspace: Workspace, { path, base, branch }: Tree): Promise<void> {
  const folder = join(workspace.path, path);
  if (await isTreeOf(repository, workspace.path, path)) return;
  const link = linkIn(workspace.path, path);
  if (link !== undefined) throw new RuntimeRefusal("worktree_unusable", `${folder} cannot be made: ${link} is a link`);
  // Whoever only reads here may not break it for the others; where somebody writes nothing is taken away.
  if (workspace.access === "read") rmSync(folder, { recursive: true, force: true });
  if (path !== ".") makeFolder(dirname(folder));
  // A branch that is there already keeps what is on it: its folder was removed, not its work.
  const known = branch !== undefined && (await tryGit(repository, ["rev-parse", "--verify", "-q", `refs/heads/${branch}`])).code === 0;
  const place = known ? [folder, branch] : [...(branch ? ["-b", branch] : ["--detach"]), folder, base];
  // Twice: what a start that was cut short left registered is locked. Nothing is pruned: worktrees of the user that are away just now would be lost.
  await git(repository, ["worktree", "add", "--quiet", "--force", "--force", ...place]);
}

function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (cause) {
    throw new RuntimeRefusal("worktree_unusable", `the folder ${folder} cannot be made (${(cause as NodeJS.ErrnoException).code})`, { cause });
  }
}

/** The repositories that lie in a worktree and that its index knows. Those of the project are among them. */
const repositoriesIn = async (folder: string): Promise<string[]> =>
  (await gitlinksIn(folder)).filter((path) => existsSync(join(folder, path, ".git")));

/** How worktrees are asked for what is not committed: new files count whatever is set, and the repositories that lie in them, which may be anybody's, are not asked. */
export const STATUS = ["--porcelain", "--untracked-files=normal", "--ignore-submodules=dirty"];

/** The folders of other repositories of the workspace that lie in this one, below it. */
const innerOf = ({ trees }: Workspace, outer: Tree): string[] =>
  trees.filter(({ path }) => isWithin(path, outer.path)).map(({ path }) => relative(outer.path, path));

/**
 * Brings what was only to be read back to its commit; what a step left there was never allowed. Answers what it had left.
 * @param root the project's root
 */
export async function restore(root: string, workspace: Workspace): Promise<string[]> {
  const left: string[] = [];
  for (const tree of workspace.trees) {
    if (tree.branch || !(await isTreeOf(join(root, tree.path), workspace.path, tree.path))) continue;
    left.push(...(await restoreTree(join(workspace.path, tree.path), tree, innerOf(workspace, tree))));
  }
  return left;
}

async function restoreTree(folder: string, { path, base }: Tree, inner: string[]): Promise<string[]> {
  const status = await git(folder, ["status", ...STATUS, ...ownOnly(inner)]);
  if (status === "" && (await git(folder, ["rev-parse", "HEAD"])) === base) return [];
  await git(folder, ["checkout", "--quiet", "--force", "--detach", base]);
  await git(folder, ["clean", "--quiet", "-ffd", ...ownOnly(inner)]);
  return status === "" ? [path] : status.split("\n").map((line) => join(path, line.slice(3)));
}

/**
 * Keeps what a write attempt did: commits what is uncommitted onto its branch. What it did where it was only to read is thrown away.
 * @param root the project's root
 * @returns what changed since the base, by repository
 * @throws RuntimeRefusal worktree_unusable when the attempt has taken a worktree away or put something else in its place
 */
export async function capture(root: string, workspace: Workspace, message: string): Promise<Changes[]> {
  if (workspace.access === "read") return [];
  const changes: Changes[] = [];
  for (const tree of workspace.trees) {
    if (!tree.branch) continue;
    const folder = join(workspace.path, tree.path);
    if (!(await isTreeOf(join(root, tree.path), workspace.path, tree.path)))
      throw new RuntimeRefusal("worktree_unusable", `the step took the worktree of ${tree.id} away, or put something else in its place: ${folder}`);
    const made = await captureTree(folder, tree, message, innerOf(workspace, tree));
    if (made) changes.push(made);
  }
  await restore(root, workspace);
  return changes;
}

async function captureTree(folder: string, { id, base, branch = "" }: Tree, message: string, inner: string[]): Promise<Changes | undefined> {
  // Of a repository that the step has left here only the commit counts: git would ask those that it knows for their changes, and run what they name for it.
  const nested = await repositoriesIn(folder);
  if (nested.length > 0) await git(folder, ["update-index", "--force-remove", "-z", "--stdin"], { input: nested.join("\0") });
  await git(folder, ["add", "-A"]);
  // Not left out of the line above: git takes it amiss when what is left out is ignored as well.
  if (inner.length > 0) await git(folder, ["reset", "--quiet", "--", ...inner.map((path) => `:(literal)${path}`)]);
  const staged = await tryGit(folder, ["diff", "--cached", "--quiet"]);
  if (staged.code !== 0) await git(folder, ["commit", "--quiet", "--no-verify", "-m", message], { env: await author(folder) });
  const commit = await git(folder, ["rev-parse", "HEAD"]);
  if (commit === base) return undefined;
  // The agent may have moved to another branch: the result is what it stands on.
  const on = await tryGit(folder, ["symbolic-ref", "-q", "--short", "HEAD"]);
  if (on.stdout.trim() !== branch) await git(folder, ["branch", "--force", branch, commit]);
  return { repositoryId: id, commit, branch, ...(await difference(folder, base, commit)) };
}

/** The user's own name where git knows one. */
async function author(path: string): Promise<Record<string, string>> {
  const name = await tryGit(path, ["var", "GIT_AUTHOR_IDENT"]);
  return name.code === 0 ? {} : AUTHOR;
}

async function difference(path: string, base: string, commit: string): Promise<Omit<Changes, "commit" | "branch" | "repositoryId">> {
  const names = (await git(path, ["diff", "--name-status", "--no-renames", "-z", base, commit])).split("\0").filter((field) => field !== "");
  const [added, modified, deleted]: [string[], string[], string[]] = [[], [], []];
  for (let at = 0; at + 1 < names.length; at += 2) (names[at] === "A" ? added : names[at] === "D" ? deleted : modified).push(names[at + 1]!);
  const counts = (await git(path, ["diff", "--numstat", "--no-renames", base, commit])).split("\n").map((line) => line.split("\t"));
  const sum = (column: number) => counts.reduce((total, fields) => total + (Number.parseInt(fields[column] ?? "", 10) || 0), 0);
  return { added, modified, deleted, linesAdded: sum(0), linesRemoved: sum(1) };
}
