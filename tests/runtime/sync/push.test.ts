// The push of one project: every row ends acknowledged or parked, whatever the hub answers, and nothing is lost or sent without end.
import { expect, test } from "bun:test";
import { runtimeClient } from "../../../src/client/runtime-client.ts";
import { knownSecrets } from "../../../src/runtime/redact/known-secrets.ts";
import type { EventStore } from "../../../src/runtime/store/event-store.ts";
import type { OutboxRow } from "../../../src/runtime/store/outbox.ts";
import { BATCH_STEADY, ROW_BYTES_MAX, readResults, takeBatch } from "../../../src/runtime/sync/batch.ts";
import { pusher } from "../../../src/runtime/sync/push.ts";
import { hubStandIn, refusal } from "../hub-stand-in.ts";
import { aRun, fakeClock, PROJECT_ID, RUNTIME_ID, store } from "../support.ts";

const identity = { project: "demo", runtimeId: RUNTIME_ID };
const row = (seq: number, size = 100): OutboxRow => ({ seq, runId: "run_0123456789", sequence: seq, syncEvent: "x".repeat(size), attemptCount: 0 });

function setup(options: { random?: () => number } = {}) {
  const clock = fakeClock();
  const events = store({ clock });
  const hub = hubStandIn();
  const push = pusher({ store: events, projectId: PROJECT_ID, clock, random: options.random ?? (() => 1) });
  const client = runtimeClient({ url: hub.url }, identity);
  return { clock, events, hub, push, client, [Symbol.dispose]: () => void hub.stop() };
}

function fill(events: EventStore, count: number, summary = "did something"): string {
  const { runId } = events.commit((tx) => tx.createRun(aRun()));
  events.commit((tx) => {
    for (let index = 1; index < count; index++)
      tx.append(runId, { type: "step.status_changed", payload: { stepId: "build", status: "running", summary } });
  });
  return runId;
}

async function drain({ push, client }: Pick<ReturnType<typeof setup>, "push" | "client">, max = 1000) {
  let steps = 0;
  while (steps < max && (await push.step(client)) === "moved") steps++;
  return steps;
}

test("a batch holds at most 32 rows and 200,000 bytes, and at least one row", () => {
  const rows = Array.from({ length: 50 }, (_, index) => row(index + 1));
  expect(takeBatch(rows, BATCH_STEADY).batch.length).toBe(32);
  expect(takeBatch([row(1, 150_000), row(2, 60_000)], BATCH_STEADY).batch.map(({ seq }) => seq)).toEqual([1]);
  expect(takeBatch([row(1, 240_000), row(2)], BATCH_STEADY).batch.map(({ seq }) => seq)).toEqual([1]);
  const large = row(1, ROW_BYTES_MAX + 1);
  expect(takeBatch([large, row(2)], BATCH_STEADY)).toEqual({ batch: [], tooLarge: large });
  expect(takeBatch([row(1), large], BATCH_STEADY).batch.map(({ seq }) => seq)).toEqual([1]);
});

test("an answer counts only for the row it describes", () => {
  const batch = [row(1), row(2), row(3)];
  const good = (sequence: number) => ({ projectId: PROJECT_ID, runId: "run_0123456789", sequence, outcome: "accepted" as const });
  expect(readResults(batch, [good(1), good(2), good(3)], PROJECT_ID).map(({ is }) => is)).toEqual(["acked", "acked", "acked"]);
  expect(readResults(batch, [good(2), good(1), good(3)], PROJECT_ID).map(({ is }) => is)).toEqual(["unanswered", "unanswered", "acked"]);
  expect(readResults(batch, [good(1), good(2)], PROJECT_ID).map(({ is }) => is)).toEqual(["unanswered", "unanswered", "unanswered"]);
  expect(readResults(batch, [good(1), good(2), good(3)], "prj_someone_else").map(({ is }) => is)).toEqual(["unanswered", "unanswered", "unanswered"]);
  const refused = readResults([row(1)], [{ ...good(1), outcome: "conflict", code: "not a <code>" }], PROJECT_ID);
  expect(refused).toEqual([{ row: row(1), is: "refused", code: "sync_conflict" }]);
});

test("every event reaches the hub once, in order, in bounded requests", async () => {
  using world = setup();
  const runId = fill(world.events, 200);
  await drain(world);
  expect(world.hub.sequences(runId)).toEqual(Array.from({ length: 200 }, (_, index) => index + 1));
  expect(world.events.read.outbox.counts()).toEqual({ pending: 0, acked: 200, refused: {} });
  expect(Math.max(...world.hub.pushes().map(({ rows }) => rows!))).toBe(32);
  expect(world.push.report()).toEqual({ state: "ok", pending: 0, acked: 200, refused: {} });
});

test("a backlog is sent in larger requests, still below the hub's ceiling", async () => {
  using world = setup();
  fill(world.events, 1000, "word ".repeat(190));
  await drain(world);
  expect(world.events.read.outbox.counts().acked).toBe(1000);
  expect(Math.max(...world.hub.pushes().map(({ rows }) => rows!))).toBe(100);
  expect(Math.max(...world.hub.pushes().map(({ bytes }) => bytes!))).toBeLessThan(262_144);
});

test("rows that were taken before the answer was lost come back as duplicates and are done", async () => {
  using world = setup();
  const runId = fill(world.events, 40);
  await world.client.push(world.events.read.outbox.pending(0, 30).map(({ syncEvent }) => syncEvent)); // and then the process died
  await drain(world);
  expect(world.hub.sequences(runId).length).toBe(40);
  expect(world.events.read.outbox.counts()).toEqual({ pending: 0, acked: 40, refused: {} });
});

test("a conflict parks its row under the hub's code, the rows behind it go on, and a retry sends it again", async () => {
  using world = setup();
  const runId = fill(world.events, 5);
  world.hub.events.set(`${PROJECT_ID}/${runId}/3`, { text: "{}", at: 0 });
  await drain(world);
  expect(world.events.read.outbox.counts()).toEqual({ pending: 0, acked: 4, refused: { sync_sequence_reused: 1 } });
  expect(world.push.report().state).toBe("refusing");
  world.hub.events.delete(`${PROJECT_ID}/${runId}/3`);
  expect(world.events.commit((tx) => tx.outbox.retry("other_code"))).toBe(0);
  expect(world.events.commit((tx) => tx.outbox.retry())).toBe(1);
  await drain(world);
  expect(world.push.report()).toEqual({ state: "ok", pending: 0, acked: 5, refused: {} });
});

test.each([
  [401, "invalid_auth", "blocked"],
  [403, "host_forbidden", "blocked"],
  [429, "rate_limited", "blocked"],
  [503, "storage_unavailable", "blocked"],
  [500, "internal_error", "blocked"],
  [404, "route_not_found", "blocked"],
] as const)("status %d leaves every row pending and waits", async (status, code, state) => {
  using world = setup();
  fill(world.events, 3);
  world.hub.failWith(() => refusal(status, code, status === 429 || status === 503 ? { "retry-after": "7" } : {}));
  expect(await world.push.step(world.client)).toBe("failed");
  expect(world.push.report()).toMatchObject({ state, pending: 3, acked: 0, refused: {} });
  expect(world.push.report().lastError).toStartWith(`${code}: `);
  const before = world.hub.requests.length;
  world.clock.advance(status === 429 || status === 503 ? 6_999 : 500);
  expect(await world.push.step(world.client)).toBe("failed");
  expect(world.hub.requests.length).toBe(before); // it waited
  world.hub.failWith(undefined);
  world.clock.advance(20_000);
  await drain(world);
  expect(world.push.report()).toEqual({ state: "ok", pending: 0, acked: 3, refused: {} });
});

test("a hub that answers 500 for an hour loses nothing, is asked seldom, and gets every event once and in order", async () => {
  using world = setup();
  fill(world.events, 40);
  world.hub.failWith(() => refusal(500, "internal_error"));
  const HOUR = 3_600_000;
  for (let waited = 0; waited < HOUR; ) {
    await world.push.step(world.client);
    const wait = world.push.nextAttemptAt - world.clock.now();
    expect(wait).toBeGreaterThan(0);
    world.clock.advance(wait);
    waited += wait;
    fill(world.events, 1); // work goes on meanwhile
  }
  const during = world.hub.requests.length;
  expect(during).toBeLessThan(60);
  expect(world.push.report()).toMatchObject({ state: "blocked", acked: 0, lastError: expect.stringContaining("internal_error: ") });
  const all = world.push.report().pending;
  world.hub.failWith(undefined);
  world.clock.advance(300_000);
  await drain(world);
  expect(world.push.report()).toEqual({ state: "ok", pending: 0, acked: all, refused: {} });
  expect(world.hub.events.size).toBe(all);
});

test("waits grow with full jitter up to five minutes", async () => {
  using world = setup();
  fill(world.events, 1);
  world.hub.failWith(() => refusal(500, "internal_error"));
  const waits: number[] = [];
  for (let round = 0; round < 12; round++) {
    await world.push.step(world.client);
    waits.push(world.push.nextAttemptAt - world.clock.now());
    world.clock.advance(waits.at(-1)!);
  }
  expect(waits.slice(0, 4)).toEqual([10_000, 14_000, 19_600, 27_440]);
  expect(waits.at(-1)).toBe(300_000);
});

test.each([
  ["no JSON", () => new Response("<html>hello</html>")],
  ["another shape", () => Response.json({ ok: true })],
  ["no results", () => Response.json({ results: [], cursors: [] })],
  [
    "results of other rows",
    () => Response.json({ results: [{ projectId: PROJECT_ID, runId: "run_other_run", sequence: 1, outcome: "accepted" }], cursors: [] }),
  ],
  ["an unknown outcome", () => Response.json({ results: [{ outcome: "fine" }], cursors: [] })],
] as const)("an answer with %s acknowledges nothing", async (_, answer) => {
  using world = setup();
  fill(world.events, 1);
  world.hub.failWith(answer);
  expect(await world.push.step(world.client)).toBe("failed");
  expect(world.push.report()).toMatchObject({ state: "blocked", pending: 1, acked: 0 });
});

test("nobody listening is no hub, and nothing is lost", async () => {
  using world = setup();
  fill(world.events, 2);
  world.hub.stop();
  expect(await world.push.step(world.client)).toBe("failed");
  expect(world.push.report()).toMatchObject({ state: "no_hub", pending: 2 });
});

test("a hub that answers again is asked at once if it was away; if it refused, its time is kept", async () => {
  for (const [state, isAskedAtOnce] of [
    ["no_hub", true],
    ["blocked", false],
  ] as const) {
    using world = setup();
    fill(world.events, 1);
    if (state === "no_hub") world.hub.stop();
    else world.hub.failWith(() => refusal(500, "internal_error"));
    await world.push.step(world.client);
    expect(world.push.report().state).toBe(state);
    world.push.hubAnswers();
    expect([state, world.push.nextAttemptAt === world.clock.now()]).toEqual([state, isAskedAtOnce]);
  }
});

test("a row is settled once, and what one hub acknowledged is sent to another, not to the same again", () => {
  using world = setup();
  fill(world.events, 2);
  const [first, second] = world.events.read.outbox.pending(0, 2);
  const settled = world.events.commit(({ outbox }) => [
    outbox.ack(first!.seq),
    outbox.ack(first!.seq),
    outbox.refuse(first!.seq, "sync_conflict"),
    outbox.refuse(second!.seq, "sync_conflict"),
    outbox.ack(second!.seq),
  ]);
  expect(settled).toEqual([1, 0, 0, 1, 0]);
  expect(world.events.read.outbox.counts()).toEqual({ pending: 0, acked: 1, refused: { sync_conflict: 1 } });
  const sentAgain = ["hub one", "hub one", "hub two"].map((identity) => world.events.commit(({ outbox }) => outbox.useHub(identity)));
  expect(sentAgain).toEqual([0, 0, 1]);
});

test("a request that is too large is halved until it fits; one row that never fits is parked", async () => {
  using world = setup();
  const runId = fill(world.events, 40);
  const seen: number[] = [];
  world.hub.failWith(({ body }) => {
    if (!body?.events) return undefined;
    seen.push(body.events.length);
    const bad = body.events.some((event: any) => event.sequence === 7);
    return body.events.length > 8 || bad ? refusal(413, "payload_too_large") : undefined;
  });
  await drain(world);
  expect(seen.slice(0, 3)).toEqual([32, 16, 8]);
  expect(world.events.read.outbox.counts()).toEqual({ pending: 0, acked: 39, refused: { sync_row_too_large: 1 } });
  expect(world.hub.sequences(runId)).not.toContain(7);
});

test("a hub that was restored from an older copy gets its lost events again, with the same bytes", async () => {
  using world = setup();
  const runId = fill(world.events, 10);
  await drain(world);
  const before = new Map(world.hub.events);
  for (const sequence of [8, 9, 10]) world.hub.events.delete(`${PROJECT_ID}/${runId}/${sequence}`);
  world.clock.advance(1000);
  world.events.commit((tx) => tx.append(runId, { type: "run.status_changed", payload: { status: "running" } }));
  await drain(world);
  expect(world.hub.sequences(runId)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
  expect(world.hub.pushes().map(({ rows }) => rows)).toEqual([10, 1, 3]); // what this very answer acknowledged is not sent again
  for (const [key, { text }] of before) expect(world.hub.events.get(key)!.text).toBe(text);
  expect(world.events.read.outbox.counts()).toEqual({ pending: 0, acked: 11, refused: {} });
});

test("what a hub says of another project's run sends nothing of this one again", async () => {
  using world = setup();
  const runId = fill(world.events, 4);
  await drain(world);
  world.clock.advance(1000);
  world.hub.failWith(({ body }) => {
    if (!body?.events) return undefined;
    const results = body.events.map(({ projectId, runId, sequence }: any) => ({ projectId, runId, sequence, outcome: "accepted" }));
    return Response.json({ results, cursors: [{ projectId: "prj_another00000000", runId, cursor: 1 }] });
  });
  world.events.commit((tx) => tx.append(runId, { type: "run.status_changed", payload: { status: "running" } }));
  expect(await drain(world, 10)).toBe(1);
  expect(world.hub.pushes().map(({ rows }) => rows)).toEqual([4, 1]);
  expect(world.events.read.outbox.counts()).toEqual({ pending: 0, acked: 5, refused: {} });
});

test("a parked row does not look like a restored hub, and a hub that always says zero does not keep us sending", async () => {
  using world = setup();
  const runId = fill(world.events, 4);
  world.hub.events.set(`${PROJECT_ID}/${runId}/2`, { text: "{}", at: 0 });
  await drain(world);
  world.clock.advance(1000);
  world.hub.failWith(async ({ body }) => {
    if (!body?.events) return undefined;
    const results = body.events.map(({ projectId, runId, sequence }: any) => ({ projectId, runId, sequence, outcome: "accepted" }));
    return Response.json({ results, cursors: [{ projectId: PROJECT_ID, runId, cursor: 0 }] });
  });
  let steps = 0;
  for (let round = 0; round < 5; round++) {
    world.events.commit((tx) => tx.append(runId, { type: "run.status_changed", payload: { status: "running" } }));
    world.clock.advance(1000);
    steps += await drain(world, 50);
  }
  expect(steps).toBe(6); // one a round, and once what the first answer seemed to have lost
  expect(world.events.read.outbox.counts().pending).toBe(0);
});

test("what is pushed is what is kept, byte for byte, and holds no secret", async () => {
  const known = knownSecrets();
  known.add("s3cr3t-Planted-Value-0001", "hub-token");
  const events = store({ known });
  using hub = hubStandIn();
  const { runId } = events.commit((tx) => tx.createRun(aRun({ displayTitle: "use s3cr3t-Planted-Value-0001 now" })));
  const [kept] = events.read.outbox.pending(0, 1);
  const push = pusher({ store: events, projectId: PROJECT_ID, clock: fakeClock() });
  await push.step(runtimeClient({ url: hub.url }, identity));
  expect(hub.events.get(`${PROJECT_ID}/${runId}/1`)!.text).toBe(kept!.syncEvent);
  expect(kept!.syncEvent).toContain("use [REDACTED:hub-token] now");
});
