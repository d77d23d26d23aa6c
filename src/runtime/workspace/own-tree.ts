// Whether a folder of a workspace is still the worktree that was made there. Whoever works in it can put anything in its place, such as a link to the
// user's own checkout: git is called only where this was seen to be so.
import { lstatSync, readFileSync, realpathSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { tryGit } from "./git.ts";

/** The first link on the way to a repository's folder, from the workspace on; undefined when there is none. @param path below the workspace */
export function linkIn(workspace: string, path: string): string | undefined {
  const names = path === "." ? [] : path.split("/");
  const way = [workspace, ...names.map((_, at) => join(workspace, ...names.slice(0, at + 1)))];
  return way.find((folder) => lstatSync(folder, { throwIfNoEntry: false })?.isSymbolicLink());
}

/**
 * Whether a folder is a worktree of a repository: no link leads to it, and its `.git` and the repository's own record of it name each other. Nothing in the
 * folder is run for it.
 * @param repository the checkout that the worktree was made from
 * @param path of the worktree, below the workspace
 */
export async function isTreeOf(repository: string, workspace: string, path: string): Promise<boolean> {
  if (linkIn(workspace, path) !== undefined) return false;
  const file = join(workspace, path, ".git");
  if (!lstatSync(file, { throwIfNoEntry: false })?.isFile()) return false;
  const store = await tryGit(repository, ["rev-parse", "--path-format=absolute", "--git-common-dir"]);
  if (store.code !== 0) return false;
  try {
    const record = realpathSync(pathIn(file, "gitdir: "));
    const worktrees = join(realpathSync(store.stdout.trim()), "worktrees");
    return dirname(record) === worktrees && realpathSync(pathIn(join(record, "gitdir"))) === realpathSync(file);
  } catch {
    return false; // what it names is not there
  }
}

/** The path that a file of git holds; one that is relative begins at the file's folder. */
const pathIn = (file: string, before = ""): string => {
  const text = readFileSync(file, "utf8").replace(/\n$/, "");
  return resolve(dirname(file), text.startsWith(before) ? text.slice(before.length) : "");
};
