// How every SQLite connection is set. Each value is set and read back at every open: defaults differ between builds, and a hub that only
// believes to be durable is worse than one that does not start.
import { Database } from "bun:sqlite";
import { lstatSync } from "node:fs";
import { WAL_BYTES_MAX } from "../protocol/limits.ts";
import { StoreRefused } from "./refused.ts";

/** A connection's part: the one that writes, one that reads beside it, or a visitor that only looks (doctor, verify, backup). */
export type Role = "writer" | "reader" | "visitor";
type Pragma = { name: string; value: number | string; reads?: number | string; roles?: Role[] };

/** busy_timeout stops the whole event loop, so the writer has none and retries by itself (engine-sqlite.ts). */
export const PRAGMAS: readonly Pragma[] = [
  { name: "busy_timeout", value: 0, roles: ["writer"] },
  { name: "busy_timeout", value: 100, roles: ["reader"] }, // only recovery after another program's crash makes a reader wait
  { name: "busy_timeout", value: 250, roles: ["visitor"] },
  { name: "journal_mode", value: "wal", roles: ["writer", "reader"] },
  { name: "synchronous", value: "full", reads: 2 }, // fsync before COMMIT returns
  { name: "fullfsync", value: 1 }, // macOS: fsync alone does not reach the disk there
  { name: "checkpoint_fullfsync", value: 1 },
  { name: "foreign_keys", value: 1 },
  { name: "trusted_schema", value: 0 },
  { name: "temp_store", value: "memory", reads: 2 }, // else every batch's savepoint journal spills to a file: 30 us a call
  { name: "cache_size", value: -65_536, roles: ["writer"] },
  { name: "cache_size", value: -16_384, roles: ["reader", "visitor"] },
  { name: "wal_autocheckpoint", value: 1_000 },
  { name: "journal_size_limit", value: WAL_BYTES_MAX },
  { name: "query_only", value: 1, roles: ["reader", "visitor"] },
];

/** Below this SQLite can lose commits when a checkpoint meets a writer (the WAL-reset bug, fixed in 3.51.3). macOS brings its own, older library. */
const SQLITE_VERSION_MIN = "3.51.3";

/**
 * How a visitor opens a data file. One with a log is opened for reading only, or the visitor's end would bring the log into the file. One without is
 * opened for writing although nothing is written: SQLite makes an empty log for any reader, and only a writer may remove it again.
 */
export const visitorOptions = (path: string): { readonly: true } | { readwrite: true; create: false } =>
  (lstatSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0 ? { readonly: true } : { readwrite: true, create: false };

/** Opens a connection with every pragma of its role in force. The file must exist. @throws StoreRefused store_settings, sqlite_too_old; SQLiteError */
export function connect(path: string, role: Role): Database {
  const database = new Database(path, role === "visitor" ? visitorOptions(path) : { readwrite: true, create: false });
  try {
    requireVersion(database);
    applyPragmas(database, role, path);
    return database;
  } catch (error) {
    database.close(true);
    throw error;
  }
}

/** Sets the pragmas of a role and reads each one back. @throws StoreRefused store_settings when one is not in force */
export function applyPragmas(database: Pick<Database, "exec" | "query">, role: Role, path: string): void {
  for (const { name, value, reads = value, roles } of PRAGMAS) {
    if (roles && !roles.includes(role)) continue;
    database.exec(`pragma ${name} = ${value}`);
    const found = Object.values((database.query(`pragma ${name}`).get() ?? {}) as Record<string, unknown>)[0];
    if (found === reads) continue;
    throw new StoreRefused(
      "store_settings",
      `SQLite did not accept ${name} = ${value} for ${path}: it says ${found}`,
      "Durability depends on this setting. Use the SQLite that comes with kxm, on a local file system.",
    );
  }
}

/** @throws StoreRefused sqlite_too_old */
export function requireVersion(database: Pick<Database, "query">): void {
  const { version } = database.query("select sqlite_version() as version").get() as { version: string };
  if (atLeast(version, SQLITE_VERSION_MIN)) return;
  throw new StoreRefused(
    "sqlite_too_old",
    `this SQLite is ${version}; kxm needs ${SQLITE_VERSION_MIN} or newer, because older ones can lose acknowledged writes`,
    "On macOS install a current SQLite (`brew install sqlite`) and start kxm again.",
  );
}

function atLeast(version: string, floor: string): boolean {
  const [have, want] = [version, floor].map((text) => text.split(".").map(Number));
  for (let i = 0; i < want!.length; i++) {
    if ((have![i] ?? 0) !== want![i]!) return (have![i] ?? 0) > want![i]!;
  }
  return true;
}
