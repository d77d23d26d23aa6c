// One process per data file. A lock on a small file beside the data is held for as long as the process lives, so a killed holder leaves nothing to clean
// up; a note beside it says who holds the store. The data file itself stays free for anybody who only reads (the sqlite3 shell, `kxm backup`).
import { Database } from "bun:sqlite";
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { hostname } from "node:os";
import { dirname } from "node:path";
import { createPrivately, syncFolder } from "./files.ts";
import { retryFor } from "./patience.ts";
import { StoreRefused } from "./refused.ts";

/** Who holds a store. */
export type Holder = { pid: number; host: string; startedAt: number; address?: string | undefined };
/**
 * Which log belongs to the data file (wal-owner.ts); outlives the holder. `tokens`: what the data file may say of its last opening. `family`: the log's
 * identity, null while the store is being opened. `closed`: no log was left.
 */
export type LogNote = { tokens: string[]; family: number | null; closed: boolean };
type Note = { holder?: Holder; log?: LogNote };

/** The lock of one store, held until `release`. */
export interface Hold {
  /** The log that the last holder left, if it noted one. */
  readonly log: LogNote | undefined;
  /** Makes the hub's address known to whoever is refused. */
  announce(address: string): void;
  /** Durable when it returns: SQLite's log may only be written after it was noted. */
  noteLog(log: LogNote): void;
  /** Frees the store for the next process. */
  release(): void;
}

const TAKE_MS_MAX = 1_000;
const TAKE_EVERY_MS = 20;
const here = new Set<string>(); // POSIX drops all locks a process has on a file as soon as it closes that file once

/**
 * Takes the store at `path` for this process.
 * @param now hub time, for the note
 * @throws StoreRefused store_held, naming the holder, within about a second
 */
export async function takeHold(path: string, now: number): Promise<Hold> {
  refuseHeldHere(path);
  here.add(path);
  try {
    const lock = await lockOrRefuse(path);
    return holdOf(path, lock, now);
  } catch (error) {
    here.delete(path);
    throw error;
  }
}

/** Looking into a data file that this process serves would drop its locks, so this comes before any look. @throws StoreRefused store_held */
export function refuseHeldHere(path: string): void {
  if (here.has(path)) throw held(path, readNote(path).holder);
}

/** Whether this process serves the store: then its data file must be opened through SQLite only. */
export const isHeldHere = (path: string): boolean => here.has(path);

/** What the last holder noted about the log, if it left a note. */
export const readLogNote = (path: string): LogNote | undefined => readNote(path).log;

/** Who holds the store, or undefined. It does not touch the lock, so a note of a process that was killed counts as nobody. */
export function readHolder(path: string): Holder | undefined {
  const { holder } = readNote(path);
  return holder && isAlive(holder) ? holder : undefined;
}

function holdOf(path: string, lock: Database, now: number): Hold {
  const holder: Holder = { pid: process.pid, host: hostname(), startedAt: now };
  let log = readNote(path).log;
  const save = () => writeNote(path, { holder, ...(log && { log }) });
  save();
  return {
    get log() {
      return log;
    },
    announce(address) {
      holder.address = address;
      save();
    },
    noteLog(next) {
      log = next;
      save();
    },
    release() {
      try {
        writeNote(path, log ? { log } : {});
      } finally {
        lock.close(true); // whatever the disk says: a note without its lock names nobody
        here.delete(path);
      }
    },
  };
}

/** A holder that was just killed, or has not yet written its note, is waited for. */
async function lockOrRefuse(path: string): Promise<Database> {
  const found = await retryFor(TAKE_MS_MAX, TAKE_EVERY_MS, () => tryLock(`${path}-lock`) ?? readHolder(path));
  if (found instanceof Database) return found;
  throw held(path, found);
}

/** An open write transaction is the lock: the kernel ends it with the process, however that dies. Nothing is ever written to the file. */
function tryLock(file: string): Database | undefined {
  createPrivately(file);
  const lock = new Database(file, { readwrite: true, create: false });
  try {
    lock.exec("pragma busy_timeout = 0; pragma journal_mode = memory; begin immediate");
    return lock;
  } catch (error) {
    lock.close(true);
    if ((error as { code?: string }).code?.startsWith("SQLITE_BUSY")) return undefined;
    throw error;
  }
}

function held(path: string, holder: Holder | undefined): StoreRefused {
  const who = holder ? `process ${holder.pid} on ${holder.host}${holder.address ? `, serving ${holder.address}` : ""}` : "another process";
  return new StoreRefused(
    "store_held",
    `${path} is in use by ${who}`,
    "One hub serves a data file: use that one, stop it with `kxm hub stop`, or choose another KXM_DATA_PATH.",
  );
}

function isAlive({ pid, host }: Holder): boolean {
  if (host !== hostname()) return true; // another machine on a shared disk: cannot tell
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as { code?: string }).code === "EPERM";
  }
}

function readNote(path: string): Note {
  try {
    return JSON.parse(readFileSync(`${path}-holder`, "utf8")) as Note;
  } catch {
    return {}; // absent, or torn by a power cut: then nothing is known, which is safe
  }
}

/** All of it or nothing of it, on the disk when this returns. */
function writeNote(path: string, note: Note): void {
  const temporary = `${path}-holder.new`;
  const file = openSync(temporary, "w", 0o600);
  try {
    writeSync(file, `${JSON.stringify(note)}\n`);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(temporary, `${path}-holder`);
  syncFolder(dirname(path));
}
