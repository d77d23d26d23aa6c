// Budgets over HTTP and from a terminal: who may set and see which, what is refused, and what was spent of them.
import { expect, test } from "bun:test";
import { sha256 } from "../../src/protocol/canonical.ts";
import { openHubWorld } from "../support/hub.ts";
import { pushRun, refunds } from "../support/lived-in.ts";
import { serveHub } from "../support/served.ts";

const ADMIN = "admin-token-of-this-test";
const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

async function openWorld() {
  const it = await openHubWorld({ localAdminTokenHash: sha256(ADMIN), rateLimit: undefined });
  const token = async (scope: string, project?: string) =>
    (await it.call("POST", "/v1/tokens", { ...bearer(ADMIN), body: { name: scope, scope, ...(project && { project }) } })).body.secret as string;
  await it.call("POST", "/v1/agents/register", { body: { name: "ann", purpose: "x", project: "shop" } });
  const operator = await token("operator");
  const set = (body: object, as = operator) => it.call("POST", "/v1/budgets", { ...bearer(as), body });
  const list = async (as: string) => (await it.call("GET", "/v1/budgets", bearer(as))).body.budgets;
  return Object.assign(it, { token, operator, set, list });
}
const DAILY = { project: "shop", period: "day", currency: "USD", amount: "40" };

test("a budget is set, changed, seen by whom it concerns, and removed", async () => {
  await using it = await openWorld();
  const { status, body } = await it.set(DAILY);
  expect([status, body.budget]).toEqual([200, expect.objectContaining({ project: "shop", amount: 40, spent: 0, unknown: 0, level: "within" })]);
  const again = await it.set({ ...DAILY, amount: "12.50" });
  expect([again.body.budget.id, again.body.budget.amount]).toEqual([body.budget.id, 12.5]);
  const all = await it.set({ period: "month", currency: "EUR", amount: "900" });
  expect("project" in all.body.budget).toBe(false);
  const [viewer, shop, bank] = [await it.token("viewer"), await it.token("operator", "shop"), await it.token("operator", "bank")];
  expect((await it.list(viewer)).map(({ id }: { id: string }) => id).sort()).toEqual([body.budget.id, all.body.budget.id].sort());
  expect((await it.list(shop)).map(({ id }: { id: string }) => id)).toEqual([body.budget.id]);
  expect(await it.list(bank)).toEqual([]);
  for (const [as, what] of [
    [viewer, DAILY],
    [bank, DAILY],
    [shop, { ...DAILY, project: undefined }],
  ] as const)
    expect((await it.set(what, as)).body.code).toBe("role_forbidden");
  const remove = (as: string, id: string) => it.call("DELETE", `/v1/budgets/${id}`, bearer(as));
  expect((await remove(bank, body.budget.id)).body.code).toBe("budget_not_found");
  expect((await remove(shop, all.body.budget.id)).body.code).toBe("budget_not_found");
  expect((await remove(shop, body.budget.id)).status).toBe(204);
  expect((await remove(it.operator, body.budget.id)).body.code).toBe("budget_not_found");
  const acts = (await it.hub.engine.read.audit.page({ project: "shop" }, undefined, 10)).map(({ action }) => action);
  expect(acts.filter((action) => action.startsWith("budget"))).toEqual(["budget_removed", "budget_set", "budget_set"]);
});

test.each([
  ["a project that is not there", { ...DAILY, project: "moon" }, "invalid_budget"],
  ["another period", { ...DAILY, period: "week" }, "invalid_budget"],
  ["a currency of another form", { ...DAILY, currency: "usd" }, "invalid_budget"],
  ["nothing", { ...DAILY, amount: "0" }, "invalid_budget"],
  ["more than a million", { ...DAILY, amount: "1000001" }, "invalid_budget"],
  ["an amount in words", { ...DAILY, amount: "1e3" }, "invalid_budget"],
  ["an amount as a number", { ...DAILY, amount: 40 }, "invalid_budget"],
])("%s is refused", async (_, body, code) => {
  await using it = await openWorld();
  const answer = await it.set(body);
  expect([answer.status, answer.body.code]).toEqual([400, code]);
  expect(await it.list(it.operator)).toEqual([]);
});

test("what was spent is said with the budget, and nobody sees it without a token", async () => {
  await using it = await openWorld();
  await pushRun(it as never, "run_refund0001", refunds(it.clock.now));
  await it.set({ ...DAILY, amount: "2.50" });
  const [budget] = await it.list(it.operator);
  expect([budget.level, budget.spent]).toEqual(["near", expect.closeTo(2.18, 2)]);
  expect((await it.set({ ...DAILY, amount: "2" })).body.budget.level).toBe("over");
  expect((await it.call("GET", "/v1/budgets")).status).toBe(401);
});

test("kxm budget sets, lists and removes", async () => {
  await using hub = await serveHub();
  await hub.kxm(["peer", "--as", "ann", "--project", "shop", "list"]);
  expect((await hub.kxm(["budget", "list"])).stdout).toContain("No budget is set");
  const set = await hub.kxm(["budget", "set", "12.50", "--project", "shop", "--per", "month", "--json"]);
  expect(set.json.budget).toMatchObject({ project: "shop", period: "month", currency: "USD", amount: 12.5, level: "within" });
  expect((await hub.kxm(["budget", "set", "900", "--all", "--currency", "eur"])).stdout).toContain("all projects");
  expect((await hub.kxm(["budget", "set", "1", "--all", "--project", "shop"])).code).toBe(2);
  expect((await hub.kxm(["budget", "set", "1", "--per", "year"])).code).toBe(2);
  const refused = await hub.kxm(["budget", "set", "much", "--project", "shop"]);
  expect([refused.code, refused.stderr.includes("invalid_budget")]).toEqual([1, true]);
  expect((await hub.kxm(["budget", "list"])).stdout).toMatch(/shop +month +12\.50 USD +0\.00 +– +holds/);
  expect((await hub.kxm(["budget", "remove", set.json.budget.id])).stdout).toBe(`removed ${set.json.budget.id}\n`);
  expect((await hub.kxm(["budget", "list", "--json"])).json.budgets).toHaveLength(1);
});
