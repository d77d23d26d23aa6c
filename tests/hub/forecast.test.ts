// What retention will delete, told before it does: the forecast of the next round is what the round deletes. Both engines.
import { describe, expect, test } from "bun:test";
import { forecast } from "../../src/hub/forecast.ts";
import { sweepOld } from "../../src/hub/retention.ts";
import { FORECAST_ROWS_MAX, RETENTION_INTERVAL_MS } from "../../src/protocol/limits.ts";
import { range, WORLDS, type World } from "../support/engines.ts";
import { openFleet } from "../support/fleet.ts";
import { insertRaw } from "../support/raw-rows.ts";
import { testedEvent } from "../support/rows.ts";

const DAY_MS = 86_400_000;
const approval = (n: number, decidedAt: number | null) => ({
  id: `apr_${String(n).padStart(6, "0")}`,
  project: "p",
  project_id: "prj_a",
  run_id: "run_a",
  runtime_id: "rtm_a",
  step_id: "s",
  attempt: 1,
  title: "t",
  content: "x".repeat(1_000),
  content_hash: "h",
  status: decidedAt === null ? "pending" : "approved",
  requested_at: 1,
  decided_at: decidedAt,
  updated_at: 1,
});
const insert = (world: World, rows: ReturnType<typeof approval>[]) => insertRaw(world, "approvals", rows);

describe.each(WORLDS)("the forecast on %s", (_, open) => {
  test("it counts what the next round and the next day delete, with the size of its texts, and not what is pending", async () => {
    await using fleet = await openFleet(open);
    const { now } = fleet.clock;
    const kept = 30 * DAY_MS;
    await insert(fleet.world, [
      approval(1, now - kept - DAY_MS),
      approval(2, now - kept - 1),
      approval(3, now - kept + DAY_MS / 2),
      approval(4, now - kept + 2 * DAY_MS),
      approval(5, null),
    ]);
    const told = (await forecast(fleet.hub, now)).find(({ kind }) => kind === "approvals")!;
    expect(told).toMatchObject({ keptMs: kept, next: { rows: 2 }, day: { rows: 3 }, firstAt: now - DAY_MS });
    expect([told.next.bytes, told.day.bytes].map((bytes) => Math.floor(bytes / 1_000))).toEqual([2, 3]);
    const clock = { lastAt: now };
    fleet.clock.now += RETENTION_INTERVAL_MS;
    expect(await sweepOld(fleet.hub, clock)).toEqual({ approvals: told.next.rows });
  });

  test("counting stops at a thousand, and every kind that retention knows is told or is part of one that is", async () => {
    await using fleet = await openFleet(open);
    await insert(
      fleet.world,
      range(FORECAST_ROWS_MAX + 20).map((n) => approval(n, 1)),
    );
    const told = await forecast(fleet.hub, fleet.clock.now);
    expect(told.find(({ kind }) => kind === "approvals")!.next.rows).toBe(FORECAST_ROWS_MAX + 1);
    expect(new Set(told.map(({ kind }) => kind)).size).toBe(16);
  });

  test("the event log is told by project, from its oldest on", async () => {
    await using fleet = await openFleet(open);
    const append = (project: string, times: number) =>
      fleet.world.engine.write(project, async (tx) => {
        for (const n of range(times)) tx.append(testedEvent(project, n));
      });
    await append("p", 3);
    await append("q", 2);
    const { now } = fleet.clock;
    const eventsAt = async (at: number) => (await forecast(fleet.hub, at)).find(({ kind }) => kind === "events")!;
    expect(await eventsAt(now)).toMatchObject({ next: { rows: 0 }, day: { rows: 0 }, firstAt: now + 30 * DAY_MS });
    expect(await eventsAt(now + 29.5 * DAY_MS)).toMatchObject({ next: { rows: 0 }, day: { rows: 5 } });
    expect(await eventsAt(now + 31 * DAY_MS)).toMatchObject({ next: { rows: 5 } });
  });
});
