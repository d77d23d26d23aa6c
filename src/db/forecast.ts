// What retention will delete: rows of each kind that are due by a time, found by the same indexes and counted no further than asked.
import { and, asc, eq, lt, type SQL, sql } from "drizzle-orm";
import type { Dialect } from "./dialect.ts";
import { slot } from "./slots.ts";

/** `rows` stops where the caller said; `bytes` are those of their texts and records, without indexes. */
export type Due = { rows: number; bytes: number };
/** Kinds of rows whose end is a time in a column with an index. */
export const TIMED = [
  "messages",
  "leaseHolders",
  "workflowRuns",
  "contextItems",
  "runtimeCommands",
  "approvals",
  "alerts",
  "syncConflicts",
  "webhookDeliveries",
  "webhookArrivals",
  "syncRuns",
  "runtimes",
  "audit",
  "sessions",
] as const;
export type Timed = (typeof TIMED)[number];
/** Kinds of rows that are kept project by project. */
export type ByProject = "events" | "costSums";

type Column = Parameters<typeof lt>[0];
/** `size`: the bytes that a row gives back. */
type Rule = { table: unknown; at: Column; ended?: SQL; size: SQL };

export function forecastStore(dialect: Dialect) {
  const { db, tables, all } = dialect;
  const rules = rulesOf(tables);
  const prepared = Object.fromEntries(
    TIMED.map((kind) => {
      const { table, at, ended, size } = rules[kind];
      const rows = db
        .select({ size: sql<number>`${size}`.as("size") })
        .from(table as typeof tables.messages)
        .where(and(ended, lt(at, slot("before"))))
        .limit(slot("limit"))
        .as("due");
      const due = all(db.select({ rows: sql<number>`count(*)`, bytes: sql<number>`coalesce(sum(size), 0)` }).from(rows));
      const oldest = all(
        db
          .select({ at: sql<number>`${at}`.as("ended") })
          .from(table as typeof tables.messages)
          .where(and(ended, sql`${at} is not null`))
          .orderBy(asc(at as typeof tables.messages.endedAt))
          .limit(1),
      );
      return [kind, { due, oldest }];
    }),
  );
  return {
    /** Rows of a kind that ended before a time, counted up to `limit`. */
    due: async (kind: Timed, before: number, limit: number): Promise<Due> => numbersOf(await prepared[kind]!.due({ before, limit })),
    /** When the row of a kind ended that ended first. */
    oldest: async (kind: Timed): Promise<number | undefined> => {
      const [row] = await prepared[kind]!.oldest();
      return row ? Number(row.at) : undefined;
    },
    ...ofProjects(dialect),
  };
}

/** A row's share of the file beside its texts, and an event of a run: roughly. */
const ROW_BYTES = sql`120`;
const EVENT_BYTES = sql`1000`;
const sizeOf = (...texts: readonly Column[]): SQL => sql.join([ROW_BYTES, ...texts.map((text) => sql`coalesce(octet_length(${text}), 0)`)], sql` + `);
const numbersOf = (rows: { rows: number; bytes: number }[]): Due => ({ rows: Number(rows[0]?.rows ?? 0), bytes: Number(rows[0]?.bytes ?? 0) });

/** Conditions name the columns of partial indexes the way those indexes do, so that SQLite's planner takes them. */
function rulesOf(tables: Dialect["tables"]): Record<Timed, Rule> {
  const { messages, leases, workflowRuns, contextItems, runtimeCommands, approvals, alerts, syncConflicts } = tables;
  const { webhookDeliveries, webhookArrivals, syncRuns, runtimePresence, audit, sessions } = tables;
  return {
    messages: { table: messages, at: messages.endedAt, ended: sql`ended_at is not null`, size: sizeOf(messages.content, messages.replyContent) },
    leaseHolders: { table: leases, at: leases.freedAt, ended: sql`holder_id is not null and freed_at is not null`, size: sql`0` },
    workflowRuns: { table: workflowRuns, at: workflowRuns.completedAt, ended: sql`completed_at is not null`, size: sizeOf(workflowRuns.record) },
    contextItems: {
      table: contextItems,
      at: contextItems.validUntil,
      ended: sql`valid_until is not null and status in ('superseded', 'rejected')`,
      size: sizeOf(contextItems.record),
    },
    runtimeCommands: {
      table: runtimeCommands,
      at: runtimeCommands.finishedAt,
      ended: sql`finished_at is not null`,
      size: sizeOf(runtimeCommands.payload),
    },
    approvals: {
      table: approvals,
      at: approvals.decidedAt,
      ended: sql`decided_at is not null and status <> 'pending'`,
      size: sizeOf(approvals.content),
    },
    alerts: { table: alerts, at: alerts.acknowledgedAt, ended: sql`acknowledged_at is not null`, size: sizeOf(alerts.data) },
    syncConflicts: {
      table: syncConflicts,
      at: syncConflicts.acknowledgedAt,
      ended: sql`acknowledged_at is not null`,
      size: sizeOf(syncConflicts.record),
    },
    webhookDeliveries: {
      table: webhookDeliveries,
      at: webhookDeliveries.finishedAt,
      ended: sql`finished_at is not null`,
      size: sizeOf(webhookDeliveries.body),
    },
    webhookArrivals: { table: webhookArrivals, at: webhookArrivals.at, size: sizeOf(webhookArrivals.reason) },
    syncRuns: {
      table: syncRuns,
      at: syncRuns.lastReceivedAt,
      ended: sql`ended_at is not null`,
      size: sql`${sizeOf(syncRuns.projection)} + (${syncRuns.cursor} + ${syncRuns.held}) * ${EVENT_BYTES}`,
    },
    runtimes: { table: runtimePresence, at: runtimePresence.heartbeatAt, size: sizeOf(runtimePresence.report) },
    audit: { table: audit, at: audit.at, size: sizeOf(audit.data) },
    sessions: { table: sessions, at: sessions.expiresAt, size: sizeOf() },
  };
}

function ofProjects({ db, tables: { events, costSums }, all }: Dialect) {
  const eventRows = db
    .select({ at: events.at, size: sql<number>`${ROW_BYTES} + octet_length(${events.data})`.as("size") })
    .from(events)
    .where(eq(events.project, slot("project")))
    .orderBy(asc(events.seq))
    .limit(slot("limit"))
    .as("first");
  const eventsDue = all(
    db
      .select({ rows: sql<number>`count(*)`, bytes: sql<number>`coalesce(sum(size), 0)` })
      .from(eventRows)
      .where(lt(eventRows.at, slot("before"))),
  );
  const costRows = db
    .select({ size: sql<number>`${ROW_BYTES}`.as("size") })
    .from(costSums)
    .where(
      and(
        eq(costSums.project, slot("project")),
        sql`dimension in ('hour', 'day', 'machine', 'agent', 'harness', 'model', 'run')`,
        lt(costSums.at, slot("before")),
      ),
    )
    .limit(slot("limit"))
    .as("due");
  const costsDue = all(db.select({ rows: sql<number>`count(*)`, bytes: sql<number>`coalesce(sum(size), 0)` }).from(costRows));
  return {
    /** The same for rows that are kept project by project. Of the log the oldest `limit` are looked at: it is in the order of time. */
    dueOfProject: async (kind: ByProject, project: string, before: number, limit: number): Promise<Due> =>
      numbersOf(await (kind === "events" ? eventsDue : costsDue)({ project, before, limit })),
  };
}
