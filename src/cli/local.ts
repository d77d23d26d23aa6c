// How a command reaches this machine's Runtime and the project of the folder it is called in. Starts the Runtime when it does not run.
import { existsSync, mkdirSync, realpathSync } from "node:fs";
import { userInfo } from "node:os";
import { basename, dirname, join } from "node:path";
import { findRuntime, type LocalRuntime } from "../client/local-runtime.ts";
import { statePaths, stateRoot } from "../client/state-paths.ts";
import { RuntimeRefusal } from "../protocol/runtime-errors.ts";
import { bindIfFree } from "./binding.ts";
import { startDetached } from "./detached.ts";
import { CommandFailed, EXIT, type World } from "./output.ts";
import { findTarget } from "./target.ts";

const START_WAIT_MS = 15_000;
const LOOK_AGAIN_MS = 25;

/** Who this command acts for, in the record of what it does. */
export const actor = (world: World): string => `cli:${world.env["KXM_ACTOR"] ?? safeUser()}`;

function safeUser(): string {
  try {
    return userInfo().username;
  } catch {
    return "unknown";
  }
}

/** A fresh id for one command: sent again it changes nothing more. */
export const commandId = (): string => `cmd_${Bun.randomUUIDv7("hex").replaceAll("-", "")}`;

/** This machine's Runtime. @throws RuntimeRefusal runtime_not_running */
export const connect = (world: World): Promise<LocalRuntime> => findRuntime(stateRoot(world.env));

/** The same, started in the background when it does not run yet. @throws CommandFailed when it does not come up */
export async function connectOrStart(world: World): Promise<LocalRuntime> {
  try {
    return await connect(world);
  } catch (error) {
    if (!(error instanceof RuntimeRefusal) || error.code !== "runtime_not_running") throw error;
  }
  return startRuntime(world);
}

/** How `kxm-runtime` is started: beside a compiled `kxm`, else from its source. */
export function runtimeCommand(): string[] {
  const compiled = Bun.main.startsWith("/$bunfs/") || Bun.main.includes("~BUN");
  if (!compiled) return [process.execPath, "--no-env-file", join(import.meta.dir, "../runtime/main.ts")];
  const beside = join(dirname(realpathSync(process.execPath)), process.platform === "win32" ? "kxm-runtime.exe" : "kxm-runtime");
  const found = existsSync(beside) ? beside : Bun.which("kxm-runtime");
  if (!found) throw new CommandFailed("kxm-runtime was not found beside kxm or on PATH", "Put both programs into one folder.");
  return [found];
}

/** Starts the Runtime in the background and answers once it serves. */
export async function startRuntime(world: World): Promise<LocalRuntime> {
  const paths = statePaths(stateRoot(world.env));
  mkdirSync(paths.root, { recursive: true, mode: 0o700 });
  const said = join(paths.root, "kxm-runtime.out");
  // A Runtime whose hub is named by the environment reports to the project that this command means.
  const env = { ...world.env, ...(world.env["KXM_URL"] && { KXM_PROJECT: findTarget(world, {}).project }) };
  const child = startDetached([...runtimeCommand(), "run", "--json"], { cwd: paths.root, env, saidIn: said });
  const deadline = performance.now() + START_WAIT_MS;
  while (performance.now() < deadline) {
    try {
      return await connect(world);
    } catch (error) {
      if (!(error instanceof RuntimeRefusal)) throw error;
    }
    if (child.hasEnded()) {
      const words = (await Bun.file(said).text()).trim();
      // Another command may have started one at the same moment.
      const other = await connect(world).catch(() => undefined);
      if (other) return other;
      throw new CommandFailed(words || "the Runtime ended at once", `Its output is in ${said}.`);
    }
    await Bun.sleep(LOOK_AGAIN_MS);
  }
  throw new CommandFailed("the Runtime did not answer in time", `Its output is in ${said}.`, EXIT.timedOut);
}

/** The project of a folder: the nearest one upwards that has .kxm/project.yaml. @throws CommandFailed */
export function projectRoot(world: World): string {
  for (let folder = world.cwd; ; folder = dirname(folder)) {
    if (existsSync(join(folder, ".kxm", "project.yaml"))) return realpathSync(folder);
    if (dirname(folder) === folder)
      throw new CommandFailed(`no KXM project in ${basename(world.cwd) || world.cwd} or above it`, "`kxm init` makes one in a Git repository.");
  }
}

/** A project that this machine's Runtime has open. */
export type LocalProject = { runtime: LocalRuntime; key: string; root: string; name: string };
type Checked = {
  problems: { file: string; line: number; column: number; code: string; message: string }[];
  project?: { id: string; name: string; hubProject?: string };
};

/** Thrown with every problem of the project's files. */
export const problemsFailed = (problems: Checked["problems"]): CommandFailed =>
  new CommandFailed(
    `${problems.length === 1 ? "a problem" : `${problems.length} problems`} in the project's files:\n${problems.map((one) => `  ${one.file}:${one.line}:${one.column}: ${one.code}: ${one.message}`).join("\n")}`,
    "Correct the files and run the command again.",
  );

/**
 * Opens the project of the current folder in the Runtime.
 * @param options.start start the Runtime when it does not run
 * @param options.check refuse a project whose files have problems; else only its identity must be readable
 */
export async function openProject(world: World, options: { start?: boolean; check?: boolean } = {}): Promise<LocalProject> {
  const root = projectRoot(world);
  const runtime = await (options.start ? connectOrStart(world) : connect(world));
  const { problems, project } = (await runtime.post("/v1/check", { root })) as Checked;
  if (!project || (options.check && problems.length > 0)) throw problemsFailed(problems);
  await bindIfFree(runtime, world);
  const { id: projectId, name } = project;
  const hubProject = findTarget(world, { project: world.env["KXM_PROJECT"]?.trim() || project.hubProject }).project;
  const { projectKey } = await runtime.register({ root, projectId, name, hubProject });
  return { runtime, key: projectKey, root, name };
}
