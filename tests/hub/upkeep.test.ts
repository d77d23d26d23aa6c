// Backups and checks that a page starts: one at a time, progress and outcome in the store, and what a hub that died left behind. Both engines.
import { describe, expect, test } from "bun:test";
import { StoreRefused } from "../../src/db/refused.ts";
import * as upkeep from "../../src/hub/upkeep.ts";
import { UPKEEP_KEPT_MAX, UPKEEP_SILENT_MS, UPKEEP_TELL_MS } from "../../src/protocol/limits.ts";
import { range, WORLDS } from "../support/engines.ts";
import { type Fleet, openFleet } from "../support/fleet.ts";

const BY = { actor: "ses_a", role: "admin", origin: "dashboard" };
const MADE = { file: "/backups/kxm.db", bytes: 4_096, rows: 7, damaged: 0 };

/** Work that goes on until the test ends it. */
function work(fleet: Fleet) {
  const done = Promise.withResolvers<typeof MADE>();
  let progress: upkeep.OnProgress = () => {};
  fleet.hub.storeWork = {
    instead: { says: "", commands: [] },
    folder: "/backups",
    sizes: () => ({}),
    backUp: (told) => {
      progress = told;
      return done.promise;
    },
  };
  return { done, tell: (...told: Parameters<upkeep.OnProgress>) => progress(...told) };
}
const newest = async (fleet: Fleet) => (await fleet.world.engine.read.upkeep.newest(100))[0]!;
const typesOf = async (fleet: Fleet) => (await fleet.world.engine.read.events.after("", 0, 100)).map(({ type }) => type);

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((turn) => setImmediate(turn));
}

describe.each(WORLDS)("upkeep on %s", (_, open) => {
  test("a backup says how far it is, at most once a second, and what came of it; its start is in the audit", async () => {
    await using fleet = await openFleet(open);
    const { done, tell } = work(fleet);
    const { job, settled } = await upkeep.start(fleet.hub, BY, "backup");
    expect(job).toMatchObject({ state: "running", done: 0, total: 0, startedBy: "ses_a" });
    tell("copy", 10, 100);
    await until(async () => (await newest(fleet)).done === 10);
    tell("copy", 20, 100); // too soon
    fleet.clock.now += UPKEEP_TELL_MS;
    await new Promise((turn) => setImmediate(turn)); // the write before has ended
    tell("copy", 30.7, 100);
    await until(async () => (await newest(fleet)).done === 30);
    done.resolve(MADE);
    await settled;
    expect(await newest(fleet)).toMatchObject({ id: job.id, state: "done", finishedAt: fleet.clock.now, outcome: { backup: MADE } });
    expect(await typesOf(fleet)).toEqual(["backup.started", "backup.progress", "backup.progress", "backup.done"]);
    const [entry, ...more] = await fleet.world.engine.read.audit.page({ actor: "ses_a" }, undefined, 10);
    expect([entry!.action, entry!.subjectId, more]).toEqual(["backup.started", job.id, []]);
  });

  test("while one runs there is no second; what the store cannot do is refused", async () => {
    await using fleet = await openFleet(open);
    const { done } = work(fleet);
    const { settled } = await upkeep.start(fleet.hub, BY, "backup");
    await expect(upkeep.start(fleet.hub, BY, "backup")).rejects.toMatchObject({ code: "upkeep_busy" });
    await expect(upkeep.start(fleet.hub, BY, "verify")).rejects.toMatchObject({ code: "upkeep_unsupported" });
    done.resolve(MADE);
    await settled;
    fleet.hub.storeWork.backUp = async () => MADE;
    await (await upkeep.start(fleet.hub, BY, "backup")).settled;
    expect(await fleet.world.engine.read.upkeep.newest(10)).toHaveLength(2);
  });

  test("a refusal of the store is told as it is, and an error nobody expected without its text", async () => {
    await using fleet = await openFleet(open);
    for (const [error, failure] of [
      [new StoreRefused("store_disk", "the disk is full", "Make room."), "the disk is full"],
      [new Error("password of /secret/path"), "it failed for a reason that nobody expected"],
    ] as const) {
      work(fleet);
      fleet.hub.storeWork.backUp = () => Promise.reject(error);
      await (await upkeep.start(fleet.hub, BY, "backup")).settled;
      expect(await newest(fleet)).toMatchObject({ state: "failed", outcome: { failure } });
    }
    expect(JSON.stringify(await fleet.world.engine.read.upkeep.newest(10))).not.toContain("secret");
  });

  test("a job whose hub is gone is ended once it has been silent, not before", async () => {
    await using fleet = await openFleet(open);
    work(fleet);
    await upkeep.start(fleet.hub, BY, "backup");
    fleet.clock.now += UPKEEP_SILENT_MS - 1;
    expect(await upkeep.sweep(fleet.hub)).toBe(0);
    fleet.clock.now += 1;
    expect(await upkeep.sweep(fleet.hub)).toBe(1);
    expect(await newest(fleet)).toMatchObject({ state: "failed", outcome: { failure: expect.stringContaining("stopped") } });
    expect(await upkeep.sweep(fleet.hub)).toBe(0);
  });

  test("only the newest are remembered", async () => {
    await using fleet = await openFleet(open);
    work(fleet);
    fleet.hub.storeWork.backUp = async () => MADE;
    for (const _ of range(UPKEEP_KEPT_MAX + 2)) await (await upkeep.start(fleet.hub, BY, "backup")).settled;
    expect(await fleet.world.engine.read.upkeep.newest(100)).toHaveLength(UPKEEP_KEPT_MAX);
  });
});
