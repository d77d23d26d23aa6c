// SQLite: one write connection, one read connection. Calls of one turn of the event loop share one durable COMMIT, each in its own savepoint.
// A batch runs from BEGIN to COMMIT without leaving its turn, so nothing else can ever see or touch the open transaction.

import { drainMicrotasks } from "bun:jsc";
import { Database } from "bun:sqlite";
import { drizzle } from "drizzle-orm/bun-sqlite";
import { WRITE_BATCH_MAX, WRITE_BATCH_MS_MAX } from "../protocol/limits.ts";
import type { Dialect, Slots } from "./dialect.ts";
import { type Call, type Engine, type EngineOptions, IDLE_MS, QUEUE_MAX } from "./engine.ts";
import { follow, Wakeups } from "./follow.ts";
import { migrateSqlite } from "./migrate.ts";
import { sqliteTables } from "./schema-kit.ts";
import { everySlot } from "./slots.ts";
import { ForeignAwait, flushEvents, type Outcome, openStores, type Rule, StorageUnavailable, Tx } from "./tx.ts";

const BATCH_MAX = WRITE_BATCH_MAX;
const BATCH_MS = WRITE_BATCH_MS_MAX;
const PRAGMAS = [
  "journal_mode = wal",
  "synchronous = full",
  "busy_timeout = 5000",
  "foreign_keys = on",
  "temp_store = memory", // or every batch's savepoint journal spills to a file: 30 us a call
  "cache_size = -65536",
  "wal_autocheckpoint = 4000",
  "journal_size_limit = 67108864",
];

export function openSqlite(path: string, options: EngineOptions & { batchMax?: number; batchMs?: number }): Engine {
  const { clock, newId, queueMax = QUEUE_MAX, batchMax = BATCH_MAX, batchMs = BATCH_MS, idleMs = IDLE_MS } = options;
  const writer = connect(path);
  migrateSqlite(writer);
  const reader = connect(path, "query_only = 1");
  const fault: Fault = { first: undefined };
  const stores = openStores(sqliteDialect(writer, fault));
  const read = openStores(sqliteDialect(reader, { first: undefined }));
  const statement = (text: string) => writer.prepare(text);
  const [begin, commit, rollback] = [statement("begin immediate"), statement("commit"), statement("rollback")];
  const [savepoint, release, undo] = [statement("savepoint call"), statement("release call"), statement("rollback to call")];
  const wakeups = new Wakeups();
  const queue: Call[] = [];
  let armed = false;
  let closed = false;

  function flush() {
    armed = false;
    if (queue.length === 0) return; // closed in the meantime
    const started = performance.now();
    const calls: Call[] = [];
    const outcomes: Outcome<unknown>[] = [];
    const changed = new Set<string>();
    try {
      begin.run();
      while (queue.length > 0 && calls.length < batchMax && performance.now() - started < batchMs) {
        const call = queue.shift()!;
        calls.push(call);
        outcomes.push(perform(call.rule, changed));
      }
      commit.run(); // the fsync: nobody is answered before it returns
      calls.forEach((call, index) => call.settle(outcomes[index]!));
      for (const project of changed) wakeups.wake(project);
    } catch (cause) {
      if (writer.inTransaction) rollback.run();
      if (calls.length === 0) calls.push(...queue.splice(0, batchMax)); // BEGIN failed: these never ran
      for (const call of calls) call.settle({ ok: false, error: new StorageUnavailable("commit_failed", { cause }) });
    }
    if (queue.length > 0) arm();
  }

  function perform(rule: Rule<unknown>, changed: Set<string>): Outcome<unknown> {
    savepoint.run();
    fault.first = undefined;
    const tx = new Tx(stores, clock(), newId);
    const outcome = settleNow(async () => {
      const value = await rule(tx);
      await flushEvents(tx.appended, stores);
      return value;
    });
    tx.close();
    // Disk full and I/O errors may have rolled back the whole transaction, not only this call: then everyone in it failed.
    if (!writer.inTransaction) throw fault.first ?? new Error("the transaction is gone");
    const failed = !outcome.ok || fault.first !== undefined;
    if (failed) undo.run();
    release.run();
    if (failed) return { ok: false, error: outcome.ok ? fault.first : outcome.error };
    for (const event of tx.appended) changed.add(event.project);
    return outcome;
  }

  function arm() {
    if (!armed) setImmediate(flush);
    armed = true;
  }

  return {
    read,
    write<T>(_project: string, rule: Rule<T>) {
      if (closed || queue.length >= queueMax) return Promise.reject(new StorageUnavailable(closed ? "closed" : "queue_full"));
      return new Promise<T>((resolve, reject) => {
        queue.push({ rule, settle: (outcome) => (outcome.ok ? resolve(outcome.value as T) : reject(outcome.error)) });
        arm();
      });
    },
    follow: (project, after, signal) => follow(read.events.after, wakeups, { project, after, signal, idleMs }),
    async close() {
      closed = true;
      while (queue.length > 0) flush();
      reader.close(true); // without `true` bun keeps the connection open while a statement lives: files stay, the WAL is not checkpointed
      writer.close(true);
    },
  };
}

/** Runs an async function to its end inside this turn of the event loop. One that waits for anything a turn cannot bring is a ForeignAwait. */
export function settleNow<T>(work: () => Promise<T>): Outcome<T> {
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

/** The first store failure of a call. A rule that swallows it fails all the same, because on PostgreSQL its transaction would be dead. */
type Fault = { first: unknown };

export function sqliteDialect(database: Database, fault: Fault): Dialect {
  const db = drizzle(database, { casing: "snake_case" });
  const lazily = (query: any) => {
    let it: any;
    return () => (it ??= query.prepare());
  }; // a hub of two hundred queries opens in milliseconds
  const guarded = <T>(query: () => T) => {
    try {
      return query();
    } catch (error) {
      fault.first ??= error;
      throw error;
    }
  };
  return {
    db,
    tables: sqliteTables,
    one: (query) => {
      const it = lazily(query);
      return async (slots?: Slots) => guarded(() => it().get(slots));
    },
    all: (query) => {
      const it = lazily(query);
      return async (slots?: Slots) => guarded(() => it().all(slots));
    },
    run: (query) => {
      const it = lazily(query);
      return async (slots: Slots) => {
        guarded(() => it().run(slots));
      };
    },
    locked: (query) => query,
    insertAll: (table) => {
      const it = lazily(db.insert(table).values(everySlot(table) as any));
      return async (rows) =>
        guarded(() => {
          for (const row of rows) it().run(row);
        });
    },
    now: async (query: any) => guarded(() => query.all()),
  };
}

function connect(path: string, ...more: string[]) {
  const database = new Database(path, { create: true, strict: true });
  for (const pragma of [...PRAGMAS, ...more]) database.exec(`pragma ${pragma}`);
  return database;
}
