// What a run's events come to: status, steps, assignments, use, evidence and what it waits for. Folded one event at a time over the gapless prefix,
// so a run of 100,000 events costs no more per event than one of 100, and never grows beyond RUN_PROJECTION_BYTES_MAX.
import type { SyncRunRow } from "../db/schema.ts";
import type { RunAssignment, RunProjection, RunStep, StepAttempt } from "../protocol/runs.ts";
import type { SyncEvent, SyncPayload } from "../protocol/sync-event.ts";
import { isTerminal } from "../protocol/workflow-file.ts";
import { emptySection, short, upsert } from "./projection-section.ts";
import { addUsage, emptySum, modelName, type Used, usageOf } from "./projection-usage.ts";

// Together with the fixed parts below 64 KiB, whatever the events hold.
const STEPS_BYTES = 20_000;
const EDGES_BYTES = 2_000;
const ASSIGNMENTS_BYTES = 12_000;
const EVIDENCE_BYTES = 7_000;
const EFFECTS_BYTES = 5_000;
const LEASES_BYTES = 3_000;
const RECEIPTS_BYTES = 3_000;
const ATTEMPTS_KEPT = 4;
const REFS_PER_EVENT = 16;
const REASON_CHARS = 200;
const TOKEN_CHARS = 64;

const STEP_ENDED = new Set(["passed", "failed", "completed", "cancelled", "skipped", "rejected", "expired", "terminal"]);
const RUN_STARTED = new Set(["preparing", "running"]);
const ASSIGNMENT_ENDED = new Set(["result_recorded", "terminal"]);

/** What folding an event means beyond the projection. The rule that ingests carries it out. */
export type Consequence =
  | { kind: "run_ended" }
  | { kind: "approval_requested"; id: string; hash: string; stepId: string; attempt: number; content: string }
  | { kind: "approval_recorded"; ids: string[]; outcome: string; actor: string; reason: string | null }
  | { kind: "approval_moot"; id: string }
  | ({ kind: "used" } & Used);

/** What a run comes to before its first event. */
export const emptyProjection = (): RunProjection => ({
  transitions: 0,
  degraded: 0,
  valuesReplaced: 0,
  steps: emptySection(),
  edges: emptySection(),
  assignments: emptySection(),
  usage: emptySum("total"),
  models: emptySection(),
  agents: emptySection(),
  evidence: emptySection(),
  leases: emptySection(),
  effects: emptySection(),
  receipts: emptySection(),
});

/** Whether a run's status is one it never leaves. */
export const hasEnded = (status: string | null): boolean => status !== null && isTerminal(status);

/** Folds the next event of the gapless prefix into the run's row. */
export function fold(run: SyncRunRow, event: SyncEvent): Consequence[] {
  const { projection } = run;
  const { eventType, payload, occurredAt, redaction } = event;
  const consequences: Consequence[] = [];
  projection.createdAt ??= occurredAt;
  run.updatedAt = milliseconds(occurredAt) ?? run.updatedAt;
  if (payload.workflowId !== undefined) run.workflowId = payload.workflowId;
  if (payload.displayTitle !== undefined) run.displayTitle = payload.displayTitle;
  if (payload.degraded) projection.degraded++;
  projection.valuesReplaced += redaction.valuesReplaced;
  if (eventType.startsWith("run.")) foldRun(run, event, consequences);
  else if (eventType.startsWith("step.")) foldStep(run, event, consequences);
  else if (eventType.startsWith("effect.")) foldEffect(projection, event);
  else if (eventType.startsWith("lease.")) foldLease(projection, event);
  else if (eventType === "approval.recorded") consequences.push(recorded(payload));
  else if (eventType === "delivery.status_changed" && payload.status) projection.delivery = payload.status;
  const used = payload.assignmentId === undefined ? plainUse(event) : foldAssignment(projection, event, payload.assignmentId);
  if (used) {
    addUsage(projection, used);
    consequences.push({ kind: "used", ...used });
  }
  if (payload.evidenceRefs) foldEvidence(projection, event);
  if (payload.receipts) foldReceipts(projection, event);
  if (payload.error) {
    const { class: kind, component, retryable } = payload.error;
    projection.error = { class: kind, component: short(component, REASON_CHARS), retryable, ...stepOf(payload), at: occurredAt };
  }
  return consequences;
}

const milliseconds = (time: string): number | null => {
  const at = Date.parse(time);
  return Number.isNaN(at) ? null : at; // 30 February passes the pattern
};
const stepOf = ({ stepId }: SyncPayload) => (stepId === undefined ? {} : { stepId });
const reasonOf = ({ reason, summary }: SyncPayload) => {
  const text = reason ?? summary;
  return text === undefined ? {} : { reason: short(text, REASON_CHARS) };
};

function foldRun(run: SyncRunRow, { eventType, payload, occurredAt }: SyncEvent, consequences: Consequence[]) {
  const { projection } = run;
  if (eventType === "run.cancel_requested") projection.cancelRequestedAt = occurredAt;
  const again = eventType === "run.created" ? payload.suppliedRefs?.find(({ kind }) => kind === "run") : undefined;
  if (again) {
    projection.retryOf = { runId: again.id, ...stepOf(payload) };
    run.retryOf = again.id;
  }
  const { status } = payload;
  if (status === undefined) return;
  const at = milliseconds(occurredAt);
  run.status = status;
  projection.reason = reasonOf(payload).reason;
  if (RUN_STARTED.has(status)) run.startedAt ??= at;
  if (status === "waiting") projection.waiting ??= { for: "run", ...stepOf(payload), ...reasonOf(payload), since: occurredAt };
  else if (status === "blocked_uncertain") projection.waiting = { for: "uncertain", ...stepOf(payload), ...reasonOf(payload), since: occurredAt };
  else delete projection.waiting;
  run.endedAt = isTerminal(status) ? at : null;
  if (isTerminal(status)) consequences.push({ kind: "run_ended" });
}

function foldStep(run: SyncRunRow, event: SyncEvent, consequences: Consequence[]) {
  const { projection } = run;
  const { eventType, payload, occurredAt } = event;
  if (eventType === "step.transitioned") {
    projection.transitions++;
    run.stepId = payload.toStepId ?? run.stepId;
    foldEdge(projection, payload);
  }
  const stepId = payload.stepId ?? payload.fromStepId;
  if (stepId === undefined) return;
  if (eventType === "step.entered") run.stepId = stepId;
  upsert(
    projection.steps,
    STEPS_BYTES,
    (step) => step.stepId === stepId,
    () => ({ stepId, status: "created", attempts: [], updatedAt: occurredAt }),
    (step) => changeStep(step, event),
  );
  if (payload.status === "waiting") return wait(run, event, stepId, consequences);
  const { waiting } = projection;
  if (payload.status === undefined || waiting?.stepId !== stepId) return;
  if (waiting.approvalId !== undefined && STEP_ENDED.has(payload.status)) consequences.push({ kind: "approval_moot", id: waiting.approvalId });
  delete projection.waiting;
}

/** A way that was taken between steps, however often: together they are the graph as the run has walked it. */
function foldEdge(projection: RunProjection, { fromStepId: from, toStepId: to, outcome = "" }: SyncPayload) {
  if (from === undefined) return;
  upsert(
    projection.edges,
    EDGES_BYTES,
    (edge) => edge.from === from && edge.to === to && edge.outcome === outcome,
    () => ({ from, ...(to !== undefined && { to }), outcome, times: 0 }),
    (edge) => {
      edge.times++;
    },
  );
}

function changeStep(step: RunStep, { eventType, payload, occurredAt }: SyncEvent) {
  step.updatedAt = occurredAt;
  const attempt = attemptOf(step, eventType === "step.entered", payload.stepAttempt, occurredAt);
  if (payload.fileChanges) step.files = countFiles(payload.fileChanges);
  const reason = reasonOf(payload).reason;
  if (reason !== undefined) step.reason = reason;
  if (eventType === "step.entered") {
    step.status = attempt.status = payload.status ?? "running";
    delete step.outcome;
    if (reason === undefined) delete step.reason;
  } else if (payload.status !== undefined) step.status = attempt.status = payload.status;
  if (payload.outcome !== undefined && eventType !== "step.transitioned") step.outcome = attempt.outcome = payload.outcome;
  if (eventType === "step.outcome_recorded" && payload.status === undefined && !STEP_ENDED.has(step.status))
    step.status = attempt.status = "completed";
  if (eventType === "step.outcome_recorded" || STEP_ENDED.has(step.status)) endAttempt(attempt, payload, occurredAt);
}

function attemptOf(step: RunStep, enters: boolean, number: number | undefined, at: string): StepAttempt {
  const last = step.attempts.at(-1);
  const known = number === undefined ? (enters ? undefined : last) : step.attempts.find(({ attempt }) => attempt === number);
  if (known) return known;
  const made: StepAttempt = { attempt: number ?? (last?.attempt ?? 0) + 1, status: "created", startedAt: at };
  step.attempts.push(made);
  step.attempts.splice(0, step.attempts.length - ATTEMPTS_KEPT);
  return made;
}

/** When an attempt ended and how long it took: as measured, else by the two times. */
function endAttempt(entry: StepAttempt | RunAssignment, { timing }: SyncPayload, at: string) {
  entry.startedAt = timing?.startedAt ?? entry.startedAt;
  entry.endedAt = timing?.finishedAt ?? entry.endedAt ?? at;
  const taken = Date.parse(entry.endedAt) - Date.parse(entry.startedAt ?? entry.endedAt);
  entry.durationMs = timing?.durationMs ?? entry.durationMs ?? Math.max(taken, 0);
}

function countFiles(changes: NonNullable<SyncPayload["fileChanges"]>) {
  const sum = { added: 0, modified: 0, deleted: 0, redacted: 0 };
  for (const { added, modified, deleted, redactedPathCount } of changes) {
    sum.added += added?.length ?? 0;
    sum.modified += modified?.length ?? 0;
    sum.deleted += deleted?.length ?? 0;
    sum.redacted = Math.min(sum.redacted + (redactedPathCount ?? 0), Number.MAX_SAFE_INTEGER);
  }
  return sum;
}

/** A step waits: for a person when it names an approval request, else for what its reason says. */
function wait(run: SyncRunRow, { payload, occurredAt }: SyncEvent, stepId: string, consequences: Consequence[]) {
  const request = payload.evidenceRefs?.find(({ kind }) => kind === "approval-request");
  const asks = request ? { reason: payload.summary ?? payload.reason } : payload; // the question says more than why it is asked
  run.projection.waiting = {
    for: request ? "approval" : "step",
    stepId,
    ...reasonOf(asks),
    ...(request && { approvalId: request.id }),
    since: occurredAt,
  };
  if (!request?.hash) return; // without a hash nobody could say what was approved
  const content = payload.summary ?? payload.reason ?? "";
  consequences.push({ kind: "approval_requested", id: request.id, hash: request.hash, stepId, attempt: payload.stepAttempt ?? 1, content });
}

const recorded = ({ suppliedRefs = [], outcome = "", actor, reason }: SyncPayload): Consequence => ({
  kind: "approval_recorded",
  ids: suppliedRefs.map(({ id }) => id).filter((id) => id.startsWith("apr_")),
  outcome,
  actor: actor ? `${actor.kind}:${actor.id}` : "runtime",
  reason: reason ?? null,
});

/** What an event outside of any assignment reports as used. */
const plainUse = ({ payload: { usage, model, agentId, executor }, occurredAt }: SyncEvent): Used | undefined =>
  usage && { at: occurredAt, usage: usageOf(usage), before: undefined, model: model && modelName(model), agentId, harness: executor?.harness };

/** @returns what the event reports as used, after what the same attempt had reported before */
function foldAssignment(projection: RunProjection, { eventType, payload, occurredAt }: SyncEvent, assignmentId: string): Used | undefined {
  const [family, verb] = eventType.split(".") as [string, string];
  let before = undefined as RunAssignment["usage"];
  const entry = upsert(
    projection.assignments,
    ASSIGNMENTS_BYTES,
    (assignment) => assignment.assignmentId === assignmentId,
    (): RunAssignment => ({ assignmentId, status: "created", attempt: 0 }),
    (assignment) => {
      if (payload.stepId !== undefined) assignment.stepId = payload.stepId;
      if (payload.agentId !== undefined) assignment.agentId = payload.agentId;
      if (payload.model) assignment.model = modelName(payload.model);
      if (payload.executor) assignment.harness = payload.executor.harness;
      if (payload.attemptId !== undefined && payload.attemptId !== assignment.attemptId) nextAttempt(assignment, payload.attemptId);
      if (family === "assignment") assignment.status = payload.status ?? verb;
      if (payload.outcome !== undefined) assignment.outcome = payload.outcome;
      if (payload.error) assignment.error = payload.error.class;
      if (verb === "executing" || payload.status === "executing") assignment.startedAt ??= payload.timing?.startedAt ?? occurredAt;
      if (ASSIGNMENT_ENDED.has(verb)) endAttempt(assignment, payload, occurredAt);
      before = assignment.usage;
      if (payload.usage) assignment.usage = usageOf(payload.usage);
    },
  );
  const { model, agentId, harness } = entry;
  return payload.usage && { at: occurredAt, usage: usageOf(payload.usage), before, model, agentId, harness };
}

/** A new attempt starts counting anew; what the last one used stays in the sums. */
function nextAttempt(assignment: RunAssignment, attemptId: string) {
  assignment.attemptId = attemptId;
  assignment.attempt++;
  delete assignment.usage;
  delete assignment.error;
  delete assignment.endedAt;
  delete assignment.durationMs;
  delete assignment.startedAt;
}

function foldEffect(projection: RunProjection, { eventType, payload, occurredAt }: SyncEvent) {
  const { id, policy } = payload.effect!;
  upsert(
    projection.effects,
    EFFECTS_BYTES,
    (effect) => effect.id === id,
    () => ({ id, class: policy.class, state: "", at: occurredAt }),
    (effect) => {
      Object.assign(effect, { state: eventType.slice("effect.".length), at: occurredAt, ...stepOf(payload), ...reasonOf(payload) });
      if (payload.resolutionAction) effect.resolution = payload.resolutionAction;
    },
  );
}

const LEASE_STATE = { "lease.acquired": "held", "lease.released": "released", "lease.lost": "lost" } as const;
function foldLease(projection: RunProjection, { eventType, payload }: SyncEvent) {
  const { id, operation, fencingToken, acquiredAt, expiresAt } = payload.lease!;
  const state = LEASE_STATE[eventType as keyof typeof LEASE_STATE];
  const lease = { id, ...(operation && { operation }), fencingToken: short(fencingToken, TOKEN_CHARS), state, acquiredAt, expiresAt };
  upsert(
    projection.leases,
    LEASES_BYTES,
    (entry) => entry.id === id,
    () => lease,
    (entry) => Object.assign(entry, lease),
  );
}

function foldEvidence(projection: RunProjection, { payload, occurredAt }: SyncEvent) {
  for (const { id, kind, hash, status, producerId } of payload.evidenceRefs!.slice(-REFS_PER_EVENT)) {
    const entry = {
      id,
      kind,
      ...(hash && { hash }),
      ...(status && { status }),
      ...(producerId && { producerId }),
      ...stepOf(payload),
      at: occurredAt,
    };
    upsert(
      projection.evidence,
      EVIDENCE_BYTES,
      (evidence) => evidence.id === id,
      () => entry,
      (evidence) => Object.assign(evidence, entry),
    );
  }
}

function foldReceipts(projection: RunProjection, { payload, occurredAt }: SyncEvent) {
  for (const receipt of payload.receipts!.slice(-REFS_PER_EVENT)) {
    const entry = { provider: receipt.provider, kind: receipt.kind, id: short(receipt.id, REASON_CHARS), at: receipt.observedAt ?? occurredAt };
    upsert(
      projection.receipts,
      RECEIPTS_BYTES,
      ({ provider, kind, id }) => provider === entry.provider && kind === entry.kind && id === entry.id,
      () => entry,
      (known) => Object.assign(known, entry),
    );
  }
}
