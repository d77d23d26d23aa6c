// What every rule and route is given: the store, the clock, the settings and the little that lives in memory. Made once per process by openHub.
import type { Engine } from "../db/engine.ts";
import type { ContextItem } from "../protocol/context.ts";
import type { IdPrefix } from "../protocol/ids.ts";
import { newId } from "../protocol/ids.ts";
import { createPools, type Pools } from "./context/pool.ts";
import { createFeeds, type Feeds } from "./feed.ts";
import { createKnown, type Known } from "./known.ts";
import type { Log } from "./log.ts";
import { createMetrics, type Metrics } from "./metrics.ts";
import { createPresence, type Presence } from "./presence.ts";
import type { HubSettings } from "./settings.ts";
import { createStreams, type Streams } from "./streams.ts";
import type { StoreWork } from "./upkeep.ts";
import { type Arrivals, createArrivals } from "./webhook-arrivals.ts";
import type { Definitions } from "./workflows/definitions.ts";

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
  /** When each token that somebody made was last used: the same. */
  readonly seenTokens: Presence;
  /** Rows that every request asks for. */
  readonly known: Known;
  /** Live events of each project, followed once per process. */
  readonly feeds: Feeds;
  /** Incoming deliveries that wait to be noted. */
  readonly arrivals: Arrivals;
  /** The open streams of agents. */
  readonly streams: Streams;
  readonly log: Log;
  /** What forgets by time things kept in memory, such as windows of a rate limit. Called by the loop with the hub's time. */
  readonly sweepers: Set<(now: number) => void>;
  /** Workflow definitions in force; replaced as a whole when a valid file is reloaded. */
  definitions: Definitions;
  /** Reads the definitions again where they came from. @throws HubError invalid_definitions @returns how many there are now */
  reloadDefinitions(): number;
  /** What can be done to the store from a page. Replaced where the store's files are known. */
  storeWork: StoreWork;
  /** Context pools by project, brought up to date before each request. */
  readonly pools: Pools;
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
  definitions?: Definitions;
  /** Authored memory of a project, already read; none when left out. */
  memory?: (project: string) => readonly ContextItem[];
  newId?: (prefix: IdPrefix) => string;
}): Hub {
  const { engine, clock, settings, log, stopping } = parts;
  const inMemory = {
    metrics: createMetrics(),
    presence: createPresence(),
    seenSessions: createPresence(),
    seenTokens: createPresence(),
    known: createKnown(engine),
    feeds: createFeeds(engine),
    pools: createPools(parts.memory ?? (() => [])),
    sweepers: new Set<(now: number) => void>(),
    arrivals: createArrivals({ clock, newId: parts.newId ?? newId }),
  };
  const hub = {
    engine,
    clock,
    settings,
    log,
    stopping,
    newId: parts.newId ?? newId,
    definitions: parts.definitions ?? new Map(),
    reloadDefinitions: (): number => hub.definitions.size,
    storeWork: { instead: { says: "This store is looked after elsewhere.", commands: [] }, folder: undefined, sizes: () => ({}) } as StoreWork,
    ...inMemory,
  };
  return Object.assign(hub, { streams: createStreams(hub) });
}
