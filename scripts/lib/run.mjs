// Runs a program in the foreground of a script: signals reach it once, and its exit code becomes ours.
import { spawn } from "node:child_process";
import { ROOT, say } from "./project.mjs";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"];
/** A terminal and npm both pass Ctrl-C on; what arrives within this time is one signal, not an impatient second one. */
const SAME_SIGNAL_MS = 300;
/** How long the last output of a program that has ended is waited for; something it left running may hold the pipe open. */
const LAST_OUTPUT_MS = 2_000;

/**
 * Runs a program in a process group of its own and resolves with how it ended.
 * @param {string} command program to run
 * @param {string[]} args
 * @param {{env?: object, stdio?: any, limitMs?: number, onChild?: (child: import("node:child_process").ChildProcess) => void}} options
 *   limitMs: the whole group is killed after this time. onChild: sees the child as soon as it exists.
 * @returns {Promise<{code: number, signal: string | null, timedOut: boolean, interrupted: boolean}>} code is 128 + n after a signal
 */
export async function run(command, args, { env = process.env, stdio = "inherit", limitMs, onChild } = {}) {
  let child;
  let interrupted = false;
  let last = 0;
  const forward = (signal) => {
    const now = performance.now();
    if (interrupted && now - last < SAME_SIGNAL_MS) return;
    interrupted = true;
    last = now;
    child.kill(signal);
  };
  for (const signal of SIGNALS) process.on(signal, forward); // before there is a child: it may be faster than our next line
  child = spawn(command, args, { cwd: ROOT, env, stdio, detached: true });
  onChild?.(child);
  let timedOut = false;
  const limit =
    limitMs &&
    setTimeout(() => {
      timedOut = true;
      say(`kxm: stopped after ${Math.round(limitMs / 60_000)} minutes: something hangs.`);
      killGroup(child.pid);
    }, limitMs);
  const closed = new Promise((resolve) => child.once("close", resolve));
  const [code, signal] = await new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (...end) => resolve(end));
  });
  clearTimeout(limit);
  for (const name of SIGNALS) process.off(name, forward);
  if (stdio !== "inherit") {
    killGroup(child.pid); // whatever a test left behind in its group
    await Promise.race([closed, new Promise((resolve) => setTimeout(resolve, LAST_OUTPUT_MS).unref())]);
  }
  return { code: code ?? 128 + SIGNAL_NUMBERS[signal], signal, timedOut, interrupted };
}

const SIGNAL_NUMBERS = { SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGABRT: 6, SIGKILL: 9, SIGSEGV: 11, SIGTERM: 15 };

function killGroup(pid) {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // the group is already gone
  }
}

/** Ends this script the way the program ended, so that a caller sees the same signal or code. */
export function endLike({ code, signal }) {
  if (signal) process.kill(process.pid, signal);
  process.exitCode = Number.isInteger(code) ? code : 1;
}
