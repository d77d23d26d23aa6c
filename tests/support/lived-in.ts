// A hub with a day's work in it, made the way real callers make it: agents register and lease, a Runtime reports, pushes and answers commands.
import type { DashboardWorld } from "./dashboard.ts";
import { RUNTIME, syncEvent, type Told } from "./sync-events.ts";

export type Registered = { id: string; name: string; headers: Record<string, string> };
const MINUTE = 60_000;

/** Registers an agent through the API. */
export async function register(world: DashboardWorld, name: string, project = "shop"): Promise<Registered> {
  const { body, status } = await world.call("POST", "/v1/agents/register", { body: { name, purpose: "test", project } });
  if (status >= 300) throw new Error(`${name} was not registered: ${JSON.stringify(body)}`);
  return { id: body.agent.id, name, headers: { "x-kxm-agent-id": body.agent.id, "x-kxm-agent-key": body.agentKey } };
}

/** Takes a lease as an agent. */
export async function take(world: DashboardWorld, agent: Registered, name: string, ttlMs = 5 * MINUTE): Promise<{ fencingToken: number }> {
  const { body, status } = await world.call("POST", `/v1/leases/${encodeURIComponent(name)}/acquire`, { body: { ttlMs }, headers: agent.headers });
  if (status !== 200) throw new Error(`${name} was not leased: ${JSON.stringify(body)}`);
  return body.lease;
}

/** Stands in line for a lease; the answer comes when it is granted or the hub stops. Resolves once the agent is in line. */
export async function standInLine(world: DashboardWorld, agent: Registered, name: string, project = "shop"): Promise<void> {
  const resource = `${project}/${name}`;
  const before = await world.hub.engine.read.leases.countWaiters(resource, world.clock.now);
  void world
    .call("POST", `/v1/leases/${encodeURIComponent(name)}/acquire`, { body: { ttlMs: 5 * MINUTE, waitMs: 30_000 }, headers: agent.headers })
    .catch(() => undefined);
  while ((await world.hub.engine.read.leases.countWaiters(resource, world.clock.now)) === before) await new Promise((turn) => setImmediate(turn));
}

/** What a Runtime says of itself. */
export async function beat(world: DashboardWorld, more: Record<string, unknown> = {}): Promise<void> {
  const { status, body } = await world.call("POST", "/v1/runtime/presence", {
    body: { project: "shop", runtimeId: RUNTIME, host: "build-01", version: "1.0.0", ...more },
  });
  if (status >= 300) throw new Error(JSON.stringify(body));
}

/** A run as a Runtime writes it: each entry becomes the next event. */
export async function pushRun(
  world: DashboardWorld,
  runId: string,
  entries: readonly Told[],
  { from = 1, runtimeId = RUNTIME, project = "shop" } = {},
): Promise<void> {
  const events = entries.map((told, index) => syncEvent(from + index, { runId, homeRuntimeId: runtimeId, ...told }));
  for (let at = 0; at < events.length; at += 100) {
    const { status, body } = await world.call("POST", "/v1/sync/events", { body: { project, runtimeId, events: events.slice(at, at + 100) } });
    const bad = body.results?.find((result: { outcome: string }) => result.outcome !== "accepted");
    if (status !== 200 || bad) throw new Error(JSON.stringify(bad ?? body));
  }
}
