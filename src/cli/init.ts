// `kxm init` and `kxm schema`: a project that runs at once, and the shapes of its files for editors.
import { existsSync } from "node:fs";
import { basename, join } from "node:path";
import type { TSchema } from "@sinclair/typebox";
import type { Command } from "commander";
import { AgentFile, GatesFile, HARNESS_PROGRAMS, MemoryFile, PricesFile, ProjectFile } from "../protocol/project-files.ts";
import { WorkflowFile } from "../protocol/workflow-file.ts";
import { define } from "./command.ts";
import { projectFiles } from "./init-files.ts";
import { CommandFailed, harmlessJson, UsageError, type World } from "./output.ts";
import { writeBelow } from "./own-files.ts";

const SCHEMAS: Record<string, TSchema> = {
  project: ProjectFile,
  agent: AgentFile,
  workflow: WorkflowFile,
  gates: GatesFile,
  prices: PricesFile,
  memory: MemoryFile,
};

type InitOptions = { name?: string; force?: boolean };

/** Adds `kxm init` and `kxm schema`. */
export function addInit(program: Command): void {
  define<InitOptions>(program, {
    usage: "init",
    summary: "make a KXM project in this Git repository",
    details: "Writes .kxm/ with a workflow that completes at once with the built-in echo harness, and examples for the agent programs found here.",
    examples: ["kxm init", "kxm init --name shop", "kxm init && kxm run 'Say hello'"],
    options: (command) =>
      command
        .option("--name <text>", "what people call the project (default: the folder's name)")
        .option("--force", "write files again that exist already"),
    run: ({ options, out, world }) => {
      const root = repositoryRoot(world);
      const found = Object.entries(HARNESS_PROGRAMS).flatMap(([id, program]) => (Bun.which(program, { PATH: world.env["PATH"] ?? "" }) ? [id] : []));
      const files = projectFiles({ name: options.name ?? (basename(root) || "project"), found });
      const { written, kept } = write(root, files, options.force === true);
      out.result({ root, written, kept, harnesses: found }, () => {
        for (const path of written) out.line(`wrote  ${path}`);
        for (const path of kept) out.line(`kept   ${path}`);
        out.line(
          found.length > 0
            ? `agent programs found: ${found.join(", ")} (see .kxm/examples)`
            : "no agent program found on PATH; the echo harness needs none",
        );
        out.line("next: kxm run 'Say hello'");
      });
    },
  });
  define(program, {
    usage: "schema [file]",
    summary: "print the JSON Schema of a kind of project file",
    details: `Kinds: ${Object.keys(SCHEMAS).join(", ")}. For editors: # yaml-language-server: $schema=…`,
    examples: ["kxm schema workflow > .kxm/workflow.schema.json"],
    run: ({ args: [kind], world, out }) => {
      const schema = kind === undefined ? undefined : SCHEMAS[kind];
      if (!schema) throw new UsageError(`name a kind of file: ${Object.keys(SCHEMAS).join(", ")}`);
      const document = { $schema: "https://json-schema.org/draft/2020-12/schema", title: `KXM ${kind} file`, ...schema };
      world.stdout.write(`${harmlessJson(document, out.json ? undefined : 2)}\n`);
    },
  });
}

/** The top of the repository that holds the current folder. @throws CommandFailed */
function repositoryRoot(world: World): string {
  const git = Bun.spawnSync(["git", "rev-parse", "--show-toplevel"], { cwd: world.cwd, env: world.env as Record<string, string>, stderr: "ignore" });
  if (git.exitCode !== 0) throw new CommandFailed("this folder is in no Git repository", "Run `git init` first: steps work in Git worktrees.");
  return git.stdout.toString().trim();
}

function write(root: string, files: Record<string, string>, force: boolean): { written: string[]; kept: string[] } {
  const [written, kept]: [string[], string[]] = [[], []];
  for (const [path, text] of Object.entries(files)) {
    const full = join(root, path);
    if (existsSync(full) && !force) {
      kept.push(path);
      continue;
    }
    writeBelow(root, path, text);
    written.push(path);
  }
  return { written, kept };
}
