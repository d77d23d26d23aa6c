// The rhythm of sync: presence and rows every interval, rows soon after an event, commands all the time. Local work never waits for any of it.
import { HubRefusal } from "../../client/http.ts";
import type { OutboxReport, RuntimeReport } from "../../protocol/sync.ts";
import { type Clock, elapsed } from "../clock.ts";
import type { Log } from "../log.ts";
import type { OpenProject, ProjectEntry, Projects } from "../projects.ts";
import type { BindingSource } from "./binding.ts";
import type { CommandSource } from "./commands.ts";
import { type Connected, hubConnections } from "./connections.ts";

const SYNC_INTERVAL_MS_DEFAULT = 10_000;
const SYNC_INTERVAL_MS_MIN = 250;
const SYNC_INTERVAL_MS_MAX = 60_000;
/** Events are pushed this long after the first of a burst: within 250 ms, and at most five requests a second. */
const WAKE_MS = 200;

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
  commands: Omit<CommandSource, "hub" | "projects" | "log" | "target">;
  /** Slots and harnesses, and when the supervisor started. */
  report(): Omit<RuntimeReport, "outbox">;
  /** Replaces fetch, for the simulator. */
  fetch?: (request: Request) => Promise<Response>;
};
export type Sync = ReturnType<typeof createSync>;

/** Starts nothing: call `start`, or the single steps. */
export function createSync(options: SyncOptions) {
  const { projects, log, intervalMs, clock } = options;
  const ending = new AbortController();
  const { signal } = ending;
  const hub = hubConnections(options, signal);
  const push = oneAtATime(signal, async () => {
    stopTrying?.();
    await Promise.all(projects.open().map((project) => drain(project, hub.of(project.key), signal, log)));
    const waits = projects.open().map(({ pusher }) => pusher.nextAttemptAt - clock.now());
    const wait = Math.min(...waits.filter((ms) => ms > 0));
    if (!signal.aborted && wait < intervalMs) stopTrying = clock.after(wait, () => void push.now());
  });
  let stopTrying: (() => void) | undefined;
  let stopWaking: (() => void) | undefined;
  let stopTicking: (() => void) | undefined;

  const tick = async () => {
    projects.refresh();
    await Promise.all(hub.all().map((to) => presence(to, options)));
    await push.now();
  };
  const round = async () => {
    const began = elapsed(clock);
    await tick().catch((error) => log("sync_failed", { level: "error", reason: String(error?.message ?? error) }));
    const spent = elapsed(clock) - began;
    if (!signal.aborted) stopTicking = clock.after(Math.max(0, intervalMs - spent), () => void round());
  };

  return {
    /** One whole round: stores, presence, rows. */
    tick,
    push: push.now,
    /** One round of each command poll; answers how long to wait before the next. */
    poll: async (waitMs?: number) => Math.max(0, ...(await Promise.all(hub.all().map((to) => to.poll.once(to.client, waitMs))))),
    /** An event was appended. */
    wake: () => {
      if (signal.aborted) return;
      stopWaking ??= clock.after(WAKE_MS, () => {
        stopWaking = undefined;
        void push.now();
      });
    },
    /** The binding or a parked row changed: look again now. */
    retryNow: () => {
      for (const { pusher } of projects.open()) pusher.retryNow();
      void push.now();
    },
    /** How each checkout's sync goes. */
    report: () => ({ ...hub.report(), projects: outboxReports(projects.entries(), hub.report().hub !== undefined) }),
    start: () => {
      hub.startPolling();
      void round();
    },
    /** Ends requests and timers. Rows stay pending. */
    stop: async () => {
      ending.abort();
      stopTrying?.();
      stopWaking?.();
      stopTicking?.();
      await push.ended();
    },
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

async function presence(to: Connected, { report, log }: SyncOptions) {
  try {
    const { generation } = await to.client.presence({ ...report(), outbox: outboxReports(to.entries(), true) });
    to.identity = generation ?? to.bound.url;
    for (const { open } of to.entries()) open?.pusher.hubAnswers();
  } catch (error) {
    if (error instanceof HubRefusal) log("presence_refused", { level: "warn", code: error.code, reason: error.message });
    // No hub at all shows in the push's state.
  }
}

async function drain({ pusher, store, key, projectId }: OpenProject, to: Connected | undefined, signal: AbortSignal, log: Log) {
  if (!to) return;
  const before = pusher.report();
  try {
    const { identity } = to;
    if (identity && store.read.outbox.hub() !== identity) store.commit((tx) => tx.outbox.useHub(identity));
    while (!signal.aborted && (await pusher.step(to.client)) === "moved");
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
