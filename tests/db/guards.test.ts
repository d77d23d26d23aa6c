// R41 and the bounds of the lane: what happens when a rule, its author or the load misbehaves.
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { writeOnce } from "../../src/db/dialect-sqlite.ts";
import type { Engine } from "../../src/db/engine.ts";
import { type OpenOptions, openEngine } from "../../src/db/open.ts";
import type { StorageUnavailable, Tx } from "../../src/db/tx.ts";
import { newId } from "../../src/protocol/ids.ts";
import { attempt, range, START, WORLDS } from "../support/engines.ts";
import { temporaryFolder } from "../support/folders.ts";
import { leaseRow, testedEvent } from "../support/rows.ts";

const turn = () => new Promise((resolve) => setImmediate(resolve));

async function lane(options: Partial<OpenOptions> = {}) {
  const folder = temporaryFolder();
  const engine = await openEngine({ path: `${folder.path}/kxm.db`, clock: () => START, newId, ...options });
  const has = async (name: string) => (await engine.read.leases.find(name)) !== undefined;
  const put = (name: string) => engine.write("p", (tx) => tx.leases.insert(leaseRow(name)));
  return {
    engine,
    has,
    put,
    async [Symbol.asyncDispose]() {
      await engine.close();
      folder[Symbol.dispose]();
    },
  };
}

describe("R41: a rule awaits nothing but its transaction", () => {
  const waits: Record<string, (engine: Engine) => Promise<unknown>> = {
    "a timer": () => new Promise((wake) => setTimeout(wake, 1)),
    "a file": () => Bun.file(import.meta.path).text(),
    "another write": (engine) => engine.write("p", async () => {}),
    "an event": turn,
    "a worker's crypto": () => crypto.subtle.digest("SHA-256", new Uint8Array(1)),
    "a request": () => fetch("http://127.0.0.1:1/").catch(() => {}),
  };
  for (const [what, wait] of Object.entries(waits)) {
    test(`one that awaits ${what} fails at once, changes nothing and hurts no neighbour`, async () => {
      await using it = await lane();
      const woke = Promise.withResolvers<void>();
      const rule = async (tx: Tx) => {
        await tx.leases.insert(leaseRow("bad"));
        await wait(it.engine);
        woke.resolve();
        await tx.leases.insert(leaseRow("zombie"));
      };
      const calls = [it.put("before"), it.engine.write("p", rule), it.put("after")];
      const [before, bad, after] = await Promise.all(calls.map(attempt));
      await woke.promise; // the abandoned rule wakes up and finds its tx dead
      await turn();
      expect([before!.error, after!.error]).toEqual([undefined, undefined]);
      expect(bad!.error?.message).toContain("awaited something other than tx");
      expect(await Promise.all(["before", "bad", "zombie", "after"].map(it.has))).toEqual([true, false, false, true]);
    });
  }

  test("the transaction of bun:sqlite, given the same rule, keeps half of it: that is what the guard is for", async () => {
    using database = new Database(":memory:");
    database.exec("create table t (n integer)");
    const half = database.transaction(async () => {
      database.exec("insert into t values (1)");
      await turn();
      throw new Error("refused");
    });
    expect((await attempt(half())).error?.message).toBe("refused");
    expect(database.query("select count(*) as n from t").get()).toEqual({ n: 1 });
  });

  test("a rule outside any lane is guarded the same way", async () => {
    using folder = temporaryFolder();
    await (await openEngine({ path: `${folder.path}/kxm.db`, clock: () => START, newId })).close();
    using database = new Database(`${folder.path}/kxm.db`);
    const rule = async (tx: Tx) => {
      await tx.leases.insert(leaseRow("half"));
      await turn();
    };
    expect(() => writeOnce(database, { now: 1, newId }, rule)).toThrow("awaited something other than tx");
    expect(database.query("select count(*) as n from leases").get()).toEqual({ n: 0 });
  });
});

describe("bounds of the lane", () => {
  test("the queue is bounded, and calls beyond it are told so at once", async () => {
    await using it = await lane({ queueMax: 10 });
    const results = await Promise.all(range(15).map((n) => attempt(it.put(`${n}`))));
    expect(results.flatMap(({ error }) => (error ? [(error as StorageUnavailable).reason] : []))).toEqual(Array(5).fill("queue_full"));
    expect((await attempt(it.put("later"))).error).toBeUndefined();
  });

  test("closing finishes what was accepted and refuses the rest", async () => {
    await using it = await lane({ batchMax: 3 });
    const accepted = Promise.all(range(10).map((n) => attempt(it.put(`${n}`))));
    await it.engine.close();
    expect((await accepted).filter(({ error }) => error)).toEqual([]);
    expect((await attempt(it.put("late"))).error).toMatchObject({ reason: "closed", code: "storage_unavailable" });
    await it.engine.close(); // twice is once
  });

  test("a rule longer than the batch's time ends its batch, not its neighbours", async () => {
    await using it = await lane({ batchMs: 1 });
    const slow = () => {
      for (const until = performance.now() + 2; performance.now() < until; );
    };
    const results = await Promise.all(
      range(5).map((n) =>
        it.engine.write("p", async (tx) => {
          slow();
          await tx.leases.insert(leaseRow(`${n}`));
          return n;
        }),
      ),
    );
    expect(results).toEqual([0, 1, 2, 3, 4]);
  });

  test("other work gets its turn between batches, however long the queue is", async () => {
    await using it = await lane({ batchMax: 50 });
    const writes = Promise.all(range(1_000).map((n) => it.put(`${n}`)));
    let turns = 0;
    let done = false;
    const ticking = (async () => {
      for (; !done; turns++) await turn();
    })();
    await writes;
    done = true;
    await ticking;
    expect(turns).toBeGreaterThanOrEqual(19);
  });
});

describe.each(WORLDS)("%s guards", (_, open) => {
  test("a rule that ends before its store calls did is refused, or has them done", async () => {
    await using world = await open();
    const { error } = await attempt(
      world.engine.write("p", async (tx) => {
        void tx.leases.insert(leaseRow("unawaited"));
      }),
    );
    const stored = (await world.engine.read.leases.find("unawaited")) !== undefined;
    expect(stored).toBe(error === undefined); // never acknowledged and lost
  });

  test("an event that cannot be stored takes its call with it", async () => {
    await using world = await open();
    const { error } = await attempt(
      world.engine.write("p", async (tx) => {
        await tx.leases.insert(leaseRow("r"));
        tx.append({ ...testedEvent("p"), subjectId: null as unknown as string });
      }),
    );
    expect(error).toBeDefined();
    expect(await world.engine.read.leases.find("r")).toBeUndefined();
    await world.engine.write("p", async (tx) => tx.append(testedEvent("p")));
    expect(await world.engine.read.events.lastSeq("p")).toBe(1); // the number was not used up
  });

  test("nothing can be changed through what only reads", async () => {
    await using world = await open();
    expect((await attempt(world.engine.read.leases.insert(leaseRow("r")))).error).toBeDefined();
    expect((await attempt(world.engine.read.messages.takeSeq("agt"))).error).toBeDefined();
    expect((await attempt(world.engine.read.events.insertAll([{ ...testedEvent("p"), seq: 1, at: 1 }]))).error).toBeDefined();
    expect(await world.engine.read.leases.find("r")).toBeUndefined();
    expect(await world.engine.write("p", (tx) => tx.messages.takeSeq("agt"))).toBe(1);
  });

  test("closing finishes what was accepted", async () => {
    const world = await open();
    const accepted = Promise.all(range(40).map((n) => attempt(world.engine.write(`lane-${n % 5}`, (tx) => tx.leases.insert(leaseRow(`${n}`))))));
    await world.engine.close();
    expect((await accepted).filter(({ error }) => error)).toEqual([]);
    expect((await attempt(world.engine.write("p", async () => {}))).error).toMatchObject({ reason: "closed" });
    const again = await world.reopen();
    expect(await again.read.leases.find("39")).toBeDefined();
    await world[Symbol.asyncDispose]();
  });

  test("health is proven by a write, and generation stays over a restart", async () => {
    await using world = await open();
    expect(await world.engine.health()).toMatchObject({ ok: true, queued: 0 });
    const { generation } = world.engine;
    expect(generation).toMatch(/^gen_[0-9a-f]{32}$/);
    expect((await world.reopen()).generation).toBe(generation);
  });
});
