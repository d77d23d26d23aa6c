// Alerts: raised once per cause and then only counted, until an operator says what was found.
// Codes: alert_not_found.
import type { AlertRow } from "../db/schema.ts";
import type { Stores, Tx } from "../db/tx.ts";
import type { Alert, AlertsAnswer } from "../protocol/alerts.ts";
import { HubError } from "../protocol/errors.ts";
import { iso, isoOrNone } from "../protocol/time.ts";

/** Who acts, for the audit log. */
export type By = { actor: string; role: string; origin?: string };
/** A cause. `dedupeKey` says what "the same" means within a kind; `reopens` whether a repeat undoes an acknowledgement. */
export type Cause = Pick<AlertRow, "project" | "kind" | "dedupeKey" | "severity" | "summary"> & {
  subject?: string;
  data?: Record<string, unknown>;
  reopens?: boolean;
};
/** Above every id. */
const TOP = "~";

/** Raises an alert, or counts a repeat of its cause. @returns whether it is new or open again */
export async function raise(tx: Tx, { reopens = false, subject, data = {}, ...cause }: Cause): Promise<boolean> {
  const known = await tx.alerts.findKey(cause.project, cause.kind, cause.dedupeKey);
  if (known) {
    const reopened = reopens && known.acknowledgedAt !== null;
    const open = reopened ? { acknowledgedAt: null, acknowledgedBy: null, reason: null } : {};
    await tx.alerts.update({ ...known, ...open, summary: cause.summary, data, lastAt: tx.now, count: known.count + 1 });
    if (reopened) record(tx, "reopened", known, "hub");
    return reopened;
  }
  const row: AlertRow = {
    ...cause,
    id: tx.newId("alt"),
    subject: subject ?? null,
    data,
    raisedAt: tx.now,
    lastAt: tx.now,
    count: 1,
    acknowledgedAt: null,
    acknowledgedBy: null,
    reason: null,
  };
  await tx.alerts.insert(row);
  record(tx, "raised", row, "hub");
  return true;
}

/** Takes note of an alert, once; a repeat changes nothing. @throws HubError alert_not_found */
export async function acknowledge(tx: Tx, by: By, id: string, reason: string): Promise<AlertRow> {
  const alert = await tx.alerts.find(id);
  if (!alert) throw notFound(id);
  if (alert.acknowledgedAt !== null) return alert;
  const noted = { ...alert, acknowledgedAt: tx.now, acknowledgedBy: by.actor, reason };
  await tx.alerts.update(noted);
  record(tx, "acknowledged", noted, by.actor, { role: by.role, reason, origin: by.origin });
  return noted;
}

/** One alert, for callers of its project. @param project the caller's only project, or null for every one @throws HubError alert_not_found */
export async function find(read: Stores, id: string, project: string | null): Promise<AlertRow> {
  const alert = await read.alerts.find(id);
  if (!alert || (project !== null && alert.project !== project)) throw notFound(id);
  return alert;
}

/** A page of a project's alerts, newest first. */
export async function list(
  read: Stores,
  project: string,
  { state, after = TOP, limit }: { state: "open" | "all"; after?: string | undefined; limit: number },
): Promise<AlertsAnswer> {
  const rows = await (state === "open" ? read.alerts.openPage : read.alerts.page)(project, after, limit + 1);
  const shown = rows.slice(0, limit);
  return { alerts: shown.map(alertOf), ...(rows.length > limit && { next: shown.at(-1)!.id }) };
}

/** An alert as callers of the API see it. */
export const alertOf = (row: AlertRow): Alert => ({
  id: row.id,
  project: row.project,
  kind: row.kind,
  severity: row.severity,
  summary: row.summary,
  ...(row.subject !== null && { subject: row.subject }),
  data: row.data,
  raisedAt: iso(row.raisedAt),
  lastAt: iso(row.lastAt),
  count: row.count,
  acknowledgedAt: isoOrNone(row.acknowledgedAt),
  acknowledgedBy: row.acknowledgedBy ?? undefined,
  reason: row.reason ?? undefined,
});

const notFound = (id: string) => new HubError("alert_not_found", `there is no alert ${id}`);

function record(
  tx: Tx,
  type: string,
  { project, id, kind, severity, subject }: AlertRow,
  actor: string,
  audit?: Parameters<Tx["append"]>[0]["audit"],
) {
  tx.append({ project, topic: "alerts", type, subjectId: id, actor, data: { kind, severity, subject }, ...(audit && { audit }) });
}
