// `kxm restore`: puts a backup in the place of a stopped hub's store. The old store is kept; the restored one is made safe to serve: new generation, higher fences.
import { Database } from "bun:sqlite";
import { chmodSync, copyFileSync, existsSync, linkSync, readFileSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import type { IdPrefix } from "../protocol/ids.ts";
import { type Manifest, manifestOf, sha256OfFile } from "./backup.ts";
import { writeOnce } from "./dialect-sqlite.ts";
import { createPrivately, syncFile, syncFolder } from "./files.ts";
import { type LogNote, takeHold } from "./holder.ts";
import { inspectFolder, inspectHeader } from "./inspect.ts";
import { markRestored, unknownRestores } from "./meta.ts";
import { MIGRATIONS } from "./migrate.ts";
import { connect } from "./pragmas.ts";
import { StoreRefused } from "./refused.ts";
import { makeFolder } from "./store-file.ts";
import { type OnProgress, verifySqlite } from "./verify.ts";
import { checkLog } from "./wal-owner.ts";

export type Restored = {
  generation: string;
  fenceFloor: number;
  /** Where the store that was replaced lies now; absent if there was none. */
  keptAs?: string;
};

/**
 * Replaces the store at `path` with a backup. Nothing is changed until the copy has been verified.
 * @param options.clock hub time in ms
 * @throws StoreRefused store_held (a hub runs), backup_missing, backup_damaged, store_newer, or why the folder cannot be used
 */
export async function restore(options: {
  backup: string;
  path: string;
  clock: () => number;
  newId: (prefix: IdPrefix) => string;
  onProgress?: OnProgress;
}): Promise<Restored> {
  const { backup, path, clock, newId, onProgress = () => {} } = options;
  if (!existsSync(backup)) throw new StoreRefused("backup_missing", `there is no backup ${backup}`, "Name the file that `kxm backup` wrote.");
  inspectFolder(dirname(path));
  makeFolder(path);
  const hold = await takeHold(path, clock());
  const incoming = `${path}.restoring`;
  try {
    rmSync(incoming, { force: true });
    createPrivately(incoming);
    copyFileSync(backup, incoming);
    await checkCopy(backup, incoming, onProgress);
    const mark = markCopy(incoming, { now: clock(), newId }, restoresBefore(path, clock(), hold.log));
    const keptAs = keepOld(path);
    renameSync(incoming, path); // in one step: whatever happens, one whole store has the name
    syncFolder(dirname(path));
    hold.noteLog({ tokens: [], family: null, closed: true });
    return { ...mark, ...(keptAs !== undefined && { keptAs }) };
  } catch (error) {
    for (const suffix of ["", "-journal"]) rmSync(incoming + suffix, { force: true });
    throw error;
  } finally {
    hold.release();
  }
}

async function checkCopy(backup: string, copy: string, onProgress: OnProgress) {
  inspectHeader(copy, MIGRATIONS.length);
  const manifest = readManifest(backup);
  if (manifest && manifest.sha256 !== (await sha256OfFile(copy, onProgress))) {
    throw new StoreRefused("backup_damaged", `${backup} is not the file that its manifest describes`, "Use another backup.");
  }
  const { damaged, damage, unreadable } = await verifySqlite(copy, { onProgress, pending: true }); // an older schema is brought up at the next start
  if (unreadable === 0 && damaged <= (manifest?.damaged ?? 0)) return; // damaged already in the store it was taken of, and said so
  const { table, id, what } = damage[0]!;
  throw new StoreRefused("backup_damaged", `${backup} is damaged in ${damaged} places, first: ${table} ${id} ${what}`, "Use another backup.");
}

function readManifest(backup: string): Manifest | undefined {
  if (!existsSync(manifestOf(backup))) return undefined; // a copy that was made without us
  try {
    return JSON.parse(readFileSync(manifestOf(backup), "utf8")) as Manifest;
  } catch (cause) {
    throw new StoreRefused("backup_damaged", `${manifestOf(backup)} cannot be read`, "Use another backup.", { cause });
  }
}

function markCopy(copy: string, context: { now: number; newId: (prefix: IdPrefix) => string }, above: number) {
  const database = new Database(copy, { readwrite: true, create: false });
  try {
    database.exec("pragma journal_mode = delete; pragma synchronous = full");
    return writeOnce(database, context, (tx) => markRestored(tx, above));
  } finally {
    database.close(true);
    chmodSync(copy, 0o600);
    syncFile(copy);
  }
}

/**
 * How often the replaced store was restored, so that restoring the same backup twice never hands out the same fences. When it is gone or unreadable,
 * `unknownRestores` stands in.
 */
function restoresBefore(path: string, now: number, note: LogNote | undefined): number {
  const unknown = unknownRestores(now);
  if (!existsSync(path)) return unknown;
  try {
    checkLog(path, note);
    const database = connect(path, "writer"); // with its log, if it crashed
    try {
      const row = database.query("select value from meta where key = 'restores'").get() as { value: string } | null;
      return Number(row?.value ?? 0);
    } finally {
      database.close(true); // brings the log into the file
    }
  } catch {
    return unknown;
  }
}

/** A second name for the old file, and its log if one was left; the first is taken over by the rename. @returns the name */
function keepOld(path: string): string | undefined {
  if (!existsSync(path)) return undefined;
  let kept = `${path}.before-restore`;
  for (let n = 2; existsSync(kept); n++) kept = `${path}.before-restore-${n}`;
  for (const suffix of ["-wal", "-shm"]) {
    if (existsSync(path + suffix)) renameSync(path + suffix, kept + suffix); // or it would be replayed into the restored store
  }
  try {
    linkSync(path, kept);
  } catch {
    copyFileSync(path, kept); // a file system without hard links
    chmodSync(kept, 0o600);
  }
  return kept;
}
