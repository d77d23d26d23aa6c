// What people did, for those who may look.
import type { AuditRow } from "../db/schema.ts";
import * as audit from "../hub/audit.ts";
import { AuditAnswer, type AuditEntry, AuditQuery } from "../protocol/audit.ts";
import { HubError } from "../protocol/errors.ts";
import { iso } from "../protocol/time.ts";
import { requireProject } from "./credentials.ts";
import { route } from "./route.ts";

const shown = (row: AuditRow): AuditEntry => ({
  project: row.project,
  seq: row.seq,
  at: iso(row.at),
  actor: row.actor,
  role: row.role,
  action: row.action,
  subjectId: row.subjectId,
  reason: row.reason ?? undefined,
  origin: row.origin ?? undefined,
  data: row.data,
});

const listAudit = route({
  method: "GET",
  path: "/v1/audit",
  operationId: "listAudit",
  tag: "operations",
  summary: "Lists what operators and admins did, newest first.",
  credential: "viewer",
  query: AuditQuery,
  answers: { 200: AuditAnswer },
  errors: [],
  run: async ({ hub, caller, query }) => {
    const { after, limit, since, until, ...words } = query;
    const project = words.project ?? caller.project ?? undefined;
    if (project !== undefined) requireProject(caller, project);
    const filter = { ...words, project, since: timeOf("since", since), until: timeOf("until", until) };
    const page = await audit.list(hub.engine.read, filter, { after, limit });
    return { status: 200, body: { entries: page.entries.map(shown), next: page.next } };
  },
});

function timeOf(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const at = Date.parse(text);
  if (!/^\d{4}-\d\d-\d\d/.test(text) || Number.isNaN(at))
    throw new HubError("protocol_error", `${name} must be a UTC time such as 2026-01-02T03:04:05Z`);
  return at;
}

export const auditRoutes = [listAudit];
