// schema.ts, the SQLite migrations and the PostgreSQL migrations say the same: tables, columns, keys, indexes with their conditions, checks.
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { SQL } from "bun";
import { is, SQL as Sql, StringChunk } from "drizzle-orm";
import { toSnakeCase } from "drizzle-orm/casing";
import { getTableConfig, type SQLiteTable } from "drizzle-orm/sqlite-core";
import { MIGRATIONS, migratePostgres, migrateSqlite } from "../../src/db/migrate.ts";
import { sqliteTables } from "../../src/db/schema-kit.ts";
import { emptyDatabase, POSTGRES_SERVER } from "../support/engines.ts";

/** Table → what it is made of, as sorted lines of text. */
type Shape = Record<string, { columns: string[]; indexes: string[]; checks: string[] }>;
const shape = (columns: string[], indexes: string[], checks: string[]) => ({
  columns: columns.sort(),
  indexes: indexes.sort(),
  checks: checks.sort(),
});
const column = (name: string, type: string, isNull: boolean, key: boolean) => `${name} ${type} ${isNull ? "null" : "not null"}${key ? " key" : ""}`;
const index = (name: string, columns: string, unique: boolean, where: string | undefined) =>
  `${name} (${columns})${unique ? " unique" : ""}${where === undefined ? "" : ` where ${where}`}`;
const plain = (text: string) => text.replace(/\s+/g, " ").trim();

function textOf(expression: Sql): string {
  const chunks = expression.queryChunks.map((chunk) => {
    if (!is(chunk, StringChunk)) throw new Error("conditions of the schema are plain text");
    return chunk.value.join("");
  });
  return plain(chunks.join(""));
}

function ofSchema(): Shape {
  const tables = Object.values(sqliteTables as Record<string, SQLiteTable>).map(getTableConfig);
  return Object.fromEntries(
    tables.map(({ name, columns, indexes, primaryKeys, checks }) => {
      const key = [...primaryKeys.flatMap((primary) => primary.columns), ...columns.filter((c) => c.primary)].map((c) => c.name);
      const named = (columnOrSql: unknown) => (is(columnOrSql, Sql) ? textOf(columnOrSql) : toSnakeCase((columnOrSql as { name: string }).name));
      return [
        name,
        shape(
          columns.map((c) => column(toSnakeCase(c.name), c.getSQLType(), !c.notNull && !key.includes(c.name), key.includes(c.name))),
          indexes.map(({ config }) => index(config.name, config.columns.map(named).join(), config.unique, config.where && textOf(config.where))),
          checks.map(({ name: check, value }) => `${check} ${textOf(value)}`),
        ),
      ];
    }),
  );
}

function ofSqlite(change?: string): Shape {
  using database = new Database(":memory:");
  migrateSqlite(database, { where: "memory" });
  if (change) database.exec(change);
  const all = (sql: string, ...values: string[]) => database.query(sql).all(...values) as any[];
  const tables = all(
    "select name, strict from pragma_table_list where schema = 'main' and name not like 'sqlite_%' and name <> 'migrations' and name not like 'search_index%'",
  ); // the full-text index is not a table of ours
  expect(tables.filter(({ strict }) => !strict)).toEqual([]);
  const sqlOf = (name: string) => plain(all("select sql from sqlite_schema where name = ?", name)[0].sql);
  return Object.fromEntries(
    tables.map(({ name }) => [
      name,
      shape(
        all("select * from pragma_table_info(?)", name).map((c) => column(c.name, c.type.toLowerCase(), !c.notnull && !c.pk, c.pk > 0)),
        all("select * from pragma_index_list(?) where origin = 'c'", name).map((i) => {
          const columns = all("select name from pragma_index_info(?)", i.name).map((c) => c.name);
          return index(i.name, columns.join(), i.unique === 1, i.partial ? sqlOf(i.name).split(/ where /i)[1] : undefined);
        }),
        checksOf(sqlOf(name)),
      ),
    ]),
  );
}

/** `constraint NAME check (…)` with its text, found by counting brackets. */
function checksOf(sql: string): string[] {
  return [...sql.matchAll(/constraint (\w+) check \(/gi)].map((found) => {
    const start = found.index + found[0].length;
    let end = start;
    for (let depth = 1; depth > 0; end++) depth += sql[end] === "(" ? 1 : sql[end] === ")" ? -1 : 0;
    return `${found[1]} ${plain(sql.slice(start, end - 1))}`;
  });
}

/** PostgreSQL rewrites conditions in its own words, so of those only their names and presence are compared. */
const withoutTexts = (whole: Shape): Shape =>
  Object.fromEntries(
    Object.entries(whole).map(([name, { columns, indexes, checks }]) => [
      name,
      shape(
        columns,
        indexes.map((line) => line.replace(/ where .*/, " where")),
        checks.map((line) => line.split(" ")[0]!),
      ),
    ]),
  );

async function ofPostgres(): Promise<Shape> {
  const { url, drop } = await emptyDatabase();
  const database = new SQL(url, { max: 1 });
  try {
    await migratePostgres(url);
    const columns: any[] =
      await database`select c.table_name, c.column_name, c.data_type, c.collation_name, c.is_nullable, k.column_name is not null as key
      from information_schema.columns c
      left join information_schema.table_constraints t on t.table_name = c.table_name and t.constraint_type = 'PRIMARY KEY'
      left join information_schema.key_column_usage k on k.constraint_name = t.constraint_name and k.column_name = c.column_name
      where c.table_schema = 'public' and c.table_name <> 'migrations'`;
    const indexes: any[] =
      await database`select c.relname as table_name, i.relname as name, x.indisunique as unique, x.indpred is not null as partial,
      (select string_agg(a.attname, ',' order by k.n) from unnest(x.indkey::int[]) with ordinality as k(attnum, n)
        join pg_attribute a on a.attrelid = c.oid and a.attnum = k.attnum) as columns
      from pg_index x join pg_class c on c.oid = x.indrelid join pg_class i on i.oid = x.indexrelid
      where not x.indisprimary and c.relnamespace = 'public'::regnamespace and i.relname <> 'search_documents_text'`; // an expression
    const checks: any[] = await database`select r.relname as table_name, c.conname as name from pg_constraint c join pg_class r on r.oid = c.conrelid
      where c.contype = 'c' and r.relnamespace = 'public'::regnamespace`;
    expect(columns.filter((c) => c.data_type === "text" && c.collation_name !== "C")).toEqual([]); // or pages would sort differently
    const type = (name: string) => (name === "bigint" ? "integer" : name);
    return Object.fromEntries(
      [...Map.groupBy(columns, (c) => c.table_name as string)].map(([table, of]) => [
        table,
        shape(
          of.map((c) => column(c.column_name, type(c.data_type), c.is_nullable !== "NO", c.key)),
          indexes.filter((i) => i.table_name === table).map((i) => index(i.name, i.columns, i.unique, i.partial ? "" : undefined).trimEnd()),
          checks.filter((c) => c.table_name === table).map((c) => c.name),
        ),
      ]),
    );
  } finally {
    await database.close();
    await drop();
  }
}

test("the SQLite migrations make the schema, STRICT, with every condition word for word", () => {
  expect(ofSqlite()).toEqual(ofSchema());
});

test.skipIf(!POSTGRES_SERVER)(
  "the PostgreSQL migrations make the schema",
  async () => {
    expect(await ofPostgres()).toEqual(withoutTexts(ofSchema()));
  },
  20_000,
);

test("a column, an index, a condition or a check that differs is seen", () => {
  const same = ofSchema();
  for (const change of [
    "alter table agents add column nickname text",
    "drop index agents_name",
    "drop index agents_name; create index agents_name on agents (project, name_folded)",
    "drop index messages_due; create index messages_due on messages (expires_at) where status = 'queued'",
    "create table extra (id text primary key not null) strict",
  ]) {
    expect(ofSqlite(change)).not.toEqual(same);
  }
  expect(checksOf("create table t (a integer, constraint one check ((a in (1, 2)) = (b is null)), constraint two check (a > 0))")).toEqual([
    "one (a in (1, 2)) = (b is null)",
    "two a > 0",
  ]);
});

test("every migration file is in the list, in order", async () => {
  const files = [...new Bun.Glob("*.sql").scanSync(`${import.meta.dir}/../../src/db/migrations`)].sort();
  expect(MIGRATIONS.map(({ name }) => `${name}.sql`)).toEqual(files);
});
