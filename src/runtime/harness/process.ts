// Processes of other people's programs: found again after a restart by pid, start time and marker, and ended as a whole group, never by pid alone.
import { readdirSync, readFileSync } from "node:fs";

/** The environment variable that names the attempt a process belongs to. Children inherit it, whatever group they move to. */
export const ATTEMPT_MARKER = "KXM_ATTEMPT_ID";

/** A process as recorded. `started` tells it from a later process with the same pid. */
export type ProcessMark = { pid: number; started: string };

const read = (path: string): string | undefined => {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
};

/** The boot this machine is in; a pid of another boot means nothing. */
export const bootId = (): string => read("/proc/sys/kernel/random/boot_id")?.trim() ?? "unknown-boot";

/** When a live process started, as text that another process of the same pid would not have; undefined when there is none. */
export function startedAt(pid: number): string | undefined {
  const stat = read(`/proc/${pid}/stat`);
  if (stat) {
    // The program's name, in brackets, may hold anything; what follows the last bracket are numbers.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" || fields[0] === "X" ? undefined : `${bootId()}:${fields[19]}`;
  }
  if (process.platform === "linux") return undefined;
  const { stdout, exitCode } = Bun.spawnSync(["ps", "-o", "stat=,lstart=", "-p", String(pid)], { stderr: "ignore" });
  const line = stdout.toString().trim();
  return exitCode !== 0 || line === "" || line.startsWith("Z") ? undefined : line.replace(/^\S+\s+/, "");
}

/** Whether exactly this process still runs. */
export const isAlive = (mark: ProcessMark): boolean => startedAt(mark.pid) === mark.started;

/** Sends a signal to a process group; false when nobody is in it any more. Group 0 would be our own. */
function signalGroup(pid: number, signal: NodeJS.Signals | 0): boolean {
  if (pid <= 1) return false;
  try {
    process.kill(-pid, signal);
    return true;
  } catch {
    return false;
  }
}

/** Pids of live processes that carry the marker of an attempt: also those that left its group. Ours excepted. */
export function markedProcesses(attemptId: string): number[] {
  const wanted = `${ATTEMPT_MARKER}=${attemptId}`;
  if (process.platform !== "linux") {
    const { stdout } = Bun.spawnSync(["ps", "axeww", "-o", "pid=,command="], { stderr: "ignore" });
    return stdout
      .toString()
      .split("\n")
      .flatMap((line) => (line.includes(wanted) ? [Number.parseInt(line, 10)] : []))
      .filter((pid) => pid > 0 && pid !== process.pid);
  }
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) return [];
    const environment = read(`/proc/${name}/environ`);
    return environment?.split("\0").includes(wanted) && startedAt(Number(name)) !== undefined ? [Number(name)] : [];
  });
}

/** Waits between looks. A process of an earlier supervisor gives no other sign of its end. */
const LOOK_MS = 25;
const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** Resolves true once `condition` holds, false after `limitMs`. */
export async function waitFor(condition: () => boolean, limitMs: number): Promise<boolean> {
  const deadline = performance.now() + limitMs;
  while (!condition()) {
    if (performance.now() >= deadline) return false;
    await pause(LOOK_MS);
  }
  return true;
}

const groupEnded = (pid: number): boolean => !signalGroup(pid, 0) || membersOf(pid).length === 0;

/** Members of a group that are not zombies (those answer signals until their parent has looked). Elsewhere than on Linux: the leader's pid. */
function membersOf(group: number): number[] {
  if (process.platform !== "linux") return [group];
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    const stat = read(`/proc/${name}/stat`);
    const fields = stat?.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields !== undefined && fields[2] === String(group) && fields[0] !== "Z" && fields[0] !== "X" ? [Number(name)] : [];
  });
}

/**
 * Whether a group is still the attempt's and not somebody else's under the same number: its first process is the one that was recorded, or
 * a member carries the attempt's marker.
 */
const groupIsOurs = (mark: ProcessMark, marked: number[]): boolean => isAlive(mark) || membersOf(mark.pid).some((pid) => marked.includes(pid));

/**
 * Ends everything that belongs to an attempt: SIGTERM to its group, time to finish, SIGKILL to what is left, in the group and outside it.
 * @param target.mark the attempt's first process, if one was recorded
 * @param drainMs how long it may take to end by itself; at 0 it gets no SIGTERM
 * @returns whether nothing is left
 */
export async function endAttempt(target: { mark?: ProcessMark; attemptId: string }, drainMs: number): Promise<boolean> {
  const { mark, attemptId } = target;
  const pid = mark && groupIsOurs(mark, markedProcesses(attemptId)) ? mark.pid : undefined;
  // Without time to end, SIGTERM would only let a shell write down an exit code that is ours and not the program's.
  if (pid !== undefined && drainMs > 0 && signalGroup(pid, "SIGTERM")) await waitFor(() => groupEnded(pid), drainMs);
  if (pid !== undefined) signalGroup(pid, "SIGKILL");
  // Again and again: one may have made another between the look and the signal.
  return waitFor(() => {
    const strays = markedProcesses(attemptId);
    for (const stray of strays) kill(stray);
    return strays.length === 0 && (pid === undefined || groupEnded(pid));
  }, 5000);
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It ended between the look and the signal.
  }
}
