// PostgreSQL: a write lane per project. Waiting calls of a project share one transaction on one connection, each in its own savepoint, under a lock
// of the project that all hubs respect. So the calls of a project happen one after another, as on SQLite: a rule that is right there is right here.
import { type ReservedSQL, SQL } from "bun";
import { WRITE_BATCH_POSTGRES_MAX } from "../protocol/limits.ts";
import { guardReads, guardWrites, isConnectionLoss, newUse, postgresDialect, settleOnStores, sqlState, type Use } from "./dialect-postgres.ts";
import { type Call, type Engine, type EngineOptions, IDLE_MS, QUEUE_MAX } from "./engine.ts";
import { follow, Wakeups } from "./follow.ts";
import { watchHealth } from "./health.ts";
import { ensureGeneration } from "./meta.ts";
import { type Migration, migratePostgres } from "./migrate.ts";
import { describePostgres, preparePostgres } from "./postgres-server.ts";
import { StoreRefused } from "./refused.ts";
import {
  type AppendedEvent,
  flushEvents,
  type Outcome,
  openStores,
  type Rule,
  StorageUnavailable,
  type Stores,
  Tx,
  type Unavailability,
} from "./tx.ts";

const CONNECTIONS = 8;
const BATCH_MAX = WRITE_BATCH_POSTGRES_MAX; // PostgreSQL keeps 64 subtransactions of a transaction at hand; beyond that every snapshot gets slow
const RERUNS_MAX = 5;
const STUCK_MS = 10_000;
const CHANNEL = "kxm_events";
const LOST_RACE = new Set(["23505", "40001", "40P01"]); // unique violation, serialization failure, deadlock: only between projects

export type PostgresOptions = EngineOptions & {
  /** Write connections, and as many for reads. */
  connections?: number;
  /** A hub that froze keeps its project locked this long at most, ms. */
  stuckMs?: number;
  migrations?: readonly Migration[];
};

/** Opens a hub's share of a database. Several hubs may use the same one. @throws StoreRefused */
export async function openPostgres(url: string, options: PostgresOptions): Promise<Engine> {
  const { clock, newId, queueMax = QUEUE_MAX, connections = CONNECTIONS, idleMs = IDLE_MS, stuckMs = STUCK_MS, log = () => {} } = options;
  const session = await preparePostgres(url, log);
  await migrate(url, options.migrations);
  const client = (max: number, more = {}) => new SQL({ url, max, connectionTimeout: 5, connection: { ...session, ...more } });
  // A lock that does not come within twice the time a frozen hub may hold it will not come.
  const all = Array.from(
    { length: connections },
    (): Connection => ({
      pool: client(1, { idle_in_transaction_session_timeout: stuckMs, lock_timeout: 2 * stuckMs }),
      use: newUse(),
    }),
  );
  const idle = [...all];
  const reads = client(connections, { default_transaction_read_only: "on" });
  const read = openStores(postgresDialect(reads, guardReads));
  const [notices, listener] = [client(1), client(1)];
  const wakeups = new Wakeups();
  const listeners: ((event: AppendedEvent) => void)[] = [];
  const health = watchHealth({ clock, log });
  const lanes = new Map<string, Call[]>(); // by project, longest waiting first
  const [running, unsent] = [new Set<string>(), new Set<string>()];
  let waiting = 0;
  let armed = false;
  let sending: Promise<void> | undefined;
  let closed = false;
  let drained = () => {};
  await listener.listen(CHANNEL, (project: string) => wakeups.wake(project));

  function next() {
    armed = false;
    for (const [project, calls] of [...lanes]) {
      if (idle.length === 0) return;
      if (running.has(project)) continue;
      lanes.delete(project);
      const batch = calls.splice(0, BATCH_MAX);
      if (calls.length > 0) lanes.set(project, calls);
      waiting -= batch.length;
      running.add(project);
      void serve(idle.pop()!, project, batch);
    }
    if (waiting === 0 && running.size === 0) drained();
  }

  async function serve(connection: Connection, project: string, calls: Call[]) {
    const appended: AppendedEvent[] = [];
    const outcomes: Outcome<unknown>[] = [];
    try {
      const session = await begin(connection, project);
      for (const { rule } of calls) outcomes.push(await perform(connection, session, { rule, appended }));
      connection.use = newUse();
      await flushEvents(appended, session.stores);
      await session.client.unsafe("commit");
      tell(appended);
      calls.forEach((call, index) => call.settle(outcomes[index]!));
      if (appended.length > 0) health.committed(); // a batch of refusals wrote nothing and proves nothing
      for (const changed of new Set(appended.map((event) => event.project))) announce(changed);
    } catch (cause) {
      if (isConnectionLoss(cause)) giveUp(connection);
      else await connection.session?.client.unsafe("rollback").catch(() => giveUp(connection));
      tell(appended); // they may be there all the same
      const reason = reasonOf(cause);
      health.failed(reason, cause instanceof Error ? cause.message : String(cause));
      for (const call of calls) call.settle({ ok: false, error: new StorageUnavailable(reason, { cause }) });
    }
    running.delete(project);
    idle.push(connection);
    next();
  }

  function tell(events: AppendedEvent[]) {
    try {
      for (const listener of listeners) events.forEach(listener);
    } catch (error) {
      log("store_listener_failed", { message: String(error) }); // the calls are durable all the same
    }
  }

  async function perform(
    connection: Connection,
    { client, stores }: Session,
    { rule, appended }: { rule: Rule<unknown>; appended: AppendedEvent[] },
  ): Promise<Outcome<unknown>> {
    for (let run = 1; ; run++) {
      const use = (connection.use = newUse());
      const tx = new Tx(stores, clock(), newId);
      const outcome = await settleOnStores(use, () => rule(tx));
      tx.close();
      const error = use.fault ?? (outcome.ok ? undefined : outcome.error);
      if (outcome.ok && error === undefined) {
        await client.unsafe("release call; savepoint call");
        appended.push(...tx.appended);
        return outcome;
      }
      if (isConnectionLoss(error) || reasonOf(error) === "disk_full") throw error;
      await client.unsafe("rollback to call");
      if (!LOST_RACE.has(sqlState(error)) || run === RERUNS_MAX) return { ok: false, error }; // else once more: it will see the winner's row
    }
  }

  /** After COMMIT and coalesced: NOTIFY inside the transaction would hold a lock of the whole server over the fsync. */
  function announce(project: string) {
    wakeups.wake(project);
    unsent.add(project);
    sending ??= (async () => {
      while (unsent.size > 0) {
        const projects = JSON.stringify([...unsent]);
        unsent.clear();
        const sent = notices`select pg_notify(${CHANNEL}, name) from json_array_elements_text(${projects}::text::json) as name`;
        await sent.catch(() => {}); // followers also poll
      }
      sending = undefined;
    })();
  }

  function write<T>(project: string, rule: Rule<T>): Promise<T> {
    if (closed || waiting >= queueMax) return Promise.reject(new StorageUnavailable(closed ? "closed" : "queue_full"));
    return new Promise<T>((resolve, reject) => {
      const calls = lanes.get(project) ?? [];
      lanes.set(project, calls);
      calls.push({ rule, settle: (outcome) => (outcome.ok ? resolve(outcome.value as T) : reject(outcome.error)) });
      waiting++;
      if (!armed) setImmediate(next); // so that the calls of one turn share a transaction
      armed = true;
    });
  }

  async function close() {
    if (closed) return;
    closed = true;
    const done = Promise.withResolvers<void>();
    drained = done.resolve;
    setImmediate(next);
    await done.promise;
    await sending;
    all.forEach(giveUp);
    await Promise.all([reads, notices, listener, ...all.map(({ pool }) => pool)].map((each) => each.close({ timeout: 1 })));
  }

  const engine = {
    kind: "postgres" as const,
    generation: "",
    read,
    write,
    follow: (project: string, after: number, signal: AbortSignal) => follow(read.events, wakeups, { project, after, signal, idleMs }),
    health: async () => ({ ...(await health.check(write)), queued: waiting }),
    onCommitted: (listener: (event: AppendedEvent) => void) => void listeners.push(listener),
    announce: () => {}, // hubs share a database; nobody holds it
    close,
  };
  try {
    engine.generation = await write("", ensureGeneration);
    return engine;
  } catch (error) {
    await close();
    throw error;
  }
}

async function migrate(url: string, migrations: readonly Migration[] | undefined) {
  try {
    await migratePostgres(url, migrations);
  } catch (cause) {
    if (cause instanceof StoreRefused) throw cause;
    const message = `${describePostgres(url)} did not take the schema: ${(cause as Error).message}`;
    throw new StoreRefused("database_unsuitable", message, "The hub's user needs the right to create tables in this database; best it owns it.", {
      cause,
    });
  }
}

/**
 * A seat in the pool and what sits in it. Statements go through a reserved connection, never through the pool: the pool would answer a lost connection
 * with a new one, and the rest of a rule would run there, outside its transaction.
 */
type Connection = { pool: SQL; use: Use; session?: Session | undefined };
type Session = { client: ReservedSQL; stores: Stores };

async function sessionOf(connection: Connection): Promise<Session> {
  if (connection.session) return connection.session;
  const client = await connection.pool.reserve();
  return (connection.session = { client, stores: openStores(postgresDialect(client, guardWrites(connection))) });
}

/** Takes the project's lock. A connection that was cut while it was idle shows only now: nothing has happened on it, so once more. */
async function begin(connection: Connection, project: string): Promise<Session> {
  // READ COMMITTED: the next query sees what the last holder of the lock committed. A stricter level would take its snapshot before the lock.
  const statements = `begin isolation level read committed; select pg_advisory_xact_lock(${lockKey(project)}); savepoint call`;
  const first = await sessionOf(connection);
  try {
    await first.client.unsafe(statements);
    return first;
  } catch (error) {
    if (!isConnectionLoss(error)) throw error;
    giveUp(connection);
    const second = await sessionOf(connection);
    await second.client.unsafe(statements);
    return second;
  }
}

/** The connection is lost; the next batch reserves another. */
function giveUp(connection: Connection) {
  connection.session?.client.release();
  connection.session = undefined;
}

const lockKey = (project: string) => BigInt.asIntN(64, Bun.hash.xxHash64(project));

function reasonOf(error: unknown): Unavailability {
  if (error instanceof StorageUnavailable) return error.reason;
  if (isConnectionLoss(error)) return "unreachable";
  if (sqlState(error) === "53100") return "disk_full";
  if (sqlState(error) === "55P03") return "busy";
  return "commit_failed";
}
