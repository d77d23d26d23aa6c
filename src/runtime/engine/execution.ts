// What the engine knows of a run, folded from its events and nothing else: after a crash the same events give the same knowledge.

import type { SyncPayload } from "../../protocol/sync-event.ts";
import { isTerminal, type RUN_STATUSES } from "../../protocol/workflow-file.ts";
import type { ProcessMark } from "../harness/process.ts";
import type { Failure } from "../harness/result.ts";
import type { Plan, PlanStep } from "../project/plan.ts";
import type { EventRow, NewEvent } from "../store/events.ts";
import type {
  ApprovalContent,
  AttemptLocal,
  BoundEvidence,
  Carried,
  Changes,
  CreatedLocal,
  EndedLocal,
  EnteredLocal,
  EvidencePiece,
  OutcomeLocal,
  Position,
  ProcessLocal,
  ResultLocal,
  StatusLocal,
  StepResult,
  WaitingLocal,
} from "./local.ts";
import { takesNoAttempt } from "./moves.ts";

export type RunStatus = (typeof RUN_STATUSES)[number];

/** One try: of an assignment, or of a gate. */
export type Attempt = AttemptLocal & {
  attemptId: string;
  assignmentId?: string;
  status: "created" | "executing" | "ended" | "blocked_uncertain";
  process?: ProcessMark;
  leaseFence?: number;
  /** Wall time of its creation and of its process. */
  createdAt: number;
  startedAt?: number;
  endedAs?: string;
  failure?: Failure;
  /** Of a gate: its answer and what shows it. */
  passed?: boolean;
  evidence: EvidencePiece[];
  tail?: string;
};
export type Assignment = {
  assignmentId: string;
  agentId: string;
  instanceNo: number;
  status: "created" | "accepted" | "dispatched" | "executing" | "result_recorded" | "retry_pending" | "blocked_uncertain" | "terminal";
  attempts: Attempt[];
  /** Of a recorded result. */
  outcome?: string;
  summary?: string;
  evidence: EvidencePiece[];
  changes: Changes[];
  failure?: Failure;
  /** Of one that failed: what its program said last. */
  tail?: string;
};
/** Somebody is asked and has not answered. */
export type Asked = { approvalId: string; contentHash: string; content: ApprovalContent; since: number; deadline?: number };
/** The step attempt that is current. */
export type Visit = {
  stepId: string;
  /** Counts over the whole run; bound to evidence. */
  stepAttempt: number;
  /** Which entry into the step this is, and the attempt within it. */
  visit: number;
  tryNo: number;
  status: "running" | "waiting" | "decided";
  enteredAt: number;
  assignments: Assignment[];
  gateAttempts: Attempt[];
  asked?: Asked;
  /** A decision on `asked`. */
  answer?: { outcome: "approved" | "rejected" | "cancelled"; actor: string; reason?: string };
  waitDeadline?: number;
  signal?: { status: string; summary?: string; actor: string };
  outcome?: StepResult;
};
export type Uncertain = { effectId: string; attemptId: string; stepId: string; reason: string; since: number };

export type Execution = {
  runId: string;
  plan: Plan;
  planHash: string;
  status: RunStatus;
  reason?: string;
  createdAt: number;
  startedAt?: number;
  endedAt?: number;
  lastSequence: number;
  /** The run whose work this one goes on with, and the step it begins at. */
  from?: Pick<Carried, "runId" | "stepId">;
  drives: number;
  /** By repository. */
  repositories: Record<string, Position>;
  visit?: Visit;
  /** Step attempts and entries so far, by step. */
  counts: Record<string, { attempts: number; visits: number }>;
  transitions: number;
  /** Transitions by `step>outcome`. */
  edges: Record<string, number>;
  /** The last result of each step, and all evidence of results that were recorded. */
  results: Record<string, StepResult>;
  evidence: BoundEvidence[];
  /** How often in a row a step ended the same way with the same evidence. */
  repeats: Record<string, { hash: string; times: number }>;
  pinned: Carried["pinned"];
  agentMs: number;
  cost: number;
  costUnknown: boolean;
  /** Pauses that somebody approved: not asked again below these numbers. */
  allowed: { cost?: number; noProgress: Record<string, number> };
  cancel?: { actor: string; reason?: string };
  /** Set while what runs is being stopped: how the run ends after that. */
  ending?: { as: "failed" | "cancelled"; reason?: string };
  uncertain: Record<string, Uncertain>;
};

/** A run about which only its plan is known. */
export const emptyExecution = (runId: string, plan: Plan, planHash: string): Execution => ({
  runId,
  plan,
  planHash,
  status: "created",
  createdAt: 0,
  lastSequence: 0,
  drives: 0,
  repositories: {},
  counts: {},
  transitions: 0,
  edges: {},
  results: {},
  evidence: [],
  repeats: {},
  pinned: {},
  agentMs: 0,
  cost: 0,
  costUnknown: false,
  allowed: { noProgress: {} },
  uncertain: {},
});

/** What the fold needs of an event: stored ones have it, and so have those about to be stored. */
export type Happened = { type: NewEvent["type"]; payload: SyncPayload; local?: Record<string, unknown>; at: number };
export const fromRow = (row: EventRow): Happened => {
  const { local, ...payload } = row.payload;
  return { type: row.eventType, payload: payload as SyncPayload, local, at: row.occurredAt };
};

export const stepOf = (execution: Execution, stepId: string): PlanStep => execution.plan.steps.find(({ id }) => id === stepId)!;
export const isOver = (execution: Execution): boolean => isTerminal(execution.status);

/** Every attempt of the current visit. */
export const attemptsOf = (visit: Visit | undefined): Attempt[] =>
  visit ? [...visit.assignments.flatMap(({ attempts }) => attempts), ...visit.gateAttempts] : [];
/** Attempts of the current visit that have not ended. */
export const openAttempts = (execution: Execution): Attempt[] => attemptsOf(execution.visit).filter(({ status }) => status !== "ended");

type Learner = (run: Execution, payload: SyncPayload, local: any, at: number) => void;
const LEARNERS: Partial<Record<Happened["type"], Learner>> = {
  "run.created": learnCreated,
  "run.status_changed": learnStatus,
  "run.drive_opened": (run) => void run.drives++,
  "run.cancel_requested": (run, payload) => void (run.cancel = { actor: payload.actor?.id ?? "unknown", reason: payload.reason }),
  "step.entered": learnEntered,
  "step.status_changed": learnStepStatus,
  "step.outcome_recorded": learnOutcome,
  "step.transitioned": learnTransition,
  "approval.recorded": learnDecision,
  "assignment.created": learnAssignmentCreated,
  "attempt.created": learnAttemptCreated,
  "attempt.status_changed": learnAttemptStatus,
  "effect.blocked_uncertain": learnUncertain,
  "effect.uncertainty_resolved": learnCertain,
  "effect.settled": learnCertain,
};

/** The knowledge after one more event. Changes `run`. */
export function learn(run: Execution, event: Happened): void {
  run.lastSequence++;
  const learner = LEARNERS[event.type] ?? (event.type.startsWith("assignment.") ? learnAssignment : undefined);
  learner?.(run, event.payload, event.local, event.at);
}

function learnCreated(run: Execution, _: SyncPayload, local: CreatedLocal, at: number): void {
  run.createdAt = at;
  for (const [id, pinned] of Object.entries(local.repositories)) run.repositories[id] = { ...pinned, head: pinned.base };
  if (!local.carried) return;
  const { runId, stepId, repositories, results, evidence, pinned } = structuredClone(local.carried);
  run.from = { runId, stepId };
  Object.assign(run.repositories, repositories);
  Object.assign(run, { results, evidence, pinned });
}

function learnStatus(run: Execution, payload: SyncPayload, local: StatusLocal | undefined, at: number): void {
  if (isOver(run)) return;
  if (payload.status === "cancelling") run.ending = { as: local?.endAs ?? "cancelled", reason: payload.reason };
  run.status = payload.status as RunStatus;
  run.reason = payload.reason;
  if (run.status === "running") run.startedAt ??= at;
  if (isOver(run)) run.endedAt = at;
}

function learnEntered(run: Execution, payload: SyncPayload, local: EnteredLocal, at: number): void {
  const stepId = payload.stepId!;
  const count = (run.counts[stepId] ??= { attempts: 0, visits: 0 });
  const again = run.visit?.stepId === stepId && run.visit.visit === local.visit;
  count.attempts = payload.stepAttempt!;
  count.visits = local.visit;
  run.visit = {
    stepId,
    stepAttempt: payload.stepAttempt!,
    visit: local.visit,
    tryNo: again ? run.visit!.tryNo + (takesNoAttempt(run.visit!.outcome?.failure) ? 0 : 1) : 1,
    status: "running",
    enteredAt: at,
    assignments: [],
    gateAttempts: [],
  };
}

function learnStepStatus(run: Execution, payload: SyncPayload, local: WaitingLocal | undefined, at: number): void {
  const visit = run.visit;
  if (!visit || visit.stepId !== payload.stepId) return;
  if (payload.status === "waiting") {
    visit.status = "waiting";
    const request = payload.evidenceRefs?.find(({ kind }) => kind === "approval-request");
    if (request && local?.approval) {
      visit.asked = { approvalId: request.id, contentHash: request.hash!, content: local.approval, since: at, deadline: local.deadline };
      visit.answer = undefined;
    } else visit.waitDeadline = local?.deadline ?? Number.POSITIVE_INFINITY;
  } else if (payload.status === "running") {
    visit.status = "running";
    visit.asked = undefined;
    visit.answer = undefined;
  }
}

function learnDecision(run: Execution, payload: SyncPayload): void {
  const asked = run.visit?.asked;
  if (!run.visit) return;
  const decided = payload.suppliedRefs?.[0];
  const actor = payload.actor?.id ?? "unknown";
  if (decided?.kind === "signal") {
    run.visit.signal = { status: payload.outcome!, summary: payload.summary, actor };
    return;
  }
  if (!asked || decided?.id !== asked.approvalId) return;
  run.visit.answer = { outcome: payload.outcome as "approved", actor, reason: payload.reason };
  if (payload.outcome !== "approved") return;
  if (asked.content.purpose === "cost") run.allowed.cost = run.cost;
  if (asked.content.purpose === "no-progress") run.allowed.noProgress[asked.content.stepId] = run.repeats[asked.content.stepId]?.times ?? 0;
}

function learnOutcome(run: Execution, payload: SyncPayload, local: OutcomeLocal): void {
  const stepId = payload.stepId!;
  const result: StepResult = {
    stepId,
    stepAttempt: payload.stepAttempt!,
    outcome: payload.outcome!,
    summary: local.summary,
    declared: local.declared,
    evidence: local.evidence ?? [],
    changes: local.changes ?? [],
    failure: local.failure,
    evidenceHash: local.evidenceHash,
  };
  run.results[stepId] = result;
  run.evidence.push(...result.evidence.map(({ text: _, ...piece }) => ({ ...piece, stepId, stepAttempt: result.stepAttempt })));
  const before = run.repeats[stepId];
  const hash = `${result.outcome}:${result.evidenceHash}`;
  if (!takesNoAttempt(result.failure)) run.repeats[stepId] = { hash, times: before?.hash === hash ? before.times + 1 : 1 };
  if (result.outcome === "passed") {
    for (const { repositoryId, commit, branch } of result.changes) Object.assign(run.repositories[repositoryId]!, { head: commit, branch });
    const captured = (capture: Plan["planHash"]) => capture?.step === stepId && hashOf(result.evidence, capture.evidenceKey);
    run.pinned.planHash = captured(run.plan.planHash) || run.pinned.planHash;
    run.pinned.oracle ??= captured(run.plan.reproOracle) || undefined;
  }
  if (run.visit?.stepId === stepId) run.visit.outcome = result;
  if (run.visit) run.visit.status = "decided";
}

/** One hash over all pieces of a key, whatever order they came in. */
export function hashOf(evidence: EvidencePiece[], key: string): string | undefined {
  const hashes = evidence.filter((piece) => piece.key === key).map(({ hash }) => hash);
  return hashes.length > 0 ? [...new Set(hashes)].sort().join("\n") : undefined;
}

function learnTransition(run: Execution, payload: SyncPayload): void {
  run.transitions++;
  const edge = `${payload.fromStepId}>${payload.outcome}`;
  run.edges[edge] = (run.edges[edge] ?? 0) + 1;
}

function learnAssignmentCreated(run: Execution, { assignmentId, agentId = "", instanceNo = 1 }: SyncPayload): void {
  if (assignmentId) run.visit?.assignments.push({ assignmentId, agentId, instanceNo, status: "created", attempts: [], evidence: [], changes: [] });
}

const ASSIGNMENT_STATUSES: readonly string[] = ["created", "accepted", "dispatched", "executing", "result_recorded", "retry_pending", "terminal"];

function learnAssignment(run: Execution, payload: SyncPayload, local: ResultLocal | undefined): void {
  const assignment = run.visit?.assignments.find((one) => one.assignmentId === payload.assignmentId);
  if (!assignment) return;
  if (ASSIGNMENT_STATUSES.includes(payload.status ?? "")) assignment.status = payload.status as Assignment["status"];
  if (payload.status === "terminal") assignment.outcome ??= payload.outcome; // of a member that gave no result: it was stopped, or never began
  if (payload.status !== "result_recorded") return;
  assignment.outcome = payload.outcome;
  assignment.summary = local?.summary ?? payload.summary;
  assignment.evidence = local?.evidence ?? [];
  assignment.changes = local?.changes ?? [];
  assignment.failure = local?.failure;
  assignment.tail = local?.tail;
  run.agentMs += payload.timing?.agentMs ?? 0;
  const { cost, costKind, currency = run.plan.limits.currency } = payload.usage ?? {};
  // Money of another currency is not added to what the run may spend: how much of that it is nobody here knows.
  if (currency === run.plan.limits.currency) run.cost += cost ?? 0;
  else if (cost) run.costUnknown = true;
  if (costKind === "unknown") run.costUnknown = true;
}

function learnAttemptCreated(run: Execution, { attemptId, assignmentId }: SyncPayload, local: AttemptLocal, at: number): void {
  const visit = run.visit;
  if (!visit || !attemptId) return;
  const attempt: Attempt = { ...local, attemptId, assignmentId, evidence: [], status: "created", createdAt: at };
  const assignment = visit.assignments.find((one) => one.assignmentId === assignmentId);
  (assignment?.attempts ?? visit.gateAttempts).push(attempt);
}

function learnAttemptStatus(run: Execution, payload: SyncPayload, local: any, at: number): void {
  const attempt = attemptsOf(run.visit).find(({ attemptId }) => attemptId === payload.attemptId);
  if (!attempt) return;
  if (payload.status === "executing") {
    attempt.status = "executing";
    attempt.startedAt ??= at;
    attempt.process = (local as ProcessLocal | undefined)?.process ?? attempt.process;
    attempt.leaseFence = (local as ProcessLocal | undefined)?.leaseFence ?? attempt.leaseFence;
  } else if (payload.status === "blocked_uncertain") attempt.status = "blocked_uncertain";
  else {
    attempt.status = "ended";
    attempt.endedAs = payload.status;
    const { failure, passed, evidence = [], tail } = (local ?? {}) as EndedLocal;
    Object.assign(attempt, { failure, passed, evidence, tail });
  }
}

function learnUncertain(run: Execution, { effect, attemptId = "", stepId = "", reason = "" }: SyncPayload, _: unknown, since: number): void {
  if (effect) run.uncertain[effect.id] = { effectId: effect.id, attemptId, stepId, reason, since };
}

function learnCertain(run: Execution, { effect }: SyncPayload): void {
  if (effect) delete run.uncertain[effect.id];
}
