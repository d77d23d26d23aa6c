// A real `kxm-runtime` of its own state root, as a child process.
import { setDefaultTimeout } from "bun:test";
import { join } from "node:path";
import { findRuntime, type LocalRuntime } from "../../src/client/local-runtime.ts";

const ENTRY = join(import.meta.dir, "../../src/runtime/main.ts");
const DEADLINE_MS = 20_000;
// Processes start slowly on a machine that runs much else.
setDefaultTimeout(60_000);

/** Waits for a condition, looking again as the event loop goes round. @throws after 20 seconds */
export async function until<T>(condition: () => T | Promise<T>, what: string): Promise<NonNullable<T>> {
  const deadline = performance.now() + DEADLINE_MS;
  while (performance.now() < deadline) {
    const value = await condition();
    if (value) return value as NonNullable<T>;
    await new Promise((resume) => setTimeout(resume, 5));
  }
  throw new Error(`waited ${DEADLINE_MS} ms for ${what}`);
}

export type RuntimeProcess = Awaited<ReturnType<typeof startRuntime>>;

/** Starts one and answers when it printed its facts or ended. @param wrap a program that runs it, such as a tracer, with its arguments */
export async function startRuntime(root: string, env: Record<string, string> = {}, entry = ENTRY, wrap: string[] = []) {
  const child = Bun.spawn([...wrap, process.execPath, entry, "run", "--json"], {
    env: { PATH: process.env["PATH"]!, HOME: root, KXM_STATE_HOME: root, KXM_RUNTIME_SYNC_INTERVAL_MS: "250", ...env },
    stdout: "pipe",
    stderr: "pipe",
    cwd: root,
  });
  const reader = child.stdout.getReader();
  const first = await reader.read();
  const line = first.done ? "" : new TextDecoder().decode(first.value);
  reader.releaseLock();
  const facts = line ? (JSON.parse(line) as { runtimeId: string; pid: number; port: number; generation: number; stateRoot: string }) : undefined;
  return {
    child,
    facts,
    /** What it said when it did not start, or ended. */
    stderr: async () => new Response(child.stderr).text(),
    client: (): Promise<LocalRuntime> => findRuntime(root),
    kill: async (signal: NodeJS.Signals = "SIGKILL") => {
      child.kill(signal);
      return child.exited;
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}
