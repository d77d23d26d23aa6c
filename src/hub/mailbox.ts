// Reading messages: one, waiting for one to end, the open inbox, and lists. Nothing here acknowledges anything.
// Codes: message_not_found, message_forbidden, protocol_error.
import type { MessageEntry } from "../db/messages.ts";
import type { MessageRow } from "../db/schema.ts";
import type { Stores } from "../db/tx.ts";
import { HubError } from "../protocol/errors.ts";
import { LIST_SCAN_ROWS_MAX } from "../protocol/limits.ts";
import { isEnded, type ListQuery, type Message } from "../protocol/messages.ts";
import { iso } from "../protocol/time.ts";
import type { Caller } from "./agents.ts";
import type { Hub } from "./hub.ts";
import { describeError } from "./log.ts";
import * as messages from "./messages.ts";

/** The record its sender and recipient see. */
export function toMessage(row: MessageRow): Message {
  const { correlationId, replyTo, idempotencyKey, workflowRunId, workflowContext, error, replyContent, repliedAt } = row;
  return {
    id: row.id,
    project: row.project,
    from: row.senderId,
    fromName: row.senderName,
    to: row.recipientId,
    toName: row.recipientName,
    content: row.content,
    delivery: row.delivery,
    hops: row.hops,
    maxHops: row.maxHops,
    seq: row.recipientSeq,
    ...(correlationId !== null && { correlationId }),
    ...(replyTo !== null && { replyTo }),
    ...(idempotencyKey !== null && { idempotencyKey }),
    ...(workflowRunId !== null && { workflowRunId }),
    ...(workflowContext !== null && { workflowContext }),
    createdAt: iso(row.createdAt),
    expiresAt: iso(row.expiresAt),
    ...(row.pushedAt !== null && { pushedAt: iso(row.pushedAt) }),
    ...(row.deliveredAt !== null && { deliveredAt: iso(row.deliveredAt) }),
    ...(row.turnStartedAt !== null && { turnStartedAt: iso(row.turnStartedAt) }),
    ...(repliedAt !== null && { repliedAt: iso(repliedAt) }),
    ...(row.cancelledAt !== null && { cancelledAt: iso(row.cancelledAt) }),
    status: row.status,
    ...(replyContent !== null && { reply: { content: replyContent, createdAt: iso(repliedAt!) } }),
    ...(error !== null && { error }),
  };
}

/**
 * Writes down that a message is over, if its time has passed without a sweep noticing. A store in trouble does not stop anybody from reading: then the
 * next sweep does it.
 */
export async function settleDue(hub: Pick<Hub, "engine" | "metrics" | "log">, project: string, id: string): Promise<void> {
  try {
    hub.metrics.add("messages_expired", await hub.engine.write(project, (tx) => messages.expireDue(tx, [id])));
  } catch (error) {
    if (!(error instanceof HubError && error.code === "storage_unavailable")) throw error;
    hub.log({ event: "expiry_write_failed", level: "warn", project, messageId: id, error: describeError(error) });
  }
}

/** One message as it is now. @throws HubError message_not_found, message_forbidden */
export async function get(hub: Hub, caller: Caller, id: string): Promise<MessageRow> {
  const { read } = hub.engine;
  const message = messages.requireParty(await read.messages.find(id), caller, id);
  if (!messages.isDue(message, hub.clock())) return message;
  await settleDue(hub, message.project, id);
  const now = messages.requireParty(await read.messages.find(id), caller, id);
  return messages.isDue(now, hub.clock()) ? { ...now, ...messages.asExpired(hub.clock()) } : now; // not written down yet, but over
}

/**
 * Waits until a message has ended, woken by the event log. Returns it as it is when the signal ends first.
 * @param signal ends the wait: the caller's time limit, its leaving, or the hub's stop
 * @throws HubError message_not_found, message_forbidden
 */
export async function waitForEnd(hub: Hub, caller: Caller, id: string, signal: AbortSignal): Promise<MessageRow> {
  const { promise: woken, resolve: wake } = Promise.withResolvers<void>();
  const ends = ["replied", "cancelled", "expired"];
  const listener = { event: ({ type }: { type: string }) => void (ends.includes(type) && wake()), lost: () => wake() };
  const { leave } = await hub.feeds.join(caller.project, listener, id);
  try {
    const message = await get(hub, caller, id); // after joining: what happened before is in the row, what happens later wakes us
    if (isEnded(message.status) || signal.aborted) return message;
    signal.addEventListener("abort", () => wake(), { once: true });
    await woken;
  } finally {
    leave();
  }
  return get(hub, caller, id);
}

/** Open requests to an agent beyond a number, oldest first. `next` is there when more follow. */
export async function inbox(read: Stores, agentId: string, { after, limit }: { after: number; limit: number }) {
  const rows = await read.messages.inbox(agentId, after, limit + 1);
  const page = rows.slice(0, limit);
  return { messages: page.map(toMessage), ...(rows.length > limit && { next: page.at(-1)!.recipientSeq }) };
}

/**
 * A page of what an agent received or sent. At most LIST_SCAN_ROWS_MAX entries are looked at, so a rare filter gives short pages, not slow ones.
 * @throws HubError protocol_error for a cursor of another list
 */
export async function list(read: Stores, caller: Caller, query: ListQuery) {
  const { box, status, correlationId, limit } = query;
  const filtered = status !== undefined || correlationId !== undefined;
  const scanMax = filtered ? LIST_SCAN_ROWS_MAX : limit + 1;
  const entries = await scan(read, caller, query, scanMax);
  const mine = (entry: MessageEntry) => (box === "inbox" ? entry.recipientId : entry.senderId) === caller.id;
  const fits = (entry: MessageEntry) => mine(entry) && (status === undefined || entry.status === status);
  const found: MessageEntry[] = [];
  let last: MessageEntry | undefined;
  for (const entry of entries) {
    if (found.length === limit) break;
    if (fits(entry)) found.push(entry);
    last = entry;
  }
  const more = last !== undefined && (last !== entries.at(-1) || entries.length === scanMax);
  const rows = new Map((await read.messages.byIds(found.map(({ id }) => id))).map((row) => [row.id, row]));
  return {
    messages: found.flatMap(({ id }) => rows.get(id) ?? []).map(toMessage),
    ...(more && { next: box === "inbox" && correlationId === undefined ? String(last!.recipientSeq) : last!.id }),
  };
}

async function scan(read: Stores, caller: Caller, query: ListQuery, limit: number): Promise<MessageEntry[]> {
  const { box, status, correlationId, order, after } = query;
  const byId = correlationId !== undefined || box === "sent";
  if (after !== undefined && !(byId ? /^msg_[0-9a-f]{32}$/ : /^\d{1,15}$/).test(after)) {
    throw new HubError("protocol_error", "after must be the next of a page of the same list");
  }
  const from = after ?? (order === "oldest" ? "" : LAST_ID);
  if (correlationId !== undefined) return read.messages.entries({ kind: "thread", of: caller.project, correlationId, after: from }, order, limit);
  if (box === "sent") return read.messages.entries({ kind: "sent", of: caller.id, after: from }, order, limit);
  const seq = after === undefined ? (order === "oldest" ? 0 : Number.MAX_SAFE_INTEGER) : Number(after);
  const received = (kind: "open" | "ended") => read.messages.entries({ kind, of: caller.id, after: seq }, order, limit);
  if (status !== undefined) return received(isEnded(status) ? "ended" : "open");
  const open = await received("open"); // first: a message that ends between the two looks is found twice, never not at all
  const both = [...new Map([...open, ...(await received("ended"))].map((entry) => [entry.id, entry])).values()];
  const sign = order === "oldest" ? 1 : -1;
  return both.sort((a, b) => sign * (a.recipientSeq - b.recipientSeq)).slice(0, limit);
}

/** Sorts after every id. */
const LAST_ID = "~";
