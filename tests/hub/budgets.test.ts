// Budgets: set by people, compared with what was spent, told once per period and level, and never a reason for the hub to stop anything. Both engines.
import { describe, expect, test } from "bun:test";
import type { CostRow } from "../../src/db/schema.ts";
import * as budgets from "../../src/hub/budgets.ts";
import * as costs from "../../src/hub/costs.ts";
import { BUDGETS_MAX } from "../../src/protocol/limits.ts";
import { DAY_MS } from "../../src/protocol/time.ts";
import { range, WORLDS } from "../support/engines.ts";
import { type Fleet, openFleet } from "../support/fleet.ts";
import { testedEvent } from "../support/rows.ts";

const BY = { actor: "ses_a", role: "operator", origin: "dashboard" };

/** Money spent today, as the sums have it, by a project that exists. */
async function spend(fleet: Fleet, amount: number, { project = "p", currency = "USD", unknown = 0 } = {}): Promise<void> {
  const row: CostRow = {
    project,
    dimension: "day",
    at: costs.dayOf(fleet.clock.now),
    name: "",
    currency,
    amount: Math.round(amount * 1e6),
    estimated: 0,
    inputTokens: 0,
    outputTokens: 0,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    uses: 1,
    unknown,
  };
  await fleet.world.engine.write(project, async (tx) => {
    await tx.costs.add([row]);
    tx.append(testedEvent(project));
  });
}
const set = (fleet: Fleet, amount: number, more: Partial<budgets.NewBudget> = {}) =>
  fleet.world.engine.write(more.project ?? "p", (tx) => budgets.set(tx, BY, { project: "p", period: "day", currency: "USD", amount, ...more }));
const alertsOf = async (fleet: Fleet, project = "p") =>
  (await fleet.world.engine.read.alerts.openPage(project, "~", 20)).map(({ kind, count }) => `${kind} ${count}`).sort();
const usesOf = (fleet: Fleet, projects: string[], all?: string[]) => budgets.uses(fleet.world.engine.read, projects, all, fleet.clock.now);

describe.each(WORLDS)("budgets on %s", (_, open) => {
  test("a budget that is nearly used is told once, again when it is used up, and anew in the next period", async () => {
    await using fleet = await openFleet(open);
    await set(fleet, 10);
    await spend(fleet, 7.99);
    expect(await budgets.watch(fleet.hub)).toBe(0);
    await spend(fleet, 0.01);
    const atOnce = await Promise.all([budgets.watch(fleet.hub), budgets.watch(fleet.hub)]); // two hubs see it in the same moment
    expect(atOnce.toSorted()).toEqual([0, 1]);
    expect(await budgets.watch(fleet.hub)).toBe(0);
    expect(await alertsOf(fleet)).toEqual(["budget_near 1"]);
    await spend(fleet, 2);
    await budgets.watch(fleet.hub);
    expect(await alertsOf(fleet)).toEqual(["budget_near 1", "budget_over 1"]);
    const [over] = await fleet.world.engine.read.alerts.openPage("p", "~", 1);
    expect(over!.summary).toBe("The budget of this project for today is used up: 10.00 of 10.00 USD");
    fleet.clock.now += DAY_MS;
    expect(await budgets.watch(fleet.hub)).toBe(1); // holds again
    await spend(fleet, 12);
    await budgets.watch(fleet.hub);
    expect(await alertsOf(fleet)).toEqual(["budget_near 1", "budget_over 1", "budget_over 1"]);
  });

  test("a month counts all its days, another currency counts apart, and what has no price is said", async () => {
    await using fleet = await openFleet(open);
    fleet.clock.now = Date.UTC(2026, 10, 29, 12);
    await set(fleet, 10, { period: "month" });
    await spend(fleet, 4);
    fleet.clock.now += DAY_MS;
    await spend(fleet, 2, { unknown: 1 });
    await spend(fleet, 100, { currency: "EUR" });
    expect(await usesOf(fleet, ["p"])).toMatchObject([{ spent: 6, limit: 10, unknown: 1, level: "within" }]);
    fleet.clock.now += DAY_MS;
    expect(await usesOf(fleet, ["p"])).toMatchObject([{ spent: 0, unknown: 0, level: "within" }]);
  });

  test("a budget over all projects counts each of them, and is not shown to those who may not see all", async () => {
    await using fleet = await openFleet(open);
    await set(fleet, 10, { project: "" });
    await spend(fleet, 6);
    await spend(fleet, 5, { project: "q" });
    expect(await usesOf(fleet, ["p"], ["p", "q"])).toMatchObject([{ spent: 11, level: "over" }]);
    expect(await usesOf(fleet, ["p"])).toEqual([]);
    await budgets.watch(fleet.hub);
    expect(await alertsOf(fleet, "")).toEqual(["budget_over 1"]);
  });

  test("a higher budget holds again, the same one is no change, and each change is in the audit", async () => {
    await using fleet = await openFleet(open);
    const row = await set(fleet, 10);
    await spend(fleet, 9);
    await budgets.watch(fleet.hub);
    expect((await set(fleet, 20)).id).toBe(row.id);
    await set(fleet, 20);
    expect(await usesOf(fleet, ["p"])).toMatchObject([{ limit: 20, level: "within", budget: { level: "within" } }]);
    await fleet.world.engine.write("p", (tx) => budgets.remove(tx, BY, row.id));
    expect(await usesOf(fleet, ["p"])).toEqual([]);
    const audit = await fleet.world.engine.read.audit.page({ actor: BY.actor }, undefined, 10);
    expect(audit.map(({ action, subjectId, data }) => [action, subjectId, data["amount"], data["before"]])).toEqual([
      ["budget_removed", row.id, 20_000_000, undefined],
      ["budget_set", row.id, 20_000_000, 10_000_000],
      ["budget_set", row.id, 10_000_000, undefined],
    ]);
    await expect(fleet.world.engine.write("p", (tx) => budgets.remove(tx, BY, row.id))).rejects.toMatchObject({ code: "budget_not_found" });
  });

  test("a budget of nothing, of too much or in no currency is refused, and so is one more than there may be", async () => {
    await using fleet = await openFleet(open);
    for (const wrong of [{ amount: 0 }, { amount: -1 }, { amount: Number.NaN }, { amount: 1e300 }, { amount: 5, currency: "usd" }])
      await expect(set(fleet, wrong.amount, wrong)).rejects.toMatchObject({ code: "invalid_budget" });
    await fleet.world.engine.write("p", async (tx) => {
      for (const n of range(BUDGETS_MAX)) await budgets.set(tx, BY, { project: `p${n}`, period: "day", currency: "USD", amount: 1 });
    });
    await expect(set(fleet, 1, { project: "one more" })).rejects.toMatchObject({ code: "budget_limit" });
    expect((await set(fleet, 2, { project: "p0" })).amount).toBe(2_000_000);
  });
});
