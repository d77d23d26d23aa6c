// Tokens made by people: found by the hash of what was shown once.
import { and, asc, eq, sql } from "drizzle-orm";
import type { Dialect } from "./dialect.ts";
import type { TokenRow } from "./schema.ts";
import { everySlot, slot } from "./slots.ts";

export function tokenStore({ db, tables: { tokens }, one, all, run }: Dialect) {
  const findByHash = one(
    db
      .select()
      .from(tokens)
      .where(eq(tokens.tokenHash, slot("tokenHash"))),
  );
  const find = one(
    db
      .select()
      .from(tokens)
      .where(eq(tokens.id, slot("id"))),
  );
  const ofProject = one(
    db
      .select({ id: tokens.id })
      .from(tokens)
      .where(and(eq(tokens.project, slot("project")), sql`scope = 'project'`))
      .limit(1),
  );
  const allOfProject = all(
    db
      .select()
      .from(tokens)
      .where(and(eq(tokens.project, slot("project")), sql`scope = 'project'`)),
  );
  const removeOfProject = run(db.delete(tokens).where(and(eq(tokens.project, slot("project")), sql`scope = 'project'`)));
  const list = all(db.select().from(tokens).orderBy(asc(tokens.id)).limit(slot("limit")));
  const insert = run(db.insert(tokens).values(everySlot(tokens)));
  const revoke = run(
    db
      .update(tokens)
      .set({ revokedAt: slot("at"), revokedBy: slot("by") })
      .where(eq(tokens.id, slot("id"))),
  );
  const used = run(
    db
      .update(tokens)
      .set({ lastUsedAt: slot("at") })
      .where(eq(tokens.id, slot("id"))),
  );
  return {
    findByHash: (tokenHash: string) => findByHash({ tokenHash }),
    find: (id: string) => find({ id }),
    /** Whether the project ever had a token of its own: then nobody passes without one, also when it was revoked or has expired. */
    hasProjectToken: async (project: string) => (await ofProject({ project })) !== undefined,
    /** The tokens of its own that a project had, also those that have ended. */
    ofProject: (project: string) => allOfProject({ project }),
    /** Forgets them all, so that the project is as one that never had any. */
    removeOfProject: (project: string) => removeOfProject({ project }),
    list: (limit: number) => list({ limit }),
    insert: (row: TokenRow) => insert(row),
    revoke: (id: string, at: number, by: string) => revoke({ id, at, by }),
    used: (id: string, at: number) => used({ id, at }),
  };
}
