// Where a Runtime keeps its state and what the files are called, for the Runtime itself and for the command line that looks for it. Touches no file.
import { homedir, platform } from "node:os";
import { isAbsolute, join } from "node:path";
import { RuntimeRefusal } from "../protocol/runtime-errors.ts";

/**
 * The state root of this user: KXM_STATE_HOME, else the system's place for state.
 * @throws RuntimeRefusal state_root_unsafe when KXM_STATE_HOME is not an absolute path
 */
export function stateRoot(env: Record<string, string | undefined> = process.env, system: NodeJS.Platform = platform(), home = homedir()): string {
  const given = env["KXM_STATE_HOME"];
  if (given) {
    if (!isAbsolute(given)) throw new RuntimeRefusal("state_root_unsafe", `KXM_STATE_HOME must be an absolute path, not ${given}`);
    return given;
  }
  if (system === "darwin") return join(home, "Library", "Application Support", "KXM");
  if (system === "win32") return join(env["LOCALAPPDATA"] ?? join(home, "AppData", "Local"), "KXM");
  const xdg = env["XDG_STATE_HOME"];
  return join(xdg && isAbsolute(xdg) ? xdg : join(home, ".local", "state"), "kxm");
}

/** Every path below a state root. */
export type StatePaths = ReturnType<typeof statePaths>;

/** Names the files of a state root. Makes nothing. */
export function statePaths(root: string) {
  const runtime = join(root, "runtime");
  return {
    root,
    hubEnv: join(root, "hub-env.json"),
    hubBinding: join(root, "hub-binding.json"),
    runtime,
    registry: join(runtime, "registry.db"),
    token: join(runtime, "supervisor.token"),
    projects: join(runtime, "projects"),
    logs: join(runtime, "logs"),
    log: join(runtime, "logs", "kxm-runtime.jsonl"),
    /** The folder and databases of one project, by its key. */
    project: (key: string) => {
      const folder = join(runtime, "projects", key);
      return { folder, events: join(folder, "run-events.db"), prompts: join(folder, "prompts.db") };
    },
  };
}
