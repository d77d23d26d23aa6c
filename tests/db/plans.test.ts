// What a query costs must not grow with what is stored: every prepared query of these stores is a search by an index, and none sorts what it found.
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { drizzle } from "drizzle-orm/bun-sqlite";
import { alertStore } from "../../src/db/alerts.ts";
import { approvalStore } from "../../src/db/approvals.ts";
import { commandStore } from "../../src/db/commands.ts";
import { conflictStore } from "../../src/db/conflicts.ts";
import type { Dialect } from "../../src/db/dialect.ts";
import { leaseStore } from "../../src/db/leases.ts";
import { migrateSqlite } from "../../src/db/migrate.ts";
import { runtimeStore } from "../../src/db/runtimes.ts";
import { sqliteTables } from "../../src/db/schema-kit.ts";
import { syncStore } from "../../src/db/sync.ts";

const STORES = { leaseStore, syncStore, conflictStore, runtimeStore, commandStore, approvalStore, alertStore };

/** The SQL of every query that a store prepares. */
function queriesOf(database: Database, store: (dialect: Dialect) => unknown): string[] {
  const texts: string[] = [];
  const note = (query: any) => {
    texts.push(query.toSQL().sql);
    return async () => undefined as never;
  };
  const db = drizzle(database, { casing: "snake_case" });
  const dialect = {
    db,
    tables: sqliteTables,
    one: note,
    all: note,
    run: note,
    locked: <Q>(query: Q) => query,
    insertAll: () => async () => {},
    now: note,
  };
  store(dialect as unknown as Dialect);
  return texts;
}

const planOf = (database: Database, sql: string) =>
  (database.query(`explain query plan ${sql}`).all() as { detail: string }[]).map(({ detail }) => detail);
/**
 * A walk over a whole table or index, or a sort of everything that was found. Not: rows that a subquery has just found and bounded, and the front of
 * an index of what ends next, read with a limit.
 */
const isCostly = (step: string) =>
  (/^SCAN /.test(step) &&
    !/^SCAN (counted|CONSTANT ROW|leases USING (COVERING )?INDEX leases_held|lease_waiters USING (COVERING )?INDEX)/.test(step)) ||
  /USE TEMP B-TREE FOR ORDER/.test(step);

test.each(Object.entries(STORES))("every query of %s is answered by an index", (_, store) => {
  using database = new Database(":memory:");
  migrateSqlite(database, { where: "test" });
  const texts = queriesOf(database, store);
  expect(texts.length).toBeGreaterThan(3);
  for (const sql of texts) expect({ sql, costly: planOf(database, sql).filter(isCostly) }).toEqual({ sql, costly: [] });
});

test("the check finds a query without an index, and one that sorts", () => {
  using database = new Database(":memory:");
  migrateSqlite(database, { where: "test" });
  const costly = (sql: string) => planOf(database, sql).some(isCostly);
  expect(costly("select * from approvals where title = ?")).toBe(true);
  expect(costly("select * from approvals where project = ? order by title")).toBe(true);
  expect(costly("select * from approvals where project = ? order by requested_at desc, id desc")).toBe(false);
});
