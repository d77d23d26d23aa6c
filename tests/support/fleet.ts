// Agents, tokens and hubs over one store, on either engine: what tests of rules and routes start from.
import { createApi } from "../../src/api/server.ts";
import type { Engine } from "../../src/db/engine.ts";
import { openPostgres } from "../../src/db/engine-postgres.ts";
import type { AgentRow } from "../../src/db/schema.ts";
import { hostsOf } from "../../src/http/admission.ts";
import { type Hub, openHub } from "../../src/hub/hub.ts";
import type { LogLine } from "../../src/hub/log.ts";
import { defaultSettings, type HubSettings } from "../../src/hub/settings.ts";
import * as tokens from "../../src/hub/tokens.ts";
import { sha256 } from "../../src/protocol/canonical.ts";
import { newId } from "../../src/protocol/ids.ts";
import type { OpenWorld, World } from "./engines.ts";
import { agentRow } from "./rows.ts";

export const OPERATOR_TOKEN = "operator-token-of-the-test";
export const ADMIN_TOKEN = "admin-token-of-the-test";

/** One answer of the API. */
export type Answered = { status: number; body: any; headers: Headers };
/** Who sends a request: an agent, a bearer token, or nobody. */
export type Sender = (Pick<AgentRow, "id"> & { key?: string }) | string | undefined;

/** The headers of a sender. An agent made by `Fleet.agent` has its id for a key. */
export function headersOf(as: Sender): Record<string, string> {
  if (typeof as === "string") return { authorization: `Bearer ${as}` };
  return as ? { "x-kxm-agent-id": as.id, "x-kxm-agent-key": as.key ?? as.id } : {};
}

/** What a registered agent keeps. */
export type Registered = { id: string; key: string; name: string };

/** One hub process over the store. */
export interface HubSeat {
  hub: Hub;
  logged: LogLine[];
  /** The raw answer, for streams and odd requests. */
  fetch(request: Request): Promise<Response>;
  /** Puts the API behind a real socket on 127.0.0.1. @param idleTimeout seconds after which Bun cuts a connection that says nothing */
  listen(options?: { port?: number; idleTimeout?: number }): { url: string; port: number; stop(): Promise<void> };
  call(as: Sender, method: string, path: string, body?: unknown, options?: { signal?: AbortSignal }): Promise<Answered>;
  stop(): void;
}

export interface Fleet extends HubSeat, AsyncDisposable {
  world: World;
  clock: { now: number };
  /** A registered agent; its key is its id. */
  agent(name: string, project?: string): Promise<AgentRow>;
  /** An agent registered through the API, with its key. */
  register(name: string, more?: Record<string, unknown>): Promise<Registered>;
  /** A token made by an admin. */
  token(scope: "project" | "operator" | "viewer", project?: string | null, expiresAt?: number | null): Promise<string>;
  /** Another hub on the same store: a process of its own on PostgreSQL, a second seat over the one engine on SQLite. */
  another(): Promise<HubSeat>;
  /** What the log of a project says, oldest first. */
  log(project?: string): Promise<string[]>;
}

function seat(engine: Engine, clock: { now: number }, settings: Partial<HubSettings>): HubSeat {
  const stop = new AbortController();
  const logged: LogLine[] = [];
  const hub = openHub({
    engine,
    clock: () => clock.now,
    settings: { ...defaultSettings(), rateLimit: undefined, ...settings },
    log: (line) => void logged.push(line),
    stopping: stop.signal,
  });
  const hosts = new Set(["127.0.0.1:7331"]);
  const api = createApi(hub, { newRequestId: () => newId("req"), hosts });
  return {
    hub,
    logged,
    stop: () => stop.abort(),
    fetch: async (request) => api.handle(request),
    listen({ port = 0, idleTimeout = 10 } = {}) {
      const server = Bun.serve({ hostname: "127.0.0.1", port, idleTimeout, fetch: (request) => api.fetch(request) });
      (api as { server: unknown }).server = server; // routes lift the idle limit of a stream through it
      for (const host of hostsOf(server.port!, [])) hosts.add(host);
      return { url: `http://127.0.0.1:${server.port}`, port: server.port!, stop: () => server.stop(true) };
    },
    async call(as, method, path, body, { signal } = {}) {
      const headers = { ...(method === "POST" && { "content-type": "application/json" }), ...headersOf(as) };
      const sent = body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) };
      const response = await api.handle(
        new Request(`http://127.0.0.1:7331${path}`, { method, headers, ...sent, ...(signal && { signal }) } as RequestInit),
      );
      const text = await response.text();
      const isJson = response.headers.get("content-type")?.startsWith("application/json");
      return { status: response.status, body: isJson ? JSON.parse(text) : text, headers: response.headers };
    },
  };
}

/** @param settings replaces single settings of a loopback hub that has an admin token of its own and no rate limit */
export async function openFleet(open: OpenWorld, settings: Partial<HubSettings> = {}): Promise<Fleet> {
  const world = await open();
  const all = { localAdminTokenHash: sha256(ADMIN_TOKEN), ...settings };
  const first = seat(world.engine, world.clock, all);
  const others: { seat: HubSeat; engine?: Engine }[] = [];
  return {
    ...first,
    world,
    clock: world.clock,
    async agent(name, project = "p") {
      const row = agentRow(newId("agt"), project, name);
      await world.engine.write(project, (tx) => tx.agents.insert(row));
      return row;
    },
    async register(name, more = {}) {
      const { status, body } = await first.call(undefined, "POST", "/v1/agents/register", { name, project: "p", ...more });
      if (status >= 300) throw new Error(`${name} was not registered: ${body.code}`);
      return { id: body.agent.id, key: body.agentKey, name };
    },
    async token(scope, project = null, expiresAt = null) {
      const secret = `${scope}-${newId("tok")}`;
      const token = { secret, name: scope, scope, project, expiresAt };
      await world.engine.write(project ?? "", (tx) => tokens.create(tx, { actor: "admin", role: "admin" }, token));
      return secret;
    },
    async another() {
      const engine =
        world.kind === "postgres" ? await openPostgres(world.location, { clock: () => world.clock.now, newId, connections: 4 }) : undefined;
      const other = seat(engine ?? world.engine, world.clock, all);
      others.push(engine ? { seat: other, engine } : { seat: other });
      return other;
    },
    async log(project = "p") {
      return (await world.engine.read.events.after(project, 0, 1_000)).map(({ topic, type }) => `${topic}.${type}`);
    },
    async [Symbol.asyncDispose]() {
      first.stop();
      for (const { seat: other, engine } of others) {
        other.stop();
        await engine?.close();
      }
      await world[Symbol.asyncDispose]();
    },
  };
}

/** Resolves once `holds` does; asks again each turn of the event loop. @throws after `ms` */
export async function until(holds: () => boolean | Promise<boolean>, what = "the condition", ms = 2_000): Promise<void> {
  const started = performance.now();
  while (!(await holds())) {
    if (performance.now() - started > ms) throw new Error(`${what} did not come within ${ms} ms`);
    await new Promise<void>((turn) => setImmediate(turn));
  }
}
