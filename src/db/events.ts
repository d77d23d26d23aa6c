// The event log. seq is per project and gapless: its counter row stays locked from taking the number to COMMIT, so that a lower
// number never becomes visible after a higher one.
import { and, asc, desc, eq, gt, sql } from "drizzle-orm";
import type { Dialect } from "./dialect.ts";
import { slot } from "./slots.ts";

export function eventStore({ db, tables: { events, eventCounters, audit }, one, all, insertAll }: Dialect) {
  const takeSeqs = one(
    db
      .insert(eventCounters)
      .values({ project: slot("project"), lastSeq: slot("count") })
      .onConflictDoUpdate({ target: eventCounters.project, set: { lastSeq: sql`${eventCounters.lastSeq} + excluded.last_seq` } })
      .returning({ last: eventCounters.lastSeq }),
  );
  const after = all(
    db
      .select()
      .from(events)
      .where(and(eq(events.project, slot("project")), gt(events.seq, slot("seq"))))
      .orderBy(asc(events.seq))
      .limit(slot("limit")),
  );
  const last = one(
    db
      .select({ seq: events.seq })
      .from(events)
      .where(eq(events.project, slot("project")))
      .orderBy(desc(events.seq))
      .limit(1),
  );
  return {
    takeSeqs: async (project: string, count: number) => (await takeSeqs({ project, count }))!.last,
    insertAll: insertAll(events),
    insertAudit: insertAll(audit),
    after: (project: string, seq: number, limit: number) => after({ project, seq, limit }),
    lastSeq: async (project: string) => (await last({ project }))?.seq ?? 0,
  };
}
