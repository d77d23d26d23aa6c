// The event log. seq is per project and gapless: its counter row stays locked from taking the number to COMMIT, so that a lower
// number never becomes visible after a higher one. Retention takes the oldest rows and leaves the newest, so a gap always shows.
import { and, asc, desc, eq, gt, lt, lte, type SQL, sql } from "drizzle-orm";
import type { Dialect } from "./dialect.ts";
import { slot } from "./slots.ts";

export function eventStore(dialect: Dialect) {
  const { db, tables, one, all, run, insertAll } = dialect;
  const { events, eventCounters } = tables;
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
      .select({ seq: eventCounters.lastSeq })
      .from(eventCounters)
      .where(eq(eventCounters.project, slot("project"))),
  );
  const projects = all(
    db.select({ project: eventCounters.project, lastSeq: eventCounters.lastSeq }).from(eventCounters).orderBy(asc(eventCounters.project)),
  );
  const oldest = all(
    db
      .select({ seq: events.seq, at: events.at })
      .from(events)
      .where(eq(events.project, slot("project")))
      .orderBy(asc(events.seq))
      .limit(slot("limit")),
  );
  const removeThrough = run(db.delete(events).where(and(eq(events.project, slot("project")), lte(events.seq, slot("seq")))));
  return {
    ...eventsOfAgents(dialect),
    ...auditEntries(dialect),
    ...newestEvents(dialect),
    takeSeqs: async (project: string, count: number) => (await takeSeqs({ project, count }))!.last,
    insertAll: insertAll(events),
    after: (project: string, seq: number, limit: number) => after({ project, seq, limit }),
    /** Number of the newest event; 0 for a project without any. */
    lastSeq: async (project: string) => (await last({ project }))?.seq ?? 0,
    /** Every project that has a log. */
    projects: () => projects(),
    /** The oldest retained event, if there is one. */
    oldest: async (project: string) => (await oldest({ project, limit: 1 }))[0],
    /**
     * Removes a project's oldest events that are older than `before`, never the newest one: at most `limit` rows, oldest first, without holes.
     * @returns how many; call again in another write while it is `limit`
     */
    prune: async (project: string, before: number, limit: number): Promise<number> => {
      const newest = (await last({ project }))?.seq ?? 0;
      const rows = await oldest({ project, limit });
      const kept = rows.findIndex(({ seq, at }) => at >= before || seq >= newest);
      const count = kept === -1 ? rows.length : kept;
      if (count > 0) await removeThrough({ project, seq: rows[count - 1]!.seq });
      return count;
    },
  };
}

/** What one agent's stream needs: comings and goings of its project, and messages whose data names the agent. The pattern spares reading the rest. */
function eventsOfAgents({ db, tables: { events }, all }: Dialect) {
  const concerning = all(
    db
      .select()
      .from(events)
      .where(
        and(
          eq(events.project, slot("project")),
          gt(events.seq, slot("after")),
          lte(events.seq, slot("upTo")),
          sql`(${events.topic} = 'agents' or (${events.topic} = 'messages' and ${events.data} like ${slot("pattern")}))`,
        ),
      )
      .orderBy(asc(events.seq)),
  );
  return {
    /** Events of a range that may concern an agent, in order. The range bounds the work: after < seq <= upTo. */
    concerning: (project: string, agentId: string, { after, upTo }: { after: number; upTo: number }) =>
      concerning({ project, after, upTo, pattern: `%${agentId}%` }),
  };
}

/** What people did, kept beyond the log. */
function auditEntries({ db, tables: { audit }, all, insertAll }: Dialect) {
  const oldAudit = db
    .select({ project: audit.project, seq: audit.seq })
    .from(audit)
    .where(lt(audit.at, slot("before")))
    .orderBy(asc(audit.at))
    .limit(slot("limit"));
  const pruneAudit = all(db.delete(audit).where(sql`(${audit.project}, ${audit.seq}) in ${oldAudit}`).returning({ seq: audit.seq }));
  return {
    insertAudit: insertAll(audit),
    /** Removes audit entries of all projects that are older than `before`, at most `limit`. @returns how many */
    pruneAudit: async (before: number, limit: number): Promise<number> => (await pruneAudit({ before, limit })).length,
  };
}

/** What people look at: the newest events first, of a project, about one thing, or by one agent. */
function newestEvents({ db, tables: { events }, all }: Dialect) {
  // Without statistics SQLite thinks little of a project's log and would walk through all of it: the concatenation keeps it off the primary key.
  const inProject = (of?: SQL) => (of ? sql`${events.project} || '' = ${slot("project")}` : eq(events.project, slot("project")));
  const newest = (of?: SQL) =>
    all(
      db
        .select()
        .from(events)
        .where(and(inProject(of), of, lt(events.seq, slot("before"))))
        .orderBy(desc(events.seq))
        .limit(slot("limit")),
    );
  const ofProject = newest();
  const { topic, type } = events; // below: the words of the partial indexes
  const isAbout = eq(events.subjectId, slot("id"));
  const ofSubject = newest(and(isAbout, sql`${topic} <> 'messages'`));
  const openings = newest(and(isAbout, sql`${type} = 'opened'`));
  const ofActor = newest(and(eq(events.actor, slot("id")), sql`${topic} <> 'agents' and ${topic} <> 'messages' and ${topic} <> 'sync'`));
  return {
    newest: (project: string, before: number, limit: number) => ofProject({ project, before, limit }),
    /** Who opened a message's text, and when. */
    openings: (project: string, messageId: string, limit: number) => openings({ project, id: messageId, before: Number.MAX_SAFE_INTEGER, limit }),
    /** Events about one thing that is no message: a message's history is in its row. */
    about: (project: string, id: string, before: number, limit: number) => ofSubject({ project, id, before, limit }),
    /** What an agent did, without its messages, its comings and goings, and what Runtimes send. */
    deedsOf: (project: string, id: string, before: number, limit: number) => ofActor({ project, id, before, limit }),
  };
}
