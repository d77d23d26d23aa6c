// A fresh store of each kind for a test. SQLite is a real file in memory-backed /dev/shm (so WAL and the second connection are real); PostgreSQL is
// a database of its own, cloned from a template that is migrated once per schema.

import { test } from "bun:test";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { SQL } from "bun";
import type { Engine } from "../../src/db/engine.ts";
import { migratePostgres, schemaFingerprint } from "../../src/db/migrate.ts";
import { openEngine } from "../../src/db/open.ts";
import type { EventRow } from "../../src/db/schema.ts";
import { type IdPrefix, newId } from "../../src/protocol/ids.ts";

/** Base address of a throw-away PostgreSQL, such as postgres://postgres@127.0.0.1:5999. Without it the PostgreSQL half of a suite is skipped, visibly. */
export const POSTGRES_SERVER = process.env["KXM_TEST_POSTGRES"];
/** Where test files live: memory if the machine has it, so that a suite does not wait for its disk. */
export const TEST_ROOT = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();
/** The fake clock starts here: a round time, far from 0, so that a forgotten unit shows. */
export const START = 1_800_000_000_000;

if (!POSTGRES_SERVER) test.skip("PostgreSQL worlds: set KXM_TEST_POSTGRES to run them", () => {});

export type WorldOptions = { now?: number; newId?: (prefix: IdPrefix) => string };
/** One store with its clock. `clock.now` is what rules see as `tx.now`; set it to move time. */
export type World = {
  kind: "sqlite" | "postgres";
  engine: Engine;
  clock: { now: number };
  /** The data file or the database's address. */
  location: string;
  /** Closes the engine and opens the same store again, as a restart does. The new engine is also `world.engine`. */
  reopen(): Promise<Engine>;
  [Symbol.asyncDispose](): Promise<void>;
};
export type OpenWorld = (options?: WorldOptions) => Promise<World>;

/** Ids that are the same in every run: the n-th id of a world ends in n. They still sort by creation. */
export function countingIds(): (prefix: IdPrefix) => string {
  let made = 0;
  return (prefix) => `${prefix}_${(++made).toString(16).padStart(32, "0")}`;
}

export const sqliteWorld: OpenWorld = async (options = {}) => {
  const folder = mkdtempSync(`${TEST_ROOT}/kxm-test-`);
  const location = `${folder}/kxm.db`;
  return world(
    "sqlite",
    location,
    options,
    (common) => openEngine({ ...common, path: location }),
    () => rmSync(folder, { recursive: true, force: true }),
  );
};

export const postgresWorld: OpenWorld = async (options = {}) => {
  const { url, drop } = await newDatabase();
  return world("postgres", url, options, (common) => openEngine({ ...common, url, connections: 4 }), drop);
};

/** For `describe.each(WORLDS)("%s …", (_, open) => …)`. */
export const WORLDS: [World["kind"], OpenWorld][] = POSTGRES_SERVER
  ? [
      ["sqlite", sqliteWorld],
      ["postgres", postgresWorld],
    ]
  : [["sqlite", sqliteWorld]];

async function world(
  kind: World["kind"],
  location: string,
  options: WorldOptions,
  open: (common: { clock: () => number; newId: (prefix: IdPrefix) => string }) => Promise<Engine>,
  remove: () => void | Promise<void>,
): Promise<World> {
  const clock = { now: options.now ?? START };
  const common = { clock: () => clock.now, newId: options.newId ?? newId };
  const it: World = {
    kind,
    clock,
    location,
    engine: await open(common),
    async reopen() {
      await it.engine.close();
      return (it.engine = await open(common));
    },
    async [Symbol.asyncDispose]() {
      await it.engine.close();
      await remove();
    },
  };
  return it;
}

let template: Promise<string> | undefined;

/** A PostgreSQL database with the schema in it. `drop` also ends the connections that are still open. */
export async function newDatabase(): Promise<{ url: string; drop: () => Promise<void> }> {
  template ??= migratedTemplate();
  const name = newId("hub").replace("hub_", "kxm_t");
  await administer(`create database ${name} template ${await template}`);
  return { url: `${POSTGRES_SERVER}/${name}`, drop: () => administer(`drop database ${name} with (force)`) };
}

/** An empty PostgreSQL database, for tests of the migrations themselves. */
export async function emptyDatabase(): Promise<{ url: string; drop: () => Promise<void> }> {
  const name = newId("hub").replace("hub_", "kxm_e");
  await administer(`create database ${name}`);
  return { url: `${POSTGRES_SERVER}/${name}`, drop: () => administer(`drop database ${name} with (force)`) };
}

async function administer(statement: string) {
  const client = new SQL(`${POSTGRES_SERVER}/postgres`, { max: 1 });
  try {
    await client.unsafe(statement);
  } finally {
    await client.close();
  }
}

/** Made by the first test process of a server and found by the others; a lock keeps them apart. */
async function migratedTemplate() {
  const name = `kxm_template_${schemaFingerprint().slice(0, 16)}`;
  const client = new SQL(`${POSTGRES_SERVER}/postgres`, { max: 1 });
  try {
    await client`select pg_advisory_lock(73310)`;
    const [known] = await client`select 1 from pg_database where datname = ${name}`;
    if (known) return name;
    const building = `${name}_new`;
    await client.unsafe(`drop database if exists ${building}`);
    await client.unsafe(`create database ${building}`);
    await migratePostgres(`${POSTGRES_SERVER}/${building}`);
    await client.unsafe(`alter database ${building} rename to ${name}`);
    return name;
  } finally {
    await client.close(); // frees the lock
  }
}

/** The first `count` events of a follower from `after`; heartbeats are left out. */
export async function collect(engine: Engine, project: string, count: number, after = 0): Promise<EventRow[]> {
  const events: EventRow[] = [];
  const abort = new AbortController();
  for await (const event of engine.follow(project, after, abort.signal)) {
    if (event) events.push(event);
    if (events.length >= count) abort.abort();
  }
  return events;
}

/** What a write came to: its value, or its refusal with the code (or name). Unlike `expect().rejects` it leaves the event loop alone. */
export const attempt = <T>(work: Promise<T>): Promise<{ value?: T; code?: string; error?: Error }> =>
  work.then(
    (value) => ({ value }),
    (error) => ({ error, code: error.code ?? error.reason ?? error.name }),
  );

/** 0, 1, … length - 1. */
export const range = (length: number): number[] => Array.from({ length }, (_, index) => index);
