// Looks at a data path before anything is opened for writing. It creates, renames and changes nothing, so a refused start leaves the disk as it was.
import { Database } from "bun:sqlite";
import { accessSync, closeSync, constants, lstatSync, openSync, readSync, realpathSync, type Stats } from "node:fs";
import { basename, dirname, join } from "node:path";
import { APPLICATION_ID, type Applied, checkApplied, MIGRATIONS, type Migration } from "./migrate.ts";
import { StoreRefused } from "./refused.ts";

/** Files that belong to a store: the data, SQLite's log and its index, our lock and the note of who holds it. */
export const SUFFIXES = ["", "-wal", "-shm", "-lock", "-holder"] as const;
const OPEN_URI_READONLY = 0x41; // SQLITE_OPEN_URI | SQLITE_OPEN_READONLY
const HEADER_BYTES = 100;
const MAGIC = "SQLite format 3\0";
const USE_OWN_FOLDER = "Choose a folder of your own with KXM_DATA_PATH, such as .kxm/state/kxm.db; kxm makes it private.";

/**
 * Says whether a store is there and fit to be opened.
 * @param path absolute path of the data file
 * @throws StoreRefused when it is not: another's file or folder, a link, no rights, not a store, damaged, newer, changed
 */
export function inspect(path: string, migrations: readonly Migration[] = MIGRATIONS): "absent" | "present" {
  inspectFolder(dirname(path));
  for (const suffix of SUFFIXES) inspectFile(path + suffix);
  const stats = lstatSync(path, { throwIfNoEntry: false });
  const log = lstatSync(`${path}-wal`, { throwIfNoEntry: false });
  if (!stats && log && log.size > 0) {
    throw new StoreRefused(
      "store_foreign_log",
      `${path}-wal is there without its data file ${path}`,
      "It may hold acknowledged writes: put the data file back beside it, or move the log away to start empty.",
    );
  }
  if (!stats) return "absent";
  inspectHeader(path, migrations.length);
  return "present";
}

/**
 * Compares the applied migrations of a store that was closed. One with a log is looked at when it is open: its file alone may be behind.
 * `immutable` reads the file by itself, takes no lock and makes no file.
 * @throws StoreRefused store_newer, store_migration_changed, store_damaged
 */
export function inspectSchema(path: string, migrations: readonly Migration[] = MIGRATIONS): void {
  if ((lstatSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0) return;
  let applied: Applied[];
  try {
    using database = openImmutable(path);
    applied = database.query("select name, hash from migrations order by name").all() as Applied[];
  } catch (cause) {
    throw damaged(path, cause);
  }
  checkApplied(applied, migrations, "sqlite", path);
}

/** @throws StoreRefused when the folder is a link, another's, open to all or read-only; one that is missing is fine */
export function inspectFolder(folder: string): void {
  const stats = lstatSync(folder, { throwIfNoEntry: false });
  if (!stats) return; // made later, private
  if (stats.isSymbolicLink()) {
    throw new StoreRefused(
      "store_symlink",
      `the data folder ${folder} is a symbolic link`,
      `Name the folder itself: KXM_DATA_PATH=${realpathOr(folder)}/kxm.db`,
    );
  }
  if (!stats.isDirectory()) throw new StoreRefused("store_folder_unusable", `the data folder ${folder} is not a folder`, USE_OWN_FOLDER);
  refuseForeign(folder, stats);
  if (stats.mode & 0o002) {
    throw new StoreRefused("store_open_to_all", `every user of this machine can write to the data folder ${folder}`, USE_OWN_FOLDER);
  }
  if (!writable(folder, stats)) {
    throw new StoreRefused("store_read_only", `the data folder ${folder} cannot be written`, `Make it writable (chmod u+wx) or choose another one.`);
  }
}

function inspectFile(path: string) {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (!stats) return;
  if (stats.isSymbolicLink()) {
    throw new StoreRefused(
      "store_symlink",
      `${path} is a symbolic link`,
      `Name the file itself: ${realpathOr(path)}. SQLite's log must lie beside the file it belongs to.`,
    );
  }
  if (!stats.isFile()) throw new StoreRefused("store_not_sqlite", `${path} is not a file`, "Choose another KXM_DATA_PATH.");
  refuseForeign(path, stats);
  if (!writable(path, stats))
    throw new StoreRefused("store_read_only", `${path} cannot be written`, "Make it writable (chmod u+w), then start again.");
}

function refuseForeign(path: string, stats: Stats) {
  const me = process.geteuid?.();
  if (me === undefined || stats.uid === me) return;
  throw new StoreRefused(
    "store_foreign_owner",
    `${path} belongs to user ${stats.uid}, and this process runs as user ${me}`,
    "Run kxm as the owner of its data, or choose a folder of your own with KXM_DATA_PATH.",
  );
}

/** Root may write to anything; a missing write bit is a wish that is respected all the same. */
function writable(path: string, stats: Stats): boolean {
  try {
    accessSync(path, constants.W_OK);
    return (stats.mode & 0o200) !== 0;
  } catch {
    return false;
  }
}

/**
 * Looks at the first 100 bytes of a data file or a backup.
 * @param known number of migrations that this program has
 * @throws StoreRefused store_empty, store_not_sqlite, store_truncated, store_foreign, store_newer
 */
export function inspectHeader(path: string, known: number): void {
  const { size } = lstatSync(path);
  const hasLog = (lstatSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0;
  if (size === 0) {
    throw new StoreRefused("store_empty", `${path} is empty`, "An empty file is not a store: restore a backup over it, or remove it to start anew.");
  }
  const header = firstBytes(path, HEADER_BYTES);
  if (header.toString("latin1", 0, 16) !== MAGIC) {
    throw new StoreRefused(
      "store_not_sqlite",
      `${path} is not a SQLite database`,
      "Choose another KXM_DATA_PATH, or restore a backup with `kxm restore`.",
    );
  }
  const pageBytes = header.readUInt16BE(16) === 1 ? 65_536 : header.readUInt16BE(16);
  const pages = header.readUInt32BE(28);
  if (header.length < HEADER_BYTES || (!hasLog && size < pages * pageBytes)) {
    throw new StoreRefused(
      "store_truncated",
      `${path} is cut off: ${size} bytes of ${pages * pageBytes}`,
      "Restore a backup with `kxm restore`; keep the damaged file until that worked.",
    );
  }
  if (header.readUInt32BE(68) !== APPLICATION_ID) {
    throw new StoreRefused("store_foreign", `${path} is the database of another program`, "Choose another KXM_DATA_PATH.");
  }
  const version = header.readUInt32BE(60);
  if (version > known) {
    throw new StoreRefused(
      "store_newer",
      `${path} was written by a newer kxm (schema ${version}; this one knows ${known})`,
      "Install the newer kxm again; a store is never taken back to an older schema.",
    );
  }
}

/** The refusal of a file that SQLite cannot read. */
export const damaged = (path: string, cause: unknown): StoreRefused =>
  new StoreRefused("store_damaged", `${path} is damaged: ${cause instanceof Error ? cause.message : cause}`, "Restore a backup with `kxm restore`.", {
    cause,
  });

/** The data file alone, as it lies on the disk: without its log, without a lock, without making a file. */
export const openImmutable = (path: string): Database =>
  new Database(`file:${encodeURI(path).replace(/[?#]/g, encodeURIComponent)}?immutable=1`, OPEN_URI_READONLY);

/** Up to `count` bytes from the start of a file. Never call it on a data file that this process has open: closing it would drop SQLite's locks. */
export function firstBytes(path: string, count: number): Buffer {
  const file = openSync(path, "r");
  try {
    const bytes = Buffer.alloc(count);
    return bytes.subarray(0, readSync(file, bytes, 0, count, 0));
  } finally {
    closeSync(file);
  }
}

function realpathOr(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return join(dirname(path), basename(path));
  }
}
