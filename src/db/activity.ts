// How much happened, by hour: counted from the event log in steps, so that nobody who sends or reads pays for it. The cursor of a project says up to
// which event it is counted; both change in one write.
import { and, asc, eq, gt, gte, lt, lte, sql } from "drizzle-orm";
import type { Dialect } from "./dialect.ts";
import type { Topic } from "./schema.ts";
import { slot } from "./slots.ts";

/** Milliseconds of one hour; `hour` in a row is the time divided by it. */
export type HourCount = { topic: Topic; type: string; hour: number; count: number };

export function activityStore({ db, tables: { activityHours, activityCursors, events }, one, all, run, locked, now }: Dialect) {
  const cursor = one(
    locked(
      db
        .select({ seq: activityCursors.seq })
        .from(activityCursors)
        .where(eq(activityCursors.project, slot("project")))
        .$dynamic(),
    ),
  );
  const cursors = all(db.select().from(activityCursors));
  const setCursor = run(
    db
      .insert(activityCursors)
      .values({ project: slot("project"), seq: slot("seq") })
      .onConflictDoUpdate({ target: activityCursors.project, set: { seq: sql`excluded.seq` } }),
  );
  const hourOf = sql<number>`${events.at} / 3600000`; // HOUR_MS as the planner must see it; whole hours in both engines, because the column is an integer
  const countEvents = all(
    db
      .select({ topic: events.topic, type: events.type, hour: hourOf.as("hour"), count: sql<number>`count(*)`.as("count") })
      .from(events)
      .where(and(eq(events.project, slot("project")), gt(events.seq, slot("after")), lte(events.seq, slot("upTo"))))
      .groupBy(events.topic, events.type, hourOf),
  );
  const add = run(
    db
      .insert(activityHours)
      .values({ project: slot("project"), topic: slot("topic"), type: slot("type"), hour: slot("hour"), count: slot("count") })
      .onConflictDoUpdate({
        target: [activityHours.project, activityHours.topic, activityHours.type, activityHours.hour],
        set: { count: sql`${activityHours.count} + excluded.count` },
      }),
  );
  const hours = all(
    db
      .select({ hour: activityHours.hour, count: activityHours.count })
      .from(activityHours)
      .where(
        and(
          eq(activityHours.project, slot("project")),
          eq(activityHours.topic, slot("topic")),
          eq(activityHours.type, slot("type")),
          gte(activityHours.hour, slot("since")),
        ),
      )
      .orderBy(asc(activityHours.hour)),
  );
  return {
    /** The last event that is counted, locked for this write; 0 before the first. */
    cursor: async (project: string): Promise<number> => (await cursor({ project }))?.seq ?? 0,
    /** Up to which event each project is counted. */
    cursors: async (): Promise<Map<string, number>> => new Map((await cursors()).map(({ project, seq }) => [project, seq])),
    setCursor: (project: string, seq: number) => setCursor({ project, seq }),
    /** Events of a range by topic, type and hour: after < seq <= upTo. */
    countEvents: async (project: string, { after, upTo }: { after: number; upTo: number }): Promise<HourCount[]> =>
      (await countEvents({ project, after, upTo })).map(({ topic, type, hour, count }) => ({
        topic,
        type,
        hour: Number(hour),
        count: Number(count),
      })),
    add: (project: string, counted: HourCount) => add({ project, ...counted }),
    /** Counts of one kind of event from an hour on; hours without any are left out. */
    hours: (project: string, topic: Topic, type: string, since: number) => hours({ project, topic, type, since }),
    /** Removes hours before one, at most `limit` rows. @returns how many */
    prune: async (before: number, limit: number): Promise<number> => {
      const some = db
        .select({ project: activityHours.project, topic: activityHours.topic, type: activityHours.type, hour: activityHours.hour })
        .from(activityHours)
        .where(lt(activityHours.hour, before))
        .limit(limit);
      const gone = await now(
        db
          .delete(activityHours)
          .where(sql`(${activityHours.project}, ${activityHours.topic}, ${activityHours.type}, ${activityHours.hour}) in ${some}`)
          .returning({ hour: activityHours.hour }),
      );
      return gone.length;
    },
  };
}
