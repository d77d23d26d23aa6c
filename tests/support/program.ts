// The real program in processes of its own, each test in a folder of its own: what a person at a terminal gets.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type Subprocess, spawn } from "bun";
import { temporaryFolder } from "./folders.ts";

const ROOT = join(import.meta.dir, "../..");
const COMMAND = [process.execPath, "--no-env-file", `--tsconfig-override=${join(ROOT, "tsconfig.json")}`, join(ROOT, "src/main.ts")];
const WAIT_MS = 20_000;

/** How a command ended. */
export interface Ended {
  code: number;
  stdout: string;
  stderr: string;
  ms: number;
}

/** A hub process. */
export interface HubProcess {
  url: string;
  port: number;
  pid: number;
  /** Everything on stdout so far. */
  stdout(): string;
  stderr(): string;
  /** Sends a signal and waits for the end. */
  end(signal?: "SIGTERM" | "SIGINT" | "SIGKILL"): Promise<{ code: number; ms: number }>;
  exited: Promise<number>;
}

/** A folder to run commands in; what was started in it ends with it. */
export interface Place extends AsyncDisposable {
  folder: string;
  env: Record<string, string>;
  /** Runs a command to its end. @throws when it takes longer than 20 seconds */
  run(args: string[], options?: { stdin?: string; env?: Record<string, string>; cwd?: string }): Promise<Ended>;
  /** Starts a command that serves (`hub`) and waits for its address on stdout. @throws with its stderr when it ends instead */
  startHub(options?: { env?: Record<string, string>; command?: string; args?: string[]; prefix?: string[] }): Promise<HubProcess>;
}

export async function openPlace(): Promise<Place> {
  const { path: base, [Symbol.dispose]: remove } = temporaryFolder();
  const [folder, home] = [join(base, "work"), join(base, "home")];
  for (const path of [folder, home]) mkdirSync(path);
  const cache = { BUN_RUNTIME_TRANSPILER_CACHE_PATH: join(ROOT, "node_modules/.cache/kxm/bun") }; // or each test compiles everything
  const env = {
    PATH: process.env["PATH"]!,
    HOME: home,
    KXM_PORT: "0",
    KXM_RATE_LIMIT_MAX: "1000000",
    TMPDIR: process.env["TMPDIR"] ?? "/tmp",
    ...cache,
  };
  const hubs = new Set<Subprocess>();
  return {
    folder,
    env,
    async run(args, options = {}) {
      const started = performance.now();
      const child = spawn([...COMMAND, ...args], {
        cwd: options.cwd ?? folder,
        env: { ...env, ...options.env },
        stdin: options.stdin === undefined ? "ignore" : new Blob([options.stdin]),
        stdout: "pipe",
        stderr: "pipe",
        timeout: WAIT_MS,
        killSignal: "SIGKILL",
      });
      const [stdout, stderr, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
      if (child.signalCode === "SIGKILL") throw new Error(`kxm ${args.join(" ")} did not end: ${stdout}${stderr}`);
      return { code, stdout, stderr, ms: performance.now() - started };
    },
    async startHub({ env: more = {}, command = "hub", args = [], prefix = [] } = {}) {
      const child = spawn([...prefix, ...COMMAND, command, ...args], {
        cwd: folder,
        env: { ...env, ...more },
        stdin: "ignore",
        stdout: "pipe",
        stderr: "pipe",
      });
      hubs.add(child);
      void child.exited.then(() => hubs.delete(child));
      const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)];
      const url = await stdout.until(/^KXM \w+ (http:\S+)/m, child.exited);
      if (url === undefined) throw new Error(`the hub did not start: ${stdout.text()}${stderr.text()}`);
      const end = async (signal: "SIGTERM" | "SIGINT" | "SIGKILL" = "SIGTERM") => {
        const began = performance.now();
        child.kill(signal);
        return { code: await child.exited, ms: performance.now() - began };
      };
      return { url, port: Number(new URL(url).port), pid: child.pid, stdout: stdout.text, stderr: stderr.text, end, exited: child.exited };
    },
    async [Symbol.asyncDispose]() {
      for (const child of hubs) child.kill("SIGKILL");
      await Promise.all([...hubs].map((child) => child.exited));
      remove();
    },
  };
}

/** Reads a pipe to its end in the background. */
function collect(stream: ReadableStream<Uint8Array>) {
  let text = "";
  const waiting = new Set<() => void>();
  const look = () => waiting.forEach((check) => check());
  void (async () => {
    const decoder = new TextDecoder();
    for await (const chunk of stream) {
      text += decoder.decode(chunk, { stream: true });
      look();
    }
  })();
  return {
    text: () => text,
    /** What the first group of a pattern matched, once it is there; undefined when `ended` comes first. */
    until(pattern: RegExp, ended: Promise<unknown>): Promise<string | undefined> {
      const { promise, resolve } = Promise.withResolvers<string | undefined>();
      const check = () => {
        const found = pattern.exec(text)?.[1];
        if (found !== undefined) resolve(found);
      };
      waiting.add(check);
      void ended.then(() => setTimeout(() => resolve(undefined), 100)); // what is still in the pipe comes first
      check();
      return promise.finally(() => waiting.delete(check));
    },
  };
}
