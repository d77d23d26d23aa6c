// What a page of the hub can do to the store: back it up and verify it. Here because it knows files; the hub only starts it.
import { statfsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Manifest } from "../db/backup.ts";
import type { Verdict } from "../db/verify.ts";
import type { StoreWork } from "../hub/upkeep.ts";
import type { BackupMade, CheckMade } from "../protocol/upkeep.ts";
import { backupTarget } from "./backup-target.ts";
import type { ServeSettings } from "./settings.ts";
import { privateFolder } from "./state-dir.ts";

const DAMAGE_TOLD = 20;
const DATABASE = {
  says: "A PostgreSQL database is backed up by PostgreSQL itself. After pg_restore, and before a hub serves it, mark it as restored.",
  commands: ['pg_dump --format=custom --file=kxm.dump "$KXM_DATABASE_URL"', "kxm restore --mark"],
};
const MEMORY = { says: "A store in memory is gone with its hub: name a data file with KXM_DATA_PATH first.", commands: [] };
const FILE = { says: "The same from a terminal, also while no hub runs:", commands: ["kxm backup", "kxm verify"] };

type Settings = Pick<ServeSettings, "databaseUrl" | "dataPath" | "stateDir">;

/** @param clock hub time in ms, for the manifests and names of backups */
export function storeWork({ databaseUrl, dataPath, stateDir }: Settings, clock: () => number): StoreWork {
  if (databaseUrl !== undefined)
    return {
      verify: async (onProgress) => checkOf(await (await import("../db/verify.ts")).verifyPostgres(databaseUrl, onProgress)),
      instead: DATABASE,
      folder: undefined,
      sizes: () => ({}),
    };
  if (dataPath === ":memory:") return { instead: MEMORY, folder: undefined, sizes: () => ({}) };
  return {
    async backUp(onProgress) {
      const target = backupTarget(stateDir, dataPath, clock());
      privateFolder(dirname(target));
      const { backUp } = await import("../db/backup.ts");
      return backupOf(target, await backUp({ path: dataPath, target, now: clock(), onProgress }));
    },
    verify: async (onProgress) => checkOf(await (await import("../db/verify.ts")).verifySqlite(dataPath, { onProgress })),
    instead: FILE,
    folder: join(stateDir, "backups"),
    sizes: () => sizesOf(dataPath),
  };
}

const rowsOf = (checked: Record<string, number>): number => Object.values(checked).reduce((sum, one) => sum + one, 0);
const backupOf = (file: string, { bytes, checked, damaged }: Manifest): BackupMade => ({ file, bytes, rows: rowsOf(checked), damaged });
const checkOf = ({ checked, damage, damaged, notChecked }: Verdict): CheckMade => ({
  rows: rowsOf(checked),
  damaged,
  damage: damage.slice(0, DAMAGE_TOLD),
  notChecked,
});

/** What cannot be looked at now, such as a folder that was moved away, is left out. */
function sizesOf(path: string): ReturnType<StoreWork["sizes"]> {
  try {
    const { bsize, bavail } = statfsSync(dirname(path));
    return { data: statSync(path).size, wal: statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0, free: bsize * bavail };
  } catch {
    return {};
  }
}
