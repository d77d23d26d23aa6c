// A program of ours in the background. It outlives the command that starts it, and what it says before it serves is in a private file.
import { spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";

/** A program that was started: it is waited for as long as `hasEnded` says no. */
export type Detached = { pid: number | undefined; hasEnded: () => boolean };

/**
 * Starts a program in a process group of its own.
 * @param command the program and its arguments
 * @param saidIn file for its output, made anew with mode 0600
 */
export function startDetached(
  [program, ...args]: readonly string[],
  { cwd, env, saidIn }: { cwd: string; env: Record<string, string | undefined>; saidIn: string },
): Detached {
  const output = openSync(saidIn, "w", 0o600);
  const child = spawn(program!, args, { cwd, env, stdio: ["ignore", output, output], detached: true });
  closeSync(output);
  child.unref();
  let ended = false;
  child.once("exit", () => {
    ended = true;
  });
  return { pid: child.pid, hasEnded: () => ended };
}
