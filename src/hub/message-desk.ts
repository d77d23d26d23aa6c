// What people do with messages that are not theirs: read a text, send an expired one again, put a dead letter aside. Each act is in the audit.
// Codes: message_not_found, invalid_message_state, target_not_found.
import type { MessageRow } from "../db/schema.ts";
import type { AuditNote, Stores, Tx } from "../db/tx.ts";
import { HubError } from "../protocol/errors.ts";
import * as messages from "./messages.ts";

/** A person who acts, for the log and the audit. */
export type Person = { id: string; audit: AuditNote };

/** Openings of a message that are looked at; more people than this reading one message at a time would be odd. */
const OPENINGS_MAX = 200;

/**
 * Notes that a person opened the text of a message, once a session.
 * @throws HubError message_not_found when it is unknown or belongs to another project
 */
export async function open(tx: Tx, by: Person, project: string, id: string): Promise<void> {
  await lockOf(tx, project, id);
  if (await isOpenTo(tx, by.id, project, id)) return;
  tx.append({ project, topic: "messages", type: "opened", subjectId: id, actor: by.id, data: {}, audit: by.audit });
}

/** Whether a session has opened a message's text. @param sessionId the session's id */
export async function isOpenTo(read: Pick<Stores, "events">, sessionId: string, project: string, id: string): Promise<boolean> {
  return (await read.events.openings(project, id, OPENINGS_MAX)).some(({ actor }) => actor === sessionId);
}

/**
 * Sends an expired message to its recipient once more, in its sender's name, so that the reply reaches who asked. The dead letter is dealt with by that.
 * @param ttlMs how long the new one may wait, milliseconds
 * @throws HubError message_not_found, target_not_found when the recipient is gone, invalid_message_state when it has not expired, was dealt with already,
 * or belongs to a workflow run, which has drawn its own conclusions
 */
export async function resend(tx: Tx, by: Person, project: string, id: string, ttlMs: number): Promise<MessageRow> {
  const dead = await lockDead(tx, project, id);
  if (dead.workflowRunId !== null) throw new HubError("invalid_message_state", "a workflow run sent it and has dealt with its end");
  const recipient = await tx.agents.find(dead.recipientId);
  if (!recipient || recipient.retiredAt !== null) throw new HubError("target_not_found", "the recipient is retired or gone");
  await tx.messages.dismiss(id, tx.now);
  const { senderId, senderName, recipientId, delivery, hops, maxHops, content, contentHash, correlationId, replyTo } = dead;
  return messages.store(tx, by, {
    ...{ project, senderId, senderName, recipientId, recipientName: recipient.name, delivery, hops, maxHops, content, contentHash },
    ...{ correlationId, replyTo, idempotencyKey: null, workflowRunId: null, workflowContext: null, expiresAt: tx.now + ttlMs },
  });
}

/**
 * A dead letter nobody needs to look at any more. Its record stays until retention takes it.
 * @throws HubError message_not_found, invalid_message_state when it has not expired or was dealt with already
 */
export async function dismiss(tx: Tx, by: Person, project: string, id: string): Promise<void> {
  const { senderId, recipientId } = await lockDead(tx, project, id);
  await tx.messages.dismiss(id, tx.now);
  tx.append({ project, topic: "messages", type: "dismissed", subjectId: id, actor: by.id, data: { senderId, recipientId }, audit: by.audit });
}

async function lockOf(tx: Tx, project: string, id: string): Promise<MessageRow> {
  const message = await tx.messages.lock(id);
  if (!message || message.project !== project) throw new HubError("message_not_found", `there is no message ${id.slice(0, 80)}`);
  return message;
}

async function lockDead(tx: Tx, project: string, id: string): Promise<MessageRow> {
  const message = await lockOf(tx, project, id);
  if (message.status !== "expired") throw new HubError("invalid_message_state", `the message is ${message.status}, not expired`);
  if (message.dismissedAt !== null) throw new HubError("invalid_message_state", "this dead letter was dealt with already");
  return message;
}
