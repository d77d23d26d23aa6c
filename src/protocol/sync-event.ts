// The closed sync event `kxm.sync-event.v1`: the only shape in which anything about a run leaves a machine. Both ends check it with the same code.
import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { OPAQUE_ID } from "./ids.ts";
import { once } from "./once.ts";
import { TIMESTAMP } from "./time.ts";

export const SYNC_EVENT_SCHEMA = "kxm.sync-event.v1";

export const SYNC_EVENT_TYPES = [
  ...["run.created", "run.status_changed", "run.cancel_requested", "run.drive_opened"],
  ...["step.entered", "step.status_changed", "step.outcome_recorded", "step.transitioned"],
  ...["assignment.created", "assignment.accepted", "assignment.dispatched", "assignment.executing"],
  ...["assignment.reattaching", "assignment.retry_pending", "assignment.result_recorded", "assignment.terminal"],
  ...["attempt.created", "attempt.status_changed", "attempt.connection_lost"],
  ...["effect.intent_recorded", "effect.dispatched", "effect.observed", "effect.receipt_recorded", "effect.settled"],
  ...["effect.blocked_uncertain", "effect.uncertainty_resolved", "workspace.snapshot_pinned", "workspace.materialized", "model.resolved"],
  ...["session.scope_rotated", "approval.recorded", "lease.acquired", "lease.released", "lease.lost", "delivery.status_changed"],
  ...["candidate.created", "routing.attempt.recorded", "routing.route_switched"],
] as const;
/** One of the event types both ends know. */
export type SyncEventType = (typeof SYNC_EVENT_TYPES)[number];

export const SYNC_STATUSES = [
  ...["queued", "offered", "accepted", "declined", "expired", "created", "preparing", "pending", "running", "waiting", "blocked_uncertain"],
  ...["cancelling", "cancelled", "completed", "failed", "skipped", "passed", "dispatched", "executing", "reattaching", "retry_pending"],
  ...["result_recorded", "terminal", "starting", "settling", "connection_lost", "intent_recorded", "observed", "receipt_recorded", "settled"],
  ...["planned", "delivering", "partial", "delivered", "outbox_pending", "acknowledged", "rejected", "omitted", "active", "idle", "closed"],
] as const;
/** A status of a run, step, assignment, attempt, effect or delivery. */
export type SyncStatus = (typeof SYNC_STATUSES)[number];

export const RESOLUTION_ACTIONS = ["mark-completed", "confirm-absent-and-retry", "compensate-and-retry", "mark-failed", "cancel"] as const;

/** `verify`, `step-2`, `plan_hash`: lower-case words joined by single dashes or underscores, at most 64 characters. */
export const IDENTIFIER = /^(?=.{1,64}$)[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*$/;
/** `sha256:` and 64 lower-case hex digits. */
export const TAGGED_SHA256 = /^sha256:[0-9a-f]{64}$/;
const ENVIRONMENT_NAME = /^(?=.{1,128}$)[A-Z_][A-Z0-9_]*$/;
const CURRENCY = /^[A-Z]{3}$/;
const DEVICE = "[cC][oO][nN]|[pP][rR][nN]|[aA][uU][xX]|[nN][uU][lL]|(?:[cC][oO][mM]|[lL][pP][tT])[0-9\u00b9\u00b2\u00b3]";
const SEGMENT = `(?!(?:${DEVICE})(?:\\.[^/]*)?(?:/|$))[^<>:"\\\\|?*/\\u0000-\\u001f\\u007f]*[^<>:"\\\\|?*/\\u0000-\\u001f\\u007f. ]`;
/** A path inside a repository that means the same on every system: no root, no `..`, no device names. */
export const REPOSITORY_PATH = new RegExp(`^${SEGMENT}(?:/${SEGMENT})*$`);

const word = <const W extends readonly string[]>(words: W) =>
  Type.Unsafe<W[number]>({ ...Type.String({ enum: [...words], pattern: `^(?:${words.map((item) => item.replaceAll(".", "\\.")).join("|")})$` }) });
const matching = (pattern: RegExp) => Type.String({ pattern: pattern.source });
const text = (max: number) => Type.String({ minLength: 1, maxLength: max });
const whole = (minimum: number, maximum = Number.MAX_SAFE_INTEGER) => Type.Integer({ minimum, maximum });
const closed = <P extends Record<string, TSchema>>(members: P) => Type.Object(members, { additionalProperties: false });
const list = <S extends TSchema>(item: S, maxItems: number) => Type.Array(item, { maxItems });
const optional = Type.Optional;

const identifier = matching(IDENTIFIER);
const opaqueId = matching(OPAQUE_ID);
const hash = matching(TAGGED_SHA256);
const time = matching(TIMESTAMP);
const duration = whole(0, 31_536_000_000);
const path = Type.String({ minLength: 1, maxLength: 1024, pattern: REPOSITORY_PATH.source });
const paths = list(path, 1000);

const Reference = closed({ id: opaqueId, kind: identifier, hash: optional(hash), status: optional(identifier), producerId: optional(opaqueId) });
const Actor = closed({ kind: word(["human", "runtime", "hub", "agent", "adapter"]), id: text(200) });
const EFFECT_CLASSES = ["read-only", "workspace-mutation", "external-idempotent", "receipt-queryable", "external-non-idempotent", "unknown"] as const;
const EffectPolicy = closed({
  class: word(EFFECT_CLASSES),
  sharedMutable: Type.Boolean(),
  idempotencyKey: optional(word(["run", "step", "assignment", "attempt", "explicit"])),
  receiptQuery: optional(identifier),
});
const Lease = closed({ id: opaqueId, fencingToken: text(256), acquiredAt: time, expiresAt: time, operation: optional(identifier) });
const Executor = closed({
  id: identifier,
  kind: word(["local", "ssh"]),
  executorVersion: text(128),
  harness: identifier,
  harnessVersion: text(128),
  helperGeneration: optional(text(256)),
});
const Model = closed({
  provider: identifier,
  model: text(200),
  profile: optional(identifier),
  tags: optional(list(identifier, 32)),
  thinking: optional(text(64)),
});
const Usage = closed({
  inputTokens: optional(whole(0)),
  outputTokens: optional(whole(0)),
  cacheReadTokens: optional(whole(0)),
  cacheWriteTokens: optional(whole(0)),
  cost: optional(Type.Number({ minimum: 0 })),
  currency: optional(matching(CURRENCY)),
  costKind: optional(word(["reported", "estimated", "unknown"])),
});
const FileChange = closed({
  repositoryId: identifier,
  added: optional(paths),
  modified: optional(paths),
  deleted: optional(paths),
  redactedPathCount: optional(whole(0)),
});
const Artifact = closed({
  id: opaqueId,
  kind: identifier,
  hash,
  size: whole(0, 2 ** 40),
  availability: word(["local", "online-runtime", "hub", "external"]),
  classification: optional(word(["public", "project", "sensitive", "secret"])),
});
const EnvironmentItem = closed({
  name: matching(ENVIRONMENT_NAME),
  scope: text(160),
  status: word(["resolved", "missing", "denied", "not-required"]),
  source: word(["default", "host", "project", "repository", "secret-ref", "runtime"]),
  version: optional(text(200)),
});
const Candidate = closed({
  id: opaqueId,
  type: word(["knowledge", "skill", "workflow", "agent", "model", "environment", "template", "temporal-state"]),
  summary: text(1000),
  confidence: word(["verified", "probable", "uncertain"]),
  status: word(["proposed", "evaluating", "review-required", "promoted", "rejected", "quarantined"]),
});

/** What an event says. Every member is optional; which ones a type needs is checked by `checkSyncEvent`. */
export const SyncPayload = Type.Object(
  {
    workflowId: optional(identifier),
    outcome: optional(identifier),
    stepId: optional(identifier),
    fromStepId: optional(identifier),
    toStepId: optional(identifier),
    agentId: optional(identifier),
    displayTitle: optional(text(200)),
    summary: optional(text(1000)),
    reason: optional(text(1000)),
    promptHash: optional(hash),
    status: optional(word(SYNC_STATUSES)),
    previousStatus: optional(word(SYNC_STATUSES)),
    stepAttempt: optional(whole(1)),
    scopeEpoch: optional(whole(1)),
    instanceNo: optional(whole(1, 64)),
    assignmentId: optional(opaqueId),
    attemptId: optional(opaqueId),
    executor: optional(Executor),
    model: optional(Model),
    timing: optional(
      closed({
        durationMs: duration,
        startedAt: optional(time),
        finishedAt: optional(time),
        queueMs: optional(duration),
        agentMs: optional(duration),
      }),
    ),
    usage: optional(Usage),
    fileChanges: optional(list(FileChange, 64)),
    evidenceRefs: optional(list(Reference, 64)),
    suppliedRefs: optional(list(Reference, 64)),
    artifacts: optional(list(Artifact, 64)),
    receipts: optional(list(closed({ provider: identifier, kind: identifier, id: text(512), hash: optional(hash), observedAt: optional(time) }), 64)),
    environment: optional(list(EnvironmentItem, 256)),
    error: optional(closed({ class: identifier, component: text(128), retryable: Type.Boolean() })),
    effect: optional(closed({ id: opaqueId, policy: EffectPolicy, idempotencyKeyHash: optional(hash) })),
    lease: optional(Lease),
    actor: optional(Actor),
    resolvedBy: optional(Actor),
    resolutionAction: optional(word(RESOLUTION_ACTIONS)),
    candidate: optional(Candidate),
    counts: optional(Type.Record(matching(IDENTIFIER), whole(0), { maxProperties: 32, additionalProperties: false })),
    degraded: optional(Type.Boolean()),
  },
  { additionalProperties: false, minProperties: 1 },
);
export type SyncPayload = Static<typeof SyncPayload>;

/** One event of one run, as the hub stores it. */
export const SyncEvent = closed({
  schema: Type.Literal(SYNC_EVENT_SCHEMA),
  sourceEventId: opaqueId,
  eventType: word(SYNC_EVENT_TYPES),
  projectId: opaqueId,
  runId: opaqueId,
  homeRuntimeId: opaqueId,
  sequence: whole(1),
  occurredAt: time,
  configRevision: hash,
  memoryRevision: opaqueId,
  executorPolicyRevision: hash,
  toolPolicyRevision: hash,
  syncPolicyRevision: hash,
  redaction: closed({ version: identifier, fieldsOmitted: list(text(128), 128), valuesReplaced: whole(0, 100_000) }),
  payload: SyncPayload,
});
export type SyncEvent = Static<typeof SyncEvent>;

const compiled = once(() => TypeCompiler.Compile(SyncEvent));
const unique = (items: string[] | undefined) => items === undefined || new Set(items).size === items.length;

/**
 * Whether a parsed JSON value is a valid sync event: the closed schema, unique lists and what each event type requires.
 * @returns undefined when it is valid, else which member is wrong, as a path without its value
 */
export function syncEventProblem(value: unknown): string | undefined {
  if (!compiled().Check(value)) return compiled().Errors(value).First()?.path || "/";
  const { eventType, payload, redaction } = value;
  if (!unique(redaction.fieldsOmitted)) return "/redaction/fieldsOmitted";
  if (!unique(payload.model?.tags)) return "/payload/model/tags";
  const change = payload.fileChanges?.findIndex((item) => !unique(item.added) || !unique(item.modified) || !unique(item.deleted)) ?? -1;
  if (change >= 0) return `/payload/fileChanges/${change}`;
  if (payload.effect && !effectHolds(payload.effect)) return "/payload/effect";
  const missing = requiredOf(eventType, payload).find((member) => payload[member] === undefined);
  return missing && `/payload/${missing}`;
}

/** The same as a yes or no. */
export const isSyncEvent = (value: unknown): value is SyncEvent => syncEventProblem(value) === undefined;

/** The payload members that a type may not be without. */
export function requiredOf(type: string, payload: Pick<SyncPayload, "effect">): (keyof SyncPayload)[] {
  if (type === "effect.uncertainty_resolved") return ["effect", "resolvedBy", "resolutionAction", "reason", "suppliedRefs"];
  if (type === "effect.intent_recorded" || type === "effect.dispatched")
    return payload.effect?.policy.sharedMutable ? ["effect", "lease"] : ["effect"];
  if (type.startsWith("effect.")) return ["effect"];
  if (type.startsWith("lease.")) return ["lease"];
  return type === "approval.recorded" ? ["actor", "outcome", "suppliedRefs"] : [];
}

function effectHolds({ policy, idempotencyKeyHash }: NonNullable<SyncPayload["effect"]>): boolean {
  const { idempotencyKey, receiptQuery, sharedMutable } = policy;
  switch (policy.class) {
    case "read-only":
    case "workspace-mutation":
      return !sharedMutable;
    case "external-idempotent":
      return idempotencyKey !== undefined && receiptQuery !== undefined && idempotencyKeyHash !== undefined;
    case "receipt-queryable":
      return receiptQuery !== undefined;
    case "external-non-idempotent":
    case "unknown":
      return idempotencyKey === undefined && receiptQuery === undefined;
  }
}
