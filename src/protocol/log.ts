// The event log and the projects that have one, on the wire.
import { type Static, Type } from "@sinclair/typebox";
import { integer, optionalText, text } from "./fields.ts";
import { PAGE_ROWS_DEFAULT, PAGE_ROWS_MAX } from "./limits.ts";

/** One committed change. */
export const LogEntry = Type.Object({
  seq: Type.Integer({ description: "1, 2, 3 … per project, without gaps." }),
  at: Type.String(),
  topic: Type.String({ description: "Which part of the hub changed, such as messages or leases." }),
  type: Type.String(),
  subjectId: Type.String(),
  actor: Type.String(),
  data: Type.Object({}, { additionalProperties: true }),
});
export type LogEntry = Static<typeof LogEntry>;

/** Query of GET /v1/log. Oldest first. */
export const LogQuery = Type.Object({
  project: text(128, { description: "Whose log." }),
  after: integer({ default: 0, min: 0, max: Number.MAX_SAFE_INTEGER }, { description: "seq of the last entry seen." }),
  limit: integer({ default: PAGE_ROWS_DEFAULT, min: 1, max: PAGE_ROWS_MAX }, { description: "Entries of one page." }),
});
/** Its answer. `truncated` says that entries after the cursor were already deleted by retention. */
export const LogAnswer = Type.Object({
  entries: Type.Array(LogEntry),
  lastSeq: Type.Integer({ description: "Newest entry of the project." }),
  truncated: Type.Boolean({ description: "Entries between the cursor and the first one shown are gone." }),
});

/** A project, as the hub knows it: something has happened in it. */
export const Project = Type.Object({
  name: Type.String(),
  lastSeq: Type.Integer(),
  agentsOnline: Type.Integer(),
});
export type Project = Static<typeof Project>;
/** Query of GET /v1/projects. By name. */
export const ProjectsQuery = Type.Object({
  after: optionalText(128, { description: "next of the page before." }),
  limit: integer({ default: PAGE_ROWS_DEFAULT, min: 1, max: PAGE_ROWS_MAX }, { description: "Projects of one page." }),
});
export const ProjectsAnswer = Type.Object({
  projects: Type.Array(Project),
  next: Type.Optional(Type.String({ description: "Pass it as after for the following page; absent on the last." })),
});
