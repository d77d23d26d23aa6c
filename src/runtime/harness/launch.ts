// Starts one program for one attempt so that nothing is lost when this process dies: a small shell writes down that it started, what it printed
// (bounded, the rest counted) and how it ended, into the attempt's own folder. Whoever comes next reads it there.
import { existsSync, lstatSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ATTEMPT_MARKER, isAlive, type ProcessMark, startedAt, waitFor } from "./process.ts";

/** Bytes of each output that are kept. */
export const OUTPUT_BYTES_MAX = 8_388_608;
/** How long output may trail after the program itself has ended, when children still hold it. */
const TRAILING_MS = 500;

/**
 * Copies one output to its file at once, as far as the file may grow, and counts what comes after. (`head` and `dd` would not do: the one keeps a
 * buffer that a kill loses, the other counts short reads as whole blocks.) The readers ignore SIGTERM, so that a program that ends in order is heard.
 */
const keep = (name: string) =>
  `{ trap '' TERM; (ulimit -f "$n"; trap '' XFSZ; exec cat >"$d/${name}") 2>/dev/null || : >"$d/${name}.over"; wc -c >"$d/${name}.rest"; }`;
const FILE_BLOCK_BYTES = 512;

/**
 * The shell only moves descriptors: the program and its arguments come as "$@" and are read by nobody. Its `mkdir` is what makes a start happen
 * once: of two supervisors that both believe the attempt is theirs, one shell gets the folder and the other ends.
 */
const SHELL = `d=$1; n=$2; shift 2
mkdir "$d/go" 2>/dev/null || exit 0
trap : TERM
printf '%s\\n' "$$" >"$d/started"
{ { { trap : TERM; "$@" <"$d/stdin" 2>&4 4>&- 3>&-; printf '%s\\n' "$?" >"$d/exit.new"; mv "$d/exit.new" "$d/exit"; } | ${keep("stdout")} 4>&-; } 4>&1 1>&3 |
${keep("stderr")}; } 3>&1`;

/** What the shell calls itself when it complains. */
const SHELL_NAME = "kxm-attempt";

export type LaunchRequest = {
  attemptId: string;
  /** The attempt's folder; made private, emptied first. */
  folder: string;
  /** An absolute program path and its arguments. */
  argv: string[];
  cwd: string;
  env: Record<string, string>;
  /** What the program reads; it ends after that. */
  stdin: string;
  /** Files in its folder, by name. */
  files?: Record<string, string>;
};

/** What a program left behind. */
export type Output = {
  stdout: string;
  stderr: string;
  stdoutDropped: number;
  stderrDropped: number;
  exitCode: number | undefined;
  /** What it wrote into the file that its row named for its usage. */
  usage?: string;
};

/** A program that was started and can be waited for. */
export type Launched = { mark: ProcessMark; ended: Promise<void> };

/** Writes what the program will read: its input, and files that its arguments name. Never touches what a shell has written already. */
export function prepareFolder(folder: string, stdin: string, files: Record<string, string> = {}): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  for (const [name, text] of Object.entries({ ...files, stdin })) writeFileSync(join(folder, name), text, { mode: 0o600 });
}

/** Starts the program in a process group of its own. @throws Error when the system has no room for another process */
export function launch(request: LaunchRequest): Launched {
  const child = Bun.spawn(["/bin/sh", "-c", SHELL, SHELL_NAME, request.folder, String(OUTPUT_BYTES_MAX / FILE_BLOCK_BYTES), ...request.argv], {
    cwd: request.cwd,
    env: { ...request.env, [ATTEMPT_MARKER]: request.attemptId },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "ignore",
    detached: true,
  });
  const mark = { pid: child.pid, started: startedAt(child.pid) ?? "ended" };
  let exited = false;
  void child.exited.then(() => (exited = true));
  return { mark, ended: ending(request.folder, () => !exited || otherShell(request.folder, mark.pid)) };
}

/** Whether another supervisor's shell was first and still runs. */
function otherShell(folder: string, mine: number): boolean {
  const pid = shellPid(folder);
  return pid !== undefined && pid !== mine && startedAt(pid) !== undefined;
}

/** The pid that the shell of an attempt wrote down. */
export function shellPid(folder: string): number | undefined {
  try {
    return Number.parseInt(readFileSync(join(folder, "started"), "utf8"), 10) || undefined;
  } catch {
    return undefined;
  }
}

/** Waits for a program that an earlier supervisor started. */
export const reattach = (folder: string, mark: ProcessMark): Promise<void> => ending(folder, () => isAlive(mark));

/** Resolves when the program has ended: its shell is gone, or it said how it ended and only children hold its output. */
async function ending(folder: string, alive: () => boolean): Promise<void> {
  for (;;) {
    while (!(await waitFor(() => !alive() || exitOf(folder) !== undefined, 60_000)));
    // A shell that was not first ends at once, perhaps before the first one has written its number down.
    if (exitOf(folder) === undefined && hasStarted(folder) && shellPid(folder) === undefined)
      await waitFor(() => shellPid(folder) !== undefined, 1000);
    if (!alive() || exitOf(folder) !== undefined) break;
  }
  await waitFor(() => !alive(), TRAILING_MS);
}

/** Whether an attempt's folder was made. */
export const folderExists = (folder: string): boolean => existsSync(folder);

/** Whether a shell got as far as starting the program, or may have. */
export const hasStarted = (folder: string): boolean => existsSync(join(folder, "go"));

/** The exit code that was written down; undefined while the program runs or when it was killed with its shell. */
export function exitOf(folder: string): number | undefined {
  try {
    const code = Number.parseInt(readFileSync(join(folder, "exit"), "utf8"), 10);
    return Number.isNaN(code) ? undefined : code;
  } catch {
    return undefined;
  }
}

/** Everything the program printed, as far as it was kept. Bytes that are not UTF-8 become U+FFFD. */
export function readOutput(folder: string): Output {
  const file = (name: string): string => {
    try {
      return readFileSync(join(folder, name), "utf8");
    } catch {
      return "";
    }
  };
  // The piece that did not fit is lost to the count; its size is unknown but not zero.
  const dropped = (name: string) => (Number.parseInt(file(`${name}.rest`), 10) || 0) + (existsSync(join(folder, `${name}.over`)) ? 1 : 0);
  return {
    stdout: file("stdout"),
    stderr: file("stderr"),
    stdoutDropped: dropped("stdout"),
    stderrDropped: dropped("stderr"),
    exitCode: exitOf(folder),
    usage: usageIn(folder),
  };
}

/** File of the attempt's folder that a program may be told to write its usage to. */
export const USAGE_FILE = "usage.json";
const USAGE_BYTES_MAX = 1_048_576;

/** Only a plain file is opened: a pipe in its place would never end. */
function usageIn(folder: string): string | undefined {
  const path = join(folder, USAGE_FILE);
  const stat = lstatSync(path, { throwIfNoEntry: false });
  return stat?.isFile() && stat.size <= USAGE_BYTES_MAX ? readFileSync(path, "utf8") : undefined;
}

/**
 * Why the shell could not execute the program at all, as words for a sentence: its interpreter is missing. Undefined when the program ran, whatever it
 * ended with.
 */
export function notExecuted({ exitCode, stderr }: Output): string | undefined {
  if (exitCode !== 126 && exitCode !== 127) return undefined;
  // After the program's path, which nobody needs to read twice.
  const said = new RegExp(`^${SHELL_NAME}: (?:line )?\\d+: .*?: (.+)`).exec(stderr)?.[1];
  return said && `cannot be executed (${said.slice(0, 200)}): is the interpreter in its first line installed?`;
}

/** Removes an attempt's folder once all in it is recorded. */
export const clearFolder = (folder: string): void => rmSync(folder, { recursive: true, force: true });
