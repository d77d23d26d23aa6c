// The command line of `kxm`. Every group of commands is a file of its own that adds itself here.
import type { Command } from "commander";
import { VERSION } from "../protocol/version.ts";
import { addBudget } from "./budget.ts";
import { codeOfParse, createRoot, type Session } from "./command.ts";
import { addCompletion } from "./completion.ts";
import { addConnect } from "./connect.ts";
import { addContext, addMemory } from "./context.ts";
import { addDemo } from "./demo.ts";
import { addDoctor } from "./doctor.ts";
import { addGate } from "./gate.ts";
import { addHarness } from "./harness.ts";
import { addHub } from "./hub.ts";
import { addInit } from "./init.ts";
import { addIntake } from "./intake.ts";
import { addImprovements, addJournal, addSearch } from "./journal.ts";
import { addLease } from "./lease.ts";
import { addMcp } from "./mcp.ts";
import { addOpen } from "./open.ts";
import { CommandFailed, type World } from "./output.ts";
import { addPeer } from "./peer.ts";
import { addProject } from "./project.ts";
import { addRedact } from "./redact.ts";
import { addRun } from "./run.ts";
import { addRuns } from "./runs.ts";
import { addRuntime } from "./runtime.ts";
import { addSkill } from "./skill.ts";
import { addStore } from "./store.ts";
import { addToken } from "./token.ts";
import { addWatch } from "./watch.ts";
import { addWebhook } from "./webhook.ts";
import { addWorker } from "./worker.ts";
import { addWorkflow } from "./workflow.ts";

/** Adds a group's commands to the program. */
export type AddGroup = (program: Command) => void;

/** The order is the order of --help. A group that is not here does not exist. */
const GROUPS: readonly AddGroup[] = [
  addHub,
  addOpen,
  addPeer,
  addLease,
  addConnect,
  addSkill,
  addMcp,
  addWorkflow,
  addWatch,
  addJournal,
  addImprovements,
  addContext,
  addMemory,
  addSearch,
  addWebhook,
  addToken,
  addBudget,
  addInit,
  addRun,
  addRuns,
  addIntake,
  addProject,
  addHarness,
  addWorker,
  addGate,
  addRedact,
  addRuntime,
  addStore,
  addDoctor,
  addDemo,
  addCompletion,
];

/** The program with all its commands, ready to parse. */
export function buildProgram(session: Session): Command {
  const program = createRoot(session)
    .description("KXM: one hub for the coding agents on your machines.")
    .version(VERSION, "-V, --version", "show the version")
    .helpCommand(false)
    .addHelpText("after", "\nStart with `kxm hub`. `kxm COMMAND --help` shows the options and examples of a command.");
  for (const add of GROUPS) add(program);
  return program;
}

/** Runs one command line and returns the exit code. @param args without the names of the runtime and the script */
export async function runProgram(args: readonly string[], world: World = thisProcess()): Promise<number> {
  const session: Session = { world, exitCode: 0 };
  try {
    await buildProgram(session).parseAsync(args, { from: "user" });
    return session.exitCode;
  } catch (error) {
    return codeOfParse(error, world);
  }
}

/** The real world: this process. The first SIGINT or SIGTERM aborts `stopping`; the second ends the process at once. */
function thisProcess(): World {
  const stop = new AbortController();
  const onSignal = (signal: NodeJS.Signals) => {
    if (stop.signal.aborted) process.exit(signal === "SIGINT" ? 130 : 143);
    stop.abort();
  };
  const signals: NodeJS.Signals[] = process.stdout.isTTY === true ? ["SIGINT", "SIGTERM", "SIGHUP"] : ["SIGINT", "SIGTERM"]; // without a terminal nobody hangs up
  for (const signal of signals) process.on(signal, () => onSignal(signal));
  const output = (stream: NodeJS.WriteStream) => ({
    write: (text: string) => void stream.write(text),
    isTTY: stream.isTTY === true,
    get columns() {
      return stream.columns;
    },
  });
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(0); // `kxm … | head`
    throw error;
  });
  const stdin = { isTTY: process.stdin.isTTY === true, read: readStdin };
  return { env: process.env, cwd: process.cwd(), stdin, stdout: output(process.stdout), stderr: output(process.stderr), stopping: stop.signal };
}

/** Standard input to its end. @throws CommandFailed when it is longer than `max` bytes */
async function readStdin(max: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > max) throw new CommandFailed(`standard input is longer than ${max} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
