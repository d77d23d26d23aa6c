// `kxm doctor`: what an operator wants to know about a store in numbers, over a connection that only reads, also while hubs serve it.
import { lstatSync, statfsSync } from "node:fs";
import { dirname } from "node:path";
import { AUDIT_RETENTION_MS, EVENT_RETENTION_MS, WAL_BYTES_MAX } from "../protocol/limits.ts";
import { DAY_MS } from "../protocol/time.ts";
import { type Ask, type Asking, askPostgres, askSqlite } from "./ask.ts";
import { type Holder, readHolder } from "./holder.ts";
import { MIGRATIONS } from "./migrate.ts";

/** A table that grows by itself, and where that leads. Times in ms. */
export type Growth = {
  table: string;
  rows: number;
  /** Of the oldest row, or null for an empty table. */
  oldestAt: number | null;
  /** Rows of the last 24 hours. */
  rowsPerDay: number;
  /** How long rows are kept; null when they are kept for ever. */
  keptMs: number | null;
  /** Rows once as many go as come, at today's pace; null when none ever go. */
  steadyRows: number | null;
};

export type Figures = {
  kind: "sqlite" | "postgres";
  where: string;
  generation: string;
  createdAt: number;
  restores: number;
  schema: { applied: number; known: number };
  version: string;
  bytes: { data: number; wal?: number; unused?: number };
  /** Free space where the data lies; absent for a database server. */
  freeBytes?: number;
  /** The hub that serves the file now. */
  holder?: Holder;
  growth: Growth[];
  /** What an operator should do something about, in sentences. */
  warnings: string[];
};

/** How long ended messages and events are kept, ms. */
export type Kept = { messagesMs: number; eventsMs?: number; auditMs?: number };
const FREE_BYTES_MIN = 1_073_741_824;

/** @param now hub time in ms */
export async function figuresOfFile(path: string, now: number, kept: Kept): Promise<Figures> {
  await using asking = askSqlite(path);
  const number = async (sql: string) => Number(Object.values((await asking.ask(sql))[0]!)[0]);
  const { bsize, bavail } = statfsSync(dirname(path));
  const pageBytes = await number("pragma page_size");
  const holder = readHolder(path);
  const figures = {
    ...(await common(asking, now, kept)),
    version: `SQLite ${Object.values((await asking.ask("select sqlite_version() as v"))[0]!)[0]}`,
    bytes: {
      data: lstatSync(path).size,
      wal: lstatSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0,
      unused: pageBytes * (await number("pragma freelist_count")),
    },
    freeBytes: bsize * bavail,
    ...(holder && { holder }),
  };
  return { ...figures, warnings: warningsOf(figures) };
}

/** @param now hub time in ms */
export async function figuresOfDatabase(url: string, now: number, kept: Kept): Promise<Figures> {
  await using asking = askPostgres(url);
  const [facts] = await asking.ask(
    "select pg_database_size(current_database()) as bytes, current_setting('server_version') as version, current_setting('fsync') as fsync",
  );
  const figures = { ...(await common(asking, now, kept)), version: `PostgreSQL ${facts!["version"]}`, bytes: { data: Number(facts!["bytes"]) } };
  const warnings = warningsOf(figures);
  if (facts!["fsync"] !== "on") warnings.push("The server runs with fsync = off: a power cut loses acknowledged writes.");
  return { ...figures, warnings };
}

async function common({ kind, where, ask }: Asking, now: number, kept: Kept) {
  const meta = new Map(
    (await ask("select key, value from meta where key in ('generation', 'created_at', 'restores')")).map((row) => [row["key"], String(row["value"])]),
  );
  const [{ n: applied } = { n: 0 }] = await ask("select count(*) as n from migrations");
  return {
    kind,
    where,
    generation: meta.get("generation") ?? "",
    createdAt: Number(meta.get("created_at") ?? 0),
    restores: Number(meta.get("restores") ?? 0),
    schema: { applied: Number(applied), known: MIGRATIONS.length },
    growth: await growthOf(ask, now, kept),
  };
}

async function growthOf(ask: Ask, now: number, { messagesMs, eventsMs = EVENT_RETENTION_MS, auditMs = AUDIT_RETENTION_MS }: Kept): Promise<Growth[]> {
  const tables: { table: string; at: string; keptMs: number | null }[] = [
    { table: "messages", at: "created_at", keptMs: messagesMs },
    { table: "events", at: "at", keptMs: eventsMs },
    { table: "audit", at: "at", keptMs: auditMs },
    { table: "sync_events", at: "received_at", keptMs: null },
    { table: "workflow_journal", at: "created_at", keptMs: messagesMs },
    { table: "alerts", at: "raised_at", keptMs: null },
  ];
  const growth: Growth[] = [];
  for (const { table, at, keptMs } of tables) {
    const [row] = await ask(
      `select count(*) as n, min(${at}) as oldest, count(case when ${at} > $1 then 1 end) as fresh from ${table}`,
      now - DAY_MS,
    );
    const rowsPerDay = Number(row!["fresh"]);
    const oldestAt = row!["oldest"] === null ? null : Number(row!["oldest"]);
    growth.push({
      table,
      rows: Number(row!["n"]),
      oldestAt,
      rowsPerDay,
      keptMs,
      steadyRows: keptMs === null ? null : Math.round(rowsPerDay * (keptMs / DAY_MS)),
    });
  }
  return growth;
}

function warningsOf({ schema, bytes, freeBytes }: Pick<Figures, "schema" | "bytes" | "freeBytes">): string[] {
  const warnings: string[] = [];
  if (schema.applied < schema.known) warnings.push("The schema is older than this kxm: start the hub once to bring it up (it makes a backup first).");
  if (schema.applied > schema.known) warnings.push("The schema is newer than this kxm: install the newer one again.");
  if ((bytes.wal ?? 0) > WAL_BYTES_MAX)
    warnings.push("The write-ahead log is over its cap: some program keeps reading an old state of the data file. End it.");
  if (freeBytes !== undefined && freeBytes < Math.max(FREE_BYTES_MIN, bytes.data)) {
    warnings.push("There is less free space than a backup or a restore beside the data file needs.");
  }
  return warnings;
}
