// Every engine keeps these promises of transactions, stores and the log, whatever rules do with them.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Tx } from "../../src/db/tx.ts";
import { newId } from "../../src/protocol/ids.ts";
import { attempt, collect, range, WORLDS, type World } from "../support/engines.ts";
import { agentRow, leaseRow, testedEvent } from "../support/rows.ts";

const unique = (word: string) => `${word}-${newId("req")}`;

describe.each(WORLDS)("%s engine", (_, open) => {
  let world: World;
  beforeAll(async () => {
    world = await open();
  }, 30_000);
  afterAll(() => world[Symbol.asyncDispose]());
  const write = <T>(rule: (tx: Tx) => Promise<T>, project = "p") => world.engine.write(project, rule);
  const findLease = (resource: string) => world.engine.read.leases.find(resource);

  test("a row comes back as it was stored: 53-bit integers, nulls, JSON, any text but NUL", async () => {
    const [p, row] = [unique("p"), leaseRow(unique("r"), { acquiredAt: 2 ** 52, expiresAt: 2 ** 53 - 1 })];
    await write(async (tx) => {
      await tx.leases.insert(row);
      tx.append(testedEvent(p));
    });
    expect(await findLease(row.resource)).toEqual(row);
    const free = { ...row, holderId: null, freedAt: 5 };
    await write((tx) => tx.leases.update(free));
    expect(await findLease(row.resource)).toEqual(free);
    expect((await world.engine.read.events.after(p, 0, 10))[0]!.data).toEqual({ n: 0, text: "a 'quoted' ☃ {}" });
  });

  test("a refused call changes nothing and hurts no neighbour in the same turn", async () => {
    const p = unique("p");
    const calls = [1, 2, 3].map((n) =>
      write(async (tx) => {
        await tx.leases.insert(leaseRow(`${p}/${n}`));
        tx.append(testedEvent(p, n));
        if (n === 2) throw new Error("refused");
      }),
    );
    expect((await Promise.allSettled(calls)).map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(await findLease(`${p}/2`)).toBeUndefined();
    expect((await world.engine.read.events.after(p, 0, 10)).map(({ seq, subjectId }) => [seq, subjectId])).toEqual([
      [1, "s1"],
      [2, "s3"],
    ]);
  });

  test("a rule that swallows a store failure fails all the same and hurts no neighbour", async () => {
    const p = unique("p");
    const swallow = async (tx: Tx) => {
      await tx.leases.insert(leaseRow(`${p}/x`));
      await tx.leases.insert(leaseRow(`${p}/y`, { fence: 0 })).catch(() => {}); // a CHECK says no
      return "done";
    };
    const results = await Promise.allSettled([
      write((tx) => tx.leases.insert(leaseRow(`${p}/first`))),
      write(swallow),
      write((tx) => tx.leases.insert(leaseRow(`${p}/last`))),
    ]);
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(await findLease(`${p}/x`)).toBeUndefined();
    expect(await findLease(`${p}/last`)).toBeDefined();
  });

  test("nobody sees a write before its promise resolved; the writer sees it right after", async () => {
    const resource = unique("r");
    let early: unknown = "not read";
    const seenEarly = Promise.withResolvers<void>();
    await write(async (tx) => {
      await tx.leases.insert(leaseRow(resource));
      void findLease(resource).then((row) => {
        early = row;
        seenEarly.resolve();
      });
      for (let i = 0; i < 5_000 && early === "not read"; i++) await tx.leases.find(resource);
    });
    expect(await findLease(resource)).toEqual(leaseRow(resource));
    await seenEarly.promise;
    expect(early).toBeUndefined();
  });

  test("a reader never waits for a writer, not even for the row it writes", async () => {
    const resource = unique("r");
    await write((tx) => tx.leases.insert(leaseRow(resource)));
    let fence: number | undefined;
    await write(async (tx) => {
      const lease = await tx.leases.lock(resource);
      await tx.leases.update({ ...lease!, fence: 2 });
      void findLease(resource).then((row) => {
        fence = row!.fence;
      });
      for (let i = 0; i < 5_000 && fence === undefined; i++) await tx.leases.find("nothing");
    });
    expect(fence).toBe(1);
  });

  test("a rule that awaits anything but its tx fails, and its lane goes on", async () => {
    const resource = unique("r");
    const never = Promise.withResolvers<void>();
    const bad = write(async (tx) => {
      await tx.leases.insert(leaseRow(resource));
      await never.promise;
    });
    expect((await attempt(bad)).error?.message).toBe("a rule awaited something other than tx");
    never.resolve();
    await write((tx) => tx.leases.insert(leaseRow(resource))); // the first insert is gone
  });

  test("a transaction kept after its call has ended is dead", async () => {
    let kept: Tx | undefined;
    await write(async (tx) => {
      kept = tx;
    });
    expect(() => kept!.leases).toThrow("has ended");
  });

  test("text sorts by code point, as keyset pages need", async () => {
    const p = unique("p");
    for (const name of ["b", "z", "a-1", "a1", "é", "_"]) await write((tx) => tx.agents.insert(agentRow(newId("agt"), p, name)));
    expect((await world.engine.read.agents.ofProject(p)).map(({ name }) => name)).toEqual(["_", "a-1", "a1", "b", "z", "é"]);
  });

  test("parallel calls take the numbers 1..n without gap, refusals included", async () => {
    const recipient = unique("agt");
    const calls = range(60).map((n) =>
      write(async (tx) => {
        const seq = await tx.messages.takeSeq(recipient);
        if (n % 4 === 3) throw new Error("refused");
        return seq;
      }),
    );
    const taken = (await Promise.allSettled(calls)).flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
    expect(taken).toEqual(range(45).map((n) => n + 1));
  });

  test("calls that take two counters in opposite order never block one another", async () => {
    const [a, b] = [unique("a"), unique("b")];
    const both = (n: number) =>
      write(async (tx) => {
        const [first, second] = n % 2 ? [a, b] : [b, a];
        await tx.messages.takeSeq(first!);
        return tx.messages.takeSeq(second!);
      });
    await Promise.all(range(12).map(both));
    expect(await write((tx) => tx.messages.takeSeq(a))).toBe(13);
  });

  test("followers see every event exactly once and in order while several lanes write one log", async () => {
    const p = unique("p");
    for (const n of range(40)) await write(async (tx) => tx.append(testedEvent(p, n)));
    const followers = [0, 0, 40].map((after) => collect(world.engine, p, 340 - after, after));
    const turn = () => new Promise((resolve) => setImmediate(resolve));
    await Promise.all(
      range(150).map(async (n) => {
        for (let i = Math.random() * 20; i > 0; i--) await turn(); // arrive in any order
        await world.engine.write(`lane-${n % 8}`, async (tx) => {
          for (let i = Math.random() * 4; i > 0; i--) await tx.leases.find("nothing"); // end in another order than begun
          tx.append(testedEvent(p, n));
          tx.append(testedEvent(p, n));
        });
      }),
    );
    const seen = await Promise.all(followers);
    expect(seen.map((events) => events.map(({ seq }) => seq))).toEqual([0, 0, 40].map((after) => range(340 - after).map((i) => after + i + 1)));
  }, 20_000);

  test("a reader that only polls never sees a gap", async () => {
    const p = unique("p");
    let stop = false;
    let gaps = 0;
    const poll = (async () => {
      for (let seen = 0; !stop; ) {
        for (const { seq } of await world.engine.read.events.after(p, seen, 1000)) if (seq !== ++seen) gaps++;
        await new Promise((resolve) => setImmediate(resolve));
      }
    })();
    await Promise.all(
      range(400).map((n) =>
        world.engine.write(`lane-${n % 8}`, async (tx) => {
          tx.append(testedEvent(p, n));
        }),
      ),
    );
    stop = true;
    await poll;
    expect(gaps).toBe(0);
    expect(await world.engine.read.events.lastSeq(p)).toBe(400);
  }, 20_000);
});
