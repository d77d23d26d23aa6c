// What people did, on the wire: one entry per action of an operator or admin.
import { type Static, Type } from "@sinclair/typebox";
import { integer, optionalText } from "./fields.ts";
import { PAGE_ROWS_DEFAULT, PAGE_ROWS_MAX } from "./limits.ts";

/** One action. */
export const AuditEntry = Type.Object({
  project: Type.String({ description: 'The project it was about; "" is the hub itself.' }),
  seq: Type.Integer({ description: "Number of the event in the project's log." }),
  at: Type.String(),
  actor: Type.String({ description: "Who: admin, a token, a session." }),
  role: Type.String(),
  action: Type.String(),
  subjectId: Type.String({ description: "What it was done to." }),
  reason: Type.Optional(Type.String()),
  origin: Type.Optional(Type.String({ description: "Where the request came from: cli, dashboard, api." })),
  data: Type.Object({}, { additionalProperties: true }),
});
export type AuditEntry = Static<typeof AuditEntry>;

/** Query of GET /v1/audit. Newest first. */
export const AuditQuery = Type.Object({
  project: optionalText(128, { description: "Only this project's entries." }),
  actor: optionalText(128, { description: "Only what this actor did." }),
  action: optionalText(64, { description: "Only this kind of action." }),
  subject: optionalText(200, { description: "Only what was done to this id." }),
  since: optionalText(40, { description: "UTC time; only entries from then on." }),
  until: optionalText(40, { description: "UTC time; only entries before it." }),
  after: optionalText(300, { description: "next of the page before." }),
  limit: integer({ default: PAGE_ROWS_DEFAULT, min: 1, max: PAGE_ROWS_MAX }, { description: "Entries of one page." }),
});
export type AuditQuery = Static<typeof AuditQuery>;
export const AuditAnswer = Type.Object({
  entries: Type.Array(AuditEntry),
  next: Type.Optional(Type.String({ description: "Pass it as after for the following page; absent on the last." })),
});
