// Endpoints that are told of a project's events: made, rotated, disabled and removed by admins. Codes: endpoint_not_found, protocol_error.
import type { DeliveryRow, WebhookRow } from "../db/schema.ts";
import type { AuditNote, Tx } from "../db/tx.ts";
import { HubError } from "../protocol/errors.ts";
import { iso, isoOrNone } from "../protocol/time.ts";
import {
  ENDPOINTS_MAX,
  type EndpointBody,
  SECRET_OVERLAP_MS,
  type WebhookDelivery,
  type WebhookEndpoint,
  wrongPattern,
} from "../protocol/webhook-endpoints.ts";

type By = { actor: string } & AuditNote;

/** The endpoint as people see it; never its secrets. */
export const toEndpoint = (row: WebhookRow): WebhookEndpoint => ({
  id: row.id,
  project: row.project,
  url: row.url,
  eventTypes: row.eventTypes,
  allowBodies: row.allowBodies === 1,
  allowPrivate: row.allowPrivate === 1,
  createdAt: iso(row.createdAt),
  ...(row.disabledAt !== null && { disabledAt: iso(row.disabledAt), disabledReason: row.disabledReason ?? "" }),
});

/** A line of the delivery log, without the body that was sent. */
export const toDelivery = (row: DeliveryRow): WebhookDelivery => ({
  id: row.id,
  endpointId: row.webhookId,
  eventType: row.eventType,
  eventSeq: row.eventSeq,
  state: row.state,
  attempts: row.attempts.map(({ at, ...attempt }) => ({ at: iso(at), ...attempt })),
  createdAt: iso(row.createdAt),
  ...(row.nextAt !== null && { nextAt: isoOrNone(row.nextAt)! }),
  ...(row.finishedAt !== null && { finishedAt: iso(row.finishedAt) }),
});

/** Secrets that sign now, newest first. */
export const secretsInForce = ({ secrets }: WebhookRow, now: number): string[] =>
  secrets.filter(({ retiresAt }) => retiresAt === undefined || retiresAt > now).map(({ value }) => value);

/** Creates an endpoint. Its address was checked and its secret made outside the write. It hears of what happens from now on. */
export async function create(tx: Tx, by: By, request: EndpointBody & { secret: string }): Promise<WebhookRow> {
  const { project, url, eventTypes, allowBodies, allowPrivate, secret } = request;
  const wrong = eventTypes.map(wrongPattern).find((why) => why !== undefined);
  if (wrong !== undefined) throw new HubError("protocol_error", `eventTypes: ${wrong}`);
  if ((await tx.webhookEndpoints.ofProject(project, ENDPOINTS_MAX)).length >= ENDPOINTS_MAX)
    throw new HubError("protocol_error", `${project} has ${ENDPOINTS_MAX} endpoints already`);
  const row: WebhookRow = {
    id: tx.newId("whk"),
    project,
    url,
    eventTypes: eventTypes.length > 0 ? eventTypes : ["*"],
    secrets: [{ value: secret, createdAt: tx.now }],
    allowBodies: allowBodies ? 1 : 0,
    allowPrivate: allowPrivate ? 1 : 0,
    lastSeq: await tx.events.lastSeq(project),
    createdAt: tx.now,
    createdBy: by.actor,
    disabledAt: null,
    disabledReason: null,
  };
  await tx.webhookEndpoints.insert(row);
  record(tx, by, row, "endpoint.created");
  return row;
}

/**
 * A new secret; the old one signs on for a day, so that receivers can change over.
 * @param wanted.key the request's own: the same again changes nothing, and is answered with the secret that the first one made
 */
export async function rotate(
  tx: Tx,
  by: By,
  id: string,
  wanted: { secret: string; key?: string | undefined },
): Promise<{ row: WebhookRow; secret: string }> {
  const { secret, key } = wanted;
  const row = await lock(tx, id);
  const made = key === undefined ? undefined : row.secrets.find((one) => one.key === key);
  if (made) return { row, secret: made.value };
  const old = row.secrets
    .filter(({ retiresAt }) => retiresAt === undefined || retiresAt > tx.now)
    .slice(0, 2)
    .map((one) => ({ ...one, retiresAt: Math.min(one.retiresAt ?? Number.POSITIVE_INFINITY, tx.now + SECRET_OVERLAP_MS) }));
  const rotated = { ...row, secrets: [{ value: secret, createdAt: tx.now, ...(key !== undefined && { key }) }, ...old] };
  await tx.webhookEndpoints.update(rotated);
  record(tx, by, row, "endpoint.rotated");
  return { row: rotated, secret };
}

/** Starts an endpoint again that was disabled; what happened meanwhile is not sent. */
export async function enable(tx: Tx, by: By, id: string): Promise<WebhookRow> {
  const row = await lock(tx, id);
  if (row.disabledAt === null) return row;
  const enabled = { ...row, disabledAt: null, disabledReason: null, lastSeq: await tx.events.lastSeq(row.project) };
  await tx.webhookEndpoints.update(enabled);
  record(tx, by, row, "endpoint.enabled");
  return enabled;
}

/** Stops an endpoint for a person who says why; one that is stopped already keeps its reason. @throws HubError endpoint_not_found */
export async function disableByHand(tx: Tx, by: By, id: string, reason: string): Promise<WebhookRow> {
  const row = await lock(tx, id);
  if (row.disabledAt === null) await disable(tx, { ...by, reason }, row, reason);
  return (await tx.webhookEndpoints.find(id))!;
}

/** Stops an endpoint, with the reason shown to people. */
export async function disable(tx: Tx, by: { actor: string } & Partial<AuditNote>, row: WebhookRow, reason: string): Promise<void> {
  await tx.webhookEndpoints.update({ ...row, disabledAt: tx.now, disabledReason: reason });
  record(tx, by, row, "endpoint.disabled", { reason });
}

/** Removes an endpoint with its log. */
export async function remove(tx: Tx, by: By, id: string): Promise<void> {
  const row = await lock(tx, id);
  await tx.webhookEndpoints.remove(id);
  record(tx, by, row, "endpoint.removed");
}

/** An endpoint, for update. @throws HubError endpoint_not_found */
export async function lock(tx: Tx, id: string): Promise<WebhookRow> {
  const row = await tx.webhookEndpoints.lock(id);
  if (!row) throw new HubError("endpoint_not_found", `there is no webhook endpoint ${id}`);
  return row;
}

function record(tx: Tx, by: { actor: string } & Partial<AuditNote>, { id, project }: WebhookRow, type: string, data: Record<string, unknown> = {}) {
  const audit = by.role === undefined ? {} : { audit: { role: by.role, origin: by.origin, reason: by.reason } };
  tx.append({ project, topic: "webhooks", type, subjectId: id, actor: by.actor, data, ...audit });
}
