// The routes of runs and Runtimes as operators read them, on both engines.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { homeRuntimes } from "../../src/hub/runtimes.ts";
import { WORLDS } from "../support/engines.ts";
import { type Fleet, openFleet } from "../support/fleet.ts";
import { EPOCH, OTHER_RUNTIME, RUNTIME, syncEvent, syncEvents, type Told } from "../support/sync-events.ts";

describe.each(WORLDS)("%s runs", (_, open) => {
  let it: Fleet;
  let viewer: string;
  beforeAll(async () => {
    it = await openFleet(open);
    viewer = await it.token("viewer");
  }, 30_000);
  afterAll(() => it[Symbol.asyncDispose]());

  const push = async (project: string, events: unknown[], runtimeId = RUNTIME) => {
    it.clock.now += 1_000;
    const { body } = await it.call(undefined, "POST", "/v1/sync/events", { project, runtimeId, events });
    expect(body.results.every(({ outcome }: any) => outcome === "accepted")).toBe(true);
  };
  /** A run that has one event. */
  const begin = (project: string, n: number, told: Told = {}) =>
    push(
      project,
      [
        syncEvent(1, {
          type: "run.created",
          payload: { status: "running", displayTitle: `Run ${n}` },
          projectId: `prj_${project}00000`,
          runId: `run_${project}${n}00000`,
          ...told,
        }),
      ],
      told.homeRuntimeId,
    );
  const get = async (path: string, as = viewer) => (await it.call(as, "GET", path)).body;
  const titles = (page: any) => page.runs.map(({ displayTitle }: any) => displayTitle);

  test("a run shows what its gapless events say, with its Runtime's presence", async () => {
    await it.call(undefined, "POST", "/v1/runtime/presence", { project: "one", runtimeId: RUNTIME, host: "build-01" });
    const told = { projectId: "prj_one0000000", runId: "run_one0000000" };
    await push("one", [
      syncEvent(1, { ...told, type: "run.created", payload: { status: "created", displayTitle: "Settle refunds", workflowId: "review" } }),
      syncEvent(2, { ...told, type: "run.status_changed", payload: { status: "running" } }),
      syncEvent(3, { ...told, type: "step.entered", payload: { stepId: "plan", status: "running" } }),
      syncEvent(4, { ...told, payload: { stepId: "plan", usage: { inputTokens: 100, cost: 0.25, currency: "USD" } } }),
      syncEvent(6, { ...told, type: "run.status_changed", payload: { status: "failed", displayTitle: "not shown" } }),
    ]);
    const { run } = await get("/v1/runs/prj_one0000000/run_one0000000");
    const at = new Date(it.clock.now).toISOString();
    expect(run).toMatchObject({
      project: "one",
      ...told,
      runtimeId: RUNTIME,
      status: "running",
      workflowId: "review",
      displayTitle: "Settle refunds",
      stepId: "plan",
      startedAt: new Date(EPOCH + 2_000).toISOString(),
      updatedAt: new Date(EPOCH + 4_000).toISOString(),
      firstReceivedAt: at,
      lastReceivedAt: at,
      lastSequence: 4,
      pendingGap: true,
      held: 1,
      presence: "online",
      orphaned: false,
      tokens: 100,
      costs: { USD: 0.25 },
      stepsDone: 0,
      stepsEntered: 1,
    });
    expect(run.projection.steps.items[0]).toMatchObject({ stepId: "plan", status: "running" });
    it.clock.now += 30_000;
    expect((await get("/v1/runs/prj_one0000000/run_one0000000")).run).toMatchObject({ presence: "expired", orphaned: true });
  });

  test("events come in order, page by page, held ones marked, and no page is larger than its bytes", async () => {
    const told = { projectId: "prj_events00", runId: "run_events00" };
    const path = "/v1/runs/prj_events00/run_events00/events";
    await push("events", [...syncEvents(1, 40, told), ...syncEvents(42, 60, told)]);
    const first = await get(`${path}?limit=30`);
    expect(first.events.map(({ sequence }: any) => sequence)).toEqual(Array.from({ length: 30 }, (_, index) => index + 1));
    expect(first.next).toBe(30);
    const rest = await get(`${path}?limit=200&after=30`);
    expect([rest.events.length, rest.next, rest.events.at(-1).held, rest.events[9].held]).toEqual([29, undefined, true, false]);
    const large = syncEvents(61, 80, {
      ...told,
      payload: {
        environment: Array.from({ length: 200 }, (_, n) => ({
          name: `N${n}`,
          scope: "x".repeat(100),
          status: "resolved" as const,
          source: "host" as const,
          version: "v".repeat(200),
        })),
      },
    });
    for (const event of large) await push("events", [event]);
    const bounded = await get(`${path}?limit=200&after=60`);
    expect(bounded.events.length).toBeWithin(5, 20);
    expect(bounded.next).toBe(60 + bounded.events.length);
    let [after, seen] = [60, 0];
    for (let page = bounded; ; page = await get(`${path}?limit=200&after=${after}`)) {
      seen += page.events.length;
      if (page.next === undefined) break;
      after = page.next;
    }
    expect(seen).toBe(20);
  });

  test("a page of runs is newest change first, by status and Runtime, and follows a cursor", async () => {
    for (let n = 1; n <= 5; n++) await begin("list", n);
    await begin("list", 6, { homeRuntimeId: OTHER_RUNTIME });
    await push("list", [
      syncEvent(2, { type: "run.status_changed", payload: { status: "failed" }, projectId: "prj_list00000", runId: "run_list200000" }),
    ]);
    const first = await get("/v1/runs?project=list&limit=4");
    expect(titles(first)).toEqual(["Run 2", "Run 6", "Run 5", "Run 4"]);
    const second = await get(`/v1/runs?project=list&limit=4&after=${first.next}`);
    expect([titles(second), second.next]).toEqual([["Run 3", "Run 1"], undefined]);
    expect(titles(await get("/v1/runs?project=list&status=failed"))).toEqual(["Run 2"]);
    expect(titles(await get(`/v1/runs?project=list&runtimeId=${OTHER_RUNTIME}`))).toEqual(["Run 6"]);
    expect(titles(await get(`/v1/runs?project=list&runtimeId=${RUNTIME}&status=running&limit=2`))).toEqual(["Run 5", "Run 4"]);
    const both = await get(`/v1/runs?project=list&runtimeId=${RUNTIME}&status=running&limit=2`);
    expect(titles(await get(`/v1/runs?project=list&runtimeId=${RUNTIME}&status=running&limit=2&after=${both.next}`))).toEqual(["Run 3", "Run 1"]);
    expect((await get("/v1/runs?project=list&after=nonsense")).code).toBe("protocol_error");
    expect((await get("/v1/runs")).code).toBe("protocol_error");
  });

  test("runs that changed in the same millisecond are paged without loss or double", async () => {
    const events = Array.from({ length: 9 }, (_, n) =>
      syncEvent(1, { projectId: "prj_same00000", runId: `run_same${n}00000`, type: "run.created", payload: { status: "running" } }),
    );
    await push("same", events);
    const seen: string[] = [];
    for (let after = ""; ; ) {
      const page = await get(`/v1/runs?project=same&limit=4${after && `&after=${after}`}`);
      seen.push(...page.runs.map(({ runId }: any) => runId));
      if (page.next === undefined) break;
      after = page.next;
    }
    expect([seen.length, new Set(seen).size]).toEqual([9, 9]);
  });

  test("another project's run does not exist for a token of one project", async () => {
    await begin("mine", 1);
    const foreign = await it.token("viewer", "theirs");
    for (const tail of ["", "/events", "/commands"]) {
      expect(await it.call(foreign, "GET", `/v1/runs/prj_mine00000/run_mine100000${tail}`)).toMatchObject({
        status: 404,
        body: { code: "run_not_found" },
      });
      expect((await it.call(undefined, "GET", `/v1/runs/prj_mine00000/run_mine100000${tail}`)).status).toBe(401);
    }
    expect((await get("/v1/runs?project=mine", foreign)).code).toBe("role_forbidden");
    expect((await get("/v1/runs", foreign)).runs).toEqual([]);
    expect((await get("/v1/runs/prj_mine00000/run_nothing00")).code).toBe("run_not_found");
  });

  test("Runtimes are those that reported and those that only have runs here", async () => {
    const report = {
      outbox: [{ projectId: "prj_fleet0000", state: "ok", pending: 3, acked: 10, refused: { sync_row_too_large: 1 } }],
      slots: { running: 1, queued: 0, total: 3 },
    };
    await it.call(undefined, "POST", "/v1/runtime/presence", { project: "fleet", runtimeId: RUNTIME, host: "build-01", version: "1.0.0", report });
    await begin("fleet", 1);
    await begin("fleet", 2, { homeRuntimeId: OTHER_RUNTIME });
    const { runtimes } = await get("/v1/runtimes?project=fleet");
    expect(runtimes).toMatchObject([
      { runtimeId: RUNTIME, host: "build-01", version: "1.0.0", presence: "online", orphaned: false, report, commandsInFlight: 0, runTotal: 1 },
      { runtimeId: OTHER_RUNTIME, presence: "unknown", orphaned: true, runTotal: 1 },
    ]);
  });

  test("the ops snapshot's home Runtimes carry their newest runs, at most 16, and their total", async () => {
    for (let n = 1; n <= 18; n++) await begin("ops", n);
    await push("ops", [syncEvent(3, { projectId: "prj_ops00000", runId: "run_ops1800000" })]);
    const [runtime, ...others] = await homeRuntimes(it.hub, "ops");
    expect(others).toEqual([]);
    expect(runtime).toMatchObject({ runtimeId: RUNTIME, presence: "unknown", orphaned: true, runTotal: 18 });
    expect(runtime!.runs).toHaveLength(16);
    expect(runtime!.runs[0]).toMatchObject({ displayTitle: "Run 18", status: "running", lastSequence: 1, pendingGap: true, orphaned: true });
    expect("host" in runtime!).toBe(false);
  });
});
