// What is kept how long. One list; the loop deletes by it in bounded steps, and the dashboard's settings page shows it.
// Never deletes what is open, pending, unacknowledged or still heard of.
import { KINDS, type Kind } from "../db/retention.ts";
import type { Topic } from "../db/schema.ts";
import type { Tx } from "../db/tx.ts";
import {
  AUDIT_RETENTION_MS,
  COST_RETENTION_MS,
  DECIDED_RETENTION_MS,
  DELIVERY_RETENTION_MS,
  EVENT_RETENTION_MS,
  LEASE_RETENTION_MS,
  RETENTION_BATCH_MAX,
  RETENTION_STEPS_MAX,
  RUN_RETENTION_MS,
  RUNTIME_RETENTION_MS,
  SYNC_RETENTION_MS,
  SYNC_SILENT_RETENTION_MS,
} from "../protocol/limits.ts";
import type { Hub } from "./hub.ts";
import * as leases from "./leases.ts";
import { purgeMessages } from "./message-sweep.ts";

/** How long each kind of record is kept after it ended, in milliseconds. */
export const keptFor = (hub: Pick<Hub, "settings">) =>
  ({
    messages: hub.settings.messageRetentionMs,
    leaseHolders: LEASE_RETENTION_MS,
    workflowRuns: RUN_RETENTION_MS,
    contextItems: RUN_RETENTION_MS,
    runtimeCommands: DECIDED_RETENTION_MS,
    approvals: DECIDED_RETENTION_MS,
    alerts: DECIDED_RETENTION_MS,
    syncConflicts: DECIDED_RETENTION_MS,
    webhookDeliveries: DELIVERY_RETENTION_MS,
    webhookArrivals: DELIVERY_RETENTION_MS,
    syncRuns: SYNC_RETENTION_MS,
    silentSyncRuns: SYNC_SILENT_RETENTION_MS,
    runtimes: RUNTIME_RETENTION_MS,
    events: EVENT_RETENTION_MS,
    audit: AUDIT_RETENTION_MS,
    costSums: COST_RETENTION_MS,
    sessions: 0,
  }) as const;
/** The kinds of records that have a time. */
export type Kept = keyof ReturnType<typeof keptFor>;

/** Deletes that would follow from a clock that jumped must wait: what two rounds in a row agree on is old. Times by the hub's clock. */
export interface RetentionClock {
  lastAt: number | undefined;
}

/**
 * One round: deletes what is old, at most RETENTION_STEPS_MAX steps of RETENTION_BATCH_MAX rows of each kind.
 * @param clock remembers the round before: the first deletes nothing, and no round what the one before would have kept
 * @returns rows deleted by kind, kinds without any left out
 */
export async function sweepOld(hub: Hub, clock: RetentionClock): Promise<Partial<Record<Kept, number>>> {
  const now = hub.clock();
  const before = clock.lastAt;
  clock.lastAt = now;
  if (before === undefined) return {};
  const agreed = Math.min(before, now);
  const counts: Partial<Record<Kept, number>> = {};
  for (const [kind, sweep] of Object.entries(SWEEPS) as [Kept, Sweep][]) {
    const count = await inSteps(hub, () => sweep(hub, agreed - keptFor(hub)[kind], agreed));
    if (count > 0) counts[kind] = count;
  }
  return counts;
}

/** One bounded step: how many rows it deleted, and whether another may find more. */
type Step = { removed: number; more: boolean };
/** @param before what ended before this time is old @param now the time both rounds agree on */
type Sweep = (hub: Hub, before: number, now: number) => Promise<Step>;

async function inSteps(hub: Hub, step: () => Promise<Step>): Promise<number> {
  let total = 0;
  for (let steps = 0; steps < RETENTION_STEPS_MAX && !hub.stopping.aborted; steps++) {
    const { removed, more } = await step();
    total += removed;
    if (!more || removed === 0) break;
  }
  return total;
}

const TOPICS: Record<Kind, Topic> = {
  workflowRuns: "workflows",
  contextItems: "context",
  runtimeCommands: "runtimes",
  approvals: "approvals",
  alerts: "alerts",
  syncConflicts: "sync",
  webhookDeliveries: "webhooks",
  webhookArrivals: "webhooks",
};

const sweepKind =
  (kind: Kind): Sweep =>
  async (hub, before) => {
    const old = await hub.engine.read.retention.find(kind, before, RETENTION_BATCH_MAX);
    let removed = 0;
    for (const [project, rows] of Map.groupBy(old, (row) => row.project)) {
      const ids = rows.map(({ id }) => id);
      removed += await hub.engine.write(project, (tx) => removeKind(tx, { kind, project, ids, before }));
    }
    return { removed, more: old.length === RETENTION_BATCH_MAX };
  };

async function removeKind(tx: Tx, old: { kind: Kind; project: string; ids: string[]; before: number }): Promise<number> {
  const { kind, project, ids, before } = old;
  const count = kind === "workflowRuns" ? await removeRuns(tx, ids, before) : await tx.retention.remove(kind, ids, before);
  if (count === 0) return 0;
  note(tx, { project, topic: TOPICS[kind], what: kind, count });
  if (kind === "workflowRuns" || kind === "contextItems") await tx.context.notePurge(project); // pools in memory start over
  return count;
}

/** A run goes after its journal: entries first, as many as fit into the step. */
async function removeRuns(tx: Tx, ids: string[], before: number): Promise<number> {
  let count = 0;
  const bare: string[] = [];
  for (const id of ids) {
    const room = RETENTION_BATCH_MAX - count;
    if (room <= 0) break;
    const entries = await tx.retention.removeJournal(id, room);
    count += entries;
    if (entries < room) bare.push(id);
  }
  return count + (bare.length > 0 ? await tx.retention.remove("workflowRuns", bare, before) : 0);
}

const SYNC_RUNS_AT_ONCE = 20;

/** Events first, in steps; the run itself once none is left. */
const sweepSyncRuns: Sweep = async (hub, before, now) => {
  const runs = await hub.engine.read.retention.oldRuns(before, now - SYNC_SILENT_RETENTION_MS, SYNC_RUNS_AT_ONCE);
  let removed = 0;
  for (const { projectId, runId, project } of runs) {
    const room = RETENTION_BATCH_MAX - removed;
    if (room <= 0) break;
    removed += await hub.engine.write(project, async (tx) => {
      const count = await tx.retention.removeRun(projectId, runId, before, room);
      if (count > 0) note(tx, { project, topic: "sync", what: "syncRuns", count });
      return count;
    });
  }
  return { removed, more: runs.length > 0 };
};

const sweepEvents: Sweep = async (hub, before) => {
  let removed = 0;
  let more = false;
  for (const { project } of await hub.engine.read.events.projects()) {
    const oldest = await hub.engine.read.events.oldest(project);
    if (!oldest || oldest.at >= before) continue;
    const count = await hub.engine.write(project, (tx) => tx.events.prune(project, before, RETENTION_BATCH_MAX));
    removed += count;
    more ||= count === RETENTION_BATCH_MAX;
  }
  return { removed, more };
};

const sweepCosts: Sweep = async (hub, before) => {
  let [removed, more] = [0, false];
  for (const { project } of await hub.engine.read.events.projects()) {
    const oldest = await hub.engine.read.costs.oldest(project);
    if (oldest === undefined || oldest >= before) continue;
    const count = await hub.engine.write(project, (tx) => tx.costs.prune(project, before, RETENTION_BATCH_MAX));
    removed += count;
    more ||= count === RETENTION_BATCH_MAX;
  }
  return { removed, more };
};

/** Rows of no project, removed in the hub's own lane. */
const inOwnLane =
  (remove: (tx: Tx, before: number) => Promise<number>): Sweep =>
  async (hub, before) => {
    const removed = await hub.engine.write("", (tx) => remove(tx, before));
    return { removed, more: removed >= RETENTION_BATCH_MAX };
  };

const SWEEPS: Partial<Record<Kept, Sweep>> = {
  ...Object.fromEntries(KINDS.map((kind) => [kind, sweepKind(kind)])),
  messages: async (hub, before) => ({ removed: await purgeMessages(hub, before), more: false }),
  leaseHolders: async (hub, before) => {
    const removed = await leases.forgetLapsed(hub, before, RETENTION_BATCH_MAX);
    return { removed, more: removed === RETENTION_BATCH_MAX };
  },
  syncRuns: sweepSyncRuns,
  runtimes: inOwnLane((tx, before) => tx.retention.removeRuntimes(before, RETENTION_BATCH_MAX)),
  events: sweepEvents,
  audit: inOwnLane((tx, before) => tx.events.pruneAudit(before, RETENTION_BATCH_MAX)),
  costSums: sweepCosts,
  sessions: inOwnLane(
    async (tx, before) => (await tx.sessions.purge(before, RETENTION_BATCH_MAX)) + (await tx.signinLinks.purge(before, RETENTION_BATCH_MAX)),
  ),
};

const note = (tx: Tx, { project, topic, what, count }: { project: string; topic: Topic; what: string; count: number }) =>
  tx.append({ project, topic, type: "purged", subjectId: what, actor: "hub", data: { count } });
