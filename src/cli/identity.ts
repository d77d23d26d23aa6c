// Who a terminal is at a hub: one agent per hub, project and name, whose key is kept in a file of this user, so that commands are one agent over time.
import { createHash } from "node:crypto";
import { readFileSync, rmSync } from "node:fs";
import { homedir, hostname, userInfo } from "node:os";
import { join } from "node:path";
import { type Answered, ask, type Exchange, HubRefusal, open } from "../client/http.ts";
import { stateRoot } from "../client/state-paths.ts";
import { type RegisterAnswer, VISIT_HEADER } from "../protocol/agents.ts";
import type { World } from "./output.ts";
import { privateFolder, writePrivate } from "./state-dir.ts";
import { asProject, type Target } from "./target.ts";

const PURPOSE = "A person at a terminal";
const SAME_KEY_TRIES = 3;
const WAIT_SECONDS_MAX = 5;

interface Kept {
  url: string;
  project: string;
  name: string;
  id: string;
  key: string;
}

/** A terminal as an agent. */
export interface Terminal {
  id: string;
  name: string;
  project: string;
  /** One request as this agent. A hub that forgot it gets it registered again, once; a busy store is asked again with the same body. */
  ask<T = any>(method: "GET" | "POST" | "DELETE", path: string, exchange?: Exchange): Promise<Answered<T>>;
  /** The same without reading the body, by somebody who stays: its silence afterwards is loss, not the end of a command. */
  open(path: string, exchange?: Exchange): Promise<Response>;
}

/** The folder where this user's terminals keep their keys. @throws RuntimeRefusal when KXM_STATE_HOME is not absolute */
const peersFolder = (env: World["env"]): string => join(stateRoot(env, process.platform, env["HOME"] ?? homedir()), "peers");

/** The name a terminal speaks under without --as: KXM_AGENT_NAME, else the user's. */
export const defaultName = (env: World["env"]): string => env["KXM_AGENT_NAME"]?.trim() || userName();

function userName(): string {
  const { username } = userInfo();
  return username === "" || username === "unknown" ? "terminal" : username;
}

/**
 * The agent of this name, registered if it is not yet.
 * @throws HubRefusal duplicate_agent_name when another holder of the name is online, CommandFailed, HubUnreachable
 */
export async function asAgent(world: World, target: Target, name: string): Promise<Terminal> {
  const path = keptPath(world.env, target, name);
  const to = asProject(target);
  let kept = readKept(path) ?? (await register());

  async function register(): Promise<Kept> {
    const body = { name, project: target.project, purpose: PURPOSE, host: hostname().slice(0, 64) };
    const answer = await ask<RegisterAnswer>(to, "POST", "/v1/agents/register", { body, signal: world.stopping });
    const { agent, agentKey } = answer.body;
    const fresh = { url: target.url, project: target.project, name: agent.name, id: agent.id, key: agentKey };
    privateFolder(join(path, ".."));
    writePrivate(path, `${JSON.stringify(fresh)}\n`);
    return fresh;
  }

  const asMe = (exchange: Exchange, visits: boolean): Exchange => ({
    signal: world.stopping,
    ...exchange,
    headers: { ...exchange.headers, "x-kxm-agent-id": kept.id, "x-kxm-agent-key": kept.key, ...(visits && { [VISIT_HEADER]: "1" }) },
  });
  /** Runs a request as this agent; once more after registering again when the hub does not know it any more. */
  async function known<T>(send: () => Promise<T>): Promise<T> {
    try {
      return await send();
    } catch (error) {
      if (!(error instanceof HubRefusal && error.code === "invalid_agent_identity")) throw error;
      rmSync(path, { force: true });
      kept = await register();
      return send();
    }
  }

  return {
    get id() {
      return kept.id;
    },
    name,
    project: target.project,
    ask: (method, at, exchange = {}) => known(() => persist(() => ask(to, method, at.replace("{me}", kept.id), asMe(exchange, true)), world)),
    open: (at, exchange = {}) => known(() => open(to, "GET", at.replace("{me}", kept.id), asMe(exchange, false))),
  };
}

/** Asks again while the hub cannot say whether it stored the request: it has the same key, so it counts once. */
async function persist<T>(send: () => Promise<T>, world: World): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await send();
    } catch (error) {
      if (!(error instanceof HubRefusal && error.code === "storage_unavailable" && tries < SAME_KEY_TRIES) || world.stopping.aborted) throw error;
      await Bun.sleep(1_000 * Math.min(error.retryAfterSeconds ?? 1, WAIT_SECONDS_MAX));
    }
  }
}

function keptPath(env: World["env"], { url, project }: Target, name: string): string {
  const key = createHash("sha256")
    .update(JSON.stringify([url, project, name.toLowerCase()]))
    .digest("hex");
  return join(peersFolder(env), `${key.slice(0, 24)}.json`);
}

function readKept(path: string): Kept | undefined {
  try {
    const kept = JSON.parse(readFileSync(path, "utf8")) as Kept;
    return typeof kept.id === "string" && typeof kept.key === "string" ? kept : undefined;
  } catch {
    return undefined;
  }
}
