// Reading what people did. Entries are written with their event (events.ts); this is the other side.
import { and, desc, eq, type SQL, sql } from "drizzle-orm";
import type { Dialect } from "./dialect.ts";
import { slot } from "./slots.ts";

/** A place in the list, newest first. */
export type AuditPlace = { at: number; project: string; seq: number };
export type AuditFilter = {
  project?: string | undefined;
  actor?: string | undefined;
  action?: string | undefined;
  subject?: string | undefined;
  /** Milliseconds: from this time on. */
  since?: number | undefined;
  /** Milliseconds: before this time. */
  until?: number | undefined;
};

export function auditStore({ db, tables: { audit }, one, now }: Dialect) {
  const find = one(
    db
      .select()
      .from(audit)
      .where(and(eq(audit.project, slot("project")), eq(audit.seq, slot("seq")))),
  );
  return {
    /** The note that was written with an event, if a person acted. */
    find: (project: string, seq: number) => find({ project, seq }),
    /** Entries before a place, newest first. Built per call: which filters are there changes the statement, and people ask, not agents. */
    page(filter: AuditFilter, before: AuditPlace | undefined, limit: number) {
      const { project, actor, action, subject, since, until } = filter;
      const conditions: (SQL | undefined)[] = [
        project === undefined ? undefined : eq(audit.project, project),
        actor === undefined ? undefined : eq(audit.actor, actor),
        action === undefined ? undefined : eq(audit.action, action),
        subject === undefined ? undefined : eq(audit.subjectId, subject),
        since === undefined ? undefined : sql`${audit.at} >= ${since}`,
        until === undefined ? undefined : sql`${audit.at} < ${until}`,
        before && sql`(${audit.at}, ${audit.project}, ${audit.seq}) < (${before.at}, ${before.project}, ${before.seq})`,
      ];
      return now(
        db
          .select()
          .from(audit)
          .where(and(...conditions))
          .orderBy(desc(audit.at), desc(audit.project), desc(audit.seq))
          .limit(limit),
      );
    },
  };
}
