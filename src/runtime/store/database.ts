// Opens the Runtime's SQLite files: private, with every pragma set and read back, migrated forward, and refused when made by a newer version.
import { Database } from "bun:sqlite";
import { sha256 } from "../../protocol/canonical.ts";
import { RuntimeRefusal } from "../../protocol/runtime-errors.ts";
import { claimFile } from "../paths.ts";

/** One step of a schema. Once released its text never changes. */
export type Migration = { name: string; sql: string };

/** What every connection must read back. A waiting writer blocks the whole process, so it waits a quarter of a second at most. */
const PRAGMAS: [name: string, set: string | number, read: string | number][] = [
  ["journal_mode", "wal", "wal"],
  ["synchronous", "full", 2],
  ["busy_timeout", 250, 250],
  ["foreign_keys", "on", 1],
  ["wal_autocheckpoint", 1000, 1000],
  ["journal_size_limit", 67_108_864, 67_108_864],
  ["trusted_schema", "off", 0],
  ["temp_store", "memory", 2],
  ["secure_delete", "on", 1],
];

/**
 * Opens (and makes) a database file.
 * @param path a file inside the state root, or `:memory:`
 * @throws RuntimeRefusal state_root_unsafe for a file that is not ours, store_unavailable when it cannot be opened, store_too_new, store_corrupt
 */
export function openDatabase(path: string, migrations: Migration[]): Database {
  const memory = path === ":memory:";
  if (!memory) {
    claimFile(path);
    for (const side of ["-wal", "-shm", "-journal"]) claimFile(path + side, { create: false });
  }
  let database: Database | undefined;
  try {
    database = new Database(path, { create: memory, readwrite: true, strict: true });
    setPragmas(database, memory);
    migrate(database, migrations);
    return database;
  } catch (error) {
    database?.close();
    throw storeRefusal(error, path);
  }
}

function setPragmas(database: Database, memory: boolean) {
  for (const [name, set, read] of PRAGMAS) {
    if (memory && name.startsWith("journal")) continue;
    database.run(`pragma ${name} = ${set}`);
    const found = Object.values(database.query(`pragma ${name}`).get() as object)[0];
    if (found !== read) throw new RuntimeRefusal("store_unavailable", `pragma ${name} is ${found} although it was set to ${set}`);
  }
}

/** Runs synchronous `work` in one transaction that takes the write lock first. A throw undoes it. */
export function immediately<T>(database: Database, work: () => T): T {
  database.run("begin immediate");
  try {
    const value = work();
    database.run("commit");
    return value;
  } catch (error) {
    if (database.inTransaction) database.run("rollback");
    throw error;
  }
}

function migrate(database: Database, migrations: Migration[]) {
  immediately(database, () => {
    database.run("create table if not exists migrations (name text primary key not null, hash text not null) strict");
    const applied = database.query("select name, hash from migrations order by name").all() as { name: string; hash: string }[];
    applied.forEach(({ name, hash }, index) => {
      const known = migrations[index];
      if (known?.name !== name) throw new RuntimeRefusal("store_too_new", `the store has migration ${name}, which this version does not know`);
      if (sha256(known.sql) !== hash) throw new RuntimeRefusal("store_corrupt", `migration ${name} was changed after it had been applied`);
    });
    for (const { name, sql } of migrations.slice(applied.length)) {
      database.run(sql);
      database.query("insert into migrations values (?, ?)").run(name, sha256(sql));
    }
  });
}

/** Closes a database and leaves one file behind. Never throws: what was committed is on disk either way. */
export function closeDatabase(database: Database) {
  try {
    database.run("pragma wal_checkpoint(truncate)");
  } catch {} // a reader or a full disk: the log stays beside the file and is read at the next open
  database.close();
}

/** SQLite's failures in our words. A refusal passes through. */
export function storeRefusal(error: unknown, path: string): RuntimeRefusal {
  if (error instanceof RuntimeRefusal) return error;
  const code = String((error as { code?: unknown }).code ?? "");
  if (/^SQLITE_(CORRUPT|NOTADB)/.test(code)) return new RuntimeRefusal("store_corrupt", `${path} is damaged (${code})`, { cause: error });
  const why = /^SQLITE_FULL/.test(code)
    ? "the disk is full"
    : /^SQLITE_(BUSY|LOCKED)/.test(code)
      ? "another process holds it"
      : code || String(error);
  return new RuntimeRefusal("store_unavailable", `${path} cannot be used: ${why}`, { cause: error, detail: { cause: code || "unknown" } });
}
