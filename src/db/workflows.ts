// Hub workflow runs: the record as the wire shows it, and columns for what rules and screens ask.
import { and, asc, desc, eq, isNotNull, lt, lte, or, type SQL, sql } from "drizzle-orm";
import type { Dialect } from "./dialect.ts";
import type { WorkflowRunRow } from "./schema.ts";
import { everySlot, slot } from "./slots.ts";

export function workflowStore(dialect: Dialect) {
  const { db, tables, one, all, run, locked } = dialect;
  const { workflowRuns: runs } = tables;
  const byId = db
    .select()
    .from(runs)
    .where(eq(runs.id, slot("id")))
    .$dynamic();
  const find = one(byId);
  const lock = one(locked(byId));
  const findByDelivery = one(
    db
      .select()
      .from(runs)
      .where(and(eq(runs.definitionId, slot("definitionId")), eq(runs.deliveryId, slot("deliveryId")))),
  );
  const findByPayload = one(
    db
      .select()
      .from(runs)
      .where(and(eq(runs.definitionId, slot("definitionId")), eq(runs.payloadHash, slot("payloadHash"))))
      .limit(1),
  );
  const findByMessage = one(
    db
      .select()
      .from(runs)
      .where(eq(runs.messageId, slot("messageId")))
      .limit(1),
  );
  const ofCoordinator = all(
    db
      .select()
      .from(runs)
      .where(eq(runs.targetAgentId, slot("agentId")))
      .orderBy(desc(runs.updatedAt))
      .limit(slot("limit")),
  );
  const ofProject = all(
    db
      .select()
      .from(runs)
      .where(and(eq(runs.project, slot("project")), lt(runs.updatedAt, slot("before"))))
      .orderBy(desc(runs.updatedAt), desc(runs.id))
      .limit(slot("limit")),
  );
  const lockDue = all(
    locked(
      db
        .select()
        .from(runs)
        .where(and(lte(runs.waitingUntil, slot("at")), sql`status = 'waiting'`))
        .orderBy(asc(runs.waitingUntil))
        .limit(slot("limit"))
        .$dynamic(),
    ),
  );
  const countOfProject = all(
    db
      .select({ status: runs.status, count: sql<number>`count(*)` })
      .from(runs)
      .where(eq(runs.project, slot("project")))
      .groupBy(runs.status),
  );
  const ended = all(
    db
      .select({ id: runs.id, project: runs.project })
      .from(runs)
      .where(and(isNotNull(runs.completedAt), lte(runs.completedAt, slot("before"))))
      .orderBy(asc(runs.completedAt))
      .limit(slot("limit")),
  );
  const remove = run(db.delete(runs).where(eq(runs.id, slot("id"))));
  const insert = run(db.insert(runs).values(everySlot(runs)));
  const update = run(
    db
      .update(runs)
      .set({
        status: slot("status"),
        messageId: slot("messageId"),
        currentStage: slot("currentStage"),
        waitingUntil: slot("waitingUntil"),
        updatedAt: slot("updatedAt"),
        completedAt: slot("completedAt"),
        record: slot("record"),
      })
      .where(eq(runs.id, slot("id"))),
  );
  return {
    ...workflowHeads(dialect),
    find: (id: string) => find({ id }),
    lock: (id: string) => lock({ id }),
    findByDelivery: (definitionId: string, deliveryId: string) => findByDelivery({ definitionId, deliveryId }),
    findByPayload: (definitionId: string, payloadHash: string) => findByPayload({ definitionId, payloadHash }),
    findByMessage: (messageId: string) => findByMessage({ messageId }),
    ofCoordinator: (agentId: string, limit: number) => ofCoordinator({ agentId, limit }),
    /** Newest update first, before a time. */
    ofProject: (project: string, before: number, limit: number) => ofProject({ project, before, limit }),
    lockDue: (at: number, limit: number) => lockDue({ at, limit }),
    /** Runs by status. Grows with the retained runs of one project, which retention bounds. */
    countByStatus: async (project: string) => new Map((await countOfProject({ project })).map(({ status, count }) => [status, Number(count)])),
    endedBefore: (before: number, limit: number) => ended({ before, limit }),
    remove: (id: string) => remove({ id }),
    insert: (row: WorkflowRunRow) => insert(row),
    update: (row: WorkflowRunRow) => update(row),
  };
}

/** What lists need to put runs in order, without their records. */
export type WorkflowHead = Pick<WorkflowRunRow, "id" | "project" | "definitionId" | "status" | "updatedAt">;

/** Keyset pages of a project's runs, newest change first, of one status or of all. */
function workflowHeads({ db, tables: { workflowRuns: runs }, one, all }: Dialect) {
  const ofProject = eq(runs.project, slot("project"));
  const ofStatus = and(ofProject, eq(runs.status, slot("status")));
  const [at, id] = [slot("at"), slot("id")];
  const older = and(lte(runs.updatedAt, at), or(lt(runs.updatedAt, at), lt(runs.id, id)));
  const { id: _id, project, definitionId, status, updatedAt } = runs;
  const page = (which: SQL | undefined) =>
    all(
      db
        .select({ id: _id, project, definitionId, status, updatedAt })
        .from(runs)
        .where(and(which, older))
        .orderBy(desc(runs.updatedAt), desc(runs.id))
        .limit(slot("limit")),
    );
  const counted = (which: SQL | undefined) => {
    const rows = db.select({ one: sql`1` }).from(runs).where(which).limit(slot("limit")).as("counted");
    return one(db.select({ count: sql<number>`count(*)` }).from(rows));
  };
  const [pageOfProject, pageOfStatus, countOfProject, countOfStatus] = [page(ofProject), page(ofStatus), counted(ofProject), counted(ofStatus)];
  const END = { at: Number.MAX_SAFE_INTEGER, id: "" };
  return {
    heads: (project: string, status: string | undefined, limit: number, after = END): Promise<WorkflowHead[]> =>
      status === undefined ? pageOfProject({ project, limit, ...after }) : pageOfStatus({ project, status, limit, ...after }),
    /** Runs of one status, or all; the count stops at `limit`. */
    count: async (project: string, status: string | undefined, limit: number) =>
      Number((await (status === undefined ? countOfProject({ project, limit }) : countOfStatus({ project, status, limit })))!.count),
  };
}
