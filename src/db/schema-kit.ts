// The few column kinds the hub uses, once per dialect. Integers are 64-bit in both and number in JavaScript (milliseconds, counters);
// JSON is text in both, because drizzle's jsonb double-encodes on bun-sql and TEXT hashes to what was received.

import * as pg from "drizzle-orm/pg-core";
import * as lite from "drizzle-orm/sqlite-core";
import { once } from "../protocol/once.ts";
import { defineTables, type Tables } from "./schema.ts";

export type Kit = typeof sqliteKit;

// A slot filled with null must stay SQL's null, not become the text "null".
const jsonText = (value: unknown) => (value === null || value === undefined ? (null as unknown as string) : JSON.stringify(value));

const sqliteKit = {
  table: lite.sqliteTable,
  text: () => lite.text(),
  integer: () => lite.integer(),
  json: <T>() =>
    lite.customType<{ data: T; driverData: string }>({ dataType: () => "text", toDriver: jsonText, fromDriver: (text) => JSON.parse(text) })(),
  index: lite.index,
  uniqueIndex: lite.uniqueIndex,
  primaryKey: lite.primaryKey,
  check: lite.check,
};

const postgresKit = {
  table: pg.pgTable,
  text: () => pg.text(),
  integer: () => pg.bigint({ mode: "number" }),
  json: <T>() =>
    pg.customType<{ data: T; driverData: string }>({ dataType: () => "text", toDriver: jsonText, fromDriver: (text) => JSON.parse(text) })(),
  index: pg.index,
  uniqueIndex: pg.uniqueIndex,
  primaryKey: pg.primaryKey,
  check: pg.check,
};

export const sqliteTables: Tables = defineTables(sqliteKit);
// Stores are typed against SQLite and run on both: this cast and `db` in engine-postgres.ts are the two places that say so.
export const postgresTables = once((): Tables => defineTables(postgresKit as unknown as Kit)); // only a hub on PostgreSQL pays for it
