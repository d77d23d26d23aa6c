// What a Runtime and the hub say to each other: presence, event batches, commands and their results. The event itself is in sync-event.ts.
import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { integer, oneOf, optionalInteger, optionalText, text } from "./fields.ts";
import { OPAQUE_ID } from "./ids.ts";
import { COMMAND_WAIT_MS_MAX, PROMPT_MAX, REASON_MAX } from "./limits.ts";
import { once } from "./once.ts";
import { IDENTIFIER, RESOLUTION_ACTIONS, TAGGED_SHA256 } from "./sync-event.ts";

const project = text(128, { description: "The hub project this machine reports to." });
const runtimeId = text(144, {
  pattern: OPAQUE_ID,
  code: "invalid_runtime_id",
  description: "The id of the Runtime, such as rtm_ and 24 hex digits.",
});
const time = Type.String({ description: "UTC time, ISO-8601 with Z." });
const identifier = Type.String({ pattern: IDENTIFIER.source });
const opaqueId = Type.String({ pattern: OPAQUE_ID.source });
const hash = Type.String({ pattern: TAGGED_SHA256.source });

/** How the sync of one project goes, as the Runtime sees it. */
export const SYNC_STATES = ["ok", "no_hub", "blocked", "refusing", "store_unavailable"] as const;
export type SyncState = (typeof SYNC_STATES)[number];

/** One project's outbox, for the operator's eyes. */
export const OutboxReport = Type.Object({
  projectId: opaqueId,
  name: Type.Optional(Type.String({ maxLength: 128 })),
  state: Type.String({ maxLength: 32, description: SYNC_STATES.join(" | ") }),
  pending: Type.Integer({ minimum: 0 }),
  acked: Type.Integer({ minimum: 0 }),
  refused: Type.Record(Type.String({ maxLength: 64 }), Type.Integer({ minimum: 0 }), { description: "Parked rows by the code that refused them." }),
  paused: Type.Optional(Type.Boolean()),
  lastError: Type.Optional(Type.String({ maxLength: 300 })),
  nextAttemptAt: Type.Optional(time),
});
export type OutboxReport = Static<typeof OutboxReport>;

/** What a Runtime tells about itself with its presence. An older hub ignores it. */
export const RuntimeReport = Type.Object({
  startedAt: Type.Optional(time),
  outbox: Type.Optional(Type.Array(OutboxReport, { maxItems: 256 })),
  slots: Type.Optional(
    Type.Object({ running: Type.Integer({ minimum: 0 }), queued: Type.Integer({ minimum: 0 }), total: Type.Integer({ minimum: 0 }) }),
  ),
  harnesses: Type.Optional(
    Type.Array(
      Type.Object({
        id: Type.String({ maxLength: 64 }),
        version: Type.Optional(Type.String({ maxLength: 128 })),
        state: Type.String({ maxLength: 32, description: "ready | missing | signed_out | unknown" }),
      }),
      { maxItems: 64 },
    ),
  ),
});
export type RuntimeReport = Static<typeof RuntimeReport>;

/** Body of POST /v1/runtime/presence. */
export const PresenceBody = Type.Object({
  project,
  runtimeId,
  host: optionalText(64),
  version: optionalText(64),
  report: Type.Optional(RuntimeReport),
});
/** Its answer. */
export const PresenceAnswer = Type.Object({
  presence: Type.Object({
    runtimeId: Type.String(),
    host: Type.Optional(Type.String()),
    registeredAt: time,
    heartbeatAt: time,
    leaseExpiresAt: time,
    presence: oneOf(["online", "expired"]),
  }),
  generation: Type.Optional(Type.String({ description: "Of the hub's store: another one means that it was restored or is another hub." })),
});
export type PresenceAnswer = Static<typeof PresenceAnswer>;

/** Body of POST /v1/sync/events. The events are looked at one by one: a bad one is an outcome, not a refusal of the batch. */
export const SyncBody = Type.Object({ project, runtimeId, events: Type.Unknown({ description: "At most 100 sync events." }) });

export const SYNC_OUTCOMES = ["accepted", "duplicate", "conflict", "rejected"] as const;
/** What became of one event of a batch; the identity is echoed as far as it was usable. */
export const SyncResult = Type.Object({
  projectId: Type.Optional(Type.String()),
  runId: Type.Optional(Type.String()),
  sequence: Type.Optional(Type.Number()),
  outcome: Type.Union(SYNC_OUTCOMES.map((word) => Type.Literal(word))),
  code: Type.Optional(Type.String()),
  existingHash: Type.Optional(Type.String()),
});
export type SyncResult = Static<typeof SyncResult>;
/** Answer of POST /v1/sync/events: one result per event in order, and how far each touched run is gapless. */
export const SyncAnswer = Type.Object({
  results: Type.Array(SyncResult),
  cursors: Type.Array(Type.Object({ projectId: Type.String(), runId: Type.String(), cursor: Type.Integer({ minimum: 0 }) })),
});
export type SyncAnswer = Static<typeof SyncAnswer>;

export const COMMAND_KINDS = ["start", "approve", "reject", "signal", "retry", "cancel", "pause", "resume", "resolve", "sync-retry"] as const;
/** What an operator can ask of a Runtime. */
export type CommandKind = (typeof COMMAND_KINDS)[number];
const reason = Type.Optional(Type.String({ minLength: 1, maxLength: REASON_MAX }));
const decision = Type.Object({ approvalId: opaqueId, contentHash: hash, reason });

/** The payload each kind carries. Unknown members are ignored, so a newer hub can say more. */
export const COMMAND_PAYLOADS = {
  start: Type.Object({
    prompt: Type.Optional(Type.String({ maxLength: PROMPT_MAX })),
    workflowId: Type.Optional(identifier),
    displayTitle: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
    intakeKey: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
  }),
  approve: decision,
  reject: decision,
  signal: Type.Object({
    signal: identifier,
    status: Type.Optional(identifier),
    summary: Type.Optional(Type.String({ minLength: 1, maxLength: 1000 })),
  }),
  retry: Type.Object({ stepId: Type.Optional(identifier), reason }),
  cancel: Type.Object({ reason }),
  pause: Type.Object({ reason }),
  resume: Type.Object({ reason }),
  resolve: Type.Object({
    effectId: Type.Optional(opaqueId),
    stepId: Type.Optional(identifier),
    action: Type.Union(RESOLUTION_ACTIONS.map((word) => Type.Literal(word))),
    reason: Type.String({ minLength: 1, maxLength: REASON_MAX }),
    refs: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 500 }), { maxItems: 64 })),
  }),
  "sync-retry": Type.Object({ code: Type.Optional(identifier), reason }),
} satisfies Record<CommandKind, TSchema>;
/** The payload of a kind, checked. */
export type CommandPayload<K extends CommandKind = CommandKind> = Static<(typeof COMMAND_PAYLOADS)[K]>;

const payloadChecks = once(() => Object.fromEntries(COMMAND_KINDS.map((kind) => [kind, TypeCompiler.Compile<TSchema>(COMMAND_PAYLOADS[kind])])));
/** Which member of a command's payload is wrong (a path without its value, and how long it may be), or undefined. Both ends ask this before they act. */
export function commandPayloadProblem(kind: CommandKind, payload: unknown): string | undefined {
  const check = payloadChecks()[kind]!;
  if (check.Check(payload)) return undefined;
  const { path, schema, value } = check.Errors(payload).First() ?? {};
  const max = schema?.["maxLength"];
  const tooLong = typeof value === "string" && typeof max === "number" && value.length > max;
  return `${path || "/"}${tooLong ? ` (at most ${max} characters, it has ${value.length})` : ""}`;
}

/** A command on the wire. `seq` rises by one per Runtime and hub project; `actor` is who asked, for the record. */
export const RuntimeCommand = Type.Object({
  id: opaqueId,
  seq: Type.Integer({ minimum: 1 }),
  kind: Type.Union(COMMAND_KINDS.map((word) => Type.Literal(word))),
  projectId: Type.Optional(opaqueId),
  runId: Type.Optional(opaqueId),
  payload: Type.Object({}, { description: "By kind; see COMMAND_PAYLOADS." }),
  actor: Type.String({ minLength: 1, maxLength: 200 }),
  createdAt: time,
});
export type RuntimeCommand = Static<typeof RuntimeCommand>;

/** Query of GET /v1/runtime/commands. */
export const CommandsQuery = Type.Object({
  project,
  runtimeId,
  after: integer({ default: 0, min: 0, max: Number.MAX_SAFE_INTEGER }, { description: "The highest seq this Runtime has recorded." }),
  waitMs: integer({ default: 0, min: 0, max: COMMAND_WAIT_MS_MAX }, { description: "How long to wait for the first command." }),
  limit: optionalInteger({ min: 1, max: 100 }),
});
/** Its answer: unfinished commands with seq > after, oldest first; empty when the wait ended. */
export const CommandsAnswer = Type.Object({ commands: Type.Array(RuntimeCommand) });
export type CommandsAnswer = Static<typeof CommandsAnswer>;

export const COMMAND_RESULT_STATES = ["received", "applied", "refused"] as const;
/** Body of POST /v1/runtime/commands/{id}/result. `received` may be followed by one of the other two, which are final. */
export const CommandResultBody = Type.Object({
  project,
  runtimeId,
  state: oneOf(COMMAND_RESULT_STATES),
  reason: optionalText(1000, { description: "Why it was refused, for the operator." }),
  detail: Type.Optional(Type.Unknown({ description: "What came of it, such as the id of the run that was started. At most 8 KiB." })),
});
/** Its answer. */
export const CommandResultAnswer = Type.Object({ command: Type.Object({ id: Type.String(), state: Type.String() }) });
