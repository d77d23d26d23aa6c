// Which write-ahead log belongs to which data file. SQLite replays whatever log lies beside a file, even another database's, and so destroys it: after a
// copy over a store that had crashed, for one. So the data file carries a token of its last opening, and the holder's note ties that token to the log.

import { Database } from "bun:sqlite";
import { copyFileSync, lstatSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LogNote } from "./holder.ts";
import { firstBytes, openImmutable } from "./inspect.ts";
import { GENERATION_KEY } from "./meta.ts";
import { StoreRefused } from "./refused.ts";

/** The meta row that holds the token of the last opening. */
export const OPENED_KEY = "opened";
const HEADER_BYTES = 32;

/**
 * The identity of a log, the same through all its restarts: SQLite adds 1 to the first salt and to the checkpoint number each time it starts over.
 * @returns undefined for no log, an empty one, or one whose header SQLite itself would ignore
 */
export function logFamily(path: string): number | undefined {
  const log = `${path}-wal`;
  if ((lstatSync(log, { throwIfNoEntry: false })?.size ?? 0) < HEADER_BYTES) return undefined;
  const header = firstBytes(log, HEADER_BYTES);
  if (!isHeader(header)) return undefined;
  return (header.readUInt32BE(16) - header.readUInt32BE(12)) >>> 0;
}

/** Magic number and checksum, as in SQLite's file format, section 4.1. */
function isHeader(header: Buffer): boolean {
  const magic = header.readUInt32BE(0);
  if (magic !== 0x377f0682 && magic !== 0x377f0683) return false;
  const word = (at: number) => (magic === 0x377f0683 ? header.readUInt32BE(at) : header.readUInt32LE(at));
  let [a, b] = [0, 0];
  for (let at = 0; at < 24; at += 8) {
    a = (a + word(at) + b) >>> 0;
    b = (b + word(at + 4) + a) >>> 0;
  }
  return header.readUInt32BE(24) === a && header.readUInt32BE(28) === b;
}

/**
 * Refuses a log that does not belong to the data file.
 * @param note what the last holder wrote down, if anything
 * @throws StoreRefused store_foreign_log
 */
export function checkLog(path: string, note: LogNote | undefined): void {
  const family = logFamily(path);
  if (family === undefined) return;
  if (!note) {
    if (!fitsTogether(path)) throw foreign(path, "together they are not a sound store");
    return;
  }
  if (note.closed) throw foreign(path, "the store was closed without one");
  if (note.family === null) return; // the last opening was cut short before it could look
  if (note.family !== family) throw foreign(path, "it is another database's");
  const token = inFile(path, OPENED_KEY);
  if (token !== undefined && !note.tokens.includes(token)) throw foreign(path, "the data file was replaced");
}

const foreign = (path: string, why: string) =>
  new StoreRefused(
    "store_foreign_log",
    `${path}-wal does not belong to ${path}: ${why}`,
    "Replaying it would destroy the data. If you copied a file here, move the -wal and -shm files away; `kxm restore` does that for you.",
  );

/** From the file alone. Undefined when it cannot be read by itself, because a checkpoint was cut short: then only the log completes it. */
function inFile(path: string, key: string): string | undefined {
  try {
    using database = openImmutable(path);
    return metaValue(database, key);
  } catch {
    return undefined;
  }
}

const metaValue = (database: Database, key: string) =>
  (database.query("select value from meta where key = ?").get(key) as { value: string } | null)?.value;

/** Nothing is known about this log, so the pair is tried on a copy: it must be sound, and of the same generation as the file alone. */
function fitsTogether(path: string): boolean {
  const folder = mkdtempSync(join(tmpdir(), "kxm-check-"));
  try {
    const copy = join(folder, "kxm.db");
    copyFileSync(path, copy);
    copyFileSync(`${path}-wal`, `${copy}-wal`);
    using database = new Database(copy, { readwrite: true, create: false });
    const { quick_check: found } = database.query("pragma quick_check(1)").get() as { quick_check: string };
    const generation = inFile(path, GENERATION_KEY);
    return found === "ok" && (generation === undefined || generation === metaValue(database, GENERATION_KEY));
  } catch {
    return false;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
