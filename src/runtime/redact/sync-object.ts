// Makes the object that leaves the machine from an event: a new one, rebuilt member by member from an allow-list, every text scrubbed and cut.
// What is not on the list is dropped and named. Whatever goes wrong gives a degraded object, never the raw one, so the sequence has no gap.
import { OPAQUE_ID } from "../../protocol/ids.ts";
import {
  IDENTIFIER,
  REPOSITORY_PATH,
  requiredOf,
  SYNC_EVENT_SCHEMA,
  SYNC_STATUSES,
  type SyncEvent,
  type SyncEventType,
  type SyncPayload,
  syncEventProblem,
  TAGGED_SHA256,
} from "../../protocol/sync-event.ts";
import { iso, TIMESTAMP } from "../../protocol/time.ts";
import type { Redactor } from "./redactor.ts";

/** What a run gives to each of its events. */
export type SyncIdentity = {
  runId: string;
  projectId: string;
  homeRuntimeId: string;
  configRevision: string;
  memoryRevision: string;
  executorPolicyRevision: string;
  toolPolicyRevision: string;
  syncPolicyRevision: string;
};
/** An event before redaction. */
export type RawEvent = {
  eventId: string;
  eventType: SyncEventType;
  sequence: number;
  occurredAt: number;
  payload: SyncPayload;
  local?: Record<string, unknown>;
};

/** A text is scrubbed whole up to here; beyond it only its beginning can leave. */
const SCRUB_CHARS_MAX = 65_536;
/** The end of a text that was not scrubbed whole is not trusted: longest secret that may be cut. */
const UNTRUSTED_TAIL = 16_384;
const RUNS_REMEMBERED_MAX = 1000;
const VALUES_REPLACED_MAX = 100_000;

/** Makes sync objects. It remembers how the last text of each run ended, so that a secret cut over two events is seen. */
export type Deriver = (run: SyncIdentity, event: RawEvent) => SyncEvent;

/** @param redactor must know this process's secrets */
export function createDeriver(redactor: Redactor): Deriver {
  const tails = new Map<string, Map<string, string>>(); // run → member → end of its last text
  return (run, event) => {
    try {
      const seen = tails.get(run.runId) ?? new Map<string, string>();
      tails.delete(run.runId);
      tails.set(run.runId, seen);
      if (tails.size > RUNS_REMEMBERED_MAX) tails.delete(tails.keys().next().value!);
      const scrub = new Scrub(redactor, seen);
      const payload = rebuildPayload(event.payload, scrub);
      for (const name of Object.keys(event.local ?? {})) scrub.omit(`local.${name}`);
      if (Object.keys(payload).length === 0) payload.degraded = true;
      const made = envelope(run, event, payload, scrub);
      return syncEventProblem(made) === undefined ? made : degraded(run, event, made);
    } catch {
      return degraded(run, event, undefined);
    }
  };
}

function envelope(
  run: SyncIdentity,
  event: RawEvent,
  payload: SyncPayload,
  scrub: { omitted: string[]; replaced: number; version: string },
): SyncEvent {
  return {
    schema: SYNC_EVENT_SCHEMA,
    sourceEventId: event.eventId,
    eventType: event.eventType,
    projectId: run.projectId,
    runId: run.runId,
    homeRuntimeId: run.homeRuntimeId,
    sequence: event.sequence,
    occurredAt: iso(event.occurredAt),
    configRevision: run.configRevision,
    memoryRevision: run.memoryRevision,
    executorPolicyRevision: run.executorPolicyRevision,
    toolPolicyRevision: run.toolPolicyRevision,
    syncPolicyRevision: run.syncPolicyRevision,
    redaction: { version: scrub.version, fieldsOmitted: scrub.omitted, valuesReplaced: Math.min(scrub.replaced, VALUES_REPLACED_MAX) },
    payload,
  };
}

/** Collects what was dropped and replaced while one event is rebuilt. */
class Scrub {
  readonly version: string;
  replaced = 0;
  readonly #omitted = new Set<string>();
  constructor(
    readonly redactor: Redactor,
    readonly tails: Map<string, string>,
  ) {
    this.version = redactor.version;
  }
  get omitted(): string[] {
    return [...this.#omitted];
  }
  /** Names a member that is left out. Names that are not ours are not repeated. */
  omit(name: string) {
    const safe = /^[A-Za-z][\w.[\]-]{0,127}$/.test(name) && this.redactor.secrets(name).replaced === 0 ? name : "unnamed";
    if (this.#omitted.size < 128) this.#omitted.add(safe);
  }
  /** Free text: scrubbed, then cut to `max` UTF-16 code units. Undefined when it is missing, empty or no text. */
  text(name: string, value: unknown, max: number): string | undefined {
    if (value === undefined || value === null) return undefined;
    if (typeof value !== "string") return this.drop(name);
    const whole = value.length <= SCRUB_CHARS_MAX;
    const { text, replaced, tail } = this.redactor.leaving(whole ? value : value.slice(0, SCRUB_CHARS_MAX), this.tails.get(name));
    this.tails.set(name, tail);
    this.replaced += replaced;
    const bounded = cut((whole ? text : text.slice(0, -UNTRUSTED_TAIL)).trim(), max);
    return bounded === "" ? undefined : bounded;
  }
  /** A word of a fixed form. One that does not have it, or holds a secret, is dropped. */
  word(name: string, value: unknown, form: RegExp): string | undefined {
    if (value === undefined || value === null) return undefined;
    if (typeof value !== "string" || !form.test(value)) return this.drop(name);
    if (form === TAGGED_SHA256 || form === TIMESTAMP) return value;
    if (this.redactor.secrets(value).replaced === 0) return value;
    this.replaced++;
    return this.drop(name);
  }
  number(name: string, value: unknown): number | undefined {
    if (value === undefined || value === null) return undefined;
    return typeof value === "number" && Number.isFinite(value) ? value : this.drop(name);
  }
  flag(name: string, value: unknown): boolean | undefined {
    if (value === undefined || value === null) return undefined;
    return typeof value === "boolean" ? value : this.drop(name);
  }
  drop(name: string): undefined {
    this.omit(name);
    return undefined;
  }
}

/** At most `max` code units, never half a character; what was cut shows as an ellipsis. */
function cut(text: string, max: number): string {
  if (text.length <= max) return text;
  const kept = text.slice(0, max - 1);
  return `${/[\ud800-\udbff]$/.test(kept) ? kept.slice(0, -1) : kept}…`;
}

type Build = (scrub: Scrub, name: string, value: any) => unknown;
const text =
  (max: number): Build =>
  (scrub, name, value) =>
    scrub.text(name, value, max);
const word =
  (form: RegExp): Build =>
  (scrub, name, value) =>
    scrub.word(name, value, form);
const number: Build = (scrub, name, value) => scrub.number(name, value);
const flag: Build = (scrub, name, value) => scrub.flag(name, value);
const [identifier, opaqueId, hash, time] = [word(IDENTIFIER), word(OPAQUE_ID), word(TAGGED_SHA256), word(TIMESTAMP)];
const status = word(new RegExp(`^(?:${SYNC_STATUSES.join("|")})$`));
const constant = word(/^[a-z][a-z0-9-]{0,63}$/);

/** An object of known members; the others are named as omitted. Without one of its `required` members it is left out whole. */
const object =
  (members: Record<string, Build>, required: string[] = []): Build =>
  (scrub, name, value) => {
    if (value === undefined || value === null) return undefined;
    if (typeof value !== "object" || Array.isArray(value)) return scrub.drop(name);
    const built: Record<string, unknown> = {};
    for (const [key, build] of Object.entries(members)) {
      const member = build(scrub, `${name}.${key}`, value[key]);
      if (member !== undefined) built[key] = member;
    }
    for (const key of Object.keys(value)) if (!Object.hasOwn(members, key)) scrub.omit(`${name}.${key}`);
    return required.every((key) => built[key] !== undefined) ? built : scrub.drop(name);
  };
/** A list of at most `max` items; items that have no valid form are left out. */
const list =
  (item: Build, max: number): Build =>
  (scrub, name, value) => {
    if (value === undefined || value === null) return undefined;
    if (!Array.isArray(value)) return scrub.drop(name);
    if (value.length > max) scrub.omit(`${name}[]`);
    const built = value.slice(0, max).map((entry) => item(scrub, `${name}[]`, entry));
    return built.filter((entry) => entry !== undefined);
  };
const words: Build = (scrub, name, value) => {
  const built = list(identifier, 32)(scrub, name, value) as string[] | undefined;
  return built && [...new Set(built)];
};

const PATHS_MAX = 1000;
/** Paths inside a repository. One that is not, or holds a secret, is only counted. */
const fileChange: Build = (scrub, name, value) => {
  if (typeof value !== "object" || value === null) return scrub.drop(name);
  let redacted = Number.isSafeInteger(value.redactedPathCount) ? value.redactedPathCount : 0;
  const change: Record<string, unknown> = { repositoryId: identifier(scrub, `${name}.repositoryId`, value.repositoryId) };
  for (const kind of ["added", "modified", "deleted"] as const) {
    if (!Array.isArray(value[kind])) continue;
    const unique = [...new Set(value[kind] as unknown[])];
    const safe = unique.filter((path) => typeof path === "string" && path.length <= 1024 && REPOSITORY_PATH.test(path) && !holdsSecret(scrub, path));
    change[kind] = safe.slice(0, PATHS_MAX);
    redacted += unique.length - (change[kind] as unknown[]).length;
  }
  if (redacted > 0) change["redactedPathCount"] = redacted;
  for (const key of Object.keys(value))
    if (!["repositoryId", "added", "modified", "deleted", "redactedPathCount"].includes(key)) scrub.omit(`${name}.${key}`);
  return change["repositoryId"] === undefined ? undefined : change;
};
const holdsSecret = (scrub: Scrub, path: string) => {
  const { replaced } = scrub.redactor.secrets(path);
  scrub.replaced += replaced;
  return replaced > 0;
};
const counts: Build = (scrub, name, value) => {
  if (typeof value !== "object" || value === null) return value === undefined ? undefined : scrub.drop(name);
  const good = Object.entries(value).filter(
    ([key, n]) => IDENTIFIER.test(key) && Number.isSafeInteger(n) && (n as number) >= 0 && !holdsSecret(scrub, key),
  );
  if (good.length < Object.keys(value).length || good.length > 32) scrub.omit(`${name}[]`);
  return Object.fromEntries(good.slice(0, 32));
};

const reference = object({ id: opaqueId, kind: identifier, hash, status: identifier, producerId: opaqueId }, ["id", "kind"]);
const actor = object({ kind: constant, id: text(200) }, ["kind", "id"]);
const PAYLOAD: { [K in keyof Required<SyncPayload>]: Build } = {
  workflowId: identifier,
  outcome: identifier,
  stepId: identifier,
  fromStepId: identifier,
  toStepId: identifier,
  agentId: identifier,
  displayTitle: text(200),
  summary: text(1000),
  reason: text(1000),
  promptHash: hash,
  status,
  previousStatus: status,
  stepAttempt: number,
  scopeEpoch: number,
  instanceNo: number,
  assignmentId: opaqueId,
  attemptId: opaqueId,
  executor: object(
    {
      id: identifier,
      kind: constant,
      executorVersion: text(128),
      harness: identifier,
      harnessVersion: text(128),
      helperGeneration: text(256),
    },
    ["id", "kind", "executorVersion", "harness", "harnessVersion"],
  ),
  model: object({ provider: identifier, model: text(200), profile: identifier, tags: words, thinking: text(64) }, ["provider", "model"]),
  timing: object({ durationMs: number, startedAt: time, finishedAt: time, queueMs: number, agentMs: number }, ["durationMs"]),
  usage: object({
    inputTokens: number,
    outputTokens: number,
    cacheReadTokens: number,
    cacheWriteTokens: number,
    cost: number,
    currency: word(/^[A-Z]{3}$/),
    costKind: constant,
  }),
  fileChanges: list(fileChange, 64),
  evidenceRefs: list(reference, 64),
  suppliedRefs: list(reference, 64),
  artifacts: list(
    object({ id: opaqueId, kind: identifier, hash, size: number, availability: constant, classification: constant }, [
      "id",
      "kind",
      "hash",
      "size",
      "availability",
    ]),
    64,
  ),
  receipts: list(object({ provider: identifier, kind: identifier, id: text(512), hash, observedAt: time }, ["provider", "kind", "id"]), 64),
  environment: list(
    object({ name: word(/^[A-Z_][A-Z0-9_]*$/), scope: text(160), status: constant, source: constant, version: text(200) }, [
      "name",
      "scope",
      "status",
      "source",
    ]),
    256,
  ),
  error: object({ class: identifier, component: text(128), retryable: flag }, ["class", "component", "retryable"]),
  effect: object({
    id: opaqueId,
    policy: object({ class: constant, sharedMutable: flag, idempotencyKey: constant, receiptQuery: identifier }),
    idempotencyKeyHash: hash,
  }),
  lease: object({ id: opaqueId, fencingToken: text(256), acquiredAt: time, expiresAt: time, operation: identifier }),
  actor,
  resolvedBy: actor,
  resolutionAction: constant,
  candidate: object({ id: opaqueId, type: constant, summary: text(1000), confidence: constant, status: constant }),
  counts,
  degraded: flag,
};

function rebuildPayload(payload: SyncPayload, scrub: Scrub): SyncPayload {
  const built = object(PAYLOAD)(scrub, "payload", payload) as Record<string, unknown>;
  return built as SyncPayload;
}

/** Identity and the members that a reader needs to follow the run; nothing else. Keeps what of `tried` is valid on its own. */
function degraded(run: SyncIdentity, event: RawEvent, tried: SyncEvent | undefined): SyncEvent {
  const redaction = tried?.redaction ?? { version: "kxm-redact-failed", fieldsOmitted: ["payload"], valuesReplaced: 0 };
  const scrub = {
    version: redaction.version,
    omitted: [...new Set(["payload", ...redaction.fieldsOmitted])].slice(0, 128),
    replaced: redaction.valuesReplaced,
  };
  const control: SyncPayload = { degraded: true };
  const source = tried?.payload ?? {};
  for (const name of [
    "status",
    "previousStatus",
    "stepId",
    "fromStepId",
    "toStepId",
    "outcome",
    "workflowId",
    "stepAttempt",
    "assignmentId",
    "attemptId",
  ] as const)
    if (source[name] !== undefined && holds(run, event, { [name]: source[name] } as SyncPayload)) Object.assign(control, { [name]: source[name] });
  const placeholders = placeholdersOf(event);
  for (const name of requiredOf(event.eventType, { effect: placeholders.effect })) {
    const kept = { [name]: source[name] } as SyncPayload;
    Object.assign(control, source[name] !== undefined && holds(run, event, kept) ? kept : { [name]: placeholders[name] });
  }
  for (const name of requiredOf(event.eventType, control)) if (control[name] === undefined) Object.assign(control, { [name]: placeholders[name] });
  const made = envelope(run, event, control, scrub);
  const problem = syncEventProblem(made);
  if (problem !== undefined) throw new Error(`a degraded sync object of ${event.eventType} is not valid at ${problem}`);
  return made;
}

/** Whether these members alone make a valid event of a type that requires nothing. */
const holds = (run: SyncIdentity, event: RawEvent, payload: SyncPayload): boolean =>
  syncEventProblem(
    envelope(run, { ...event, eventType: "run.status_changed" }, payload, { version: "kxm-redact-failed", omitted: [], replaced: 0 }),
  ) === undefined;

const OMITTED = "[redaction failed]";
function placeholdersOf({ eventId, occurredAt }: RawEvent): Partial<SyncPayload> {
  const at = iso(occurredAt);
  return {
    effect: { id: eventId, policy: { class: "unknown", sharedMutable: false } },
    lease: { id: eventId, fencingToken: OMITTED, acquiredAt: at, expiresAt: at },
    actor: { kind: "runtime", id: OMITTED },
    resolvedBy: { kind: "runtime", id: OMITTED },
    resolutionAction: "mark-failed",
    reason: OMITTED,
    outcome: "unknown",
    suppliedRefs: [],
  };
}
