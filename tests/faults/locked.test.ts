// R36: another program locks the data file. Nobody is blocked meanwhile, waiting calls are told in time, and the lane goes on when it is free.
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { openEngine } from "../../src/db/open.ts";
import { newId } from "../../src/protocol/ids.ts";
import { attempt, range } from "../support/engines.ts";
import { temporaryFolder } from "../support/folders.ts";
import { leaseRow } from "../support/rows.ts";
import { FULL } from "./store-client.ts";

const LOCKED_MS = FULL ? 10_000 : 3_500;

/** Holds the write lock of a data file from another process for a while. */
async function lockFromOutside(path: string, ms: number) {
  const script = `const { Database } = require("bun:sqlite"); const d = new Database(process.argv.at(-1)); d.exec("pragma busy_timeout = 5000; begin immediate");
    console.log("locked"); setTimeout(() => { d.exec("rollback"); d.close(); }, ${ms});`;
  const child = Bun.spawn([process.execPath, "-e", script, path], { stdout: "pipe" });
  await child.stdout.getReader().read();
  return child;
}

/** Longest time that a timer of 5 ms came late while `work` ran. */
async function lagDuring<T>(work: () => Promise<T>): Promise<{ result: T; lag: number }> {
  let lag = 0;
  let last = performance.now();
  const timer = setInterval(() => {
    lag = Math.max(lag, performance.now() - last - 5);
    last = performance.now();
  }, 5);
  try {
    return { result: await work(), lag };
  } finally {
    clearInterval(timer);
  }
}

async function underLock() {
  using folder = temporaryFolder();
  const path = `${folder.path}/kxm.db`;
  const engine = await openEngine({ path, clock: Date.now, newId });
  const put = (name: string) => attempt(engine.write("p", (tx) => tx.leases.insert(leaseRow(name))));
  await put("before");
  const locker = await lockFromOutside(path, LOCKED_MS);
  const began = performance.now();
  const acked = ["before"];
  const refused: { reason: string; waited: number }[] = [];
  const { lag, result } = await lagDuring(async () => {
    const health = Bun.sleep(1_000).then(() => engine.health());
    let n = 0;
    while (locker.exitCode === null) {
      const asked = performance.now();
      const names = range(3).map(() => `during ${n++}`);
      const answers = await Promise.all(names.map(put));
      answers.forEach(({ error }, index) => {
        if (error) refused.push({ reason: (error as { reason?: string }).reason ?? error.message, waited: performance.now() - asked });
        else acked.push(names[index]!);
      });
      expect(await engine.read.leases.find("before")).toBeDefined(); // reads go on
    }
    const freed = performance.now();
    const { error } = await put("after");
    acked.push("after");
    return { health: await health, error, recoveredMs: performance.now() - freed, lockedMs: freed - began };
  });
  const stored = (await Promise.all(acked.map((name) => engine.read.leases.find(name)))).filter((row) => row !== undefined).length;
  const healthAfter = await engine.health();
  await engine.close();
  return { lag, refused, acked, stored, healthAfter, ...result };
}

test("a lock from outside never blocks the event loop, and nothing is lost", async () => {
  const { lag, refused, acked, stored, health, healthAfter, error, recoveredMs } = await underLock();
  expect(lag).toBeLessThan(300);
  expect(refused.length).toBeGreaterThan(2);
  expect(new Set(refused.map(({ reason }) => reason))).toEqual(new Set(["busy"]));
  for (const { waited } of refused) expect(waited).toBeWithin(1_900, 2_600);
  expect(health).toMatchObject({ ok: false, reason: "busy" });
  expect(error).toBeUndefined();
  expect(recoveredMs).toBeLessThan(1_000);
  expect(stored).toBe(acked.length);
  expect(healthAfter.ok).toBe(true);
}, 30_000);

test("the same lock freezes a hub whose connection waits by itself", async () => {
  const { exec, query } = Database.prototype;
  Database.prototype.exec = function (this: Database, sql: string, ...rest: any[]) {
    return exec.call(this, sql.replace("pragma busy_timeout = 0", "pragma busy_timeout = 1500"), ...rest);
  } as typeof exec;
  Database.prototype.query = function (this: Database, sql: string) {
    const statement = query.call(this, sql);
    return sql === "pragma busy_timeout" && (statement.get() as { timeout: number }).timeout === 1_500 ? { get: () => ({ timeout: 0 }) } : statement;
  } as typeof query;
  try {
    expect((await underLock()).lag).toBeGreaterThan(1_000);
  } finally {
    Object.assign(Database.prototype, { exec, query });
  }
}, 30_000);
