// `kxm watch github`: waits for the checks of a commit and tells a waiting run: one of the hub's workflows, signed, or one of this project's Runtime.
import type { Command } from "commander";
import { checkRuns, type Verdict, verdictOf } from "../client/github-checks.ts";
import { ask } from "../client/http.ts";
import { signedDelivery } from "../client/webhook-sender.ts";
import { define, duration, group } from "./command.ts";
import { openProject } from "./local.ts";
import { CommandFailed, EXIT, oneLine, type World } from "./output.ts";
import { send } from "./runs.ts";
import { asProject, CLI_HEADERS, findTarget, type TargetOptions, withTarget } from "./target.ts";

const NAMES_SHOWN = 10;
type WatchOptions = TargetOptions & {
  definition?: string;
  run: string;
  signal: string;
  secretEnv: string;
  tokenEnv: string;
  api: string;
  every: number;
  timeout: number;
  evidenceKey: string;
};

/** Adds `kxm watch`. */
export function addWatch(program: Command): void {
  const watch = withTarget(group(program, "watch", "wait for something outside and signal a run"));
  define<WatchOptions>(watch, {
    usage: "github <repo> <ref>",
    summary: "signal a run when the checks of a commit have ended",
    details:
      "With --definition the run is one of the hub's workflows, and the signal is signed; without it, a run of this project's Runtime. Passed when every check ended well, failed otherwise or when the time is over. The secret and the token come from the environment, never from the command line.",
    examples: [
      "kxm watch github acme/shop 4f2c1e --definition release --run run_0190… --signal ci",
      "kxm watch github acme/shop 4f2c1e --run run_0193… --signal ci",
    ],
    options: (command) =>
      command
        .option("--definition <id>", "workflow definition of the run, for a run of the hub")
        .requiredOption("--run <id>", "the waiting run")
        .requiredOption("--signal <key>", "the signal it waits for")
        .option("--secret-env <name>", "variable with the shared secret", "KXM_WEBHOOK_SECRET")
        .option("--token-env <name>", "variable with a token for the checks' server", "GITHUB_TOKEN")
        .option("--api <url>", "address of the checks' server", "https://api.github.com")
        .option("--evidence-key <key>", "evidence that carries the result", "checks")
        .option("--every <span>", "how often to look", duration(10, 3_600_000), 15_000)
        .option("--timeout <span>", "when to give up", duration(100, 86_400_000), 3_600_000),
    run: async ({ args: [repo, ref], options, out, world }) => {
      const secret = world.env[options.secretEnv]?.trim();
      if (options.definition !== undefined && !secret)
        throw new CommandFailed(
          `the environment variable ${options.secretEnv} with the shared secret is not set`,
          "Export it, or name another with --secret-env.",
        );
      const until = performance.now() + options.timeout;
      let verdict: Verdict | undefined;
      let trouble: string | undefined;
      for (;;) {
        try {
          verdict = verdictOf(
            await checkRuns({
              api: options.api,
              repo: repo!,
              ref: ref!,
              token: world.env[options.tokenEnv],
              timeoutMs: Math.min(30_000, options.timeout),
            }),
          );
          trouble = undefined;
        } catch (error) {
          trouble = (error as Error).message; // the server may be back at the next look
        }
        if (verdict?.done) break;
        const left = until - performance.now();
        if (left <= 0 || world.stopping.aborted) break;
        out.progress(trouble ?? `${verdict?.running.length ?? 0} of ${verdict?.total ?? 0} checks still run`);
        await Bun.sleep(Math.min(options.every, left));
      }
      if (world.stopping.aborted) return EXIT.failed;
      const passed = verdict?.done === true && verdict.passed;
      const summary = summaryOf(verdict, trouble, ref!);
      const answer =
        options.definition === undefined
          ? await tellRuntime(world, options, passed, summary)
          : await tellHub(world, options, secret!, passed, summary);
      out.result({ passed, summary, answer }, () => out.line(`${passed ? "passed" : "failed"}: ${oneLine(summary, 300)}`));
      return passed ? EXIT.ok : EXIT.failed;
    },
  });
}

/** Signals a run of the hub's workflows. */
async function tellHub(world: World, options: WatchOptions, secret: string, passed: boolean, summary: string): Promise<unknown> {
  const body = JSON.stringify({ status: passed ? "passed" : "failed", summary, evidence: { [options.evidenceKey]: summary.slice(0, 1000) } });
  const envelope = { kind: "signal" as const, definitionId: options.definition!, runId: options.run, signalKey: options.signal };
  const { path, headers } = signedDelivery(secret, envelope, body, { now: Date.now() });
  const sent = { json: body, headers: { ...headers, ...CLI_HEADERS }, timeoutMs: 30_000 };
  return (await ask(asProject(findTarget(world, options)), "POST", path, sent)).body;
}

/** Signals a run of this project's Runtime. */
async function tellRuntime(world: World, { run, signal }: WatchOptions, passed: boolean, summary: string): Promise<unknown> {
  const project = await openProject(world, { start: true });
  return send(project, world, "signal", run, { signal, status: passed ? "passed" : "failed", summary: summary.slice(0, 1000) });
}

function summaryOf(verdict: Verdict | undefined, trouble: string | undefined, ref: string): string {
  if (!verdict) return `The checks of ${ref} could not be read in time: ${trouble ?? "no answer"}`;
  if (!verdict.done)
    return verdict.total === 0
      ? `No check of ${ref} began in time`
      : `${verdict.running.length} of ${verdict.total} checks of ${ref} had not ended in time: ${names(verdict.running)}`;
  return verdict.passed
    ? `All ${verdict.total} checks of ${ref} passed`
    : `${verdict.failed.length} of ${verdict.total} checks of ${ref} failed: ${names(verdict.failed)}`;
}
const names = (runs: { name: string }[]) =>
  `${runs
    .slice(0, NAMES_SHOWN)
    .map(({ name }) => name.slice(0, 80))
    .join(", ")}${runs.length > NAMES_SHOWN ? ` and ${runs.length - NAMES_SHOWN} more` : ""}`;
