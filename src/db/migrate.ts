// Migrations: SQL for SQLite by hand, forward only, each in one transaction; PostgreSQL runs the same text, translated. An unknown or changed one refuses
// the start. What cannot be translated gets a text of its own (`postgres`); drift.test.ts holds schema.ts and both databases against each other.
import type { Database } from "bun:sqlite";
import { SQL } from "bun";
import hub from "./migrations/0001_hub.sql" with { type: "text" };

type Migration = { name: string; sqlite: string; postgres?: string };
const MIGRATIONS: Migration[] = [{ name: "0001_hub", sqlite: hub }];
type Applied = { name: string; hash: string };
const forPostgres = (sqlite: string) =>
  sqlite
    .replace(/\) strict(, without rowid)?;/g, ");")
    .replace(/\binteger\b/g, "bigint")
    .replace(/\btext\b/g, 'text collate "C"');
const textFor = ({ sqlite, postgres }: Migration, dialect: "sqlite" | "postgres") =>
  dialect === "sqlite" ? sqlite : (postgres ?? forPostgres(sqlite));
const hashOf = (text: string) => new Bun.CryptoHasher("sha256").update(text).digest("hex");

/** Changes whenever a migration's text does: names what a test template was made from. */
export const schemaFingerprint = (): string => hashOf(MIGRATIONS.map((migration) => textFor(migration, "postgres")).join());

function pending(applied: Applied[], dialect: "sqlite" | "postgres") {
  applied.forEach(({ name, hash }, index) => {
    const known = MIGRATIONS[index];
    if (known?.name !== name) throw new Error(`the store has migration ${name}, which this version does not know: use a newer kxm`);
    if (hashOf(textFor(known, dialect)) !== hash) throw new Error(`migration ${name} was changed after it had been applied`);
  });
  return MIGRATIONS.slice(applied.length).map((migration) => ({ name: migration.name, text: textFor(migration, dialect) }));
}

export function migrateSqlite(database: Database) {
  database.exec("create table if not exists migrations (name text primary key, hash text not null) strict");
  const applied = database.query("select name, hash from migrations order by name").all() as Applied[];
  for (const { name, text } of pending(applied, "sqlite")) {
    database.exec("pragma foreign_keys = off"); // no effect inside a transaction
    database
      .transaction(() => {
        database.exec(text);
        if (database.query("pragma foreign_key_check").all().length > 0) throw new Error(`migration ${name} breaks a foreign key`);
        database.query("insert into migrations values (?, ?)").run(name, hashOf(text));
      })
      .immediate();
    database.exec("pragma foreign_keys = on");
  }
}

export async function migratePostgres(url: string) {
  await using client = new SQL({ url, max: 1 });
  await client.begin(async (sql) => {
    await sql`select pg_advisory_xact_lock(7331)`; // several hubs may start at once
    await sql`create table if not exists migrations (name text primary key, hash text not null)`;
    const applied: Applied[] = await sql`select name, hash from migrations order by name`;
    for (const { name, text } of pending(applied, "postgres")) {
      await sql.unsafe(text);
      await sql`insert into migrations values (${name}, ${hashOf(text)})`;
    }
  });
}
