// The hub's settings from the environment (described in protocol/variables.ts). All problems are found at once, each with the variable's name; an
// invalid setting refuses the start.
import { isAbsolute, join, resolve } from "node:path";
import { defaultSettings, type HubSettings } from "../hub/settings.ts";
import { sha256 } from "../protocol/canonical.ts";
import { CommandFailed } from "./output.ts";
import { ownName } from "./own-name.ts";
import { type DefinitionSource, definitionSource } from "./workflow-definitions.ts";

/** Everything a hub process is started with. */
export interface ServeSettings {
  host: string;
  /** 0 = any free port. */
  port: number;
  /** File of the SQLite store, or `:memory:` for a private one that is gone at the end. */
  dataPath: string;
  /** Address of a PostgreSQL database; replaces dataPath. */
  databaseUrl: string | undefined;
  workspaceDir: string;
  stateDir: string;
  logsDir: string;
  assetsDir: string;
  configDir: string;
  logPath: string;
  /** Whether /stories is served: a page of all components of the dashboard. */
  stories: boolean;
  /** Where workflow definitions come from, and the environment their secrets are named in. */
  definitions: DefinitionSource | undefined;
  env: Env;
  hub: HubSettings;
  /** What is allowed and yet dangerous, in sentences for whoever starts the hub. */
  warnings: string[];
}

type Env = Record<string, string | undefined>;
type Problem = { name: string; why: string };
/** A token that people make up is guessed sooner than it is found; the ones that the hub makes have 43 characters. */
const TOKEN_CHARS_MIN = 16;

const LOOPBACK = /^(localhost|::1|127(\.\d{1,3}){3})$/i;
/** Whether a hub that listens on this name is reached from this machine only. */
export const isLoopback = (host: string): boolean => LOOPBACK.test(host);

/**
 * Reads the hub's settings.
 * @param cwd folder that relative paths start from
 * @throws CommandFailed that lists every invalid variable
 */
export function readSettings(env: Env, cwd: string): ServeSettings {
  const problems: Problem[] = [];
  const text = (name: string, fallback: string) => env[name]?.trim() || fallback;
  const integer = (name: string, fallback: number, min: number, max = Number.MAX_SAFE_INTEGER) => {
    const given = env[name]?.trim();
    if (!given) return fallback;
    const value = /^\d{1,16}$/.test(given) ? Number(given) : Number.NaN;
    if (value >= min && value <= max) return value;
    problems.push({ name, why: `must be a whole number ${max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`}` });
    return fallback;
  };
  const path = (name: string, fallback: string) => resolve(cwd, text(name, fallback));

  const host = readHost(env, problems);
  const adminToken = readAdminToken(env, host, problems);
  const { hashes: projectTokenHashes, short } = readProjectTokens(env, problems);
  const warnings: string[] = [];
  checkExposure(env, short, warnings);
  const workspaceDir = path("KXM_WORKSPACE_DIR", ".kxm");
  const inWorkspace = (name: string, folder: string) => path(name, join(workspaceDir, folder));
  const stateDir = inWorkspace("KXM_STATE_DIR", "state");
  const logsDir = inWorkspace("KXM_LOGS_DIR", "logs");
  const dataPath = text("KXM_DATA_PATH", join(stateDir, "kxm.db"));
  const publicUrl = readPublicUrl(env, problems);
  const settings: ServeSettings = {
    host,
    port: integer("KXM_PORT", 7331, 0, 65_535),
    dataPath: dataPath === ":memory:" || isAbsolute(dataPath) ? dataPath : resolve(cwd, dataPath),
    databaseUrl: readDatabaseUrl(env, problems),
    workspaceDir,
    stateDir,
    logsDir,
    assetsDir: inWorkspace("KXM_ASSETS_DIR", "assets"),
    configDir: inWorkspace("KXM_CONFIG_DIR", "config"),
    stories: env["KXM_STORIES"]?.trim() === "1",
    logPath: path("KXM_LOG_PATH", join(logsDir, "kxm-hub.jsonl")),
    definitions: definitionSource(env, cwd),
    env,
    warnings,
    hub: {
      ...defaultSettings(),
      host,
      adminTokenHash: adminToken === undefined ? undefined : sha256(adminToken),
      projectTokenHashes,
      loopback: isLoopback(host),
      publicUrl,
      durable: dataPath !== ":memory:" || Boolean(env["KXM_DATABASE_URL"]?.trim()),
      messageTtlMs: integer("KXM_MESSAGE_TTL_MS", defaultSettings().messageTtlMs, 1_000),
      messageRetentionMs: integer("KXM_MESSAGE_RETENTION_MS", defaultSettings().messageRetentionMs, 1_000),
      agentMailNames: readAliases(env, problems),
      commandName: ownName(cwd),
      rateLimit: {
        max: integer("KXM_RATE_LIMIT_MAX", defaultSettings().rateLimit!.max, 1),
        windowMs: integer("KXM_RATE_LIMIT_WINDOW_MS", defaultSettings().rateLimit!.windowMs, 100),
      },
    },
  };
  if (problems.length > 0) throw refusal(problems);
  return settings;
}

function refusal(problems: Problem[]): CommandFailed {
  const lines = problems.map(({ name, why }) => `${name} ${why}`);
  const message =
    lines.length === 1
      ? `the hub does not start: ${lines[0]}`
      : `the hub does not start, ${lines.length} settings are wrong:\n       ${lines.join("\n       ")}`;
  return new CommandFailed(message, "`kxm hub start --help` names the settings; nothing was changed.");
}

function readHost(env: Env, problems: Problem[]): string {
  const host = env["KXM_HOST"]?.trim() || "127.0.0.1";
  if (host.length <= 253 && /^[A-Za-z0-9._:%-]+$/.test(host)) return host;
  problems.push({ name: "KXM_HOST", why: "must be a host name or an IP address, without scheme, port or brackets" });
  return "127.0.0.1";
}

function readAdminToken(env: Env, host: string, problems: Problem[]): string | undefined {
  const name = "KXM_AUTH_TOKEN";
  const token = env[name]?.trim();
  if (!token) {
    if (!isLoopback(host)) problems.push({ name, why: `is required because KXM_HOST (${host}) is not this machine alone` });
    return undefined;
  }
  if (/[\s,]/.test(token) || token.length > 1_024) problems.push({ name, why: "must be at most 1024 characters without spaces or commas" });
  return token;
}

/** Says which tokens are short, and of a hub that others reach without any. Not refused: a hub that starts today must start with the next version. */
function checkExposure(env: Env, short: string[], warnings: string[]): void {
  const [token, publicUrl] = [env["KXM_AUTH_TOKEN"]?.trim() ?? "", env["KXM_PUBLIC_URL"]?.trim()];
  if (publicUrl && token === "")
    warnings.push("KXM_PUBLIC_URL is set and KXM_AUTH_TOKEN is not: whoever reaches that address may register agents and read their messages");
  const guessed = `which can be guessed: use at least ${TOKEN_CHARS_MIN}, such as those of \`openssl rand -hex 24\``;
  if (token !== "" && token.length < TOKEN_CHARS_MIN)
    warnings.push(`KXM_AUTH_TOKEN has ${token.length} ${token.length === 1 ? "character" : "characters"}, ${guessed}`);
  if (short.length > 0) {
    const whose = short.map((project) => JSON.stringify(project)).join(", ");
    warnings.push(`KXM_PROJECT_TOKENS gives ${whose} a token of less than ${TOKEN_CHARS_MIN} characters, ${guessed}`);
  }
}

/** Project → SHA-256 of its token, and the projects whose token is short. */
function readProjectTokens(env: Env, problems: Problem[]): { hashes: Map<string, string>; short: string[] } {
  const name = "KXM_PROJECT_TOKENS";
  const hashes = new Map<string, string>();
  const short: string[] = [];
  const given = env[name]?.trim();
  if (!given) return { hashes, short };
  let value: unknown;
  try {
    value = JSON.parse(given);
  } catch {
    value = undefined;
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    problems.push({ name, why: "must be a JSON object of project names and tokens" });
    return { hashes, short };
  }
  for (const [project, token] of Object.entries(value)) {
    const trimmed = typeof token === "string" ? token.trim() : "";
    const key = project.trim();
    if (key === "" || key.length > 128) problems.push({ name, why: `names a project of ${key.length} characters; use 1 to 128` });
    else if (trimmed === "" || /[\s,]/.test(trimmed))
      problems.push({ name, why: `must give ${JSON.stringify(key)} a token without spaces or commas` });
    else {
      hashes.set(key, sha256(trimmed));
      if (trimmed.length < TOKEN_CHARS_MIN) short.push(key);
    }
  }
  return { hashes, short };
}

function readAliases(env: Env, problems: Problem[]): boolean {
  const given = env["KXM_MCP_ALIASES"]?.trim();
  if (given && given !== "agent-mail") problems.push({ name: "KXM_MCP_ALIASES", why: "is agent-mail or not set" });
  return given === "agent-mail";
}

function readDatabaseUrl(env: Env, problems: Problem[]): string | undefined {
  const given = env["KXM_DATABASE_URL"]?.trim();
  if (!given) return undefined;
  if (!/^postgres(ql)?:\/\/[^\s]+$/.test(given) || !URL.canParse(given))
    problems.push({ name: "KXM_DATABASE_URL", why: "must be an address such as postgres://user@host/database" });
  return given;
}

function readPublicUrl(env: Env, problems: Problem[]): string | undefined {
  const given = env["KXM_PUBLIC_URL"]?.trim();
  if (!given) return undefined;
  const url = URL.parse(given);
  if (url && /^https?:$/.test(url.protocol) && url.pathname === "/" && !url.search && !url.hash && !url.username) return url.origin;
  problems.push({ name: "KXM_PUBLIC_URL", why: "must be an address without a path, such as https://kxm.example.com" });
  return undefined;
}
