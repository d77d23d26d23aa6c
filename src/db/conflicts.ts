// What sync refused, with the payload that came, so that an operator can compare both. One row per run, sequence, payload, code and hub project.
import { and, desc, eq, isNull, lt, sql } from "drizzle-orm";
import type { Dialect } from "./dialect.ts";
import type { SyncConflictRow } from "./schema.ts";
import { everySlot, slot } from "./slots.ts";

type Key = Pick<SyncConflictRow, "projectId" | "runId" | "sequence" | "hash" | "code" | "project">;

export function conflictStore({ db, tables: { syncConflicts }, one, all, run }: Dialect) {
  const keyed = [
    eq(syncConflicts.projectId, slot("projectId")),
    eq(syncConflicts.runId, slot("runId")),
    eq(syncConflicts.sequence, slot("sequence")),
    eq(syncConflicts.hash, slot("hash")),
    eq(syncConflicts.code, slot("code")),
    eq(syncConflicts.project, slot("project")),
  ];
  const findKey = one(
    db
      .select()
      .from(syncConflicts)
      .where(and(...keyed)),
  );
  const find = one(
    db
      .select()
      .from(syncConflicts)
      .where(eq(syncConflicts.id, slot("id"))),
  );
  const insert = run(db.insert(syncConflicts).values(everySlot(syncConflicts)));
  const update = run(
    db
      .update(syncConflicts)
      .set({
        lastAt: slot("lastAt"),
        count: slot("count"),
        acknowledgedAt: slot("acknowledgedAt"),
        acknowledgedBy: slot("acknowledgedBy"),
        reason: slot("reason"),
      })
      .where(eq(syncConflicts.id, slot("id"))),
  );
  const before = and(eq(syncConflicts.project, slot("project")), lt(syncConflicts.id, slot("before")));
  const page = all(db.select().from(syncConflicts).where(before).orderBy(desc(syncConflicts.id)).limit(slot("limit")));
  const openPage = all(
    db
      .select()
      .from(syncConflicts)
      .where(and(before, isNull(syncConflicts.acknowledgedAt)))
      .orderBy(desc(syncConflicts.id))
      .limit(slot("limit")),
  );
  const counted = db
    .select({ one: sql`1` })
    .from(syncConflicts)
    .where(and(eq(syncConflicts.project, slot("project")), isNull(syncConflicts.acknowledgedAt)))
    .limit(slot("limit"))
    .as("counted");
  const countOpen = one(db.select({ count: sql<number>`count(*)` }).from(counted));
  return {
    /** Conflicts nobody has looked at; the count stops at `limit`. */
    countOpen: async (project: string, limit: number) => Number((await countOpen({ project, limit }))!.count),
    findKey: ({ projectId, runId, sequence, hash, code, project }: Key) => findKey({ projectId, runId, sequence, hash, code, project }),
    find: (id: string) => find({ id }),
    insert: (row: SyncConflictRow) => insert(row),
    update: (row: SyncConflictRow) => update(row),
    /** Newest first, from below `before`. */
    page: (project: string, before: string, limit: number) => page({ project, before, limit }),
    openPage: (project: string, before: string, limit: number) => openPage({ project, before, limit }),
  };
}
