// The routes of Runtime presence and sync on both engines: what the wire contract promises, line by line.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import * as sync from "../../src/hub/sync.ts";
import { canonical, taggedSha256 } from "../../src/protocol/canonical.ts";
import { SYNC_HELD_BYTES_MAX, SYNC_HELD_EVENTS_MAX } from "../../src/protocol/limits.ts";
import { type SyncEvent, syncEventProblem } from "../../src/protocol/sync-event.ts";
import { WORLDS } from "../support/engines.ts";
import { ADMIN_TOKEN, type Fleet, openFleet } from "../support/fleet.ts";
import { OTHER_RUNTIME, RUNTIME, syncEvent, syncEvents } from "../support/sync-events.ts";

test("the events of these tests are valid and about 900 bytes", () => {
  for (const event of syncEvents(1, 50)) expect(syncEventProblem(event)).toBeUndefined();
  expect(JSON.stringify(syncEvent(7)).length).toBeWithin(850, 1_100);
});

describe.each(WORLDS)("%s sync", (_, open) => {
  let it: Fleet;
  let made = 0;
  beforeAll(async () => {
    it = await openFleet(open);
  }, 30_000);
  afterAll(() => it[Symbol.asyncDispose]());

  /** A run of its own per test. */
  const run = () => {
    const id = (++made).toString(16).padStart(8, "0");
    return { projectId: `prj_${id}`, runId: `run_${id}` };
  };
  const push = (events: unknown, more: { project?: string; runtimeId?: unknown; as?: string } = {}) =>
    it.call(more.as, "POST", "/v1/sync/events", { project: more.project ?? "p", runtimeId: more.runtimeId ?? RUNTIME, events });
  const outcomes = ({ body }: { body: any }) => body.results.map(({ outcome, code }: any) => (code ? `${outcome} ${code}` : outcome));
  const cursorOf = ({ body }: { body: any }, at = 0) => body.cursors[at]?.cursor;
  const count = (name: string) => it.hub.metrics.read().get(name as "sync_conflicts")!;

  test("a project that asks who owns a run in the moment in which another claims it is told nothing of that run", async () => {
    const of = run();
    await push(syncEvents(1, 2, of), { project: "owner" });
    const { engine } = it.hub;
    // The owner is read before the other project's commit, the run after it.
    const write: typeof engine.write = (project, rule) =>
      engine.write(project, (tx) => {
        const early = { ...tx.sync, owner: async () => undefined };
        return rule(new Proxy(tx, { get: (target, part) => (part === "sync" ? early : Reflect.get(target, part)) }));
      });
    const hub = { ...it.hub, engine: { ...engine, read: engine.read, write } };
    const answer = await sync.ingest(hub, { project: "thief", runtimeId: RUNTIME, events: syncEvents(1, 2, of) });
    expect(answer.cursors).toEqual([]);
    expect(answer.results.map(({ outcome, code }) => [outcome, code])).toEqual([
      ["conflict", "sync_sequence_reused"],
      ["conflict", "sync_sequence_reused"],
    ]);
    expect(JSON.stringify(answer)).not.toContain("sha256:");
    expect((await it.hub.engine.read.sync.findRun(of.projectId, of.runId))!.project).toBe("owner");
  });

  test("presence: 201 at first, 200 later; times are the hub's, registeredAt stays, an absent host is removed", async () => {
    const runtimeId = "rtm_presence000001";
    const beat = (body: object) => it.call(undefined, "POST", "/v1/runtime/presence", { project: "p", runtimeId, ...body });
    const first = await beat({ host: "build-01", version: "1.0.0" });
    const at = new Date(it.clock.now).toISOString();
    expect(first.status).toBe(201);
    expect(first.body).toEqual({
      presence: {
        runtimeId,
        host: "build-01",
        registeredAt: at,
        heartbeatAt: at,
        leaseExpiresAt: new Date(it.clock.now + 30_000).toISOString(),
        presence: "online",
      },
      generation: it.hub.engine.generation,
    });
    it.clock.now += 10_000;
    const second = await beat({});
    expect([second.status, second.body.presence.registeredAt, "host" in second.body.presence]).toEqual([200, at, false]);
    expect(second.body.presence.heartbeatAt).toBe(new Date(it.clock.now).toISOString());
  });

  test("presence refuses what it cannot read, and a runtime id of another shape by its own code", async () => {
    const beat = async (body: object) => (await it.call(undefined, "POST", "/v1/runtime/presence", body)).body.code;
    expect(await beat({ runtimeId: RUNTIME })).toBe("protocol_error");
    for (const runtimeId of ["x", "RTM_0123456789", "rtm-0123456789", "rtm_01234", `rtm_${"a".repeat(129)}`])
      expect(await beat({ project: "p", runtimeId })).toBe("invalid_runtime_id");
    expect(await beat({ project: "p", runtimeId: RUNTIME, host: "x".repeat(65) })).toBe("protocol_error");
    expect(await beat({ project: "p", runtimeId: RUNTIME, report: { outbox: "no" } })).toBe("protocol_error");
    expect(await beat({ project: "p", runtimeId: RUNTIME, report: { note: "x".repeat(70_000) } })).toBe("protocol_error");
  });

  test("only a presence that says something new is an event of the log", async () => {
    const beat = (body: object) => it.call(undefined, "POST", "/v1/runtime/presence", { project: "beats", runtimeId: RUNTIME, ...body });
    await beat({ host: "a" });
    await beat({ host: "a" });
    await beat({ host: "a", report: { slots: { running: 1, queued: 0, total: 3 } } });
    await beat({ report: { slots: { total: 3, queued: 0, running: 1 } }, host: "a" });
    it.clock.now += 30_000;
    await beat({ host: "a", report: { slots: { running: 1, queued: 0, total: 3 } } });
    expect(await it.log("beats")).toEqual(["runtimes.registered", "runtimes.reported", "runtimes.returned"]);
  });

  test("a batch is stored in order and answered event by event, with the cursor of its run", async () => {
    const id = run();
    const answer = await push(syncEvents(1, 5, id));
    expect(answer.status).toBe(200);
    expect(answer.body.results).toEqual([1, 2, 3, 4, 5].map((sequence) => ({ ...id, sequence, outcome: "accepted" })));
    expect(answer.body.cursors).toEqual([{ ...id, cursor: 5 }]);
  });

  test("the stored bytes are canonical: neither key order nor white space of the wire matters, and they hash to what is named", async () => {
    const id = run();
    const event = syncEvent(1, id);
    await push([event]);
    const reversed = (value: unknown): unknown =>
      typeof value !== "object" || value === null || Array.isArray(value)
        ? value
        : Object.fromEntries(
            Object.entries(value)
              .reverse()
              .map(([key, member]) => [key, reversed(member)]),
          );
    expect(outcomes(await push([reversed(event)]))).toEqual(["duplicate"]);
    const [stored] = (await it.call(ADMIN_TOKEN, "GET", `/v1/runs/${id.projectId}/${id.runId}/events`)).body.events;
    expect(stored).toMatchObject({ sequence: 1, hash: taggedSha256(canonical(event)), held: false, event });
  });

  test("a repeat is a duplicate, also within its batch, and changes nothing", async () => {
    const id = run();
    const event = syncEvent(1, id);
    expect(outcomes(await push([event, event]))).toEqual(["accepted", "duplicate"]);
    const events = (await it.log()).length;
    const again = await push([event]);
    expect([outcomes(again), cursorOf(again)]).toEqual([["duplicate"], 1]);
    expect((await it.log()).length).toBe(events);
  });

  test("other bytes under the same sequence conflict: the first stay, both are kept, and one alert is raised per hash", async () => {
    const id = run();
    const first = syncEvent(1, id);
    const forged = syncEvent(1, { ...id, payload: { status: "failed" } });
    const third = syncEvent(1, { ...id, payload: { status: "completed" } });
    await push([first]);
    const answer = await push([forged]);
    expect(answer.body.results).toEqual([
      { ...id, sequence: 1, outcome: "conflict", code: "sync_sequence_reused", existingHash: taggedSha256(canonical(first)) },
    ]);
    expect(answer.body.cursors).toEqual([]);
    await push([forged]);
    await push([forged, third, forged]);
    const viewer = await it.token("viewer", "p");
    const list = (await it.call(viewer, "GET", "/v1/sync/conflicts")).body.conflicts.filter(({ runId }: any) => runId === id.runId);
    expect(list.map(({ count, hash }: any) => [count, hash])).toEqual([
      [1, taggedSha256(canonical(third))],
      [4, taggedSha256(canonical(forged))],
    ]);
    const detail = (await it.call(viewer, "GET", `/v1/sync/conflicts/${list[1].id}`)).body.conflict;
    expect([detail.existing, detail.refused]).toEqual([first, forged]);
    const alerts = (await it.call(viewer, "GET", "/v1/alerts")).body.alerts.filter(({ data }: any) => data.runId === id.runId);
    expect(alerts.map(({ kind, severity, count }: any) => [kind, severity, count])).toEqual([
      ["sync_conflict", "security", 1],
      ["sync_conflict", "security", 1],
    ]);
    const [stored] = (await it.call(viewer, "GET", `/v1/runs/${id.projectId}/${id.runId}/events`)).body.events;
    expect(stored.event).toEqual(first);
    expect(it.logged.findLast(({ event }) => event === "security_alert")).toMatchObject({ code: "sync_sequence_reused", runId: id.runId, events: 3 });
    expect((await it.log("p")).filter((name) => name === "alerts.raised").length).toBeGreaterThanOrEqual(2);
  });

  test("an event that breaks the schema is rejected alone; as much of its identity as is usable comes back", async () => {
    const id = run();
    const bad: unknown[] = [
      { ...syncEvent(2, id), extra: 1 },
      { ...syncEvent(3, id), sequence: 0 },
      { ...syncEvent(4, id), sequence: 1.5 },
      { ...syncEvent(5, id), payload: {} },
      { projectId: "x".repeat(200), runId: 7, sequence: "1" },
      null,
      "text",
      [],
    ];
    const answer = await push([...bad, syncEvent(1, id)]);
    expect(outcomes(answer)).toEqual([...bad.map(() => "rejected sync_event_invalid"), "accepted"]);
    expect(answer.body.results[0]).toEqual({ ...id, sequence: 2, outcome: "rejected", code: "sync_event_invalid" });
    expect(answer.body.results[2]).toEqual({ ...id, outcome: "rejected", code: "sync_event_invalid" });
    expect(answer.body.results[4]).toEqual({ projectId: "x".repeat(144), outcome: "rejected", code: "sync_event_invalid" });
    expect(answer.body.results[5]).toEqual({ outcome: "rejected", code: "sync_event_invalid" });
    expect(cursorOf(answer)).toBe(1);
  });

  test("an event of another home Runtime is rejected before anything else is looked at, with one alert per pusher", async () => {
    const id = run();
    await push([syncEvent(1, id)]);
    const answer = await push([syncEvent(1, id), syncEvent(1, { ...id, homeRuntimeId: OTHER_RUNTIME })], { runtimeId: OTHER_RUNTIME });
    expect(outcomes(answer)).toEqual(["rejected sync_runtime_mismatch", "conflict sync_sequence_reused"]);
    await push([syncEvent(2, id)], { runtimeId: OTHER_RUNTIME });
    const { alerts } = (await it.call(ADMIN_TOKEN, "GET", "/v1/alerts?project=p")).body;
    expect(alerts.filter(({ kind }: any) => kind === "sync_runtime_mismatch")).toMatchObject([{ subject: OTHER_RUNTIME, count: 2 }]);
    expect(it.logged.at(-1)).toMatchObject({ event: "security_alert", code: "sync_runtime_mismatch" });
  });

  test("a run stays with its first Runtime, and a projectId with the first hub project", async () => {
    const id = run();
    await push([syncEvent(1, id)]);
    expect(outcomes(await push([syncEvent(2, { ...id, homeRuntimeId: OTHER_RUNTIME })], { runtimeId: OTHER_RUNTIME }))).toEqual([
      "conflict sync_home_runtime_mismatch",
    ]);
    const foreign = await push([syncEvent(1, id), syncEvent(2, id), syncEvent(1, { ...id, runId: "run_another1" })], { project: "q" });
    expect(outcomes(foreign)).toEqual(["conflict sync_sequence_reused", "conflict sync_project_mismatch", "conflict sync_project_mismatch"]);
    expect(foreign.body.results.map(({ existingHash }: any) => existingHash)).toEqual([undefined, undefined, undefined]);
    const { conflicts } = (await it.call(ADMIN_TOKEN, "GET", "/v1/sync/conflicts?project=q")).body;
    expect(conflicts).toHaveLength(3);
    const detail = (await it.call(ADMIN_TOKEN, "GET", `/v1/sync/conflicts/${conflicts[2].id}`)).body.conflict;
    expect([detail.refused.sequence, "existing" in detail]).toEqual([1, false]); // another project's event is not shown
    expect((await it.call(await it.token("viewer", "p"), "GET", `/v1/sync/conflicts/${conflicts[0].id}`)).status).toBe(404);
  });

  test("events out of order are stored and wait for the gap; the cursor is the gapless prefix after the whole batch", async () => {
    const id = run();
    const events = syncEvents(1, 10, id);
    expect(cursorOf(await push([events[4], events[2], events[9]]))).toBe(0);
    expect(cursorOf(await push([events[1]]))).toBe(0);
    expect(cursorOf(await push([events[0]]))).toBe(3);
    expect(cursorOf(await push([events[5], events[3]]))).toBe(6);
    expect(cursorOf(await push([events[8], events[7], events[6]]))).toBe(10);
    const { run: shown } = (await it.call(ADMIN_TOKEN, "GET", `/v1/runs/${id.projectId}/${id.runId}`)).body;
    expect([shown.lastSequence, shown.pendingGap, shown.held]).toEqual([10, false, 0]);
  });

  test("cursors come in the order in which runs first appear, only for those that got something", async () => {
    const [a, b, c] = [run(), run(), run()];
    await push([syncEvent(1, c)]);
    const answer = await push([
      syncEvent(1, b),
      syncEvent(1, a),
      syncEvent(2, b),
      syncEvent(1, { ...c, payload: { status: "failed" } }),
      { ...syncEvent(1, run()), extra: 1 },
    ]);
    expect(answer.body.cursors).toEqual([
      { ...b, cursor: 2 },
      { ...a, cursor: 1 },
    ]);
  });

  test("a batch is an array of at most 100 events in 256 KiB; an empty one is fine", async () => {
    for (const events of [undefined, null, "x", {}, 1]) expect((await push(events)).body.code).toBe("invalid_sync_batch");
    expect(await push(syncEvents(1, 101, run()))).toMatchObject({ status: 413, body: { code: "sync_batch_too_large" } });
    const large = syncEvents(1, 90, { ...run(), payload: { summary: "x".repeat(1_000), reason: "y".repeat(1_000), displayTitle: "z".repeat(200) } });
    expect(await push(large)).toMatchObject({ status: 413, body: { code: "payload_too_large" } });
    expect((await push([])).body).toEqual({ results: [], cursors: [] });
    expect((await push(syncEvents(1, 100, run()))).body.results).toHaveLength(100);
  });

  test("content type and project are asked for before the token, and a token opens its own project only", async () => {
    const secured = await it.token("project", "secured");
    const sendRaw = (headers: Record<string, string>) => it.call(undefined, "POST", "/v1/sync/events", "{}", headers as never);
    expect((await sendRaw({})).body.code).toBe("protocol_error"); // project is missing
    const asked = (as: string | undefined, project = "secured") => push([], { project, ...(as && { as }) });
    expect((await asked(undefined)).status).toBe(401);
    expect((await asked("wrong")).body).toMatchObject({ code: "invalid_auth", nextAction: "check_project_token" });
    expect((await asked(secured)).status).toBe(200);
    expect((await asked(secured, "p")).status).toBe(401);
  });

  test("what waits behind a gap is bounded: beyond the limit events are rejected by a code that says so, and fit once it is filled", async () => {
    const id = run();
    // The run's row is set as if this much waited, so that the test need not push it.
    const setHeld = (held: { held: number; heldBytes?: number }) =>
      it.hub.engine.write("p", async (tx) => tx.sync.updateRun({ ...(await tx.sync.lockRun(id.projectId, id.runId))!, ...held }));
    await push([syncEvent(3, id)]);
    const { heldBytes } = (await it.hub.engine.read.sync.findRun(id.projectId, id.runId))!;
    await setHeld({ held: 1, heldBytes: SYNC_HELD_BYTES_MAX - 100 });
    expect(outcomes(await push([syncEvent(5, id)]))).toEqual(["rejected sync_held_limit"]);
    await setHeld({ held: SYNC_HELD_EVENTS_MAX, heldBytes });
    const answer = await push([syncEvent(5, id), syncEvent(1, id)]);
    expect(outcomes(answer)).toEqual(["rejected sync_held_limit", "accepted"]);
    expect(cursorOf(answer)).toBe(1);
    await setHeld({ held: 1 });
    expect(cursorOf(await push([syncEvent(2, id)]))).toBe(3);
    expect(await it.hub.engine.read.sync.findRun(id.projectId, id.runId)).toMatchObject({ held: 0, heldBytes: 0 });
    expect(outcomes(await push([syncEvent(5, id)]))).toEqual(["accepted"]);
  });

  test("a closed gap is taken over in bounded steps, and the answer still has the true cursor", async () => {
    const id = run();
    const events = syncEvents(1, 1_301, id);
    for (let first = 1; first < events.length; first += 100) await push(events.slice(first, first + 100));
    const before = (await it.log()).length;
    expect(cursorOf(await push([events[0]]))).toBe(1_301);
    const steps = (await it.log()).length - before;
    expect(steps).toBeGreaterThanOrEqual(3);
    const { run: shown } = (await it.call(ADMIN_TOKEN, "GET", `/v1/runs/${id.projectId}/${id.runId}`)).body;
    expect([shown.lastSequence, shown.held]).toEqual([1_301, 0]);
  });

  test("counters follow the contract", async () => {
    const id = run();
    const names = ["sync_events_accepted", "sync_events_duplicate", "sync_events_refused", "sync_conflicts"];
    const before = names.map(count);
    await push([syncEvent(1, id), syncEvent(1, id), syncEvent(1, { ...id, payload: { status: "failed" } }), null]);
    expect(names.map((name, index) => count(name) - before[index]!)).toEqual([1, 1, 2, 1]);
  });

  test("one entry of the log per run and batch", async () => {
    const [a, b] = [run(), run()];
    const before = (await it.log()).length;
    await push([...syncEvents(1, 30, a), ...syncEvents(1, 20, b)]);
    expect((await it.log()).slice(before)).toEqual(["sync.events_accepted", "sync.events_accepted"]);
  });

  test("two hubs that push the same run at once store each event once", async () => {
    const other = await it.another();
    const id = run();
    const events = syncEvents(1, 60, id);
    const batches = Array.from({ length: 12 }, (_, index) => events.slice(index * 5, index * 5 + 5));
    const answers = await Promise.all(
      [...batches, ...batches].map((batch, index) =>
        (index % 2 ? other : it).call(undefined, "POST", "/v1/sync/events", { project: "p", runtimeId: RUNTIME, events: batch }),
      ),
    );
    const all = answers.flatMap((answer) => outcomes(answer));
    expect([all.filter((word) => word === "accepted").length, all.filter((word) => word === "duplicate").length]).toEqual([60, 60]);
    const { run: shown } = (await it.call(ADMIN_TOKEN, "GET", `/v1/runs/${id.projectId}/${id.runId}`)).body;
    expect([shown.lastSequence, shown.held]).toEqual([60, 0]);
  });

  test("two hub projects that claim one projectId at once: one gets it, the other is told", async () => {
    const other = await it.another();
    for (let round = 0; round < 8; round++) {
      const id = run();
      const answers = await Promise.all([
        it.call(undefined, "POST", "/v1/sync/events", { project: "left", runtimeId: RUNTIME, events: syncEvents(1, 3, id) }),
        other.call(undefined, "POST", "/v1/sync/events", { project: "right", runtimeId: RUNTIME, events: syncEvents(1, 3, id) }),
      ]);
      const words = answers.map((answer) => outcomes(answer).join());
      expect(words.filter((word) => word === "accepted,accepted,accepted")).toHaveLength(1);
      for (const word of words) expect(word).toMatch(/^(accepted|conflict sync_)/);
    }
  });

  test("conflicts and alerts are acknowledged once, by an operator, with a reason", async () => {
    const id = run();
    await push([syncEvent(1, id)], { project: "ack" });
    await push([syncEvent(1, { ...id, payload: { status: "failed" } })], { project: "ack" });
    const operator = await it.token("operator", "ack");
    const get = async (path: string) => (await it.call(operator, "GET", path)).body;
    const [conflict] = (await get("/v1/sync/conflicts")).conflicts;
    const [alert] = (await get("/v1/alerts")).alerts;
    expect(alert.subject).toBe(conflict.id);
    const acknowledge = (kind: string, which: string, as: string, reason?: unknown) =>
      it.call(as, "POST", `/v1/${kind}/${which}/acknowledge`, { reason });
    expect((await acknowledge("sync/conflicts", conflict.id, operator)).body.code).toBe("protocol_error");
    expect((await acknowledge("sync/conflicts", conflict.id, await it.token("viewer", "ack"), "x")).body.code).toBe("role_forbidden");
    expect((await acknowledge("sync/conflicts", conflict.id, await it.token("operator", "p"), "x")).body.code).toBe("conflict_not_found");
    expect((await acknowledge("alerts", "alt_nothing", operator, "x")).body.code).toBe("alert_not_found");
    const noted = await acknowledge("sync/conflicts", conflict.id, operator, "a restored backup");
    expect(noted.body.conflict).toMatchObject({ reason: "a restored backup", acknowledgedBy: expect.stringMatching(/^tok_/) });
    it.clock.now += 1_000;
    expect((await acknowledge("sync/conflicts", conflict.id, operator, "again")).body.conflict).toMatchObject({
      reason: "a restored backup",
      acknowledgedAt: noted.body.conflict.acknowledgedAt,
    });
    expect((await acknowledge("alerts", alert.id, operator, "seen")).body.alert.reason).toBe("seen");
    expect([(await get("/v1/sync/conflicts")).conflicts, (await get("/v1/alerts")).alerts]).toEqual([[], []]);
    expect((await get("/v1/sync/conflicts?state=all")).conflicts).toHaveLength(1);
    expect((await it.log("ack")).slice(-2)).toEqual(["sync.conflict_acknowledged", "alerts.acknowledged"]);
    // The same forged event again is no news.
    await push([syncEvent(1, { ...id, payload: { status: "failed" } })], { project: "ack" });
    expect((await get("/v1/alerts")).alerts).toEqual([]);
  });

  test("hostile text comes back as it was, in data only", async () => {
    const id = run();
    const text = `<img src=x onerror=alert(1)>\u202e"';--\\ \u2028`;
    const event = syncEvent(1, { ...id, type: "run.created", payload: { displayTitle: text, summary: text } });
    expect(outcomes(await push([event]))).toEqual(["accepted"]);
    const { run: shown } = (await it.call(ADMIN_TOKEN, "GET", `/v1/runs/${id.projectId}/${id.runId}`)).body;
    expect(shown.displayTitle).toBe(text);
    const [stored] = (await it.call(ADMIN_TOKEN, "GET", `/v1/runs/${id.projectId}/${id.runId}/events`)).body.events as { event: SyncEvent }[];
    expect(stored!.event.payload.summary).toBe(text);
  });
});
