// Deliveries: events become rows with the body they will always carry, rows are claimed, sent and settled. At least once, whatever crashes in between:
// a claim that is not settled in time is taken again, under the same id.
// Codes: delivery_not_found, endpoint_not_found.
import type { DeliveryRow, EventRow, WebhookRow } from "../db/schema.ts";
import type { AuditNote, Stores, Tx } from "../db/tx.ts";
import { HubError } from "../protocol/errors.ts";
import { iso } from "../protocol/time.ts";
import { ATTEMPT_WAITS_MS, matchesEvent, signedHeaders } from "../protocol/webhook-endpoints.ts";
import * as alerts from "./alerts.ts";
import type { Hub } from "./hub.ts";
import { describeError } from "./log.ts";
import * as endpoints from "./webhook-endpoints.ts";

const ENDPOINTS_MAX = 1_000; // looked at in one round
const EVENTS_AT_ONCE = 200;
const DUE_AT_ONCE = 100;
const CLAIM_MS = 60_000; // longer than any attempt takes
const TIMEOUT_MS = 15_000;
const PER_ENDPOINT = 4; // attempts at a time, so that one slow receiver holds up only itself
const JITTER = 0.1;

/** Sends one request; given by the program, because rules know no network. */
export type Post = (request: {
  url: string;
  allowPrivate: boolean;
  headers: Record<string, string>;
  body: string;
  timeoutMs: number;
}) => Promise<{ status: number; retryAfter: string | null }>;
export type Deliverer = { post: Post /** 0 to 1. */; random: () => number };

/** Turns new events into deliveries, endpoint by endpoint; the cursor moves in the same write. @returns how many were made */
export async function enqueue(hub: Hub): Promise<number> {
  let made = 0;
  for (const endpoint of await hub.engine.read.webhookEndpoints.active(ENDPOINTS_MAX)) {
    if ((await hub.engine.read.events.lastSeq(endpoint.project)) <= endpoint.lastSeq) continue;
    const events = await hub.engine.read.events.after(endpoint.project, endpoint.lastSeq, EVENTS_AT_ONCE);
    const wanted = events.filter(({ topic, type }) => topic !== "webhooks" && matchesEvent(endpoint.eventTypes, `${topic}.${type}`));
    const bodies = await Promise.all(wanted.map((event) => bodyOf(hub.engine.read, event, endpoint.allowBodies === 1)));
    const lastSeq = events.at(-1)?.seq ?? endpoint.lastSeq;
    await hub.engine.write(endpoint.project, async (tx) => {
      const row = await tx.webhookEndpoints.lock(endpoint.id);
      if (!row || row.disabledAt !== null || row.lastSeq !== endpoint.lastSeq) return; // somebody else was faster
      await tx.webhookEndpoints.insertDeliveries(wanted.map((event, index) => newDelivery(tx, row, event, bodies[index]!)));
      await tx.webhookEndpoints.update({ ...row, lastSeq });
      made += wanted.length;
    });
  }
  return made;
}

const newDelivery = (tx: Tx, endpoint: WebhookRow, event: EventRow, body: string): DeliveryRow => ({
  id: tx.newId("dlv"),
  webhookId: endpoint.id,
  project: endpoint.project,
  eventSeq: event.seq,
  eventType: `${event.topic}.${event.type}`,
  state: "pending",
  attempts: [],
  body,
  nextAt: tx.now,
  createdAt: tx.now,
  finishedAt: null,
});

/** What a receiver gets. Texts of messages only where the endpoint may have them. */
async function bodyOf(read: Stores, event: EventRow, withBodies: boolean): Promise<string> {
  const { project, seq, topic, type, subjectId, actor, at, data } = event;
  const message = withBodies && topic === "messages" ? await read.messages.find(subjectId) : undefined;
  const texts = message && { content: message.content, ...(message.replyContent !== null && { reply: message.replyContent }) };
  return JSON.stringify({ type: `${topic}.${type}`, timestamp: iso(at), data: { project, seq, subjectId, actor, ...data, ...texts } });
}

/** Sends what is due. One bad receiver does not hold up the others. @returns how many attempts were made */
export async function deliverDue(hub: Hub, deliverer: Deliverer): Promise<number> {
  const due = await hub.engine.read.webhookEndpoints.due(hub.clock(), DUE_AT_ONCE);
  const byEndpoint = Map.groupBy(due, ({ webhookId }) => webhookId);
  const counts = await Promise.all([...byEndpoint].map(([id, rows]) => deliverTo(hub, deliverer, id, rows.slice(0, PER_ENDPOINT))));
  return counts.reduce((sum, count) => sum + count, 0);
}

async function deliverTo(hub: Hub, deliverer: Deliverer, endpointId: string, rows: DeliveryRow[]): Promise<number> {
  const endpoint = await hub.engine.read.webhookEndpoints.find(endpointId);
  if (!endpoint || endpoint.disabledAt !== null) {
    await hub.engine.write(rows[0]!.project, (tx) =>
      giveUp(
        tx,
        rows.map(({ id }) => id),
        endpoint ? "the endpoint is disabled" : "the endpoint was removed",
      ),
    );
    return 0;
  }
  const claimed = await hub.engine.write(endpoint.project, (tx) =>
    claim(
      tx,
      rows.map(({ id }) => id),
    ),
  );
  await Promise.all(
    claimed.map(async (row) => {
      const attempt = await attemptOne(hub, deliverer, endpoint, row);
      await hub.engine.write(endpoint.project, (tx) => settle(tx, row.id, attempt, deliverer.random()));
    }),
  );
  return claimed.length;
}

async function claim(tx: Tx, ids: string[]): Promise<DeliveryRow[]> {
  const claimed: DeliveryRow[] = [];
  for (const id of ids) {
    const row = await tx.webhookEndpoints.lockDelivery(id);
    if (row?.state !== "pending" || row.nextAt === null || row.nextAt > tx.now) continue;
    await tx.webhookEndpoints.updateDelivery({ ...row, nextAt: tx.now + CLAIM_MS });
    claimed.push(row);
  }
  return claimed;
}

type Attempt = { at: number; ms: number; status?: number; error?: string; retryAfterMs?: number };

async function attemptOne(hub: Hub, { post }: Deliverer, endpoint: WebhookRow, row: DeliveryRow): Promise<Attempt> {
  const at = hub.clock();
  const headers = {
    "content-type": "application/json",
    "user-agent": "kxm-webhooks",
    ...signedHeaders(endpoints.secretsInForce(endpoint, at), row.id, Math.floor(at / 1000), row.body),
  };
  try {
    const { status, retryAfter } = await post({
      url: endpoint.url,
      allowPrivate: endpoint.allowPrivate === 1,
      headers,
      body: row.body,
      timeoutMs: TIMEOUT_MS,
    });
    const seconds = retryAfter !== null && /^\d{1,6}$/.test(retryAfter) ? Number(retryAfter) : undefined;
    return { at, ms: hub.clock() - at, status, ...(seconds !== undefined && { retryAfterMs: seconds * 1000 }) };
  } catch (error) {
    return { at, ms: hub.clock() - at, error: error instanceof HubError ? error.message : describeError(error).slice(0, 200) };
  }
}

/** Writes down an attempt: delivered, again later, or given up. 410 disables the endpoint. @param random 0 to 1, for the jitter */
async function settle(tx: Tx, id: string, { retryAfterMs, ...attempt }: Attempt, random: number): Promise<void> {
  const row = await tx.webhookEndpoints.lockDelivery(id);
  if (row?.state !== "pending") return;
  const attempts = [...row.attempts, attempt];
  const { status } = attempt;
  const endpoint = await tx.webhookEndpoints.lock(row.webhookId);
  if (status !== undefined && status >= 200 && status < 300) return finish(tx, { ...row, attempts }, "delivered");
  if (status === 410 && endpoint && endpoint.disabledAt === null)
    await endpoints.disable(tx, { actor: "hub" }, endpoint, "the receiver answered 410 Gone");
  const wait = ATTEMPT_WAITS_MS[attempts.length];
  if (status === 410 || wait === undefined || !endpoint) {
    await finish(tx, { ...row, attempts }, "failed");
    await alerts.raise(tx, {
      project: row.project,
      kind: "webhook_failed",
      dedupeKey: row.webhookId,
      severity: "warning",
      summary: `Deliveries to a webhook endpoint failed for good`,
      subject: row.webhookId,
      data: { status: status ?? null },
    });
    return;
  }
  const jittered = wait * (1 - JITTER + 2 * JITTER * random);
  await tx.webhookEndpoints.updateDelivery({ ...row, attempts, nextAt: tx.now + Math.round(Math.max(jittered, retryAfterMs ?? 0)) });
}

async function finish(tx: Tx, row: DeliveryRow, state: "delivered" | "failed") {
  await tx.webhookEndpoints.updateDelivery({ ...row, state, nextAt: null, finishedAt: tx.now });
  tx.append({
    project: row.project,
    topic: "webhooks",
    type: `delivery.${state}`,
    subjectId: row.id,
    actor: "hub",
    data: { endpointId: row.webhookId, attempts: row.attempts.length },
  });
}

async function giveUp(tx: Tx, ids: string[], why: string) {
  for (const id of ids) {
    const row = await tx.webhookEndpoints.lockDelivery(id);
    if (row?.state === "pending") await finish(tx, { ...row, attempts: [...row.attempts, { at: tx.now, ms: 0, error: why }] }, "failed");
  }
}

/** Sends a finished delivery again, under the same id: a receiver that has it will know. @throws HubError delivery_not_found */
export async function replay(tx: Tx, by: { actor: string } & AuditNote, id: string): Promise<DeliveryRow> {
  const row = await tx.webhookEndpoints.lockDelivery(id);
  if (!row) throw new HubError("delivery_not_found", `there is no delivery ${id}`);
  if (row.state === "pending") return row;
  const again: DeliveryRow = { ...row, state: "pending", nextAt: tx.now, finishedAt: null, attempts: [] };
  await tx.webhookEndpoints.updateDelivery(again);
  tx.append({
    project: row.project,
    topic: "webhooks",
    type: "delivery.replayed",
    subjectId: id,
    actor: by.actor,
    data: { endpointId: row.webhookId },
    audit: { role: by.role, origin: by.origin, reason: by.reason },
  });
  return again;
}

/** Queues a test event for one endpoint. */
export async function test(tx: Tx, by: { actor: string } & AuditNote, id: string): Promise<DeliveryRow> {
  const endpoint = await endpoints.lock(tx, id);
  const body = JSON.stringify({ type: "webhooks.test", timestamp: iso(tx.now), data: { project: endpoint.project, endpointId: id } });
  const row = newDelivery(
    tx,
    endpoint,
    { project: endpoint.project, seq: endpoint.lastSeq, at: tx.now, topic: "webhooks", type: "test", subjectId: id, actor: by.actor, data: {} },
    body,
  );
  await tx.webhookEndpoints.insertDeliveries([row]);
  tx.append({
    project: endpoint.project,
    topic: "webhooks",
    type: "endpoint.tested",
    subjectId: id,
    actor: by.actor,
    data: { deliveryId: row.id },
    audit: { role: by.role, origin: by.origin },
  });
  return row;
}
