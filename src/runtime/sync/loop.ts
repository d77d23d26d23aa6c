// The rhythm of sync: presence and rows every interval, rows soon after an event, commands all the time. Local work never waits for any of it.
import { hostname } from "node:os";
import { HubRefusal } from "../../client/http.ts";
import { type RuntimeClient, runtimeClient } from "../../client/runtime-client.ts";
import type { OutboxReport, RuntimeReport } from "../../protocol/sync.ts";
import type { Clock } from "../clock.ts";
import type { Log } from "../log.ts";
import type { OpenProject, ProjectEntry, Projects } from "../projects.ts";
import type { BindingSource, HubBinding } from "./binding.ts";
import { type CommandPoll, type CommandSource, commandPoll } from "./commands.ts";

export const SYNC_INTERVAL_MS_DEFAULT = 10_000;
export const SYNC_INTERVAL_MS_MIN = 250;
export const SYNC_INTERVAL_MS_MAX = 60_000;
/** Events are pushed this long after the first of a burst: within 250 ms, and at most five requests a second. */
export const WAKE_MS = 200;

/** KXM_RUNTIME_SYNC_INTERVAL_MS, clamped. Something that is no number is the default. */
export function syncInterval(text: string | undefined): number {
  const given = Number(text);
  if (!text || !Number.isFinite(given)) return SYNC_INTERVAL_MS_DEFAULT;
  return Math.min(SYNC_INTERVAL_MS_MAX, Math.max(SYNC_INTERVAL_MS_MIN, Math.round(given)));
}

export type SyncOptions = {
  runtimeId: string;
  version: string;
  projects: Projects;
  binding: BindingSource;
  clock: Clock;
  random?: () => number;
  intervalMs: number;
  log: Log;
  /** Everything of a command source but the hub's name. */
  commands: Omit<CommandSource, "hub" | "projects" | "log">;
  /** Slots and harnesses, and when the supervisor started. */
  report(): Omit<RuntimeReport, "outbox">;
  /** Replaces fetch, for the simulator. */
  fetch?: (request: Request) => Promise<Response>;
};
export type Sync = ReturnType<typeof createSync>;

/** The hub in force, with a client for it. */
type Connected = { bound: HubBinding; name: string; client: RuntimeClient; poll: CommandPoll };

/** Starts nothing: call `start`, or the single steps. */
export function createSync(options: SyncOptions) {
  const { projects, log, intervalMs, clock } = options;
  const ending = new AbortController();
  const { signal } = ending;
  const hub = connection(options, signal);
  const push = oneAtATime(signal, async () => {
    const to = hub.current();
    if (to) await Promise.all(projects.open().map((project) => drain(project, to.client, signal, log)));
  });
  let wakeTimer: Timer | undefined;
  let tickTimer: Timer | undefined;

  const tick = async () => {
    projects.refresh();
    const to = hub.current();
    if (to) await presence(to, options);
    await push.now();
  };
  const round = async () => {
    const began = clock.monotonicNs();
    await tick().catch((error) => log("sync_failed", { level: "error", reason: String(error?.message ?? error) }));
    const spent = (clock.monotonicNs() - began) / 1e6;
    if (!signal.aborted) tickTimer = setTimeout(() => void round(), Math.max(0, intervalMs - spent));
  };

  return {
    /** One whole round: stores, presence, rows. */
    tick,
    push: push.now,
    /** One round of the command poll; answers how long to wait before the next. */
    poll: async (waitMs?: number) => {
      const to = hub.current();
      return to ? to.poll.once(to.client, waitMs) : undefined;
    },
    /** An event was appended. */
    wake: () => {
      if (signal.aborted) return;
      wakeTimer ??= setTimeout(() => {
        wakeTimer = undefined;
        void push.now();
      }, WAKE_MS);
    },
    /** The binding or a parked row changed: look again now. */
    retryNow: () => {
      for (const { pusher } of projects.open()) pusher.retryNow();
      void push.now();
    },
    /** How each checkout's sync goes. */
    report: () => ({ ...hub.report(), projects: outboxReports(projects.entries(), hub.report().hub !== undefined) }),
    start: () => {
      void round();
      void pollForEver(hub, intervalMs, signal).catch((error) =>
        log("command_poll_ended", { level: "error", reason: String(error?.message ?? error) }),
      );
    },
    /** Ends requests and timers. Rows stay pending. */
    stop: async () => {
      ending.abort();
      clearTimeout(wakeTimer);
      clearTimeout(tickTimer);
      await push.ended();
    },
  };
}

/** Follows the binding: a changed one starts afresh, and whoever waits for the old one looks again. */
function connection(options: SyncOptions, signal: AbortSignal) {
  let connected: Connected | undefined;
  let problem: string | undefined;
  const sleepers = new Set<() => void>();
  return {
    current: (): Connected | undefined => {
      let bound: HubBinding | undefined;
      try {
        bound = options.binding.read();
        problem = undefined;
      } catch (error) {
        problem = (error as Error).message;
      }
      if (bound === connected?.bound) return connected;
      connected = bound && connect(bound, options, signal);
      for (const { pusher } of options.projects.open()) pusher.retryNow();
      for (const wake of sleepers) wake();
      return connected;
    },
    /** Waits, but not past the end or a changed binding. */
    pause: (ms: number): Promise<void> => {
      const { promise, resolve } = Promise.withResolvers<void>();
      const wake = () => resolve();
      const timer = setTimeout(wake, ms);
      sleepers.add(wake);
      signal.addEventListener("abort", wake);
      return promise.finally(() => {
        clearTimeout(timer);
        sleepers.delete(wake);
        signal.removeEventListener("abort", wake);
      });
    },
    /** Which hub, and what is wrong with the files that name it. */
    report: () => ({ hub: connected && { url: connected.bound.url, project: connected.bound.project }, problem }),
  };
}

/** Runs `work` one at a time; a call during another makes it go round once more. */
function oneAtATime(signal: AbortSignal, work: () => Promise<void>) {
  let running: Promise<void> | undefined;
  let again = false;
  return {
    now: (): Promise<void> => {
      again = true;
      running ??= (async () => {
        while (again && !signal.aborted) {
          again = false;
          await work();
        }
      })().finally(() => {
        running = undefined;
      });
      return running;
    },
    ended: async () => {
      await running?.catch(() => {});
    },
  };
}

async function presence({ client }: Connected, { projects, report, log }: SyncOptions) {
  try {
    await client.presence({ ...report(), outbox: outboxReports(projects.entries(), true) });
  } catch (error) {
    if (error instanceof HubRefusal) log("presence_refused", { level: "warn", code: error.code, reason: error.message });
    // No hub at all shows in the push's state.
  }
}

async function pollForEver(hub: ReturnType<typeof connection>, intervalMs: number, signal: AbortSignal) {
  while (!signal.aborted) {
    const to = hub.current();
    const wait = to ? await to.poll.once(to.client) : intervalMs;
    if (wait > 0) await hub.pause(wait);
  }
}

function connect(bound: HubBinding, options: SyncOptions, signal: AbortSignal): Connected {
  const { runtimeId, version, projects, log, commands, random, fetch } = options;
  const identity = { project: bound.project, runtimeId, host: hostname().slice(0, 64) || "unknown", version };
  const name = `${bound.url}#${bound.project}`;
  const client = runtimeClient({ url: bound.url, token: bound.token, fetch }, identity, { signal });
  const poll = commandPoll({ ...commands, hub: name, projects: () => projects.open(), log }, { random });
  return { bound, name, client, poll };
}

async function drain({ pusher, key, projectId }: OpenProject, client: RuntimeClient, signal: AbortSignal, log: Log) {
  const before = pusher.report();
  try {
    while (!signal.aborted && (await pusher.step(client)) === "moved");
  } catch (error) {
    if (signal.aborted) return;
    log("push_failed", { level: "error", projectKey: key, projectId, reason: String((error as Error).message) });
    return;
  }
  const after = pusher.report();
  if (after.state !== before.state) log("sync_state", { projectKey: key, projectId, state: after.state, reason: after.lastError });
}

function outboxReports(entries: ProjectEntry[], bound: boolean): (OutboxReport & { projectKey: string })[] {
  return entries.map(({ row, open, unavailable }) => {
    const identity = { projectKey: row.projectKey, projectId: row.projectId, name: row.name.slice(0, 128) };
    const sync = open?.pusher.report() ?? { state: "ok", pending: 0, acked: 0, refused: {} };
    const paused = open?.store.read.controls.pause() !== undefined;
    if (unavailable) return { ...identity, ...sync, state: "store_unavailable", lastError: unavailable.slice(0, 300), ...(paused && { paused }) };
    return { ...identity, ...sync, state: bound ? sync.state : "no_hub", ...(paused && { paused }) };
  });
}
