// The eight tools that users of MCP Agent Mail know by name, over messages and leases. Off unless the hub's settings say so. What differs: the agent
// and its project are those of the connection, a subject is the first line of the message, and a reservation that overlaps another is refused.
import { type Static, Type } from "@sinclair/typebox";
import type { AgentRow, LeaseRow, MessageRow } from "../../db/schema.ts";
import * as agents from "../../hub/agents.ts";
import type { Hub } from "../../hub/hub.ts";
import * as mailbox from "../../hub/mailbox.ts";
import * as messages from "../../hub/messages.ts";
import * as reservations from "../../hub/reservations.ts";
import { find } from "../../hub/search.ts";
import { HubError } from "../../protocol/errors.ts";
import { flag, integer, oneOf, optionalText, text, textList } from "../../protocol/fields.ts";
import { LEASE_TTL_MS_MAX, MESSAGE_CONTENT_MAX } from "../../protocol/limits.ts";
import { MAX_HOPS_DEFAULT, type Message } from "../../protocol/messages.ts";
import { iso } from "../../protocol/time.ts";
import { type Tool, tool } from "../tool.ts";

const RECIPIENTS_MAX = 10;
const PATHS_MAX = 10;
const SUBJECT_MAX = 200;
const IMPORTANCES = ["low", "normal", "high", "urgent"] as const;

const projectKey = optionalText(1_000, { description: "Not needed" });
const self = optionalText(64, { description: "Your name" });
const messageId = text(80, { description: "Message id" });
const body = text(MESSAGE_CONTENT_MAX - SUBJECT_MAX - 2, { description: "Markdown" });

/** Nobody speaks for another agent. @throws HubError message_forbidden */
function requireSelf(agent: AgentRow, name: string | undefined) {
  if (name === undefined || name.toLowerCase() === agent.name.toLowerCase() || name === agent.id) return;
  throw new HubError("message_forbidden", `you are ${agent.name} here, not ${name.slice(0, 64)}`, {
    hint: "The connection names the agent: KXM_AGENT_NAME, or the header x-kxm-agent-name.",
  });
}

const isUrgent = ({ delivery }: Pick<Message, "delivery">) => delivery === "steer";
const subjectOf = (content: string) => content.split("\n", 1)[0]!.slice(0, SUBJECT_MAX);

const register = tool({
  name: "register_agent",
  title: "Register",
  description: "Says who you are here and what you work on. The connection has registered you; a name given here does not rename you.",
  input: Type.Object({
    project_key: projectKey,
    program: optionalText(64, { description: "Your program" }),
    model: optionalText(128, { description: "Your model" }),
    name: self,
    task_description: optionalText(256, { description: "What others may ask of you" }),
  }),
  effect: "write",
  idempotent: true,
  run: async ({ hub, agent, input }) => {
    const said = { purpose: input.task_description, model: input.model };
    const { name, purpose, model, connectedAt } = await hub.engine.write(agent.project, (tx) => agents.describe(tx, agent.id, said));
    return {
      result: {
        id: agent.id,
        name,
        program: input.program ?? null,
        model,
        task_description: purpose,
        project: agent.project,
        inception_ts: iso(connectedAt),
      },
      next: `You are ${name}. Look at fetch_inbox, and reserve files with file_reservation_paths before you change them.`,
    };
  },
});

type Letter = { to: string; content: string; importance: (typeof IMPORTANCES)[number]; threadId?: string | undefined; replyTo?: MessageRow };

/** One message; a follow-up goes one hop further than what it answers. */
async function deliver(hub: Hub, agent: AgentRow, { to, content, importance, threadId, replyTo }: Letter) {
  const request = {
    target: to,
    content,
    delivery: importance === "urgent" ? ("steer" as const) : ("followUp" as const),
    hops: replyTo ? replyTo.hops + 1 : 0,
    maxHops: replyTo?.maxHops ?? MAX_HOPS_DEFAULT,
    allowOffline: true,
    ...(threadId !== undefined && { correlationId: threadId }),
    ...(replyTo && { replyTo: replyTo.id }),
  };
  if (request.hops >= request.maxHops) throw new HubError("hop_limit_reached", `this went back and forth ${request.hops} times`);
  const { message } = await hub.engine.write(agent.project, (tx) => messages.send(tx, agent, request, hub.settings.messageTtlMs));
  hub.metrics.add("messages_sent");
  return message;
}

const sendMessage = tool({
  name: "send_message",
  title: "Send a message",
  description: "Sends a message to agents of the project. Each may reply once; replies are in fetch_inbox.",
  input: Type.Object({
    project_key: projectKey,
    sender_name: self,
    to: Type.Array(Type.String({ minLength: 1, maxLength: 80 }), { minItems: 1, maxItems: RECIPIENTS_MAX, description: "Names" }),
    subject: text(SUBJECT_MAX, { description: "First line" }),
    body_md: body,
    cc: textList(RECIPIENTS_MAX, { itemMax: 80 }),
    importance: oneOf(IMPORTANCES, { default: "normal", description: "urgent goes into the running turn" }),
    thread_id: optionalText(128),
  }),
  effect: "write",
  idempotent: false,
  run: async ({ hub, agent, input }) => {
    requireSelf(agent, input.sender_name);
    const names = new Map([...input.to, ...input.cc].map((name) => [name.toLowerCase(), name]));
    if (input.to.length === 0) throw new HubError("protocol_error", "to cannot be empty");
    const content = `${input.subject}\n\n${input.body_md}`;
    const deliveries = await Promise.all(
      [...names.values()].map(async (to) => {
        try {
          const { id, recipientName } = await deliver(hub, agent, { to, content, importance: input.importance, threadId: input.thread_id });
          return { to: recipientName, id };
        } catch (error) {
          if (!(error instanceof HubError) || error.status >= 500) throw error;
          return { to, code: error.code, error: error.message };
        }
      }),
    );
    const refused = deliveries.filter((one) => "code" in one).length;
    return {
      result: { deliveries, count: deliveries.length - refused },
      next: refused > 0 ? "kxm_list names the agents you can reach." : "Replies are in fetch_inbox.",
    };
  },
});

const fetchInbox = tool({
  name: "fetch_inbox",
  title: "Fetch the inbox",
  description: "Open messages to you and replies to yours, newest first.",
  input: Type.Object({
    project_key: projectKey,
    agent_name: self,
    limit: integer({ default: 20, min: 1, max: 50 }),
    urgent_only: flag(),
    include_bodies: flag(),
    since_ts: optionalText(64, { description: "Only later ones; an ISO time" }),
  }),
  effect: "read",
  idempotent: true,
  run: async ({ hub, agent, input }) => {
    requireSelf(agent, input.agent_name);
    const since = input.since_ts === undefined ? undefined : Date.parse(input.since_ts);
    if (Number.isNaN(since)) throw new HubError("protocol_error", "since_ts must be an ISO time");
    const page = { order: "newest" as const, limit: input.limit };
    const [{ messages: received }, { messages: replied }] = await Promise.all([
      mailbox.list(hub.engine.read, agent, { box: "inbox", ...page }),
      mailbox.list(hub.engine.read, agent, { box: "sent", status: "replied", ...page }),
    ]);
    const open = received.filter(({ status, expiresAt }) => (status === "queued" || status === "delivered") && Date.parse(expiresAt) > hub.clock());
    const entries = [
      ...open.map((message) => entryOf(message, message.fromName, message.content, message.createdAt)),
      ...replied.map((message) => ({
        ...entryOf(message, message.toName, message.reply!.content, message.reply!.createdAt),
        kind: "reply" as const,
      })),
    ];
    const shown = entries
      .filter(
        ({ created_ts, importance }) => (since === undefined || Date.parse(created_ts) > since) && !(input.urgent_only && importance !== "urgent"),
      )
      .toSorted((a, b) => (a.created_ts < b.created_ts ? 1 : -1))
      .slice(0, input.limit)
      .map(({ body_md, ...head }) => (input.include_bodies ? { ...head, body_md } : head));
    return {
      result: { messages: shown },
      next: shown.length === 0 ? "Nothing is there." : "Answer messages with reply_message; include_bodies shows their text.",
    };
  },
});

function entryOf(message: Message, from: string, content: string, at: string) {
  return {
    id: message.id,
    kind: "message" as "message" | "reply",
    from,
    subject: subjectOf(message.content),
    created_ts: at,
    importance: isUrgent(message) ? "urgent" : "normal",
    acknowledged: message.deliveredAt !== undefined,
    ...(message.correlationId !== undefined && { thread_id: message.correlationId }),
    body_md: content,
  };
}

const acknowledge = tool({
  name: "acknowledge_message",
  title: "Acknowledge a message",
  description: "Tells its sender that a message has arrived. It stays open until you reply.",
  input: Type.Object({ project_key: projectKey, agent_name: self, message_id: messageId }),
  effect: "write",
  idempotent: true,
  run: async ({ hub, agent, input }) => {
    requireSelf(agent, input.agent_name);
    const message = await hub.engine.write(agent.project, (tx) => messages.acknowledge(tx, agent, input.message_id));
    return {
      result: { message_id: message.id, acknowledged: true, acknowledged_at: iso(message.deliveredAt!) },
      next: "Reply with reply_message when it is done.",
    };
  },
});

const replyMessage = tool({
  name: "reply_message",
  title: "Reply to a message",
  description: "Answers a message. One that has its answer, or was yours, is followed up by a new message in the same thread.",
  input: Type.Object({ project_key: projectKey, message_id: messageId, sender_name: self, body_md: body }),
  effect: "write",
  idempotent: false,
  run: async ({ hub, agent, input }) => {
    requireSelf(agent, input.sender_name);
    const message = await mailbox.get(hub, agent, input.message_id);
    const isOpen = message.status === "queued" || message.status === "delivered";
    if (message.recipientId === agent.id && isOpen) {
      const answered = await hub.engine.write(agent.project, (tx) => messages.reply(tx, agent, message.id, () => input.body_md));
      hub.metrics.add("messages_replied");
      return { result: { id: answered.id, kind: "reply", to: answered.senderName }, next: "Its sender has the answer." };
    }
    const to = message.recipientId === agent.id ? message.senderId : message.recipientId;
    const content = `Re: ${subjectOf(message.content).replace(/^(?:Re: )+/, "")}\n\n${input.body_md}`;
    const sent = await deliver(hub, agent, { to, content, importance: "normal", threadId: message.correlationId ?? message.id, replyTo: message });
    return {
      result: { id: sent.id, kind: "message", to: sent.recipientName, thread_id: sent.correlationId },
      next: "It is on its way as a message of its own.",
    };
  },
});

const paths = (description: string) => Type.Array(Type.String({ minLength: 1, maxLength: 200 }), { maxItems: PATHS_MAX, description });
const reserveInput = Type.Object({
  project_key: projectKey,
  agent_name: self,
  paths: paths("Paths or patterns below the project, such as src/auth/**"),
  ttl_seconds: integer(
    { default: LEASE_TTL_MS_MAX / 1_000, min: 5, max: 86_400 },
    { description: `At most ${LEASE_TTL_MS_MAX / 1_000} are given; ask again to extend` },
  ),
  exclusive: Type.Boolean({ default: true, description: "Always true here" }),
  reason: optionalText(200),
});

const reserve = tool({
  name: "file_reservation_paths",
  title: "Reserve files",
  description: "Reserves paths before you change them: a lease per pattern. Refused where another agent's pattern can match a common path.",
  input: reserveInput,
  effect: "write",
  idempotent: true,
  run: async ({ hub, agent, input }) => {
    const { agent_name, paths, ttl_seconds, reason } = input as Static<typeof reserveInput>;
    requireSelf(agent, agent_name);
    if (paths.length === 0) throw new HubError("protocol_error", "paths cannot be empty");
    const ttlMs = Math.min(ttl_seconds * 1_000, LEASE_TTL_MS_MAX);
    const { granted, conflicts } = await reservations.reserve(hub, agent, { patterns: paths, ttlMs });
    return {
      result: {
        granted: granted.map(({ pattern, lease }) => ({
          ...reservationOf(pattern, lease),
          exclusive: true,
          ...(reason !== undefined && { reason }),
        })),
        conflicts: conflicts.map(({ pattern, holders }) => ({
          path: pattern,
          holders: holders.map((lease) => ({ agent: lease.holderName, ...reservationOf(lease.name.slice("file:".length), lease) })),
        })),
      },
      next:
        conflicts.length > 0
          ? "Do not change what is in conflicts: ask its holder, or wait until it expires."
          : `Yours until then: ask again before ${Math.round(ttlMs / 60_000)} minutes are over, and give them back with release_file_reservations.`,
    };
  },
});

const reservationOf = (pattern: string, { name, fence, expiresAt }: LeaseRow) => ({
  id: name,
  path_pattern: pattern,
  fencing_token: fence,
  expires_ts: iso(expiresAt),
});

const releaseReservations = tool({
  name: "release_file_reservations",
  title: "Release files",
  description: "Gives reserved paths back; without paths all of yours.",
  input: Type.Object({ project_key: projectKey, agent_name: self, paths: Type.Optional(paths("As reserved")) }),
  effect: "write",
  idempotent: true,
  run: async ({ hub, agent, input }) => {
    requireSelf(agent, input.agent_name);
    const released = await reservations.release(hub, agent, input.paths);
    return { result: { released: released.length, paths: released, released_at: iso(hub.clock()) }, next: "Do not change them any more." };
  },
});

const searchMessages = tool({
  name: "search_messages",
  title: "Search messages",
  description: "Finds messages of yours by words, newest first.",
  input: Type.Object({ project_key: projectKey, query: text(480), limit: integer({ default: 20, min: 1, max: 50 }) }),
  effect: "read",
  idempotent: true,
  run: async ({ hub, agent, input }) => {
    const searcher = { project: agent.project, agentName: agent.name, mayRead: true };
    const { hits } = await find(hub, searcher, { q: `kind:message ${input.query}`, limit: input.limit });
    const found = hits.map(({ id, from, to, at, status, snippet }) => ({ id, from, to, created_ts: at, status, snippet: snippet?.text }));
    return { result: { messages: found }, next: found.length === 0 ? "Try fewer or other words." : "kxm_get shows one of them." };
  },
});

/** In the order in which their users know them. */
export const AGENT_MAIL: readonly Tool[] = [
  register,
  sendMessage,
  fetchInbox,
  acknowledge,
  replyMessage,
  reserve,
  releaseReservations,
  searchMessages,
];
