// Commands for Runtimes. seq is gapless per hub project and Runtime: its counter row is locked until the command that took the number is committed.
import { and, asc, desc, eq, gt, isNull, lt, lte, sql } from "drizzle-orm";
import type { Dialect } from "./dialect.ts";
import type { CommandRow } from "./schema.ts";
import { everySlot, slot } from "./slots.ts";

export function commandStore({ db, tables: { runtimeCommands, runtimeCounters }, one, all, run, locked }: Dialect) {
  const takeSeq = one(
    db
      .insert(runtimeCounters)
      .values({ project: slot("project"), runtimeId: slot("runtimeId"), lastSeq: 1 })
      .onConflictDoUpdate({
        target: [runtimeCounters.project, runtimeCounters.runtimeId],
        set: { lastSeq: sql`${runtimeCounters.lastSeq} + 1` },
      })
      .returning({ seq: runtimeCounters.lastSeq }),
  );
  const byId = db
    .select()
    .from(runtimeCommands)
    .where(eq(runtimeCommands.id, slot("id")))
    .$dynamic();
  const find = one(byId);
  const lock = one(locked(byId));
  const findByKey = one(
    db
      .select()
      .from(runtimeCommands)
      .where(
        and(eq(runtimeCommands.project, slot("project")), eq(runtimeCommands.actor, slot("actor")), eq(runtimeCommands.idempotencyKey, slot("key"))),
      ),
  );
  const insert = run(db.insert(runtimeCommands).values(everySlot(runtimeCommands)));
  const settle = run(
    db
      .update(runtimeCommands)
      .set({ state: slot("state"), result: slot("result"), receivedAt: slot("receivedAt"), finishedAt: slot("finishedAt") })
      .where(eq(runtimeCommands.id, slot("id"))),
  );
  const ofRuntime = and(eq(runtimeCommands.project, slot("project")), eq(runtimeCommands.runtimeId, slot("runtimeId")));
  const open = all(
    db
      .select()
      .from(runtimeCommands)
      .where(and(ofRuntime, isNull(runtimeCommands.finishedAt), gt(runtimeCommands.seq, slot("after"))))
      .orderBy(asc(runtimeCommands.seq))
      .limit(slot("limit")),
  );
  const ofRun = all(
    db
      .select()
      .from(runtimeCommands)
      .where(and(eq(runtimeCommands.projectId, slot("projectId")), eq(runtimeCommands.runId, slot("runId")), lt(runtimeCommands.seq, slot("before"))))
      .orderBy(desc(runtimeCommands.seq))
      .limit(slot("limit")),
  );
  const due = all(
    db
      .select({ id: runtimeCommands.id, project: runtimeCommands.project })
      .from(runtimeCommands)
      .where(and(sql`state = 'sent'`, lte(runtimeCommands.expiresAt, slot("at"))))
      .limit(slot("limit")),
  );
  return {
    takeSeq: async (project: string, runtimeId: string) => (await takeSeq({ project, runtimeId }))!.seq,
    find: (id: string) => find({ id }),
    lock: (id: string) => lock({ id }),
    findByKey: (project: string, actor: string, key: string) => findByKey({ project, actor, key }),
    insert: (row: CommandRow) => insert(row),
    settle: (row: CommandRow) => settle(row),
    /** Unfinished commands of a Runtime, oldest first. */
    open: (project: string, runtimeId: string, after: number, limit: number) => open({ project, runtimeId, after, limit }),
    /** Commands of a run, newest first. */
    ofRun: (projectId: string, runId: string, before: number, limit: number) => ofRun({ projectId, runId, before, limit }),
    /** Commands that nobody claimed in time. */
    due: (at: number, limit: number) => due({ at, limit }),
  };
}
