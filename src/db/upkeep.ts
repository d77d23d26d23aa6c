// Backups and checks that were started from a page. Few rows: at most one runs, and the oldest ended ones go.
import { desc, eq, inArray, sql } from "drizzle-orm";
import type { Dialect } from "./dialect.ts";
import type { UpkeepRow } from "./schema.ts";
import { everySlot, slot } from "./slots.ts";

export function upkeepStore({ db, tables: { upkeepJobs: jobs }, one, all, run, now, locked }: Dialect) {
  const find = one(
    locked(
      db
        .select()
        .from(jobs)
        .where(eq(jobs.id, slot("id")))
        .$dynamic(),
    ),
  );
  const running = one(db.select().from(jobs).where(sql`state = 'running'`).limit(1));
  const newest = all(db.select().from(jobs).orderBy(desc(jobs.id)).limit(slot("limit")));
  const insert = run(db.insert(jobs).values(everySlot(jobs)));
  const update = run(
    db
      .update(jobs)
      .set({
        state: slot("state"),
        step: slot("step"),
        done: slot("done"),
        total: slot("total"),
        updatedAt: slot("updatedAt"),
        finishedAt: slot("finishedAt"),
        outcome: slot("outcome"),
      })
      .where(eq(jobs.id, slot("id"))),
  );
  return {
    /** Locked for this write. */
    lock: (id: string): Promise<UpkeepRow | undefined> => find({ id }),
    running: (): Promise<UpkeepRow | undefined> => running(),
    /** The newest first. */
    newest: (limit: number): Promise<UpkeepRow[]> => newest({ limit }),
    insert: (row: UpkeepRow) => insert(row),
    update: (row: UpkeepRow) => update(row),
    /** Removes the given ended jobs. */
    forget: (ids: readonly string[]) =>
      now(
        db
          .delete(jobs)
          .where(inArray(jobs.id, [...ids]))
          .returning({ id: jobs.id }),
      ),
  };
}
