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

/** Starts nothing: call `start`, or the single steps. */
export function createSync(options: SyncOptions) {
  const { projects, binding, clock, log, intervalMs } = options;
  const ending = new AbortController();
  let hub: { bound: HubBinding; name: string; client: RuntimeClient; poll: CommandPoll } | undefined;
  let problem: string | undefined; // of the binding itself
  let pushing: Promise<void> | undefined;
  let again = false;
  let wakeTimer: Timer | undefined;
  let tickTimer: Timer | undefined;
  let bindingChanged = Promise.withResolvers<void>();

  /** The hub in force, with a client for it. A changed binding starts afresh. */
  function current() {
    let bound: HubBinding | undefined;
    try {
      bound = binding.read();
      problem = undefined;
    } catch (error) {
      problem = (error as Error).message;
    }
    if (bound === hub?.bound) return hub;
    hub = bound && connect(bound, options, ending.signal);
    for (const { pusher } of projects.open()) pusher.retryNow();
    bindingChanged.resolve();
    bindingChanged = Promise.withResolvers();
    return hub;
  }

  /** Pushes until nothing is pending or everything waits. One at a time; a call during another makes it go round once more. */
  function push(): Promise<void> {
    again = true;
    pushing ??= (async () => {
      while (again && !ending.signal.aborted) {
        again = false;
        const to = current();
        if (to) await Promise.all(projects.open().map((project) => drain(project, to.client, ending.signal, log)));
      }
    })().finally(() => {
      pushing = undefined;
    });
    return pushing;
  }

  async function presence() {
    const to = current();
    if (!to) return;
    const outbox = outboxReports(projects.entries(), true);
    try {
      await to.client.presence({ ...options.report(), outbox });
    } catch (error) {
      if (!(error instanceof HubRefusal)) return; // the push tells the same
      log("presence_refused", { level: "warn", code: error.code, reason: error.message });
    }
  }

  async function pollForEver() {
    while (!ending.signal.aborted) {
      const to = current();
      const wait = to ? await to.poll.once(to.client) : intervalMs;
      if (wait > 0) await pause(wait, ending.signal, bindingChanged.promise);
    }
  }

  return {
    /** One whole round: stores, presence, rows. */
    tick: async () => {
      projects.refresh();
      await presence();
      await push();
    },
    push,
    /** One round of the command poll. */
    poll: async (waitMs?: number) => {
      const to = current();
      return to ? to.poll.once(to.client, waitMs) : undefined;
    },
    /** An event was appended. */
    wake: () => {
      if (ending.signal.aborted) return;
      wakeTimer ??= setTimeout(() => {
        wakeTimer = undefined;
        void push();
      }, WAKE_MS);
    },
    /** The binding or a parked row changed: look again now. */
    retryNow: () => {
      for (const { pusher } of projects.open()) pusher.retryNow();
      void push();
    },
    /** How each checkout's sync goes. */
    report: () => ({
      hub: hub ? { url: hub.bound.url, project: hub.bound.project } : undefined,
      problem,
      projects: outboxReports(projects.entries(), hub !== undefined),
    }),
    start() {
      const round = async () => {
        const began = clock.now();
        await this.tick().catch((error) => log("sync_failed", { level: "error", reason: String(error?.message ?? error) }));
        if (!ending.signal.aborted) tickTimer = setTimeout(() => void round(), Math.max(0, intervalMs - (clock.now() - began)));
      };
      void round();
      void pollForEver().catch((error) => log("command_poll_ended", { level: "error", reason: String(error?.message ?? error) }));
    },
    /** Ends requests and timers. Rows stay pending. */
    stop: async () => {
      ending.abort();
      clearTimeout(wakeTimer);
      clearTimeout(tickTimer);
      bindingChanged.resolve();
      await pushing?.catch(() => {});
    },
  };
}

function connect(bound: HubBinding, options: SyncOptions, signal: AbortSignal) {
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

/** Waits, but not past the end or a changed binding. */
function pause(ms: number, signal: AbortSignal, changed: Promise<void>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  signal.addEventListener("abort", () => resolve(), { once: true });
  void changed.then(resolve);
  return promise.finally(() => clearTimeout(timer));
}
