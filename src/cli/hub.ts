// `kxm hub`: start in the foreground or detached, stop, status.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { ask, askReady } from "../client/http.ts";
import { VARIABLES } from "../protocol/variables.ts";
import { VERSION } from "../protocol/version.ts";
import { define, duration, group, number, spell } from "./command.ts";
import { startDetached } from "./detached.ts";
import { makeLink } from "./open.ts";
import { CommandFailed, EXIT, type Output, type World } from "./output.ts";
import { ownName, ownScript } from "./own-name.ts";
import { readSettings, type ServeSettings } from "./settings.ts";
import { type HubNote, isAlive, privateFolder, readAdminToken, readNote, removeNote, writeNote } from "./state-dir.ts";
import { namedHub } from "./target.ts";

const START_WAIT_MS = 15_000;
const PROBE_MS = 2_000;
const LOOK_AGAIN_MS = 25;

type StartOptions = { host?: string; port?: number; detach?: boolean; quiet?: boolean };

/** Adds `kxm hub` and its commands. */
export function addHub(program: Command): void {
  const hub = group(program, "hub", "start, stop and look at the hub", "`kxm hub` alone starts it in the foreground; Ctrl-C stops it.");
  define<StartOptions>(hub, {
    usage: "start",
    summary: "start a hub here",
    details: `Settings come from the environment:\n${VARIABLES.filter((one) => one.of === "hub")
      .map((one) => `  ${one.name.padEnd(26)} ${one.default}`)
      .join("\n")}`,
    examples: ["kxm hub", "kxm hub start --detach", "KXM_PORT=0 kxm hub start"],
    isDefault: true,
    options: (command) =>
      command
        .option("--host <name>", "name or address to listen on (KXM_HOST)")
        .option("--port <number>", "port to listen on, 0 for any free one (KXM_PORT)", number(0, 65_535))
        .option("-q, --quiet", "print the address and nothing else")
        .option("-d, --detach", "start in the background and return once it answers"),
    run: ({ options, out, world }) => {
      const settings = readSettings(withOptions(world.env, options), world.cwd);
      return options.detach ? startInBackground(settings, options, out, world) : runHere(settings, options, out, world);
    },
  });
  define<{ timeout: number }>(hub, {
    usage: "stop",
    summary: "stop the hub of this workspace",
    examples: ["kxm hub stop"],
    options: (command) => command.option("--timeout <span>", "how long it may take", duration(100, 60_000), 10_000),
    run: ({ options, out, world }) => stopHub(readSettings(world.env, world.cwd), options.timeout, out),
  });
  define<{ hub?: string }>(hub, {
    usage: "status",
    summary: "say whether the hub of this workspace runs, and where",
    details: "With --hub or KXM_URL: whether the hub at that address answers, and whether it can write.",
    examples: ["kxm hub status", "kxm hub status --json", "kxm hub status --hub http://127.0.0.1:7331"],
    options: (command) => command.option("--hub <url>", "address of a hub elsewhere (KXM_URL)"),
    run: ({ options, out, world }) => {
      const elsewhere = namedHub(world, options);
      return elsewhere === undefined ? showStatus(readSettings(world.env, world.cwd), out) : showElsewhere(elsewhere, out);
    },
  });
}

const withOptions = (env: World["env"], { host, port }: StartOptions) => ({
  ...env,
  ...(host !== undefined && { KXM_HOST: host }),
  ...(port !== undefined && { KXM_PORT: String(port) }),
});

async function runHere(settings: ServeSettings, { quiet }: StartOptions, out: Output, world: World): Promise<number> {
  const { serve } = await import("./serve.ts");
  const serving = await serve(settings, (text) => world.stderr.write(`kxm: ${text}\n`));
  const note = { pid: process.pid, url: serving.url, version: VERSION, startedAt: new Date().toISOString(), logPath: settings.logPath };
  writeNote(settings.stateDir, note);
  const reload = () => {
    try {
      world.stderr.write(`kxm: ${serving.reload()} workflow definitions in force\n`);
    } catch (error) {
      world.stderr.write(`kxm: the old workflow definitions stay in force: ${(error as Error).message}\n`);
    }
  };
  if (!world.stdout.isTTY) process.on("SIGHUP", reload); // with a terminal it means that the terminal was closed
  const { promise, resolve } = Promise.withResolvers<void>();
  world.stopping.addEventListener("abort", () => resolve(), { once: true });
  if (world.stopping.aborted) resolve();
  if (quiet) out.result(note, () => out.line(`KXM hub ${note.url}`));
  else await greet(settings, note, out, world);
  await promise;
  process.off("SIGHUP", reload);
  await serving.stop();
  removeNote(settings.stateDir, process.pid);
  return EXIT.ok;
}

/** The one line with the address, then what to do with it. */
async function greet(settings: ServeSettings, note: HubNote, out: Output, world: World) {
  const operatorToken = world.env["KXM_AUTH_TOKEN"]?.trim() || readAdminToken(settings.stateDir);
  const link = await makeLink({ url: note.url, operatorToken }, {}, world).catch(() => undefined);
  const kxm = ownName(world.cwd);
  out.result({ ...note, ...(link && { signIn: link.url }) }, () => {
    out.line(`KXM hub ${out.styled("bold", note.url)}`);
    if (link) out.line(`  dashboard   ${link.url}`);
    if (link) out.line(out.styled("dim", `              works once, within a minute; \`${kxm} open\` makes another`));
    out.line(`  talk        ${kxm} peer --as alice inbox --follow`);
    out.line(`              ${kxm} peer --as bob send alice 'hello' --wait   (in another terminal)`);
  });
}

async function startInBackground(settings: ServeSettings, options: StartOptions, out: Output, world: World): Promise<number> {
  const running = await findRunning(settings.stateDir);
  if (running) throw new CommandFailed(`a hub of this workspace runs already at ${running.url} (pid ${running.pid})`, "`kxm hub stop` ends it.");
  privateFolder(settings.stateDir);
  const outputPath = join(settings.stateDir, "hub.out");
  const where = { cwd: world.cwd, env: { ...withOptions(world.env, options) }, saidIn: outputPath };
  const child = startDetached([process.execPath, ...ownScript(), "hub", "start", "--quiet"], where);
  const deadline = performance.now() + START_WAIT_MS;
  while (performance.now() < deadline) {
    const note = readNote(settings.stateDir);
    if (note && note.pid === child.pid && (await answers(note.url))) {
      await greet(settings, note, out, world);
      out.line(`  running     in the background, pid ${note.pid}; \`${ownName(world.cwd)} hub stop\` ends it`);
      return EXIT.ok;
    }
    if (child.hasEnded()) throw new CommandFailed(lastWords(outputPath), undefined);
    await Bun.sleep(LOOK_AGAIN_MS);
  }
  throw new CommandFailed(
    `the hub (pid ${child.pid}) did not answer within ${spell(START_WAIT_MS)}`,
    `Its output is in ${outputPath}.`,
    EXIT.timedOut,
  );
}

const lastWords = (path: string): string =>
  readFileSync(path, "utf8")
    .trim()
    .replace(/^kxm: /, "") || "the hub ended without a word";

async function answers(url: string): Promise<boolean> {
  return ask(to(url), "GET", "/health", { timeoutMs: PROBE_MS }).then(
    () => true,
    () => false,
  );
}
const to = (url: string) => ({ url });

/** The running hub of a state folder: its process lives and it answers at its address. */
async function findRunning(stateDir: string) {
  const note = readNote(stateDir);
  return note && isAlive(note.pid) && (await answers(note.url)) ? note : undefined;
}

async function stopHub({ stateDir }: ServeSettings, timeoutMs: number, out: Output): Promise<number> {
  const note = await findRunning(stateDir);
  if (!note) throw new CommandFailed(`no hub of this workspace runs (${stateDir})`, undefined, EXIT.unreachable);
  process.kill(note.pid, "SIGTERM");
  const deadline = performance.now() + timeoutMs;
  while (isAlive(note.pid)) {
    if (performance.now() > deadline)
      throw new CommandFailed(
        `the hub (pid ${note.pid}) still runs after ${spell(timeoutMs)}`,
        `A second signal ends it at once: kill ${note.pid}`,
        EXIT.timedOut,
      );
    await Bun.sleep(LOOK_AGAIN_MS);
  }
  out.result({ stopped: true, pid: note.pid }, () => out.line(`stopped the hub (pid ${note.pid})`));
  return EXIT.ok;
}

/** A hub that was named by its address: what it says of itself. */
async function showElsewhere(url: string, out: Output): Promise<number> {
  const { ok, storage, message } = await askReady(url);
  out.result({ running: true, url, writes: ok, storage, ...(!ok && { problem: message }) }, () =>
    out.facts([
      ["hub", url],
      ["writes", ok ? "yes" : `no: ${message}`],
      ["store", storage === "memory" ? "memory: gone with the process" : "durable"],
    ]),
  );
  return ok ? EXIT.ok : EXIT.failed;
}

async function showStatus({ stateDir }: ServeSettings, out: Output): Promise<number> {
  const note = await findRunning(stateDir);
  if (!note) {
    out.result({ running: false }, () => out.line(`no hub of this workspace runs (${stateDir})`));
    return EXIT.unreachable;
  }
  out.result({ running: true, ...note }, () =>
    out.facts([
      ["hub", note.url],
      ["pid", note.pid],
      ["version", note.version],
      ["started", note.startedAt],
      ["log", note.logPath],
    ]),
  );
  return EXIT.ok;
}
