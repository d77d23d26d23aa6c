// Messages on the wire: durable addressed requests with at most one reply. Schemas are the source of checks, OpenAPI, CLI help and MCP tools.
import { type Static, Type } from "@sinclair/typebox";
import { HubError } from "./errors.ts";
import { flag, integer, oneOf, optionalInteger, optionalText, ruled, text } from "./fields.ts";
import { MESSAGE_CONTENT_MAX, MESSAGE_TTL_MS_MAX, MESSAGE_TTL_MS_MIN, MESSAGE_WAIT_MS_MAX, PAGE_ROWS_DEFAULT, PAGE_ROWS_MAX } from "./limits.ts";

/** queued → delivered → replied; or cancelled, expired. The last three never change again. */
export const MESSAGE_STATUSES = ["queued", "delivered", "replied", "cancelled", "expired"] as const;
export type MessageStatus = (typeof MESSAGE_STATUSES)[number];
/** How the recipient should take it: into the running turn, after it, or at the start of the next. */
export const DELIVERIES = ["steer", "followUp", "nextTurn"] as const;
export const HOPS_MAX = 100;
export const MAX_HOPS_DEFAULT = 5;
export const MAX_HOPS_MAX = 20;
/** Existing clients look for the word "expired" in it. */
export const EXPIRED_TEXT = "message expired before a reply was received";
export const CANCELLED_TEXT = "message cancelled by sender";

/** Whether nothing can happen to the message any more. */
export const isEnded = (status: MessageStatus): boolean => status !== "queued" && status !== "delivered";

const time = (description: string) => Type.Optional(Type.String({ description }));

/** One message as its sender and recipient see it. */
export const Message = Type.Object({
  id: Type.String(),
  project: Type.String(),
  from: Type.String({ description: "Sender: an agent id, operator:… or workflow:…" }),
  fromName: Type.String(),
  to: Type.String({ description: "Recipient's agent id." }),
  toName: Type.String(),
  content: Type.String(),
  delivery: oneOf(DELIVERIES),
  hops: Type.Integer(),
  maxHops: Type.Integer(),
  seq: Type.Integer({ description: "1, 2, 3 … per recipient, never reused." }),
  correlationId: Type.Optional(Type.String()),
  replyTo: Type.Optional(Type.String()),
  idempotencyKey: Type.Optional(Type.String()),
  workflowRunId: Type.Optional(Type.String()),
  workflowContext: Type.Optional(Type.Object({})),
  createdAt: Type.String(),
  expiresAt: Type.String(),
  pushedAt: time("First written to a live stream of the recipient."),
  deliveredAt: time("Acknowledged by the recipient."),
  turnStartedAt: time("The recipient started a turn on it."),
  repliedAt: time("When the reply came."),
  cancelledAt: time("When its sender took it back."),
  status: oneOf(MESSAGE_STATUSES),
  reply: Type.Optional(Type.Object({ content: Type.String(), createdAt: Type.String() })),
  error: Type.Optional(Type.String({ description: "Why it ended without a reply." })),
});
export type Message = Static<typeof Message>;

/** Body of POST /v1/messages. Members are checked in this order. */
export const SendBody = Type.Object({
  target: text(80, { description: "Name or id of an agent of the same project." }),
  content: text(MESSAGE_CONTENT_MAX, { description: "The request, as plain text." }),
  delivery: oneOf(DELIVERIES, { default: "followUp", description: "steer the running turn, follow it up, or wait for the next one." }),
  workflowContext: ruled({ type: "object" }, "Only for the coordinator of a workflow run: { runId, stageId, requirementKey, attempt }."),
  correlationId: optionalText(128, { description: "Names the thread this belongs to." }),
  replyTo: optionalText(80, { description: "Id of the message this one goes back to." }),
  hops: integer({ default: 0, min: 0, max: HOPS_MAX }, { description: "How often the request was passed on already." }),
  maxHops: integer(
    { default: MAX_HOPS_DEFAULT, min: 1, max: MAX_HOPS_MAX },
    {
      description: "Refused once hops reaches it: ends circles of agents.",
      check: ({ hops, maxHops }) => checkHops(hops as number, maxHops as number),
    },
  ),
  ttlMs: optionalInteger(
    { min: MESSAGE_TTL_MS_MIN, max: MESSAGE_TTL_MS_MAX },
    { description: "How long it waits for its reply, in milliseconds; the hub's default is a day." },
  ),
  allowOffline: flag({ description: "Queue for an agent that is known but not online." }),
  idempotencyKey: optionalText(128, { description: "The same key and request again return the first message instead of a second." }),
});
export type SendBody = Static<typeof SendBody>;

function checkHops(hops: number, maxHops: number) {
  if (hops >= maxHops) throw new HubError("hop_limit_reached", `the message has been passed on ${hops} times and may be ${maxHops} times at most`);
}

/** Answer of POST /v1/messages. */
export const SendAnswer = Type.Object({
  message: Message,
  idempotent: Type.Boolean({ description: "True when this key had sent it before: nothing new was created." }),
});
export const MessageAnswer = Type.Object({ message: Message });
export const MessageParams = Type.Object({ id: Type.String({ description: "Message id." }) });

/** Query of GET /v1/messages/{id}. */
export const GetQuery = Type.Object({
  waitMs: integer(
    { default: 0, min: 0, max: MESSAGE_WAIT_MS_MAX },
    { description: "Wait this long for the message to end; then its record as it is." },
  ),
});

/** Body of POST /v1/messages/{id}/ack. */
export const AckBody = Type.Object({
  phase: Type.Optional(oneOf(["turn"], { description: "`turn`: a turn on this message has started." })),
});

/** Body of POST /v1/messages/{id}/reply. Its content is checked after the message's state. */
export const ReplyBody = Type.Object({ content: text(MESSAGE_CONTENT_MAX, { description: "The one reply, as plain text." }) });

const limit = integer({ default: PAGE_ROWS_DEFAULT, min: 1, max: PAGE_ROWS_MAX }, { description: "Messages of one page." });

/** Query of GET /v1/agents/{id}/inbox. */
export const InboxQuery = Type.Object({
  after: integer({ default: 0, min: 0, max: Number.MAX_SAFE_INTEGER }, { description: "seq of the last message seen." }),
  limit,
});
/** Its answer: open requests, oldest first. Reading them acknowledges nothing. */
export const InboxAnswer = Type.Object({
  messages: Type.Array(Message),
  next: Type.Optional(Type.Integer({ description: "Pass it as after for the following page; absent on the last." })),
});

/** Query of GET /v1/messages. */
export const ListQuery = Type.Object({
  box: oneOf(["inbox", "sent"], { default: "inbox", description: "What came in, or what was sent." }),
  status: Type.Optional(oneOf(MESSAGE_STATUSES, { description: "Only messages in this state." })),
  correlationId: optionalText(128, { description: "Only messages of this thread." }),
  order: oneOf(["oldest", "newest"], { default: "oldest", description: "Which end comes first." }),
  after: optionalText(80, { description: "next of the page before." }),
  limit,
});
export type ListQuery = Static<typeof ListQuery>;
/** Its answer. A page may hold fewer messages than asked for, or none, while `next` is there. */
export const ListAnswer = Type.Object({
  messages: Type.Array(Message),
  next: Type.Optional(Type.String({ description: "Pass it as after for the following page; absent on the last." })),
});
