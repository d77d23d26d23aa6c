// What every rule and route is given: the store, the clock, the settings and the little that lives in memory. Made once per process by openHub.
import type { Engine } from "../db/engine.ts";
import type { IdPrefix } from "../protocol/ids.ts";
import { newId } from "../protocol/ids.ts";
import { createFeeds, type Feeds } from "./feed.ts";
import type { Log } from "./log.ts";
import { createMetrics, type Metrics } from "./metrics.ts";
import { createPresence, type Presence } from "./presence.ts";
import type { HubSettings } from "./settings.ts";
import { createStreams, type Streams } from "./streams.ts";

/** One hub process over one store. Holds no HTTP, no HTML and no clock of its own. */
export interface Hub {
  readonly engine: Engine;
  /** Milliseconds since 1970 by the hub's clock, never running backwards within a process. The only clock that decides TTLs and leases. */
  readonly clock: () => number;
  readonly newId: (prefix: IdPrefix) => string;
  readonly settings: HubSettings;
  readonly metrics: Metrics;
  readonly presence: Presence;
  /** When each dashboard session was last used, kept and written like the presence of agents. */
  readonly seenSessions: Presence;
  /** Live events of each project, followed once per process. */
  readonly feeds: Feeds;
  /** The open streams of agents. */
  readonly streams: Streams;
  readonly log: Log;
  /** What forgets by time things kept in memory, such as windows of a rate limit. Called by the loop with the hub's time. */
  readonly sweepers: Set<(now: number) => void>;
  /** Aborted when the hub stops: long polls and streams end. */
  readonly stopping: AbortSignal;
}

/** Puts a hub together. The caller opens and closes the engine and starts the background work (loop.ts). */
export function openHub(parts: {
  engine: Engine;
  clock: () => number;
  settings: HubSettings;
  log: Log;
  stopping: AbortSignal;
  newId?: (prefix: IdPrefix) => string;
}): Hub {
  const { engine, clock, settings, log, stopping } = parts;
  const memory = { metrics: createMetrics(), presence: createPresence(), seenSessions: createPresence(), feeds: createFeeds(engine) };
  const hub = { engine, clock, settings, log, stopping, newId: parts.newId ?? newId, sweepers: new Set<(now: number) => void>(), ...memory };
  return { ...hub, streams: createStreams(hub) };
}
