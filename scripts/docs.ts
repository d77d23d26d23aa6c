// Writes the pages that are made from the code: docs/api.md, docs/cli.md, docs/settings.md, docs/errors.md, and the golden OpenAPI document.
// `npm run docs` writes them; tests/docs compares them with what the code says now.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { openapiDocument } from "../src/api/openapi.ts";
import { describeApi, type Operation } from "../src/api/reference.ts";
import { ROUTES } from "../src/api/routes.ts";
import { examples } from "../src/cli/command.ts";
import { entryText, isForAllFolders } from "../src/cli/connect.ts";
import { PROGRAMS, type Way } from "../src/cli/connect-programs.ts";
import { EXIT } from "../src/cli/output.ts";
import { buildProgram } from "../src/cli/program.ts";
import { REFUSALS } from "../src/db/refused.ts";
import { TOOLS } from "../src/mcp/catalogue.ts";
import { offered } from "../src/mcp/exchange.ts";
import { annotationsOf, type Tool } from "../src/mcp/tool.ts";
import { AGENT_MAIL } from "../src/mcp/tools/agent-mail.ts";
import * as limits from "../src/protocol/limits.ts";
import { RUNTIME_ERRORS } from "../src/protocol/runtime-errors.ts";
import { VARIABLES } from "../src/protocol/variables.ts";

const ROOT = join(import.meta.dir, "..");
const MADE = "<!-- Made by `npm run docs` from the code. Edit the code, not this page. -->";

/** Every made file: path from the root → its text. */
export const madeFiles = (): Record<string, string> => ({
  "docs/api.md": apiPage(),
  "docs/cli.md": cliPage(),
  "docs/settings.md": settingsPage(),
  "docs/errors.md": errorsPage(),
  "docs/mcp.md": mcpPage(),
  "src/cli/mcp-tools.json": `${JSON.stringify(
    TOOLS.map(({ name, title, effect }) => ({ name, title, effect })),
    undefined,
    2,
  )}\n`,
  "docs/agents.md": within("docs/agents.md", "programs", programTexts()),
  "ARCHITECTURE.md": within("ARCHITECTURE.md", "limits", limitTable()),
  "tests/api/openapi.golden.json": `${JSON.stringify(openapiDocument(ROUTES), undefined, 2)}\n`,
});

/** A page that is written by hand, with what stands between two marks made anew. */
function within(page: string, mark: string, made: string): string {
  const text = readFileSync(join(ROOT, page), "utf8");
  const [begin, end] = [`<!-- ${mark}:begin -->`, `<!-- ${mark}:end -->`];
  return `${text.slice(0, text.indexOf(begin) + begin.length)}\n${made}\n${text.slice(text.indexOf(end))}`;
}

/** What `kxm connect` writes for each program, and where. */
function programTexts(): string {
  const way: Way = {
    kind: "stdio",
    command: "/usr/local/bin/kxm",
    args: ["mcp"],
    env: { KXM_URL: "http://127.0.0.1:7331", KXM_PROJECT: "shop", KXM_AGENT_NAME: "NAME" },
  };
  const sections = PROGRAMS.map((program) => {
    const { name, title, files, format, caution } = program;
    const [folder, home] = [files.project?.(".", "~"), files.user?.(".", "~")];
    const where = isForAllFolders(program) ? `\`${home}\`, for all folders` : `\`${folder}\`, with \`--user\` \`${home}\``;
    const named: Way = { ...way, env: { ...way.env, KXM_AGENT_NAME: name } };
    return `### ${title}\n\n\`kxm connect ${name}\` writes ${where}.${caution ? ` ${caution}` : ""}\n\n\`\`\`${format}\n${entryText(program, program.entry(named, false))}\n\`\`\``;
  });
  return sections.join("\n\n");
}

/** The table of limits, made from the constants and the comments above them. */
function limitTable(): string {
  const source = readFileSync(join(ROOT, "src/protocol/limits.ts"), "utf8");
  const rows: unknown[][] = [];
  let meaning = "";
  for (const line of source.split("\n")) {
    const comment = /^\/\*\* (.*) \*\/$/.exec(line)?.[1];
    const name = /^export const (\w+)/.exec(line)?.[1];
    if (comment !== undefined) meaning = comment;
    if (name === undefined) continue;
    const value = (limits as Record<string, number>)[name]!;
    rows.push([`\`${name}\``, value.toLocaleString("en-US"), meaning || "as above"]);
    meaning = "";
  }
  return table(["limit", "value", "what it bounds"], rows);
}

function mcpPage(): string {
  const cost = (agentMailNames: boolean) => Math.round(JSON.stringify(offered({ agentMailNames }).listed).length / 4 / 100) * 100;
  return page(
    "The MCP tools",
    "Any MCP client gets these over HTTP at `/mcp` or on standard input and output with `kxm mcp`; `kxm connect` sets either up ([agents](agents.md)). Answers are short JSON and end with `next`: what to do now. A refusal is an answer, too, with `code`, `error` and `next`.",
    `The hub is stateless here: a restart is not noticed. The whole list costs a model about ${cost(false)} tokens.`,
    ...TOOLS.map(toolText),
    "## Names that users of MCP Agent Mail know",
    `A hub that is started with \`KXM_MCP_ALIASES=agent-mail\` also offers the eight tools below, so that prompts and habits carry over; the whole list then costs about ${cost(true)} tokens. They work on the same messages and leases as the tools above, and both kinds can be mixed. What differs from there:`,
    [
      "- The connection names the agent and its project. A `sender_name` or `agent_name` of somebody else is refused; `project_key` is not needed.",
      "- A message is answered once. A second answer, or one to a message of one's own, is sent as a new message in the same thread. Replies are in `fetch_inbox`.",
      "- A reservation is a lease named `file:<pattern>`, always exclusive, with a fencing token, for at most ten minutes at a time: asking again extends it. It is refused, not only reported, when another agent holds a pattern that can match a common path. A project may have 200 at a time.",
      "- In patterns `*` and `?` stay within a name, `**` crosses folders, `[a-c]` and `{a,b}` choose. A last name without a dot is taken for a folder and everything in it; a pattern with wildcards and no slash holds in every folder. Case does not count.",
      "- Plain leases compare names only: `kxm_lease_acquire` of `file:src/app.ts` does not look at patterns, but a reservation looks at it.",
    ].join("\n"),
    ...AGENT_MAIL.map(toolText),
  );
}

function toolText(tool: Tool): string {
  const { readOnlyHint, destructiveHint, idempotentHint } = annotationsOf(tool);
  const hints = [readOnlyHint && "read-only", destructiveHint && "destructive", idempotentHint && "idempotent"].filter(Boolean).join(", ");
  const fields = Object.entries(tool.input.properties as Record<string, Record<string, unknown>>).map(([name, field]) => [
    `\`${name}\``,
    `${(field["enum"] as string[] | undefined)?.join(", ") ?? field["type"] ?? "object"}${field["default"] === undefined ? "" : `, default ${JSON.stringify(field["default"])}`}`,
    field["description"] ?? "",
  ]);
  return [
    `### ${tool.name}`,
    `${tool.description}${hints ? ` (${hints})` : ""}`,
    ...(fields.length > 0 ? [table(["field", "form", "meaning"], fields)] : []),
  ].join("\n\n");
}

const page = (title: string, ...parts: string[]) => `# ${title}\n\n${MADE}\n\n${parts.join("\n\n")}\n`;
const cell = (text: unknown) => String(text).replaceAll("|", "\\|").replaceAll("\n", " ");
const table = (titles: string[], rows: unknown[][]) =>
  [`| ${titles.join(" | ")} |`, `| ${titles.map(() => "---").join(" | ")} |`, ...rows.map((row) => `| ${row.map(cell).join(" | ")} |`)].join("\n");

function apiPage(): string {
  const { operations } = describeApi(ROUTES);
  const sections = [...Map.groupBy(operations, ({ tag }) => tag)].map(([tag, group]) => [`## ${tag}`, ...group.map(operationText)].join("\n\n"));
  return page(
    "The HTTP API",
    "Plain HTTP on the hub's address, JSON in and out. The same as an OpenAPI 3.1 document: `GET /openapi.json` of a running hub; as a page: `/docs`.",
    "A refusal is `{ error, code, requestId, hint }` with a status; [errors](errors.md) lists every code. Every answer carries `x-request-id`. Every operation can also answer `host_forbidden`, `protocol_error`, `rate_limited`, `storage_unavailable` and `internal_error`; what is listed below is beside these.",
    ...sections,
  );
}

const COMMON = new Set(["host_forbidden", "protocol_error", "rate_limited", "storage_unavailable", "internal_error"]);

function operationText(operation: Operation): string {
  const { id, method, path, summary, credential, fields, answers, errors } = operation;
  const rows = fields.map(({ name, in: place, type, required, default: fallback, description }) => [
    `\`${name}\``,
    place,
    `${type}${fallback === undefined ? "" : `, default ${JSON.stringify(fallback)}`}${required ? "" : ", optional"}`,
    description ?? "",
  ]);
  const own = errors.filter(({ code }) => !COMMON.has(code)).map(({ code }) => `\`${code}\``);
  return [
    `### ${id}`,
    `\`${method} ${path}\` · ${summary}`,
    `Shown by the caller: ${credential}. Answers ${answers.map(({ status, what }) => `${status} ${what}`).join(" · ")}.`,
    ...(rows.length > 0 ? [table(["field", "in", "form", "meaning"], rows)] : []),
    ...(own.length > 0 ? [`Refuses with ${own.join(", ")}.`] : []),
  ].join("\n\n");
}

function errorsPage(): string {
  const { errors } = describeApi(ROUTES);
  const store = REFUSALS.map((code) => `\`${code}\``);
  return page(
    "Error codes",
    "A code never changes its meaning; the sentence beside it may. The hint says what to do next.",
    "## The hub's API",
    table(
      ["code", "status", "what to do"],
      errors.map(({ code, status, hint }) => [`\`${code}\``, status === 200 ? "200, per event" : status, hint]),
    ),
    "## The Runtime on this machine",
    table(
      ["code", "status", "what to do"],
      Object.entries(RUNTIME_ERRORS).map(([code, { status, hint }]) => [`\`${code}\``, status, hint]),
    ),
    "## Why a store is not opened, copied or restored",
    `Said by \`kxm hub\`, \`backup\`, \`restore\` and \`verify\` with the path and what to do; [storage](storage.md) explains them: ${store.join(", ")}.`,
  );
}

function settingsPage(): string {
  const of = (program: string) => VARIABLES.filter((one) => one.of === program).map((one) => [`\`${one.name}\``, one.default, one.meaning]);
  const titles = ["variable", "without it", "meaning"];
  return page(
    "Settings",
    "All settings are environment variables. A hub with an invalid one does not start; it names every mistake at once.",
    `## The hub\n\n${table(titles, of("hub"))}`,
    `## Commands\n\n${table(titles, of("commands"))}`,
    `## The Runtime\n\n${table(titles, of("runtime"))}`,
    `## What a step's command is given\n\n${table(titles, of("steps"))}`,
  );
}

const silent = { write: () => {}, isTTY: false };
const NO_WORLD = {
  env: {},
  cwd: "/",
  stdin: { isTTY: false, read: async () => "" },
  stdout: silent,
  stderr: silent,
  stopping: new AbortController().signal,
};

function cliPage(): string {
  const program = buildProgram({ world: NO_WORLD, exitCode: 0 });
  const codes = Object.entries(EXIT).map(([name, code]) => `${code} ${name === "timedOut" ? "timed out" : name}`);
  return page(
    "The command line",
    `Every command has \`--help\` with examples and \`--json\` for programs: one JSON document on stdout, and on failure one with \`error\`, \`code\` and \`hint\` on stderr. Exit codes: ${codes.join(" · ")}.`,
    ...program.commands.flatMap((command) => commandTexts(command, "kxm")),
  );
}

function commandTexts(command: Command, before: string): string[] {
  const name = `${before} ${command.name()}`;
  const heading = before.includes(" ") ? "###" : "##";
  if (command.commands.length > 0)
    return [`${heading} ${name}`, command.description(), ...command.commands.flatMap((inner) => commandTexts(inner, name))];
  const options = command.options.filter((option) => !option.hidden && option.long !== "--json");
  const rows = options.map(({ flags, description, defaultValue, defaultValueDescription }) => [
    `\`${flags}\``,
    `${description}${defaultValue === undefined ? "" : ` (default ${defaultValueDescription ?? JSON.stringify(defaultValue)})`}`,
  ]);
  const words = command.registeredArguments.map((argument) => {
    const shown = `${argument.name()}${argument.variadic ? "…" : ""}`;
    return argument.required ? `<${shown}>` : `[${shown}]`;
  });
  return [
    `${heading} ${[name, ...words].join(" ")}`,
    command.description().replaceAll(/\n((?: {2}.*\n?)+)/g, "\n\n```text\n$1\n```"),
    ...(rows.length > 0 ? [table(["option", "meaning"], rows)] : []),
    `\`\`\`sh\n${examples(command).join("\n")}\n\`\`\``,
  ];
}

if (import.meta.main) for (const [path, text] of Object.entries(madeFiles())) writeFileSync(join(ROOT, path), text);
