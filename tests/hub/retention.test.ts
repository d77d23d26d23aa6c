// What is old goes, in bounded steps; what is open, pending, unacknowledged or still heard of stays; and a clock that jumps deletes nothing. Both engines.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { type Hub, openHub } from "../../src/hub/hub.ts";
import { silent } from "../../src/hub/log.ts";
import { keptFor, type RetentionClock, sweepOld } from "../../src/hub/retention.ts";
import { defaultSettings } from "../../src/hub/settings.ts";
import { RETENTION_BATCH_MAX, RETENTION_INTERVAL_MS } from "../../src/protocol/limits.ts";
import { range, WORLDS, type World } from "../support/engines.ts";
import { countRaw, insertRaw } from "../support/raw-rows.ts";
import { testedEvent } from "../support/rows.ts";

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;

const command = (id: string, finishedAt: number | null) => ({
  id,
  project: "p",
  runtime_id: "rtm_a",
  seq: Number(id.slice(4)),
  kind: "cancel",
  payload: "{}",
  actor: "admin",
  state: finishedAt === null ? "sent" : "applied",
  created_at: 1,
  finished_at: finishedAt,
  expires_at: 2,
});
const workflowRun = (id: string, status: string, at: number) => ({
  id,
  project: "p",
  definition_id: "d",
  delivery_id: id,
  payload_hash: id,
  source: "generic",
  status,
  target_agent_id: "agt_a",
  target_agent_name: "a",
  message_id: `msg_${id}`,
  created_at: at,
  updated_at: at,
  completed_at: status === "running" ? null : at,
  record: "{}",
});
const journal = (id: string, runId: string, promotedTo: string | null = null) => ({
  id,
  project: "p",
  run_id: runId,
  agent_id: "agt_a",
  category: "lesson",
  area: "x",
  severity: "info",
  summary: "s",
  created_at: 1,
  promoted_to: promotedTo,
  revision: 1,
  hash: "h",
  record: "{}",
});
const approval = (id: string, runId: string, status: string, decidedAt: number | null) => ({
  id,
  project: "p",
  project_id: "prj_a",
  run_id: runId,
  runtime_id: "rtm_a",
  step_id: "s",
  attempt: 1,
  title: "t",
  content: "c",
  content_hash: "h",
  status,
  requested_at: 1,
  decided_at: decidedAt,
  updated_at: 1,
});
const syncRun = (runId: string, lastReceivedAt: number, endedAt: number | null) => ({
  project_id: "prj_a",
  run_id: runId,
  project: "p",
  home_runtime_id: "rtm_a",
  cursor: 1,
  held: 0,
  held_bytes: 0,
  first_received_at: 1,
  last_received_at: lastReceivedAt,
  ended_at: endedAt,
  projection: "{}",
});
const syncEvent = (runId: string, sequence: number) => ({ project_id: "prj_a", run_id: runId, sequence, hash: "h", received_at: 1, record: "{}" });
const alert = (id: string, acknowledgedAt: number | null, lastAt: number) => ({
  id,
  project: "p",
  kind: "k",
  dedupe_key: id,
  severity: "info",
  summary: "s",
  data: "{}",
  raised_at: 1,
  last_at: lastAt,
  count: 1,
  acknowledged_at: acknowledgedAt,
});
const contextItem = (id: string, status: string, validUntil: number | null) => ({
  id,
  project: "p",
  kind: "state",
  status,
  summary: "s",
  authority: "a",
  confidence: "c",
  source_type: "t",
  revision: 1,
  valid_until: validUntil,
  created_at: 1,
  record: "{}",
});

describe.each(WORLDS)("%s retention", (_, open) => {
  let world: World;
  let hub: Hub;
  let clock: RetentionClock;
  beforeEach(async () => {
    world = await open();
    hub = openHub({
      engine: world.engine,
      clock: () => world.clock.now,
      settings: defaultSettings(),
      log: silent,
      stopping: new AbortController().signal,
    });
    clock = { lastAt: undefined };
  }, 30_000);
  afterEach(() => world[Symbol.asyncDispose]());

  /** A round that the one before vouches for. */
  const round = async () => {
    if (clock.lastAt === undefined) await sweepOld(hub, clock);
    world.clock.now += MINUTE_MS;
    return sweepOld(hub, clock);
  };
  const log = async () => (await world.engine.read.events.after("p", 0, 1_000)).map(({ topic, type, data }) => [topic, type, data["count"]]);

  test("finished commands, acknowledged alerts and ended context items go after their time, to the minute; all others stay", async () => {
    const now = world.clock.now;
    const edge = now - 30 * DAY_MS;
    await insertRaw(world, "runtime_commands", [command("cmd_1", edge - 1), command("cmd_2", edge + 5 * MINUTE_MS), command("cmd_3", null)]);
    await insertRaw(world, "alerts", [alert("alt_1", edge - 1, 1), alert("alt_2", edge - 1, now), alert("alt_3", null, 1), alert("alt_4", now, 1)]);
    const old = now - 7 * DAY_MS - 1;
    await insertRaw(world, "context_items", [
      contextItem("ctx_1", "superseded", old),
      contextItem("ctx_2", "rejected", old),
      contextItem("ctx_3", "current", old),
      contextItem("ctx_4", "superseded", now),
      contextItem("ctx_5", "proposed", null),
    ]);
    expect(await round()).toEqual({ runtimeCommands: 1, alerts: 1, contextItems: 2 });
    expect(await countRaw(world, "runtime_commands", "id in ('cmd_2', 'cmd_3')")).toBe(2);
    expect(await countRaw(world, "alerts")).toBe(3);
    expect(await countRaw(world, "context_items", "id in ('ctx_3', 'ctx_4', 'ctx_5')")).toBe(3);
    expect((await log()).sort()).toEqual([
      ["alerts", "purged", 1],
      ["context", "purged", 2],
      ["runtimes", "purged", 1],
    ]);
    expect(await round()).toEqual({});
    world.clock.now += 4 * MINUTE_MS; // the round before would have kept it
    expect(await round()).toEqual({});
    expect(await round()).toEqual({ runtimeCommands: 1 });
  });

  test("an ended workflow run takes its journal along, except what was approved; a running one stays however old", async () => {
    const old = world.clock.now - 8 * DAY_MS;
    await insertRaw(world, "workflow_runs", [
      workflowRun("run_1", "completed", old),
      workflowRun("run_2", "running", old),
      workflowRun("run_3", "failed", world.clock.now),
    ]);
    await insertRaw(world, "workflow_journal", [
      journal("journal_1", "run_1"),
      journal("journal_2", "run_1", "approved"),
      journal("journal_3", "run_1", "rejected"),
      journal("journal_4", "run_2"),
      ...range(RETENTION_BATCH_MAX).map((n) => journal(`journal_of_1_${n}`, "run_1")),
    ]);
    expect(await round()).toEqual({ workflowRuns: RETENTION_BATCH_MAX }); // as much as fits: the run stays until its journal is gone
    expect(await round()).toEqual({ workflowRuns: 3 });
    expect(await countRaw(world, "workflow_runs", "id in ('run_2', 'run_3')")).toBe(2);
    expect(await countRaw(world, "workflow_journal", "id in ('journal_2', 'journal_4')")).toBe(2);
    expect(await countRaw(world, "workflow_journal")).toBe(2);
  });

  test("synced runs go after 30 days when they ended, after 90 when they fell silent, with all their events", async () => {
    const now = world.clock.now;
    await insertRaw(world, "sync_runs", [
      syncRun("run_ended", now - 31 * DAY_MS, 1),
      syncRun("run_silent", now - 31 * DAY_MS, null),
      syncRun("run_gone", now - 91 * DAY_MS, null),
      syncRun("run_fresh", now - DAY_MS, 1),
    ]);
    const events = range(RETENTION_BATCH_MAX + 200).map((n) => syncEvent("run_ended", n + 1));
    await insertRaw(world, "sync_events", [...events, syncEvent("run_silent", 1), syncEvent("run_gone", 1), syncEvent("run_fresh", 1)]);
    expect((await round()).syncRuns).toBe(RETENTION_BATCH_MAX + 200 + 1 + 2);
    expect(await countRaw(world, "sync_events")).toBe(2);
    expect(await countRaw(world, "sync_runs", "run_id in ('run_silent', 'run_fresh')")).toBe(2);
    expect(await countRaw(world, "sync_runs")).toBe(2);
  });

  test("what a run asked for and called off goes with it; what waits for a decision stays, and a decision has its own time", async () => {
    const now = world.clock.now;
    await insertRaw(world, "sync_runs", [syncRun("run_ended", now - 31 * DAY_MS, 1), syncRun("run_fresh", now - DAY_MS, 1)]);
    await insertRaw(world, "approvals", [
      approval("apr_1", "run_ended", "cancelled", null),
      approval("apr_2", "run_ended", "pending", null),
      approval("apr_3", "run_ended", "approved", now - 29 * DAY_MS),
      approval("apr_4", "run_fresh", "cancelled", null),
      approval("apr_5", "run_fresh", "approved", now - 31 * DAY_MS),
      ...range(RETENTION_BATCH_MAX).map((n) => approval(`apr_of_1_${n}`, "run_ended", "cancelled", null)),
    ]);
    expect(await round()).toEqual({ approvals: 1, syncRuns: RETENTION_BATCH_MAX + 2 });
    expect(await countRaw(world, "approvals", "id in ('apr_2', 'apr_3', 'apr_4')")).toBe(3);
    expect(await countRaw(world, "approvals")).toBe(3);
    expect(await countRaw(world, "sync_runs")).toBe(1);
  });

  test("the event log loses its oldest entries and keeps its newest; the audit is kept for a year", async () => {
    await world.engine.write("p", async (tx) => {
      for (const n of range(3)) tx.append({ ...testedEvent("p", n), audit: { role: "admin" } });
    });
    world.clock.now += 31 * DAY_MS;
    expect((await round()).events).toBe(2);
    expect((await world.engine.read.events.after("p", 0, 10)).map(({ seq }) => seq)).toEqual([3]);
    expect(await world.engine.read.events.lastSeq("p")).toBe(3);
    expect(await countRaw(world, "audit")).toBe(3);
    world.clock.now += 335 * DAY_MS;
    clock.lastAt = world.clock.now;
    expect((await round()).audit).toBe(3);
  });

  test("a clock that jumps forward deletes nothing until a second round agrees, and one that jumps back never", async () => {
    const now = world.clock.now;
    await insertRaw(world, "runtime_commands", [command("cmd_1", now)]);
    const lease = { resource: "p/a", project: "p", name: "a", fence: 1, holder_id: "agt_a", holder_name: "a", ttl_ms: 1, last_waiter: 0 };
    await insertRaw(world, "leases", [{ ...lease, acquired_at: 1, renewed_at: 1, expires_at: now, freed_at: now }]);
    expect(await round()).toEqual({});
    world.clock.now += 10 * 365 * DAY_MS;
    expect(await sweepOld(hub, clock)).toEqual({}); // the jump: nobody vouches for it yet
    world.clock.now -= 10 * 365 * DAY_MS;
    expect(await sweepOld(hub, clock)).toEqual({}); // and it was one
    world.clock.now += MINUTE_MS;
    expect(await sweepOld(hub, clock)).toEqual({});
    expect(await countRaw(world, "runtime_commands")).toBe(1);
    world.clock.now += 31 * DAY_MS;
    expect(await sweepOld(hub, clock)).toEqual({});
    world.clock.now += MINUTE_MS;
    expect(await sweepOld(hub, clock)).toEqual({ runtimeCommands: 1, leaseHolders: 1 }); // time really passed
  });

  test("what was old when it was found and is heard of again before it is deleted stays", async () => {
    const now = world.clock.now;
    await insertRaw(world, "alerts", [alert("alt_1", 1, now), alert("alt_2", 1, 1)]);
    await insertRaw(world, "sync_runs", [syncRun("run_1", now, 1)]);
    await insertRaw(world, "sync_events", [syncEvent("run_1", 1)]);
    const removed = await world.engine.write("p", async ({ retention }) => [
      await retention.remove("alerts", ["alt_1", "alt_2"], now - DAY_MS),
      await retention.removeRun("prj_a", "run_1", now - DAY_MS, 10),
    ]);
    expect(removed).toEqual([1, 0]);
    expect(await countRaw(world, "alerts", "id = 'alt_1'")).toBe(1);
  });

  test("a large backlog goes in steps of a bounded size", async () => {
    const many = 2 * RETENTION_BATCH_MAX + 7;
    await insertRaw(
      world,
      "runtime_commands",
      range(many).map((n) => command(`cmd_${n + 1}`, 1)),
    );
    expect(await round()).toEqual({ runtimeCommands: many });
    expect(await log()).toEqual([
      ["runtimes", "purged", RETENTION_BATCH_MAX],
      ["runtimes", "purged", RETENTION_BATCH_MAX],
      ["runtimes", "purged", 7],
    ]);
  });

  test("a Runtime that has not reported for 90 days is forgotten", async () => {
    const runtime = (id: string, heartbeatAt: number) => ({ project: "p", runtime_id: id, registered_at: 1, heartbeat_at: heartbeatAt });
    await insertRaw(world, "runtime_presence", [
      runtime("rtm_old", world.clock.now - 91 * DAY_MS),
      runtime("rtm_new", world.clock.now - 89 * DAY_MS),
    ]);
    expect(await round()).toEqual({ runtimes: 1 });
    expect(await countRaw(world, "runtime_presence", "runtime_id = 'rtm_new'")).toBe(1);
  });

  test("every kind of record has a time, and there is a round a minute", () => {
    for (const ms of Object.values(keptFor(hub))) expect(ms).toBeGreaterThanOrEqual(0);
    expect(RETENTION_INTERVAL_MS).toBe(MINUTE_MS);
  });
});
