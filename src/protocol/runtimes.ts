// Runtimes and their commands as operators see them. What a Runtime itself sends and polls is in sync.ts.
import { type Static, Type } from "@sinclair/typebox";
import { integer, oneOf, optionalText, text } from "./fields.ts";
import { OPAQUE_ID } from "./ids.ts";
import { PAGE_ROWS_DEFAULT, PAGE_ROWS_MAX } from "./limits.ts";
import { COMMAND_KINDS, RuntimeReport } from "./sync.ts";

const time = Type.String({ description: "UTC time, ISO-8601 with Z." });
const optional = Type.Optional;
const id = Type.String();

export const COMMAND_STATES = ["sent", "received", "applied", "refused", "expired"] as const;
/** A command and how far it got. A prompt is not shown, only how long it is. */
export const Command = Type.Object({
  id,
  project: id,
  runtimeId: id,
  seq: Type.Integer({ minimum: 1 }),
  kind: Type.Union(COMMAND_KINDS.map((word) => Type.Literal(word))),
  projectId: optional(id),
  runId: optional(id),
  payload: Type.Object({}),
  actor: id,
  state: Type.Union(COMMAND_STATES.map((word) => Type.Literal(word))),
  reason: optional(Type.String({ description: "Why the Runtime refused it." })),
  detail: optional(Type.Unknown({ description: "What the Runtime says came of it." })),
  createdAt: time,
  receivedAt: optional(time),
  finishedAt: optional(time),
  expiresAt: time,
});
export type Command = Static<typeof Command>;

const opaque = (description: string) => optionalText(144, { pattern: OPAQUE_ID, description });
/** Body of POST /v1/runtime/commands. Name a run, or a Runtime for what is not about a run. */
export const CommandBody = Type.Object({
  project: text(128, { description: "The hub project." }),
  kind: oneOf(COMMAND_KINDS),
  runtimeId: opaque("The Runtime; may be left out when a run is named."),
  projectId: opaque("The Runtime's project, such as prj_…"),
  runId: opaque("The run, with projectId."),
  payload: optional(Type.Unknown({ description: "By kind; see the Runtime's reference." })),
  idempotencyKey: optionalText(128, { description: "The same key and request return the first command." }),
});
export const CommandAnswer = Type.Object({ command: Command });
export const RunCommandsQuery = Type.Object({
  after: integer({ default: Number.MAX_SAFE_INTEGER, min: 1, max: Number.MAX_SAFE_INTEGER }, { description: "next of the page before." }),
  limit: integer({ default: PAGE_ROWS_DEFAULT, min: 1, max: PAGE_ROWS_MAX }),
});
export const RunCommandsAnswer = Type.Object({ commands: Type.Array(Command), next: optional(Type.Integer()) });
export type RunCommandsAnswer = Static<typeof RunCommandsAnswer>;
export const RUNTIME_PRESENCE = ["online", "expired", "unknown"] as const;
export type RuntimePresence = (typeof RUNTIME_PRESENCE)[number];
const presence = Type.Union(
  RUNTIME_PRESENCE.map((word) => Type.Literal(word)),
  { description: "unknown: it has runs here but never reported." },
);
/** A Runtime as it last reported itself. */
export const Runtime = Type.Object({
  project: id,
  runtimeId: id,
  host: optional(Type.String()),
  version: optional(Type.String()),
  registeredAt: optional(time),
  heartbeatAt: optional(time),
  leaseExpiresAt: optional(time),
  presence,
  orphaned: Type.Boolean({ description: "Its runs go on without a sign of life here." }),
  report: optional(RuntimeReport),
  commandsInFlight: Type.Integer({ minimum: 0 }),
  runTotal: Type.Integer({ minimum: 0, description: "Exact up to 1,000." }),
});
export type Runtime = Static<typeof Runtime>;
export const RuntimesQuery = Type.Object({ project: optionalText(128) });
export const RuntimesAnswer = Type.Object({ runtimes: Type.Array(Runtime) });
export type RuntimesAnswer = Static<typeof RuntimesAnswer>;

/** A Runtime in the ops snapshot, with its newest runs. */
export type HomeRuntime = {
  runtimeId: string;
  host?: string;
  heartbeatAt?: string;
  leaseExpiresAt?: string;
  presence: RuntimePresence;
  orphaned: boolean;
  runs: HomeRun[];
  runTotal: number;
};
export type HomeRun = {
  projectId: string;
  runId: string;
  workflowId?: string;
  displayTitle?: string;
  status?: string;
  lastSequence: number;
  pendingGap: boolean;
  updatedAt?: string;
  orphaned: boolean;
};
