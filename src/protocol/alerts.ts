// Alerts and sync conflicts: what an operator should look at and say so.
import { type Static, Type } from "@sinclair/typebox";
import { integer, oneOf, optionalText, text } from "./fields.ts";
import { PAGE_ROWS_DEFAULT, PAGE_ROWS_MAX, REASON_MAX } from "./limits.ts";

const time = Type.String({ description: "UTC time, ISO-8601 with Z." });
const project = optionalText(128, { description: "The hub project; a token of one project may leave it out." });
const acknowledged = {
  acknowledgedAt: Type.Optional(time),
  acknowledgedBy: Type.Optional(Type.String()),
  reason: Type.Optional(Type.String()),
};
const next = Type.Optional(Type.String({ description: "Send it as after for the next page; absent on the last." }));

export const ALERT_SEVERITIES = ["info", "warning", "security"] as const;
export const Alert = Type.Object({
  id: Type.String(),
  project: Type.String(),
  kind: Type.String(),
  severity: Type.Union(ALERT_SEVERITIES.map((word) => Type.Literal(word))),
  summary: Type.String(),
  subject: Type.Optional(Type.String({ description: "The id of what it is about." })),
  data: Type.Object({}),
  raisedAt: time,
  lastAt: time,
  count: Type.Integer({ minimum: 1, description: "How often the same cause came up." }),
  ...acknowledged,
});
export type Alert = Static<typeof Alert>;

export const SyncConflict = Type.Object({
  id: Type.String(),
  project: Type.String(),
  projectId: Type.String(),
  runId: Type.String(),
  sequence: Type.Integer(),
  code: Type.String(),
  runtimeId: Type.String({ description: "Who pushed what was refused." }),
  existingHash: Type.Optional(Type.String()),
  hash: Type.String({ description: "Of what was refused." }),
  firstAt: time,
  lastAt: time,
  count: Type.Integer({ minimum: 1 }),
  ...acknowledged,
});
export type SyncConflict = Static<typeof SyncConflict>;
/** With both payloads; `existing` is absent where nothing of this project is stored under the sequence. */
export const SyncConflictDetail = Type.Object({
  ...SyncConflict.properties,
  existing: Type.Optional(Type.Object({})),
  refused: Type.Object({}),
});
export type SyncConflictDetail = Static<typeof SyncConflictDetail>;

export const OpenQuery = Type.Object({
  project,
  state: oneOf(["open", "all"], { default: "open", description: "open: not acknowledged yet." }),
  after: optionalText(64, { description: "next of the page before." }),
  limit: integer({ default: PAGE_ROWS_DEFAULT, min: 1, max: PAGE_ROWS_MAX }),
});
export const AcknowledgeBody = Type.Object({ reason: text(REASON_MAX, { description: "What was found; kept in the audit log." }) });
export const IdParams = Type.Object({ id: text(64) });
export const AlertsAnswer = Type.Object({ alerts: Type.Array(Alert), next });
export type AlertsAnswer = Static<typeof AlertsAnswer>;
export const AlertAnswer = Type.Object({ alert: Alert });
export const ConflictsAnswer = Type.Object({ conflicts: Type.Array(SyncConflict), next });
export type ConflictsAnswer = Static<typeof ConflictsAnswer>;
export const ConflictAnswer = Type.Object({ conflict: SyncConflictDetail });
