// What each coding agent's MCP configuration looks like: where its files are, under which key servers stand, and how an entry is written.
// Facts per program; connect.ts does the reading and writing.
import { join } from "node:path";

/** How a program is to reach the hub. */
export type Way =
  | { kind: "stdio"; command: string; args: string[]; env: Record<string, string> }
  | { kind: "http"; url: string; headers: Record<string, string> };
export type Scope = "project" | "user";

export interface ConnectProgram {
  name: string;
  title: string;
  /** Programs whose presence on PATH says that it is installed. */
  binaries: readonly string[];
  format: "json" | "toml";
  /** Files by scope; a program without a scope has none. */
  files: Partial<Record<Scope, (folder: string, home: string) => string>>;
  /** Keys that lead to the servers. */
  key: readonly string[];
  /** The entry. @param trusted whether the program may call the tools without asking */
  entry(way: Way, trusted: boolean): Record<string, unknown>;
  /** What a person still has to do, if anything. */
  caution?: string;
}

const below =
  (...parts: string[]) =>
  (base: string) =>
    join(base, ...parts);
const project =
  (...parts: string[]) =>
  (folder: string) =>
    below(...parts)(folder);
const user =
  (...parts: string[]) =>
  (_: string, home: string) =>
    below(...parts)(home);
const plain = (way: Way) => (way.kind === "stdio" ? { command: way.command, args: way.args, env: way.env } : { url: way.url, headers: way.headers });

/** In the order in which they are listed. */
export const PROGRAMS: readonly ConnectProgram[] = [
  {
    name: "claude",
    title: "Claude Code",
    binaries: ["claude"],
    format: "json",
    key: ["mcpServers"],
    files: { project: project(".mcp.json"), user: user(".claude.json") },
    entry: (way) => ({ type: way.kind, ...plain(way), alwaysLoad: true }),
    caution: "Headless runs need --allowedTools mcp__kxm.",
  },
  {
    name: "codex",
    title: "Codex",
    binaries: ["codex"],
    format: "toml",
    key: ["mcp_servers"],
    files: { user: user(".codex", "config.toml"), project: project(".codex", "config.toml") },
    entry: (way, trusted) => ({
      ...(way.kind === "stdio" ? { command: way.command, args: way.args, env: way.env } : { url: way.url, http_headers: way.headers }),
      ...(trusted && { default_tools_approval_mode: "approve" }),
    }),
    caution: "Without --trust, codex exec refuses tools that change something.",
  },
  {
    name: "gemini",
    title: "Gemini CLI",
    binaries: ["gemini"],
    format: "json",
    key: ["mcpServers"],
    files: { project: project(".gemini", "settings.json"), user: user(".gemini", "settings.json") },
    entry: (way, trusted) => ({
      ...(way.kind === "stdio" ? plain(way) : { httpUrl: way.url, headers: way.headers }),
      ...(trusted && { trust: true }),
    }),
    caution: "Without --trust, headless runs are not offered the tools.",
  },
  {
    name: "opencode",
    title: "OpenCode",
    binaries: ["opencode"],
    format: "json",
    key: ["mcp"],
    files: { project: project("opencode.json"), user: user(".config", "opencode", "opencode.jsonc") },
    entry: (way) =>
      way.kind === "stdio"
        ? { type: "local", command: [way.command, ...way.args], environment: way.env, enabled: true }
        : { type: "remote", url: way.url, headers: way.headers, oauth: false, enabled: true },
  },
  {
    name: "pi",
    title: "Pi",
    binaries: ["pi"],
    format: "json",
    key: ["mcpServers"],
    files: { project: project(".pi", "mcp.json"), user: user(".pi", "agent", "mcp.json") },
    entry: (way) => ({ ...plain(way), exposure: "direct" }),
    caution: "Pi reads project files only when it trusts the folder (-a).",
  },
  {
    name: "cursor",
    title: "Cursor",
    binaries: ["cursor", "cursor-agent"],
    format: "json",
    key: ["mcpServers"],
    files: { project: project(".cursor", "mcp.json"), user: user(".cursor", "mcp.json") },
    entry: plain,
  },
  {
    name: "vscode",
    title: "VS Code",
    binaries: ["code"],
    format: "json",
    key: ["servers"],
    files: { project: project(".vscode", "mcp.json"), user: user(".config", "Code", "User", "mcp.json") },
    entry: (way) => ({ type: way.kind, ...plain(way) }),
  },
  {
    name: "copilot",
    title: "Copilot CLI",
    binaries: ["copilot"],
    format: "json",
    key: ["mcpServers"],
    files: { user: user(".copilot", "mcp-config.json"), project: project(".github", "mcp.json") },
    entry: (way) => ({ type: way.kind === "stdio" ? "local" : "http", ...plain(way), tools: ["*"] }),
    caution: "Headless runs need --allow-tool kxm.",
  },
  {
    name: "qwen",
    title: "Qwen Code",
    binaries: ["qwen"],
    format: "json",
    key: ["mcpServers"],
    files: { project: project(".qwen", "settings.json"), user: user(".qwen", "settings.json") },
    entry: (way, trusted) => ({
      ...(way.kind === "stdio" ? plain(way) : { httpUrl: way.url, headers: way.headers }),
      ...(trusted && { trust: true }),
    }),
    caution: "Without --trust, headless runs deny the tools.",
  },
  {
    name: "zed",
    title: "Zed",
    binaries: ["zed", "zeditor"],
    format: "json",
    key: ["context_servers"],
    files: { project: project(".zed", "settings.json"), user: user(".config", "zed", "settings.json") },
    entry: (way) => ({ source: "custom", ...plain(way) }),
  },
];

/** The name under which every program knows the hub. */
export const SERVER = "kxm";
