// The calls of one agent: each goes out under its id and key, is sent again while nobody can say whether the hub did it, and registers the agent
// again when the hub has lost it.
import type { Agent, RegisterAnswer, RegisterBody } from "../protocol/agents.ts";
import { type BackoffOptions, backoffMs, pause } from "./backoff.ts";
import { ask, type Connection, type Exchange, HubRefusal, HubUnreachable, open } from "./http.ts";

/** Who an agent is at a hub. */
export type Identity = { id: string; key: string };
/** What registering takes; the hub has a purpose for who names none. */
export type Registration = Pick<RegisterBody, "name" | "project"> & Partial<Pick<RegisterBody, "purpose" | "model" | "host">>;
/** How a client works. */
export type ClientOptions = {
  /** Ends everything that is under way. */
  signal?: AbortSignal | undefined;
  /** Waits between tries, milliseconds; smaller in tests. */
  backoff?: Pick<BackoffOptions, "firstMs" | "maxMs">;
  /** Registers the agent again, under this name, when the hub no longer knows it (its store was replaced or restored). */
  registration?: Registration;
  /** Told of the identity that such a registration gave, to keep it. */
  onIdentity?: (identity: Identity) => void;
  /** Silence of a stream after which its connection counts as dead, milliseconds. A hub speaks every 15 seconds. */
  silenceMs?: number;
};

/** A request's method. */
export type Method = "GET" | "POST" | "DELETE";

/** What the parts of a client are built on. `{me}` in a path, and as the value of a query, is the agent's id. */
export interface Calls {
  readonly signal: AbortSignal | undefined;
  readonly backoff: Pick<BackoffOptions, "firstMs" | "maxMs">;
  readonly silenceMs: number;
  /** The agent's id, as last registered. */
  id(): string;
  /** The agent's project. */
  project(): Promise<string>;
  /** One request. @throws HubRefusal, HubUnreachable, HubTimeout */
  call<T>(method: Method, path: string, exchange?: Exchange): Promise<T>;
  /** The same, asked again while the outcome is unknown: for requests that count once however often they come. */
  persist<T>(method: Method, path: string, exchange?: Exchange): Promise<T>;
  /** A request whose answer is a stream. */
  open(path: string, exchange?: Exchange): Promise<Response>;
}

const TIMEOUT_MS = 10_000;
const TRIES = 5;
const BACKOFF = { firstMs: 500, maxMs: 30_000 };
const SILENCE_MS = 45_000;

/**
 * Registers an agent, or resumes the offline one of this name. Keep `agentKey`: it is shown this once.
 * @throws HubRefusal duplicate_agent_name, invalid_auth and others; HubUnreachable, HubTimeout
 */
export async function registerAgent(to: Connection, registration: Registration, { signal }: ClientOptions = {}): Promise<RegisterAnswer> {
  const { name, project, purpose, model, host } = registration;
  const body = { name, project, purpose, model, host };
  return (await ask<RegisterAnswer>(to, "POST", "/v1/agents/register", { body, timeoutMs: TIMEOUT_MS, signal })).body;
}

/** The calls of an agent whose identity is known. */
export function callsOf(to: Connection, known: Identity, options: ClientOptions): Calls {
  const { signal, backoff = BACKOFF, registration, silenceMs = SILENCE_MS } = options;
  let identity = known;
  let renewing: Promise<void> | undefined;
  let project: Promise<string> | undefined = registration && Promise.resolve(registration.project);

  const prepared = (path: string, exchange: Exchange): [string, Exchange] => [
    path.replaceAll("{me}", encodeURIComponent(identity.id)),
    {
      ...exchange,
      signal: anyOf(signal, exchange.signal),
      headers: { ...exchange.headers, ...headersOf(identity) },
      query: Object.fromEntries(Object.entries(exchange.query ?? {}).map(([name, value]) => [name, value === "{me}" ? identity.id : value])),
    },
  ];
  /** Sends; an agent that the hub has forgotten is registered again, once. */
  const recalled = async <T>(send: () => Promise<T>): Promise<T> => {
    const used = identity;
    try {
      return await send();
    } catch (error) {
      if (!registration || !isForgotten(error)) throw error;
      await (renewing ??= renew(used).finally(() => (renewing = undefined)));
      return send();
    }
  };
  async function renew(used: Identity) {
    if (identity !== used) return; // somebody else's call did it meanwhile
    const { agent, agentKey } = await registerAgent(to, registration!, { signal });
    identity = { id: agent.id, key: agentKey };
    options.onIdentity?.(identity);
  }
  const call = <T>(method: Method, path: string, exchange: Exchange = {}): Promise<T> =>
    recalled(async () => (await ask<T>(to, method, ...prepared(path, { ...exchange, timeoutMs: exchange.timeoutMs ?? TIMEOUT_MS }))).body);

  return {
    signal,
    backoff,
    silenceMs,
    id: () => identity.id,
    project: () =>
      (project ??= call<{ agent: Agent }>("POST", "/v1/agents/{me}/heartbeat").then(
        ({ agent }) => agent.project,
        (error) => {
          project = undefined;
          throw error;
        },
      )),
    call,
    persist: (method, path, exchange) => persist(() => call(method, path, exchange), backoff, exchange?.signal ?? signal),
    open: (path, exchange = {}) => recalled(() => open(to, "GET", ...prepared(path, exchange))),
  };
}

const headersOf = ({ id, key }: Identity) => ({ "x-kxm-agent-id": id, "x-kxm-agent-key": key });
const isForgotten = (error: unknown) => error instanceof HubRefusal && error.code === "invalid_agent_identity";

/** Ends with the first of two that may be missing. */
export const anyOf = (one: AbortSignal | undefined, other: AbortSignal | undefined): AbortSignal | undefined =>
  one && other ? AbortSignal.any([one, other]) : (one ?? other);

/** Asks again while nobody can say whether the hub did it: nothing answered, or its store was in trouble. */
async function persist<T>(send: () => Promise<T>, backoff: BackoffOptions, signal: AbortSignal | undefined): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await send();
    } catch (error) {
      if (!isUnknown(error) || tries === TRIES || signal?.aborted) throw error;
      await pause(backoffMs(tries, error instanceof HubRefusal ? error.retryAfterSeconds : undefined, backoff), signal);
    }
  }
}

/** Whether an error leaves open what the hub did, so that the same request may be sent again. */
export const isUnknown = (error: unknown): boolean =>
  error instanceof HubUnreachable || (error instanceof HubRefusal && (error.status === 503 || error.status === 429));
