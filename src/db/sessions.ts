// Dashboard sessions: found by the hash of a secret that was shown once.
import { and, asc, desc, eq, gt, isNull, sql } from "drizzle-orm";
import type { Dialect } from "./dialect.ts";
import type { SessionRow } from "./schema.ts";
import { everySlot, slot } from "./slots.ts";

export function sessionStore({ db, tables: { sessions }, one, all, run, now }: Dialect) {
  const insert = run(db.insert(sessions).values(everySlot(sessions)));
  const findByHash = one(
    db
      .select()
      .from(sessions)
      .where(eq(sessions.tokenHash, slot("tokenHash"))),
  );
  const find = one(
    db
      .select()
      .from(sessions)
      .where(eq(sessions.id, slot("id"))),
  );
  const open = all(
    db
      .select()
      .from(sessions)
      .where(and(isNull(sessions.endedAt), gt(sessions.expiresAt, slot("now"))))
      .orderBy(desc(sessions.expiresAt), asc(sessions.id))
      .limit(slot("limit")),
  );
  const seen = run(
    db
      .update(sessions)
      .set({ lastSeenAt: slot("at") })
      .where(eq(sessions.id, slot("id"))),
  );
  const end = run(
    db
      .update(sessions)
      .set({ endedAt: slot("at") })
      .where(and(eq(sessions.id, slot("id")), isNull(sessions.endedAt))),
  );
  return {
    insert: (row: SessionRow) => insert(row),
    find: (id: string) => find({ id }),
    findByHash: (tokenHash: string) => findByHash({ tokenHash }),
    /** Sessions that have not ended by sign-out or age; idle ones are among them. */
    open: (at: number, limit: number) => open({ now: at, limit }),
    seen: (id: string, at: number) => seen({ id, at }),
    end: (id: string, at: number) => end({ id, at }),
    /** Ends the sessions that began with a token. */
    endOfToken: (tokenId: string, at: number) =>
      now(
        db
          .update(sessions)
          .set({ endedAt: at })
          .where(and(eq(sessions.tokenId, tokenId), isNull(sessions.endedAt)))
          .returning({ id: sessions.id }),
      ),
    /** Ends the sessions that began with the admin token. */
    endOfAdmin: (at: number) =>
      now(
        db
          .update(sessions)
          .set({ endedAt: at })
          .where(and(isNull(sessions.tokenId), isNull(sessions.endedAt)))
          .returning({ id: sessions.id }),
      ),
    /** Deletes sessions whose time is over; returns how many, at most `limit`. */
    async purge(before: number, limit: number) {
      const old = sql`id in (select id from sessions where expires_at <= ${before} limit ${limit})`;
      return (await now(db.delete(sessions).where(old).returning({ id: sessions.id }))).length;
    },
  };
}
