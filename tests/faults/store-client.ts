// Drives a store process from outside and keeps the history of what it acknowledged.
import { availableParallelism, loadavg } from "node:os";
import type { Subprocess } from "bun";
import type { AnswerLine, CallLine, Setup } from "./store-process.ts";

export const STORE_PROCESS = `${import.meta.dir}/store-process.ts`;
/** Full counts instead of those that fit into every run. */
export const FULL = process.env["KXM_FAULTS"] === "full";

/** How much later than on an idle machine everything may be: one with more to do than it has cores starts each process late, whatever the store does. */
export const lateness = (): number => Math.max(1, loadavg()[0]! / availableParallelism());

export type StoreProcess = {
  pid: number;
  exited: Promise<number>;
  /** It is inside the transaction of a `hold`. */
  holding: Promise<void>;
  /** Answers the call, or undefined if the process died first. */
  call(line: Omit<CallLine, "n">): Promise<AnswerLine | undefined>;
  kill(signal?: NodeJS.Signals | number): void;
  /** Closes its input: it finishes what it has and ends. */
  end(): Promise<number>;
};

/** Starts a process and waits until it serves. @throws when it does not, with what it said */
export async function startStore(setup: Setup): Promise<StoreProcess> {
  const child = Bun.spawn([process.execPath, STORE_PROCESS, JSON.stringify(setup)], { stdin: "pipe", stdout: "pipe", stderr: "pipe" });
  const waiting = new Map<number, (answer: AnswerLine | undefined) => void>();
  const ready = Promise.withResolvers<void>();
  const holding = Promise.withResolvers<void>();
  let sent = 0;
  void readLines(child, (line) => {
    if ("ready" in line) return ready.resolve();
    if ("holding" in line) return holding.resolve();
    waiting.get(line.n)?.(line);
    waiting.delete(line.n);
  }).then(async () => {
    ready.reject(new Error(`the store process ended: ${await new Response(child.stderr).text()}`));
    for (const settle of waiting.values()) settle(undefined);
    waiting.clear();
  });
  await ready.promise;
  return {
    pid: child.pid,
    exited: child.exited,
    holding: holding.promise,
    call(line) {
      const n = ++sent;
      const { promise, resolve } = Promise.withResolvers<AnswerLine | undefined>();
      waiting.set(n, resolve);
      try {
        child.stdin.write(`${JSON.stringify({ ...line, n })}\n`);
        child.stdin.flush();
      } catch {
        resolve(undefined); // it is dead already
      }
      return promise;
    },
    kill: (signal = "SIGKILL") => child.kill(signal),
    async end() {
      await child.stdin.end();
      return child.exited;
    },
  };
}

/** Complete lines only: one that a kill cut off was not said. */
export async function readLines(child: Subprocess<any, "pipe", any>, each: (line: any) => void): Promise<void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of child.stdout) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop()!;
    for (const line of lines) each(JSON.parse(line));
  }
}
