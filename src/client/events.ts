// The stream of an agent: connects again after every break, from where it was, and notices a connection that died without a word.
import type { Agent } from "../protocol/agents.ts";
import type { FrameEvent, ResetReason } from "../protocol/events.ts";
import type { Message } from "../protocol/messages.ts";
import { backoffMs, pause } from "./backoff.ts";
import { anyOf, type Calls } from "./calls.ts";
import { HubRefusal } from "./http.ts";
import { readFrames } from "./sse.ts";

/** One frame of the agent's stream. `cursor` is where to resume after it. */
export type StreamEvent = { cursor: string | undefined } & (
  | { event: "ready"; agent: Agent }
  | { event: "message" | "reply" | "cancelled" | "expired"; message: Message }
  | { event: "presence"; agent: Agent }
  | { event: "reset"; reason: ResetReason }
);
/** Where a stream begins and ends. */
export type EventsQuery = {
  /** The cursor of an earlier stream, kept by the caller. */
  from?: string;
  presenceOnly?: boolean;
  signal?: AbortSignal;
};

/** The stream of an agent, for as long as its signal lets it. @throws HubRefusal when the hub will not have this agent (401, 403, 404) */
export async function* follow(calls: Calls, { from, presenceOnly, signal: own }: EventsQuery): AsyncGenerator<StreamEvent, void> {
  const signal = anyOf(calls.signal, own);
  let cursor = from;
  for (let failures = 0; !signal?.aborted; ) {
    let patience: number | undefined;
    const silence = silenceAfter(calls.silenceMs);
    try {
      const headers: Record<string, string> = cursor === undefined ? {} : { "last-event-id": cursor };
      const exchange = { query: { agentId: "{me}", presenceOnly }, headers, signal: anyOf(own, silence.signal) };
      const response = await calls.open("/v1/events", exchange);
      for await (const { event, data } of readFrames(response, (id) => (cursor = id), silence.broken)) {
        failures = 0;
        const { type: _, ...parts } = JSON.parse(data) as Record<string, unknown>;
        yield { event: event as FrameEvent, ...parts, cursor } as StreamEvent;
      }
    } catch (error) {
      if (signal?.aborted) return;
      if (error instanceof HubRefusal && [401, 403, 404].includes(error.status)) throw error;
      patience = error instanceof HubRefusal ? error.retryAfterSeconds : undefined;
    } finally {
      silence.end();
    }
    await pause(backoffMs(++failures, patience, calls.backoff), signal);
  }
}

/** A signal that ends a connection once it has been silent for too long. `broken` says that something was heard. */
function silenceAfter(ms: number) {
  const controller = new AbortController();
  const over = () => controller.abort();
  let timer = setTimeout(over, ms);
  return {
    signal: controller.signal,
    broken: () => {
      clearTimeout(timer);
      timer = setTimeout(over, ms);
    },
    end: () => clearTimeout(timer),
  };
}
