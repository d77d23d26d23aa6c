// A hub that really listens, in this process, and commands that run in this process against it: fast enough for many.
import { join } from "node:path";
import { runProgram } from "../../src/cli/program.ts";
import { type Serving, serve } from "../../src/cli/serve.ts";
import { readSettings } from "../../src/cli/settings.ts";
import { writeNote } from "../../src/cli/state-dir.ts";
import { VERSION } from "../../src/protocol/version.ts";
import { temporaryFolder } from "./folders.ts";

/** What a command in this process wrote and how it ended. */
export interface Ran {
  code: number;
  stdout: string;
  stderr: string;
  /** stdout as one JSON document. */
  json: any;
}

export interface Served extends AsyncDisposable {
  folder: string;
  serving: Serving;
  url: string;
  env: Record<string, string>;
  /** Runs a command of kxm in the hub's workspace. `stdin` makes standard input a pipe with this text. */
  kxm(args: string[], options?: { stdin?: string; env?: Record<string, string>; signal?: AbortSignal }): Promise<Ran>;
}

/** Starts a hub on a free port in a folder of its own. @param env settings of the hub and of every command */
export async function serveHub(env: Record<string, string> = {}): Promise<Served> {
  const { path: folder, [Symbol.dispose]: remove } = temporaryFolder();
  const all = { HOME: folder, KXM_PORT: "0", ...env };
  const serving = await serve(readSettings(all, folder), () => {});
  // What `kxm hub` leaves for the commands of its workspace.
  const note = { pid: process.pid, url: serving.url, version: VERSION, startedAt: new Date().toISOString(), logPath: "" };
  writeNote(join(folder, ".kxm", "state"), note);
  return {
    folder,
    serving,
    url: serving.url,
    env: all,
    kxm: (args, options = {}) =>
      runHere(args, {
        folder,
        env: { ...all, ...options.env },
        ...(options.stdin !== undefined && { stdin: options.stdin }),
        signal: options.signal,
      }),
    async [Symbol.asyncDispose]() {
      await serving.stop();
      remove();
    },
  };
}

/** Runs a command line in this process. */
export async function runHere(
  args: string[],
  { folder, env = {}, stdin, signal }: { folder: string; env?: Record<string, string>; stdin?: string; signal?: AbortSignal | undefined },
): Promise<Ran> {
  let [stdout, stderr] = ["", ""];
  const code = await runProgram(args, {
    env,
    cwd: folder,
    stdin: { isTTY: stdin === undefined, read: async () => stdin ?? "" },
    stdout: { write: (text) => void (stdout += text), isTTY: false },
    stderr: { write: (text) => void (stderr += text), isTTY: false },
    stopping: signal ?? new AbortController().signal,
  });
  return {
    code,
    stdout,
    stderr,
    get json() {
      return JSON.parse(stdout);
    },
  };
}
