// `kxm demo`: a throw-away hub on a free port in a temporary folder, with agents that talk and lease and a Runtime that runs, until Ctrl-C.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Command } from "commander";
import { findRuntime } from "../client/local-runtime.ts";
import { VERSION } from "../protocol/version.ts";
import { define, number } from "./command.ts";
import { play } from "./demo-agents.ts";
import { runtimeCommand } from "./local.ts";
import { makeLink } from "./open.ts";
import type { Output, World } from "./output.ts";
import { ownName } from "./own-name.ts";
import { readSettings } from "./settings.ts";
import { readAdminToken, writeNote } from "./state-dir.ts";

const PROJECT = "shop";
const RUN_PAUSE_MS = 15_000;
const RUNTIME_STOP_MS = 5_000;
const PROMPTS = [
  "Say what this project is for",
  "Look at the failing checkout test",
  "Update the changelog",
  "Find out why search is slow",
  "Prepare release 1.4",
];

type DemoOptions = { port: number; runs: boolean };

/** Adds `kxm demo`. */
export function addDemo(program: Command): void {
  define<DemoOptions>(program, {
    usage: "demo",
    summary: "a throw-away hub with agents at work, to look around",
    details: "Everything lies in a temporary folder that is removed at the end; Ctrl-C ends it. Nothing of yours is touched.",
    examples: ["kxm demo", "kxm demo --port 7400 --no-runs"],
    options: (command) =>
      command
        .option("--port <number>", "port to listen on, 0 for any free one", number(0, 65_535), 0)
        .option("--no-runs", "without a Runtime and its runs"),
    run: ({ options, out, world }) => demonstrate(options, out, world),
  });
}

async function demonstrate({ port, runs }: DemoOptions, out: Output, world: World): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "kxm-demo-"));
  const kxm = ownName(world.cwd);
  const settings = readSettings({ KXM_PORT: String(port), KXM_WORKSPACE_DIR: join(folder, "hub") }, folder);
  try {
    const { serve } = await import("./serve.ts");
    const trouble = (text: string) => out.note(`demo: ${text}`);
    const serving = await serve(settings, trouble);
    let runtime: Runtime | undefined;
    try {
      const startedAt = new Date().toISOString();
      writeNote(settings.stateDir, { pid: process.pid, url: serving.url, version: VERSION, startedAt, logPath: settings.logPath });
      const link = await makeLink({ url: serving.url, operatorToken: readAdminToken(settings.stateDir) }, {}, world);
      out.result({ url: serving.url, signIn: link.url, folder }, () => {
        out.line(`KXM demo ${out.styled("bold", serving.url)}`);
        out.line(`  dashboard   ${link.url}`);
        out.line(out.styled("dim", "              works once, within a minute; this makes another:"));
        out.line(`              KXM_STATE_DIR=${settings.stateDir} ${kxm} open`);
        out.line(`  join in     KXM_URL=${serving.url} KXM_PROJECT=${PROJECT} ${kxm} peer --as me send coder 'hello' --wait`);
        out.line("  Ctrl-C ends it and removes everything.");
      });
      runtime = runs ? startRuntime(folder, serving.url, world, trouble) : undefined;
      await Promise.all([play({ to: { url: serving.url }, project: PROJECT, stopping: world.stopping, pace: 1, trouble }), runtime?.run()]);
    } finally {
      await runtime?.stop();
      await serving.stop();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
    if (world.stopping.aborted && !out.json) out.line("the demo has ended, and everything it made is gone");
  }
}

interface Runtime {
  /** Starts a run now and then until the demo ends. */
  run(): Promise<void>;
  stop(): Promise<void>;
}

/** A real Runtime with a project of its own. Without Git there is none: the agents talk all the same. */
function startRuntime(folder: string, url: string, world: World, trouble: (text: string) => void): Runtime | undefined {
  const checkout = join(folder, PROJECT);
  mkdirSync(checkout);
  mkdirSync(join(folder, "state"), { mode: 0o700 });
  const commit = ["-c", "user.name=demo", "-c", "user.email=demo@localhost", "commit", "--allow-empty", "-qm", "Start"];
  const git = (...args: string[]) =>
    spawnSync("git", args, { cwd: checkout, env: { ...world.env, HOME: folder, GIT_CONFIG_NOSYSTEM: "1" } as NodeJS.ProcessEnv, stdio: "ignore" })
      .status === 0;
  if (!git("init", "-q") || !git(...commit)) {
    trouble("git was not found: no runs are shown");
    return undefined;
  }
  const env = { ...world.env, KXM_STATE_HOME: join(folder, "state"), KXM_URL: url, KXM_PROJECT: PROJECT, KXM_TOKEN: "", KXM_AUTH_TOKEN: "" };
  const [program, ...args] = runtimeCommand();
  // It ends with this process, also when this one is killed: nothing else holds the other end of its standard input.
  const child = spawn(program!, [...args, "run", "--json", "--until-stdin-ends"], {
    cwd: checkout,
    env: env as NodeJS.ProcessEnv,
    stdio: ["pipe", "ignore", "pipe"],
  });
  child.stderr.on("data", (data: Buffer) => trouble(data.toString().trim()));
  return {
    async run() {
      // A run would start a Runtime of its own, and that one would outlive the demo.
      if (!(await isUp(join(folder, "state"), child, world.stopping)))
        return world.stopping.aborted ? undefined : trouble("the Runtime did not start: no runs are shown");
      await command(["init", "--name", PROJECT], { env, cwd: checkout, world, trouble });
      git("add", ".") && git(...commit);
      for (let n = 0; !world.stopping.aborted; n++) {
        await command(["run", PROMPTS[n % PROMPTS.length]!, "--detach"], { env, cwd: checkout, world, trouble });
        await pause(RUN_PAUSE_MS, world.stopping);
      }
    },
    stop: () => end(child),
  };
}

/** Waits until the Runtime of a state root answers. @returns false when it ended or the demo did */
async function isUp(root: string, child: ChildProcess, stopping: AbortSignal): Promise<boolean> {
  while (!stopping.aborted && child.exitCode === null) {
    const found = await findRuntime(root).catch(() => undefined);
    if (found) return true;
    await pause(50, stopping);
  }
  return false;
}

/** One command of ours in this process, without its output; a failure is told. */
async function command(args: string[], on: { env: World["env"]; cwd: string; world: World; trouble: (text: string) => void }) {
  const { runProgram } = await import("./program.ts");
  let said = "";
  const silent = { write: () => {}, isTTY: false };
  const heard = { write: (text: string) => void (said += text), isTTY: false };
  const { env, cwd, world, trouble } = on;
  const code = await runProgram(args, {
    env,
    cwd,
    stdin: { isTTY: true, read: async () => "" },
    stdout: silent,
    stderr: heard,
    stopping: world.stopping,
  });
  if (code !== 0 && !world.stopping.aborted) trouble(`kxm ${args[0]}: ${said.trim()}`);
}

async function pause(ms: number, stopping: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  const wake = () => resolve();
  stopping.addEventListener("abort", wake, { once: true });
  if (!stopping.aborted) await promise;
  clearTimeout(timer);
  stopping.removeEventListener("abort", wake);
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  child.once("exit", () => resolve());
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), RUNTIME_STOP_MS);
  await promise;
  clearTimeout(timer);
}
