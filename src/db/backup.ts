// `kxm backup`: a consistent copy of a data file, taken while a hub serves it, verified before it gets its name.
import { createReadStream, existsSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { askSqlite } from "./ask.ts";
import { createPrivately, syncFile, syncFolder } from "./files.ts";
import type { Migration } from "./migrate.ts";
import { runOffThread } from "./off-thread.ts";
import { meanwhile } from "./patience.ts";
import { StoreRefused } from "./refused.ts";
import { type OnProgress, type VerifyOptions, verifySqlite } from "./verify.ts";

/** What a backup says of itself, in `<backup>.json` beside it. */
export type Manifest = {
  kind: "kxm.backup.v1";
  createdAt: string;
  /** The store it was taken of. */
  generation: string;
  schema: number;
  bytes: number;
  sha256: string;
  /** Rows whose bytes were compared with their hash. */
  checked: Record<string, number>;
  /** Rows that were damaged in the store already, and so are in the copy: 0, or see `kxm verify`. */
  damaged: number;
};

export const manifestOf = (backup: string): string => `${backup}.json`;
const WATCH_MS = 200;
const SEE_VERIFY = "See `kxm verify`. Earlier backups may be whole; keep them.";

/**
 * Copies the store at `path` to `target`: one moment of it, whole, verified, readable by its owner only.
 * @param options.now hub time, for the manifest
 * @throws StoreRefused backup_exists, backup_missing (no store), backup_damaged (parts of the store cannot be read); then `target` does not exist
 */
export async function backUp(options: { path: string; target: string; now: number } & VerifyOptions): Promise<Manifest> {
  const { path, now, onProgress = () => {} } = options;
  const target = resolve(options.target);
  if (!existsSync(path))
    throw new StoreRefused("backup_missing", `there is no store at ${path}`, "Run it in the hub's folder, or name the data file with KXM_DATA_PATH.");
  if (existsSync(target)) throw new StoreRefused("backup_exists", `${target} exists already`, "Choose another name; a backup never replaces a file.");
  const partial = `${target}.partial`;
  rmSync(partial, { force: true });
  createPrivately(partial);
  try {
    await copyWatched(path, partial, onProgress);
    syncFile(partial);
    const manifest = await describe(partial, now, options);
    writeFileSync(`${manifestOf(target)}.partial`, `${JSON.stringify(manifest, null, 2)}\n`, { mode: 0o600, flush: true });
    renameSync(`${manifestOf(target)}.partial`, manifestOf(target));
    renameSync(partial, target); // the name comes last: where it is, everything is
    syncFolder(dirname(target));
    return manifest;
  } catch (error) {
    for (const left of [partial, `${partial}-journal`, `${manifestOf(target)}.partial`]) rmSync(left, { force: true });
    throw error;
  }
}

async function copyWatched(path: string, partial: string, onProgress: OnProgress) {
  const total = statSync(path).size;
  const tick = () => onProgress("copy", Math.min(statSync(partial, { throwIfNoEntry: false })?.size ?? 0, total), total);
  try {
    await meanwhile(WATCH_MS, tick, runOffThread(path, "vacuum into ?", partial));
  } catch (cause) {
    const { code = "", message } = cause as Error & { code?: string };
    if (/^SQLITE_(CORRUPT|NOTADB)/.test(code)) throw new StoreRefused("backup_damaged", `${path} cannot be read: ${message}`, SEE_VERIFY, { cause });
    if (/^SQLITE_(FULL|IOERR|CANTOPEN)/.test(code))
      throw new StoreRefused("store_disk", `${partial} cannot be written: ${message}`, "Make room first.", { cause });
    throw cause;
  }
}

async function describe(copy: string, now: number, options: VerifyOptions): Promise<Manifest> {
  const verdict = await verifySqlite(copy, options);
  // A row that was damaged before is no reason to leave all the others without a copy; a part that cannot be read is.
  if (verdict.unreadable > 0) {
    const { table, what } = verdict.damage.find((found) => found.what.startsWith("cannot be read"))!;
    const first = `${table} ${what}`;
    throw new StoreRefused(
      "backup_damaged",
      `the copy would lack parts of the store: ${first}`,
      "See `kxm verify`. Earlier backups may be whole; keep them.",
    );
  }
  await using asking = askSqlite(copy);
  const [generation] = await asking.ask("select value from meta where key = 'generation'");
  return {
    kind: "kxm.backup.v1",
    createdAt: new Date(now).toISOString(),
    generation: String(generation!["value"]),
    schema: Number((await asking.ask("select count(*) as n from migrations"))[0]!["n"]),
    bytes: statSync(copy).size,
    sha256: await sha256OfFile(copy, options.onProgress),
    checked: verdict.checked,
    damaged: verdict.damaged,
  };
}

/** SHA-256 of a file of any size, as 64 hex digits. */
export async function sha256OfFile(path: string, onProgress: OnProgress = () => {}): Promise<string> {
  const hasher = new Bun.CryptoHasher("sha256");
  const total = statSync(path).size;
  let done = 0;
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 })) {
    hasher.update(chunk as Uint8Array);
    done += (chunk as Uint8Array).length;
    onProgress("hash", done, total);
  }
  return hasher.digest("hex");
}

const KEPT_MAX = 3;

/**
 * The copy that is made before a migration touches a store, beside the data file. The newest KEPT_MAX are kept.
 * @param next name of the first migration that will run
 * @returns its path
 */
export async function backUpBeforeMigration(path: string, next: string, options: { now: number; migrations: readonly Migration[] }): Promise<string> {
  const { now, migrations } = options;
  const stamp = new Date(now).toISOString().replace(/[-:]|\.\d+/g, "");
  let target = `${path}.before-${next}-${stamp}`;
  for (let n = 2; existsSync(target); n++) target = `${path}.before-${next}-${stamp}-${n}`;
  await backUp({ path, target, now, migrations, pending: true });
  const mine = readdirSync(dirname(path)).filter((name) => name.startsWith(`${basename(path)}.before-0`) && !name.endsWith(".json"));
  const byAge = mine.map((name) => join(dirname(path), name)).sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs);
  for (const old of byAge.slice(KEPT_MAX)) for (const file of [old, manifestOf(old)]) rmSync(file, { force: true });
  return target;
}
