// Messages as an agent sends, awaits, answers and lists them. Sending, acknowledging, answering and cancelling may be repeated and count once.
import type { ListQuery, Message, SendBody } from "../protocol/messages.ts";
import { type Calls, isUnknown } from "./calls.ts";
import { HubRefusal } from "./http.ts";

/** A message to send. Without an idempotency key it gets one, so that it can be sent again safely. */
export type Outgoing = Pick<SendBody, "target" | "content"> & Partial<Omit<SendBody, "target" | "content">>;
/** The same request to several agents. With `idempotencyKeyPrefix` a repeat finds the messages of the first time. */
export type Fanout = Omit<Outgoing, "target" | "idempotencyKey"> & { targets: readonly string[]; idempotencyKeyPrefix?: string };
/** What became of a request to one of several agents: its message (ended, or still open when the time was up), or why it was refused. */
export type FanoutOutcome = { target: string } & ({ message: Message; refusal?: undefined } | { message?: undefined; refusal: HubRefusal });
/** How long to wait for an end. */
export type Patience = { forMs?: number; signal?: AbortSignal };

const LONG_POLL_MS = 25_000;
const LONG_POLL_GRACE_MS = 10_000;
const FANOUT_MAX = 3;

/** The calls about messages. @throws (each) HubRefusal, HubUnreachable, HubTimeout */
export function messageCalls(calls: Calls) {
  const at = (id: string) => `/v1/messages/${encodeURIComponent(id)}`;
  const message = async (answer: Promise<{ message: Message }>) => (await answer).message;
  const get = (id: string, { waitMs = 0, signal }: { waitMs?: number; signal?: AbortSignal } = {}): Promise<Message> =>
    message(calls.persist("GET", at(id), { query: { waitMs }, timeoutMs: waitMs + LONG_POLL_GRACE_MS, signal }));
  const send = (outgoing: Outgoing, { signal }: { signal?: AbortSignal } = {}): Promise<{ message: Message; idempotent: boolean }> =>
    calls.persist("POST", "/v1/messages", { body: { ...outgoing, idempotencyKey: outgoing.idempotencyKey ?? newKey() }, signal });
  const ended = async (id: string, { forMs = Number.POSITIVE_INFINITY, signal }: Patience = {}): Promise<Message> => {
    for (const until = performance.now() + forMs; ; ) {
      const found = await get(id, { waitMs: Math.max(0, Math.min(LONG_POLL_MS, Math.ceil(until - performance.now()))), signal });
      if (!isOpen(found) || performance.now() >= until) return found;
    }
  };

  return {
    /** Sends a message; asks again when the hub could not say whether it stored it. */
    send,
    /** One message; with waitMs (0..60000) once it has ended, or as it is when the time is up. */
    get,
    /** The message once it has ended, however long that takes; as it is when `forMs` have passed. The hub answers as it happens; nothing polls. */
    ended,
    /** Sends, and waits for the end: `reply` is there when it was answered. */
    ask: async (outgoing: Outgoing, patience: Patience = {}): Promise<Message> => ended((await send(outgoing, patience)).message.id, patience),
    /** Asks 1 to 3 agents the same and waits for all; who has not answered in `forMs` (60 s) stays asked. */
    fanout: async ({ targets, idempotencyKeyPrefix = newKey(), ...request }: Fanout, patience: Patience = {}): Promise<FanoutOutcome[]> => {
      if (targets.length === 0 || targets.length > FANOUT_MAX) throw new RangeError(`a request goes to 1 to ${FANOUT_MAX} agents at once`);
      return Promise.all(
        targets.map(async (target): Promise<FanoutOutcome> => {
          try {
            const idempotencyKey = keyOf(idempotencyKeyPrefix, request, target);
            const sent = await send({ ...request, target, idempotencyKey }, patience);
            return { target, message: await ended(sent.message.id, { forMs: 60_000, ...patience }) };
          } catch (error) {
            if (!(error instanceof HubRefusal) || isUnknown(error)) throw error;
            return { target, refusal: error };
          }
        }),
      );
    },
    /** Says that the message has arrived, or with `turn` that work on it has begun. */
    acknowledge: (id: string, phase?: "turn"): Promise<Message> => message(calls.persist("POST", `${at(id)}/ack`, { body: phase ? { phase } : {} })),
    /** Gives the one reply. Sent again after an answer was lost, the reply that is there already counts. */
    reply: async (id: string, content: string): Promise<Message> => {
      try {
        return await message(calls.persist("POST", `${at(id)}/reply`, { body: { content } }));
      } catch (error) {
        if (!(error instanceof HubRefusal && error.code === "duplicate_reply")) throw error;
        const found = await get(id);
        if (found.reply?.content !== content.trim()) throw error;
        return found;
      }
    },
    /** Takes a message of one's own back. */
    cancel: (id: string): Promise<Message> => message(calls.persist("DELETE", at(id))),
    /** Open requests, oldest first. Acknowledges nothing. */
    inbox: (query: { after?: number; limit?: number } = {}): Promise<{ messages: Message[]; next?: number }> =>
      calls.call("GET", "/v1/agents/{me}/inbox", { query }),
    /** A page of what came in or was sent. */
    list: (query: Partial<ListQuery> = {}): Promise<{ messages: Message[]; next?: string }> => calls.call("GET", "/v1/messages", { query }),
  };
}

const isOpen = ({ status }: Message) => status === "queued" || status === "delivered";

/** A key nobody else makes, also where `crypto.randomUUID` is missing. Time comes first, so that keys of one sender lie together in the hub's index. */
const newKey = () =>
  `${Date.now().toString(36)}-${[...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;

/** The key of one message of a fan-out. Two of one prefix that came out the same would be refused, never mixed up: the hub compares the requests. */
function keyOf(prefix: string, { correlationId, workflowContext }: Partial<Outgoing>, target: string): string {
  const text = JSON.stringify([correlationId ?? null, target.toLowerCase(), workflowContext ?? null]);
  let [high, low] = [0x811c9dc5, 0x1000193];
  for (let index = 0; index < text.length; index++) {
    high = Math.imul(high ^ text.charCodeAt(index), 0x01000193);
    low = Math.imul(low ^ text.charCodeAt(index), 0x85ebca6b) ^ (low >>> 13);
  }
  const hex = (half: number) => (half >>> 0).toString(16).padStart(8, "0");
  return `${prefix}:${hex(high)}${hex(low)}`;
}
