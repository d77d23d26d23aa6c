// Which process a pid is: a number alone is soon somebody else's, so its start is remembered with it.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { platform } from "node:os";

/**
 * When a process started, in the system's own words (comparable only for equality), or undefined when no such process runs.
 * A process that ended and only waits to be collected does not run.
 */
export function startOf(pid: number): string | undefined {
  if (platform() === "linux") return linuxStart(pid);
  const shown = spawnSync("ps", ["-o", "stat=,lstart=", "-p", String(pid)], { encoding: "utf8", timeout: 2000 }).stdout?.trim();
  if (!shown || shown.startsWith("Z")) return undefined;
  return shown.replace(/^\S+\s+/, "");
}

function linuxStart(pid: number): string | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch {
    return undefined;
  }
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" "); // the name before may hold anything
  return fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19];
}

/** Whether that very process still runs. Without a known start any process of the number counts. */
export const isSameProcess = (pid: number, started: string | null): boolean => {
  const now = startOf(pid);
  return now !== undefined && (started === null || now === started);
};
