// Entry of `kxm-runtime`: runs the supervisor in the foreground until it is asked to end or another one took over. Nothing exported.
import { RuntimeRefusal } from "../protocol/runtime-errors.ts";
import { VERSION } from "../protocol/version.ts";
import { makeEngine } from "./engine/engine.ts";
import { startSupervisor } from "./supervisor.ts";

const HELP = `kxm-runtime ${VERSION}: the supervisor of this user's runs on this machine

Usage: kxm-runtime run [--json] [--until-stdin-ends]
       kxm-runtime --version | --help

  run      start in the foreground; \`kxm runtime start\` does the same in the background
  --json   print one JSON line when it serves, instead of a sentence
  --until-stdin-ends
           end with whoever holds its standard input, even if that one is killed

Settings
  KXM_STATE_HOME                 folder of its state (an absolute path)
  KXM_URL, KXM_PROJECT, KXM_TOKEN   the hub to report to, instead of the saved binding
  KXM_RUNTIME_SYNC_INTERVAL_MS   time between two reports, 250 to 60000 (10000)

Example: KXM_URL=http://127.0.0.1:7331 KXM_PROJECT=demo kxm-runtime run
`;
const EXIT = { ok: 0, failed: 1, usage: 2 } as const;

process.exitCode = await main(process.argv.slice(2));

async function main(args: string[]): Promise<number> {
  if (args.includes("--version") || args.includes("-v")) return say(`${VERSION}\n`, EXIT.ok);
  if (args.includes("--help") || args.includes("-h")) return say(HELP, EXIT.ok);
  const [command, ...rest] = args;
  const unknown = rest.find((arg) => arg !== "--json" && arg !== "--until-stdin-ends");
  if (command !== "run" || unknown !== undefined) {
    const wrong = command !== "run" ? (command ?? "nothing") : unknown;
    process.stderr.write(`kxm-runtime: ${JSON.stringify(wrong)} is no command of it. Try kxm-runtime --help.\n`);
    return EXIT.usage;
  }
  return run({ json: rest.includes("--json"), untilStdinEnds: rest.includes("--until-stdin-ends") });
}

async function run({ json, untilStdinEnds }: { json: boolean; untilStdinEnds: boolean }): Promise<number> {
  try {
    const supervisor = await startSupervisor({ env: process.env, version: VERSION, makeEngine });
    for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.once(signal, () => void supervisor.stop());
    if (untilStdinEnds) void ended(process.stdin).then(() => supervisor.stop());
    const { runtimeId, port, generation, paths } = supervisor;
    const facts = { runtimeId, pid: process.pid, port, generation, stateRoot: paths.root };
    process.stdout.write(json ? `${JSON.stringify(facts)}\n` : `Runtime ${runtimeId} serves this machine (process ${process.pid}, port ${port}).\n`);
    const { error } = await supervisor.ended;
    return error ? fail(error) : EXIT.ok;
  } catch (error) {
    return fail(error);
  }
}

/** Resolves when nobody can write to a stream any more. What is written is not read. */
async function ended(stream: NodeJS.ReadStream): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  for (const event of ["end", "close", "error"]) stream.once(event, () => resolve());
  stream.resume();
  return promise;
}

function fail(error: unknown): number {
  if (!(error instanceof RuntimeRefusal)) throw error;
  process.stderr.write(`kxm-runtime: ${error.message} (${error.code})\n             ${error.hint}\n`);
  return EXIT.failed;
}

function say(text: string, code: number): number {
  process.stdout.write(text);
  return code;
}
