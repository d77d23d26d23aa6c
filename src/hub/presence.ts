// Signs of life, kept in memory and written in batches, so that reading routes never write. What the table says may be a few seconds older; what is
// true is the newer of the two. Another hub on the same database sees only the table, hence PRESENCE_FLUSH_MS must be well below the stale window.
import type { AgentRow } from "../db/schema.ts";
import type { Tx } from "../db/tx.ts";
import type { Hub } from "./hub.ts";
import { describeError } from "./log.ts";

/** Agents looked at in one step of a sweep or of the start. */
const SWEEP_MAX = 500;
type Known = Pick<AgentRow, "id" | "project">;

/** When each agent (or session) was last seen by this process and what has not been written yet. */
export interface Presence {
  /**
   * Notes a sign of life.
   * @param at milliseconds by the hub's clock @param project whose lane writes it; none for sessions
   * @param visits the caller said that it makes one call and goes, such as a command at a terminal
   */
  saw(id: string, at: number, project?: string, visits?: boolean): void;
  /** Whether all that this process heard of an agent since it came were calls of somebody who does not stay: then its silence means nothing. */
  onlyVisits(id: string): boolean;
  /** The newer of the given time and what this process saw. */
  lastSeen(id: string, stored: number): number;
  /** Forgets an agent that signed off. */
  forget(id: string): void;
  /** What was seen since the last call, for the next batch. */
  takeUnwritten(): Map<string, number>;
  /** The project that `saw` was told. */
  projectOf(id: string): string;
  /** When the last sweep ran, and until when none may judge. By the hub's clock; undefined before the first. */
  sweep: { lastAt: number | undefined; graceUntil: number };
  /** Agents (id → project) that were connected before this process started and were not heard since. Until `until` nobody knows whether they are there. */
  unheard: { agents: Map<string, string>; since: number; until: number };
}

/** Signs of life of one process; nobody was seen yet. */
export function createPresence(): Presence {
  const seen = new Map<string, { at: number; project: string; visits: boolean }>();
  let unwritten = new Map<string, number>();
  const unheard = { agents: new Map<string, string>(), since: 0, until: 0 };
  return {
    sweep: { lastAt: undefined, graceUntil: 0 },
    unheard,
    onlyVisits: (id) => seen.get(id)?.visits === true,
    saw(id, at, project = "", visits = false) {
      unheard.agents.delete(id);
      const known = seen.get(id);
      if (known) Object.assign(known, { at, visits: known.visits && visits });
      else seen.set(id, { at, project, visits });
      unwritten.set(id, at);
    },
    lastSeen: (id, stored) => Math.max(stored, seen.get(id)?.at ?? 0),
    projectOf: (id) => seen.get(id)?.project ?? "",
    forget(id) {
      seen.delete(id);
      unwritten.delete(id);
    },
    takeUnwritten() {
      const taken = unwritten;
      unwritten = new Map();
      return taken;
    },
  };
}

/**
 * Since when this hub listens, while it cannot know yet whether a silent agent is there: it has just started, or has itself slept, and agents had no
 * whole window yet to report. Undefined when silence means something.
 */
export function listensSince({ presence, settings }: Pick<Hub, "presence" | "settings">, agent: Pick<AgentRow, "id" | "online">, now: number) {
  const { unheard, sweep } = presence;
  if (agent.online === 0) return now < unheard.until && unheard.agents.has(agent.id) ? unheard.since : undefined;
  return now < sweep.graceUntil ? sweep.graceUntil - settings.staleMs : undefined;
}

/** How many agents of these projects nobody can judge yet because this hub has just started. */
export function unheardOf({ presence: { unheard } }: Pick<Hub, "presence">, projects: readonly string[], now: number): number {
  return now < unheard.until ? [...unheard.agents.values()].filter((project) => projects.includes(project)).length : 0;
}

/** Writes the signs of life seen since the last call. Run it every PRESENCE_FLUSH_MS and before the store closes. A failed batch is kept for the next. */
export async function flushPresence(hub: Hub): Promise<void> {
  const byProject = Map.groupBy(hub.presence.takeUnwritten(), ([id]) => hub.presence.projectOf(id));
  for (const [project, signs] of byProject) {
    const times = signs.map(([id, at]) => ({ id, at }));
    try {
      for (let at = 0; at < times.length; at += SWEEP_MAX) {
        await hub.engine.write(project, (tx) => tx.agents.seen(times.slice(at, at + SWEEP_MAX)));
      }
    } catch (error) {
      for (const { id, at } of times) hub.presence.saw(id, hub.presence.lastSeen(id, at), project, hub.presence.onlyVisits(id));
      hub.log({ event: "presence_flush_failed", level: "warn", project, agents: times.length, error: describeError(error) });
    }
  }
}

/**
 * Marks agents offline that were silent for longer than the stale window, each with an event. Run it every third of the window.
 * A hub that has itself slept for a whole window judges nobody until agents had another window to report: they could not have been heard.
 * @returns how many went offline
 */
export async function sweepStale(hub: Hub): Promise<number> {
  const { presence, settings, engine } = hub;
  const now = hub.clock();
  const { sweep } = presence;
  if (sweep.lastAt !== undefined && now - sweep.lastAt > settings.staleMs) sweep.graceUntil = now + settings.staleMs;
  sweep.lastAt = now;
  if (now >= presence.unheard.until) presence.unheard.agents.clear();
  if (now < sweep.graceUntil) return 0;
  await flushPresence(hub); // so that the table names only those whom this process did not see either
  let count = 0;
  for (;;) {
    const silent = await engine.read.agents.silent(now - settings.staleMs, SWEEP_MAX);
    let changed = 0;
    for (const [project, agents] of Map.groupBy(silent, (agent) => agent.project)) {
      const gone = await engine.write(project, (tx) => goOffline(tx, hub, agents));
      for (const id of gone) presence.forget(id);
      changed += gone.length;
    }
    count += changed;
    if (silent.length < SWEEP_MAX || changed === 0) return count;
  }
}

/** Sets agents offline that are still silent: another hub may have heard them in between. @returns their ids */
async function goOffline(tx: Tx, hub: Hub, agents: readonly Known[]): Promise<string[]> {
  const gone: string[] = [];
  for (const { id } of agents) {
    const agent = await tx.agents.lock(id);
    if (!agent || agent.online === 0) continue;
    if (hub.presence.lastSeen(id, agent.lastSeenAt) + hub.settings.staleMs > tx.now) continue;
    await leave(tx, agent, hub.presence.onlyVisits(id) ? "visit_ended" : "silent", agent.lastSeenAt);
    gone.push(id);
  }
  return gone;
}

/**
 * A hub that owns its store alone has just started: nobody is connected yet. Not for PostgreSQL, where other hubs may hold agents.
 * @returns how many were marked offline
 */
export async function startPresence(hub: Hub): Promise<number> {
  let count = 0;
  const { unheard } = hub.presence;
  unheard.since = hub.clock();
  unheard.until = unheard.since + hub.settings.staleMs;
  for (;;) {
    const online = await hub.engine.read.agents.silent(Number.MAX_SAFE_INTEGER, SWEEP_MAX);
    if (online.length === 0) return count;
    for (const [project, agents] of Map.groupBy(online, (agent) => agent.project)) {
      await hub.engine.write(project, async (tx) => {
        for (const { id } of agents) {
          const agent = await tx.agents.lock(id);
          if (agent?.online === 1) await leave(tx, agent, "hub_restarted", agent.lastSeenAt);
        }
      });
      for (const { id } of agents) unheard.agents.set(id, project);
    }
    count += online.length;
  }
}

/** Why an agent is offline. `signed_off` ends its streams; the others leave them open, as the connection may still live. */
export type OfflineReason = "signed_off" | "visit_ended" | "silent" | "hub_restarted";

/** One agent goes offline. @param lastSeenAt what the table says from now on */
export async function leave(tx: Tx, agent: AgentRow, reason: OfflineReason, lastSeenAt: number): Promise<void> {
  await tx.agents.setOnline(agent.id, 0, lastSeenAt);
  const actor = reason === "signed_off" ? agent.id : "hub";
  tx.append({ project: agent.project, topic: "agents", type: "offline", subjectId: agent.id, actor, data: { name: agent.name, reason } });
}
