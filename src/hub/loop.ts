// What happens by itself: the only timers of the hub. Each job runs to its end before the next begins, in bounded steps, and doing one twice
// (two hubs on one database) is harmless. A job that fails is logged and tried again at its next time.
import { ACTIVITY_INTERVAL_MS, BUDGET_INTERVAL_MS, PRESENCE_FLUSH_MS, RETENTION_INTERVAL_MS, SWEEP_INTERVAL_MS } from "../protocol/limits.ts";
import { countActivity } from "./activity.ts";
import * as budgets from "./budgets.ts";
import * as commands from "./commands.ts";
import type { Hub } from "./hub.ts";
import * as leases from "./leases.ts";
import { describeError } from "./log.ts";
import { expireMessages } from "./message-sweep.ts";
import { flushPresence, sweepStale } from "./presence.ts";
import * as retention from "./retention.ts";
import * as search from "./search.ts";
import * as sessions from "./sessions.ts";
import { type StorageTrouble, watchStorage } from "./storage-watch.ts";
import * as upkeep from "./upkeep.ts";
import * as arrivals from "./webhook-arrivals.ts";
import { failOverdue } from "./workflows/endings.ts";
import { lockRun } from "./workflows/runs.ts";

const FIRST_LOOK_MS = 250; // a hub that starts answers first
const USE_FLUSH_MS = 5_000;
const STORAGE_LOOK_MS = 5_000;
const UPKEEP_LOOK_MS = 5_000;
const WAITS_MAX = 100; // overdue waits failed in one round

/** One thing that happens by itself. */
export interface Job {
  name: string;
  /** Milliseconds between two runs, by the hub's clock. */
  everyMs: number;
  /** Does what is due; returns how many things changed, or counts by kind, or nothing. */
  // biome-ignore lint/suspicious/noConfusingVoidType: a job without anything to count is a function without a return
  run(hub: Hub): Promise<number | Record<string, number> | void>;
  /** Jobs of one lane run one after another; lanes run side by side. What may take long has a lane of its own, so that leases end on time. */
  lane?: "due" | "upkeep" | "deliveries";
  /** Run once more before the store closes: nothing that was noted in memory may be lost. */
  last?: boolean;
}

/** The jobs of a hub, with what they remember between runs. */
export const jobsOf = ({ settings }: Pick<Hub, "settings">): Job[] => {
  const clock: retention.RetentionClock = { lastAt: undefined };
  return [
    { name: "leases", everyMs: SWEEP_INTERVAL_MS, run: leases.expireLapsed },
    { name: "commands", everyMs: SWEEP_INTERVAL_MS, run: commands.expireUnclaimed },
    { name: "waits", everyMs: SWEEP_INTERVAL_MS, run: expireWorkflowWaits },
    { name: "messages", everyMs: SWEEP_INTERVAL_MS, run: expireMessages },
    { name: "stale", everyMs: Math.max(250, settings.staleMs / 3), run: sweepStale },
    { name: "presence", everyMs: PRESENCE_FLUSH_MS, run: (hub) => flushPresence(hub).then(() => 0), last: true },
    { name: "use", everyMs: USE_FLUSH_MS, run: writeUse, last: true },
    { name: "arrivals", everyMs: SWEEP_INTERVAL_MS, run: (hub) => arrivals.flush(hub).then(() => 0), last: true },
    { name: "activity", lane: "upkeep", everyMs: ACTIVITY_INTERVAL_MS, run: (hub) => countActivity(hub).then(() => 0) },
    { name: "budgets", lane: "upkeep", everyMs: BUDGET_INTERVAL_MS, run: budgets.watch },
    { name: "search", lane: "upkeep", everyMs: SWEEP_INTERVAL_MS, run: (hub) => search.index(hub).then(() => 0) },
    { name: "search sweep", lane: "upkeep", everyMs: RETENTION_INTERVAL_MS, run: search.sweep },
    { name: "upkeep", lane: "upkeep", everyMs: UPKEEP_LOOK_MS, run: upkeep.sweep },
    { name: "storage", lane: "upkeep", everyMs: STORAGE_LOOK_MS, run: storageJob() },
    { name: "memory", lane: "upkeep", everyMs: RETENTION_INTERVAL_MS, run: async (hub) => forget(hub) },
    { name: "retention", lane: "upkeep", everyMs: RETENTION_INTERVAL_MS, run: (hub) => retention.sweepOld(hub, clock) },
  ];
};

/** The hub's own work, on its way. */
export interface Loop {
  /** Runs every job that is due now by the hub's clock. For tests; `start` calls it. @returns what changed, by job */
  runOnce(): Promise<Record<string, number | Record<string, number>>>;
  /** Starts the timers. */
  start(): void;
  /** Ends the timers, waits for the job that runs, and writes what was only in memory. */
  stop(): Promise<void>;
}

/** @param jobs replaced by tests */
export function createLoop(hub: Hub, jobs: readonly Job[] = jobsOf(hub)): Loop {
  const dueAt = new Map(jobs.map((job) => [job, hub.clock()]));
  let timer: ReturnType<typeof setTimeout> | undefined;
  let running: Promise<unknown> = Promise.resolve();
  let stopped = false;

  async function runOnce() {
    const changes: Record<string, number | Record<string, number>> = {};
    for (const job of jobs) {
      const now = hub.clock();
      if (now < dueAt.get(job)! && now >= dueAt.get(job)! - job.everyMs) continue; // a clock set far back must not stop the job
      dueAt.set(job, now + job.everyMs);
      const change = await perform(hub, job);
      if (change !== undefined) changes[job.name] = change;
    }
    return changes;
  }

  /** The next tick: a sweep interval away, or when the next lease ends, to the millisecond. */
  async function rest(): Promise<number> {
    const lapse = await leases.nextLapseAt(hub.engine.read).catch(() => undefined);
    if (lapse === undefined) return SWEEP_INTERVAL_MS;
    const until = lapse - hub.clock();
    const leasesJob = jobs.find(({ name }) => name === "leases");
    if (leasesJob && until < SWEEP_INTERVAL_MS) dueAt.set(leasesJob, lapse);
    return Math.min(SWEEP_INTERVAL_MS, Math.max(1, until));
  }

  async function tick() {
    await runOnce();
    const ms = await rest();
    if (!stopped) arm(ms);
  }
  const arm = (ms: number) => {
    timer = setTimeout(() => {
      running = tick();
    }, ms);
  };

  return {
    runOnce,
    start: () => arm(FIRST_LOOK_MS),
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await running;
      for (const job of jobs) if (job.last) await perform(hub, job);
    },
  };
}

/** Starts a loop per lane. @returns what ends them all; each job that has something in memory writes it first */
export function startLoops(hub: Hub, jobs: readonly Job[]): () => Promise<void> {
  const lanes = [...Map.groupBy(jobs, ({ lane = "due" }) => lane).values()].map((ofLane) => createLoop(hub, ofLane));
  for (const loop of lanes) loop.start();
  return async () => {
    await Promise.all(lanes.map((loop) => loop.stop()));
  };
}

/** Never rejects. @returns what changed, or undefined when nothing did or the job failed */
async function perform(hub: Hub, job: Job): Promise<number | Record<string, number> | undefined> {
  try {
    const change = await job.run(hub);
    if (change === undefined) return undefined;
    const counts = typeof change === "number" ? { count: change } : change;
    if (!Object.values(counts).some((count) => count > 0)) return undefined;
    if (!job.last) hub.log({ event: "swept", job: job.name, ...counts });
    return change;
  } catch (error) {
    hub.log({ event: "job_failed", level: "error", job: job.name, error: describeError(error) });
    return undefined;
  }
}

/** Writes when sessions and tokens were last used; what could not be written is kept for the next time. */
async function writeUse(hub: Hub): Promise<number> {
  const { seenSessions, seenTokens } = hub;
  const [sessionUse, tokenUse] = [seenSessions.takeUnwritten(), seenTokens.takeUnwritten()];
  if (sessionUse.size + tokenUse.size === 0) return 0;
  try {
    await hub.engine.write("", async (tx) => {
      await sessions.writeSeen(tx, sessionUse);
      for (const [id, at] of tokenUse) await tx.tokens.used(id, at);
    });
  } catch (error) {
    for (const [id, at] of sessionUse) seenSessions.saw(id, seenSessions.lastSeen(id, at));
    for (const [id, at] of tokenUse) seenTokens.saw(id, seenTokens.lastSeen(id, at));
    throw error;
  }
  return sessionUse.size + tokenUse.size;
}

/** Fails workflow runs whose wait is over, each in the lane of its project. */
async function expireWorkflowWaits(hub: Hub): Promise<number> {
  let count = 0;
  for (const { id, project } of await hub.engine.read.ops.dueWaits(hub.clock(), WAITS_MAX)) {
    const failed = await hub.engine.write(project, async (tx) => failOverdue(tx, await lockRun(tx, id)));
    if (failed) count++;
  }
  hub.metrics.add("workflow_wait_timeouts", count);
  return count;
}

function storageJob(): Job["run"] {
  let trouble: StorageTrouble;
  return async (hub) => {
    const look = await watchStorage(hub, trouble);
    trouble = look.trouble;
    return look.raised;
  };
}

function forget(hub: Hub): number {
  for (const sweep of hub.sweepers) sweep(hub.clock());
  return 0;
}
