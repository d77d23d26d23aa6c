// What an agent asks of a hub, in one object: see others, send, wait, answer, hear what comes in, hold leases, move workflows, ask for context and
// search. Typed from the protocol.
import type { Agent } from "../protocol/agents.ts";
import type { SearchAnswer } from "../protocol/search.ts";
import { type ClientOptions, callsOf, type Identity } from "./calls.ts";
import { contextCalls } from "./context.ts";
import { type EventsQuery, follow, type StreamEvent } from "./events.ts";
import type { Connection } from "./http.ts";
import { leaseCalls } from "./leases.ts";
import { messageCalls } from "./messages.ts";
import { workflowCalls } from "./workflows.ts";

export type HubClient = ReturnType<typeof hubClient>;

/**
 * Speaks for an agent whose id and key are known; `connectHub` registers one first. The caller keeps the key: it is shown once, and with it a
 * restarted program is the same agent.
 * @throws (each call) HubRefusal, HubUnreachable, HubTimeout
 */
export function hubClient(to: Connection, identity: Identity, options: ClientOptions = {}) {
  const calls = callsOf(to, identity, options);
  return {
    /** The agent's id. */
    get id(): string {
      return calls.id();
    },
    /** Gives a sign of life; every 10 seconds is often enough. */
    heartbeat: async (): Promise<Agent> => (await calls.call<{ agent: Agent }>("POST", "/v1/agents/{me}/heartbeat")).agent,
    /** Those online in the project, oneself included; with `includeOffline` everybody. */
    agents: async (query: { includeOffline?: boolean } = {}): Promise<Agent[]> =>
      (await calls.call<{ agents: Agent[] }>("GET", "/v1/agents", { query })).agents,
    /** Says goodbye: others see it at once, and the streams end. The key stays valid. */
    signOff: async ({ timeoutMs }: { timeoutMs?: number } = {}): Promise<void> => void (await calls.call("DELETE", "/v1/agents/{me}", { timeoutMs })),
    ...messageCalls(calls),
    /**
     * What happens, for as long as the signal lets it: connects again after every break, from where it was, with growing, random waits.
     * A message may come twice. After `reset` what was missed in between must be read again (`inbox`, `list`).
     * @throws HubRefusal when the hub will not have this agent (401, 403, 404)
     */
    events: (query: EventsQuery = {}): AsyncGenerator<StreamEvent, void> => follow(calls, query),
    leases: leaseCalls(calls),
    workflows: workflowCalls(calls),
    context: contextCalls(calls),
    /** Finds messages, agents, leases, runs, journal entries and context by words and qualifiers, newest first. */
    search: (q: string, query: { after?: string; limit?: number } = {}): Promise<SearchAnswer> =>
      calls.call("GET", "/v1/search", { query: { q, ...query } }),
  };
}
