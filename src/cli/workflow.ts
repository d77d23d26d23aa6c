// `kxm workflow`: hub workflows from a terminal: validate definitions, start and signal runs with signed deliveries, work through them as coordinator.
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Command } from "commander";
import { ask, open } from "../client/http.ts";
import { AREAS, type WorkflowRun } from "../protocol/workflows.ts";
import { ago } from "./ago.ts";
import { type Call, define, duration, type Ended, group } from "./command.ts";
import { asAgent, defaultName, type Terminal } from "./identity.ts";
import { CommandFailed, EXIT, type Output, oneLine, UsageError } from "./output.ts";
import { asOperator, CLI_HEADERS, findTarget, type TargetOptions, withTarget } from "./target.ts";
import { readText } from "./text.ts";
import { findingLine } from "./workflow-definitions.ts";
import { addSending } from "./workflow-send.ts";

type As = TargetOptions & { as?: string };
type Conditions = {
  stageId: string | null;
  attempt: number;
  attemptsLeft: number;
  blockers: string[];
  conditions: { requirementKey: string; met: boolean; needs: string; quorum?: { have: number; need: number } }[];
};

/** What `--format` may say, by the word that the hub takes. */
const FORMATS: Readonly<Record<string, "md" | "json">> = Object.assign(Object.create(null), { md: "md", markdown: "md", json: "json" });

const me = (call: Call<As>): Promise<Terminal> =>
  asAgent(call.world, findTarget(call.world, call.options), call.options.as?.trim() || defaultName(call.world.env));
const run = (id: string, verb = "") => `/v1/workflows/${encodeURIComponent(id)}${verb && `/${verb}`}`;
/** For an option that may be given several times. */
export const collect = (value: string, before: string[] = []) => [...before, value];

/** `key=value` pairs of repeated options. @throws UsageError */
export function pairs(list: readonly string[] | undefined, name: string): Record<string, string> | undefined {
  if (!list) return undefined;
  return Object.fromEntries(
    list.map((pair) => {
      const at = pair.indexOf("=");
      if (at < 1) throw new UsageError(`${name} takes key=value, not ${JSON.stringify(pair)}`);
      return [pair.slice(0, at), pair.slice(at + 1)];
    }),
  );
}

/** Adds `kxm workflow` and its commands. */
export function addWorkflow(program: Command): void {
  const workflow = withTarget(group(program, "workflow", "work with the hub's workflows")).option(
    "--as <name>",
    "coordinator to speak as (KXM_AGENT_NAME; else the user's name)",
  );
  addReading(workflow);
  addWorking(workflow);
  addSending(workflow);
  addAdministering(workflow);
}

function addReading(workflow: Command) {
  define<As>(workflow, {
    usage: "list",
    summary: "list runs that you coordinate",
    examples: ["kxm workflow list --as lead"],
    run: async (call) => {
      const { body } = await (await me(call)).ask<{ runs: WorkflowRun[] }>("GET", "/v1/workflows");
      call.out.result(body, (out) =>
        out.table(
          body.runs,
          [
            { title: "run", value: ({ id }) => id },
            { title: "definition", value: ({ definitionId }) => definitionId },
            {
              title: "status",
              value: ({ status }) => status,
              style: ({ status }) => (status === "failed" ? "bad" : status === "completed" ? "good" : undefined),
            },
            { title: "stage", value: ({ currentStage }) => currentStage },
            { title: "updated", value: ({ updatedAt }) => ago(updatedAt), align: "right" },
          ],
          "You coordinate no run in this project; --project and --as before the command name another and whose. To start one: kxm workflow start --help",
        ),
      );
    },
  });
  define<As>(workflow, {
    usage: "show <run>",
    summary: "show a run, its journal and what its current stage still needs",
    examples: ["kxm workflow show run_0190… --as lead"],
    run: async (call) => {
      const { body } = await (await me(call)).ask<{ run: WorkflowRun; journal: { category: string; summary: string }[]; conditions: Conditions }>(
        "GET",
        run(call.args[0]!),
      );
      call.out.result(body, (out) => showRun(out, body.run, body.conditions, body.journal));
    },
  });
  define<As & { format: string }>(workflow, {
    usage: "export <run>",
    summary: "print the retrospective of a run",
    examples: ["kxm workflow export run_0190… > retrospective.md", "kxm workflow export run_0190… --format json"],
    options: (command) => command.option("--format <format>", "md (or markdown) or json", "md"),
    run: async (call) => {
      const { args, options, out, world } = call;
      const format = FORMATS[options.format.toLowerCase()];
      if (!format) throw new UsageError(`--format is ${Object.keys(FORMATS).join(", ")}, not ${JSON.stringify(options.format)}`);
      const response = await open(asOperator(findTarget(world, options)), "GET", run(args[0]!, "retrospective"), {
        query: { format },
        signal: world.stopping,
      });
      const text = await response.text();
      if (format === "json" || out.json) out.result(format === "json" ? JSON.parse(text) : { markdown: text }, () => world.stdout.write(`${text}\n`));
      else out.line(text);
    },
  });
  define(workflow, {
    usage: "validate <file>",
    summary: "check a file of definitions, all problems at once, without a hub",
    examples: ["kxm workflow validate workflows.json"],
    run: async ({ args: [file], out, world }) => {
      const { parseDefinitions } = await import("./hub-definitions.ts");
      const path = resolve(world.cwd, file!);
      let json: string;
      try {
        json = readFileSync(path, "utf8");
      } catch (error) {
        throw new CommandFailed(`${file} cannot be read: ${(error as Error).message}`);
      }
      const { definitions, problems, remarks } = parseDefinitions(json, world.env);
      out.result({ ok: problems.length === 0, definitions: [...definitions.keys()], problems, remarks }, () => {
        for (const one of problems) out.line(findingLine(one));
        for (const one of remarks) out.note(findingLine(one));
        if (problems.length === 0)
          out.line(`${definitions.size} definition${definitions.size === 1 ? "" : "s"}: ${[...definitions.keys()].join(", ")}`);
      });
      return problems.length === 0 ? EXIT.ok : EXIT.failed;
    },
  });
}

function showRun(out: Output, it: WorkflowRun, conditions: Conditions, journal: { category: string; summary: string }[]) {
  out.facts([
    ["run", it.id],
    ["definition", it.definitionId],
    ["status", it.status],
    ["coordinator", it.targetAgentName],
    ["message", it.messageId],
    ["started", it.createdAt],
    ["ended", it.completedAt],
  ]);
  out.line();
  out.table(
    it.stages,
    [
      { title: "stage", value: ({ id }) => id },
      { title: "status", value: ({ status }) => status },
      { title: "attempts", value: ({ attempts, maxAttempts }) => `${attempts} of ${maxAttempts}`, align: "right" },
      { title: "summary", value: ({ summary }) => summary ?? "" },
    ],
    "no stages",
  );
  for (const blocker of conditions.blockers) out.line(`waiting: ${oneLine(blocker, 200)}`);
  const missing = conditions.conditions.filter(({ met }) => !met);
  if (missing.length > 0) out.line();
  for (const { requirementKey, needs, quorum } of missing)
    out.line(`missing: ${oneLine(requirementKey)}${quorum ? ` (${quorum.have} of ${quorum.need})` : ""} — ${oneLine(needs, 300)}`);
  if (journal.length > 0) out.line();
  for (const { category, summary } of journal.slice(-10)) out.line(`${category}: ${oneLine(summary, 200)}`);
}

type Work = As & { stage: string; summary?: string; evidence?: string[] };
const withWork = (command: Command) =>
  command
    .requiredOption("--stage <id>", "the current stage")
    .option("--summary <text>", "what was done and found; else from standard input")
    .option("--evidence <key=value>", "repeat for more", collect);

function addWorking(workflow: Command) {
  define<Work & { status: string; outcome?: string; ref?: string[] }>(workflow, {
    usage: "checkpoint <run>",
    summary: "end an attempt at the current stage",
    details: "Ends with 1 when the stage must be tried again or the run has failed.",
    examples: [
      "kxm workflow checkpoint run_0190… --stage build --status passed --summary built --evidence 'test log=ci/42'",
      "kxm workflow checkpoint run_0190… --stage review --status passed --summary ok --ref review=msg_1 --ref review=msg_2",
    ],
    options: (command) =>
      withWork(command)
        .requiredOption("--status <status>", "passed, warning or failed")
        .option("--outcome <word>", "a declared outcome of the stage")
        .option("--ref <key=message>", "a peer's answered message; repeat for more", collect),
    run: async (call) => {
      const { stage, status, outcome, evidence, ref } = call.options;
      const refs = new Map<string, string[]>();
      for (const [key, id] of (ref ?? []).map((pair) => Object.entries(pairs([pair], "--ref")!)[0]!)) refs.set(key, [...(refs.get(key) ?? []), id]);
      const body = {
        stageId: stage,
        status,
        summary: await summaryOf(call),
        ...(outcome && { outcome }),
        ...(evidence && { evidence: pairs(evidence, "--evidence") }),
        ...(refs.size > 0 && { evidenceRefs: Object.fromEntries([...refs].map(([key, messageIds]) => [key, { messageIds }])) }),
      };
      const answer = await (await me(call)).ask<{ run: WorkflowRun; retry: boolean; completed: boolean; instruction: string }>(
        "POST",
        run(call.args[0]!, "checkpoints"),
        { body },
      );
      call.out.result(answer.body, (out) => out.line(answer.body.instruction));
      return answer.body.retry || answer.body.run.status === "failed" ? EXIT.failed : EXIT.ok;
    },
  });
  define<Work & { signal: string; timeout?: number }>(workflow, {
    usage: "wait <run>",
    summary: "put a run to sleep until a signed signal",
    examples: ["kxm workflow wait run_0190… --stage build --signal ci --summary 'CI runs' --timeout 2h"],
    options: (command) =>
      withWork(command)
        .requiredOption("--signal <key>", "the signal that resumes it")
        .option("--timeout <span>", "how long at most (default 1d)", duration(1_000, 2_592_000_000)),
    run: async (call) => {
      const { stage, signal, timeout, evidence } = call.options;
      const body = {
        stageId: stage,
        signalKey: signal,
        summary: await summaryOf(call),
        ...(timeout && { timeoutMs: timeout }),
        ...(evidence && { evidence: pairs(evidence, "--evidence") }),
      };
      const answer = await (await me(call)).ask<{ instruction: string }>("POST", run(call.args[0]!, "waits"), { body });
      call.out.result(answer.body, (out) => out.line(answer.body.instruction));
    },
  });
  define<
    As & {
      category: string;
      summary?: string;
      stage?: string;
      area?: string;
      severity?: string;
      evidence?: string[];
      details?: string;
      related?: string[];
    }
  >(workflow, {
    usage: "record <run>",
    summary: "write into the journal of a run",
    examples: ["kxm workflow record run_0190… --category lesson --summary 'Pin the clock' --evidence class:flaky_clock --stage build"],
    options: (command) =>
      command
        .requiredOption(
          "--category <word>",
          "plan, decision, contradiction, error, lesson, observation, hypothesis, experiment, state-change, skill-candidate",
        )
        .option("--summary <text>", "one or two sentences; else from standard input")
        .option("--stage <id>", "a stage of the run")
        .option("--area <word>", `${AREAS.join(", ")}; the stage's when left out`)
        .option("--severity <word>", "info, warning or error")
        .option("--details <text>", "more")
        .option("--evidence <line>", "repeat for more", collect)
        .option("--related <entry>", "an entry of the same run; repeat for more", collect),
    run: async (call) => {
      const { category, stage, area, severity, details, evidence = [], related = [] } = call.options;
      const body = {
        category,
        summary: await summaryOf(call),
        evidence,
        relatedEntryIds: related,
        ...(stage && { stageId: stage }),
        ...(area && { area }),
        ...(severity && { severity }),
        ...(details && { details }),
      };
      const answer = await (await me(call)).ask<{ entry: { id: string } }>("POST", run(call.args[0]!, "journal"), { body });
      call.out.result(answer.body, (out) => out.line(answer.body.entry.id));
    },
  });
}

const summaryOf = async ({ options, world }: Call<{ summary?: string }>): Promise<string> => options.summary ?? (await readText([], world));

function addAdministering(workflow: Command) {
  define<TargetOptions & { stage: string; key: string; reason: string }>(workflow, {
    usage: "degrade <run>",
    summary: "lower the quorum of a requirement for the current attempt, as the admin",
    examples: ["kxm workflow degrade run_0190… --stage review --key review --reason 'bob is away'"],
    options: (command) =>
      command
        .requiredOption("--stage <id>", "the current stage")
        .requiredOption("--key <key>", "the requirement")
        .requiredOption("--reason <text>", "why; kept in the journal and the audit"),
    run: async ({ args: [id], options, out, world }): Promise<Ended> => {
      const body = { stageId: options.stage, requirementKey: options.key, reason: options.reason };
      const answer = await ask(asOperator(findTarget(world, options)), "POST", run(id!, "degradations"), {
        body,
        headers: CLI_HEADERS,
        signal: world.stopping,
      });
      out.result(answer.body, () =>
        out.line(
          `${oneLine(options.key)} now needs ${answer.body.approval.approvedMinProducers} instead of ${answer.body.approval.policyMinProducers} for this attempt`,
        ),
      );
    },
  });
  define<TargetOptions>(workflow, {
    usage: "definitions",
    summary: "list the definitions in force",
    examples: ["kxm workflow definitions"],
    run: async ({ options, out, world }) => {
      const { body } = await ask<{ definitions: { id: string; project: string; target: string; source: string; stages: unknown[] }[] }>(
        asOperator(findTarget(world, options)),
        "GET",
        "/v1/workflow-definitions",
        { signal: world.stopping },
      );
      out.result(body, () =>
        out.table(
          body.definitions,
          [
            { title: "definition", value: ({ id }) => id },
            { title: "project", value: ({ project }) => project },
            { title: "coordinator", value: ({ target }) => target },
            { title: "source", value: ({ source }) => source },
            { title: "stages", value: ({ stages }) => stages.length, align: "right" },
          ],
          "None. KXM_WEBHOOK_WORKFLOWS_FILE names the file they are read from.",
        ),
      );
    },
  });
  define<TargetOptions>(workflow, {
    usage: "reload",
    summary: "have the hub read its definitions again",
    details: "A file with problems keeps the old set in force and ends with 1.",
    examples: ["kxm workflow reload"],
    run: async ({ options, out, world }) => {
      const { body } = await ask<{ count: number }>(asOperator(findTarget(world, options)), "POST", "/v1/workflow-definitions/reload", {
        headers: CLI_HEADERS,
        signal: world.stopping,
      });
      out.result(body, () => out.line(`${body.count} definitions in force`));
    },
  });
}
