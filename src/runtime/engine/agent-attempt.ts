// Carries out one attempt of an agent: workspace, prompt, program, answer. Answers the events that record what was seen; decides nothing.

import type { HarnessId } from "../../protocol/project-files.ts";
import { VERSION } from "../../protocol/version.ts";
import type { Clock } from "../clock.ts";
import { echo } from "../harness/echo.ts";
import { environmentFor } from "../harness/environment.ts";
import { notExecuted } from "../harness/launch.ts";
import { priced } from "../harness/prices.ts";
import type { ProcessMark } from "../harness/process.ts";
import type { Failure, Turn, Usage } from "../harness/result.ts";
import { commandLine, HARNESS_TABLE } from "../harness/table.ts";
import type { PlanStep } from "../project/plan.ts";
import type { NewEvent } from "../store/events.ts";
import { artifactPiece } from "./artifacts.ts";
import type { EngineContext } from "./context.ts";
import { readDeclaration } from "./declaration.ts";
import { piece } from "./evidence.ts";
import { type Assignment, type Attempt, type Execution, stepOf } from "./execution.ts";
import type { Changes, EvidencePiece } from "./local.ts";
import { bounded, RUNTIME_STOPPED } from "./moves.ts";
import { composePrompt, instructionsOf } from "./prompt.ts";
import { type End, type Stop, startProgram, watchProgram } from "./supervise.ts";
import { keepTranscript } from "./transcript.ts";
import { prepareWorkspace } from "./workspaces.ts";

/** What an attempt's work needs to reach: the run it belongs to and the way to record its process. */
export type Work = {
  context: EngineContext;
  run: Execution;
  attempt: Attempt;
  stop: Stop;
  /** @throws RuntimeRefusal store_fenced when the run is another supervisor's by now */
  confirm: () => void;
  /** Records events at once: the process before it is waited for. */
  record: (events: NewEvent[]) => void;
};

const identityOf = (run: Execution, attempt: Attempt, agentId?: string) => ({
  stepId: run.visit!.stepId,
  stepAttempt: run.visit!.stepAttempt,
  attemptId: attempt.attemptId,
  ...(attempt.assignmentId && { assignmentId: attempt.assignmentId }),
  ...(agentId && { agentId }),
});

/** Runs or re-attaches one attempt. @returns its closing events, or undefined when it was left to another supervisor */
export async function workAgent(work: Work): Promise<NewEvent[] | undefined> {
  const { context, run, attempt } = work;
  const { clock, machine } = context;
  const watching = { programs: machine.programs, clock };
  const step = stepOf(run, run.visit!.stepId);
  const assignment = run.visit!.assignments.find(({ assignmentId }) => assignmentId === attempt.assignmentId)!;
  const agent = run.plan.agents[assignment.agentId]!;
  const row = HARNESS_TABLE[agent.harness];
  const { promptHash, displayTitle } = context.store.read.runs.find(run.runId)!;
  const prompt = promptHash ? (context.prompts.prompt(promptHash) ?? "") : "";
  if (agent.harness === "echo") return echoed(work, step, assignment, prompt, displayTitle ?? run.plan.workflowId);
  const limit = { attemptId: attempt.attemptId, folder: attempt.folder, drainMs: row.drainMs, stop: work.stop };
  const limitMs = attempt.timeoutMs;
  if (attempt.status === "executing" && attempt.process) {
    const left = limitMs - Math.max(0, clock.now() - (attempt.startedAt ?? attempt.createdAt));
    const end = await watchProgram(watching, { ...limit, limitMs: Math.max(left, 0) }, attempt.process);
    return end && conclude(work, step, assignment, end, row.read);
  }
  await prepareWorkspace(context, run, attempt);
  const full = composePrompt(run, step, { agentId: agent.id, workspace: attempt.workspace }, prompt);
  const start = {
    access: attempt.workspace.access,
    model: agent.model,
    sessionId: attempt.conversation!,
    folder: attempt.folder,
    command: agent.command,
  };
  const argv = commandLine(row, start, full, (program) => machine.programs.find(program, context.env, attempt.workspace.path));
  if (!argv) {
    const name = row.program ?? agent.command![0]!;
    return failed(work, step, assignment, {
      class: "harness_missing",
      sentence: `the program ${name} is not installed on this machine`,
      retryable: false,
    });
  }
  const env = environmentFor(context.env, [...row.env, ...agent.env], { ...row.settings?.(start), KXM_RUN_ID: run.runId, KXM_STEP_ID: step.id });
  keepTranscript(context, run.runId, attempt.attemptId, "prompt", full);
  const version = row.program ? await soon(clock, machine.programs.version(row, argv[0]!, context.env)) : undefined;
  const asked = work.stop.said();
  if (asked) return asked === "stop" ? stopped(work, assignment, 0) : undefined; // nothing began: what is to go on later begins then
  const launched = await startProgram(
    machine.programs,
    {
      attemptId: attempt.attemptId,
      folder: attempt.folder,
      argv,
      cwd: attempt.workspace.path,
      env,
      stdin: row.prompt === "stdin" ? full : "",
      files: row.files?.(start),
    },
    { confirm: work.confirm, record: (mark) => work.record(executing(run, attempt, assignment, { mark, version })) },
  );
  const end = await watchProgram(watching, { ...limit, limitMs }, launched.mark, launched.ended);
  return end && conclude(work, step, assignment, end, row.read);
}

/** A program that takes long to say its version does not hold up its work for it. */
const VERSION_MS_MAX = 3000;
const soon = (clock: Clock, version: Promise<string | undefined>): Promise<string | undefined> => {
  const late = Promise.withResolvers<undefined>();
  const callOff = clock.after(VERSION_MS_MAX, () => late.resolve(undefined));
  return Promise.race([version, late.promise]).finally(callOff);
};

function executing(run: Execution, attempt: Attempt, assignment: Assignment, started?: { mark: ProcessMark; version?: string }): NewEvent[] {
  const identity = identityOf(run, attempt, assignment.agentId);
  const executor = { id: "local", kind: "local" as const, executorVersion: VERSION, harness: run.plan.agents[assignment.agentId]!.harness };
  return [
    ...(started
      ? [{ type: "workspace.materialized" as const, payload: { ...identity, status: "created" as const }, local: { workspace: attempt.workspace } }]
      : []),
    {
      type: "attempt.status_changed",
      payload: { ...identity, status: "executing", previousStatus: "created" },
      local: started && { process: started.mark },
    },
    {
      type: "assignment.executing",
      payload: {
        ...identity,
        status: "executing",
        ...(started?.version && { executor: { ...executor, harnessVersion: started.version.slice(0, 128) } }),
      },
    },
  ];
}

function echoed(work: Work, step: PlanStep, assignment: Assignment, prompt: string, title: string): NewEvent[] {
  const { run, attempt } = work;
  const keys = step.requiredEvidence.filter(({ kind }) => kind === "assignment-result").map(({ key }) => key);
  for (const capture of [run.plan.planHash, run.plan.reproOracle]) if (capture?.step === step.id) keys.push(capture.evidenceKey);
  const agent = run.plan.agents[assignment.agentId]!;
  const reply = echo(instructionsOf(step, prompt) || agent.instructions, title, [...new Set(keys)]);
  const turn: Turn = { reply, usage: { inputTokens: 0, outputTokens: 0, cost: 0, currency: run.plan.limits.currency, costKind: "reported" } };
  return [...executing(run, attempt, assignment), ...closing(work, step, assignment, turn, 0, [])];
}

/** Nothing is there to read when the program could not even be executed. */
const notStarted = (words: string): Turn => ({
  failure: { class: "harness_missing", sentence: `the program ${words}`, retryable: false },
  usage: { costKind: "unknown" },
});

/** What the end of a program means. */
async function conclude(work: Work, step: PlanStep, assignment: Assignment, end: End, read: (output: End["output"]) => Turn): Promise<NewEvent[]> {
  const { context, run, attempt } = work;
  keepTranscript(context, run.runId, attempt.attemptId, "stdout", end.output.stdout);
  keepTranscript(context, run.runId, attempt.attemptId, "stderr", end.output.stderr);
  const changes = await context.machine.worktrees.capture(context.root, attempt.workspace, `${run.plan.workflowId}: ${step.id} (${run.runId})`);
  if (end.how === "stopped") return stopped(work, assignment, end.wallMs, read(end.output));
  const words = end.how === "ended" ? notExecuted(end.output) : undefined;
  const turn = words === undefined ? turnOf(end, read, attempt.timeoutMs) : notStarted(words);
  return closing(work, step, assignment, { ...turn, tail: tailOf(end, run.plan.agents[assignment.agentId]!.harness) }, end.wallMs, changes);
}

const TAIL_MAX = 2000;
/** A program's last words, for people; of one without structured output what it answered will do. */
function tailOf({ output: { stderr, stdout } }: End, harness: HarnessId): string {
  const said = stderr.trim();
  return (said === "" && harness === "command" ? stdout.trim() : said).slice(-TAIL_MAX);
}

function turnOf(end: End, read: (output: End["output"]) => Turn, timeoutMs: number): Turn {
  const turn = read(end.output);
  if (end.how === "timeout")
    return {
      ...turn,
      reply: undefined,
      failure: { class: "timeout", sentence: `the agent did not end within ${timeoutMs / 1000} s`, retryable: true },
    };
  if (end.how === "suspended")
    return {
      ...turn,
      reply: undefined,
      failure: { class: RUNTIME_STOPPED, sentence: "the Runtime was stopped while the agent worked", retryable: true },
    };
  if (end.how === "lost")
    return { ...turn, reply: undefined, failure: { class: "interrupted", sentence: "the agent's program was ended from outside", retryable: true } };
  return turn;
}

/** A stopped attempt has no result; what it did stays on its branch. The time it worked counts, and so does what it cost, as far as it said. */
function stopped({ run, attempt }: Work, assignment: Assignment, wallMs: number, turn?: Turn): NewEvent[] {
  const identity = identityOf(run, attempt, assignment.agentId);
  const timing = { durationMs: wallMs, agentMs: wallMs };
  const usage = turn && reported(priced(turn.usage, modelOf(run, assignment, turn), run.plan.prices));
  return [
    {
      type: "attempt.status_changed",
      payload: {
        ...identity,
        status: "cancelled",
        previousStatus: attempt.status === "created" ? "created" : "executing",
        timing,
      },
    },
    ...(usage
      ? [
          {
            type: "assignment.result_recorded" as const,
            payload: { ...identity, status: "result_recorded" as const, outcome: "cancelled", timing, usage },
          },
        ]
      : []),
    { type: "assignment.terminal", payload: { ...identity, status: "terminal", outcome: "cancelled" } },
  ];
}

export const failed = (work: Work, step: PlanStep, assignment: Assignment, failure: Failure): NewEvent[] =>
  closing(work, step, assignment, { failure, usage: { costKind: "unknown" } }, 0, []);

/** The events that end an attempt: what it said, what it cost, what it changed. */
function closing(work: Work, step: PlanStep, assignment: Assignment, turn: Turn & { tail?: string }, wallMs: number, changes: Changes[]): NewEvent[] {
  const { run, attempt } = work;
  const result = declared(work, step, assignment, turn);
  const usage = priced(turn.usage, modelOf(run, assignment, turn), run.plan.prices);
  const identity = identityOf(run, attempt, assignment.agentId);
  const timing = { durationMs: wallMs, agentMs: wallMs };
  const error = result.failure && {
    class: result.failure.class,
    component: run.plan.agents[assignment.agentId]!.harness,
    retryable: result.failure.retryable,
  };
  const status = result.failure ? "failed" : "passed";
  const words = bounded(result.failure?.sentence ?? result.summary ?? result.outcome!);
  return [
    ...(turn.model ? [resolved(work, assignment, turn.model)] : []),
    { type: "attempt.status_changed", payload: { ...identity, status, timing, ...(error && { error }) }, local: { failure: result.failure } },
    {
      type: "assignment.result_recorded",
      payload: {
        ...identity,
        status: "result_recorded",
        outcome: result.failure ? "failed" : result.outcome!,
        ...(run.plan.sync.results === "summary" && { summary: words }),
        timing,
        usage: reported(usage),
        ...(error && { error }),
        ...(result.evidence.length > 0 && { evidenceRefs: result.evidence.slice(0, 64).map(({ id, kind, hash }) => ({ id, kind, hash })) }),
      },
      local: { evidence: result.evidence, changes, failure: result.failure, summary: words, ...(result.failure && turn.tail && { tail: turn.tail }) },
    },
  ];
}

const modelOf = (run: Execution, { agentId }: Assignment, turn: Turn): string | undefined => turn.model ?? run.plan.agents[agentId]!.model?.model;

const reported = (usage: Usage) => Object.fromEntries(Object.entries(usage).filter(([, value]) => value !== undefined)) as Usage;

function resolved({ run, attempt }: Work, assignment: Assignment, model: string): NewEvent {
  const asked = run.plan.agents[assignment.agentId]!.model;
  const provider = asked?.provider ?? run.plan.agents[assignment.agentId]!.harness;
  return { type: "model.resolved", payload: { ...identityOf(run, attempt, assignment.agentId), model: { provider, model: model.slice(0, 200) } } };
}

type Declared = { outcome?: string; summary?: string; evidence: EvidencePiece[]; failure?: Failure };

/** The reply as an outcome of this step, or the failure that it is. */
function declared({ context, attempt }: Work, step: PlanStep, assignment: Assignment, turn: Turn): Declared {
  const unknown = (why: string): Declared => ({
    evidence: [],
    failure: { class: "outcome_unknown", sentence: `no outcome was declared: ${why}`, retryable: true },
  });
  const unsupported = (why: string): Declared => ({ evidence: [], failure: { class: "evidence_missing", sentence: why, retryable: true } });
  if (turn.failure) return { evidence: [], failure: turn.failure };
  const reading = readDeclaration(turn.reply ?? "");
  if (reading.kind === "unknown") return unknown(reading.why);
  const { outcome, summary, evidence = {} } = reading.declaration;
  if (!step.outcomes.includes(outcome)) return unknown(`${outcome} is not one of ${step.outcomes.join(", ")}`);
  const pieces: EvidencePiece[] = [];
  for (const [key, text] of Object.entries(evidence)) {
    const producer = assignment.agentId;
    if (step.requiredEvidence.some((required) => required.key === key && required.kind === "artifact")) {
      const found = artifactPiece(context.newId, { key, producer, path: text, folder: attempt.workspace.path });
      if (typeof found === "string") return unsupported(`${key}: ${found}`);
      pieces.push(found);
      // What an agent says is its own result: it cannot show that a gate passed or somebody approved.
    } else pieces.push(piece(context.newId, { key, kind: "assignment-result", producer, text }));
  }
  return { outcome, summary, evidence: pieces };
}
