// `kxm connect`: writes the hub into a coding agent's own MCP configuration, and takes it out again.
import {
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { dirname, relative } from "node:path";
import type { Command } from "commander";
import { ask } from "../client/http.ts";
import { nearest } from "../protocol/nearest.ts";
import { define } from "./command.ts";
import { editJson, editToml, isEmptyJson, readJson, readToml, saysTheSame, tomlTable } from "./config-edit.ts";
import { type ConnectProgram, PROGRAMS, type Scope, SERVER, type Way } from "./connect-programs.ts";
import { CommandFailed, type Output, UsageError, type World } from "./output.ts";
import { ownScript } from "./own-name.ts";
import { findTarget, type TargetOptions, withTarget } from "./target.ts";

type ConnectOptions = TargetOptions & { as?: string; user?: boolean; http?: boolean; trust?: boolean; print?: boolean; remove?: boolean };

/** Adds `kxm connect`. */
export function addConnect(program: Command): void {
  withTarget(
    define<ConnectOptions>(program, {
      usage: "connect [program]",
      summary: "write the hub into a coding agent's MCP configuration",
      details: `Programs: ${PROGRAMS.map(({ name }) => name).join(", ")}. Without one: which are installed and connected.\nOther entries and comments stay; the file before the first change is kept beside it as .before-kxm.`,
      examples: [
        "kxm connect",
        "kxm connect claude",
        "kxm connect codex --as reviewer --trust",
        "kxm connect gemini --http --print",
        "kxm connect claude --remove",
      ],
      options: (command) =>
        command
          .option("--as <name>", "the agent's name at the hub (else the program's)")
          .option("--user", "for all folders of this user, not only this one")
          .option("--http", "the hub's address instead of a command")
          .option("--trust", "let the program call the tools without asking, where it can be told so")
          .option("--print", "show the entry and change nothing")
          .option("--remove", "take the entry out"),
      run: ({ args: [name], options, out, world }) => {
        if (name === undefined) {
          if (options.remove || options.print) throw new UsageError(`name the program: ${PROGRAMS.map((one) => one.name).join(", ")}`);
          return showAll(out, world);
        }
        const found = PROGRAMS.find((one) => one.name === name);
        if (!found) {
          const close = nearest(
            name,
            PROGRAMS.map((one) => one.name),
          );
          throw new UsageError(
            `${JSON.stringify(name)} is not a program that kxm connects${close ? `; did you mean ${close}?` : `: ${PROGRAMS.map((one) => one.name).join(", ")}`}`,
          );
        }
        return connectOne(found, options, out, world);
      },
    }),
  );
}

const HEALTH_MS = 1_000;
const home = (world: World) => world.env["HOME"] ?? homedir();

/** The file of a scope; the program's first scope when it does not have the wanted one. */
function fileOf(program: ConnectProgram, world: World, wanted: Scope): { scope: Scope; path: string } {
  const scope = program.files[wanted] ? wanted : (Object.keys(program.files)[0] as Scope);
  return { scope, path: program.files[scope]!(world.cwd, home(world)) };
}

async function connectOne(program: ConnectProgram, options: ConnectOptions, out: Output, world: World) {
  const { scope, path } = fileOf(program, world, options.user || isForAllFolders(program) ? "user" : "project");
  const entry = program.entry(wayOf(program, options, world), options.trust === true);
  if (options.print) {
    out.result({ path, scope, entry }, () => out.line(`# ${path}\n${entryText(program, entry)}`));
    return;
  }
  const before = read(path);
  const after = edited(program, before ?? "", options.remove ? undefined : entry, path);
  const changed = after !== (before ?? "") && !(options.remove && before === undefined);
  if (options.remove && changed) takeOut(program, path, after, world);
  else if (changed) write(path, after, before !== undefined, !hasEntry(program, before ?? ""));
  const { url, agentToken } = findTarget(world, options);
  const hub = options.remove ? undefined : { url, answers: await answers(url) };
  const shown = relative(world.cwd, path).startsWith("..") ? path : relative(world.cwd, path);
  const done = options.remove ? (changed ? "taken out of" : "was not in") : changed ? "connected in" : "was connected in";
  out.result({ program: program.name, path, scope, changed, connected: !options.remove, ...(hub && { hub }) }, () => {
    out.line(`${program.title} ${done} ${shown}`);
    if (!options.remove && program.caution) out.note(program.caution);
    if (hub && !hub.answers)
      out.note(
        `No hub answers at ${url} yet: start one there, or connect again with --hub or KXM_URL set to where yours is (kxm hub status says it).`,
      );
    if (!options.remove && agentToken !== undefined)
      out.note("This hub asks for a token: set KXM_TOKEN where the program runs. It is not written into the file.");
  });
}

/** Programs that read a folder's own file only when they trust the folder: their entry goes into the user's. */
export const isForAllFolders = ({ name }: ConnectProgram): boolean => name === "codex" || name === "copilot";

/** An entry as it stands in the program's file, with the keys that lead to it. */
export function entryText({ format, key }: ConnectProgram, entry: Record<string, unknown>): string {
  const place = [...key, SERVER];
  return format === "toml" ? tomlTable(place, entry).trimEnd() : JSON.stringify(nested(place, entry), null, 2);
}

const nested = (path: readonly string[], value: unknown): unknown => path.reduceRight((inner, name) => ({ [name]: inner }), value);

function edited(program: ConnectProgram, text: string, entry: Record<string, unknown> | undefined, path: string): string {
  const place = [...program.key, SERVER];
  if (program.format === "toml") {
    const same = entry !== undefined && readToml(text, place) === tomlTable(place, entry).trimEnd();
    return same ? text : editToml(text, place, entry);
  }
  const known = readJson(text, place);
  if (JSON.stringify(known) === JSON.stringify(entry)) return text;
  return editJson(text, place, entry, path);
}

/** Whether the hub stands in the file already: then what was there before the first entry is kept, or there was nothing. */
const hasEntry = ({ format, key }: ConnectProgram, text: string): boolean =>
  (format === "toml" ? readToml(text, [...key, SERVER]) : readJson(text, [...key, SERVER])) !== undefined;

/** How the program is to reach this hub: by starting `kxm mcp`, or by its address. No token is ever written. */
function wayOf(program: ConnectProgram, options: ConnectOptions, world: World): Way {
  const { url, project } = findTarget(world, options);
  const name = options.as?.trim() || world.env["KXM_AGENT_NAME"]?.trim() || program.name;
  if (options.http) return { kind: "http", url: `${url}/mcp`, headers: { "x-kxm-agent-name": encodeURIComponent(name), "x-kxm-project": project } };
  const script = ownScript();
  return { kind: "stdio", command: process.execPath, args: [...script, "mcp"], env: { KXM_URL: url, KXM_PROJECT: project, KXM_AGENT_NAME: name } };
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new CommandFailed(`${path} cannot be read: ${(error as Error).message}`);
  }
}

/** Whole or not at all, with the same rights as before. @param keep whether the version before the first entry stays beside it */
function write(path: string, text: string, existed: boolean, keep: boolean) {
  try {
    mkdirSync(dirname(path), { recursive: true });
    const backup = `${path}.before-kxm`;
    if (keep && existed && !existsSync(backup)) copyFileSync(path, backup, constants.COPYFILE_EXCL); // never through a link that lies there
    const mode = existed ? statSync(path).mode & 0o777 : 0o600;
    rmSync(`${path}.kxm-new`, { force: true });
    writeFileSync(`${path}.kxm-new`, text, { mode, flag: "wx" });
    chmodSync(`${path}.kxm-new`, mode);
    renameSync(`${path}.kxm-new`, path);
  } catch (error) {
    throw new CommandFailed(
      `${path} cannot be written: ${(error as Error).message}`,
      "Check its rights, or add the entry by hand: --print shows it.",
    );
  }
}

/** Whether a hub is there now. A warning, no condition: a program may be connected before its hub is started. */
async function answers(url: string): Promise<boolean> {
  try {
    await ask({ url }, "GET", "/health", { timeoutMs: HEALTH_MS });
    return true;
  } catch {
    return false;
  }
}

/** Writes what is left. A file that held nothing but the entry, and was not there before it, goes altogether, and its folder when that is empty then. */
function takeOut(program: ConnectProgram, path: string, left: string, world: World) {
  const backup = `${path}.before-kxm`;
  const isEmpty = program.format === "toml" ? left.trim() === "" : isEmptyJson(left, program.key);
  try {
    if (isEmpty && !existsSync(backup)) {
      rmSync(path);
      if (![world.cwd, home(world)].includes(dirname(path))) rmdirSync(dirname(path));
      return;
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOTEMPTY") return;
    throw new CommandFailed(`${path} cannot be removed: ${(error as Error).message}`, "Check its rights, or remove it by hand.");
  }
  const before = read(backup);
  const asBefore = before !== undefined && (program.format === "toml" ? before.trimEnd() === left.trimEnd() : saysTheSame(before, left));
  write(path, asBefore ? before : left, true, false);
  if (asBefore) rmSync(backup);
}

function showAll(out: Output, world: World) {
  const folders = (world.env["PATH"] ?? "").split(":").filter((folder) => folder !== "");
  const rows = PROGRAMS.map((program) => {
    const installed = program.binaries.some((binary) => folders.some((folder) => existsSync(`${folder}/${binary}`)));
    const connected = (Object.keys(program.files) as Scope[]).filter((scope) => {
      const text = read(fileOf(program, world, scope).path);
      const place = [...program.key, SERVER];
      return text !== undefined && (program.format === "toml" ? readToml(text, place) : readJson(text, place)) !== undefined;
    });
    return { program: program.name, title: program.title, installed, connected };
  });
  out.result({ programs: rows }, () =>
    out.table(
      rows,
      [
        { title: "program", value: ({ program }) => program },
        { title: "", value: ({ title }) => title },
        { title: "installed", value: ({ installed }) => (installed ? "yes" : "not found"), style: ({ installed }) => (installed ? "good" : "dim") },
        { title: "connected", value: ({ connected }) => (connected.length > 0 ? connected.join(", ") : "no") },
      ],
      "",
    ),
  );
}
