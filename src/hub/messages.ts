// Messages: queued → delivered → replied, or cancelled, or expired. Every change appends one event whose data names the parties, never the text.
// Codes: idempotency_conflict, target_not_found, self_target, workflow_context_forbidden, message_not_found, message_forbidden,
// invalid_message_state, duplicate_reply.
import type { AgentTarget } from "../db/agents.ts";
import type { QueuedRow } from "../db/messages.ts";
import type { MessageRow } from "../db/schema.ts";
import type { AuditNote, Tx } from "../db/tx.ts";
import { canonical, sha256 } from "../protocol/canonical.ts";
import { HubError } from "../protocol/errors.ts";
import { CANCELLED_TEXT, EXPIRED_TEXT, isEnded, type SendBody } from "../protocol/messages.ts";
import type { Caller } from "./agents.ts";
import { afterExpiry, afterReply } from "./workflows/endings.ts";
import { bindContext, contextOf, readContext } from "./workflows/peers.ts";

/** Who acts on messages. With `audit` it is a person who may act on every message of the project, and the act is kept in the audit table. */
export type Party = Caller & { audit?: AuditNote };
/** A request to send, checked. Without `ttlMs` the hub's default holds. */
export type SendRequest = Omit<SendBody, "workflowContext">;
/** What a workflow run adds to the messages it sends. */
export type Origin = { workflowRunId?: string; workflowContext?: Record<string, unknown> };
type EventType = "queued" | "delivered" | "turn_started" | "replied" | "cancelled" | "expired";

/**
 * An agent sends a message to another of its project.
 * @param ttlMs the hub's default life of a message in milliseconds
 * @throws HubError idempotency_conflict, target_not_found, self_target, and what workflows/peers.ts throws for a workflowContext
 */
export async function send(tx: Tx, sender: Caller, request: SendBody, ttlMs: number) {
  const { workflowContext, ...plain } = request;
  if (!workflowContext) return sendAs(tx, sender, plain, { ttlMs });
  const context = readContext(workflowContext);
  const isRetry = plain.idempotencyKey !== undefined && (await tx.messages.findByKey(sender.id, plain.idempotencyKey)) !== undefined;
  const bound = isRetry ? contextOf(context) : await bindContext(tx, sender, { context, target: plain.target, correlationId: plain.correlationId });
  return sendAs(tx, sender, { ...plain, correlationId: context.runId }, { ttlMs, workflowRunId: context.runId, workflowContext: bound });
}

/**
 * The same for any sender: an agent, a person (`operator:…`) or a workflow run (`workflow:…`). The key is looked up before the target, so a retry
 * succeeds even if the recipient left in between.
 * @throws HubError idempotency_conflict, target_not_found, self_target
 */
export async function sendAs(tx: Tx, sender: Party, request: SendRequest, more: Origin & { ttlMs: number }) {
  const { idempotencyKey = null, content } = request;
  const ttlMs = request.ttlMs ?? more.ttlMs;
  const earlier = idempotencyKey === null ? undefined : await tx.messages.findByKey(sender.id, idempotencyKey);
  if (earlier) {
    if (isSame(earlier, request, ttlMs, more)) return { message: earlier, idempotent: true };
    throw new HubError("idempotency_conflict", "this idempotency key was used for a different message");
  }
  const recipient = await findTarget(tx, sender, request);
  const { delivery, hops, maxHops, correlationId = null, replyTo = null } = request;
  const message = await store(tx, sender, {
    project: sender.project,
    senderId: sender.id,
    senderName: sender.name,
    recipientId: recipient.id,
    recipientName: recipient.name,
    delivery,
    hops,
    maxHops,
    content,
    contentHash: sha256(content),
    idempotencyKey,
    correlationId,
    replyTo,
    workflowRunId: more.workflowRunId ?? null,
    workflowContext: more.workflowContext ?? null,
    expiresAt: tx.now + ttlMs,
  });
  return { message, idempotent: false };
}

/** Stores a new request under the next number of its recipient. @param by who acts: the sender, or a person for it */
export async function store(
  tx: Tx,
  by: Pick<Party, "id" | "audit">,
  request: Omit<QueuedRow, "id" | "recipientSeq" | "createdAt">,
): Promise<MessageRow> {
  const recipientSeq = await tx.messages.takeSeq(request.recipientId);
  const message: MessageRow = { ...request, id: tx.newId("msg"), recipientSeq, createdAt: tx.now, ...NOTHING_HAPPENED };
  await tx.messages.insertQueued(message);
  record(tx, "queued", by, message);
  return message;
}

const NOTHING_HAPPENED = {
  status: "queued",
  isOpen: 1,
  pushedAt: null,
  deliveredAt: null,
  turnStartedAt: null,
  repliedAt: null,
  cancelledAt: null,
  endedAt: null,
  replyContent: null,
  replyHash: null,
  error: null,
  dismissedAt: null,
} satisfies Partial<MessageRow>;

/** Whether a request is the one that made a message. Its target may be spelled as id or name; allowOffline does not count. */
function isSame(earlier: MessageRow, request: SendRequest, ttlMs: number, { workflowContext }: Origin): boolean {
  const { target, content, delivery, correlationId = null, replyTo = null, hops, maxHops } = request;
  return (
    (target === earlier.recipientId || target.toLowerCase() === earlier.recipientName.toLowerCase()) &&
    content === earlier.content &&
    delivery === earlier.delivery &&
    correlationId === earlier.correlationId &&
    replyTo === earlier.replyTo &&
    hops === earlier.hops &&
    maxHops === earlier.maxHops &&
    ttlMs === earlier.expiresAt - earlier.createdAt &&
    canonical(workflowContext ?? null) === canonical(earlier.workflowContext)
  );
}

const AGENT_ID = /^agt_[0-9a-f]{32}$/;

async function findTarget(tx: Tx, sender: Party, { target, allowOffline }: SendRequest): Promise<AgentTarget> {
  const byId = AGENT_ID.test(target) ? await tx.agents.find(target) : undefined;
  const recipient = byId?.project === sender.project ? byId : await tx.agents.findTarget(sender.project, target);
  if (recipient?.id === sender.id) throw new HubError("self_target", "an agent cannot write to itself");
  if (!recipient) throw new HubError("target_not_found", `no agent of this name or id is known in the project ${sender.project}`);
  if (recipient.retiredAt !== null) throw new HubError("target_not_found", `${recipient.name} is retired`);
  if (recipient.online === 0 && !allowOffline) throw new HubError("target_not_found", `${recipient.name} is offline`);
  return recipient;
}

/**
 * The recipient has it. With phase `turn` it also works on it. Doing either twice changes nothing.
 * @throws HubError message_not_found, message_forbidden, invalid_message_state
 */
export async function acknowledge(tx: Tx, caller: Party, id: string, phase?: "turn"): Promise<MessageRow> {
  const message = await lockReceived(tx, caller, id);
  if (isEnded(message.status)) throw new HubError("invalid_message_state", `the message is ${message.status}`);
  const startsTurn = phase === "turn" && message.turnStartedAt === null;
  if (message.status === "delivered" && !startsTurn) return message;
  const changed = { ...message, status: "delivered" as const, deliveredAt: message.deliveredAt ?? tx.now };
  if (startsTurn) changed.turnStartedAt = tx.now;
  return settle(tx, startsTurn ? "turn_started" : "delivered", caller, changed);
}

/**
 * The one reply; straight from `queued`, too.
 * @param readContent gives the checked text; called after the state was judged, because the wire puts it last
 * @throws HubError message_not_found, message_forbidden, duplicate_reply, invalid_message_state, and what readContent throws
 */
export async function reply(tx: Tx, caller: Party, id: string, readContent: () => string): Promise<MessageRow> {
  const message = await lockReceived(tx, caller, id);
  if (message.status === "replied") throw new HubError("duplicate_reply", "the message has its reply");
  if (isEnded(message.status)) throw new HubError("invalid_message_state", `the message is ${message.status}`);
  const replyContent = readContent();
  const reply = { replyContent, replyHash: sha256(replyContent), repliedAt: tx.now, endedAt: tx.now, isOpen: 0 };
  const replied = await settle(tx, "replied", caller, { ...message, ...reply, status: "replied" });
  await afterReply(tx, replied);
  return replied;
}

/**
 * Its sender takes it back; doing it twice changes nothing.
 * @throws HubError message_not_found, message_forbidden, invalid_message_state
 */
export async function cancel(tx: Tx, caller: Party, id: string): Promise<{ message: MessageRow; changed: boolean }> {
  const message = await lockOfProject(tx, caller, id);
  if (message.senderId !== caller.id && !caller.audit) throw new HubError("message_forbidden", "only the sender may cancel a message");
  if (message.status === "cancelled") return { message, changed: false };
  if (isEnded(message.status)) throw new HubError("invalid_message_state", `the message is ${message.status}`);
  const error = message.senderId === caller.id ? CANCELLED_TEXT : "message cancelled by an operator";
  const cancelled = { ...message, error, status: "cancelled" as const, cancelledAt: tx.now, endedAt: tx.now, isOpen: 0 };
  return { message: await settle(tx, "cancelled", caller, cancelled), changed: true };
}

/** One message for those who may see it. @throws HubError message_not_found, message_forbidden */
export function requireParty(message: MessageRow | undefined, caller: Caller, id: string): MessageRow {
  if (!message || message.project !== caller.project) throw notFound(id);
  if (message.senderId !== caller.id && message.recipientId !== caller.id) {
    throw new HubError("message_forbidden", "only the sender and the recipient may read a message");
  }
  return message;
}

/** Whether the message's time is over although no sweep has noticed yet. */
export const isDue = ({ status, expiresAt }: MessageRow, now: number): boolean => !isEnded(status) && expiresAt <= now;

/** What expiring changes. @param at milliseconds by the hub's clock */
export const asExpired = (at: number) => ({ status: "expired" as const, error: EXPIRED_TEXT, endedAt: at, isOpen: 0 });

/** Expires those of the given messages whose time is over. @returns how many */
export async function expireDue(tx: Tx, ids: readonly string[]): Promise<number> {
  let count = 0;
  for (const id of ids) {
    const message = await tx.messages.lock(id);
    if (!message || !isDue(message, tx.now)) continue;
    await expire(tx, message);
    count++;
  }
  return count;
}

/** Deletes those of the given messages that ended before a time. @returns how many */
export async function purgeEnded(tx: Tx, project: string, ids: readonly string[], endedBefore: number): Promise<number> {
  const count = await tx.messages.removeEnded(ids, endedBefore);
  if (count > 0) tx.append({ project, topic: "messages", type: "purged", subjectId: ids[0]!, actor: "hub", data: { count } });
  return count;
}

/** Notes that messages were written to a live stream; only the first time counts. One event for all of them. */
export async function notePushed(tx: Tx, project: string, times: readonly { id: string; at: number }[]): Promise<void> {
  const messageIds = await tx.messages.pushed(times);
  if (messageIds.length === 0) return;
  tx.append({ project, topic: "messages", type: "pushed", subjectId: messageIds[0]!, actor: "hub", data: { messageIds } });
}

const notFound = (id: string) => new HubError("message_not_found", `there is no message ${id.slice(0, 80)}`);

/**
 * A message of the caller's project; those of other projects are as unknown as those that never were. One whose time is over counts as expired: the
 * refusal that follows rolls back whatever a rule would write here, so `settleDue` writes it afterwards.
 */
async function lockOfProject(tx: Tx, caller: Party, id: string): Promise<MessageRow> {
  const message = await tx.messages.lock(id);
  if (!message || message.project !== caller.project) throw notFound(id);
  return isDue(message, tx.now) ? { ...message, status: "expired" } : message;
}

async function lockReceived(tx: Tx, caller: Party, id: string): Promise<MessageRow> {
  const message = await lockOfProject(tx, caller, id);
  if (message.recipientId !== caller.id && !caller.audit) throw new HubError("message_forbidden", "only the recipient may do this");
  return message;
}

async function expire(tx: Tx, message: MessageRow): Promise<MessageRow> {
  const expired = await settle(tx, "expired", { id: "hub" }, { ...message, ...asExpired(tx.now) });
  await afterExpiry(tx, expired);
  return expired;
}

async function settle(tx: Tx, type: EventType, by: Pick<Party, "id" | "audit">, message: MessageRow): Promise<MessageRow> {
  await tx.messages.settle(message);
  record(tx, type, by, message);
  return message;
}

function record(tx: Tx, type: EventType, { id: actor, audit }: Pick<Party, "id" | "audit">, message: MessageRow) {
  const { id, project, recipientId, senderId, recipientSeq, status } = message;
  const data = { recipientId, senderId, recipientSeq, status };
  tx.append({ project, topic: "messages", type, subjectId: id, actor, data, ...(audit && { audit }) });
}
