// The hub's folders and its two small files: the note of the running hub (`hub.json`) and the operator token of this machine (`admin.token`).
// Folders are 0700, files 0600, and neither a link nor somebody else's folder is accepted.
import { chmodSync, existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { hostname, networkInterfaces } from "node:os";
import { dirname, join, resolve } from "node:path";
import { newSecret } from "../protocol/ids.ts";
import { CommandFailed } from "./output.ts";

/** What a running hub leaves for the commands of this machine. */
export interface HubNote {
  pid: number;
  url: string;
  version: string;
  startedAt: string;
  logPath: string;
}

/**
 * Makes a folder that only its owner may enter.
 * @throws CommandFailed when it is a link, not a folder, belongs to somebody else, or is open to others and holds what is not KXM's
 */
export function privateFolder(path: string): void {
  const known = lstatSync(path, { throwIfNoEntry: false });
  if (known?.isSymbolicLink()) throw new CommandFailed(`${path} is a symbolic link`, "Name the real folder with KXM_STATE_DIR or KXM_WORKSPACE_DIR.");
  if (known && !known.isDirectory()) throw new CommandFailed(`${path} is not a folder`, "Move the file away, or name another folder.");
  if (known && process.getuid && known.uid !== process.getuid())
    throw new CommandFailed(`${path} belongs to another user`, "Name a folder of your own with KXM_STATE_DIR or KXM_WORKSPACE_DIR.");
  if (known && (known.mode & 0o077) !== 0 && isOfOthers(path))
    throw new CommandFailed(
      `${path} is open to others and holds files that are not KXM's`,
      "Name a folder of its own: nobody else could enter it then.",
    );
  try {
    if (!known) mkdirSync(path, { recursive: true, mode: 0o700 });
    chmodSync(path, 0o700); // mkdir's mode is cut by umask; an older folder may be open to others
  } catch (cause) {
    throw new CommandFailed(`${path} cannot be used: ${(cause as Error).message}`, "Check the folder's owner and permissions.");
  }
}

/** What lies in KXM's folders; a folder with other things alone, such as /tmp, is not to be closed to everybody else. */
const OURS = /^(?:hub\.(?:json|out)|admin\.token|\.gitignore|kxm\.db.*|kxm-hub\.jsonl.*|[0-9a-f]{24}\.json)$/;

function isOfOthers(path: string): boolean {
  const names = readdirSync(path);
  return names.length > 0 && !names.some((name) => OURS.test(name));
}

/** Makes an ordinary folder if there is none. @throws CommandFailed */
export function plainFolder(path: string): void {
  try {
    mkdirSync(path, { recursive: true });
  } catch (cause) {
    throw new CommandFailed(`${path} cannot be made: ${(cause as Error).message}`, "Check the path and its permissions.");
  }
}

/** Tells Git to leave everything in a folder alone: tokens and stores lie inside people's repositories. */
export function keepFromGit(folder: string): void {
  privateFolder(folder);
  const path = join(folder, ".gitignore");
  if (!existsSync(path)) writePrivate(path, "*\n");
}

/** Writes a small file that only its owner may read, whole or not at all. */
export function writePrivate(path: string, text: string): void {
  const draft = `${path}.${process.pid}.tmp`;
  rmSync(draft, { force: true });
  writeFileSync(draft, text, { mode: 0o600, flag: "wx" });
  chmodSync(draft, 0o600);
  renameSync(draft, path);
}

const notePath = (stateDir: string) => join(stateDir, "hub.json");
const tokenPath = (stateDir: string) => join(stateDir, "admin.token");

/** Says which hub serves this state folder, for its owner alone. */
export const writeNote = (stateDir: string, note: HubNote): void => writePrivate(notePath(stateDir), `${JSON.stringify(note, undefined, 2)}\n`);

/** Removes the note if it is still this process's. */
export function removeNote(stateDir: string, pid: number): void {
  if (readNote(stateDir)?.pid === pid) rmSync(notePath(stateDir), { force: true });
}

/**
 * The note of a hub of this folder, if there is a readable one. It may be stale: check with isAlive. Commands send this user's tokens to the address it
 * names, so it counts only where a hub of this user leaves it and for an address of this machine: a note may also have come with a repository.
 */
export function readNote(stateDir: string): HubNote | undefined {
  try {
    if (!isPrivate(stateDir)) return undefined;
    const note = JSON.parse(readFileSync(notePath(stateDir), "utf8")) as HubNote;
    return Number.isSafeInteger(note.pid) && note.pid > 0 && isHere(note.url) ? note : undefined;
  } catch {
    return undefined;
  }
}

/** Whether a folder is as `privateFolder` leaves it. */
function isPrivate(path: string): boolean {
  const known = lstatSync(path);
  return known.isDirectory() && (process.getuid === undefined || (known.uid === process.getuid() && (known.mode & 0o077) === 0));
}

/** Whether an address is one of this machine. */
function isHere(url: string): boolean {
  const { hostname: name, username, origin } = new URL(url);
  if (username !== "" || origin !== url) return false;
  const bare = name.replace(/^\[|\]$/g, "");
  if (bare === "localhost" || bare === "::1" || /^127\.\d+\.\d+\.\d+$/.test(bare) || bare === hostname().toLowerCase()) return true;
  return Object.values(networkInterfaces()).some((addresses) => addresses?.some(({ address }) => address === bare));
}

/** Whether a process of this id exists (it may be another program by now: ask it over HTTP, too). */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** Whether a process of this id exists and is one of this user, or this user may do everything. */
export function isOurs(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** The operator token of this machine, if this folder has one. */
export function readAdminToken(stateDir: string): string | undefined {
  try {
    return readFileSync(tokenPath(stateDir), "utf8").trim() || undefined;
  } catch {
    return undefined;
  }
}

/** The same; made on the first start. */
export function keepAdminToken(stateDir: string): string {
  const known = readAdminToken(stateDir);
  if (known) {
    chmodSync(tokenPath(stateDir), 0o600);
    return known;
  }
  const token = newSecret("kxm");
  writePrivate(tokenPath(stateDir), `${token}\n`);
  return token;
}

/** The state folder of the workspace that a folder lies in: the nearest `.kxm/state` upwards, or undefined. */
export function findStateDir(from: string): string | undefined {
  for (let folder = resolve(from); ; folder = dirname(folder)) {
    const candidate = join(folder, ".kxm", "state");
    if (existsSync(candidate)) return candidate;
    if (folder === dirname(folder)) return undefined;
  }
}
