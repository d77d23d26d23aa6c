// The rule for every file of the Runtime's state: ours alone (0700 folders, 0600 files), never through a symlink.
import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  type Stats,
  unlinkSync,
  writeSync,
} from "node:fs";
import { platform } from "node:os";
import { dirname } from "node:path";
import { type StatePaths, statePaths } from "../client/state-paths.ts";
import { sha256 } from "../protocol/canonical.ts";
import { RuntimeRefusal } from "../protocol/runtime-errors.ts";

const POSIX = platform() !== "win32";

/** Makes the folders of a state root, all ours and private. @throws RuntimeRefusal state_root_unsafe */
export function prepareStateRoot(root: string): StatePaths {
  mkdirSync(dirname(root), { recursive: true });
  const paths = statePaths(root);
  privateFolder(root, { followLink: true });
  for (const folder of [paths.runtime, paths.projects, paths.logs]) privateFolder(folder);
  return paths;
}

/** The real path of a project's root, which names its store. @throws RuntimeRefusal project_not_found */
export function canonicalRoot(projectRoot: string): string {
  try {
    return realpathSync(projectRoot);
  } catch (cause) {
    throw new RuntimeRefusal("project_not_found", `the project folder ${projectRoot} cannot be read`, { cause });
  }
}

/** Key of a project's store: the first 24 hex digits of SHA-256 of its canonical root. */
export const projectKey = (root: string): string => sha256(root).slice(0, 24);

/** Makes a folder that only this user can enter. @throws RuntimeRefusal state_root_unsafe for a symlink or a foreign owner */
export function privateFolder(folder: string, { followLink = false } = {}) {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const path = followLink ? realpathSync(folder) : folder;
  const stat = lstatSync(path);
  if (!stat.isDirectory()) throw unsafe(folder, stat.isSymbolicLink() ? "is a symlink" : "is not a folder");
  assertOwned(folder, stat);
  if (POSIX && (stat.mode & 0o077) !== 0) chmodSync(path, 0o700);
}

/**
 * Makes sure that a file which a library will open by its name is ours: creates it empty with 0600 when it is missing.
 * @throws RuntimeRefusal state_root_unsafe for a symlink, something that is not a file, a second hard link, or a foreign owner
 */
export function claimFile(path: string, { create = true } = {}) {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (!stat) {
    if (create) closeSync(openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_EXCL | noFollow, 0o600));
    return;
  }
  assertPlain(path, stat);
  if (POSIX && (stat.mode & 0o077) !== 0) chmodSync(path, 0o600);
}

/** Replaces a private file whole: a reader sees the old text or the new one. Durable on return. */
export function writePrivate(path: string, text: string) {
  claimFile(path, { create: false });
  const temporary = `${path}.${process.pid}.new`;
  const file = openSync(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | noFollow, 0o600);
  try {
    if (POSIX) fchmodSync(file, 0o600);
    writeSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(temporary, path);
}

/** Makes a private file, unless there is one. Durable on return. Answers whether it was made. */
export function createPrivate(path: string, text: string): boolean {
  let file: number;
  try {
    file = openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | noFollow, 0o600);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
  try {
    writeSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  return true;
}

/** Text of a private file, or undefined when there is none. @throws RuntimeRefusal state_root_unsafe */
export function readPrivate(path: string): string | undefined {
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | noFollow);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    if ((error as NodeJS.ErrnoException).code === "ELOOP") throw unsafe(path, "is a symlink");
    throw error;
  }
  try {
    assertPlain(path, fstatSync(file));
    return readFileSync(file, "utf8");
  } finally {
    closeSync(file);
  }
}

/** Removes a file that may be missing. */
export function removePrivate(path: string) {
  try {
    unlinkSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}

const noFollow = POSIX ? constants.O_NOFOLLOW : 0;
const unsafe = (path: string, why: string) => new RuntimeRefusal("state_root_unsafe", `${path} ${why}`);

function assertPlain(path: string, stat: Stats) {
  if (stat.isSymbolicLink()) throw unsafe(path, "is a symlink");
  if (!stat.isFile()) throw unsafe(path, "is not a plain file");
  if (POSIX && stat.nlink > 1) throw unsafe(path, "has a second hard link");
  assertOwned(path, stat);
}

function assertOwned(path: string, stat: Stats) {
  const uid = process.getuid?.();
  if (uid !== undefined && stat.uid !== uid) throw unsafe(path, `belongs to user ${stat.uid}, not to you (${uid})`);
}
