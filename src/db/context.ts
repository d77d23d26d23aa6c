// Context items, and the revision counter by which a pool in memory is brought up to date.
import { and, asc, desc, eq, gt, lte, sql } from "drizzle-orm";
import type { Dialect } from "./dialect.ts";
import type { ContextItemRow } from "./schema.ts";
import { everySlot, slot } from "./slots.ts";

export function contextStore({ db, tables: { contextItems: items, contextCounters }, one, all, run, locked }: Dialect) {
  const byId = db
    .select()
    .from(items)
    .where(eq(items.id, slot("id")))
    .$dynamic();
  const find = one(byId);
  const lock = one(locked(byId));
  const changedAfter = all(
    db
      .select()
      .from(items)
      .where(and(eq(items.project, slot("project")), gt(items.revision, slot("after"))))
      .orderBy(asc(items.revision))
      .limit(slot("limit")),
  );
  const ofKey = and(eq(items.project, slot("project")), eq(items.stateKey, slot("key")));
  const stateAt = all(
    db
      .select()
      .from(items)
      .where(
        and(
          ofKey,
          lte(items.validFrom, slot("at")),
          sql`(valid_until is null or valid_until > ${slot("at")})`,
          sql`status in ('current', 'superseded')`,
        ),
      )
      .orderBy(desc(items.validFrom), desc(items.id))
      .limit(16),
  );
  const historyOf = all(db.select().from(items).where(ofKey).orderBy(desc(items.validFrom), desc(items.id)).limit(slot("limit")));
  const proposals = all(
    db
      .select()
      .from(items)
      .where(and(eq(items.project, slot("project")), sql`status = 'proposed'`, sql`kind = 'state'`))
      .orderBy(desc(items.id))
      .limit(slot("limit")),
  );
  const contradicted = all(
    db
      .select({ key: sql<string>`${items.stateKey}` })
      .from(items)
      .where(and(eq(items.project, slot("project")), sql`kind = 'state'`, sql`status = 'current'`))
      .groupBy(items.stateKey)
      .having(sql`count(*) > 1`)
      .orderBy(asc(items.stateKey))
      .limit(slot("limit")),
  );
  const keys = all(
    db
      .select()
      .from(items)
      .where(and(eq(items.project, slot("project")), sql`status = 'current'`, sql`kind = 'state'`, gt(items.stateKey, slot("after"))))
      .orderBy(asc(items.stateKey), asc(items.id))
      .limit(slot("limit")),
  );
  const counters = one(
    db
      .select()
      .from(contextCounters)
      .where(eq(contextCounters.project, slot("project"))),
  );
  const takeRevision = one(
    db
      .insert(contextCounters)
      .values({ project: slot("project"), lastRevision: 1, purges: 0 })
      .onConflictDoUpdate({ target: contextCounters.project, set: { lastRevision: sql`${contextCounters.lastRevision} + 1` } })
      .returning({ revision: contextCounters.lastRevision }),
  );
  const notePurge = run(
    db
      .insert(contextCounters)
      .values({ project: slot("project"), lastRevision: 0, purges: 1 })
      .onConflictDoUpdate({ target: contextCounters.project, set: { purges: sql`${contextCounters.purges} + 1` } }),
  );
  const ended = all(
    db
      .select({ id: items.id, project: items.project })
      .from(items)
      .where(and(lte(items.validUntil, slot("before")), sql`valid_until is not null`))
      .orderBy(asc(items.validUntil))
      .limit(slot("limit")),
  );
  const remove = run(db.delete(items).where(eq(items.id, slot("id"))));
  const insert = run(db.insert(items).values(everySlot(items)));
  const update = run(
    db
      .update(items)
      .set({
        status: slot("status"),
        summary: slot("summary"),
        validFrom: slot("validFrom"),
        validUntil: slot("validUntil"),
        record: slot("record"),
        revision: slot("revision"),
      })
      .where(eq(items.id, slot("id"))),
  );
  return {
    find: (id: string) => find({ id }),
    lock: (id: string) => lock({ id }),
    changedAfter: (project: string, after: number, limit: number) => changedAfter({ project, after, limit }),
    /** Values of a key valid at a time: current and superseded ones, newest first. */
    stateAt: (project: string, key: string, at: number) => stateAt({ project, key, at }),
    historyOf: (project: string, key: string, limit: number) => historyOf({ project, key, limit }),
    proposals: (project: string, limit: number) => proposals({ project, limit }),
    /** Keys that have several current values. */
    contradicted: async (project: string, limit: number) => (await contradicted({ project, limit })).map(({ key }) => key),
    /** Current values by key, after a key. */
    currentAfter: (project: string, after: string, limit: number) => keys({ project, after, limit }),
    counters: async (project: string) => (await counters({ project })) ?? { project, lastRevision: 0, purges: 0 },
    takeRevision: async (project: string) => (await takeRevision({ project }))!.revision,
    notePurge: (project: string) => notePurge({ project }),
    endedBefore: (before: number, limit: number) => ended({ before, limit }),
    remove: (id: string) => remove({ id }),
    insert: (row: ContextItemRow) => insert(row),
    update: (row: ContextItemRow) => update(row),
  };
}
