// Which hub this machine's Runtime reports to, as far as a command can tell: the hub of the workspace around it, or the one it was told.
import { resolve } from "node:path";
import type { LocalRuntime } from "../client/local-runtime.ts";
import type { World } from "./output.ts";
import { findStateDir, isAlive, readNote } from "./state-dir.ts";
import { findTarget, type Target } from "./target.ts";

/** A hub that is named by the environment or runs in this workspace; undefined when there is only the default address to guess. */
export function knownHub(world: World): Target | undefined {
  const { env, cwd } = world;
  if (env["KXM_URL"]) return findTarget(world, {});
  const stateDir = env["KXM_STATE_DIR"]
    ? resolve(cwd, env["KXM_STATE_DIR"])
    : findStateDir(env["KXM_WORKSPACE_DIR"] ? resolve(cwd, env["KXM_WORKSPACE_DIR"], "..") : cwd);
  const note = stateDir === undefined ? undefined : readNote(stateDir);
  return note && isAlive(note.pid) ? findTarget(world, {}) : undefined;
}

/**
 * The hub around this command when the Runtime reports to another one: what it does is not seen where one would look for it.
 * @param reportsTo the address the Runtime reports to
 */
export function hubInstead(reportsTo: string, world: World): string | undefined {
  const hub = knownHub(world);
  return hub && addressOf(hub.url) !== addressOf(reportsTo) ? hub.url : undefined;
}

/** An address without the many names of this machine. */
const addressOf = (text: string): string => {
  const { protocol, hostname, port } = new URL(text);
  return `${protocol}//${/^(?:localhost|127\.0\.0\.1|\[::1\])$/.test(hostname) ? "loopback" : hostname}:${port}`;
};

/** Binds a Runtime that reports to no hub yet to the one around this command. One that is bound stays as it is. */
export async function bindIfFree(runtime: LocalRuntime, world: World): Promise<void> {
  const hub = knownHub(world);
  if (!hub) return;
  const { sync } = await runtime.status();
  if (sync.hub === undefined && sync.problem === undefined) await runtime.bind({ url: hub.url, project: hub.project, token: hub.agentToken });
}
