// Agents: one row per name and project, found by id (every request) or by folded name (targets).
import { and, asc, eq, sql } from "drizzle-orm";
import type { Dialect } from "./dialect.ts";
import type { AgentRow } from "./schema.ts";
import { everySlot, slot } from "./slots.ts";

export function agentStore({ db, tables: { agents }, one, all, run }: Dialect) {
  const find = one(
    db
      .select()
      .from(agents)
      .where(eq(agents.id, slot("id"))),
  );
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
      .orderBy(asc(agents.name)),
  );
  const insert = run(db.insert(agents).values(everySlot(agents)));
  const touch = run(
    db
      .update(agents)
      .set({ lastSeenAt: slot("at"), online: sql`1` })
      .where(eq(agents.id, slot("id"))),
  );
  return {
    find: (id: string) => find({ id }),
    findByName: (project: string, name: string) => findByName({ project, nameFolded: name.toLowerCase() }),
    ofProject: (project: string) => ofProject({ project }),
    insert: (row: AgentRow) => insert(row),
    touch: (id: string, at: number) => touch({ id, at }),
  };
}
