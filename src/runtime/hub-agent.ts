// The Runtime as an agent of the hub: one name per use, registered when first needed, its key kept in a private file, so that a restart is the same agent.
import { hostname } from "node:os";
import { dirname, join } from "node:path";
import { type Answered, ask, type Connection, type Exchange, HubRefusal, open } from "../client/http.ts";
import { sha256 } from "../protocol/canonical.ts";
import { RuntimeRefusal } from "../protocol/runtime-errors.ts";
import { privateFolder, readPrivate, removePrivate, writePrivate } from "./paths.ts";

/** Where the hub is and what to show it. */
export type HubAddress = Connection & { project: string };
type Kept = { url: string; project: string; name: string; id: string; key: string };

/** Above a hundred open requests at their longest. */
const ANSWER_BYTES_MAX = 33_554_432;

export type HubAgentOptions = {
  /** Asked anew for each request: the binding may change. */
  hub: () => HubAddress | undefined;
  name: string;
  purpose: string;
  /** Such as the harness's model, for lists. */
  model?: string;
  /** Folder for key files. */
  folder: string;
  /** Learns the key before it can appear anywhere. */
  remember: (secret: string, kind: string) => void;
};

export class HubAgent {
  private kept: Kept | undefined;
  private pending: Promise<Kept> | undefined;
  constructor(private readonly options: HubAgentOptions) {}

  /** The agent's id at the hub; registers it when needed. @throws RuntimeRefusal hub_not_bound; HubRefusal, HubUnreachable */
  async id(): Promise<string> {
    return (await this.known()).id;
  }

  /** One request as this agent; `{me}` in the path is its id. A hub that forgot it, or has another key, gets it registered again, once. */
  async ask<T = any>(method: "GET" | "POST" | "DELETE", path: string, exchange: Exchange = {}): Promise<Answered<T>> {
    const bounded = { maxBytes: ANSWER_BYTES_MAX, ...exchange };
    return this.again((me, exchanged) => ask<T>(this.address(), method, path.replace("{me}", me.id), exchanged), bounded);
  }

  /** The same for a stream. */
  async open(path: string, exchange: Exchange = {}): Promise<Response> {
    return this.again((me, exchanged) => open(this.address(), "GET", path.replace("{me}", me.id), exchanged), exchange);
  }

  private async again<T>(send: (me: Kept, exchange: Exchange) => Promise<T>, exchange: Exchange): Promise<T> {
    const attempt = (me: Kept) => send(me, { ...exchange, headers: { ...exchange.headers, "x-kxm-agent-id": me.id, "x-kxm-agent-key": me.key } });
    try {
      return await attempt(await this.known());
    } catch (error) {
      if (!(error instanceof HubRefusal) || error.code !== "invalid_agent_identity") throw error;
      this.kept = undefined;
      removePrivate(this.path());
      return attempt(await this.known());
    }
  }

  private address(): HubAddress {
    const hub = this.options.hub();
    if (!hub) throw new RuntimeRefusal("hub_not_bound", "this machine is bound to no hub");
    return hub;
  }

  private path(): string {
    const { url, project } = this.address();
    return join(this.options.folder, `${sha256(`${url} ${project} ${this.options.name.toLowerCase()}`).slice(0, 24)}.json`);
  }

  private async known(): Promise<Kept> {
    const { url, project } = this.address();
    if (this.kept && this.kept.url === url && this.kept.project === project) return this.kept;
    // One registration at a time: each one ends the key of the one before.
    this.pending ??= this.find().finally(() => (this.pending = undefined));
    return this.pending;
  }

  private async find(): Promise<Kept> {
    const saved = readPrivate(this.path());
    const kept = saved === undefined ? await this.register() : (JSON.parse(saved) as Kept);
    this.options.remember(kept.key, "agent-key");
    this.kept = kept;
    return kept;
  }

  private async register(): Promise<Kept> {
    const { url, project } = this.address();
    const { name, purpose, model } = this.options;
    const body = { name, project, purpose, host: hostname().slice(0, 64), ...(model && { model }) };
    const { agent, agentKey } = (await ask(this.address(), "POST", "/v1/agents/register", { body, timeoutMs: 10_000, maxBytes: ANSWER_BYTES_MAX }))
      .body;
    this.options.remember(agentKey, "agent-key");
    const kept = { url, project, name, id: agent.id, key: agentKey };
    privateFolder(dirname(this.path()));
    writePrivate(this.path(), `${JSON.stringify(kept)}\n`);
    return kept;
  }
}
