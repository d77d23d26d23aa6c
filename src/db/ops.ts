// What the ops snapshot and the metrics ask of the store: newest few and capped counts, each by an index of its own.
import { and, asc, desc, eq, gt, lte, sql } from "drizzle-orm";
import type { Dialect } from "./dialect.ts";
import { slot } from "./slots.ts";

export function opsStore({ db, tables: { messages, workflowRuns, workflowJournal, agents }, one, all }: Dialect) {
  const open = eq(messages.isOpen, 1);
  const openMessages = all(
    db
      .select({
        id: messages.id,
        status: messages.status,
        fromName: messages.senderName,
        toName: messages.recipientName,
        delivery: messages.delivery,
        createdAt: messages.createdAt,
        correlationId: messages.correlationId,
      })
      .from(messages)
      .where(and(eq(messages.project, slot("project")), open, gt(messages.expiresAt, slot("now"))))
      .orderBy(desc(messages.id))
      .limit(slot("limit")),
  );
  const number = (query: () => Promise<{ count: number } | undefined>) => query().then((row) => Number(row!.count));
  const countedMessages = db
    .select({ one: sql`1`.as("one") })
    .from(messages)
    .where(and(eq(messages.project, slot("project")), open))
    .limit(slot("limit"))
    .as("counted");
  const countOpen = one(db.select({ count: sql<number>`count(*)` }).from(countedMessages));
  const runs = all(
    db
      .select()
      .from(workflowRuns)
      .where(eq(workflowRuns.project, slot("project")))
      .orderBy(desc(workflowRuns.updatedAt), desc(workflowRuns.id))
      .limit(slot("limit")),
  );
  const countedRuns = db
    .select({ one: sql`1`.as("one") })
    .from(workflowRuns)
    .where(eq(workflowRuns.project, slot("project")))
    .limit(slot("limit"))
    .as("counted");
  const countRuns = one(db.select({ count: sql<number>`count(*)` }).from(countedRuns));
  const plans = all(
    db
      .select({
        id: workflowJournal.id,
        runId: workflowJournal.runId,
        summary: workflowJournal.summary,
        createdAt: workflowJournal.createdAt,
        stageId: workflowJournal.stageId,
        severity: workflowJournal.severity,
      })
      .from(workflowJournal)
      .where(and(eq(workflowJournal.project, slot("project")), eq(workflowJournal.category, slot("category"))))
      .orderBy(desc(workflowJournal.id))
      .limit(slot("limit")),
  );
  const offline = all(
    db
      .select()
      .from(agents)
      .where(and(eq(agents.project, slot("project")), sql`online = 0`))
      .orderBy(agents.nameFolded)
      .limit(slot("limit")),
  );
  const dueWaits = all(
    db
      .select({ id: workflowRuns.id, project: workflowRuns.project })
      .from(workflowRuns)
      .where(and(lte(workflowRuns.waitingUntil, slot("at")), sql`status = 'waiting'`))
      .orderBy(asc(workflowRuns.waitingUntil))
      .limit(slot("limit")),
  );
  const retained = one(db.select({ count: sql<number>`count(*)` }).from(messages));
  return {
    /** Open messages that are not overdue, newest first. */
    openMessages: (project: string, now: number, limit: number) => openMessages({ project, now, limit }),
    /** The count stops at `limit`. */
    countOpenMessages: (project: string, limit: number) => number(() => countOpen({ project, limit })),
    runs: (project: string, limit: number) => runs({ project, limit }),
    countRuns: (project: string, limit: number) => number(() => countRuns({ project, limit })),
    plans: (project: string, limit: number) => plans({ project, category: "plan", limit }),
    /** Agents that are offline, by name. */
    offline: (project: string, limit: number) => offline({ project, limit }),
    /** Workflow runs whose wait is over, longest overdue first. */
    dueWaits: (at: number, limit: number) => dueWaits({ at, limit }),
    /** All retained messages. Reads a whole index: ask rarely. */
    countMessages: () => number(() => retained()),
  };
}
