// Synced runs and their events. A run's row carries its cursor, so ingest costs the same for the first event and for the millionth.
import { and, asc, eq, gt, inArray } from "drizzle-orm";
import type { Dialect } from "./dialect.ts";
import type { SyncEventRow, SyncRunRow } from "./schema.ts";
import { everySlot, slot } from "./slots.ts";

export function syncStore({ db, tables: { syncProjects, syncRuns, syncEvents }, one, all, run, locked, insertAll, now }: Dialect) {
  const ofRun = and(eq(syncEvents.projectId, slot("projectId")), eq(syncEvents.runId, slot("runId")));
  const owner = one(
    db
      .select()
      .from(syncProjects)
      .where(eq(syncProjects.projectId, slot("projectId"))),
  );
  const claim = run(db.insert(syncProjects).values(everySlot(syncProjects)));
  const lockRun = one(
    locked(
      db
        .select()
        .from(syncRuns)
        .where(and(eq(syncRuns.projectId, slot("projectId")), eq(syncRuns.runId, slot("runId"))))
        .$dynamic(),
    ),
  );
  const insertRun = run(db.insert(syncRuns).values(everySlot(syncRuns)));
  const updateRun = run(
    db
      .update(syncRuns)
      .set({
        cursor: slot("cursor"),
        held: slot("held"),
        heldBytes: slot("heldBytes"),
        lastReceivedAt: slot("lastReceivedAt"),
        workflowId: slot("workflowId"),
        displayTitle: slot("displayTitle"),
        status: slot("status"),
        stepId: slot("stepId"),
        startedAt: slot("startedAt"),
        updatedAt: slot("updatedAt"),
        endedAt: slot("endedAt"),
        projection: slot("projection"),
      })
      .where(and(eq(syncRuns.projectId, slot("projectId")), eq(syncRuns.runId, slot("runId")))),
  );
  const heldAfter = all(
    db
      .select({ sequence: syncEvents.sequence })
      .from(syncEvents)
      .where(and(ofRun, gt(syncEvents.sequence, slot("after"))))
      .orderBy(asc(syncEvents.sequence))
      .limit(slot("limit")),
  );
  const insertEvents = insertAll(syncEvents);
  return {
    owner: (projectId: string) => owner({ projectId }),
    claim: (row: { projectId: string; project: string; claimedAt: number }) => claim(row),
    lockRun: (projectId: string, runId: string) => lockRun({ projectId, runId }),
    insertRun: (row: SyncRunRow) => insertRun(row),
    updateRun: (row: SyncRunRow) => updateRun(row),
    heldAfter: (projectId: string, runId: string, after: number, limit: number) => heldAfter({ projectId, runId, after, limit }),
    insertEvents: (rows: SyncEventRow[]) => insertEvents(rows),
    hashes: (projectId: string, runId: string, sequences: number[]) =>
      now(
        db
          .select({ sequence: syncEvents.sequence, hash: syncEvents.hash })
          .from(syncEvents)
          .where(and(eq(syncEvents.projectId, projectId), eq(syncEvents.runId, runId), inArray(syncEvents.sequence, sequences))),
      ),
  };
}
