// `kxm run`: starts a run and shows it live until it ends.
import type { Command } from "commander";
import { adviceOn } from "../protocol/failures.ts";
import { PROMPT_MAX } from "../protocol/limits.ts";
import { RuntimeRefusal } from "../protocol/runtime-errors.ts";
import { DAY_MS } from "../protocol/time.ts";
import { isTerminal } from "../protocol/workflow-file.ts";
import { hubInstead } from "./binding.ts";
import { define, duration } from "./command.ts";
import { actor, commandId, type LocalProject, openProject } from "./local.ts";
import { CommandFailed, EXIT, type Output, UsageError, visible, type World } from "./output.ts";
import { progressView, type RunEvent } from "./run-progress.ts";

const WAIT_MS = 20_000;
const TICK_MS = 500;

type RunOptions = { workflow?: string; title?: string; file?: string; detach?: boolean; key?: string; timeout?: number };

/** Adds `kxm run`. */
export function addRun(program: Command): void {
  define<RunOptions>(program, {
    usage: "run [prompt]",
    summary: "start a run of a workflow and follow it",
    details:
      "Starts the Runtime when it does not run. Ctrl-C stops following; the run goes on. Ends with 0 when the run completed, 1 when it did not.",
    examples: [
      "kxm run 'Fix the flaky test'",
      "kxm run --workflow release --detach",
      "kxm run --file task.md --json",
      "echo 'Fix it' | kxm run --file -",
    ],
    options: (command) =>
      command
        .option("-w, --workflow <id>", "the workflow (default: the project's defaultWorkflow)")
        .option("--title <text>", "a title for lists (default: the prompt's first line)")
        .option("--file <path>", "read the prompt from a file, - for standard input")
        .option("-d, --detach", "return once the run exists")
        .option("--key <text>", "an idempotency key: the same key starts the same run once")
        .option("--timeout <span>", "stop following after this long (exit code 4); the run goes on", duration(1000, 30 * DAY_MS)),
    run: async ({ args: [words], options, out, world }) => {
      const prompt = withinLimit(await promptOf(words, options.file, world));
      const project = await openProject(world, { start: true, check: true });
      const runId = await start(project, world, { prompt, workflowId: options.workflow, displayTitle: options.title, intakeKey: options.key });
      const { sync } = await project.runtime.status();
      if (sync.hub === undefined)
        out.note("no hub is known to this machine's Runtime: the run stays here until `kxm runtime bind` or KXM_URL names one");
      const instead = sync.hub && hubInstead(sync.hub.url, world);
      if (instead)
        out.note(
          `this machine's Runtime reports to ${sync.hub.url}, not to ${instead}: the run shows there. \`kxm runtime bind --hub ${instead}\` moves this machine's projects.`,
        );
      if (options.detach) {
        out.result({ runId, project: project.key }, () => out.line(`run ${runId}\nfollow it with: kxm runs show ${runId} --follow`));
        return EXIT.ok;
      }
      if (!out.json) out.line(out.styled("dim", `run ${runId}`));
      return followRun(project, runId, { world, out, timeoutMs: options.timeout });
    },
  });
}

async function promptOf(words: string | undefined, file: string | undefined, world: World): Promise<string | undefined> {
  if (file === undefined) return words;
  if (words !== undefined) throw new UsageError("give the prompt as words or with --file, not both");
  try {
    return file === "-" ? await Bun.stdin.text() : await Bun.file(Bun.resolveSync(`./${file}`, world.cwd)).text();
  } catch {
    try {
      return await Bun.file(file.startsWith("/") ? file : `${world.cwd}/${file}`).text();
    } catch {
      throw new UsageError(`the file ${file} cannot be read`);
    }
  }
}

/** A prompt that may be sent. @throws CommandFailed when it is too long */
export function withinLimit(prompt: string | undefined): string | undefined {
  if (prompt === undefined || prompt.length <= PROMPT_MAX) return prompt;
  throw new CommandFailed(
    `the prompt has ${prompt.length} characters, at most ${PROMPT_MAX} are taken`,
    "Put the rest into a file of the repository, and name the file in the prompt.",
  );
}

/** Submits work and answers the run it became. @throws CommandFailed when the project is paused or the work was refused */
async function start(
  project: LocalProject,
  world: World,
  payload: { prompt?: string; workflowId?: string; displayTitle?: string; intakeKey?: string },
): Promise<string> {
  const { runtime, key } = project;
  const given = Object.fromEntries(Object.entries(payload).filter(([, value]) => value !== undefined));
  const { result } = await runtime.command(key, { commandId: commandId(), kind: "start", payload: given, actor: actor(world) });
  return takenIn(project, result);
}

/** The run that handed-in work becomes. @throws CommandFailed when the project is paused or the work was refused */
export async function takenIn({ runtime, key }: LocalProject, result: { intakeId: string; runId?: string }): Promise<string> {
  if (result.runId) return result.runId;
  const { intake } = await runtime.get(`/v1/projects/${key}/intake/${result.intakeId}`, { waitMs: 8000 });
  if (intake.runId) return intake.runId;
  if (intake.state === "queued")
    throw new CommandFailed(
      `the work waits as ${intake.intakeId}: the project takes no runs now`,
      "See `kxm intake list`; `kxm project resume` ends a pause.",
    );
  throw new CommandFailed(`the work was refused: ${intake.reason ?? intake.state}`);
}

/** Follows a run to its end, the caller's end, or a time limit. */
export async function followRun(
  project: LocalProject,
  runId: string,
  options: { world: World; out: Output; timeoutMs?: number; after?: number },
): Promise<number> {
  const { world, out } = options;
  const { runtime, key } = project;
  const view = progressView(world, out);
  const ticker = setInterval(view.tick, TICK_MS);
  const deadline = options.timeoutMs === undefined ? Number.POSITIVE_INFINITY : performance.now() + options.timeoutMs;
  let after = options.after ?? 0;
  let hinted = "";
  try {
    for (;;) {
      const left = deadline - performance.now();
      if (world.stopping.aborted) return stopped(out, runId, EXIT.failed);
      if (left <= 0) return stopped(out, runId, EXIT.timedOut);
      const page = await Promise.race([
        runtime.events(key, runId, { after, limit: 500, waitMs: Math.min(WAIT_MS, Math.ceil(left)) }),
        aborted(world.stopping),
      ]);
      if (page === undefined) continue;
      for (const row of page.events as (RunEvent & { payload: { local?: unknown } })[]) {
        const { local: _local, ...payload } = row.payload;
        const { sequence, eventType, occurredAt } = row;
        view.show({ runId, sequence, eventType, occurredAt, payload });
        after = sequence;
      }
      if (isTerminal(view.progress.status)) break;
      const advice =
        view.progress.status === "queued" ? queueAdvice(await viewOf(project, runId)) : adviceFor(view.progress.status, page.state, runId);
      if (advice && advice !== hinted) {
        view.end();
        out.note((hinted = advice));
      }
    }
  } catch (error) {
    view.end();
    if (error instanceof RuntimeRefusal && error.code === "runtime_not_running")
      out.note(`programs of run ${runId} go on, and the run does with the next Runtime: kxm runs show ${runId} --follow`);
    throw error;
  } finally {
    clearInterval(ticker);
    view.end();
  }
  if (view.progress.status === "failed") await explain(project, runId, view.progress.reason, out);
  return view.progress.status === "completed" ? EXIT.ok : EXIT.failed;
}

type RunInShort = { queue?: { position: number; blockers: string[] }; lastWords?: { stepId: string; text: string } };
const viewOf = async ({ runtime, key }: LocalProject, runId: string): Promise<RunInShort> =>
  (await runtime.get(`/v1/projects/${key}/runs/${runId}/view`)).run;

const queueAdvice = ({ queue }: RunInShort): string | undefined =>
  queue && `place ${queue.position} in the queue; before it: ${queue.blockers.join(", ") || "nothing"}`;

/** What a person can do about a run that failed, and what its gate said. */
async function explain(project: LocalProject, runId: string, reason: string | undefined, out: Output): Promise<void> {
  const advice = adviceOn(reason);
  if (advice) out.note(advice);
  for (const line of saidLast(await viewOf(project, runId))) out.note(line);
}

const LINES_MAX = 10;
/** What the gate printed last that kept a run from going on, as lines. */
export function saidLast({ lastWords }: RunInShort): string[] {
  if (!lastWords) return [];
  const lines = lastWords.text.split("\n").filter((line) => line.trim() !== "");
  return [`${lastWords.stepId} printed last:`, ...lines.slice(-LINES_MAX).map((line) => `  ${visible(line)}`)];
}

function stopped(out: Output, runId: string, code: number): number {
  out.note(`\nstopped following; run ${runId} goes on. \`kxm runs show ${runId} --follow\` follows it again, \`kxm runs cancel ${runId}\` ends it.`);
  return code;
}

const aborted = (signal: AbortSignal): Promise<undefined> =>
  new Promise((resolve) => (signal.aborted ? resolve(undefined) : signal.addEventListener("abort", () => resolve(undefined), { once: true })));

/** What a person can do about a run that waits. */
function adviceFor(
  status: string,
  state: { approvals?: Record<string, unknown>; uncertain?: Record<string, unknown> } | undefined,
  runId: string,
): string | undefined {
  if (status === "blocked_uncertain")
    return `resolve it: kxm runs resolve ${runId} --action mark-completed|confirm-absent-and-retry|compensate-and-retry|mark-failed|cancel --reason …`;
  if (status !== "waiting") return undefined;
  if (Object.keys(state?.approvals ?? {}).length > 0) return `decide: kxm runs approve ${runId}   or   kxm runs reject ${runId} --reason …`;
  return `it waits for a signal: kxm runs signal ${runId} <name>`;
}
