// The event log and who follows it: what retention takes, and what a cursor that does not fit is told.
import { describe, expect, test } from "bun:test";
import type { LogTruncated } from "../../src/db/follow.ts";
import { follow, Wakeups } from "../../src/db/follow.ts";
import type { EventRow } from "../../src/db/schema.ts";
import type { AuditNote } from "../../src/db/tx.ts";
import { attempt, collect, range, START, WORLDS, type World } from "../support/engines.ts";
import { testedEvent } from "../support/rows.ts";

const DAY_MS = 86_400_000;

describe.each(WORLDS)("%s event log", (_, open) => {
  const append = ({ engine }: World, project: string, count: number) =>
    engine.write(project, async (tx) => {
      for (const n of range(count)) tx.append(testedEvent(project, n));
    });
  const prune = ({ engine }: World, project: string, before: number, limit = 500) =>
    engine.write(project, (tx) => tx.events.prune(project, before, limit));
  const firstOf = ({ engine }: World, project: string, after: number) => attempt(engine.follow(project, after, AbortSignal.timeout(5_000)).next());

  test("retention takes the oldest, at most so many at once, and never the newest", async () => {
    await using world = await open();
    await append(world, "p", 1_200);
    world.clock.now += 10 * DAY_MS;
    await append(world, "p", 5);
    const taken: number[] = [];
    do taken.push(await prune(world, "p", START + DAY_MS));
    while (taken.at(-1) === 500);
    expect(taken).toEqual([500, 500, 200]);
    expect((await world.engine.read.events.oldest("p"))?.seq).toBe(1_201);
    world.clock.now += 10 * DAY_MS;
    expect(await prune(world, "p", world.clock.now)).toBe(4); // one stays, so that a cursor behind it can be told
    expect(await prune(world, "p", world.clock.now)).toBe(0);
    expect(await world.engine.read.events.lastSeq("p")).toBe(1_205);
    await append(world, "p", 1);
    expect((await collect(world.engine, "p", 2, 1_204)).map(({ seq }) => seq)).toEqual([1_205, 1_206]);
  });

  test("another project's log is not touched, nor events that are young behind one that is old by a clock that jumped", async () => {
    await using world = await open();
    await append(world, "p", 3);
    await append(world, "q", 3);
    world.clock.now = START - 5 * DAY_MS; // the clock went back
    await append(world, "p", 3);
    expect(await prune(world, "p", START - DAY_MS)).toBe(0); // or the log would have a hole in its middle
    world.clock.now = START + DAY_MS;
    await append(world, "p", 1);
    expect(await prune(world, "p", START + 1)).toBe(6);
    expect((await world.engine.read.events.oldest("q"))?.seq).toBe(1);
  });

  test("a cursor that is too old, from the future or exactly at the end is told apart", async () => {
    await using world = await open();
    await append(world, "p", 10);
    world.clock.now += DAY_MS;
    await append(world, "p", 1);
    await prune(world, "p", world.clock.now);
    for (const after of [0, 1, 9])
      expect((await firstOf(world, "p", after)).error as LogTruncated).toMatchObject({ name: "LogTruncated", reason: "too_old" });
    for (const after of [12, 10 ** 9]) expect((await firstOf(world, "p", after)).error as LogTruncated).toMatchObject({ reason: "from_the_future" });
    expect((await firstOf(world, "other", 1)).error as LogTruncated).toMatchObject({ reason: "from_the_future" });
    expect((await firstOf(world, "p", 10)).value?.value?.seq).toBe(11);
    expect((await firstOf(world, "p", 11)).value).toEqual({ done: false, value: undefined }); // nothing new: a heartbeat
  }, 15_000);

  test("a follower that falls behind retention is told, not left waiting", async () => {
    await using world = await open();
    await append(world, "p", 5);
    const follower = world.engine.follow("p", 0, AbortSignal.timeout(5_000));
    expect((await follower.next()).value?.seq).toBe(1);
    world.clock.now += DAY_MS;
    await append(world, "p", 1_000);
    await prune(world, "p", world.clock.now, 1_000); // takes 2 to 5, of which it has read a page already
    for (const seq of [2, 3, 4, 5]) expect((await follower.next()).value?.seq).toBe(seq);
    await append(world, "p", 1);
    world.clock.now += DAY_MS;
    await append(world, "p", 1);
    while ((await prune(world, "p", world.clock.now, 1_000)) > 0);
    expect((await attempt(follower.next())).error as LogTruncated).toMatchObject({ reason: "too_old" });
  });

  test("an event of a person's action is kept in the audit beyond the log, and goes when its own time is over", async () => {
    await using world = await open();
    const audited = (n: number, audit?: AuditNote) =>
      world.engine.write("p", async (tx) => tx.append({ ...testedEvent("p", n), ...(audit && { audit }) }));
    await audited(1);
    await audited(2, { role: "operator", reason: "stuck", origin: "cli" });
    world.clock.now += 400 * DAY_MS;
    await audited(3, { role: "admin" });
    await prune(world, "p", world.clock.now);
    const pruned = await world.engine.write("p", (tx) => tx.events.pruneAudit(START + DAY_MS, 500));
    expect(pruned).toBe(1);
    expect(await world.engine.write("p", (tx) => tx.events.pruneAudit(START + DAY_MS, 500))).toBe(0);
  });

  test("a follower that is aborted ends, also while it waits and before it began", async () => {
    await using world = await open();
    const abort = new AbortController();
    const waiting = world.engine.follow("p", 0, abort.signal).next();
    abort.abort();
    expect((await waiting).done).toBe(true);
    expect((await world.engine.follow("p", 0, AbortSignal.abort()).next()).done).toBe(true);
  });
});

describe("following", () => {
  test("no event is missed between a read and the wait, whenever the wake-up comes", async () => {
    const wakeups = new Wakeups();
    const rows: EventRow[] = [];
    const add = () => {
      rows.push({ ...testedEvent("p"), seq: rows.length + 1, at: 1 });
      wakeups.wake("p");
    };
    let reads = 0;
    const log = {
      lastSeq: async () => rows.length,
      async after(_project: string, seq: number, limit: number) {
        const page = rows.slice(seq, seq + limit);
        if (reads++ < 50) add(); // commits right after every read
        return page;
      },
    };
    const abort = new AbortController();
    const seen: number[] = [];
    for await (const event of follow(log, wakeups, { project: "p", after: 0, signal: abort.signal, idleMs: 60_000 })) {
      if (event) seen.push(event.seq);
      if (seen.length === 50) abort.abort();
    }
    expect(seen).toEqual(range(50).map((n) => n + 1));
  });

  test("a sleeper leaves nothing behind", async () => {
    const wakeups = new Wakeups();
    const abort = new AbortController();
    const sleeps = range(5).map(() => wakeups.changed("p", 0, 60_000, abort.signal));
    expect(wakeups.waiting).toBe(5);
    abort.abort();
    await Promise.all(sleeps);
    expect(wakeups.waiting).toBe(0);
  });
});
