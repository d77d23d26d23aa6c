// The lists that people read, on both engines: runs of both kinds in one order, gaps, decided approvals, freed leases and a run's newest entries.
import { describe, expect, test } from "bun:test";
import * as leases from "../../src/hub/leases.ts";
import { emptyProjection } from "../../src/hub/projection.ts";
import * as runList from "../../src/hub/run-list.ts";
import { WORLDS } from "../support/engines.ts";
import { type Fleet, openFleet } from "../support/fleet.ts";
import { syncRunRow } from "../support/rows.ts";
import { syncEvent } from "../support/sync-events.ts";

/** A run as it is after its last event: its status, and when that came. */
const run = (fleet: Fleet, runId: string, at: number, over: Record<string, unknown> = {}) =>
  fleet.world.engine.write("p", (tx) =>
    tx.sync.insertRun(syncRunRow("prj_1", runId, { lastReceivedAt: at, status: "running", projection: emptyProjection(), ...over })),
  );
const flow = (fleet: Fleet, id: string, updatedAt: number, status: "running" | "waiting" | "completed") =>
  fleet.world.engine.write("p", async (tx) => {
    await tx.workflows.insert({
      ...{
        id,
        project: "p",
        definitionId: "release",
        deliveryId: id,
        payloadHash: "x",
        source: "generic",
        status,
        targetAgentId: "agt_1",
        targetAgentName: "lead",
      },
      ...{
        messageId: "msg_1",
        currentStage: null,
        waitingUntil: null,
        createdAt: 1,
        updatedAt,
        completedAt: status === "completed" ? updatedAt : null,
      },
      record: { id, project: "p", definitionId: "release", status, stages: [] },
    });
    tx.append({ project: "p", topic: "workflows", type: "started", subjectId: id, actor: "test", data: {} });
  });
const ids = async (fleet: Fleet, filter: runList.RunFilter, page: { after?: runList.RunPlace; limit?: number } = {}) =>
  (await runList.list(fleet.hub, ["p"], filter, { after: page.after, limit: page.limit ?? 50 })).runs.map(({ id }) => id);

describe.each(WORLDS)("lists for people on %s", (_, open) => {
  test("runs of both kinds come in one order, each once, whatever the page's size", async () => {
    await using fleet = await openFleet(open);
    for (let n = 0; n < 12; n++)
      await run(fleet, `run_${String(n).padStart(2, "0")}`, 100 + Math.floor(n / 3), { status: n % 2 ? "running" : "waiting" });
    await flow(fleet, "run_flow1", 101, "running");
    await flow(fleet, "run_flow2", 103, "completed");
    const all = await ids(fleet, { view: "all" });
    expect(all).toHaveLength(14);
    expect(all.slice(0, 2)).toEqual(["run_flow2", "run_11"]);
    for (const limit of [1, 3, 5]) {
      const seen: string[] = [];
      for (let after: runList.RunPlace | undefined; ; ) {
        const page = await runList.list(fleet.hub, ["p"], { view: "all" }, { after, limit });
        seen.push(...page.runs.map(({ id }) => id));
        if (!page.next) break;
        after = page.next;
      }
      expect(seen).toEqual(all);
    }
    expect(await ids(fleet, { view: "moving" })).toEqual(all.filter((id) => id !== "run_flow2"));
    expect(await ids(fleet, { view: "waiting" })).toEqual(["run_10", "run_08", "run_06", "run_04", "run_02", "run_00"]);
    expect(await ids(fleet, { view: "completed" })).toEqual(["run_flow2"]);
    expect(await ids(fleet, { view: "all", kind: "workflow" })).toEqual(["run_flow2", "run_flow1"]);
    expect(await ids(fleet, { view: "all", status: "waiting", kind: "runtime" })).toHaveLength(6);
    const counts = await Promise.all(
      (["moving", "waiting", "completed", "cancelled", "all"] as const).map((view) => runList.count(fleet.hub, ["p"], view)),
    );
    expect(counts).toEqual([13, 6, 1, 0, 14]);
  });

  test("filters look at titles, ids, workflows and one Runtime, alone and together", async () => {
    await using fleet = await openFleet(open);
    await run(fleet, "run_a", 1, { homeRuntimeId: "rtm_one", workflowId: "fix", displayTitle: "Settle Refunds" });
    await run(fleet, "run_b", 2, { homeRuntimeId: "rtm_two", workflowId: "docs", displayTitle: null, status: "failed" });
    await run(fleet, "run_c", 3, { homeRuntimeId: "rtm_two", workflowId: "fix", displayTitle: "x", status: null });
    expect(await ids(fleet, { view: "all", words: "refunds" })).toEqual(["run_a"]);
    expect(await ids(fleet, { view: "all", workflow: "FIX" })).toEqual(["run_c", "run_a"]);
    expect(await ids(fleet, { view: "all", runtimeId: "rtm_two" })).toEqual(["run_c", "run_b"]);
    expect(await ids(fleet, { view: "all", runtimeId: "rtm_two", status: "failed" })).toEqual(["run_b"]);
    expect(await ids(fleet, { view: "moving", runtimeId: "rtm_two" })).toEqual([]);
    expect(await ids(fleet, { view: "all", words: "run_b" })).toEqual(["run_b"]);
  });

  test("a filter that fits nothing looks at a bounded number of runs and says where to go on", async () => {
    await using fleet = await openFleet(open);
    await fleet.world.engine.write("p", async (tx) => {
      for (let n = 0; n < 1_100; n++) await tx.sync.insertRun(syncRunRow("prj_1", `run_${n}`, { lastReceivedAt: n, projection: emptyProjection() }));
    });
    const page = await runList.list(fleet.hub, ["p"], { view: "all", words: "nothing" }, { after: undefined, limit: 50 });
    expect([page.runs.length, page.next?.at]).toEqual([0, 100]);
    expect((await runList.list(fleet.hub, ["p"], { view: "all", words: "nothing" }, { after: page.next, limit: 50 })).next).toBeUndefined();
  });

  test("gaps, newest events of a run, decided approvals and freed leases are read from their newest on", async () => {
    await using fleet = await openFleet(open);
    const { engine } = fleet.world;
    for (const n of [1, 2, 3]) await run(fleet, `run_${n}`, n, { held: n === 2 ? 0 : n });
    expect((await engine.read.sync.gaps("p", 10)).map(({ runId }) => runId)).toEqual(["run_3", "run_1"]);
    expect((await engine.read.sync.gaps("p", 10, { at: 3, runId: "run_3" })).map(({ runId }) => runId)).toEqual(["run_1"]);
    expect(await engine.read.sync.countGaps("p", 1)).toBe(1);
    await engine.write("p", (tx) =>
      tx.sync.insertEvents(
        [1, 2, 3].map((sequence) => ({
          projectId: "prj_1",
          runId: "run_1",
          sequence,
          hash: "h",
          receivedAt: 1,
          record: JSON.stringify(syncEvent(sequence)),
        })),
      ),
    );
    expect((await engine.read.sync.eventsBefore("prj_1", "run_1", 3, 10)).map(({ sequence }) => sequence)).toEqual([2, 1]);
    await engine.write("p", async (tx) => {
      for (const [id, decidedAt] of [
        ["apr_1", 5],
        ["apr_2", null],
        ["apr_3", 9],
      ] as const)
        await tx.approvals.insert({
          ...{
            id,
            project: "p",
            projectId: "prj_1",
            runId: "run_1",
            runtimeId: "rtm_1",
            stepId: "s",
            attempt: 1,
            title: "t",
            content: "c",
            contentHash: "h",
          },
          ...{
            status: decidedAt === null ? "pending" : "approved",
            requestedAt: 1,
            decidedAt,
            decidedBy: null,
            reason: null,
            commandId: null,
            updatedAt: 1,
          },
        });
    });
    expect((await engine.read.approvals.decided("p", 10)).map(({ id }) => id)).toEqual(["apr_3", "apr_1"]);
    expect((await engine.read.approvals.decided("p", 10, { at: 9, id: "apr_3" })).map(({ id }) => id)).toEqual(["apr_1"]);
  });

  test("a resource's history tells who took it away and why, and only the holder that was looked at loses it", async () => {
    await using fleet = await openFleet(open);
    const [ann, bob] = [await fleet.agent("ann"), await fleet.agent("bob")];
    await leases.acquire(fleet.hub, ann, { name: "db", ttlMs: 60_000, waitMs: 0 });
    await leases.acquire(fleet.hub, bob, { name: "gone", ttlMs: 60_000, waitMs: 0 });
    const by = { actor: "ses_1", role: "operator", origin: "dashboard" };
    const wrong = leases.forceRelease(fleet.hub, by, { project: "p", name: "db", reason: "late", fence: 9 });
    expect(await wrong.catch(({ code }) => code)).toBe("lease_superseded");
    await leases.forceRelease(fleet.hub, by, { project: "p", name: "db", reason: "its machine is gone", fence: 1 });
    const { moments } = await leases.history(fleet.hub.engine.read, "p", "db", { limit: 10 });
    expect(moments.map(({ type, reason }) => [type, reason])).toEqual([
      ["force_released", "its machine is gone"],
      ["acquired", undefined],
    ]);
    expect((await fleet.hub.engine.read.leases.freed("p", 10)).map(({ name }) => name)).toEqual(["db"]);
    expect(await fleet.hub.engine.read.leases.countHeld("p", 10)).toBe(1);
    const page = await leases.history(fleet.hub.engine.read, "p", "db", { limit: 1 });
    expect((await leases.history(fleet.hub.engine.read, "p", "db", { before: page.next, limit: 1 })).moments[0]!.type).toBe("acquired");
  });
});
