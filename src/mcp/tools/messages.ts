// Finding agents, asking them, waiting for their answers, and answering.
import { Type } from "@sinclair/typebox";
import type { AgentRow, MessageRow } from "../../db/schema.ts";
import * as agents from "../../hub/agents.ts";
import type { Hub } from "../../hub/hub.ts";
import * as mailbox from "../../hub/mailbox.ts";
import * as messages from "../../hub/messages.ts";
import { canonical, sha256 } from "../../protocol/canonical.ts";
import { HubError } from "../../protocol/errors.ts";
import { flag, integer, oneOf, optionalInteger, optionalText, ruled, text } from "../../protocol/fields.ts";
import { MESSAGE_CONTENT_MAX, MESSAGE_TTL_MS_MAX, MESSAGE_TTL_MS_MIN } from "../../protocol/limits.ts";
import { DELIVERIES, isEnded } from "../../protocol/messages.ts";
import { tool } from "../tool.ts";

const messageId = text(80, { description: "Message id" });
const content = text(MESSAGE_CONTENT_MAX, { description: "The request, as plain text" });
const ttlMs = optionalInteger({ min: MESSAGE_TTL_MS_MIN, max: MESSAGE_TTL_MS_MAX }, { description: "How long it waits for its reply" });
const workflowContext = ruled({ type: "object" }, "Peer evidence: { runId, stageId, requirementKey, attempt }");

/** What a model needs of a message: not every time and counter. */
function brief(row: MessageRow) {
  const { id, senderName, recipientName, status, content, replyContent, correlationId, error, delivery, workflowContext } = row;
  return {
    messageId: id,
    from: senderName,
    to: recipientName,
    status,
    content,
    delivery,
    ...(replyContent !== null && { reply: replyContent }),
    ...(correlationId !== null && { correlationId }),
    ...(error !== null && { error }),
    ...(workflowContext !== null && { workflowContext }),
  };
}
/** The same without the request's own text, which its sender knows. */
const sent = (row: MessageRow) => {
  const { content: _, ...rest } = brief(row);
  return rest;
};

export const list = tool({
  name: "kxm_list",
  title: "List agents",
  description: "Lists the other agents of this project: name, purpose, presence. Call it before asking somebody.",
  input: Type.Object({ includeOffline: flag({ description: "Also agents that are not online" }) }),
  effect: "read",
  idempotent: true,
  run: async ({ hub, agent, input }) => {
    const all = await agents.list(hub, agent.project, { includeOffline: input.includeOffline });
    const others = all
      .filter(({ id }) => id !== agent.id)
      .map(({ name, purpose, presence, model }) => ({ name, purpose, presence, ...(model && { model }) }));
    return {
      result: { you: agent.name, agents: others },
      next:
        others.length > 0 ? "Ask one with kxm_send, or up to three with kxm_fanout." : "Nobody else is online; includeOffline shows who is known.",
    };
  },
});

type Send = {
  target: string;
  content: string;
  delivery: (typeof DELIVERIES)[number];
  correlationId?: string;
  replyTo?: string;
  idempotencyKey?: string;
  workflowContext?: unknown;
  ttlMs?: number;
  allowOffline: boolean;
};

/** Sends, one hop further than the request that is being handled. */
async function sendOne(hub: Hub, agent: AgentRow, input: Send): Promise<MessageRow> {
  const handled = input.replyTo === undefined ? undefined : await hub.engine.read.messages.find(input.replyTo);
  const mine = handled?.project === agent.project && handled.recipientId === agent.id ? handled : undefined;
  const hops = mine ? mine.hops + 1 : 0;
  const maxHops = mine?.maxHops ?? 5;
  if (hops >= maxHops) throw new HubError("hop_limit_reached", `the request has been passed on ${hops} times and may be ${maxHops} times at most`);
  const correlationId = input.correlationId ?? (input.workflowContext === undefined ? (mine?.correlationId ?? mine?.id) : undefined);
  const request = { ...input, hops, maxHops, ...(correlationId !== undefined && { correlationId }) };
  const { message, idempotent } = await hub.engine.write(agent.project, (tx) => messages.send(tx, agent, request, hub.settings.messageTtlMs));
  if (!idempotent) hub.metrics.add("messages_sent");
  return message;
}

export const send = tool({
  name: "kxm_send",
  title: "Send a request",
  description: "Sends a durable request to another agent, which replies once. Returns at once; read the reply with kxm_await or kxm_get.",
  input: Type.Object({
    target: text(80, { description: "Name or id of the agent" }),
    content,
    delivery: oneOf(DELIVERIES, { default: "followUp", description: "steer its running turn, follow it up, or wait for the next" }),
    correlationId: optionalText(128, { description: "Names the thread" }),
    replyTo: optionalText(80, { description: "The request you are handling, when you pass it on" }),
    idempotencyKey: optionalText(128, { description: "Same key and request again: no second message" }),
    workflowContext,
    ttlMs,
    allowOffline: flag({ description: "Queue for a known agent that is offline" }),
  }),
  effect: "write",
  idempotent: false,
  run: async ({ hub, agent, input }) => {
    const message = await sendOne(hub, agent, input);
    return {
      result: sent(message),
      next: `Wait for the reply with kxm_await { "messageId": "${message.id}" }, or go on and read it later with kxm_get.`,
    };
  },
});

/** Waits until a message has ended or the time is over. */
async function awaitEnd(hub: Hub, agent: AgentRow, id: string, timeoutMs: number, signal: AbortSignal): Promise<MessageRow> {
  return mailbox.waitForEnd(hub, agent, id, AbortSignal.any([signal, hub.stopping, AbortSignal.timeout(timeoutMs)]));
}

export const fanout = tool({
  name: "kxm_fanout",
  title: "Ask several agents",
  description:
    "Sends the same request to 1 to 3 agents and waits for their replies. A repeat with the same prefix finds the same messages; what is not answered in time is returned as pending.",
  input: Type.Object({
    targets: Type.Array(Type.String({ minLength: 1, maxLength: 80 }), { minItems: 1, maxItems: 3, description: "Names or ids" }),
    content,
    correlationId: optionalText(128, { description: "Names the thread" }),
    idempotencyKeyPrefix: optionalText(64, { description: "Makes a repeat find the same messages" }),
    workflowContext,
    ttlMs,
    timeoutMs: integer({ default: 60_000, min: 100, max: 1_800_000 }, { description: "How long to wait for replies" }),
  }),
  effect: "write",
  idempotent: false,
  run: async ({ hub, agent, input, signal }) => {
    const { targets, idempotencyKeyPrefix, timeoutMs, ...rest } = input;
    if (targets.length === 0) throw new HubError("protocol_error", "targets cannot be empty");
    if (new Set(targets.map((target) => target.toLowerCase())).size !== targets.length)
      throw new HubError("protocol_error", "targets must be different");
    const keyOf = (target: string) =>
      idempotencyKeyPrefix &&
      `${idempotencyKeyPrefix}:${sha256(canonical([rest.correlationId ?? null, target.toLowerCase(), rest.workflowContext ?? null])).slice(0, 32)}`;
    const outcomes = await Promise.all(
      targets.map(async (target) => {
        try {
          const request = { ...rest, target, delivery: "followUp" as const, allowOffline: false, idempotencyKey: keyOf(target) };
          const message = await sendOne(hub, agent, request);
          const ended = await awaitEnd(hub, agent, message.id, timeoutMs, signal);
          return isEnded(ended.status) ? { target, ...sent(ended) } : { target, messageId: ended.id, status: "pending" as const };
        } catch (error) {
          if (!(error instanceof HubError) || error.status >= 500) throw error;
          return { target, status: "refused" as const, code: error.code, error: error.message };
        }
      }),
    );
    const pending = outcomes.filter(({ status }) => status === "pending").length;
    return {
      result: { outcomes },
      next: pending > 0 ? "Wait for pending ones with kxm_await and their messageId." : "All have ended; use the replies.",
    };
  },
});

export const get = tool({
  name: "kxm_get",
  title: "Read a message",
  description: "Reads a message you sent or received, with its reply if it has one.",
  input: Type.Object({ messageId }),
  effect: "read",
  idempotent: true,
  run: async ({ hub, agent, input }) => {
    const message = await mailbox.get(hub, agent, input.messageId);
    return { result: brief(message), next: nextFor(message, agent) };
  },
});

export const awaitReply = tool({
  name: "kxm_await",
  title: "Wait for a reply",
  description: "Waits until a message you sent is replied, cancelled or expired, at most 60 seconds.",
  input: Type.Object({ messageId, timeoutMs: integer({ default: 30_000, min: 100, max: 60_000 }, { description: "At most this long" }) }),
  effect: "read",
  idempotent: true,
  run: async ({ hub, agent, input, signal }) => {
    const message = await awaitEnd(hub, agent, input.messageId, input.timeoutMs, signal);
    return { result: sent(message), next: nextFor(message, agent) };
  },
});

function nextFor(message: MessageRow, agent: AgentRow): string {
  if (message.status === "replied") return "Use the reply.";
  if (isEnded(message.status)) return `It ended without a reply (${message.status}); send a new request if it still matters.`;
  return message.recipientId === agent.id
    ? `Do what it asks, then answer with kxm_reply { "messageId": "${message.id}" }.`
    : "Not answered yet: call kxm_await again, or go on with other work.";
}

export const cancel = tool({
  name: "kxm_cancel",
  title: "Cancel a request",
  description: "Takes back a request of yours that has no reply yet.",
  input: Type.Object({ messageId }),
  effect: "destroy",
  idempotent: true,
  run: async ({ hub, agent, input }) => {
    const { message, changed } = await hub.engine.write(agent.project, (tx) => messages.cancel(tx, agent, input.messageId));
    if (changed) hub.metrics.add("messages_cancelled");
    return { result: sent(message), next: "It is cancelled; its recipient is told." };
  },
});

export const inbox = tool({
  name: "kxm_inbox",
  title: "Open requests to you",
  description: "Lists requests from other agents that wait for your reply, oldest first. Call it when you start and between tasks.",
  input: Type.Object({ limit: integer({ default: 10, min: 1, max: 50 }) }),
  effect: "read",
  idempotent: true,
  run: async ({ hub, agent, input }) => {
    const rows = (await hub.engine.read.messages.inbox(agent.id, 0, input.limit + 1)).filter((row) => !messages.isDue(row, hub.clock()));
    const open = rows.slice(0, input.limit);
    const more = rows.length > open.length;
    return {
      result: { open: open.map(brief), more },
      next: open.length === 0 ? "Nothing waits for you." : `Answer each with kxm_reply and its messageId${more ? "; there are more" : ""}.`,
    };
  },
});

export const reply = tool({
  name: "kxm_reply",
  title: "Reply",
  description: "Answers a request, once. It is the only answer its sender gets, so answer when the work is done.",
  input: Type.Object({ messageId, content: text(MESSAGE_CONTENT_MAX, { description: "The answer, as plain text" }) }),
  effect: "write",
  idempotent: false,
  run: async ({ hub, agent, input }) => {
    const message = await hub.engine.write(agent.project, (tx) => messages.reply(tx, agent, input.messageId, () => input.content));
    hub.metrics.add("messages_replied");
    return {
      result: { messageId: message.id, to: message.senderName, status: message.status },
      next: "Its sender has the answer. Look for more with kxm_inbox.",
    };
  },
});
