// Migrations: SQL for SQLite by hand, forward only, each in one transaction; PostgreSQL runs the same text, translated. An unknown or changed one refuses
// the start. What cannot be translated gets a text of its own (`postgres`); drift.test.ts holds schema.ts and both databases against each other.
import type { Database } from "bun:sqlite";
import { SQL } from "bun";
import { sha256 } from "../protocol/canonical.ts";
import hub from "./migrations/0001_hub.sql" with { type: "text" };
import search from "./migrations/0002_search.sql" with { type: "text" };
import savedViews from "./migrations/0003_saved_views.sql" with { type: "text" };
import costs from "./migrations/0004_costs.sql" with { type: "text" };
import retiredAgents from "./migrations/0005_retired_agents.sql" with { type: "text" };
import contextState from "./migrations/0006_context_state.sql" with { type: "text" };
import upkeep from "./migrations/0007_upkeep.sql" with { type: "text" };
import arrivals from "./migrations/0008_webhook_arrivals.sql" with { type: "text" };
import retries from "./migrations/0009_retries.sql" with { type: "text" };
import searchPostgres from "./migrations/postgres/0002_search.sql" with { type: "text" };
import { StoreRefused } from "./refused.ts";

export type Migration = { name: string; sqlite: string; postgres?: string };
export type Applied = { name: string; hash: string };
type DialectName = "sqlite" | "postgres";

/** In order. A released one never changes. */
export const MIGRATIONS: readonly Migration[] = [
  { name: "0001_hub", sqlite: hub },
  { name: "0002_search", sqlite: search, postgres: searchPostgres },
  { name: "0003_saved_views", sqlite: savedViews },
  { name: "0004_costs", sqlite: costs },
  { name: "0005_retired_agents", sqlite: retiredAgents },
  { name: "0006_context_state", sqlite: contextState },
  { name: "0007_upkeep", sqlite: upkeep },
  { name: "0008_webhook_arrivals", sqlite: arrivals },
  { name: "0009_retries", sqlite: retries },
];
/** Marks a SQLite file as ours ("KXM1"), so that another program's database is never migrated. */
export const APPLICATION_ID = 0x4b58_4d31;
const POSTGRES_LOCK = 7_331; // several hubs may start at once

/** Changes whenever a migration's text does: names what a copy of the schema was made from. */
export const schemaFingerprint = (): string => sha256(MIGRATIONS.map((migration) => textFor(migration, "postgres")).join());

/** What is still to be applied. @throws StoreRefused store_newer, store_migration_changed */
export function checkApplied(applied: Applied[], migrations: readonly Migration[], dialect: DialectName, where: string) {
  applied.forEach(({ name, hash }, index) => {
    const known = migrations[index];
    if (known?.name !== name) {
      throw new StoreRefused("store_newer", `${where} has the migration ${name}, which this kxm does not know`, "Install the newer kxm again.");
    }
    if (sha256(textFor(known, dialect)) === hash) return;
    throw new StoreRefused(
      "store_migration_changed",
      `${where} was made with another text of the migration ${name}`,
      "It comes from an unreleased kxm: use that version, or start with a new KXM_DATA_PATH.",
    );
  });
  return migrations.slice(applied.length).map((migration) => ({ name: migration.name, text: textFor(migration, dialect) }));
}

/** Names of the migrations that a SQLite store still lacks. @throws StoreRefused store_newer, store_migration_changed */
export const pendingSqlite = (database: Database, where: string, migrations: readonly Migration[] = MIGRATIONS): string[] =>
  checkApplied(appliedSqlite(database), migrations, "sqlite", where).map(({ name }) => name);

/**
 * Brings a SQLite store to the current schema.
 * @throws StoreRefused store_newer, store_migration_changed; SQLiteError, then the store is as before that migration
 */
export function migrateSqlite(database: Database, { where, migrations = MIGRATIONS }: { where: string; migrations?: readonly Migration[] }): void {
  const applied = appliedSqlite(database);
  const pending = checkApplied(applied, migrations, "sqlite", where);
  if (pending.length === 0) return;
  database.exec("pragma foreign_keys = off"); // no effect inside a transaction
  try {
    pending.forEach(({ name, text }, index) => applySqlite(database, { name, text, version: applied.length + index + 1 }));
  } finally {
    database.exec("pragma foreign_keys = on");
  }
}

function appliedSqlite(database: Database): Applied[] {
  const { n } = database.query("select count(*) as n from sqlite_schema where name = 'migrations'").get() as { n: number };
  return n === 0 ? [] : (database.query("select name, hash from migrations order by name").all() as Applied[]);
}

function applySqlite(database: Database, { name, text, version }: { name: string; text: string; version: number }) {
  database
    .transaction(() => {
      database.exec("create table if not exists migrations (name text primary key not null, hash text not null) strict");
      database.exec(text);
      if (database.query("pragma foreign_key_check").all().length > 0) throw new Error(`migration ${name} breaks a foreign key`);
      database.query("insert into migrations values (?, ?)").run(name, sha256(text));
      database.exec(`pragma application_id = ${APPLICATION_ID}; pragma user_version = ${version}`); // part of the transaction
    })
    .immediate();
}

/** Brings a PostgreSQL database to the current schema, in one transaction. Other hubs that start at once wait. @throws StoreRefused, SQL errors */
export async function migratePostgres(url: string, migrations: readonly Migration[] = MIGRATIONS): Promise<string[]> {
  await using client = new SQL({ url, max: 1 });
  return client.begin(async (sql) => {
    await sql`select pg_advisory_xact_lock(${POSTGRES_LOCK})`;
    await sql`create table if not exists migrations (name text primary key not null, hash text not null)`;
    const applied: Applied[] = await sql`select name, hash from migrations order by name`;
    const pending = checkApplied(applied, migrations, "postgres", "the database");
    for (const { name, text } of pending) {
      await sql.unsafe(text);
      await sql`insert into migrations values (${name}, ${sha256(text)})`;
    }
    return pending.map(({ name }) => name);
  });
}

const forPostgres = (sqlite: string) =>
  sqlite
    .replace(/\) strict(, without rowid)?;/g, ");")
    .replace(/\binteger\b/g, "bigint")
    .replace(/\btext\b/g, 'text collate "C"');

const textFor = ({ sqlite, postgres }: Migration, dialect: DialectName) => (dialect === "sqlite" ? sqlite : (postgres ?? forPostgres(sqlite)));
