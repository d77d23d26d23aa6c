// Approvals: what a run asks of a person, and what was decided.
import { and, asc, desc, eq, gt, gte, isNotNull, lt, lte, or, sql } from "drizzle-orm";
import type { Dialect } from "./dialect.ts";
import type { ApprovalRow } from "./schema.ts";
import { everySlot, slot } from "./slots.ts";

/** Where a page begins: behind this approval of the page before. */
export type ApprovalCursor = { at: number; id: string };
const BEGINNING: ApprovalCursor = { at: -1, id: "" };
const END: ApprovalCursor = { at: Number.MAX_SAFE_INTEGER, id: "" };

export function approvalStore({ db, tables: { approvals }, one, all, run, locked }: Dialect) {
  const byId = db
    .select()
    .from(approvals)
    .where(eq(approvals.id, slot("id")))
    .$dynamic();
  const find = one(byId);
  const lock = one(locked(byId));
  const insert = run(db.insert(approvals).values(everySlot(approvals)));
  const update = run(
    db
      .update(approvals)
      .set({
        stepId: slot("stepId"),
        attempt: slot("attempt"),
        title: slot("title"),
        content: slot("content"),
        contentHash: slot("contentHash"),
        status: slot("status"),
        requestedAt: slot("requestedAt"),
        decidedAt: slot("decidedAt"),
        decidedBy: slot("decidedBy"),
        reason: slot("reason"),
        commandId: slot("commandId"),
        updatedAt: slot("updatedAt"),
      })
      .where(eq(approvals.id, slot("id"))),
  );
  const ofProject = eq(approvals.project, slot("project"));
  const ofStatus = and(ofProject, eq(approvals.status, slot("status")));
  const [at, id] = [slot("at"), slot("id")];
  const older = and(lte(approvals.requestedAt, at), or(lt(approvals.requestedAt, at), lt(approvals.id, id)));
  const newer = and(gte(approvals.requestedAt, at), or(gt(approvals.requestedAt, at), gt(approvals.id, id)));
  const newestFirst = [desc(approvals.requestedAt), desc(approvals.id)];
  const page = all(
    db
      .select()
      .from(approvals)
      .where(and(ofProject, older))
      .orderBy(...newestFirst)
      .limit(slot("limit")),
  );
  const pageOfStatus = all(
    db
      .select()
      .from(approvals)
      .where(and(ofStatus, older))
      .orderBy(...newestFirst)
      .limit(slot("limit")),
  );
  const pendingPage = all(
    db.select().from(approvals).where(and(ofStatus, newer)).orderBy(asc(approvals.requestedAt), asc(approvals.id)).limit(slot("limit")),
  );
  const ofRun = all(
    db
      .select()
      .from(approvals)
      .where(and(eq(approvals.projectId, slot("projectId")), eq(approvals.runId, slot("runId"))))
      .orderBy(desc(approvals.requestedAt))
      .limit(slot("limit")),
  );
  const decided = all(
    db
      .select()
      .from(approvals)
      .where(and(ofProject, isNotNull(approvals.decidedAt), lte(approvals.decidedAt, at), or(lt(approvals.decidedAt, at), lt(approvals.id, id))))
      .orderBy(desc(approvals.decidedAt), desc(approvals.id))
      .limit(slot("limit")),
  );
  const counted = db.select({ one: sql`1` }).from(approvals).where(ofStatus).limit(slot("limit")).as("counted");
  const countPending = one(db.select({ count: sql<number>`count(*)` }).from(counted));
  return {
    find: (id: string) => find({ id }),
    lock: (id: string) => lock({ id }),
    insert: (row: ApprovalRow) => insert(row),
    update: (row: ApprovalRow) => update(row),
    /** What waits for a decision, longest first. */
    pendingPage: (project: string, limit: number, after = BEGINNING) => pendingPage({ project, status: "pending", limit, ...after }),
    /** Newest first, of one status or of all. */
    page: (project: string, status: ApprovalRow["status"] | undefined, limit: number, after = END) =>
      status ? pageOfStatus({ project, status, limit, ...after }) : page({ project, limit, ...after }),
    /** Decided ones, last decided first. The cursor's time is that of the decision. */
    decided: (project: string, limit: number, after = END) => decided({ project, limit, ...after }),
    /** Approvals of one run, newest first. */
    ofRun: (projectId: string, runId: string, limit: number) => ofRun({ projectId, runId, limit }),
    /** Pending ones of a project; the count stops at `limit`. */
    countPending: async (project: string, limit: number) => Number((await countPending({ project, status: "pending", limit }))!.count),
  };
}
