// `kxm worker`: keep an agent at the hub that answers every request with a turn of a harness.
import type { Command } from "commander";
import { HARNESSES } from "../protocol/project-files.ts";
import { define, duration, group } from "./command.ts";
import { openProject } from "./local.ts";
import { CommandFailed, UsageError } from "./output.ts";

type StartOptions = {
  name: string;
  harness: string;
  model?: string;
  purpose?: string;
  instructions?: string;
  write?: boolean;
  env?: string[];
  timeout?: number;
  command?: string[];
};
type Report = {
  name: string;
  harness: string;
  state: string;
  agentId?: string;
  messageId?: string;
  turns: number;
  failures: number;
  lastError?: string;
  nextAttemptAt?: string;
};

/** Adds `kxm worker`. */
export function addWorker(program: Command): void {
  const worker = group(
    program,
    "worker",
    "keep agents at the hub that answer by themselves",
    "`kxm worker --name reviewer --harness codex` adds one; it comes back with the Runtime.",
  );
  define<StartOptions>(worker, {
    usage: "start [words...]",
    summary: "add a worker, or replace the one of that name",
    details: `Harnesses: ${HARNESSES.join(", ")}. The final answer of a turn becomes the reply; what fails stays open and is tried again. Nothing is spent while it is idle.`,
    examples: [
      "kxm worker --name reviewer --harness codex",
      "kxm worker --name fixer --harness claude --write --model anthropic/claude-sonnet-4-5",
      "kxm worker --name lint --harness command --command ./scripts/lint-report",
      "kxm worker --name tests --harness command -- npm test --silent",
    ],
    isDefault: true,
    options: (command) =>
      command
        .requiredOption("--name <name>", "its name at the hub")
        .requiredOption("--harness <id>", "the program that answers")
        .option("--model <provider/model>", "the model to ask for")
        .option("--purpose <text>", "one line that others see")
        .option("--instructions <text>", "what it is told in front of every request")
        .option("--write", "may change files, in a Git worktree of its own")
        .option("--env <names...>", "environment variables the program is given")
        .option("--timeout <span>", "longest one turn", duration(100, 86_400_000))
        .option("--command <words...>", "for the harness command: the program and its arguments; with options of its own they stand behind --"),
    run: async ({ args: words, options, out, world }) => {
      const { name, harness, purpose, instructions, env, timeout } = options;
      if (!(HARNESSES as readonly string[]).includes(harness)) throw new UsageError(`--harness must be one of ${HARNESSES.join(", ")}`);
      if (options.command && words.length > 0) throw new UsageError("give the program with --command or behind --, not both");
      const command = options.command ?? (words.length > 0 ? words : undefined);
      const { runtime, key } = await openProject(world, { start: true });
      const spec = {
        name,
        harness,
        ...(purpose && { purpose }),
        ...(instructions && { instructions }),
        ...(options.model && { model: modelOf(options.model) }),
        ...(options.write && { access: "write" }),
        ...(env && { env }),
        ...(timeout && { timeoutMs: timeout }),
        ...(command && { command }),
      };
      const { worker: report } = (await runtime.post(`/v1/projects/${key}/workers`, spec)) as { worker: Report };
      out.result(report, () => out.line(`worker ${name} answers with ${harness}; \`kxm worker list\` shows how it goes`));
    },
  });
  define(worker, {
    usage: "list",
    summary: "list the project's workers and what they do",
    examples: ["kxm worker list", "kxm worker list --json"],
    run: async ({ out, world }) => {
      const { runtime, key } = await openProject(world, { start: true });
      const { workers } = (await runtime.get(`/v1/projects/${key}/workers`)) as { workers: Report[] };
      out.result({ workers }, () =>
        out.table(
          workers,
          [
            { title: "NAME", value: (row) => row.name },
            { title: "HARNESS", value: (row) => row.harness },
            {
              title: "STATE",
              value: (row) => row.state,
              style: (row) => (row.state === "backing_off" ? "warn" : row.state === "working" ? "good" : undefined),
            },
            { title: "TURNS", value: (row) => row.turns, align: "right" },
            { title: "FAILED", value: (row) => row.failures, align: "right" },
            { title: "NEXT TRY", value: (row) => row.nextAttemptAt },
            { title: "LAST ERROR", value: (row) => row.lastError },
          ],
          "no workers; `kxm worker --name reviewer --harness claude` adds one",
        ),
      );
    },
  });
  define(worker, {
    usage: "stop <name>",
    summary: "end a worker and forget it; open requests stay open",
    examples: ["kxm worker stop reviewer"],
    run: async ({ args: [name], out, world }) => {
      const { runtime, key } = await openProject(world, { start: true });
      const answer = await runtime.post(`/v1/projects/${key}/workers/${encodeURIComponent(name!)}/stop`);
      if (!answer.stopped) throw new CommandFailed(`there is no worker ${name}`, "`kxm worker list` shows the names.");
      out.result(answer, () => out.line(`stopped ${name}`));
    },
  });
}

function modelOf(given: string): { provider: string; model: string } {
  const [provider, ...rest] = given.split("/");
  if (!provider || rest.length === 0) throw new UsageError("--model is provider/model, such as anthropic/claude-sonnet-4-5");
  return { provider, model: rest.join("/") };
}
