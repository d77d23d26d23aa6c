// Which hub a command talks to, for which project, and what it shows there. Found in this order: option, environment, the workspace around.
import { basename, dirname, resolve } from "node:path";
import type { Command } from "commander";
import type { Connection } from "../client/http.ts";
import { UsageError, type World } from "./output.ts";
import { findStateDir, isOurs, readAdminToken, readNote } from "./state-dir.ts";

const URL_DEFAULT = "http://127.0.0.1:7331";

/** Options that every command which talks to a hub has. */
export interface TargetOptions {
  hub?: string;
  project?: string;
}

/** Adds them. */
export const withTarget = (command: Command): Command =>
  command
    .option("--hub <url>", "address of the hub (KXM_URL; else the hub of this workspace, else KXM_PORT on this machine)")
    .option("--project <name>", "project (KXM_PROJECT; else the name of the workspace's folder)");

/** The hub, the project and the tokens of a command. */
export interface Target {
  url: string;
  project: string;
  /** Shown by agents: only a token that somebody set, because an open hub asks agents for none. */
  agentToken: string | undefined;
  /** Shown by people: a token that somebody set, else this machine's own. */
  operatorToken: string | undefined;
}

/** @throws UsageError when an address is not one */
export function findTarget(world: World, options: TargetOptions): Target {
  const { env, cwd } = world;
  const stateDir = env["KXM_STATE_DIR"]
    ? resolve(cwd, env["KXM_STATE_DIR"])
    : findStateDir(env["KXM_WORKSPACE_DIR"] ? resolve(cwd, env["KXM_WORKSPACE_DIR"], "..") : cwd);
  const note = stateDir === undefined ? undefined : readNote(stateDir);
  const own = note?.url ?? usualUrl(env);
  const url = namedHub(world, options) ?? own;
  const set = env["KXM_TOKEN"]?.trim() || env["KXM_AUTH_TOKEN"]?.trim() || undefined;
  // This machine's token goes to this machine's hub alone: never to an address from elsewhere, nor to whoever took the port of a hub that ended.
  const kept = stateDir !== undefined && note !== undefined && url === note.url && isOurs(note.pid) ? readAdminToken(stateDir) : undefined;
  const project = options.project?.trim() || env["KXM_PROJECT"]?.trim() || nameOf(stateDir, cwd);
  return { url, project, agentToken: set, operatorToken: set ?? kept };
}

/** The hub that was named by its address, or undefined: then the one of the workspace is meant. @throws UsageError when it is no address */
export const namedHub = ({ env }: Pick<World, "env">, { hub }: { hub?: string } = {}): string | undefined => {
  const given = hub ?? (env["KXM_URL"]?.trim() || undefined);
  return given === undefined ? undefined : readUrl(given);
};

/** Where a hub of this machine is when nothing says otherwise: at the port that KXM_PORT gives it. */
const usualUrl = (env: World["env"]): string => {
  const port = env["KXM_PORT"]?.trim() ?? "";
  return /^[1-9]\d{0,4}$/.test(port) && Number(port) <= 65_535 ? `http://127.0.0.1:${port}` : URL_DEFAULT;
};

/** The project's name without being told: that of the folder which holds the workspace. */
const nameOf = (stateDir: string | undefined, cwd: string): string =>
  basename(stateDir === undefined ? cwd : dirname(dirname(stateDir))) || "default";

function readUrl(text: string): string {
  const url = URL.parse(text.includes("://") ? text : `http://${text}`);
  if (!url || !/^https?:$/.test(url.protocol) || url.username !== "" || url.pathname !== "/")
    throw new UsageError(`${JSON.stringify(text)} is not the address of a hub, such as ${URL_DEFAULT}`);
  return url.origin;
}

/** For routes of operators. */
export const asOperator = ({ url, operatorToken }: Pick<Target, "url" | "operatorToken">): Connection => ({ url, token: operatorToken });
/** For routes of agents; their id and key go into headers. */
export const asProject = ({ url, agentToken }: Target): Connection => ({ url, token: agentToken });

/** Says in the audit where a change came from. */
export const CLI_HEADERS = { "x-kxm-client": "cli" };
