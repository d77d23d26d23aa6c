// Counting the event log by hour.
import { describe, expect, test } from "bun:test";
import * as activity from "../../src/hub/activity.ts";
import { range, WORLDS } from "../support/engines.ts";
import { openFleet } from "../support/fleet.ts";
import { testedEvent } from "../support/rows.ts";

const HOUR = 3_600_000;
const KIND: activity.Kind = { topic: "agents", type: "tested" };

describe.each(WORLDS)("activity on %s", (_, open) => {
  test("every event is counted once in the hour it happened, however often the count runs", async () => {
    await using fleet = await openFleet(open);
    const { engine } = fleet.world;
    const happen = (project: string, times: number) =>
      engine.write(project, async (tx) => {
        for (const n of range(times)) tx.append(testedEvent(project, n));
      });
    const counts = (projects = ["p", "q"]) => activity.byHour(engine.read, projects, KIND, { hours: 3, now: fleet.clock.now });
    await happen("p", 3);
    expect(await counts()).toEqual([0, 0, 0]);
    expect(await activity.countActivity(fleet.hub)).toBe(3);
    expect(await activity.countActivity(fleet.hub)).toBe(0);
    fleet.clock.now += HOUR;
    await happen("p", 2);
    await happen("q", 5);
    expect(await activity.countActivity(fleet.hub)).toBe(7);
    await happen("p", 1);
    expect(await activity.countActivity(fleet.hub)).toBe(1);
    expect(await counts()).toEqual([0, 3, 8]);
    expect(await counts(["q"])).toEqual([0, 0, 5]);
    fleet.clock.now += 2 * HOUR;
    expect(await counts()).toEqual([8, 0, 0]);
  });

  test("hours older than the log keeps are removed", async () => {
    await using fleet = await openFleet(open);
    const { engine } = fleet.world;
    const happen = () => engine.write("p", async (tx) => tx.append(testedEvent("p")));
    await happen();
    await activity.countActivity(fleet.hub);
    const all = () => engine.read.activity.hours("p", "agents", "tested", 0);
    expect(await all()).toHaveLength(1);
    fleet.clock.now += 36 * 24 * HOUR;
    await happen();
    await activity.countActivity(fleet.hub);
    expect((await all()).map(({ hour }) => hour)).toEqual([Math.floor(fleet.clock.now / HOUR)]);
  });
});
