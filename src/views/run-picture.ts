// A run as a picture: the graph of the ways it took between its steps, and its attempts over time. From the folded projection, so the same for 50,000 events.
import { hasEnded } from "../hub/projection.ts";
import { own } from "../protocol/own.ts";
import type { RunDetail, RunStep, StepAttempt } from "../protocol/runs.ts";
import { timeOf } from "./run-status.tsx";
import type { GraphEdge, GraphNode } from "./ui/graph.tsx";
import { stateOf } from "./ui/status.tsx";
import { took } from "./ui/time.tsx";
import type { TimelineBar } from "./ui/timeline.tsx";

const END = "end-of-run";
const TITLE_SHOWN = 160;

/** What a step is, as far as its events tell: a Runtime does not send the definition. */
type StepKinds = { approvals: ReadonlySet<string>; panels: ReadonlySet<string> };

/** The steps that a person was asked in, and those with several assignments in one attempt. */
export function kindsOf({ projection }: RunDetail, approvalSteps: Iterable<string>): StepKinds {
  const byStep = Map.groupBy(projection.assignments.items, ({ stepId = "" }) => stepId);
  const worked = new Set([...byStep.keys()]);
  return {
    approvals: new Set([...approvalSteps].filter((step) => !worked.has(step))),
    panels: new Set([...byStep].filter(([, assignments]) => new Set(assignments.map(({ agentId }) => agentId)).size > 1).map(([step]) => step)),
  };
}

const GRAPH_STATES: Record<string, GraphNode["state"]> = {
  passed: "ok",
  completed: "ok",
  failed: "bad",
  rejected: "bad",
  expired: "bad",
  running: "run",
  waiting: "attn",
  blocked_uncertain: "attn",
};

const stepState = (step: RunStep, run: RunDetail): string =>
  run.status === "blocked_uncertain" && run.stepId === step.stepId ? "blocked_uncertain" : step.status;

/** How long the attempts of a step took together, in milliseconds. */
const workedFor = (attempts: readonly StepAttempt[]): number => attempts.reduce((sum, { durationMs = 0 }) => sum + durationMs, 0);

function noteOf(step: RunStep, run: RunDetail): string {
  const last = step.attempts.at(-1);
  const state = stepState(step, run);
  const parts = [
    last && last.attempt > 1 && `attempt ${last.attempt}`,
    last?.endedAt !== undefined ? took(workedFor(step.attempts)) : state === "blocked_uncertain" ? "uncertain" : state,
  ];
  return parts.filter(Boolean).join(" · ");
}

/** Steps in the order they were first entered, and the ways between them. An end appears when the run has one. */
export function graphOf(run: RunDetail, { approvals, panels }: StepKinds): { nodes: GraphNode[]; edges: GraphEdge[] } {
  const { steps, edges } = run.projection;
  const kindOf = (stepId: string): GraphNode["kind"] => (approvals.has(stepId) ? "approval" : panels.has(stepId) ? "panel" : "agent");
  const nodes = steps.items.map(
    (step): GraphNode => ({
      id: step.stepId,
      name: step.stepId,
      note: noteOf(step, run),
      kind: kindOf(step.stepId),
      state: GRAPH_STATES[stepState(step, run)] ?? "todo",
    }),
  );
  const ended = hasEnded(run.status ?? null);
  if (ended) {
    const state = run.status === "completed" ? "ok" : run.status === "failed" ? "bad" : "todo";
    nodes.push({ id: END, name: run.status!, note: "the end", kind: "end", state, href: "#timeline" });
  }
  const drawn = edges.items.map(({ from, to, outcome, times }) => ({
    from,
    to: to ?? END,
    done: true,
    label: times > 1 ? `${outcome}, ${times} times` : outcome,
  }));
  const last = steps.items.at(-1)?.stepId;
  // A run that was stopped in the middle of a step took no way to its end.
  if (ended && last && !drawn.some(({ to }) => to === END)) drawn.push({ from: run.stepId ?? last, to: END, done: true, label: run.status! });
  return { nodes, edges: drawn };
}

const TONES: Record<string, TimelineBar["tone"]> = {
  passed: "ok",
  completed: "ok",
  failed: "bad",
  rejected: "bad",
  expired: "bad",
  waiting: "attn",
  blocked_uncertain: "attn",
  cancelled: "mute",
  skipped: "mute",
};

function barOf(step: RunStep, attempt: StepAttempt, run: RunDetail): TimelineBar[] {
  const from = timeOf(attempt.startedAt);
  if (from === undefined) return [];
  const ended = timeOf(attempt.endedAt);
  const over = timeOf(run.endedAt);
  const to = ended ?? over;
  const word = attempt.outcome ?? attempt.status;
  const open = ended === undefined && over === undefined;
  const tone = (open ? TONES[stepState(step, run)] : (own(TONES, word) ?? TONES[attempt.status])) ?? (open ? "run" : "mute");
  const lasted = to === undefined ? "" : `, ${took(Math.max(0, to - from))}`;
  return [
    { from, ...(to !== undefined && { to: Math.max(from, to) }), tone, title: `attempt ${attempt.attempt}${lasted}, ${word}`.slice(0, TITLE_SHOWN) },
  ];
}

/** One row per step, a bar per kept attempt. `since` is set while the step is going on. */
export function timelineOf(run: RunDetail) {
  return run.projection.steps.items.map((step) => {
    const last = step.attempts.at(-1);
    const since = last?.endedAt === undefined && !hasEnded(run.status ?? null) ? timeOf(last?.startedAt) : undefined;
    return {
      id: `step-${step.stepId}`,
      name: step.stepId,
      state: stateOf(stepState(step, run)),
      bars: step.attempts.flatMap((attempt) => barOf(step, attempt, run)),
      since,
      worked: workedFor(step.attempts),
    };
  });
}
