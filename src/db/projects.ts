// The projects of a hub: those whose event log has an entry. There is no table of them; a project begins with its first change.
import { and, asc, eq, gt, ne, sql } from "drizzle-orm";
import type { Dialect } from "./dialect.ts";
import { slot } from "./slots.ts";

export function projectStore({ db, tables: { eventCounters, events, agents }, one, all }: Dialect) {
  const page = all(
    db
      .select()
      .from(eventCounters)
      .where(and(gt(eventCounters.project, slot("after")), ne(eventCounters.project, "")))
      .orderBy(asc(eventCounters.project))
      .limit(slot("limit")),
  );
  const find = one(
    db
      .select()
      .from(eventCounters)
      .where(eq(eventCounters.project, slot("project"))),
  );
  const online = one(
    db
      .select({ count: sql<number>`count(*)` })
      .from(agents)
      .where(and(eq(agents.project, slot("project")), sql`${agents.online} = 1`)),
  );
  const first = one(
    db
      .select({ seq: events.seq })
      .from(events)
      .where(eq(events.project, slot("project")))
      .orderBy(asc(events.seq))
      .limit(1),
  );
  return {
    /** Projects after a name, by name. The hub's own log ("") is not one. */
    page: (after: string, limit: number) => page({ after, limit }),
    /** The newest number of a project's log, whatever retention left of it; undefined for an unknown project. */
    find: (project: string) => find({ project }),
    countOnline: async (project: string) => Number((await online({ project }))!.count),
    /** The oldest number that is still in the log. */
    firstSeq: async (project: string) => (await first({ project }))?.seq,
  };
}
