// Journal entries of hub workflow runs.
import { and, asc, desc, eq, gt, inArray, lt, sql } from "drizzle-orm";
import type { Dialect } from "./dialect.ts";
import type { JournalRow } from "./schema.ts";
import { everySlot, slot } from "./slots.ts";

export function journalStore({ db, tables: { workflowJournal: journal }, one, all, run, locked, now }: Dialect) {
  const byId = db
    .select()
    .from(journal)
    .where(eq(journal.id, slot("id")))
    .$dynamic();
  const find = one(byId);
  const lock = one(locked(byId));
  const ofRun = all(
    db
      .select()
      .from(journal)
      .where(eq(journal.runId, slot("runId")))
      .orderBy(asc(journal.id))
      .limit(slot("limit")),
  );
  const newestOfRun = all(
    db
      .select()
      .from(journal)
      .where(and(eq(journal.runId, slot("runId")), lt(journal.id, slot("before"))))
      .orderBy(desc(journal.id))
      .limit(slot("limit")),
  );
  const ofProject = all(
    db
      .select()
      .from(journal)
      .where(and(eq(journal.project, slot("project")), lt(journal.id, slot("before"))))
      .orderBy(desc(journal.id))
      .limit(slot("limit")),
  );
  const ofCategory = all(
    db
      .select()
      .from(journal)
      .where(and(eq(journal.project, slot("project")), eq(journal.category, slot("category")), lt(journal.id, slot("before"))))
      .orderBy(desc(journal.id))
      .limit(slot("limit")),
  );
  const count = one(
    db
      .select({ count: sql<number>`count(*)` })
      .from(journal)
      .where(eq(journal.project, slot("project"))),
  );
  const changedAfter = all(
    db
      .select()
      .from(journal)
      .where(and(eq(journal.project, slot("project")), gt(journal.revision, slot("after"))))
      .orderBy(asc(journal.revision))
      .limit(slot("limit")),
  );
  const insert = run(db.insert(journal).values(everySlot(journal)));
  const update = run(
    db
      .update(journal)
      .set({ promotedTo: slot("promotedTo"), revision: slot("revision"), record: slot("record"), hash: slot("hash") })
      .where(eq(journal.id, slot("id"))),
  );
  const removeOfRun = run(db.delete(journal).where(eq(journal.runId, slot("runId"))));
  return {
    find: (id: string) => find({ id }),
    lock: (id: string) => lock({ id }),
    ofRun: (runId: string, limit: number) => ofRun({ runId, limit }),
    /** A run's entries, newest first; `before` as below. */
    newestOfRun: (runId: string, before: string, limit: number) => newestOfRun({ runId, before, limit }),
    /** Newest first; `before` is an entry id or a string that sorts after all of them. */
    ofProject: (project: string, before: string, limit: number) => ofProject({ project, before, limit }),
    ofCategory: (project: string, category: string, before: string, limit: number) => ofCategory({ project, category, before, limit }),
    someOf: (ids: string[]) =>
      ids.length === 0 ? Promise.resolve([]) : now(db.select({ id: journal.id, runId: journal.runId }).from(journal).where(inArray(journal.id, ids))),
    count: async (project: string) => Number((await count({ project }))!.count),
    changedAfter: (project: string, after: number, limit: number) => changedAfter({ project, after, limit }),
    insert: (row: JournalRow) => insert(row),
    update: (row: JournalRow) => update(row),
    removeOfRun: (runId: string) => removeOfRun({ runId }),
  };
}
