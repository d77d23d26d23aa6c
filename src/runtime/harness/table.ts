// One row per harness: how the program is started once, how the prompt goes in, how the result comes out, what it may do, and how to ask about it.
import type { HarnessId } from "../../protocol/project-files.ts";
import { HOUR_MS } from "../../protocol/time.ts";
import { type Output, USAGE_FILE } from "./launch.ts";
import type { Turn } from "./result.ts";
import { readClaude, readCodex, readCopilot, readGemini, readOpenCode, readPi, readPlain } from "./results.ts";
import { claudeSignIn, codexSignIn } from "./sign-in.ts";

/** What a turn is started with. */
export type Start = {
  access: "read" | "write";
  model?: { provider: string; model: string };
  /** A new session gets this id, where the program takes one; `resume` goes on in it. */
  sessionId: string;
  resume?: boolean;
  /** Private folder of the attempt, where the row's `files` lie. */
  folder: string;
  /** Of an agent with the harness `command`. */
  command?: string[];
};

export type Row = {
  id: HarnessId;
  /** The program's name on PATH; undefined for what needs none. */
  program?: string;
  /** The npm package and the version whose flags and output this row was checked with. */
  checked?: { name: string; version: string };
  arguments: (start: Start, prompt: string) => string[];
  /** Where the prompt goes: standard input, or inside `arguments`. */
  prompt: "stdin" | "argument";
  /** Environment beyond the usual that the program needs for its own sign-in. */
  env: string[];
  /** Files that `arguments` names, by their name in the attempt's folder. */
  files?: (start: Start) => Record<string, string>;
  /** Settings made for every start. */
  settings?: (start: Start) => Record<string, string>;
  read: (output: Output) => Turn;
  /** Whether a session can be taken up again. */
  resumes: boolean;
  version?: string[];
  /** Files below HOME that hold a sign-in, and variables that are one; where the program itself can be asked, how, and what its answer says. */
  signIn: { files: string[]; env: string[]; ask?: { args: string[]; read: (said: string, home: string) => boolean | undefined } };
  /** Longest one attempt, unless the project says less, in milliseconds. */
  timeoutMs: number;
  /** Time to end by itself after SIGTERM, in milliseconds. */
  drainMs: number;
};

const model = (flag: string, start: Start, joined = false): string[] =>
  start.model ? [flag, joined ? `${start.model.provider}/${start.model.model}` : start.model.model] : [];

const claude: Row = {
  id: "claude",
  program: "claude",
  checked: { name: "@anthropic-ai/claude-code", version: "2.1.332" },
  arguments: (start) => [
    ...["-p", "--output-format", "stream-json", "--verbose"],
    ...(start.resume ? ["--resume", start.sessionId] : ["--session-id", start.sessionId]),
    ...(start.access === "write"
      ? ["--permission-mode", "acceptEdits", "--allowedTools", "Bash,Read,Edit,Write,MultiEdit,NotebookEdit,Glob,Grep,mcp__kxm"]
      : ["--permission-mode", "dontAsk", "--allowedTools", "Read,Glob,Grep,mcp__kxm", "--disallowedTools", "Bash,Edit,Write,MultiEdit,NotebookEdit"]),
    ...model("--model", start),
  ],
  prompt: "stdin",
  env: ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_OAUTH_TOKEN"],
  settings: () => ({ CLAUDE_CODE_MAX_RETRIES: "1", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1" }),
  read: readClaude,
  resumes: true,
  version: ["--version"],
  signIn: {
    files: [".claude/.credentials.json"],
    env: ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"],
    ask: { args: ["auth", "status"], read: claudeSignIn },
  },
  timeoutMs: HOUR_MS,
  drainMs: 5000,
};

const codex: Row = {
  id: "codex",
  program: "codex",
  checked: { name: "@openai/codex", version: "0.171.0" },
  arguments: (start) => [
    "exec",
    ...(start.resume ? ["resume", start.sessionId] : []),
    ...["--json", "--skip-git-repo-check"],
    // As a setting, not with -s: a resumed thread takes no -s, and would fall back to whatever the user's own file says.
    ...["-c", `sandbox_mode="${start.access === "write" ? "workspace-write" : "read-only"}"`],
    ...model("-m", start),
    "-",
  ],
  prompt: "stdin",
  env: ["OPENAI_API_KEY", "CODEX_API_KEY", "OPENAI_BASE_URL", "CODEX_HOME"],
  read: readCodex,
  resumes: true,
  version: ["--version"],
  signIn: { files: [".codex/auth.json"], env: ["OPENAI_API_KEY", "CODEX_API_KEY"], ask: { args: ["login", "status"], read: codexSignIn } },
  timeoutMs: HOUR_MS,
  drainMs: 5000,
};

const GEMINI_READER = "read-only.toml";
const gemini: Row = {
  id: "gemini",
  program: "gemini",
  checked: { name: "@google/gemini-cli", version: "0.61.0" },
  arguments: (start) => [
    ...["-o", "json", "--approval-mode", start.access === "write" ? "yolo" : "default"],
    ...(start.access === "write" ? [] : ["--admin-policy", `${start.folder}/${GEMINI_READER}`]),
    ...resume(start),
    ...model("-m", start),
  ],
  prompt: "stdin",
  // The mode alone gives way to tools that the user allows in their own settings.
  files: (start): Record<string, string> =>
    start.access === "write"
      ? {}
      : { [GEMINI_READER]: '[[rule]]\ntoolName = ["run_shell_command", "write_file", "replace"]\ndecision = "deny"\npriority = 999\n' },
  env: [
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GOOGLE_GEMINI_BASE_URL",
    "GOOGLE_CLOUD_PROJECT",
    "GOOGLE_CLOUD_LOCATION",
    "GOOGLE_APPLICATION_CREDENTIALS",
  ],
  // Without it the program exits 55 in a folder nobody has trusted by hand.
  settings: () => ({ GEMINI_CLI_TRUST_WORKSPACE: "true" }),
  read: readGemini,
  resumes: true,
  version: ["--version"],
  signIn: { files: [".gemini/oauth_creds.json"], env: ["GEMINI_API_KEY", "GOOGLE_API_KEY"] },
  timeoutMs: HOUR_MS,
  drainMs: 5000,
};

function resume(start: Start): string[] {
  return start.resume ? ["--resume", start.sessionId] : [];
}

const DENIED = { edit: "deny", bash: "deny" };
const OPENCODE_AGENTS = Object.fromEntries(["build", "plan", "general", "explore"].map((name) => [name, { permission: DENIED }]));
const opencode: Row = {
  id: "opencode",
  program: "opencode",
  checked: { name: "opencode-ai", version: "1.18.33" },
  arguments: (start) => [
    ...["run", "--format", "json"],
    ...(start.access === "write" ? [] : ["--agent", "build"]), // one of those that are denied below, whatever the user's own default is
    ...(start.resume ? ["-s", start.sessionId] : []),
    ...model("-m", start, true),
  ],
  prompt: "stdin",
  env: ["OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"],
  // Its start would wait for a list of models and an update. A reader's own configuration is merged with the denials; what it allows one of its agents
  // would win over those for all.
  settings: (start): Record<string, string> => ({
    OPENCODE_DISABLE_MODELS_FETCH: "1",
    OPENCODE_DISABLE_AUTOUPDATE: "1",
    ...(start.access === "read" && { OPENCODE_CONFIG_CONTENT: JSON.stringify({ permission: DENIED, agent: OPENCODE_AGENTS }) }),
  }),
  read: readOpenCode,
  resumes: true,
  version: ["--version"],
  signIn: { files: [".local/share/opencode/auth.json"], env: [] },
  timeoutMs: HOUR_MS,
  drainMs: 5000,
};

const pi: Row = {
  id: "pi",
  program: "pi",
  checked: { name: "@earendil-works/pi-coding-agent", version: "1.6.0" },
  // Creates the session or takes it up again, whichever it finds.
  arguments: (start) => [
    ...["-p", "--mode", "json", "--session-id", start.sessionId],
    ...(start.access === "write" ? [] : ["--tools", "read,grep,find,ls"]),
    ...model("--model", start, true),
  ],
  prompt: "stdin",
  env: ["PI_CODING_AGENT_DIR", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"],
  settings: () => ({ PI_TELEMETRY: "0" }),
  read: readPi,
  resumes: true,
  version: ["--version"],
  signIn: { files: [".pi/agent/auth.json", ".pi/agent/models.json"], env: ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"] },
  timeoutMs: HOUR_MS,
  drainMs: 5000,
};

const copilot: Row = {
  id: "copilot",
  program: "copilot",
  checked: { name: "@github/copilot", version: "1.0.102" },
  arguments: (start) => [
    ...["--output-format", "json", "--usage-output-file", `${start.folder}/${USAGE_FILE}`],
    ...(start.resume ? [`--resume=${start.sessionId}`] : ["--session-id", start.sessionId]),
    ...(start.access === "write" ? ["--allow-all-tools"] : ["--allow-tool", "kxm", "--deny-tool", "write", "--deny-tool", "shell"]),
    ...model("--model", start),
  ],
  prompt: "stdin",
  env: [
    ...["GH_TOKEN", "GITHUB_TOKEN", "COPILOT_GITHUB_TOKEN", "COPILOT_PROVIDER_BASE_URL", "COPILOT_PROVIDER_API_KEY", "COPILOT_PROVIDER_TYPE"],
    ...["COPILOT_PROVIDER_WIRE_API", "COPILOT_MODEL", "COPILOT_OFFLINE"],
  ],
  read: readCopilot,
  resumes: true,
  version: ["--version"],
  signIn: { files: [".copilot/config.json"], env: ["GH_TOKEN", "GITHUB_TOKEN", "COPILOT_GITHUB_TOKEN", "COPILOT_PROVIDER_API_KEY"] },
  timeoutMs: HOUR_MS,
  drainMs: 5000,
};

const cursor: Row = {
  id: "cursor-agent",
  program: "cursor-agent",
  // Not on npm: the flags are those of its documentation, not of a program that was run.
  arguments: (start) => [
    "-p",
    "--output-format",
    "stream-json",
    ...(start.access === "write" ? ["--force"] : []),
    ...resume(start),
    ...model("--model", start),
  ],
  prompt: "stdin",
  env: ["CURSOR_API_KEY"],
  read: readClaude,
  resumes: true,
  version: ["--version"],
  signIn: { files: [], env: ["CURSOR_API_KEY"] },
  timeoutMs: HOUR_MS,
  drainMs: 5000,
};

const qwen: Row = {
  id: "qwen",
  program: "qwen",
  checked: { name: "@qwen-code/qwen-code", version: "0.24.4" },
  arguments: (start) => [
    ...["-o", "stream-json", "--approval-mode", start.access === "write" ? "yolo" : "default"],
    ...(start.access === "write" ? [] : ["--exclude-tools", "run_shell_command,write_file,edit,notebook_edit"]),
    ...(start.resume ? ["--resume", start.sessionId] : ["--session-id", start.sessionId]),
    ...model("-m", start),
  ],
  prompt: "stdin",
  env: ["OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "DASHSCOPE_API_KEY"],
  read: readClaude,
  resumes: true,
  version: ["--version"],
  signIn: { files: [".qwen/oauth_creds.json"], env: ["OPENAI_API_KEY", "DASHSCOPE_API_KEY"] },
  timeoutMs: HOUR_MS,
  drainMs: 5000,
};

const command: Row = {
  id: "command",
  arguments: (start) => start.command!.slice(1),
  prompt: "stdin",
  env: [],
  read: readPlain,
  resumes: false,
  signIn: { files: [], env: [] },
  timeoutMs: HOUR_MS,
  drainMs: 2000,
};

/** Runs no program: echo.ts answers. */
const echo: Row = {
  id: "echo",
  arguments: () => [],
  prompt: "stdin",
  env: [],
  read: readPlain,
  resumes: false,
  signIn: { files: [], env: [] },
  timeoutMs: 60_000,
  drainMs: 0,
};

/** Every harness, by id. */
export const HARNESS_TABLE: Record<HarnessId, Row> = { claude, codex, gemini, opencode, pi, copilot, "cursor-agent": cursor, qwen, command, echo };

/** The program and arguments of one start. @param resolve finds a program's absolute path on PATH */
export function commandLine(row: Row, start: Start, prompt: string, resolve: (program: string) => string | undefined): string[] | undefined {
  const program = row.program ?? start.command?.[0];
  const path = program === undefined ? undefined : resolve(program);
  return path === undefined ? undefined : [path, ...row.arguments(start, prompt)];
}
