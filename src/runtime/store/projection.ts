// What a run looks like now, folded from its events. A pure function: dropping the projection and folding again gives the same state.
import type { SyncPayload, SyncStatus } from "../../protocol/sync-event.ts";
import { isTerminal } from "../../protocol/workflow-file.ts";

/** One step of a run, over all its attempts. */
export type StepState = {
  status: SyncStatus;
  /** The attempt that is current, from 1. */
  attempt: number;
  outcome?: string;
  summary?: string;
  reason?: string;
  enteredAt: number;
  endedAt?: number;
};
/** An assignment that has not ended. */
export type AssignmentState = { stepId?: string; agentId?: string; status: SyncStatus; attemptId?: string };
/** An approval that waits, by the id of its request. */
export type WaitingApproval = { stepId?: string; attempt?: number; summary?: string; reason?: string; contentHash?: string; since: number };
/** An effect whose outcome nobody could prove. */
export type UncertainEffect = { stepId?: string; reason?: string; since: number };

export type RunState = {
  status: SyncStatus;
  workflowId?: string;
  displayTitle?: string;
  stepId?: string;
  steps: Record<string, StepState>;
  /** Transitions taken in all, and by edge `from>to`. */
  transitions: number;
  edges: Record<string, number>;
  /** Open assignments only: a long run must not grow its own state. */
  assignments: Record<string, AssignmentState>;
  approvals: Record<string, WaitingApproval>;
  uncertain: Record<string, UncertainEffect>;
  usage: {
    inputTokens: number;
    outputTokens: number;
    cacheReadTokens: number;
    cacheWriteTokens: number;
    cost: number;
    currency?: string;
    costKind?: string;
  };
  agentMs: number;
  drives: number;
  outcome?: string;
  reason?: string;
  createdAt: number;
  updatedAt: number;
  endedAt?: number;
  lastSequence: number;
};

/** What the fold needs of an event. */
export type FoldableEvent = { sequence: number; eventType: string; occurredAt: number; payload: SyncPayload };

const FINISHED_STEP = ["passed", "failed", "cancelled", "skipped", "completed", "rejected"];
const empty = (at: number): RunState => ({
  status: "created",
  steps: {},
  transitions: 0,
  edges: {},
  assignments: {},
  approvals: {},
  uncertain: {},
  usage: { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, cost: 0 },
  agentMs: 0,
  drives: 0,
  createdAt: at,
  updatedAt: at,
  lastSequence: 0,
});

/** The state after one more event. Changes and returns `state`, which is made when it is missing. */
export function fold(state: RunState | undefined, event: FoldableEvent): RunState {
  const run = state ?? empty(event.occurredAt);
  const [concept] = event.eventType.split(".") as [string];
  run.lastSequence = event.sequence;
  run.updatedAt = event.occurredAt;
  if (concept === "run") foldRun(run, event);
  else if (concept === "step") foldStep(run, event);
  else if (concept === "assignment" || concept === "attempt") foldAssignment(run, event);
  else if (concept === "effect") foldEffect(run, event);
  else if (event.eventType === "approval.recorded") for (const ref of event.payload.suppliedRefs ?? []) delete run.approvals[ref.id];
  return run;
}

function foldRun(run: RunState, { eventType, payload, occurredAt }: FoldableEvent) {
  if (payload.workflowId) run.workflowId = payload.workflowId;
  if (payload.displayTitle) run.displayTitle = payload.displayTitle;
  if (eventType === "run.drive_opened") run.drives++;
  if (eventType === "run.cancel_requested" && payload.status === undefined) run.reason = payload.reason;
  if (payload.status === undefined || isTerminal(run.status)) return;
  run.status = payload.status;
  run.reason = payload.reason;
  if (payload.outcome) run.outcome = payload.outcome;
  if (!isTerminal(run.status)) return;
  run.endedAt = occurredAt;
  run.assignments = {};
  run.approvals = {};
}

function foldStep(run: RunState, { eventType, payload, occurredAt }: FoldableEvent) {
  if (eventType === "step.transitioned") {
    run.transitions++;
    const edge = `${payload.fromStepId ?? payload.stepId}>${payload.toStepId ?? "terminal"}`;
    run.edges[edge] = (run.edges[edge] ?? 0) + 1;
    return;
  }
  if (!payload.stepId) return;
  if (eventType === "step.entered") {
    run.stepId = payload.stepId;
    const attempt = payload.stepAttempt ?? (run.steps[payload.stepId]?.attempt ?? 0) + 1;
    run.steps[payload.stepId] = { status: payload.status ?? "pending", attempt, enteredAt: occurredAt };
    return;
  }
  const step = (run.steps[payload.stepId] ??= { status: "pending", attempt: payload.stepAttempt ?? 1, enteredAt: occurredAt });
  if (payload.stepAttempt) step.attempt = payload.stepAttempt;
  if (payload.status) step.status = payload.status;
  if (payload.outcome) step.outcome = payload.outcome;
  if (payload.summary) step.summary = payload.summary;
  if (payload.reason) step.reason = payload.reason;
  if (eventType === "step.outcome_recorded" || FINISHED_STEP.includes(step.status)) step.endedAt = occurredAt;
  foldApproval(run, payload, occurredAt);
}

/** An approval waits from the step event that shows its request until it is decided or its step goes on. */
function foldApproval(run: RunState, payload: SyncPayload, since: number) {
  const request = payload.evidenceRefs?.find((ref) => ref.kind === "approval-request");
  const { stepId, summary, reason, stepAttempt: attempt } = payload;
  if (request && payload.status === "waiting") run.approvals[request.id] = { stepId, attempt, summary, reason, contentHash: request.hash, since };
  else if (payload.status && payload.status !== "waiting")
    for (const [id, waiting] of Object.entries(run.approvals)) if (waiting.stepId === stepId) delete run.approvals[id];
}

function foldAssignment(run: RunState, { eventType, payload }: FoldableEvent) {
  const { usage, timing, assignmentId: id } = payload;
  if (eventType === "assignment.result_recorded") addUsage(run, usage, timing);
  if (!id) return;
  if (eventType === "assignment.terminal") delete run.assignments[id];
  else {
    const before = run.assignments[id];
    const status = eventType.startsWith("assignment.") ? (payload.status ?? assignmentStatus(eventType)) : (before?.status ?? "accepted");
    run.assignments[id] = {
      stepId: payload.stepId ?? before?.stepId,
      agentId: payload.agentId ?? before?.agentId,
      status,
      attemptId: payload.attemptId ?? before?.attemptId,
    };
  }
}

const assignmentStatus = (eventType: string) => eventType.slice("assignment.".length) as SyncStatus;

function addUsage(run: RunState, usage: SyncPayload["usage"], timing: SyncPayload["timing"]) {
  run.agentMs += timing?.agentMs ?? 0;
  if (!usage) return;
  for (const kind of ["inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "cost"] as const) run.usage[kind] += usage[kind] ?? 0;
  if (usage.currency) run.usage.currency = usage.currency;
  const certainty = (kind: string | undefined) => ["unknown", "estimated", "reported", undefined].indexOf(kind);
  if (certainty(usage.costKind) < certainty(run.usage.costKind)) run.usage.costKind = usage.costKind; // the least certain part names the sum
}

function foldEffect(run: RunState, { eventType, payload, occurredAt }: FoldableEvent) {
  const id = payload.effect?.id;
  if (!id) return;
  if (eventType === "effect.blocked_uncertain") run.uncertain[id] = { stepId: payload.stepId, reason: payload.reason, since: occurredAt };
  else if (eventType === "effect.uncertainty_resolved" || eventType === "effect.settled") delete run.uncertain[id];
}
