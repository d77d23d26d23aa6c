// What events of the log mean to agents: whom an event concerns, and the frame it becomes. Frames hold the record as it is now, not as it was.
import type { EventRow, MessageRow } from "../db/schema.ts";
import { type FrameEvent, formatCursor } from "../protocol/events.ts";
import * as agents from "./agents.ts";
import type { Hub } from "./hub.ts";
import { toMessage } from "./mailbox.ts";

/** One frame. `id` is the stream's cursor once the client has read it. */
export type Frame = { event: FrameEvent; id?: string; data: string };
/** A frame, and the message in it when it is a new one. */
export type Built = { frame: Frame; message?: MessageRow };
/** What a frame needs of the hub. */
export type FrameSource = Pick<Hub, "engine" | "presence" | "settings" | "clock">;
/** The kind of frame an event becomes, and for whom: some agents, or all but one. */
export type Audience = { name: FrameEvent } & ({ ids: string[] } | { except: string });

/** Whom an event concerns; undefined when it is for no agent's stream. */
export function audienceOf({ topic, type, subjectId, data }: EventRow): Audience | undefined {
  if (topic === "agents") return { name: "presence", except: subjectId };
  if (topic !== "messages") return;
  const { recipientId, senderId } = data as { recipientId: string; senderId: string };
  if (type === "queued") return { name: "message", ids: [recipientId] };
  if (type === "replied") return { name: "reply", ids: [senderId] };
  if (type === "cancelled") return { name: "cancelled", ids: [recipientId] };
  if (type === "expired") return { name: "expired", ids: [recipientId, senderId] };
  return;
}

/** Whether an agent belongs to an audience. */
export const includes = (audience: Audience, agentId: string): boolean =>
  "ids" in audience ? audience.ids.includes(agentId) : audience.except !== agentId;

/** The frame of an event; undefined when its subject is gone, or the message was dealt with before it could be pushed. */
export async function buildFrame(hub: FrameSource, event: EventRow, name: FrameEvent): Promise<Built | undefined> {
  const { read, generation } = hub.engine;
  const id = formatCursor(generation, event.seq);
  if (name === "presence") {
    const agent = await read.agents.find(event.subjectId);
    return agent && { frame: { event: name, id, data: JSON.stringify({ type: name, agent: agents.toAgent(hub, agent) }) } };
  }
  const message = await read.messages.find(event.subjectId);
  if (!message) return;
  if (name === "message") return message.status === "queued" ? { ...messageFrame(message, id), message } : undefined;
  return { frame: { event: name, id, data: JSON.stringify({ type: name, message: toMessage(message) }) } };
}

/** A request as a frame, with or without a cursor. */
export const messageFrame = (message: MessageRow, id?: string): Built => ({
  frame: { event: "message", ...(id !== undefined && { id }), data: JSON.stringify({ type: "message", message: toMessage(message) }) },
  message,
});
