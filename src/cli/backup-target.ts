// Where a backup goes that nobody gave a name: beside the others, named by its moment. It never is a file that exists.
import { existsSync } from "node:fs";
import { basename, join } from "node:path";

/** @param now milliseconds since 1970 */
export function backupTarget(stateDir: string, dataPath: string, now: number): string {
  const stamp = new Date(now).toISOString().replaceAll(/[-:]|\.\d+/g, "");
  const stem = join(stateDir, "backups", `${basename(dataPath, ".db")}-${stamp}`);
  for (let n = 1; ; n++) {
    const target = n === 1 ? `${stem}.db` : `${stem}-${n}.db`;
    if (!existsSync(target)) return target;
  }
}
