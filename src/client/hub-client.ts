// What an agent asks of a hub: register, see others, send, wait, answer, and hear what comes in. Typed from the protocol. The caller keeps the key:
// it is shown once, and with it a restarted program is the same agent.
import type { Agent, RegisterAnswer, RegisterBody } from "../protocol/agents.ts";
import type { FrameEvent, ResetReason } from "../protocol/events.ts";
import { isEnded, type ListQuery, type Message, type SendBody } from "../protocol/messages.ts";
import { backoffMs } from "./backoff.ts";
import { ask, type Connection, type Exchange, HubRefusal, HubUnreachable, open } from "./http.ts";
import { readFrames } from "./sse.ts";

/** Who an agent is at a hub. */
export type Identity = { id: string; key: string };
/** What registering takes; the hub has a purpose for who names none. */
export type Registration = Pick<RegisterBody, "name" | "project"> & Partial<Pick<RegisterBody, "purpose" | "model" | "host">>;
/** A message to send. Without an idempotency key it gets one, so that it can be sent again safely. */
export type Outgoing = Pick<SendBody, "target" | "content"> & Partial<Omit<SendBody, "target" | "content">>;
/** One frame of the agent's stream. `cursor` is where to resume after it. */
export type StreamEvent = { cursor: string | undefined } & (
  | { event: "ready"; agent: Agent }
  | { event: "message" | "reply" | "cancelled" | "expired"; message: Message }
  | { event: "presence"; agent: Agent }
  | { event: "reset"; reason: ResetReason }
);
/** How a client works. */
export type ClientOptions = {
  /** Ends everything that is under way. */
  signal?: AbortSignal;
  /** Waits between tries, milliseconds; smaller in tests. */
  backoff?: { firstMs: number; maxMs: number };
};

const TIMEOUT_MS = 10_000;
const LONG_POLL_MS = 25_000;
const LONG_POLL_GRACE_MS = 10_000;
const TRIES = 5;
const BACKOFF = { firstMs: 500, maxMs: 30_000 };

/**
 * Registers an agent, or resumes the offline one of this name. Keep `agentKey`: it is shown this once.
 * @throws HubRefusal duplicate_agent_name, invalid_auth and others; HubUnreachable, HubTimeout
 */
export async function registerAgent(to: Connection, registration: Registration, { signal }: ClientOptions = {}): Promise<RegisterAnswer> {
  return (await ask<RegisterAnswer>(to, "POST", "/v1/agents/register", { body: registration, timeoutMs: TIMEOUT_MS, signal })).body;
}

export type HubClient = ReturnType<typeof hubClient>;

/** @throws (each call) HubRefusal, HubUnreachable, HubTimeout */
export function hubClient(to: Connection, identity: Identity, options: ClientOptions = {}) {
  const { signal, backoff = BACKOFF } = options;
  const headers = { "x-kxm-agent-id": identity.id, "x-kxm-agent-key": identity.key };
  const call = async <T>(method: "GET" | "POST" | "DELETE", path: string, exchange: Exchange = {}): Promise<T> =>
    (await ask<T>(to, method, path, { timeoutMs: TIMEOUT_MS, signal, headers, ...exchange })).body;
  const message = async (method: "GET" | "POST" | "DELETE", path: string, exchange?: Exchange) =>
    (await call<{ message: Message }>(method, path, exchange)).message;
  const at = (id: string) => `/v1/messages/${encodeURIComponent(id)}`;
  const me = `/v1/agents/${identity.id}`;

  return {
    id: identity.id,
    /** Gives a sign of life; every 10 seconds is often enough. */
    heartbeat: async (): Promise<Agent> => (await call<{ agent: Agent }>("POST", `${me}/heartbeat`)).agent,
    /** Those online in the project, oneself included; with `includeOffline` everybody. */
    agents: async (query: { includeOffline?: boolean } = {}): Promise<Agent[]> =>
      (await call<{ agents: Agent[] }>("GET", "/v1/agents", { query })).agents,
    /** Says goodbye: others see it at once, and the streams end. The key stays valid. */
    signOff: async (): Promise<void> => void (await call("DELETE", me)),
    /** Sends a message; asks again when the hub could not say whether it stored it. */
    send: async (outgoing: Outgoing): Promise<{ message: Message; idempotent: boolean }> => {
      const body = { ...outgoing, idempotencyKey: outgoing.idempotencyKey ?? newKey() };
      return persist(() => call("POST", "/v1/messages", { body }), backoff, signal);
    },
    /** One message; with waitMs (0..60000) once it has ended, or as it is when the time is up. */
    get: (id: string, { waitMs = 0 }: { waitMs?: number } = {}): Promise<Message> =>
      message("GET", at(id), { query: { waitMs }, timeoutMs: waitMs + LONG_POLL_GRACE_MS }),
    /** The message once it has ended, however long that takes; as it is when `forMs` have passed. */
    ended: async (id: string, { forMs = Number.POSITIVE_INFINITY }: { forMs?: number } = {}): Promise<Message> => {
      for (const until = performance.now() + forMs; ; ) {
        const waitMs = Math.max(0, Math.min(LONG_POLL_MS, Math.ceil(until - performance.now())));
        const exchange = { query: { waitMs }, timeoutMs: waitMs + LONG_POLL_GRACE_MS };
        const found = await persist(() => message("GET", at(id), exchange), backoff, signal);
        if (isEnded(found.status) || performance.now() >= until) return found;
      }
    },
    /** Says that the message has arrived, or with `turn` that work on it has begun. */
    acknowledge: (id: string, phase?: "turn"): Promise<Message> =>
      persist(() => message("POST", `${at(id)}/ack`, { body: phase ? { phase } : {} }), backoff, signal),
    /** Gives the one reply. Sent again after an answer was lost, the reply that is there already counts. */
    reply: async (id: string, content: string): Promise<Message> => {
      try {
        return await persist(() => message("POST", `${at(id)}/reply`, { body: { content } }), backoff, signal);
      } catch (error) {
        if (!(error instanceof HubRefusal && error.code === "duplicate_reply")) throw error;
        const found = await message("GET", at(id));
        if (found.reply?.content !== content.trim()) throw error;
        return found;
      }
    },
    /** Takes a message of one's own back. */
    cancel: (id: string): Promise<Message> => persist(() => message("DELETE", at(id)), backoff, signal),
    /** Open requests, oldest first. Acknowledges nothing. */
    inbox: (query: { after?: number; limit?: number } = {}): Promise<{ messages: Message[]; next?: number }> => call("GET", `${me}/inbox`, { query }),
    /** A page of what came in or was sent. */
    list: (query: Partial<ListQuery> = {}): Promise<{ messages: Message[]; next?: string }> => call("GET", "/v1/messages", { query }),
    /**
     * What happens, for as long as the signal lets it: connects again after every break, from where it was, with growing, random waits.
     * A message may come twice. After `reset` what was missed in between must be read again (`inbox`, `list`).
     * @param from the cursor of an earlier stream, kept by the caller
     * @throws HubRefusal when the hub will not have this agent (401, 403, 404)
     */
    events: (query: { from?: string; presenceOnly?: boolean; signal?: AbortSignal } = {}): AsyncGenerator<StreamEvent, void> =>
      follow(to, { ...identity, headers }, { backoff, ...query, signal: query.signal ?? signal }),
  };
}

/** A key nobody else makes. Time comes first, so that keys of one sender lie together in the hub's index. */
const newKey = () => `${Date.now().toString(36)}-${crypto.randomUUID()}`;

type Following = { from?: string | undefined; presenceOnly?: boolean; signal: AbortSignal | undefined; backoff: { firstMs: number; maxMs: number } };

async function* follow(
  to: Connection,
  who: { id: string; headers: Record<string, string> },
  following: Following,
): AsyncGenerator<StreamEvent, void> {
  const { presenceOnly, signal, backoff } = following;
  let cursor = following.from;
  for (let failures = 0; !signal?.aborted; ) {
    let patience: number | undefined;
    try {
      const headers = { ...who.headers, ...(cursor !== undefined && { "last-event-id": cursor }) };
      const response = await open(to, "GET", "/v1/events", { query: { agentId: who.id, presenceOnly }, headers, signal });
      for await (const { event, data } of readFrames(response, (id) => (cursor = id))) {
        failures = 0;
        const { type: _, ...parts } = JSON.parse(data) as Record<string, unknown>;
        yield { event: event as FrameEvent, ...parts, cursor } as StreamEvent;
      }
    } catch (error) {
      if (signal?.aborted) return;
      if (error instanceof HubRefusal && [401, 403, 404].includes(error.status)) throw error;
      patience = error instanceof HubRefusal ? error.retryAfterSeconds : undefined;
    }
    await pause(backoffMs(++failures, patience, backoff), signal);
  }
}

/** Asks again while nobody can say whether the hub did it: nothing answered, or its store was in trouble. */
async function persist<T>(send: () => Promise<T>, backoff: { firstMs: number; maxMs: number }, signal: AbortSignal | undefined): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await send();
    } catch (error) {
      const unknown = error instanceof HubUnreachable || (error instanceof HubRefusal && (error.status === 503 || error.status === 429));
      if (!unknown || tries === TRIES || signal?.aborted) throw error;
      await pause(backoffMs(tries, error instanceof HubRefusal ? error.retryAfterSeconds : undefined, backoff), signal);
    }
  }
}

/** Resolves after a time or when the signal ends. */
async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  const end = () => resolve();
  signal?.addEventListener("abort", end, { once: true });
  if (!signal?.aborted) await promise;
  clearTimeout(timer);
  signal?.removeEventListener("abort", end);
}
