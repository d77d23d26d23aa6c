// `kxm runs`: look at runs, decide what they wait for, and end or resolve them.
import { existsSync } from "node:fs";
import type { Command } from "commander";
import { adviceOn } from "../protocol/failures.ts";
import type { CommandKind, CommandPayload } from "../protocol/sync.ts";
import { RESOLUTION_ACTIONS } from "../protocol/sync-event.ts";
import { RUN_STATUSES } from "../protocol/workflow-file.ts";
import { define, group, number } from "./command.ts";
import { actor, commandId, type LocalProject, openProject } from "./local.ts";
import { CommandFailed, EXIT, harmlessJson, type Output, UsageError, visible, type World } from "./output.ts";
import { followRun, saidLast, takenIn } from "./run.ts";
import { elapsed, eventLine, type RunEvent, spent } from "./run-progress.ts";

type Stored = {
  runId: string;
  workflowId: string;
  displayTitle?: string;
  arrival: number;
  createdAt: number;
  state: {
    status: string;
    stepId?: string;
    reason?: string;
    endedAt?: number;
    usage: { inputTokens: number; outputTokens: number; cost: number; currency?: string; costKind?: string };
  };
};
type View = Record<string, any>;

/** Adds `kxm runs` and its commands. */
export function addRuns(program: Command): void {
  const runs = group(program, "runs", "look at runs and decide what they wait for");
  define<{ status?: string; limit: number }>(runs, {
    usage: "list",
    summary: "list the project's runs, newest first",
    examples: ["kxm runs list", "kxm runs list --status waiting --json"],
    isDefault: true,
    options: (command) => command.option("--status <status>", "only runs in this status").option("--limit <number>", "how many", number(1, 500), 20),
    run: async ({ options, out, world }) => {
      const { status } = options;
      if (status !== undefined && !(RUN_STATUSES as readonly string[]).includes(status))
        throw new UsageError(`--status must be one of ${RUN_STATUSES.join(", ")}`);
      const project = await openProject(world, { start: true });
      const page = await project.runtime.runs(project.key, options);
      const rows = page.runs as Stored[];
      out.result({ runs: rows }, () => showList(out, rows));
      if (rows.length === 0 && status === undefined) await noteFormerPlace(project, out);
    },
  });
  define<{ follow?: boolean }>(runs, {
    usage: "show [run]",
    summary: "show a run in full: steps, attempts, what it waits for, what it used",
    details: "Without a run: the newest one.",
    examples: ["kxm runs show", "kxm runs show run_0193… --follow", "kxm runs show run_0193… --json"],
    options: (command) => command.option("-f, --follow", "follow it until it ends"),
    run: async ({ args: [given], options, out, world }) => {
      const project = await openProject(world, { start: true });
      const runId = await runOf(project, given);
      if (options.follow) return followRun(project, runId, { world, out });
      const { run } = await project.runtime.get(`/v1/projects/${project.key}/runs/${runId}/view`);
      out.result(run, () => showRun(out, run));
      return EXIT.ok;
    },
  });
  addReading(runs);
  addDeciding(runs);
}

function addReading(runs: Command): void {
  define<{ after: number }>(runs, {
    usage: "events [run]",
    summary: "print the events of a run; with --json one a line",
    examples: ["kxm runs events run_0193… --json", "kxm runs events run_0193… --after 40"],
    options: (command) => command.option("--after <sequence>", "only events after this one", number(0, Number.MAX_SAFE_INTEGER), 0),
    run: async ({ args: [given], options, out, world }) => {
      const project = await openProject(world, { start: true });
      const runId = await runOf(project, given);
      for (let after = options.after; ; ) {
        const { events } = (await project.runtime.events(project.key, runId, { after, limit: 500 })) as { events: RunEvent[] };
        for (const event of events) {
          if (out.json) world.stdout.write(`${harmlessJson(event)}\n`);
          else out.line(eventLine(event)?.text ?? `${new Date(event.occurredAt).toISOString().slice(11, 19)}  ${out.styled("dim", event.eventType)}`);
          after = event.sequence;
        }
        if (events.length < 500) return;
      }
    },
  });
  define<{ step?: string }>(runs, {
    usage: "logs [run]",
    summary: "print what each attempt was told and what its program printed",
    examples: ["kxm runs logs run_0193…", "kxm runs logs run_0193… --step fix"],
    options: (command) => command.option("--step <id>", "only this step"),
    run: async ({ args: [given], options, out, world }) => {
      const project = await openProject(world, { start: true });
      const runId = await runOf(project, given);
      const { attempts } = await project.runtime.get(`/v1/projects/${project.key}/runs/${runId}/logs`, { step: options.step });
      out.result({ runId, attempts }, () => showLogs(out, attempts));
    },
  });
  define(runs, {
    usage: "receipt [run]",
    summary: "print a run's receipt and check it against the run's events",
    examples: ["kxm runs receipt run_0193… --json"],
    run: async ({ args: [given], out, world }) => {
      const project = await openProject(world, { start: true });
      const runId = await runOf(project, given);
      const verified = await project.runtime.get(`/v1/projects/${project.key}/runs/${runId}/receipt`);
      const { receipt, holds, why, content } = verified;
      out.result(verified, () => {
        const commits = Object.entries(receipt.commits as Record<string, { base: string; head: string }>);
        const text = commits.map(([id, { base, head }]) => `${id} ${base.slice(0, 12)} → ${head.slice(0, 12)}`).join(", ");
        out.facts(Object.entries({ ...receipt, commits: text }) as [string, string | number][]);
        out.facts([["receipt", content]]);
        out.line(holds ? out.styled("good", "holds: the events are those of the receipt") : out.styled("bad", `does not hold: ${why}`));
      });
      return holds ? EXIT.ok : EXIT.failed;
    },
  });
  define<{ clean?: boolean }>(runs, {
    usage: "worktrees [run]",
    summary: "list the Git worktrees of runs, and remove those whose work is kept elsewhere",
    examples: ["kxm runs worktrees", "kxm runs worktrees --clean", "kxm runs worktrees run_0193… --clean"],
    options: (command) => command.option("--clean", "remove worktrees in which nothing would be lost"),
    run: async ({ args: [runId], options, out, world }) => {
      const { runtime, key } = await openProject(world, { start: true });
      if (options.clean) {
        const cleaned = await runtime.post(`/v1/projects/${key}/worktrees/clean`, runId ? { runId } : {});
        out.result(cleaned, () => {
          for (const path of cleaned.removed) out.line(visible(`removed  ${path}`));
          for (const { path, why } of cleaned.kept) out.line(visible(`kept     ${path}: ${why}`));
          if (cleaned.removed.length + cleaned.kept.length === 0) out.line("no worktrees");
        });
        return;
      }
      const { worktrees } = (await runtime.get(`/v1/projects/${key}/worktrees`)) as { worktrees: View[] };
      const rows = worktrees.filter((one) => runId === undefined || one["runId"] === runId);
      out.result({ worktrees: rows }, () =>
        out.table(
          rows,
          [
            { title: "PATH", value: (row) => row["path"] },
            { title: "RUN", value: (row) => row["status"] },
            { title: "REPOSITORY", value: (row) => row["repository"] },
            { title: "BRANCH", value: (row) => row["branch"] ?? "–" },
            { title: "SIZE", value: (row) => size(row["bytes"]), align: "right" },
            { title: "KEPT BECAUSE", value: (row) => row["keep"] ?? "may be removed" },
          ],
          "no worktrees",
        ),
      );
    },
  });
}

const size = (bytes: number | undefined): string =>
  bytes === undefined ? "–" : bytes < 1_048_576 ? `${Math.ceil(bytes / 1024)} KiB` : `${(bytes / 1_048_576).toFixed(1)} MiB`;

function addDeciding(runs: Command): void {
  for (const kind of ["approve", "reject"] as const)
    define<{ reason?: string; approval?: string; hash?: string }>(runs, {
      usage: `${kind} [run]`,
      summary: kind === "approve" ? "approve what a run asks for" : "reject what a run asks for",
      details: "Shows what is asked and decides on exactly that: when it changed meanwhile, the decision is refused.",
      examples: [`kxm runs ${kind} run_0193… --reason 'looked at the diff'`],
      options: (command) =>
        command.option("--reason <text>", "why, for the record").option("--hash <sha256>", "decide only if the content still has this hash"),
      run: async ({ args: [given], options, out, world }) => {
        const project = await openProject(world, { start: true });
        const runId = await runOf(project, given);
        const { run } = await project.runtime.get(`/v1/projects/${project.key}/runs/${runId}/view`);
        if (!run.asked) throw new CommandFailed(`run ${runId} (${run.status}) asks for nothing`, "`kxm runs show` tells what it waits for.");
        const payload = {
          approvalId: run.asked.approvalId,
          contentHash: options.hash ?? run.asked.contentHash,
          ...(options.reason && { reason: options.reason }),
        };
        await send(project, world, kind, runId, payload);
        out.result({ runId, ...payload, decision: kind }, () =>
          out.line(`${kind === "approve" ? "approved" : "rejected"}: ${visible(run.asked.content.question)}`),
        );
      },
    });
  define<{ status?: string; summary?: string }>(runs, {
    usage: "signal <run> <name>",
    summary: "send a run the signal it waits for",
    examples: ["kxm runs signal run_0193… ci --status passed --summary 'all green'"],
    options: (command) =>
      command.option("--status <outcome>", "the step's outcome (default passed)").option("--summary <text>", "a sentence for the record"),
    run: async ({ args: [runId, name], options, out, world }) => {
      const project = await openProject(world, { start: true });
      const payload = { signal: name!, ...(options.status && { status: options.status }), ...(options.summary && { summary: options.summary }) };
      await send(project, world, "signal", runId!, payload);
      out.result({ runId, ...payload }, () => out.line(`signalled ${name} to ${runId}`));
    },
  });
  define<{ reason?: string }>(runs, {
    usage: "cancel <run>",
    summary: "end a run: what runs is stopped first",
    examples: ["kxm runs cancel run_0193… --reason 'wrong branch'"],
    options: (command) => command.option("--reason <text>", "why, for the record"),
    run: async ({ args: [runId], options, out, world }) => {
      const project = await openProject(world, { start: true });
      await send(project, world, "cancel", runId!, options.reason ? { reason: options.reason } : {});
      out.result({ runId, cancelled: true }, () => out.line(`cancelling ${runId}`));
    },
  });
  define<{ from?: string; reason?: string; follow?: boolean }>(runs, {
    usage: "retry <run>",
    summary: "run the work of a run that has ended once more, as a new run",
    details:
      "From its beginning, on the commit that is checked out now; or --from one of its steps, with the commits and results of the steps before it. The project's files count as they are now: a gate or an approval before the step must still be the one that was passed.",
    examples: ["kxm runs retry run_0193…", "kxm runs retry run_0193… --from review --follow"],
    options: (command) =>
      command
        .option("--from <step>", "begin at this step; `kxm runs show` lists them")
        .option("--reason <text>", "why, for the record")
        .option("--follow", "follow the new run to its end"),
    run: async ({ args: [retryOf], options, out, world }) => {
      const project = await openProject(world, { start: true });
      const payload = { ...(options.from && { stepId: options.from }), ...(options.reason && { reason: options.reason }) };
      const { result } = await send(project, world, "retry", retryOf!, payload);
      const runId = await takenIn(project, result);
      if (options.follow) return followRun(project, runId, { world, out });
      out.result({ ...result, runId }, () => out.line(`run ${runId}\nfollow it with: kxm runs show ${runId} --follow`));
      return EXIT.ok;
    },
  });
  define<{ action: string; reason: string; effect?: string; ref?: string[] }>(runs, {
    usage: "resolve <run>",
    summary: "say what became of an effect that nobody can prove",
    details: `Actions: ${RESOLUTION_ACTIONS.join(", ")}. Recorded with who, why and the references given.`,
    examples: ["kxm runs resolve run_0193… --action confirm-absent-and-retry --reason 'no release on the server'"],
    options: (command) =>
      command
        .requiredOption("--action <action>", "what you found")
        .requiredOption("--reason <text>", "how you know")
        .option("--effect <id>", "which effect, when there are several")
        .option("--ref <text...>", "references: links, ids, tickets"),
    run: async ({ args: [runId], options, out, world }) => {
      const action = RESOLUTION_ACTIONS.find((word) => word === options.action);
      if (!action) throw new UsageError(`--action must be one of ${RESOLUTION_ACTIONS.join(", ")}`);
      const project = await openProject(world, { start: true });
      const payload = {
        action,
        reason: options.reason,
        ...(options.effect && { effectId: options.effect }),
        ...(options.ref && { refs: options.ref }),
      };
      await send(project, world, "resolve", runId!, payload);
      out.result({ runId, ...payload }, () => out.line(`resolved: ${action}`));
    },
  });
}

/** One command about a run, through the Runtime of this machine. */
export const send = <K extends CommandKind>(project: LocalProject, world: World, kind: K, runId: string, payload: CommandPayload<K>) =>
  project.runtime.command(project.key, { commandId: commandId(), kind, runId, payload, actor: actor(world) });

/** A run as it was named, or the newest one. @throws CommandFailed when there is none */
async function runOf(project: LocalProject, given: string | undefined): Promise<string> {
  if (given) return given;
  const { runs } = (await project.runtime.runs(project.key, { limit: 1 })) as { runs: Stored[] };
  if (!runs[0]) throw new CommandFailed("the project has no runs yet", "`kxm run` starts one.");
  return runs[0].runId;
}

/** A checkout that was moved is another one to the Runtime: what is kept under its former place is not lost. */
async function noteFormerPlace({ runtime, key }: LocalProject, out: Output): Promise<void> {
  const { projects } = (await runtime.get("/v1/projects")) as {
    projects: { projectKey: string; projectId: string; projectRoot: string }[];
  };
  const id = projects.find(({ projectKey }) => projectKey === key)?.projectId;
  const former = projects.find((one) => one.projectKey !== key && one.projectId === id && !existsSync(one.projectRoot));
  if (former)
    out.note(`runs of this project are kept for its checkout in ${former.projectRoot}, which is not there: put it back there to go on with them`);
}

const toneOf = (status: string) =>
  status === "completed" || status === "passed"
    ? "good"
    : status === "failed" || status === "blocked_uncertain"
      ? "bad"
      : status === "waiting"
        ? "warn"
        : undefined;

function showList(out: Output, rows: Stored[]): void {
  out.table(
    rows,
    [
      { title: "RUN", value: (row) => row.runId },
      { title: "STATUS", value: (row) => row.state.status, style: (row) => toneOf(row.state.status) },
      { title: "WORKFLOW", value: (row) => row.workflowId },
      { title: "STEP", value: (row) => row.state.stepId },
      { title: "TOOK", value: (row) => elapsed((row.state.endedAt ?? Date.now()) - row.createdAt), align: "right" },
      { title: "TITLE", value: (row) => row.displayTitle },
    ],
    "no runs yet; `kxm run` starts one",
  );
}

function showRun(out: Output, run: View): void {
  const { used, limits, queue, asked, uncertain } = run;
  out.facts([
    ["run", run["runId"]],
    ["title", run["title"]],
    ["workflow", run["workflowId"]],
    ["goes on", run["from"] && `from step ${run["from"].stepId} of ${run["from"].runId}`],
    ["status", run["status"]],
    ["reason", run["reason"]],
    ["do", run["status"] === "failed" ? adviceOn(run["reason"]) : undefined],
    ["took", elapsed((run["endedAt"] ?? Date.now()) - run["createdAt"])],
    [
      "used",
      [
        `${used.transitions}${limits.maxTransitions ? ` of ${limits.maxTransitions}` : ""} transitions`,
        `agents ${elapsed(used.agentMs)}`,
        spent(used),
      ]
        .filter(Boolean)
        .join(", "),
    ],
    ["commit", commitsOf(run)],
    ["note", dirtyNote(run)],
    ["queue", queue && `place ${queue.position}; before it: ${queue.blockers.join(", ") || "nothing"}`],
  ]);
  out.line();
  out.table(
    run["steps"] as View[],
    [
      { title: "STEP", value: (row) => row["id"] },
      { title: "KIND", value: (row) => row["kind"] },
      { title: "STATUS", value: (row) => row["status"], style: (row) => toneOf(row["status"]) },
      { title: "ATTEMPTS", value: (row) => row["attempts"], align: "right" },
      { title: "OUTCOME", value: (row) => row["outcome"] },
      { title: "SUMMARY", value: (row) => row["summary"] },
    ],
    "no steps",
  );
  const said = saidLast(run);
  if (said.length > 0) out.line(`\n${said.join("\n")}`);
  if (asked)
    out.line(
      `\nasks: ${visible(asked.content.question)}\n  decide: kxm runs approve ${run["runId"]}   or   kxm runs reject ${run["runId"]} --reason …`,
    );
  if (run["waitsFor"]) out.line(`\nwaits for the signal ${run["waitsFor"]}: kxm runs signal ${run["runId"]} ${run["waitsFor"]}`);
  for (const one of uncertain)
    out.line(`\nuncertain: ${visible(one.reason)}\n  resolve: kxm runs resolve ${run["runId"]} --action ${one.resolutions.join("|")} --reason …`);
}

const commitsOf = ({ repositories }: View): string =>
  repositories.map(({ id, head }: View) => (repositories.length > 1 ? `${id} ${head.slice(0, 12)}` : head.slice(0, 12))).join(", ");

function dirtyNote({ repositories }: View): string | undefined {
  const dirty = (repositories as View[]).filter((one) => one["dirty"]).map(({ id }) => id);
  if (dirty.length === 0) return undefined;
  const which = repositories.length > 1 ? `the checkout of ${dirty.join(", ")}` : "the checkout";
  return `${which} had changes that were not committed: they are not part of the run`;
}

function showLogs(out: Output, attempts: { attemptId: string; stepId: string; pieces: { stream: string; text: string }[] }[]): void {
  if (attempts.length === 0) out.line("no attempts");
  for (const { attemptId, stepId, pieces } of attempts) {
    out.line(out.styled("bold", `── ${stepId} ${attemptId}`));
    for (const { stream, text } of pieces) {
      out.line(out.styled("dim", `[${stream}]`));
      out.line(visible(text.trimEnd()));
    }
  }
}
