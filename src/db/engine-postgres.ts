// PostgreSQL: a write lane per project. Waiting calls of a project share one transaction on one connection, each in its own savepoint, under a lock
// of the project that all hubs respect. So the calls of a project happen one after another, as on SQLite: a rule that is right there is right here.
import { SQL } from "bun";
import { drizzle } from "drizzle-orm/bun-sql";
import { WRITE_BATCH_POSTGRES_MAX } from "../protocol/limits.ts";
import type { Dialect, Slots } from "./dialect.ts";
import { type Call, type Engine, type EngineOptions, IDLE_MS, QUEUE_MAX } from "./engine.ts";
import { follow, Wakeups } from "./follow.ts";
import { migratePostgres } from "./migrate.ts";
import { postgresTables } from "./schema-kit.ts";
import { type AppendedEvent, ForeignAwait, flushEvents, type Outcome, openStores, type Rule, StorageUnavailable, Tx } from "./tx.ts";

const CONNECTIONS = 8;
const BATCH_MAX = WRITE_BATCH_POSTGRES_MAX; // PostgreSQL keeps 64 subtransactions of a transaction at hand; beyond that every snapshot gets slow
const RERUNS_MAX = 5;
const STUCK_MS = 10_000; // a hub that froze must not keep its project locked
const CHANNEL = "kxm_events";
const LOST_RACE = new Set(["23505", "40001", "40P01"]); // unique violation, serialization failure, deadlock: only between projects

export async function openPostgres(url: string, options: EngineOptions & { connections?: number }): Promise<Engine> {
  const { clock, newId, queueMax = QUEUE_MAX, connections = CONNECTIONS, idleMs = IDLE_MS } = options;
  await migratePostgres(url);
  const all = Array.from({ length: connections }, () => writeConnection(url));
  const idle = [...all];
  const reads = new SQL({ url, max: connections });
  const read = openStores(postgresDialect(reads, { use: newUse() }));
  const [notices, listener] = [new SQL({ url, max: 1 }), new SQL({ url, max: 1 })];
  const wakeups = new Wakeups();
  const lanes = new Map<string, Call[]>(); // by project, longest waiting first
  const [running, unsent] = [new Set<string>(), new Set<string>()];
  let waiting = 0;
  let sending: Promise<void> | undefined;
  let closed = false;
  await listener.listen(CHANNEL, (project: string) => wakeups.wake(project));

  function next() {
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
  }

  async function serve(connection: Connection, project: string, calls: Call[]) {
    const { client, stores } = connection;
    const appended: AppendedEvent[] = [];
    const outcomes: Outcome<unknown>[] = [];
    try {
      // READ COMMITTED: the next query sees what the last holder of the lock committed. A stricter level would take its snapshot before the lock.
      await client.unsafe(`begin; select pg_advisory_xact_lock(${lockKey(project)}); savepoint call`);
      for (const { rule } of calls) outcomes.push(await perform(connection, rule, appended));
      await flushEvents(appended, stores);
      await client.unsafe("commit");
      calls.forEach((call, index) => call.settle(outcomes[index]!));
      for (const changed of new Set(appended.map((event) => event.project))) announce(changed);
    } catch (cause) {
      await client.unsafe("rollback").catch(() => {}); // a lost connection is opened anew by its next query
      for (const call of calls) call.settle({ ok: false, error: new StorageUnavailable("commit_failed", { cause }) });
    }
    running.delete(project);
    idle.push(connection);
    next();
  }

  async function perform(connection: Connection, rule: Rule<unknown>, appended: AppendedEvent[]): Promise<Outcome<unknown>> {
    for (let run = 1; ; run++) {
      const use = (connection.use = newUse());
      const tx = new Tx(connection.stores, clock(), newId);
      const outcome = await settleOnStores(use, () => rule(tx));
      tx.close();
      const error = use.fault ?? (outcome.ok ? undefined : outcome.error);
      if (outcome.ok && error === undefined) {
        await connection.client.unsafe("release call; savepoint call");
        appended.push(...tx.appended);
        return outcome;
      }
      if (isConnectionLoss(error)) throw error;
      await connection.client.unsafe("rollback to call");
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

  return {
    read,
    write<T>(project: string, rule: Rule<T>) {
      if (closed || waiting >= queueMax) return Promise.reject(new StorageUnavailable(closed ? "closed" : "queue_full"));
      return new Promise<T>((resolve, reject) => {
        const calls = lanes.get(project) ?? [];
        lanes.set(project, calls);
        calls.push({ rule, settle: (outcome) => (outcome.ok ? resolve(outcome.value as T) : reject(outcome.error)) });
        if (waiting++ === 0) setImmediate(next); // so that the calls of one turn share a transaction
      });
    },
    follow: (project, after, signal) => follow(read.events.after, wakeups, { project, after, signal, idleMs }),
    async close() {
      closed = true;
      while (waiting > 0 || running.size > 0) await Bun.sleep(1);
      await sending;
      await Promise.all([reads, notices, listener, ...all.map(({ client }) => client)].map((client) => client.close()));
    },
  };
}

/** What the current call did to its connection, and what to do when none of its queries is running. */
type Use = { fault: unknown; pending: number; onIdle: () => void };
type Connection = ReturnType<typeof writeConnection>;
const newUse = (): Use => ({ fault: undefined, pending: 0, onIdle: () => {} });

function writeConnection(url: string) {
  const client = new SQL({ url, max: 1, connection: { idle_in_transaction_session_timeout: STUCK_MS } });
  const holder = { use: newUse() };
  return Object.assign(holder, { client, stores: openStores(postgresDialect(client, holder)) });
}

/** A rule that is neither done nor waiting for a query waits for something else. A turn of the event loop without a query tells. */
function settleOnStores<T>(use: Use, work: () => Promise<T>): Promise<Outcome<T>> {
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

function postgresDialect(client: SQL, holder: { use: Use }): Dialect {
  const db: any = drizzle(client, { casing: "snake_case" }); // the builders a store uses are the same in both dialects; the contract suite holds us to it
  const lazily = (query: any) => {
    let it: any;
    return () => (it ??= query.prepare(""));
  };
  const guarded = async <T>(query: () => Promise<T>) => {
    const use = holder.use;
    use.pending++;
    try {
      return await query();
    } catch (error) {
      use.fault ??= error; // a COMMIT after it would answer ROLLBACK without an error, so the call must fail whatever the rule does
      throw error;
    } finally {
      if (--use.pending === 0) use.onIdle();
    }
  };
  return {
    db,
    tables: postgresTables,
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
    locked: (query: any) => query.for("update"),
    insertAll: (table) => async (rows) => {
      if (rows.length > 0) await guarded(() => db.insert(table).values(rows).execute());
    },
    now: (query: any) => guarded(() => query.execute()),
  };
}

const lockKey = (project: string) => BigInt.asIntN(64, Bun.hash.xxHash64(project));
const causes = (error: any): any[] => (error ? [error, ...causes(error.cause)] : []);
const sqlState = (error: unknown): string =>
  causes(error)
    .map((cause) => cause.errno ?? "")
    .find((state) => /^[0-9A-Z]{5}$/.test(state)) ?? "";
const isConnectionLoss = (error: unknown) => causes(error).some(({ code }) => /^ERR_POSTGRES_(CONNECTION|IDLE|LIFETIME)/.test(code ?? ""));
