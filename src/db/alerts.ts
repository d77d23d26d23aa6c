// Alerts: one row per project, kind and cause; a repeat only counts.
import { and, desc, eq, isNull, lt, sql } from "drizzle-orm";
import type { Dialect } from "./dialect.ts";
import type { AlertRow } from "./schema.ts";
import { everySlot, slot } from "./slots.ts";

export function alertStore({ db, tables: { alerts }, one, all, run }: Dialect) {
  const findKey = one(
    db
      .select()
      .from(alerts)
      .where(and(eq(alerts.project, slot("project")), eq(alerts.kind, slot("kind")), eq(alerts.dedupeKey, slot("dedupeKey")))),
  );
  const find = one(
    db
      .select()
      .from(alerts)
      .where(eq(alerts.id, slot("id"))),
  );
  const insert = run(db.insert(alerts).values(everySlot(alerts)));
  const update = run(
    db
      .update(alerts)
      .set({
        severity: slot("severity"),
        summary: slot("summary"),
        subject: slot("subject"),
        data: slot("data"),
        lastAt: slot("lastAt"),
        count: slot("count"),
        acknowledgedAt: slot("acknowledgedAt"),
        acknowledgedBy: slot("acknowledgedBy"),
        reason: slot("reason"),
      })
      .where(eq(alerts.id, slot("id"))),
  );
  const before = and(eq(alerts.project, slot("project")), lt(alerts.id, slot("before")));
  const open = isNull(alerts.acknowledgedAt);
  const page = all(db.select().from(alerts).where(before).orderBy(desc(alerts.id)).limit(slot("limit")));
  const openPage = all(db.select().from(alerts).where(and(before, open)).orderBy(desc(alerts.id)).limit(slot("limit")));
  const rows = db
    .select({ one: sql`1` })
    .from(alerts)
    .where(and(eq(alerts.project, slot("project")), open))
    .limit(slot("limit"))
    .as("counted");
  const countOpen = one(db.select({ count: sql<number>`count(*)` }).from(rows));
  return {
    findKey: (project: string, kind: string, dedupeKey: string) => findKey({ project, kind, dedupeKey }),
    find: (id: string) => find({ id }),
    insert: (row: AlertRow) => insert(row),
    update: (row: AlertRow) => update(row),
    /** Newest first, from below `before`. */
    page: (project: string, before: string, limit: number) => page({ project, before, limit }),
    openPage: (project: string, before: string, limit: number) => openPage({ project, before, limit }),
    /** Open alerts of a project; the count stops at `limit`. */
    countOpen: async (project: string, limit: number) => Number((await countOpen({ project, limit }))!.count),
  };
}
