// An agent at a hub for as long as a program runs: registered, seen, registered again when the hub has lost it, and signed off at the end.
import { type ClientOptions, type Identity, type Registration, registerAgent } from "./calls.ts";
import { type Connection, HubRefusal } from "./http.ts";
import { type HubClient, hubClient } from "./hub-client.ts";

const HEARTBEAT_MS = 10_000;
const GOODBYE_MS = 2_000;

/** Where, and as whom. */
export type ConnectOptions = Connection &
  Registration &
  Pick<ClientOptions, "signal" | "backoff" | "silenceMs" | "onIdentity"> & {
    /** Who this program was last time: tried first, so that it stays the same agent also while the hub still counts it as online. */
    identity?: Identity;
    /** Milliseconds between signs of life. */
    heartbeatMs?: number;
    /** Told of a sign of life that did not arrive; the next one is tried all the same. */
    onTrouble?: (error: Error) => void;
  };

/** A connected agent. Close it, or let `await using` do it. */
export type ConnectedHub = HubClient & AsyncDisposable & { close(): Promise<void> };

/**
 * Registers an agent and keeps it online until `close`, which gives its leases back and signs it off.
 * @throws HubRefusal duplicate_agent_name while another program is online under this name, invalid_auth; HubUnreachable, HubTimeout
 */
export async function connectHub(options: ConnectOptions): Promise<ConnectedHub> {
  const { url, token, fetch, name, project, purpose, model, host, signal, heartbeatMs = HEARTBEAT_MS, onTrouble } = options;
  const to: Connection = { url, token, fetch };
  const registration: Registration = { name, project, purpose, model, host };
  const ended = new AbortController();
  const client: ClientOptions = { ...options, signal: ended.signal, registration };
  const identity = (await known(to, options)) ?? (await registered(to, registration, options));
  const hub = hubClient(to, identity, client);
  const timer = setInterval(() => void hub.heartbeat().catch((error) => ended.signal.aborted || onTrouble?.(error as Error)), heartbeatMs);
  (timer as { unref?: () => void }).unref?.(); // a program that forgot to close may still end

  let closing: Promise<void> | undefined;
  const close = () =>
    (closing ??= (async () => {
      clearInterval(timer);
      await hub.leases.releaseAll();
      await hub.signOff({ timeoutMs: GOODBYE_MS }).catch(() => {}); // the hub would notice by itself
      ended.abort();
    })());
  if (signal?.aborted) await close();
  signal?.addEventListener("abort", () => void close(), { once: true });
  const more = { close, [Symbol.asyncDispose]: close };
  return Object.defineProperties(hub, Object.getOwnPropertyDescriptors(more)) as HubClient & typeof more;
}

async function registered(to: Connection, registration: Registration, { signal, onIdentity }: ConnectOptions): Promise<Identity> {
  const { agent, agentKey } = await registerAgent(to, registration, { signal });
  const identity = { id: agent.id, key: agentKey };
  onIdentity?.(identity);
  return identity;
}

/** The identity of last time, if the hub still knows it. */
async function known(to: Connection, { identity, signal }: ConnectOptions): Promise<Identity | undefined> {
  if (!identity) return undefined;
  try {
    await hubClient(to, identity, { signal }).heartbeat();
    return identity;
  } catch (error) {
    if (error instanceof HubRefusal && error.code === "invalid_agent_identity") return undefined;
    throw error;
  }
}
