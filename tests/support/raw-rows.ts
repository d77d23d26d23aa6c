// Rows of any table put straight into a store of either kind, for tests of what happens to them by age alone. Rules are tested through rules.
import { Database } from "bun:sqlite";
import { SQL } from "bun";
import type { World } from "./engines.ts";

type Value = string | number | null;

/** Inserts rows by column name (snake_case). All rows have the members of the first. */
export async function insertRaw(world: Pick<World, "kind" | "location">, table: string, rows: Record<string, Value>[]): Promise<void> {
  const names = Object.keys(rows[0]!);
  if (world.kind === "sqlite") {
    const database = new Database(world.location, { strict: true });
    database.run("pragma busy_timeout = 2000");
    const insert = database.prepare(`insert into ${table} (${names.join(", ")}) values (${names.map((name) => `$${name}`).join(", ")})`);
    database.run("begin immediate");
    for (const row of rows) insert.run(row);
    database.run("commit");
    database.close(true);
    return;
  }
  await using sql = new SQL(world.location, { max: 1 });
  for (const row of rows) await sql`insert into ${sql(table)} ${sql(row)}`;
}

/** How many rows a table has. */
export async function countRaw(world: Pick<World, "kind" | "location">, table: string, where = "true"): Promise<number> {
  const text = `select count(*) as n from ${table} where ${where}`;
  if (world.kind === "sqlite") {
    const database = new Database(world.location, { readonly: true });
    try {
      return (database.query(text).get() as { n: number }).n;
    } finally {
      database.close(true);
    }
  }
  await using sql = new SQL(world.location, { max: 1 });
  return Number((await sql.unsafe(text))[0].n);
}
