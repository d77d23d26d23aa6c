// Messages: send, read, acknowledge, answer, take back, and list.

import type { MessageRow } from "../db/schema.ts";
import type { Tx } from "../db/tx.ts";
import { waitFor } from "../http/long-poll.ts";
import type { Hub } from "../hub/hub.ts";
import * as mailbox from "../hub/mailbox.ts";
import * as messages from "../hub/messages.ts";
import { AgentParams } from "../protocol/agents.ts";
import { HubError } from "../protocol/errors.ts";
import { readFields } from "../protocol/fields.ts";
import {
  AckBody,
  GetQuery,
  InboxAnswer,
  InboxQuery,
  ListAnswer,
  ListQuery,
  MessageAnswer,
  MessageParams,
  ReplyBody,
  SendAnswer,
  SendBody,
} from "../protocol/messages.ts";
import type { AgentCaller } from "./credentials.ts";
import { type Route, route } from "./route.ts";

const send = route({
  method: "POST",
  path: "/v1/messages",
  operationId: "sendMessage",
  tag: "messages",
  summary: "Sends a durable request to another agent of the project.",
  credential: "agent",
  body: SendBody,
  answers: { 200: SendAnswer, 202: SendAnswer },
  errors: [
    "hop_limit_reached",
    "invalid_workflow_context",
    "workflow_context_forbidden",
    "workflow_context_inactive",
    "workflow_evidence_policy_missing",
    "workflow_context_attempt_mismatch",
    "workflow_evidence_producer_forbidden",
    "workflow_context_correlation_mismatch",
    "idempotency_conflict",
    "target_not_found",
    "self_target",
  ],
  run: async ({ hub, caller, body }) => {
    const { messageTtlMs } = hub.settings;
    const { message, idempotent } = await hub.engine.write(caller.project, (tx) => messages.send(tx, caller.agent, body, messageTtlMs));
    if (!idempotent) hub.metrics.add("messages_sent");
    return { status: idempotent ? 200 : 202, body: { message: mailbox.toMessage(message), idempotent } };
  },
});

const list = route({
  method: "GET",
  path: "/v1/messages",
  operationId: "listMessages",
  tag: "messages",
  summary: "Lists what the agent received or sent, page by page.",
  credential: "agent",
  query: ListQuery,
  answers: { 200: ListAnswer },
  errors: [],
  run: async ({ hub, caller, query }) => ({ status: 200, body: await mailbox.list(hub.engine.read, caller.agent, query) }),
});

const inbox = route({
  method: "GET",
  path: "/v1/agents/:id/inbox",
  operationId: "readInbox",
  tag: "messages",
  summary: "Lists the agent's open requests, oldest first. Acknowledges nothing.",
  credential: "agent",
  agentIdFrom: { path: "id" },
  params: AgentParams,
  query: InboxQuery,
  answers: { 200: InboxAnswer },
  errors: [],
  run: async ({ hub, caller, query }) => ({ status: 200, body: await mailbox.inbox(hub.engine.read, caller.agent.id, query) }),
});

const get = route({
  method: "GET",
  path: "/v1/messages/:id",
  operationId: "getMessage",
  tag: "messages",
  summary: "Reads one message; with waitMs, waits for it to end first.",
  credential: "agent",
  params: MessageParams,
  query: GetQuery,
  answers: { 200: MessageAnswer },
  errors: ["message_not_found", "message_forbidden"],
  run: async ({ hub, caller, params, query, request, server }) => {
    const { waitMs } = query;
    if (waitMs === 0) return answer(await mailbox.get(hub, caller.agent, params.id));
    const { until, gone } = waitFor({ request, server }, hub.stopping, waitMs);
    return answer(await mailbox.waitForEnd(hub, caller.agent, params.id, AbortSignal.any([until, gone])));
  },
});

const acknowledge = route({
  method: "POST",
  path: "/v1/messages/:id/ack",
  operationId: "acknowledgeMessage",
  tag: "messages",
  summary: "Says that the recipient has the message, or has started a turn on it.",
  credential: "agent",
  params: MessageParams,
  body: AckBody,
  answers: { 200: MessageAnswer },
  errors: ["message_not_found", "message_forbidden", "invalid_message_state"],
  run: async ({ hub, caller, params, body }) =>
    answer(await change(hub, caller, params.id, (tx) => messages.acknowledge(tx, caller.agent, params.id, body.phase))),
});

const reply = route({
  method: "POST",
  path: "/v1/messages/:id/reply",
  operationId: "replyToMessage",
  tag: "messages",
  summary: "Gives the one reply to a request.",
  credential: "agent",
  params: MessageParams,
  body: ReplyBody,
  fieldsLate: true,
  answers: { 200: MessageAnswer },
  errors: ["message_not_found", "message_forbidden", "duplicate_reply", "invalid_message_state"],
  run: async ({ hub, caller, params, body }) => {
    const readContent = () => readFields(ReplyBody, body).content;
    const message = await change(hub, caller, params.id, (tx) => messages.reply(tx, caller.agent, params.id, readContent));
    hub.metrics.add("messages_replied");
    return answer(message);
  },
});

const cancel = route({
  method: "DELETE",
  path: "/v1/messages/:id",
  operationId: "cancelMessage",
  tag: "messages",
  summary: "Takes a request back.",
  credential: "agent",
  params: MessageParams,
  answers: { 200: MessageAnswer },
  errors: ["message_not_found", "message_forbidden", "invalid_message_state"],
  run: async ({ hub, caller, params }) => {
    const { message, changed } = await change(hub, caller, params.id, (tx) => messages.cancel(tx, caller.agent, params.id));
    if (changed) hub.metrics.add("messages_cancelled");
    return answer(message);
  },
});

const answer = (message: MessageRow) => ({ status: 200, body: { message: mailbox.toMessage(message) } });

/** Runs a rule on a message. When it was refused because the message's time is over, that is written down now. */
async function change<T>(hub: Hub, caller: AgentCaller, id: string, rule: (tx: Tx) => Promise<T>): Promise<T> {
  try {
    return await hub.engine.write(caller.project, rule);
  } catch (error) {
    if (error instanceof HubError && error.code === "invalid_message_state") await mailbox.settleDue(hub, caller.project, id);
    throw error;
  }
}

export const messageRoutes: readonly Route[] = [send, list, inbox, get, acknowledge, reply, cancel];
