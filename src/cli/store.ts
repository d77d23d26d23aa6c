// `kxm backup`, `restore` and `verify`: the store of this workspace (or of KXM_DATA_PATH, KXM_DATABASE_URL) without going through a hub.
import { existsSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import type { Command } from "commander";
import type { OnProgress, Verdict } from "../db/verify.ts";
import { newId } from "../protocol/ids.ts";
import { backupTarget } from "./backup-target.ts";
import { define } from "./command.ts";
import { CommandFailed, EXIT, type Output } from "./output.ts";
import { readSettings, type ServeSettings } from "./settings.ts";
import { privateFolder } from "./state-dir.ts";

const DAMAGE_SHOWN = 20;

/** Adds the three commands. */
export function addStore(program: Command): void {
  define(program, {
    usage: "backup [file]",
    summary: "copy the store while the hub runs, and verify the copy",
    details:
      "Without a name the copy goes to <state>/backups. Ends with 1 when rows were damaged in the store already: they are copied and counted. A file that exists is never replaced. A PostgreSQL database is backed up with pg_dump.",
    examples: ["kxm backup", "kxm backup /mnt/safe/kxm-monday.db"],
    run: async ({ args: [file], out, world }) => {
      const settings = readSettings(world.env, world.cwd);
      const path = fileOf(settings, "pg_dump backs up a PostgreSQL database.");
      requireFile(path); // before anything is made: a folder without a hub is left as it was
      const target = file === undefined ? backupTarget(settings.stateDir, settings.dataPath, Date.now()) : resolve(world.cwd, file);
      if (file === undefined) privateFolder(dirname(target));
      const { backUp } = await import("../db/backup.ts");
      const manifest = await backUp({ path, target, now: Date.now(), onProgress: progressOf(out) });
      out.result({ file: target, ...manifest }, () => {
        out.line(`${target}`);
        out.line(`  ${size(manifest.bytes)}, verified: ${rows(manifest.checked)} compared with their hashes`);
        if (manifest.damaged > 0)
          out.line(out.styled("bad", `  ${manifest.damaged} were damaged in the store already, and are in the copy; see \`kxm verify\``));
      });
      return manifest.damaged > 0 ? EXIT.failed : EXIT.ok;
    },
  });
  define<{ mark?: boolean }>(program, {
    usage: "restore [file]",
    summary: "put a backup in the place of the store of a stopped hub",
    details:
      "The old store is kept beside it. Clients notice: cursors start over, and fencing tokens go on above every token ever granted. After a restore by other means (pg_restore, a snapshot of the disk) run it with --mark instead of a file, before a hub serves it.",
    examples: ["kxm restore .kxm/state/backups/kxm-20260102T030405Z.db", "KXM_DATABASE_URL=postgres://… kxm restore --mark"],
    options: (command) => command.option("--mark", "only mark the store that is there as restored"),
    run: async ({ args: [file], options, out, world }) => {
      const settings = readSettings(world.env, world.cwd);
      if (options.mark) return markRestored(settings, out);
      if (file === undefined) throw new CommandFailed("which backup?", "`kxm restore FILE`; `kxm backup` writes to <state>/backups.", EXIT.usage);
      const path = fileOf(settings, "pg_restore restores a PostgreSQL database; then run `kxm restore --mark`.");
      const backup = resolve(world.cwd, file);
      if (!existsSync(backup))
        throw new CommandFailed(`there is no backup at ${backup}`, "`kxm backup` writes to <state>/backups of the hub's folder.");
      privateFolder(settings.stateDir);
      const { restore } = await import("../db/restore.ts");
      const restored = await restore({ backup, path, clock: Date.now, newId, onProgress: progressOf(out) });
      out.result(restored, () => {
        out.line(`restored ${path} from ${basename(file)}`);
        if (restored.keptAs) out.line(`  the store before is ${restored.keptAs}`);
        out.line("  start the hub: cursors begin anew, and everybody signs in again");
      });
    },
  });
  define(program, {
    usage: "verify [file]",
    summary: "read everything that is stored and say what is not as it was written",
    details: "Also while a hub serves it. With a file: a backup or another store. Ends with 1 when something is damaged.",
    examples: ["kxm verify", "kxm verify .kxm/state/backups/kxm-20260102T030405Z.db --json"],
    run: async ({ args: [file], out, world }) => {
      const settings = readSettings(world.env, world.cwd);
      const { verifyPostgres, verifySqlite } = await import("../db/verify.ts");
      const onProgress = progressOf(out);
      const path = file === undefined ? settings.dataPath : resolve(world.cwd, file);
      if (file !== undefined || settings.databaseUrl === undefined) requireFile(path);
      const verdict =
        file === undefined && settings.databaseUrl !== undefined
          ? await verifyPostgres(settings.databaseUrl, onProgress)
          : await verifySqlite(path, { onProgress, pending: file !== undefined });
      out.result(verdict, () => showVerdict(out, verdict));
      return verdict.ok ? EXIT.ok : EXIT.failed;
    },
  });
}

function fileOf({ dataPath, databaseUrl }: ServeSettings, instead: string): string {
  if (databaseUrl !== undefined) throw new CommandFailed("the store of KXM_DATABASE_URL is not a file", instead);
  if (dataPath === ":memory:") throw new CommandFailed("a store in memory is gone with its hub", "Name the data file with KXM_DATA_PATH.");
  return dataPath;
}

function requireFile(path: string) {
  if (!existsSync(path))
    throw new CommandFailed(
      `there is no store at ${path}`,
      "Run it in the hub's folder, name the data file with KXM_DATA_PATH, or start a hub first.",
    );
}

const STEPS: Record<string, string> = { copy: "copying", hash: "hashing", pages: "checking pages" };
const progressOf =
  (out: Output): OnProgress =>
  (step, done, total) =>
    out.progress(`${STEPS[step] ?? `checking ${step}`}${total > 0 ? ` ${Math.floor((100 * done) / total)} %` : ""}`);

/** Bytes as people read them. */
export const size = (bytes: number): string =>
  bytes >= 1e9 ? `${(bytes / 1e9).toFixed(1)} GB` : bytes >= 1e6 ? `${(bytes / 1e6).toFixed(1)} MB` : `${Math.ceil(bytes / 1e3)} kB`;
const rows = (checked: Record<string, number>): string => {
  const count = Object.values(checked).reduce((sum, one) => sum + one, 0);
  return `${count.toLocaleString("en")} ${count === 1 ? "row" : "rows"}`;
};

async function markRestored(settings: ServeSettings, out: Output) {
  const [{ openEngine }, meta] = [await import("../db/open.ts"), await import("../db/meta.ts")];
  if (settings.databaseUrl === undefined) requireFile(settings.dataPath);
  const engine = await openEngine({ url: settings.databaseUrl, path: settings.dataPath, clock: Date.now, newId });
  try {
    const mark = await engine.write("", (tx) => meta.markRestored(tx, meta.unknownRestores(tx.now))); // how often the store before was
    out.result(mark, () => out.line("marked as restored: cursors begin anew, fencing tokens go on above every token ever granted"));
  } finally {
    await engine.close();
  }
}

function showVerdict(out: Output, { ok, checked, damage, damaged, notChecked }: Verdict) {
  out.line(ok ? out.styled("good", `sound: ${rows(checked)} compared with their hashes`) : out.styled("bad", `damaged in ${damaged} places`));
  if (!ok) {
    out.table(
      damage.slice(0, DAMAGE_SHOWN),
      [
        { title: "TABLE", value: ({ table }) => table },
        { title: "ID", value: ({ id }) => id },
        { title: "DAMAGE", value: ({ what }) => what },
      ],
      "",
    );
    if (damaged > DAMAGE_SHOWN) out.line(`and ${damaged - DAMAGE_SHOWN} more`);
    out.line("`kxm restore` puts a backup in its place; keep this file until you did.");
  }
  for (const what of notChecked) out.line(out.styled("dim", `not checked: ${what}`));
}
