// Agents: one row per name and project, found by id (every request) or by folded name (targets).
import { and, asc, eq, sql } from "drizzle-orm";
import type { Dialect } from "./dialect.ts";
import type { AgentRow } from "./schema.ts";
import { everySlot, slot } from "./slots.ts";

export function agentStore({ db, tables: { agents }, one, all, run, locked }: Dialect) {
  const byId = db
    .select()
    .from(agents)
    .where(eq(agents.id, slot("id")))
    .$dynamic();
  const find = one(byId);
  const lock = one(locked(byId));
  const findByName = one(
    db
      .select()
      .from(agents)
      .where(and(eq(agents.project, slot("project")), eq(agents.nameFolded, slot("nameFolded")))),
  );
  const ofProject = all(
    db
      .select()
      .from(agents)
      .where(eq(agents.project, slot("project")))
      .orderBy(asc(agents.nameFolded)),
  );
  const insert = run(db.insert(agents).values(everySlot(agents)));
  const setOnline = run(
    db
      .update(agents)
      .set({ lastSeenAt: slot("at"), online: slot("online") })
      .where(eq(agents.id, slot("id"))),
  );
  const countOnline = one(db.select({ count: sql<number>`count(*)` }).from(agents).where(sql`online = 1`));
  return {
    countOnline: async () => Number((await countOnline())!.count), // bigint arrives as text from PostgreSQL
    find: (id: string) => find({ id }),
    lock: (id: string) => lock({ id }),
    findByName: (project: string, name: string) => findByName({ project, nameFolded: name.toLowerCase() }),
    ofProject: (project: string) => ofProject({ project }),
    insert: (row: AgentRow) => insert(row),
    setOnline: (id: string, online: 0 | 1, at: number) => setOnline({ id, online, at }),
  };
}
