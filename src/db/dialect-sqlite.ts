// The dialect port over bun:sqlite, and how an asynchronous rule is run to its end inside one turn of the event loop.

import { drainMicrotasks } from "bun:jsc";
import type { Database } from "bun:sqlite";
import { drizzle } from "drizzle-orm/bun-sqlite";
import type { IdPrefix } from "../protocol/ids.ts";
import { type Compiled, compile } from "./compiled.ts";
import type { Dialect, Query, Row, Slots } from "./dialect.ts";
import { sqliteTables } from "./schema-kit.ts";
import { everySlot } from "./slots.ts";
import {
  type AppendedEvent,
  ForeignAwait,
  flushEvents,
  type Outcome,
  openStores,
  type Rule,
  StorageUnavailable,
  type Stores,
  Tx,
  type Unavailability,
} from "./tx.ts";

/** The first store failure of a call. A rule that swallows it fails all the same, because on PostgreSQL its transaction would be dead. */
export type Fault = {
  first: unknown;
  /** Whether the call has changed anything, or tried to. */
  wrote: boolean;
};
type OnFailure = (error: unknown) => unknown;
/** For the stores of a transaction. */
export const keepIn = (fault: Fault) => (error: unknown) => {
  fault.first ??= error;
  return error;
};
/** For the stores outside: a disk that fails under a read is no fault of whoever asked. */
export const asUnavailable = (error: unknown) => {
  const reason = unavailability(error);
  return reason === undefined ? error : new StorageUnavailable(reason, { cause: error });
};

/** What an error of SQLite or the file system says about the storage itself; undefined when it is about the call (a constraint, say). */
export function unavailability(error: unknown): Unavailability | undefined {
  const code = codeOf(error);
  if (/^(SQLITE_FULL|ENOSPC|EDQUOT)$/.test(code)) return "disk_full";
  if (code === "SQLITE_READONLY_DBMOVED") return "file_gone";
  if (/^SQLITE_(IOERR|CANTOPEN|READONLY|NOMEM|PROTOCOL)|^(EIO|EROFS|ENOENT|EACCES)$/.test(code)) return "io_error";
  if (/^SQLITE_(CORRUPT|NOTADB)/.test(code)) return "damaged";
  if (/^SQLITE_(BUSY|LOCKED)/.test(code)) return "busy";
  return undefined;
}

/** The symbolic code of a SQLite or system error, or "". */
export const codeOf = (error: unknown): string => {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" ? code : "";
};

/** A connection that can be opened anew under the stores that use it: their statements are prepared again at their next use. */
export class Connection {
  #database: Database;
  /** Rises with every reopening; a statement prepared under another epoch is dead. */
  epoch = 1;
  constructor(database: Database) {
    this.#database = database;
  }
  get database(): Database {
    return this.#database;
  }
  replace(database: Database) {
    this.#database = database;
    this.epoch++;
  }
}

/**
 * The port over one connection, or over whichever `pick` names at the moment of a query. Statements are prepared for each at first use, so that a hub of
 * two hundred queries opens in milliseconds.
 * @param options.onlyReads refuses every query that is not a select
 * @param options.onFailure what a caller is told of a failure
 * @param options.onWrite called before each query that is not a select
 */
export function sqliteDialect(pick: () => Connection, options: { onFailure: OnFailure; onlyReads?: boolean; onWrite?: () => void }): Dialect {
  const { onFailure, onlyReads = false, onWrite } = options;
  const db = drizzle({ prepare: (sql: string) => pick().database.prepare(sql) } as never, { casing: "snake_case" }); // it calls nothing else
  const lazily = (query: any) => {
    const statements = new Map<Connection, { epoch: number; it: Compiled }>();
    return (): Compiled => {
      const connection = pick();
      const known = statements.get(connection);
      if (known?.epoch === connection.epoch) return known.it;
      const prepared = query.prepare();
      const reads = /^select /.test(prepared.getQuery().sql);
      if (onlyReads && !reads) throw new Error("engine.read only reads: change things in engine.write");
      const compiled = compile(prepared);
      const it = reads || !onWrite ? compiled : telling(compiled, onWrite);
      statements.set(connection, { epoch: connection.epoch, it });
      return it;
    };
  };
  const guarded = <T>(query: () => T) => {
    try {
      return query();
    } catch (error) {
      throw onFailure(error);
    }
  };
  return {
    kind: "sqlite",
    db,
    tables: sqliteTables,
    one: <Q extends Query>(query: Q) => {
      const it = lazily(query);
      return async (slots?: Slots) => guarded(() => it().one(slots) as Row<Q> | undefined);
    },
    all: <Q extends Query>(query: Q) => {
      const it = lazily(query);
      return async (slots?: Slots) => guarded(() => it().all(slots) as Row<Q>[]);
    },
    run: (query) => {
      const it = lazily(query);
      return async (slots: Slots) => {
        guarded(() => it().run(slots));
      };
    },
    locked: (query) => query,
    insertAll: (table) => {
      const it = lazily(db.insert(table).values(everySlot(table) as never));
      return async (rows) =>
        guarded(() => {
          for (const row of rows) it().run(row);
        });
    },
    now: async (query: any) => {
      onWrite?.(); // it may be anything
      return guarded(() => query.all());
    },
  };
}

/** The same query, which says beforehand that it changes something. */
const telling = ({ run, all, one }: Compiled, onWrite: () => void): Compiled => ({
  run: (slots) => {
    onWrite();
    return run(slots);
  },
  all: (slots) => {
    onWrite();
    return all(slots);
  },
  one: (slots) => {
    onWrite();
    return one(slots);
  },
});

/** Runs an async function to its end inside this turn of the event loop. One that waits for anything a turn cannot bring is a ForeignAwait. */
function settleNow<T>(work: () => Promise<T>): Outcome<T> {
  let outcome: Outcome<T> | undefined;
  work().then(
    (value) => {
      outcome = { ok: true, value };
    },
    (error) => {
      outcome = { ok: false, error };
    },
  );
  drainMicrotasks();
  return outcome ?? { ok: false, error: new ForeignAwait("a rule awaited something other than tx") };
}

/** One call. Whether it stays, and when its events are numbered and stored, is up to the transaction around it. */
export function settleRule(stores: Stores, fault: Fault, context: { now: number; newId: (prefix: IdPrefix) => string }, rule: Rule<unknown>) {
  fault.first = undefined;
  fault.wrote = false;
  const tx = new Tx(stores, context.now, context.newId);
  const outcome = settleNow(() => rule(tx));
  tx.close();
  return { outcome: outcome.ok && fault.first !== undefined ? ({ ok: false, error: fault.first } as const) : outcome, appended: tx.appended };
}

/** Numbers and stores the events of a transaction, as its last step. @throws what the store throws; then nothing of the transaction may stay */
export function storeEvents(stores: Stores, appended: AppendedEvent[]): void {
  if (appended.length === 0) return;
  const outcome = settleNow(() => flushEvents(appended, stores));
  if (!outcome.ok) throw outcome.error;
}

/** One rule in a durable transaction of its own, outside any lane: for a store that nobody serves (opening, restoring). @throws what the rule throws */
export function writeOnce<T>(database: Database, context: { now: number; newId: (prefix: IdPrefix) => string }, rule: Rule<T>): T {
  const fault: Fault = { first: undefined, wrote: false };
  const connection = new Connection(database);
  const stores = openStores(sqliteDialect(() => connection, { onFailure: keepIn(fault) }));
  return database
    .transaction(() => {
      const { outcome, appended } = settleRule(stores, fault, context, rule as Rule<unknown>);
      if (!outcome.ok) throw outcome.error;
      storeEvents(stores, appended);
      return outcome.value as T;
    })
    .immediate();
}
