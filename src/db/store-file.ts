// The files of a SQLite store: made whole or not at all, held by one process, opened as a writer and a reader, and watched while they are open.

import { Database } from "bun:sqlite";
import { chmodSync, existsSync, mkdirSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import type { IdPrefix } from "../protocol/ids.ts";
import { backUpBeforeMigration } from "./backup.ts";
import { Connection, codeOf, writeOnce } from "./dialect-sqlite.ts";
import type { StoreLog } from "./engine.ts";
import { createPrivately, syncFile, syncFolder } from "./files.ts";
import { type Hold, type LogNote, readHolder, readLogNote, refuseHeldHere, takeHold } from "./holder.ts";
import { damaged, inspect, inspectSchema } from "./inspect.ts";
import { ensureGeneration } from "./meta.ts";
import { MIGRATIONS, type Migration, migrateSqlite, pendingSqlite } from "./migrate.ts";
import { retryFor } from "./patience.ts";
import { connect } from "./pragmas.ts";
import { StoreRefused } from "./refused.ts";
import { StorageUnavailable } from "./tx.ts";
import { checkLog, logFamily, OPENED_KEY } from "./wal-owner.ts";

export type StoreFileOptions = {
  clock: () => number;
  newId: (prefix: IdPrefix) => string;
  log: StoreLog;
  migrations?: readonly Migration[];
};

/** An open store: two connections over one file. */
export interface StoreFile {
  readonly writer: Connection;
  readonly reader: Connection;
  readonly generation: string;
  announce(address: string): void;
  /** Whether data and log are still the files that were opened, and the log's size. Two stat calls: 4 us. */
  look(): { inPlace: boolean; walBytes: number };
  /** Opens both connections anew after the disk failed under them, with everything in the log brought into the file. @throws what stands in the way */
  reopen(): void;
  close(): void;
}

const LOCKED_MS_MAX = 2_000;
const LOCKED_EVERY_MS = 20;
const TOKENS_MAX = 8;

/** Opens the store at an absolute path, making it if there is none. @throws StoreRefused; then nothing was created or changed */
export async function openStoreFile(path: string, options: StoreFileOptions): Promise<StoreFile> {
  const { migrations = MIGRATIONS } = options;
  refuseHeldHere(path);
  if (inspect(path, migrations) === "absent") makeFolder(path);
  else checkUnheld(path, migrations);
  const hold = await takeHold(path, options.clock());
  try {
    return await openHeld(path, hold, options);
  } catch (error) {
    hold.release();
    throw refusalOf(path, error);
  }
}

function checkContent(path: string, note: LogNote | undefined, migrations: readonly Migration[]) {
  inspectSchema(path, migrations);
  checkLog(path, note);
}

/** Before our first file is made, so that a refusal leaves nothing behind. What is said of a store in use counts for nothing: its files move. */
function checkUnheld(path: string, migrations: readonly Migration[]) {
  if (readHolder(path)) return;
  try {
    checkContent(path, readLogNote(path), migrations);
  } catch (error) {
    if (!readHolder(path)) throw error;
  }
}

async function openHeld(path: string, hold: Hold, options: StoreFileOptions): Promise<StoreFile> {
  const { migrations = MIGRATIONS, log } = options;
  if (inspect(path, migrations) === "absent") birth(path, { ...options, migrations });
  checkContent(path, hold.log, migrations);
  tighten(path);
  const writer = new Connection(await whileBusy(() => openWriter(path, hold)));
  let generation: string;
  let reader: Connection;
  try {
    await migrate(path, writer.database, { ...options, migrations });
    generation = await whileBusy(() => stamp(path, hold, writer.database, options));
    reader = new Connection(connect(path, "reader"));
  } catch (error) {
    writer.database.close(true);
    throw error;
  }
  let opened = identity(path);
  return {
    writer,
    reader,
    generation,
    announce: hold.announce,
    look() {
      const now = identity(path);
      return { inPlace: now.data === opened.data && now.log === opened.log, walBytes: now.walBytes };
    },
    reopen() {
      if (identity(path).data !== opened.data) throw new StorageUnavailable("file_gone");
      const old = [reader.database, writer.database]; // they go on serving reads if this fails
      const fresh = openWriter(path, hold);
      try {
        stamp(path, hold, fresh, options); // a checkpoint: what the failed disk may have dropped from the log is written again, into the file
        reader.replace(connect(path, "reader"));
      } catch (error) {
        closeQuietly(fresh);
        throw error;
      }
      writer.replace(fresh);
      old.forEach(closeQuietly);
      opened = identity(path);
      log("store_reopened", { path });
    },
    close() {
      closeQuietly(reader.database);
      closeQuietly(writer.database); // the last connection brings the log into the file and removes it
      if (hold.log && !existsSync(`${path}-wal`)) tryTo(() => hold.noteLog({ ...hold.log!, closed: true }));
      tryTo(() => hold.release());
    },
  };
}

/** A store appears under its name complete and on the disk, so a crash while it is made leaves no half of one. */
function birth(
  path: string,
  { clock, newId, migrations }: { clock: () => number; newId: (prefix: IdPrefix) => string; migrations: readonly Migration[] },
) {
  const nascent = `${path}-new`;
  for (const suffix of ["", "-wal", "-shm", "-journal"]) rmSync(nascent + suffix, { force: true });
  try {
    createPrivately(nascent);
    const database = new Database(nascent, { readwrite: true, create: false });
    try {
      database.exec("pragma journal_mode = memory; pragma synchronous = off");
      migrateSqlite(database, { where: path, migrations });
      writeOnce(database, { now: clock(), newId }, ensureGeneration);
      database.exec("pragma journal_mode = wal");
    } finally {
      database.close(true);
    }
    syncFile(nascent);
    renameSync(nascent, path);
    syncFolder(dirname(path));
  } catch (error) {
    for (const suffix of ["", "-wal", "-shm"]) rmSync(nascent + suffix, { force: true });
    throw error;
  }
}

/** From here on the log may be written, so the note says first that its owner is not known yet. */
function openWriter(path: string, hold: Hold): Database {
  hold.noteLog({ tokens: hold.log?.tokens ?? [], family: null, closed: false });
  return connect(path, "writer");
}

/** An existing store is copied, and the copy verified, before its first migration. */
async function migrate(path: string, writer: Database, { clock, log, migrations }: StoreFileOptions & { migrations: readonly Migration[] }) {
  const pending = pendingSqlite(writer, path, migrations);
  if (pending.length === 0) return;
  const copy = await backUpBeforeMigration(path, pending[0]!, { now: clock(), migrations });
  log("store_backed_up", { path, copy });
  await whileBusy(() => migrateSqlite(writer, { where: path, migrations }));
  log("store_migrated", { path, migrations: pending.join(" ") });
}

/** Ties data file, log and note together (wal-owner.ts). @returns the store's generation */
function stamp(path: string, hold: Hold, writer: Database, { clock, newId }: StoreFileOptions): string {
  const token = newId("hub");
  const generation = writeOnce(writer, { now: clock(), newId }, async (tx) => {
    await tx.meta.put(OPENED_KEY, token);
    return ensureGeneration(tx);
  });
  const family = logFamily(path) ?? null;
  const { busy } = writer.query("pragma wal_checkpoint(truncate)").get() as { busy: number };
  // With a reader from outside the file itself may still say an older token.
  hold.noteLog({ tokens: busy ? [token, ...(hold.log?.tokens ?? [])].slice(0, TOKENS_MAX) : [token], family, closed: false });
  return generation;
}

function identity(path: string) {
  const data = statSync(path, { throwIfNoEntry: false });
  const log = statSync(`${path}-wal`, { throwIfNoEntry: false });
  return { data: data && `${data.dev}:${data.ino}`, log: log && `${log.dev}:${log.ino}`, walBytes: log?.size ?? 0 };
}

/** The folder of a data file, private if it is made now. @throws StoreRefused store_folder_unusable */
export function makeFolder(path: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  } catch (cause) {
    throw new StoreRefused("store_folder_unusable", `the data folder ${dirname(path)} cannot be made`, "Choose another KXM_DATA_PATH.", { cause });
  }
}

function tighten(path: string) {
  for (const suffix of ["", "-wal", "-shm", "-lock", "-holder"]) {
    const stats = statSync(path + suffix, { throwIfNoEntry: false });
    if (stats && (stats.mode & 0o077) !== 0) chmodSync(path + suffix, 0o600);
  }
}

/** At a start another program may hold a lock for a moment. @throws what `work` throws at last */
async function whileBusy<T>(work: () => T): Promise<T> {
  let last: unknown;
  const done = await retryFor(LOCKED_MS_MAX, LOCKED_EVERY_MS, () => {
    try {
      return { value: work() };
    } catch (error) {
      last = error;
      if (!codeOf(error).startsWith("SQLITE_BUSY")) throw error;
      return undefined;
    }
  });
  if (!done) throw last;
  return done.value;
}

function refusalOf(path: string, cause: unknown): unknown {
  const code = codeOf(cause);
  if (cause instanceof StoreRefused) return cause;
  if (/^SQLITE_(CORRUPT|NOTADB)/.test(code)) return damaged(path, cause);
  if (code.startsWith("SQLITE_BUSY")) {
    return new StoreRefused("store_locked", `${path} is locked by another program`, "End the program that writes to it (such as a sqlite3 shell).", {
      cause,
    });
  }
  if (/^SQLITE_(FULL|IOERR)|^(ENOSPC|EDQUOT|EIO)$/.test(code)) {
    return new StoreRefused(
      "store_disk",
      `the disk under ${path} failed: ${(cause as Error).message}`,
      "Make room or repair the disk, then start again.",
      {
        cause,
      },
    );
  }
  if (/^SQLITE_(READONLY|CANTOPEN|PERM)|^(EACCES|EPERM|EROFS)$/.test(code)) {
    return new StoreRefused(
      "store_read_only",
      `${path} cannot be written: ${(cause as Error).message}`,
      "Check the rights of the file and its folder.",
      { cause },
    );
  }
  return cause;
}

const closeQuietly = (database: Database) => tryTo(() => database.close(true)); // without `true` bun keeps it open while a statement lives
function tryTo(work: () => void) {
  try {
    work();
  } catch {
    // Closing after a disk failure: what is durable is in the log, and the next start reads it.
  }
}
