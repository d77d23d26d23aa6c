// The loop: what is due runs, once, in order; a job that fails hurts no other; nothing kept in memory is lost at the end.
import { expect, test } from "bun:test";
import { createLoop, type Job, startLoops } from "../../src/hub/loop.ts";
import * as sessions from "../../src/hub/sessions.ts";
import { sha256 } from "../../src/protocol/canonical.ts";
import { newSecret } from "../../src/protocol/ids.ts";
import { openHubWorld } from "../support/hub.ts";

/** A job that counts its runs. */
function counter(name: string, everyMs: number, run?: () => Promise<number>): Job & { runs: number } {
  const job: Job & { runs: number } = { name, everyMs, runs: 0, run: run ?? (async () => ++job.runs) };
  return job;
}

test("each job runs at its own pace, and not before it is due", async () => {
  await using it = await openHubWorld();
  const [fast, slow] = [counter("fast", 1_000), counter("slow", 5_000)];
  const loop = createLoop(it.hub, [fast, slow]);
  const seen = [];
  for (let second = 0; second < 11; second++) {
    await loop.runOnce();
    await loop.runOnce(); // the same moment again: nothing is due
    seen.push([fast.runs, slow.runs]);
    it.clock.now += 1_000;
  }
  expect(seen[0]).toEqual([1, 1]);
  expect(seen[4]).toEqual([5, 1]);
  expect(seen[5]).toEqual([6, 2]);
  expect(seen[10]).toEqual([11, 3]);
});

test("a clock that is set far back does not stop a job", async () => {
  await using it = await openHubWorld();
  const job = counter("job", 1_000);
  const loop = createLoop(it.hub, [job]);
  await loop.runOnce();
  it.clock.now -= 365 * 86_400_000;
  await loop.runOnce();
  it.clock.now += 1_000;
  await loop.runOnce();
  expect(job.runs).toBe(3);
});

test("a job that fails is logged without hurting the others, and runs again at its next time", async () => {
  const lines: Record<string, unknown>[] = [];
  await using it = await openHubWorld();
  const hub = { ...it.hub, log: (line: Record<string, unknown>) => void lines.push(line) };
  let failures = 0;
  const broken = counter("broken", 1_000, async () => {
    failures++;
    throw new Error("no such luck\nforged: line");
  });
  const after = counter("after", 1_000);
  const loop = createLoop(hub, [broken, after]);
  expect(await loop.runOnce()).toEqual({ after: 1 });
  it.clock.now += 1_000;
  await loop.runOnce();
  expect([failures, after.runs]).toEqual([2, 2]);
  expect(lines.filter(({ event }) => event === "job_failed")).toEqual([
    { event: "job_failed", level: "error", job: "broken", error: "Error: no such luck forged: line" },
    { event: "job_failed", level: "error", job: "broken", error: "Error: no such luck forged: line" },
  ]);
  expect(lines.filter(({ event }) => event === "swept")).toHaveLength(2);
});

test("a quiet round writes no log line", async () => {
  const lines: unknown[] = [];
  await using it = await openHubWorld();
  const loop = createLoop({ ...it.hub, log: (line) => void lines.push(line) });
  await loop.runOnce();
  it.clock.now += 60_000;
  await loop.runOnce();
  expect(lines).toEqual([]);
});

test("a lane that takes long does not hold up another", async () => {
  await using it = await openHubWorld();
  const slow = Promise.withResolvers<number>();
  const quick = Promise.withResolvers<number>();
  const stop = startLoops(it.hub, [
    { name: "slow", lane: "upkeep", everyMs: 1_000, run: () => slow.promise },
    {
      ...counter("quick", 1_000, async () => {
        quick.resolve(1);
        return 1;
      }),
      lane: "due",
    },
  ]);
  expect(await quick.promise).toBe(1); // while the slow one still runs
  slow.resolve(1);
  await stop();
});

test("when a session was last used is written in time, and at the end", async () => {
  await using it = await openHubWorld();
  const secret = newSecret("kxs");
  const session = await it.hub.engine.write("", (tx) =>
    sessions.begin(tx, { role: "admin", project: null, tokenId: null }, { session: secret, csrf: newSecret("kxs") }),
  );
  const stored = async () => (await it.hub.engine.read.sessions.find(session.id))!.lastSeenAt;
  const loop = createLoop(it.hub);
  await loop.runOnce();
  const start = it.clock.now;
  it.clock.now += 6_000;
  await sessions.authenticate(it.hub.engine.read, it.hub.seenSessions, secret, it.clock.now);
  expect(await stored()).toBe(start);
  await loop.runOnce();
  expect(await stored()).toBe(start + 6_000);
  it.clock.now += 1_000;
  await sessions.authenticate(it.hub.engine.read, it.hub.seenSessions, secret, it.clock.now);
  await loop.stop();
  expect(await stored()).toBe(start + 7_000);
});

test("when a token was last used is written the same way", async () => {
  await using it = await openHubWorld({ localAdminTokenHash: sha256("admin") });
  const admin = { authorization: "Bearer admin" };
  const { token, secret } = (await it.call("POST", "/v1/tokens", { headers: admin, body: { name: "wall", scope: "viewer" } })).body;
  expect(token.lastUsedAt).toBeUndefined();
  await it.call("GET", "/v1/projects", { headers: { authorization: `Bearer ${secret}` } });
  await createLoop(it.hub).stop();
  const [listed] = (await it.call("GET", "/v1/tokens", { headers: admin })).body.tokens;
  expect(listed.lastUsedAt).toBe(new Date(it.clock.now).toISOString());
});

test("a started loop runs its jobs by itself, and ends when it is told, once or twice", async () => {
  await using it = await openHubWorld();
  const ticked = Promise.withResolvers<number>();
  const loop = createLoop(it.hub, [
    counter("tick", 1_000, async () => {
      ticked.resolve(1);
      return 1;
    }),
  ]);
  loop.start();
  expect(await ticked.promise).toBe(1);
  await loop.stop();
  await loop.stop();
});
