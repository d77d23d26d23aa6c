// Where the hub's workflow definitions come from: one variable with the JSON itself, or a file that can be reloaded while the hub runs.
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { type DefinitionProblem, type Definitions, parseDefinitions } from "../hub/workflows/definitions.ts";
import { CommandFailed, visible } from "./output.ts";

type Env = Record<string, string | undefined>;

/** Where definitions are read from; undefined when the hub has none. */
export type DefinitionSource = { variable: string; path?: string; read: () => string };

/** @throws CommandFailed when both variables are set */
export function definitionSource(env: Env, cwd: string): DefinitionSource | undefined {
  const [json, file] = [env["KXM_WEBHOOK_WORKFLOWS"]?.trim(), env["KXM_WEBHOOK_WORKFLOWS_FILE"]?.trim()];
  if (json && file) {
    throw new CommandFailed(
      "KXM_WEBHOOK_WORKFLOWS and KXM_WEBHOOK_WORKFLOWS_FILE are both set",
      "Keep one of them: the file can be reloaded while the hub runs.",
    );
  }
  if (json) return { variable: "KXM_WEBHOOK_WORKFLOWS", read: () => json };
  if (!file) return undefined;
  const path = resolve(cwd, file);
  return { variable: "KXM_WEBHOOK_WORKFLOWS_FILE", path, read: () => readFileSync(path, "utf8") };
}

/** One finding as a line. */
export const findingLine = ({ line, path, message }: DefinitionProblem): string => visible(`line ${line}: ${path} ${message}`);

/**
 * Reads and checks the definitions as a whole.
 * @param remark told of members that nothing reads
 * @throws CommandFailed that lists every problem with its place
 */
export function loadDefinitions(source: DefinitionSource | undefined, env: Env, remark: (text: string) => void): Definitions {
  if (!source) return new Map();
  let json: string;
  try {
    json = source.read();
  } catch (error) {
    throw new CommandFailed(`${source.variable}: ${source.path} cannot be read: ${(error as Error).message}`, "Check the path and its permissions.");
  }
  const { definitions, problems, remarks } = parseDefinitions(json, env);
  for (const one of remarks) remark(`${source.path ?? source.variable}, ${findingLine(one)}`);
  if (problems.length === 0) return definitions;
  const lines = problems.map(findingLine);
  throw new CommandFailed(
    `${source.path ?? source.variable} has ${lines.length === 1 ? "a problem" : `${lines.length} problems`}:\n       ${lines.join("\n       ")}`,
    "Correct them all; `kxm workflow validate <file>` checks a file without a hub.",
  );
}
