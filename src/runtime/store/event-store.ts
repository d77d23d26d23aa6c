// The event store of one project: everything a run was and did. `commit` is the only way to change it, and only for the supervisor whose generation
// the store holds. An event, its projection, its command and its outbox row are written together or not at all.
import type { Database } from "bun:sqlite";
import { assert } from "../../protocol/errors.ts";
import { RuntimeRefusal } from "../../protocol/runtime-errors.ts";
import type { Clock } from "../clock.ts";
import type { NewId } from "../ids.ts";
import type { Redactor } from "../redact/redactor.ts";
import { attemptTable, gateTable } from "./attempts.ts";
import { commandTable } from "./commands.ts";
import type { StoreContext } from "./context.ts";
import { closeDatabase, immediately, openDatabase, storeRefusal } from "./database.ts";
import { type EventRow, eventTable, type NewEvent } from "./events.ts";
import { controlTable, coordinatorTable, intakeTable } from "./intake.ts";
import first from "./migrations/0001_run_events.sql" with { type: "text" };
import second from "./migrations/0002_retries.sql" with { type: "text" };
import { outboxTable } from "./outbox.ts";
import { fold, type RunState } from "./projection.ts";
import { receiptTable } from "./receipts.ts";
import { type NewRun, type RunRow, runTable, stateTable } from "./runs.ts";

const REBUILD_PAGE = 1000;
const MIGRATIONS = [
  { name: "0001_run_events", sql: first },
  { name: "0002_retries", sql: second },
];

export type StoreOptions = {
  /** run-events.db of the project, or `:memory:`. */
  path: string;
  projectId: string;
  /** This machine's Runtime. A store that was made by another one is refused. */
  runtimeId: string;
  /** The supervisor's generation, from the registry. A lower one than the store has seen cannot write. */
  generation: number;
  /** Must know this process's secrets already: the first append uses it. */
  redactor: Redactor;
  clock: Clock;
  newId: NewId;
};

/** The run whose work is run again; with `stepId` from that step, else from the beginning. */
export type RetryOf = { runId: string; stepId?: string };

type Stores = ReturnType<typeof openTables>;
/** What a transaction may read and write. Valid only inside `commit`; every call is synchronous. */
export type StoreTx = Stores["write"];
/** What may be read at any time: the last committed state. */
export type StoreReads = Stores["read"];
export type EventStore = ReturnType<typeof openEventStore>;

/**
 * Opens (and makes) the event store of a project and claims it for this generation.
 * @throws RuntimeRefusal store_home_mismatch, store_fenced, store_too_new, store_corrupt, store_unavailable, state_root_unsafe
 */
export function openEventStore(options: StoreOptions) {
  const { path, generation } = options;
  const listeners = new Set<(events: EventRow[]) => void>();
  const connection = openConnection(options);
  return {
    /** The last committed state. */
    get read(): StoreReads {
      return connection.tables().read;
    },
    /**
     * One durable transaction: when it returns, everything `rule` wrote is on disk; when it throws, nothing is.
     * `rule` is synchronous and may run only store calls; it must not be called from inside another one.
     * @throws RuntimeRefusal store_fenced when another supervisor owns the store now; store_unavailable when the disk failed (then the outcome of
     *   this call is unknown until the store is read again); whatever `rule` throws
     */
    commit: <T>(rule: (tx: StoreTx) => T): T => {
      const tables = connection.tables();
      const { context, events } = tables;
      assert(!context.writing, "commit was called inside commit");
      const ended = commitOnce(tables, generation, path, rule);
      if (ended.lost) connection.distrust();
      if ("error" in ended) throw ended.error;
      const appended = events.unsaved.take();
      if (appended.length > 0) for (const listener of listeners) listener(appended);
      return ended.value;
    },
    /** Drops the projection of every run and folds it again from the events. Answers the number of runs. */
    rebuild: (): number => {
      const tables = connection.tables();
      const { context, read, runs } = tables;
      const ids = context.db.query<{ runId: string }, []>("select run_id as runId from runs order by arrival").all();
      const states = ids.map(({ runId }) => [runId, foldAll(read, runId)] as const);
      return run(tables, generation, path, () => {
        runs.write.dropStates();
        for (const [runId, state] of states) if (state) runs.write.putState(runId, state);
        return ids.length;
      });
    },
    /** Calls `listener` with the events of each commit, after it. Answers how to stop. */
    onAppend: (listener: (events: EventRow[]) => void) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    /** Whether the store still answers, and is ours. @throws RuntimeRefusal store_fenced, store_unavailable */
    probe: () => {
      try {
        assertOurs(connection.tables().context.db, generation);
      } catch (error) {
        throw storeRefusal(error, path);
      }
    },
    /** Closes the file, with everything moved out of its write-ahead log. */
    close: () => connection.close(),
  };
}

/** The open file. After a failed COMMIT it is not trusted: the next use opens it anew and sees what became of the transaction. */
function openConnection(options: StoreOptions) {
  const { path, clock, newId } = options;
  const connect = (): Stores => {
    const db = openDatabase(path, MIGRATIONS);
    try {
      claim(db, options);
      return openTables({ db, clock, newId, now: 0, writing: false }, options);
    } catch (error) {
      db.close();
      throw storeRefusal(error, path);
    }
  };
  let tables = connect();
  let trusted = true;
  return {
    tables: (): Stores => {
      if (trusted) return tables;
      const { db } = tables.context;
      try {
        if (db.inTransaction) db.run("rollback"); // or it keeps the file locked until its statements are collected
      } catch {} // it failed already
      try {
        db.close();
      } catch {} // the same
      tables = connect();
      trusted = true;
      return tables;
    },
    distrust: () => {
      trusted = false;
    },
    close: () => closeDatabase(tables.context.db),
  };
}

function foldAll(read: StoreReads, runId: string): RunState | undefined {
  let state: RunState | undefined;
  for (let after = 0; ; after = state!.lastSequence) {
    const page = read.events.after(runId, after, REBUILD_PAGE);
    for (const event of page) state = fold(state, event);
    if (page.length < REBUILD_PAGE) return state;
  }
}

type Ended<T> = { lost: boolean } & ({ value: T } | { error: unknown });

function commitOnce<T>(tables: Stores, generation: number, path: string, rule: (tx: StoreTx) => T): Ended<T> {
  const { context, events } = tables;
  const { db } = context;
  let committing = false;
  context.now = context.clock.now();
  try {
    db.run("begin immediate");
    assertOurs(db, generation);
    context.writing = true;
    const value = rule(tables.write);
    assert(typeof (value as { then?: unknown } | undefined)?.then !== "function", "a rule of commit must be synchronous");
    events.unsaved.flush();
    committing = true;
    db.run("commit");
    return { lost: false, value };
  } catch (error) {
    events.unsaved.undoTo(0);
    if (db.inTransaction) {
      try {
        db.run("rollback");
      } catch {
        committing = true; // a connection that cannot roll back is as lost as one whose COMMIT failed
      }
    }
    const refusal = (error as { name?: string }).name === "SQLiteError" ? storeRefusal(error, path) : error;
    return { lost: committing, error: refusal };
  } finally {
    context.writing = false;
  }
}

function run<T>(tables: Stores, generation: number, path: string, rule: (tx: StoreTx) => T): T {
  const ended = commitOnce(tables, generation, path, rule);
  if ("error" in ended) throw ended.error;
  return ended.value;
}

/** The store is ours while its generation is ours. @throws RuntimeRefusal store_fenced */
function assertOurs(db: Database, generation: number) {
  const row = db.query<{ generation: number }, []>("select generation from fence where id = 1").get();
  if (row?.generation !== generation)
    throw new RuntimeRefusal("store_fenced", `this store belongs to supervisor generation ${row?.generation}, this one is ${generation}`);
}

function claim(db: Database, { runtimeId, projectId, generation, clock, path }: StoreOptions) {
  immediately(db, () => {
    const meta = (key: string) => db.query<{ value: string }, [string]>("select value from meta where key = ?").get(key)?.value;
    const home = meta("home_runtime_id");
    if (home === undefined) {
      const put = db.query("insert into meta (key, value) values (?, ?)");
      put.run("home_runtime_id", runtimeId);
      put.run("project_id", projectId);
    } else if (home !== runtimeId) throw new RuntimeRefusal("store_home_mismatch", `${path} was made by Runtime ${home}, this one is ${runtimeId}`);
    else if (meta("project_id") !== projectId)
      throw new RuntimeRefusal("store_home_mismatch", `${path} holds project ${meta("project_id")}, not ${projectId}`);
    const held = db.query<{ generation: number }, []>("select generation from fence where id = 1").get()?.generation;
    if (held !== undefined && held > generation)
      throw new RuntimeRefusal("store_fenced", `this store belongs to supervisor generation ${held}, this one is ${generation}`);
    db.query("insert into fence (id, generation, claimed_at) values (1, ?, ?) on conflict (id) do update set generation = excluded.generation").run(
      generation,
      clock.now(),
    );
  });
}

function openTables(context: StoreContext, { redactor, projectId, runtimeId }: StoreOptions) {
  const identity = { projectId, homeRuntimeId: runtimeId };
  const [made, states] = [runTable(context, identity), stateTable(context)];
  const runs = { read: { ...made.read, ...states.read }, write: { ...made.write, ...states.write } };
  const outbox = outboxTable(context);
  const events = eventTable(context, { runs, outbox, redactor });
  let depth = 0;
  const savepoint = <T>(work: () => T): T => {
    const name = `call_${++depth}`;
    events.unsaved.flush();
    const before = events.unsaved.count();
    context.db.run(`savepoint ${name}`);
    try {
      const value = work();
      events.unsaved.flush();
      context.db.run(`release ${name}`);
      return value;
    } catch (error) {
      context.db.run(`rollback to ${name}`);
      context.db.run(`release ${name}`);
      events.unsaved.undoTo(before);
      throw error;
    } finally {
      depth--;
    }
  };
  const commands = commandTable(context, savepoint);
  const [attempts, gates, receipts] = [attemptTable(context), gateTable(context), receiptTable(context)];
  const [intake, coordinators, controls] = [intakeTable(context), coordinatorTable(context), controlTable(context)];
  const all = { runs, events, commands, attempts, gates, receipts, intake, coordinators, controls, outbox };
  const read = mapTables(all, (table) => table.read);
  const both = mapTables(all, (table) => ({ ...table.read, ...table.write })) as {
    [K in keyof typeof all]: (typeof all)[K]["read"] & (typeof all)[K]["write"];
  };
  const write = {
    ...both,
    /** Milliseconds of this transaction. */
    get now() {
      return context.now;
    },
    newId: context.newId,
    /** Makes a run, pins its plan and appends its first event, `run.created`. */
    createRun: (run: NewRun & { plan: unknown; planHash: string; retryOf?: RetryOf }, local?: Record<string, unknown>): RunRow => {
      const { plan, planHash, retryOf, ...row } = run;
      const made = runs.write.insert(row);
      runs.write.savePlan(made.runId, plan, planHash);
      const { workflowId, displayTitle, promptHash } = made;
      const again = retryOf && { suppliedRefs: [{ id: retryOf.runId, kind: "run" }], ...(retryOf.stepId && { stepId: retryOf.stepId }) };
      events.write.append(made.runId, {
        type: "run.created",
        payload: { status: "created", workflowId, displayTitle, promptHash, ...again },
        local,
      });
      return made;
    },
    /** Appends one event to a run. @throws RuntimeRefusal run_not_found */
    append: (runId: string, event: NewEvent): EventRow => events.write.append(runId, event),
    /** What the run looks like now, with what this transaction appended. */
    state: (runId: string): RunState | undefined => events.unsaved.state(runId),
  };
  return { context, runs, events, read, write };
}

type Table = { read: object; write?: object };
const mapTables = <T extends Record<string, Table>, R>(tables: T, pick: (table: any) => R): { [K in keyof T]: T[K]["read"] } =>
  Object.fromEntries(Object.entries(tables).map(([name, table]) => [name, pick(table)])) as never;
