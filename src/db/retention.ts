// Deleting what is old: every kind of row whose life ends by itself, found by an index and removed in bounded steps, project by project.
// Messages, the event log and the audit have their own stores' methods; leases keep their rows for ever.
import { and, eq, inArray, lt, lte, type SQL, sql } from "drizzle-orm";
import type { Dialect } from "./dialect.ts";

/** A row that may go, and whose lane removes it. */
export type Old = { id: string; project: string };

/** Kinds of rows with an id of their own. */
export const KINDS = [
  "workflowRuns",
  "contextItems",
  "runtimeCommands",
  "approvals",
  "alerts",
  "syncConflicts",
  "webhookDeliveries",
  "webhookArrivals",
] as const;
export type Kind = (typeof KINDS)[number];

export function retentionStore({ db, tables, now }: Dialect) {
  const { workflowRuns, workflowJournal, contextItems, runtimeCommands, approvals, alerts, syncConflicts, webhookDeliveries, webhookArrivals } =
    tables;
  // Conditions name the columns of partial indexes the way those indexes do, so that SQLite's planner takes them.
  const rules: Record<Kind, { table: typeof alerts; old: (before: number) => SQL | undefined }> = {
    workflowRuns: {
      table: workflowRuns as never,
      old: (before) => and(lt(workflowRuns.completedAt, before), lt(workflowRuns.updatedAt, before), sql`status in ('completed', 'failed')`),
    },
    contextItems: {
      table: contextItems as never,
      old: (before) => and(lt(contextItems.validUntil, before), sql`status in ('superseded', 'rejected')`),
    },
    runtimeCommands: { table: runtimeCommands as never, old: (before) => lt(runtimeCommands.finishedAt, before) },
    approvals: { table: approvals as never, old: (before) => and(lt(approvals.decidedAt, before), sql`status <> 'pending'`) },
    alerts: { table: alerts, old: (before) => and(lt(alerts.acknowledgedAt, before), lt(alerts.lastAt, before)) },
    syncConflicts: {
      table: syncConflicts as never,
      old: (before) => and(lt(syncConflicts.acknowledgedAt, before), lt(syncConflicts.lastAt, before)),
    },
    webhookDeliveries: { table: webhookDeliveries as never, old: (before) => lt(webhookDeliveries.finishedAt, before) },
    webhookArrivals: { table: webhookArrivals as never, old: (before) => lt(webhookArrivals.at, before) },
  };
  return {
    /** Rows of a kind that ended before a time, at most `limit`. */
    find(kind: Kind, before: number, limit: number): Promise<Old[]> {
      const { table, old } = rules[kind];
      return now(db.select({ id: table.id, project: table.project }).from(table).where(old(before)).limit(limit));
    },
    /** Removes those of the rows that are still old. @returns how many */
    async remove(kind: Kind, ids: string[], before: number): Promise<number> {
      const { table, old } = rules[kind];
      const gone = await now(
        db
          .delete(table)
          .where(and(inArray(table.id, ids), old(before)))
          .returning({ id: table.id }),
      );
      return gone.length;
    },
    /** Removes journal entries of a run, at most `limit`; those that were approved stay. @returns how many */
    async removeJournal(runId: string, limit: number): Promise<number> {
      const some = db
        .select({ id: workflowJournal.id })
        .from(workflowJournal)
        .where(and(eq(workflowJournal.runId, runId), sql`coalesce(promoted_to, '') <> 'approved'`))
        .limit(limit);
      return (await now(db.delete(workflowJournal).where(inArray(workflowJournal.id, some)).returning({ id: workflowJournal.id }))).length;
    },
    ...syncRetention({ db, tables, now } as Dialect),
  };
}

function syncRetention({ db, tables: { syncRuns, syncEvents, approvals, runtimePresence }, now }: Dialect) {
  return {
    /** Synced runs that ended and were not heard of since `before`, or not heard of at all since `abandoned`. */
    oldRuns(before: number, abandoned: number, limit: number) {
      const silent = and(lt(syncRuns.lastReceivedAt, before), sql`(ended_at is not null or last_received_at < ${abandoned})`);
      return now(
        db.select({ projectId: syncRuns.projectId, runId: syncRuns.runId, project: syncRuns.project }).from(syncRuns).where(silent).limit(limit),
      );
    },
    /** Removes a run's events, at most `limit`, then what it asked for and called off, then, when none is left, the run. @returns how many rows */
    async removeRun(projectId: string, runId: string, before: number, limit: number): Promise<number> {
      const ofRun = and(eq(syncRuns.projectId, projectId), eq(syncRuns.runId, runId), lt(syncRuns.lastReceivedAt, before));
      if ((await now(db.select({ runId: syncRuns.runId }).from(syncRuns).where(ofRun).limit(1))).length === 0) return 0; // it spoke again
      const events = and(eq(syncEvents.projectId, projectId), eq(syncEvents.runId, runId));
      const some = await now(db.select({ sequence: syncEvents.sequence }).from(syncEvents).where(events).orderBy(syncEvents.sequence).limit(limit));
      if (some.length === 0) {
        // Nobody decided these, so no time of a decision ever makes them old.
        const calledOff = and(eq(approvals.projectId, projectId), eq(approvals.runId, runId), eq(approvals.status, "cancelled"));
        const asked = db.select({ id: approvals.id }).from(approvals).where(calledOff).limit(limit);
        const gone = await now(db.delete(approvals).where(inArray(approvals.id, asked)).returning({ id: approvals.id }));
        if (gone.length === limit) return limit;
        return gone.length + (await now(db.delete(syncRuns).where(ofRun).returning({ runId: syncRuns.runId }))).length;
      }
      const through = some.at(-1)!.sequence;
      return (
        await now(
          db
            .delete(syncEvents)
            .where(and(events, lte(syncEvents.sequence, through)))
            .returning({ sequence: syncEvents.sequence }),
        )
      ).length;
    },
    /** Removes Runtimes that have not reported since `before`. @returns how many */
    async removeRuntimes(before: number, limit: number): Promise<number> {
      const some = sql`(project, runtime_id) in (select project, runtime_id from runtime_presence where heartbeat_at < ${before} limit ${limit})`;
      return (await now(db.delete(runtimePresence).where(some).returning({ id: runtimePresence.runtimeId }))).length;
    },
  };
}
