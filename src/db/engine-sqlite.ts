// SQLite: one write connection, one read connection. Calls of one turn of the event loop share one durable COMMIT. When one of them fails after it wrote,
// the batch starts over with a savepoint around each. It runs from BEGIN to COMMIT without leaving its turn: nothing else sees the open transaction.

import { WAL_BYTES_MAX, WRITE_BATCH_MAX, WRITE_BATCH_MS_MAX } from "../protocol/limits.ts";
import { asUnavailable, codeOf, type Fault, keepIn, settleRule, sqliteDialect, storeEvents, unavailability } from "./dialect-sqlite.ts";
import { type Call, type Engine, type EngineOptions, IDLE_MS, QUEUE_MAX, WRITE_WAIT_MS_MAX } from "./engine.ts";
import { follow, Wakeups } from "./follow.ts";
import { watchHealth } from "./health.ts";
import type { Migration } from "./migrate.ts";
import { openStoreFile } from "./store-file.ts";
import { type AppendedEvent, type Outcome, openStores, type Rule, StorageUnavailable } from "./tx.ts";

const BUSY_RETRY_MS = 10;
const BUSY_NOTED_MS = 250;
const REOPEN_EVERY_MS = 250;
const CHECKPOINT_EVERY_MS = 1_000;

export type SqliteOptions = EngineOptions & {
  /** Calls of one transaction, and for how many ms it may take on more. */
  batchMax?: number;
  batchMs?: number;
  /** The log's size at which a checkpoint is forced, bytes. */
  walMax?: number;
  migrations?: readonly Migration[];
};

/** Opens the store in the file at an absolute path. @throws StoreRefused */
export async function openSqlite(path: string, options: SqliteOptions): Promise<Engine> {
  const { clock, newId, queueMax = QUEUE_MAX, batchMax = WRITE_BATCH_MAX, batchMs = WRITE_BATCH_MS_MAX } = options;
  const { idleMs = IDLE_MS, walMax = WAL_BYTES_MAX, log = () => {} } = options;
  const file = await openStoreFile(path, { ...options, log });
  const fault: Fault = { first: undefined, wrote: false };
  const onWrite = () => {
    fault.wrote = true;
  };
  const stores = openStores(sqliteDialect(() => file.writer, { onFailure: keepIn(fault), onWrite }));
  // The writer's cache is warm, the reader's is emptied by every commit: so reads go to the writer while it has no transaction open. During a batch other
  // callers run only as microtasks of its turn; they, and everybody while the writer is broken, get the reader, which sees committed state only.
  const read = openStores(sqliteDialect(() => (inBatch || broken ? file.reader : file.writer), { onFailure: asUnavailable, onlyReads: true }));
  const wakeups = new Wakeups();
  const listeners: ((event: AppendedEvent) => void)[] = [];
  const queue: (Call & { at: number })[] = []; // `at`: monotonic ms, for calls that wait for a lock
  const health = watchHealth({ clock, log });
  let statements = prepareLane(file.writer.database);
  let armed = false;
  let closed = false;
  let inBatch = false;
  let broken = false; // the connection must be opened anew before it is used again
  let reopenAfter = 0;
  let busySince: number | undefined;
  let checkpointTimer: ReturnType<typeof setTimeout> | undefined;

  function flush() {
    armed = false;
    if (queue.length === 0) return; // closed in the meantime
    const started = performance.now();
    const calls: Call[] = [];
    const outcomes: Outcome<unknown>[] = [];
    const committed: AppendedEvent[] = [];
    let careful = false;
    try {
      repair(started);
      statements.begin.run();
      inBatch = true;
      busySince = undefined;
      while (queue.length > 0 && calls.length < batchMax && performance.now() - started < batchMs) {
        const call = queue.shift()!;
        calls.push(call);
        const outcome = careful ? performAlone(call.rule, committed) : perform(call.rule, committed);
        if (outcome) outcomes.push(outcome);
        else {
          careful = true;
          outcomes.splice(0, outcomes.length, ...startOver(calls, committed));
        }
      }
      storeEvents(stores, committed); // numbered together: one look at the counter a project, not one a call
      statements.commit.run(); // the fsync: nobody is answered before it returns
      inBatch = false;
      confirmFiles();
      tell(committed);
      calls.forEach((call, index) => call.settle(outcomes[index]!));
      if (committed.length > 0) health.committed(); // a batch of refusals wrote nothing and proves nothing
      for (const project of new Set(committed.map((event) => event.project))) wakeups.wake(project);
    } catch (cause) {
      if (isBusy(cause) && calls.length === 0) return waitForLock(started);
      tell(committed); // they may be there all the same
      fail(cause, calls);
    }
    if (queue.length > 0) arm();
  }

  function tell(events: AppendedEvent[]) {
    try {
      for (const listener of listeners) events.forEach(listener);
    } catch (error) {
      log("store_listener_failed", { message: String(error) }); // the calls are durable all the same
    }
  }

  /**
   * Runs a call without a savepoint, which would copy every page it touches. Most calls end well, or are refused before they change anything.
   * @returns undefined when it failed after it had: what it changed cannot be taken back alone
   */
  function perform(rule: Rule<unknown>, committed: AppendedEvent[]): Outcome<unknown> | undefined {
    const { outcome, appended } = settleRule(stores, fault, { now: clock(), newId }, rule);
    requireTransaction();
    if (!outcome.ok && fault.wrote) return undefined;
    if (outcome.ok) committed.push(...appended);
    return outcome;
  }

  /** The batch from its beginning, each call in a savepoint of its own: the one that fails is taken back alone. Rules may run again. */
  function startOver(calls: readonly Call[], committed: AppendedEvent[]): Outcome<unknown>[] {
    statements.rollback.run();
    statements.begin.run();
    committed.length = 0;
    return calls.map(({ rule }) => performAlone(rule, committed));
  }

  function performAlone(rule: Rule<unknown>, committed: AppendedEvent[]): Outcome<unknown> {
    statements.savepoint.run();
    const { outcome, appended } = settleRule(stores, fault, { now: clock(), newId }, rule);
    requireTransaction();
    if (!outcome.ok) statements.undo.run();
    statements.release.run();
    if (outcome.ok) committed.push(...appended);
    return outcome;
  }

  /** Disk full and I/O errors may have rolled back the whole transaction, not only this call: then everyone in it failed. */
  function requireTransaction() {
    if (!file.writer.database.inTransaction) throw fault.first ?? new Error("the transaction is gone");
    if (unavailability(fault.first) !== undefined) throw fault.first;
  }

  /** Data or log removed while we ran: what was just committed would not be found at the next start, so nobody may be told it is durable. */
  function confirmFiles() {
    const { inPlace, walBytes } = file.look();
    if (!inPlace) throw new StorageUnavailable("file_gone");
    if (walBytes > walMax) checkpoint();
  }

  /** Before a batch: a connection under which the disk failed is opened anew, at most every REOPEN_EVERY_MS. */
  function repair(now: number) {
    if (!broken) return;
    if (now < reopenAfter) throw new StorageUnavailable("degraded");
    reopenAfter = now + REOPEN_EVERY_MS;
    file.reopen();
    statements = prepareLane(file.writer.database);
    broken = false;
  }

  /** Another program writes: nobody is blocked meanwhile, and whoever has waited long enough is told. */
  function waitForLock(now: number) {
    while (queue.length > 0 && queue[0]!.at + WRITE_WAIT_MS_MAX <= now) queue.shift()!.settle({ ok: false, error: new StorageUnavailable("busy") });
    busySince ??= now;
    if (now - busySince >= BUSY_NOTED_MS) health.failed("busy", "another program holds a write lock on the data file");
    if (queue.length === 0) return;
    armed = true;
    setTimeout(flush, BUSY_RETRY_MS);
  }

  function fail(cause: unknown, calls: Call[]) {
    const { database } = file.writer;
    tryTo(() => database.inTransaction && statements.rollback.run());
    inBatch = false;
    if (calls.length === 0) calls.push(...queue.splice(0, batchMax)); // these never ran
    const reason = cause instanceof StorageUnavailable ? cause.reason : (unavailability(cause) ?? "commit_failed");
    if (reason !== "disk_full" && reason !== "degraded") broken = true;
    if (reason !== "degraded") health.failed(reason, cause instanceof Error ? cause.message : String(cause));
    for (const call of calls) call.settle({ ok: false, error: new StorageUnavailable(reason, { cause }) });
  }

  /** The log is over its cap because a reader keeps it from starting over. Tried again until it gets through, without a write to trigger it. */
  function checkpoint() {
    if (checkpointTimer !== undefined || closed) return;
    const attempt = () => {
      checkpointTimer = undefined;
      if (closed || broken) return;
      tryTo(() => file.writer.database.query("pragma wal_checkpoint(truncate)").get());
      if (file.look().walBytes > walMax) checkpointTimer = setTimeout(attempt, CHECKPOINT_EVERY_MS).unref();
    };
    checkpointTimer = setTimeout(attempt, 0);
  }

  function arm() {
    if (!armed) setImmediate(flush);
    armed = true;
  }

  function write<T>(_project: string, rule: Rule<T>): Promise<T> {
    if (closed || queue.length >= queueMax) return Promise.reject(new StorageUnavailable(closed ? "closed" : "queue_full"));
    return new Promise<T>((resolve, reject) => {
      queue.push({ rule, at: performance.now(), settle: (outcome) => (outcome.ok ? resolve(outcome.value as T) : reject(outcome.error)) });
      arm();
    });
  }

  return {
    kind: "sqlite",
    generation: file.generation,
    read,
    write,
    follow: (project, after, signal) => follow(read.events, wakeups, { project, after, signal, idleMs }),
    health: async () => ({ ...(await health.check(write)), queued: queue.length, walBytes: file.look().walBytes }),
    onCommitted: (listener) => void listeners.push(listener),
    announce: file.announce,
    async close() {
      if (closed) return;
      closed = true;
      for (let until = performance.now() + WRITE_WAIT_MS_MAX; queue.length > 0 && performance.now() < until; ) {
        flush();
        if (queue.length > 0) await Bun.sleep(1);
      }
      for (const call of queue.splice(0)) call.settle({ ok: false, error: new StorageUnavailable("closed") });
      clearTimeout(checkpointTimer);
      file.close();
    },
  };
}

/** The statements around every batch and call, prepared once per connection. */
function prepareLane(database: { prepare: (sql: string) => { run: () => unknown } }) {
  return {
    begin: database.prepare("begin immediate"),
    commit: database.prepare("commit"),
    rollback: database.prepare("rollback"),
    savepoint: database.prepare("savepoint call"),
    release: database.prepare("release call"),
    undo: database.prepare("rollback to call"),
  };
}

const isBusy = (error: unknown) => codeOf(error).startsWith("SQLITE_BUSY");

function tryTo(work: () => unknown) {
  try {
    work();
  } catch {
    // The failure that matters has been kept; this was clearing up after it.
  }
}
