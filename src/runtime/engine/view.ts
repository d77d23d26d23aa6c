// A run as people and programs read it: where it stands, what it waits for and what may be done about it, what it used. Made anew for each question.
import { RuntimeRefusal } from "../../protocol/runtime-errors.ts";
import { agentTime } from "./budgets.ts";
import { attemptsOf, type Execution, isOver, stepOf } from "./execution.ts";
import type { Changes, Position } from "./local.ts";
import { RESOLUTIONS } from "./operations.ts";
import type { ProjectEngine, Queued } from "./project-engine.ts";

export type RunView = {
  runId: string;
  workflowId: string;
  title?: string;
  status: string;
  reason?: string;
  createdAt: number;
  startedAt?: number;
  endedAt?: number;
  lastSequence: number;
  queue?: Queued;
  /** Steps in the order of the workflow. */
  steps: {
    id: string;
    kind: string;
    status: string;
    attempts: number;
    outcome?: string;
    summary?: string;
    changes: Pick<Changes, "repositoryId" | "commit" | "branch">[];
  }[];
  current?: {
    stepId: string;
    stepAttempt: number;
    tryNo: number;
    maxAttempts: number;
    since: number;
    attempts: { attemptId: string; kind: string; status: string; agentId?: string; pid?: number }[];
  };
  asked?: { approvalId: string; contentHash: string; content: unknown; since: number };
  waitsFor?: string;
  /** What the gate or agent printed last that kept the run from going on. */
  lastWords?: { stepId: string; text: string };
  uncertain: { effectId: string; stepId: string; reason: string; since: number; resolutions: readonly string[] }[];
  used: { transitions: number; agentMs: number; tokens: number; cost: number; costKnown: boolean; currency: string };
  limits: Execution["plan"]["limits"];
  /** The run whose work it goes on with, from which step. */
  from?: Execution["from"];
  /** Where it began and where it is; `dirty` when the checkout had changes then that are not part of the run. */
  repositories: ({ id: string; path: string } & Position)[];
  planHash: string;
};

/** @throws RuntimeRefusal run_not_found */
export function viewOf(engine: ProjectEngine, runId: string): RunView {
  const stored = engine.project.store.read.runs.view(runId);
  if (!stored) throw new RuntimeRefusal("run_not_found", `there is no run ${runId} in ${engine.project.name}`);
  const run = engine.run(runId);
  const { visit, plan } = run;
  const asked = visit?.asked && !visit.answer && !isOver(run) ? visit.asked : undefined;
  return {
    runId,
    workflowId: plan.workflowId,
    title: stored.displayTitle,
    status: run.status,
    reason: run.reason,
    createdAt: run.createdAt,
    startedAt: run.startedAt,
    endedAt: run.endedAt,
    lastSequence: run.lastSequence,
    queue: engine.queued(runId),
    steps: plan.steps.map((step) => stepView(run, step.id)),
    current: isOver(run) ? undefined : current(run),
    asked: asked && { approvalId: asked.approvalId, contentHash: asked.contentHash, content: asked.content, since: asked.since },
    waitsFor: visit?.status === "waiting" && !asked ? stepOf(run, visit.stepId).signal : undefined,
    lastWords: lastWords(run),
    uncertain: Object.values(run.uncertain).map(({ effectId, stepId, reason, since }) => ({
      effectId,
      stepId,
      reason,
      since,
      resolutions: RESOLUTIONS,
    })),
    used: {
      transitions: run.transitions,
      agentMs: Math.round(agentTime(run, engine.ranMs(runId))),
      tokens: stored.state.usage.inputTokens + stored.state.usage.outputTokens,
      cost: run.cost,
      costKnown: !run.costUnknown,
      currency: plan.limits.currency,
    },
    limits: plan.limits,
    from: run.from,
    repositories: plan.repositories.map((one) => ({ ...one, ...run.repositories[one.id]! })),
    planHash: run.planHash,
  };
}

function stepView(run: Execution, stepId: string): RunView["steps"][number] {
  const { kind } = stepOf(run, stepId);
  const result = run.results[stepId];
  const attempts = run.counts[stepId]?.attempts ?? 0;
  const here = run.visit?.stepId === stepId && !run.visit.outcome && !isOver(run);
  const status = here ? run.visit!.status : attempts === 0 && !result ? "pending" : result?.outcome === "passed" ? "passed" : "failed";
  return {
    id: stepId,
    kind,
    status,
    attempts,
    outcome: result?.outcome,
    summary: result?.summary,
    changes: (result?.changes ?? []).map(({ repositoryId, commit, branch }) => ({ repositoryId, commit, branch })),
  };
}

function lastWords({ visit }: Execution): RunView["lastWords"] {
  const text =
    visit?.outcome && visit.outcome.outcome !== "passed"
      ? (visit.gateAttempts.at(-1) ?? visit.assignments.findLast(({ tail }) => tail))?.tail
      : undefined;
  return text ? { stepId: visit!.stepId, text } : undefined;
}

function current(run: Execution): RunView["current"] {
  const { visit } = run;
  if (!visit) return undefined;
  const agentOf = (assignmentId: string | undefined) => visit.assignments.find((one) => one.assignmentId === assignmentId)?.agentId;
  return {
    stepId: visit.stepId,
    stepAttempt: visit.stepAttempt,
    tryNo: visit.tryNo,
    maxAttempts: stepOf(run, visit.stepId).maxAttempts,
    since: visit.enteredAt,
    attempts: attemptsOf(visit).map(({ attemptId, kind, status, assignmentId, process }) => ({
      attemptId,
      kind,
      status,
      agentId: agentOf(assignmentId),
      pid: process?.pid,
    })),
  };
}
