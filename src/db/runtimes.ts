// Runtimes as they report themselves: one row per hub project and Runtime.
import { and, asc, eq } from "drizzle-orm";
import type { Dialect } from "./dialect.ts";
import type { RuntimeRow } from "./schema.ts";
import { everySlot, slot } from "./slots.ts";

export function runtimeStore({ db, tables: { runtimePresence }, one, all, run, locked }: Dialect) {
  const ofRuntime = and(eq(runtimePresence.project, slot("project")), eq(runtimePresence.runtimeId, slot("runtimeId")));
  const byKey = db.select().from(runtimePresence).where(ofRuntime).$dynamic();
  const find = one(byKey);
  const lock = one(locked(byKey));
  const insert = run(db.insert(runtimePresence).values(everySlot(runtimePresence)));
  const update = run(
    db
      .update(runtimePresence)
      .set({ host: slot("host"), version: slot("version"), heartbeatAt: slot("heartbeatAt"), report: slot("report") })
      .where(ofRuntime),
  );
  const beat = run(
    db
      .update(runtimePresence)
      .set({ heartbeatAt: slot("heartbeatAt") })
      .where(ofRuntime),
  );
  const ofProject = all(
    db
      .select()
      .from(runtimePresence)
      .where(eq(runtimePresence.project, slot("project")))
      .orderBy(asc(runtimePresence.runtimeId))
      .limit(slot("limit")),
  );
  return {
    find: (project: string, runtimeId: string) => find({ project, runtimeId }),
    lock: (project: string, runtimeId: string) => lock({ project, runtimeId }),
    insert: (row: RuntimeRow) => insert(row),
    update: (row: RuntimeRow) => update(row),
    /** A heartbeat that says nothing new. */
    beat: (project: string, runtimeId: string, heartbeatAt: number) => beat({ project, runtimeId, heartbeatAt }),
    ofProject: (project: string, limit: number) => ofProject({ project, limit }),
  };
}
