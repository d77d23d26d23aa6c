// What the hub's own rules write is what `kxm verify` expects: hashes are made and checked by the same definition.
import { describe, expect, test } from "bun:test";
import { verifyPostgres, verifySqlite } from "../../src/db/verify.ts";
import { type OpenWorld, WORLDS, type World } from "../support/engines.ts";
import { liven } from "../support/lively.ts";
import { RUNTIME, syncEvent } from "../support/sync-events.ts";
import { openOn } from "../support/workflows.ts";

describe.each(WORLDS)("%s store of a busy hub", (_, open) => {
  test("verifies row by row", async () => {
    let world: World;
    const remembered: OpenWorld = async (options) => (world = await open(options));
    await using it = await openOn(remembered)();
    const { runId } = (await it.start({ issue: { key: "SHOP-1" } })).body;
    const lesson = { category: "lesson", summary: "Pin the clock ☃", evidence: ["class:flaky_clock"], stageId: "build" };
    expect((await it.as("lead", "POST", `/v1/workflows/${runId}/journal`, lesson)).status).toBe(201);
    const push = (events: unknown[]) => it.call("POST", "/v1/sync/events", { body: { project: "p", runtimeId: RUNTIME, events } });
    await push([syncEvent(1), syncEvent(2)]);
    await push([syncEvent(2, { at: 5 })]);
    if (world!.kind === "sqlite") await liven(it.hub, it.clock); // a day's work; over PostgreSQL it takes seconds and says the same

    const verdict = world!.kind === "sqlite" ? await verifySqlite(world!.location) : await verifyPostgres(world!.location);
    expect(verdict.damage).toEqual([]);
    for (const table of ["messages", "sync_events", "workflow_journal"]) expect([table, verdict.checked[table]! > 0]).toEqual([table, true]);
  }, 30_000);
});
