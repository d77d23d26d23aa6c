// MCP over standard input and output, by way of the hub's own endpoint: the bridge registers one agent, passes each message on as that agent, and
// signs it off at the end. The hub's catalogue is the only one, so a bridge and its hub never disagree about tools.
import type { Message } from "../protocol/messages.ts";
import { pause } from "./backoff.ts";
import { ask, type Connection, HubRefusal, open } from "./http.ts";
import { readFrames } from "./sse.ts";

const HEARTBEAT_MS = 10_000;
const NAMES_MAX = 20; // suffixes tried when a name is taken
const STREAM_AGAIN_MS = 2_000;
const UNAVAILABLE = -32_000; // JSON-RPC's range for servers

export interface BridgeOptions {
  connection: Connection;
  project: string;
  /** The name to speak under; a taken one gets a suffix. */
  name: string;
  purpose: string;
  /** Lines of standard input, each one JSON-RPC message. Ends when the client leaves. */
  lines: AsyncIterable<string>;
  write(line: string): void;
  /** For people: standard error. */
  note(text: string): void;
  /** Also offers pushed requests to clients that take channel notifications. */
  pushes: boolean;
  /** Milliseconds before a stream that broke is opened again. */
  streamAgainMs?: number;
}

type Identity = { id: string; key: string; name: string };
type Rpc = { id?: string | number | null; method?: string; params?: { clientInfo?: { name?: string }; requestId?: string | number } };

/** Runs until the input ends. Never throws for a hub that is away: each request is answered with an error until it is back. */
export async function bridge(options: BridgeOptions): Promise<void> {
  const { lines, write, note } = options;
  const ended = new AbortController();
  let identity: Promise<Identity> | undefined;
  let pushing = false;
  const who = () =>
    (identity ??= register(options).catch((error) => {
      identity = undefined;
      throw error;
    }));
  const heartbeat = setInterval(() => void beat(options.connection, identity), HEARTBEAT_MS);
  const running = new Set<Promise<void>>();
  const unanswered = new Map<string | number, AbortController>();
  void who().then(
    ({ name }) => note(`connected to ${options.connection.url} as ${name} in ${options.project}`),
    (error) => note((error as Error).message),
  );
  try {
    for await (const line of lines) {
      if (line.trim() === "") continue;
      const message = parsed(line);
      if (!message) {
        write(JSON.stringify({ jsonrpc: "2.0", id: null, error: { code: -32_700, message: "the line is not a JSON-RPC message" } }));
        continue;
      }
      if (message.method === "notifications/cancelled") {
        // Hanging up ends the wait at the hub. What is answered already has no entry any more: a late cancellation undoes nothing.
        unanswered.get(message.params?.requestId ?? "")?.abort();
        continue;
      }
      const work = pass(message).finally(() => running.delete(work));
      running.add(work);
    }
    await Promise.all(running);
  } finally {
    clearInterval(heartbeat);
    ended.abort();
    await signOff(options.connection, identity);
  }

  /** One message on, its answer back. An agent the hub has forgotten is registered again, once. */
  async function pass(message: Rpc): Promise<void> {
    const cancelled = new AbortController();
    const { id } = message;
    if (id !== undefined && id !== null) unanswered.set(id, cancelled);
    try {
      const used = who();
      const agent = await used;
      const answer = await post(agent, message, cancelled.signal).catch(async (error) => {
        if (!(error instanceof HubRefusal && error.code === "invalid_agent_identity")) throw error;
        if (identity === used) identity = undefined; // of several calls that fail together, one registers again
        return post(await who(), message, cancelled.signal);
      });
      if (answer === undefined) return;
      const isChannelClient = message.method === "initialize" && options.pushes && message.params?.clientInfo?.name === "claude-code";
      write(JSON.stringify(isChannelClient ? withChannel(answer) : answer));
      if (isChannelClient && !pushing) {
        pushing = true;
        void push(options, who, ended.signal);
      }
    } catch (error) {
      if (id === undefined || id === null || cancelled.signal.aborted) return; // nobody waits for what was cancelled
      const hint = error instanceof HubRefusal && error.hint ? ` ${error.hint}` : " Start it with `kxm hub start --detach`.";
      write(JSON.stringify({ jsonrpc: "2.0", id, error: { code: UNAVAILABLE, message: `${(error as Error).message}.${hint}` } }));
    } finally {
      if (id !== undefined && id !== null && unanswered.get(id) === cancelled) unanswered.delete(id);
    }
  }
  async function post({ id, key }: Identity, message: Rpc, cancelled: AbortSignal): Promise<unknown> {
    const headers = { accept: "application/json, text/event-stream", "x-kxm-agent-id": id, "x-kxm-agent-key": key };
    return (await ask(options.connection, "POST", "/mcp", { body: message, headers, signal: AbortSignal.any([ended.signal, cancelled]) })).body;
  }
}

function parsed(line: string): Rpc | undefined {
  try {
    const message = JSON.parse(line) as unknown;
    return typeof message === "object" && message !== null ? (message as Rpc) : undefined;
  } catch {
    return undefined;
  }
}

async function register({ connection, project, name, purpose, note }: BridgeOptions): Promise<Identity> {
  for (let suffix = 1; ; suffix++) {
    const tried = suffix === 1 ? name : `${name}-${suffix}`;
    try {
      const { body } = await ask(connection, "POST", "/v1/agents/register", { body: { name: tried, project, purpose } });
      if (suffix > 1) note(`the name ${name} is taken: this session is ${tried}`);
      return { id: body.agent.id, key: body.agentKey, name: body.agent.name };
    } catch (error) {
      if (!(error instanceof HubRefusal && error.code === "duplicate_agent_name") || suffix === NAMES_MAX) throw error;
    }
  }
}

/** Presence follows the session: a sign of life while it lasts. */
async function beat(connection: Connection, identity: Promise<Identity> | undefined) {
  const agent = await identity?.catch(() => undefined);
  if (agent) await ask(connection, "POST", `/v1/agents/${agent.id}/heartbeat`, { headers: { "x-kxm-agent-key": agent.key } }).catch(() => {});
}

async function signOff(connection: Connection, identity: Promise<Identity> | undefined) {
  const agent = await identity?.catch(() => undefined);
  if (agent)
    await ask(connection, "DELETE", `/v1/agents/${agent.id}`, { headers: { "x-kxm-agent-key": agent.key }, timeoutMs: 2_000 }).catch(() => {});
}

/** The initialize answer, saying that channel notifications may come. */
function withChannel(answer: unknown): unknown {
  const { result, ...rest } = answer as { result?: { capabilities?: Record<string, unknown> } };
  if (!result) return answer;
  const capabilities = { ...result.capabilities, experimental: { ...(result.capabilities?.["experimental"] as object), "claude/channel": {} } };
  return { ...rest, result: { ...result, capabilities } };
}

/**
 * Tells the client of each request to it, and each reply to one of its own, as it arrives. A bonus: kxm_inbox and kxm_get show the same, whatever
 * becomes of a notification. After a break it goes on from where it was; an agent that was registered again meanwhile is followed as the new one.
 */
async function push({ connection, write, streamAgainMs = STREAM_AGAIN_MS }: BridgeOptions, who: () => Promise<Identity>, signal: AbortSignal) {
  let last: string | undefined;
  while (!signal.aborted) {
    try {
      const { id, key } = await who();
      const headers = { "x-kxm-agent-id": id, "x-kxm-agent-key": key, ...(last !== undefined && { "last-event-id": last }) };
      const response = await open(connection, "GET", "/v1/events", { headers, query: { agentId: id }, signal });
      for await (const frame of readFrames(response, (cursor) => (last = cursor))) {
        const params = newsOf(frame.event, frame.data);
        if (params) write(JSON.stringify({ jsonrpc: "2.0", method: "notifications/claude/channel", params }));
      }
    } catch {
      // the hub went away, or has forgotten the agent, which the next call registers again: try again below
    }
    await pause(streamAgainMs, signal);
  }
}

/** What a notification says of a frame; undefined when it is nothing to be told of. */
function newsOf(event: string, data: string): { content: string; meta: Record<string, string> } | undefined {
  if (event !== "message" && event !== "reply") return undefined;
  const { message } = JSON.parse(data) as { message: Message };
  const { id, fromName, toName, content, reply } = message;
  return event === "message"
    ? { content: `Request ${id} from ${fromName}: ${content}`, meta: { messageId: id, from: fromName } }
    : { content: `Reply of ${toName} to your request ${id}: ${reply?.content}`, meta: { messageId: id, from: toName } };
}
