// Synced runs and their events. A run's row carries its cursor and what its gapless events come to, so ingest costs the same for the first event and
// for the millionth.
import { and, asc, between, desc, eq, gt, gte, inArray, lt, lte, or, sql } from "drizzle-orm";
import type { Dialect } from "./dialect.ts";
import type { SyncEventRow, SyncRunRow } from "./schema.ts";
import { everySlot, slot } from "./slots.ts";

export function syncStore(dialect: Dialect) {
  return { ...ownerRows(dialect), ...runRows(dialect), ...runPages(dialect), ...runHeads(dialect), ...eventRows(dialect) };
}

function ownerRows({ db, tables: { syncProjects }, one, run }: Dialect) {
  const owner = one(
    db
      .select()
      .from(syncProjects)
      .where(eq(syncProjects.projectId, slot("projectId"))),
  );
  const claim = run(db.insert(syncProjects).values(everySlot(syncProjects)));
  return {
    owner: (projectId: string) => owner({ projectId }),
    claim: (row: { projectId: string; project: string; claimedAt: number }) => claim(row),
  };
}

function runRows({ db, tables: { syncRuns }, one, run, locked }: Dialect) {
  const ofRun = and(eq(syncRuns.projectId, slot("projectId")), eq(syncRuns.runId, slot("runId")));
  const byKey = db.select().from(syncRuns).where(ofRun).$dynamic();
  const findRun = one(byKey);
  const lockRun = one(locked(byKey));
  const insertRun = run(db.insert(syncRuns).values(everySlot(syncRuns)));
  const updateRun = run(
    db
      .update(syncRuns)
      .set({
        cursor: slot("cursor"),
        held: slot("held"),
        heldBytes: slot("heldBytes"),
        lastReceivedAt: slot("lastReceivedAt"),
        workflowId: slot("workflowId"),
        displayTitle: slot("displayTitle"),
        status: slot("status"),
        stepId: slot("stepId"),
        startedAt: slot("startedAt"),
        updatedAt: slot("updatedAt"),
        endedAt: slot("endedAt"),
        projection: slot("projection"),
        retryOf: slot("retryOf"),
      })
      .where(ofRun),
  );
  return {
    findRun: (projectId: string, runId: string) => findRun({ projectId, runId }),
    lockRun: (projectId: string, runId: string) => lockRun({ projectId, runId }),
    insertRun: (row: SyncRunRow) => insertRun(row),
    updateRun: (row: SyncRunRow) => updateRun(row),
  };
}

/** Where a page of runs begins: behind this run of the page before. */
export type RunCursor = { at: number; runId: string };
const FIRST_PAGE: RunCursor = { at: Number.MAX_SAFE_INTEGER, runId: "" };

function runPages({ db, tables: { syncRuns }, one, all }: Dialect) {
  const ofProject = eq(syncRuns.project, slot("project"));
  const ofStatus = and(ofProject, eq(syncRuns.status, slot("status")));
  const ofRuntime = and(ofProject, eq(syncRuns.homeRuntimeId, slot("runtimeId")));
  const page = (where: typeof ofStatus) =>
    all(
      db
        .select()
        .from(syncRuns)
        .where(and(where, lte(syncRuns.lastReceivedAt, slot("at")), or(lt(syncRuns.lastReceivedAt, slot("at")), lt(syncRuns.runId, slot("runId")))))
        .orderBy(desc(syncRuns.lastReceivedAt), desc(syncRuns.runId))
        .limit(slot("limit")),
    );
  const retries = all(
    db
      .select()
      .from(syncRuns)
      .where(and(eq(syncRuns.projectId, slot("projectId")), eq(syncRuns.retryOf, slot("runId"))))
      .orderBy(desc(syncRuns.lastReceivedAt))
      .limit(slot("limit")),
  );
  const [pageOfProject, pageOfStatus, pageOfRuntime] = [page(ofProject), page(ofStatus), page(ofRuntime)];
  const counted = (where: typeof ofStatus) => {
    const rows = db.select({ one: sql`1` }).from(syncRuns).where(where).limit(slot("limit")).as("counted");
    return one(db.select({ count: sql<number>`count(*)` }).from(rows));
  };
  const [countOfProject, countOfStatus, countOfRuntime] = [counted(ofProject), counted(ofStatus), counted(ofRuntime)];
  const hour = sql<number>`${syncRuns.endedAt} / 3600000`;
  const endedByHour = all(
    db
      .select({ hour: hour.as("hour"), status: syncRuns.status, count: sql<number>`count(*)`.as("count") })
      .from(syncRuns)
      .where(and(ofProject, gte(syncRuns.endedAt, slot("since"))))
      .groupBy(hour, syncRuns.status),
  );
  const nextRuntime = one(
    db
      .select({ id: syncRuns.homeRuntimeId })
      .from(syncRuns)
      .where(and(ofProject, gt(syncRuns.homeRuntimeId, slot("after"))))
      .orderBy(asc(syncRuns.homeRuntimeId))
      .limit(1),
  );
  const number = async (count: Promise<{ count: number } | undefined>) => Number((await count)!.count);
  return {
    runsOfProject: (project: string, limit: number, after = FIRST_PAGE) => pageOfProject({ project, limit, ...after }),
    runsOfStatus: (project: string, status: string, limit: number, after = FIRST_PAGE) => pageOfStatus({ project, status, limit, ...after }),
    runsOfRuntime: (project: string, runtimeId: string, limit: number, after = FIRST_PAGE) => pageOfRuntime({ project, runtimeId, limit, ...after }),
    /** The runs that do the work of a run again, the one that moved last first. */
    retriesOf: (projectId: string, runId: string, limit: number) => retries({ projectId, runId, limit }),
    /** Counts stop at `limit`. */
    countRuns: (project: string, limit: number) => number(countOfProject({ project, limit })),
    countRunsOfStatus: (project: string, status: string, limit: number) => number(countOfStatus({ project, status, limit })),
    countRunsOfRuntime: (project: string, runtimeId: string, limit: number) => number(countOfRuntime({ project, runtimeId, limit })),
    /** Runs that ended since a time, by hour (since 1970) and by what they came to. Reads one entry of an index per run. */
    endedByHour: async (project: string, since: number) =>
      (await endedByHour({ project, since })).map((row) => ({ ...row, hour: Number(row.hour), count: Number(row.count) })),
    /** The Runtimes that have runs in a project, one by one in the order of their ids. */
    nextRuntimeWithRuns: async (project: string, after: string) => (await nextRuntime({ project, after }))?.id,
  };
}

/** What lists need to put runs in order and to filter them, without their projections. */
export type RunHead = Pick<
  SyncRunRow,
  "projectId" | "runId" | "project" | "homeRuntimeId" | "lastReceivedAt" | "status" | "workflowId" | "displayTitle"
>;

function runHeads({ db, tables: { syncRuns }, one, all }: Dialect) {
  const { projectId, runId, project, homeRuntimeId, lastReceivedAt, status, workflowId, displayTitle } = syncRuns;
  const ofProject = eq(project, slot("project"));
  const older = and(lte(lastReceivedAt, slot("at")), or(lt(lastReceivedAt, slot("at")), lt(runId, slot("runId"))));
  const held = sql`${syncRuns.held} > 0`;
  const page = (which: typeof older) =>
    all(
      db
        .select({ projectId, runId, project, homeRuntimeId, lastReceivedAt, status, workflowId, displayTitle })
        .from(syncRuns)
        .where(and(ofProject, which, older))
        .orderBy(desc(lastReceivedAt), desc(runId))
        .limit(slot("limit")),
    );
  const [ofAll, ofStatus, ofRuntime] = [page(undefined), page(eq(status, slot("status"))), page(eq(homeRuntimeId, slot("runtimeId")))];
  const gaps = all(
    db
      .select()
      .from(syncRuns)
      .where(and(ofProject, held, older))
      .orderBy(desc(lastReceivedAt), desc(runId))
      .limit(slot("limit")),
  );
  const gapRows = db.select({ one: sql`1` }).from(syncRuns).where(and(ofProject, held)).limit(slot("limit")).as("counted");
  const countGaps = one(db.select({ count: sql<number>`count(*)` }).from(gapRows));
  return {
    /** A page of a project's runs, newest change first: of one status, of one Runtime, or all. */
    heads: (project: string, of: { status?: string; runtimeId?: string }, limit: number, after = FIRST_PAGE): Promise<RunHead[]> => {
      if (of.status !== undefined) return ofStatus({ project, status: of.status, limit, ...after });
      return of.runtimeId === undefined ? ofAll({ project, limit, ...after }) : ofRuntime({ project, runtimeId: of.runtimeId, limit, ...after });
    },
    /** Runs with events that wait for a missing one, newest change first. */
    gaps: (project: string, limit: number, after = FIRST_PAGE) => gaps({ project, limit, ...after }),
    /** The same, counted up to `limit`. */
    countGaps: async (project: string, limit: number) => Number((await countGaps({ project, limit }))!.count),
  };
}

function eventRows({ db, tables: { syncEvents }, one, all, insertAll, now }: Dialect) {
  const ofRun = and(eq(syncEvents.projectId, slot("projectId")), eq(syncEvents.runId, slot("runId")));
  const eventsAfter = all(
    db
      .select()
      .from(syncEvents)
      .where(and(ofRun, gt(syncEvents.sequence, slot("after"))))
      .orderBy(asc(syncEvents.sequence))
      .limit(slot("limit")),
  );
  const eventsBefore = all(
    db
      .select()
      .from(syncEvents)
      .where(and(ofRun, lt(syncEvents.sequence, slot("before"))))
      .orderBy(desc(syncEvents.sequence))
      .limit(slot("limit")),
  );
  const find = one(
    db
      .select()
      .from(syncEvents)
      .where(and(ofRun, eq(syncEvents.sequence, slot("sequence")))),
  );
  const next = one(
    db
      .select({ sequence: syncEvents.sequence })
      .from(syncEvents)
      .where(and(ofRun, gt(syncEvents.sequence, slot("after"))))
      .orderBy(asc(syncEvents.sequence))
      .limit(1),
  );
  const hashColumns = { sequence: syncEvents.sequence, hash: syncEvents.hash };
  const hashesBetween = all(
    db
      .select(hashColumns)
      .from(syncEvents)
      .where(and(ofRun, between(syncEvents.sequence, slot("first"), slot("last")))),
  );
  const insertEvents = insertAll(syncEvents);
  return {
    insertEvents: (rows: SyncEventRow[]) => insertEvents(rows),
    findEvent: (projectId: string, runId: string, sequence: number) => find({ projectId, runId, sequence }),
    eventsAfter: (projectId: string, runId: string, after: number, limit: number) => eventsAfter({ projectId, runId, after, limit }),
    /** Newest first. */
    eventsBefore: (projectId: string, runId: string, before: number, limit: number) => eventsBefore({ projectId, runId, before, limit }),
    nextSequence: async (projectId: string, runId: string, after: number) => (await next({ projectId, runId, after }))?.sequence,
    hashesBetween: (projectId: string, runId: string, first: number, last: number) => hashesBetween({ projectId, runId, first, last }),
    /** For sequences far apart; costs more than a range. */
    hashesOf: (projectId: string, runId: string, sequences: number[]) =>
      now(
        db
          .select(hashColumns)
          .from(syncEvents)
          .where(and(eq(syncEvents.projectId, projectId), eq(syncEvents.runId, runId), inArray(syncEvents.sequence, sequences))),
      ),
  };
}
