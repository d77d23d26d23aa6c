// The dialect port over bun's PostgreSQL client, and how a rule is watched while its queries are on their way.
import type { SQL } from "bun";
import { drizzle } from "drizzle-orm/bun-sql";
import type { Dialect, Slots } from "./dialect.ts";
import { postgresTables } from "./schema-kit.ts";
import { ForeignAwait, type Outcome, StorageUnavailable } from "./tx.ts";

const READ_TRIES_MAX = 3; // each connection of a pool may have been cut
const ROWS_MAX = 1_000; // of one insert: PostgreSQL takes 65,535 values a statement

/** What the current call did to its connection, and what to do when none of its queries is running. */
export type Use = { fault: unknown; pending: number; onIdle: () => void };
export const newUse = (): Use => ({ fault: undefined, pending: 0, onIdle: () => {} });

/** A rule that is neither done nor waiting for a query waits for something else. A turn of the event loop without a query tells. */
export function settleOnStores<T>(use: Use, work: () => Promise<T>): Promise<Outcome<T>> {
  return new Promise((resolve) => {
    const fail = (message: string) => resolve({ ok: false, error: new ForeignAwait(message) });
    use.onIdle = () =>
      setImmediate(() => {
        if (use.pending === 0) fail("a rule awaited something other than tx");
      });
    work().then(
      (value) => (use.pending === 0 ? resolve({ ok: true, value }) : fail("a rule ended before its store calls did: await every one")),
      (error) => resolve({ ok: false, error }),
    );
    use.onIdle();
  });
}

/** Runs queries for the dialect; what differs is what their failure means. */
type Guard = <T>(query: () => Promise<T>) => Promise<T>;

/** Inside a transaction: the first failure is kept, for the call must fail with it whatever the rule does. A COMMIT after it would answer ROLLBACK without an error. */
export const guardWrites =
  (holder: { use: Use }): Guard =>
  async (query) => {
    const use = holder.use;
    use.pending++;
    try {
      return await query();
    } catch (error) {
      use.fault ??= error;
      throw error;
    } finally {
      if (--use.pending === 0) use.onIdle();
    }
  };

/** Outside: a read on a connection that was cut is made again on another one. */
export const guardReads: Guard = async (query) => {
  for (let tries = 1; ; tries++) {
    try {
      return await query();
    } catch (error) {
      if (!isConnectionLoss(error)) throw error;
      if (tries === READ_TRIES_MAX) throw new StorageUnavailable("unreachable", { cause: error });
    }
  }
};

/** The port over one client. Prepared queries live on a connection, so a writing client has exactly one. */
export function postgresDialect(client: SQL, guarded: Guard): Dialect {
  const db: any = drizzle(client, { casing: "snake_case" }); // the builders a store uses are the same in both dialects; the contract suite holds us to it
  const lazily = (query: any) => {
    let it: any;
    return () => (it ??= query.prepare(""));
  };
  return {
    kind: "postgres",
    db,
    tables: postgresTables(),
    one: (query) => {
      const it = lazily(query);
      return async (slots?: Slots) => (await guarded<any[]>(() => it().execute(slots)))[0];
    },
    all: (query) => {
      const it = lazily(query);
      return (slots?: Slots) => guarded<any[]>(() => it().execute(slots));
    },
    run: (query) => {
      const it = lazily(query);
      return async (slots: Slots) => {
        await guarded(() => it().execute(slots));
      };
    },
    locked: (query: any) => lockedCopy(query),
    insertAll: (table) => async (rows) => {
      for (let at = 0; at < rows.length; at += ROWS_MAX) {
        await guarded(() =>
          db
            .insert(table)
            .values(rows.slice(at, at + ROWS_MAX))
            .execute(),
        );
      }
    },
    now: (query: any) => guarded(() => query.execute()),
  };
}

/**
 * A select that locks its rows, beside the same select that does not. `for()` would change the builder that both share, and then every read outside a
 * transaction would wait for whoever writes the row.
 */
function lockedCopy(query: any): any {
  const locking = <T>(build: () => T): T => {
    query.for("update");
    try {
      return build();
    } finally {
      query.config.lockingClause = undefined;
    }
  };
  return { prepare: (name: string) => locking(() => query.prepare(name)), execute: () => locking(() => query.execute()) };
}

const causes = (error: any): any[] => (error ? [error, ...causes(error.cause)] : []);
/** The five-character code of a PostgreSQL error, or "". */
export const sqlState = (error: unknown): string =>
  causes(error)
    .map((cause) => cause.errno ?? "")
    .find((state) => /^[0-9A-Z]{5}$/.test(state)) ?? "";
/** The connection is gone or the server is going: what was sent on it may or may not have happened. */
export const isConnectionLoss = (error: unknown): boolean =>
  causes(error).some(({ code }) => /^ERR_POSTGRES_(CONNECTION|IDLE|LIFETIME)/.test(code ?? "")) || /^(57P0[123]|08...|25P03)$/.test(sqlState(error));
