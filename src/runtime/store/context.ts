// What every table of a project's store shares: the connection, time, ids and whether a transaction is open. And the little SQL that is the same everywhere.
import type { Database, Statement } from "bun:sqlite";
import { assert } from "../../protocol/errors.ts";
import type { Clock } from "../clock.ts";
import type { NewId } from "../ids.ts";

export type StoreContext = {
  readonly db: Database;
  readonly clock: Clock;
  readonly newId: NewId;
  /** Milliseconds: the same for everything in one transaction. */
  now: number;
  /** Whether a transaction of `commit` is open. */
  writing: boolean;
};

type Value = string | number | null;
const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** `runId` → `run_id as runId`, for every name. */
export const columns = <const N extends readonly string[]>(names: N): string => names.map((name) => `${snake(name)} as ${name}`).join(", ");

/** An insert of all named columns with parameters of the same names. */
export const insertInto = (table: string, names: readonly string[]): string =>
  `insert into ${table} (${names.map(snake).join(", ")}) values (${names.map((name) => `$${name}`).join(", ")})`;

/** `column = $column` for every name. */
export const assignments = (names: readonly string[]): string => names.map((name) => `${snake(name)} = $${name}`).join(", ");

/** Parameters for a statement: exactly the named members, missing ones as null. */
export const bind = <N extends string>(names: readonly N[], row: { [K in N]?: Value | undefined }): Record<N, Value> =>
  Object.fromEntries(names.map((name) => [name, row[name] ?? null])) as Record<N, Value>;

/** A statement, prepared when it is used first: most of a store's are not needed to open it. */
const prepared = <R>(context: StoreContext, sql: string) => {
  let statement: Statement<R, any> | undefined;
  return (): Statement<R, any> => (statement ??= context.db.prepare<R, any>(sql));
};

/** First row of a query. */
export const one = <R>(context: StoreContext, sql: string) => {
  const statement = prepared<R>(context, sql);
  return (parameters: Record<string, Value> = {}): R | undefined => statement().get(parameters) ?? undefined;
};
/** Every row of a query. */
export const all = <R>(context: StoreContext, sql: string) => {
  const statement = prepared<R>(context, sql);
  return (parameters: Record<string, Value> = {}): R[] => statement().all(parameters);
};
/** A statement that changes something: only inside `commit`. Answers the number of rows changed. */
export const write = (context: StoreContext, sql: string) => {
  const statement = prepared<unknown>(context, sql);
  return (parameters: Record<string, Value> = {}): number => {
    assert(context.writing, "a store is changed only inside commit");
    return statement().run(parameters).changes;
  };
};
