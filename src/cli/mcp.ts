// `kxm mcp`: an MCP server on standard input and output for programs that start their servers themselves.
import { createInterface } from "node:readline";
import type { Command } from "commander";
import { bridge } from "../client/mcp-bridge.ts";
import { define } from "./command.ts";
import { defaultName } from "./identity.ts";
import tools from "./mcp-tools.json";
import { asProject, findTarget, type TargetOptions, withTarget } from "./target.ts";

type McpOptions = TargetOptions & { as?: string; purpose: string };

/** Made from the hub's catalogue by `npm run docs`, so that the command line need not load it; a test compares them. */
const NAME_WIDTH = Math.max(...tools.map(({ name }) => name.length)) + 2;

/** Adds `kxm mcp`. */
export function addMcp(program: Command): void {
  define<McpOptions>(program, {
    usage: "mcp",
    summary: "speak MCP on standard input and output",
    details:
      "For the configuration of a coding agent; `kxm connect` writes it. The agent's name is KXM_AGENT_NAME; a taken one gets a suffix, said on standard error.\n" +
      `Tools (* changes something), each with its arguments in docs/mcp.md:\n${tools.map(({ name, title, effect }) => `  ${name.padEnd(NAME_WIDTH)}${title}${effect === "read" ? "" : " *"}`).join("\n")}`,
    examples: ["kxm mcp", "KXM_AGENT_NAME=reviewer kxm mcp --project shop"],
    options: (command) =>
      withTarget(command)
        .option("--as <name>", "name to speak under (KXM_AGENT_NAME; else yours)")
        .option("--purpose <text>", "what others may ask of this agent", "Connected over MCP"),
    run: async ({ options, world }) => {
      const target = findTarget(world, options);
      const lines = createInterface({ input: process.stdin, crlfDelay: Number.POSITIVE_INFINITY });
      world.stopping.addEventListener("abort", () => lines.close(), { once: true });
      await bridge({
        connection: asProject(target),
        project: target.project,
        name: options.as ?? defaultName(world.env),
        purpose: options.purpose,
        lines,
        write: (line) => world.stdout.write(`${line}\n`),
        note: (text) => world.stderr.write(`kxm: ${text}\n`),
        pushes: true,
      });
    },
  });
}
