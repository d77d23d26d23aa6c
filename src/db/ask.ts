// Questions about a store that are asked beside the lane (verify, doctor): the same SQL on both engines, over a connection of their own that only reads.
import { SQL } from "bun";
import { describePostgres } from "./postgres-server.ts";
import { connect } from "./pragmas.ts";

export type Answer = Record<string, string | number | null>;
/** Runs a query with `$1`, `$2`, … used once each and in order. Numbers come as numbers. */
export type Ask = (sql: string, ...values: (string | number)[]) => Promise<Answer[]>;
/** A way to ask, and what it asks. */
export type Asking = AsyncDisposable & { kind: "sqlite" | "postgres"; where: string; ask: Ask };

/** Over a data file, also while a hub serves it. @throws SQLiteError */
export function askSqlite(path: string): Asking {
  const database = connect(path, "visitor");
  return {
    kind: "sqlite",
    where: path,
    ask: async (sql, ...values) => database.query(sql).all(...values) as Answer[],
    async [Symbol.asyncDispose]() {
      database.close(true);
    },
  };
}

/** Over a database of hubs. */
export function askPostgres(url: string): Asking {
  const client = new SQL({ url, max: 1, bigint: true, connectionTimeout: 5, connection: { default_transaction_read_only: "on" } });
  return {
    kind: "postgres",
    where: describePostgres(url),
    ask: async (sql, ...values) => (await client.unsafe(sql, values)).map(withNumbers),
    async [Symbol.asyncDispose]() {
      await client.close();
    },
  };
}

/** Counts, sizes and times all fit. */
function withNumbers(row: Record<string, unknown>): Answer {
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [name, typeof value === "bigint" ? Number(value) : value])) as Answer;
}
