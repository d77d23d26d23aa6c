// Frames of an agent's stream (GET /v1/events), for the hub that writes them and the clients that read them.
import { Type } from "@sinclair/typebox";
import { Agent } from "./agents.ts";
import { flag, text } from "./fields.ts";
import { Message } from "./messages.ts";

/** Names of frames. `reset` says that the cursor cannot be resumed: what was missed in between must be read again. */
export const FRAME_EVENTS = ["ready", "reset", "message", "reply", "cancelled", "expired", "presence"] as const;
export type FrameEvent = (typeof FRAME_EVENTS)[number];

/** First frame of every stream; the only data without a type. */
export const ReadyFrame = Type.Object({ agent: Agent });
const withMessage = (type: string) => Type.Object({ type: Type.Literal(type), message: Message });
export const MessageFrame = withMessage("message");
export const ReplyFrame = withMessage("reply");
export const CancelledFrame = withMessage("cancelled");
export const ExpiredFrame = withMessage("expired");
export const PresenceFrame = Type.Object({ type: Type.Literal("presence"), agent: Agent });
/** Why a cursor cannot be resumed. */
export const RESET_REASONS = ["unreadable", "other_generation", "from_the_future", "too_old"] as const;
export type ResetReason = (typeof RESET_REASONS)[number];
export const ResetFrame = Type.Object({ type: Type.Literal("reset"), reason: Type.Union(RESET_REASONS.map((word) => Type.Literal(word))) });

/** Query of GET /v1/events. */
export const EventsQuery = Type.Object({
  agentId: text(80, { description: "The agent whose stream it is; its key is in the header." }),
  presenceOnly: flag({ description: "Only comings and goings; for the terminal view (model tui)." }),
});

/** A place in a project's event log, as frames carry it. */
export type Cursor = { generation: string; seq: number };
const CURSOR = /^(gen_[0-9a-f]{32})\.(0|[1-9]\d{0,15})$/;

/** `gen_….17` */
export const formatCursor = (generation: string, seq: number): string => `${generation}.${seq}`;

/** The place that a Last-Event-ID names, or undefined when it is not one of ours. Never throws, whatever the text is. */
export function parseCursor(text: string): Cursor | undefined {
  const [, generation, digits] = (text.length < 100 && CURSOR.exec(text)) || [];
  const seq = Number(digits);
  return generation !== undefined && Number.isSafeInteger(seq) ? { generation, seq } : undefined;
}
