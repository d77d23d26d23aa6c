// Slots are drizzle placeholders, typed so that they stand where a column's value stands. They are encoded by their column when filled.
import { getTableColumns, type Placeholder, sql } from "drizzle-orm";
import type { SQLiteTable } from "drizzle-orm/sqlite-core";

// drizzle accepts placeholders in set() at run time but not in its types (0.45)
export const slot = (name: string): any => sql.placeholder(name);

export const everySlot = <T extends SQLiteTable>(table: T) =>
  Object.fromEntries(Object.keys(getTableColumns(table)).map((key) => [key, sql.placeholder(key)])) as {
    [K in keyof T["$inferInsert"]]-?: Placeholder;
  };
