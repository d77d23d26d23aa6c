// The page of cost over a real hub: sums by model, agent and run from what Runtimes push, within a time and a project.
import { expect, test } from "bun:test";
import { openDashboard } from "../support/dashboard.ts";
import { markupOf, textsOf } from "../support/html.ts";
import { beat, ended, pushRun, refunds, register } from "../support/lived-in.ts";

const open = () => openDashboard({ settings: { rateLimit: undefined } });
const [FIRST, SECOND] = ["run_aaaaaaaaaaaa", "run_bbbbbbbbbbbb"];

test("without a run in that time the page says how one comes about", async () => {
  await using it = await open();
  await register(it, "ann");
  const { html } = await it.get("/cost?project=shop", { cookie: (await it.signIn("viewer")).cookie });
  expect(textsOf(html, ".empty h3")).toEqual(["Nothing was spent in this time.", "No budget is set."]);
});

test("the cost of runs is summed in all, by agent and by run, the dearest first, and by what else the address asks", async () => {
  await using it = await open();
  await beat(it);
  await pushRun(it, FIRST, ended(it.clock.now, "Small fix", "completed"));
  await pushRun(it, SECOND, refunds(it.clock.now));
  const { cookie } = await it.signIn("viewer");
  const { html } = await it.get("/cost?project=shop", { cookie });
  expect(textsOf(html, ".stat__value")[2]).toBe("$2.27");
  const rows = textsOf(html, "tbody tr");
  expect(rows.find((row) => row.startsWith("implementer"))!).toContain("$1.35");
  expect(rows.findIndex((row) => row.startsWith("Settle refunds"))).toBeLessThan(rows.findIndex((row) => row.startsWith("Small fix")));
  const by = async (part: string) => textsOf((await it.get(`/cost?project=shop&by=${part}`, { cookie })).html, "[id^=cost-]");
  const models = await by("model");
  expect(models[0]).toStartWith("anthropic/claude-opus-4");
  expect(models[0]).toEndWith("$2.03");
  expect(models[1]).toEndWith("$0.24");
  expect((await by("machine"))[0]).toStartWith("build-01");
  expect((await by("project"))[0]).toStartWith("shop");
  expect((await by("harness"))[0]).toStartWith("not named");
});

test("what has no price is unknown on the page and in the file, never nothing", async () => {
  await using it = await open();
  await beat(it);
  await pushRun(it, SECOND, [
    { type: "attempt.created", payload: { status: "created", agentId: "quiet", usage: { inputTokens: 900 } }, at: it.clock.now },
  ]);
  const { cookie } = await it.signIn("viewer");
  const { html } = await it.get("/cost?project=shop", { cookie });
  expect(textsOf(html, ".stat__value")).toEqual(["unknown", "unknown", "unknown", "0%"]);
  expect(textsOf(html, "[id^=cost-]")[0]).toEndWith("unknown");
  const file = await it.get("/cost/export/csv?project=shop", { cookie });
  expect(file.html.trim().split("\r\n").at(-1)).toBe('"quiet","","unknown","",1,1,900,0');
  expect(JSON.parse((await it.get("/cost/export/json?project=shop", { cookie })).html)).toMatchObject([{ name: "quiet", cost: "unknown" }]);
});

test("the share of uses with a price does not contradict those without one", async () => {
  await using it = await open();
  await beat(it);
  const use = (usage: object, n: number) =>
    ({ type: "attempt.created" as const, payload: { status: "created", attemptId: `att_000000000000000${n}`, usage }, at: it.clock.now }) as never;
  await pushRun(it, SECOND, [
    use({ inputTokens: 1, cost: 1, currency: "USD", costKind: "reported" }, 1),
    use({ inputTokens: 1, cost: 1, currency: "USD", costKind: "reported" }, 2),
    use({ inputTokens: 900 }, 3),
  ]);
  const { cookie } = await it.signIn("viewer");
  const strip = async () => textsOf((await it.get("/cost?project=shop", { cookie })).html, ".stat").at(-1)!;
  expect(await strip()).toBe("Uses with a price 66% 1 use without a price, none of the cost estimated");
});

test("an operator sets, changes and removes a budget; a viewer sees it and is offered nothing", async () => {
  await using it = await open();
  await beat(it);
  await pushRun(it, SECOND, refunds(it.clock.now));
  const { cookie, csrf, id } = await it.signIn("operator");
  const wanted = { csrf, of: "shop", period: "month", amount: "2.50", currency: "usd" };
  expect((await it.post("/cost/budgets?project=shop", wanted, { cookie })).status).toBe(303);
  const page = async (who = cookie) => (await it.get("/cost?project=shop", { cookie: who })).html;
  expect(textsOf(await page(), ".budget")[0]).toContain("$2.18 / $2.50");
  expect(textsOf(await page(), ".budget .status__word")).toEqual(["nearly used"]);
  expect(textsOf(await page(), ".stat__value")[2]).toBe("$2.18 of $2.50");
  await it.post("/cost/budgets", { ...wanted, amount: "1" }, { cookie });
  expect(textsOf(await page(), ".budget .status__word")).toEqual(["used up"]);
  const viewer = await page((await it.signIn("viewer")).cookie);
  expect(textsOf(viewer, ".budget .status__word")).toEqual(["used up"]);
  expect(viewer).not.toContain("Remove…");
  const [budget] = await it.hub.engine.read.budgets.list(10);
  expect((await it.post("/cost/budgets/remove", { csrf, id: budget!.id }, { cookie })).status).toBe(303);
  expect(await it.hub.engine.read.budgets.list(10)).toEqual([]);
  const audit = await it.hub.engine.read.audit.page({ actor: id }, undefined, 10);
  expect(audit.map(({ action }) => action).filter((action) => action.startsWith("budget"))).toEqual(["budget_removed", "budget_set", "budget_set"]);
});

test("a viewer, a session of another project and a form that makes no sense set nothing", async () => {
  await using it = await open();
  await beat(it);
  await register(it, "ann", "bank");
  const wanted = { of: "shop", period: "day", amount: "5", currency: "USD" };
  const ask = async (who: Awaited<ReturnType<typeof it.signIn>>, more: Record<string, string> = {}) =>
    (await it.post("/cost/budgets", { csrf: who.csrf, ...wanted, ...more }, { cookie: who.cookie, headers: { "hx-request": "true" } })).status;
  expect(await ask(await it.signIn("viewer"))).toBe(403);
  const bank = await it.signIn("admin", "bank");
  expect(await ask(bank)).toBe(403);
  expect(await ask(bank, { of: "" })).toBe(403);
  const operator = await it.signIn("operator");
  const wrong: Record<string, string>[] = [
    { amount: "-5" },
    { amount: "1e9" },
    { amount: "" },
    { period: "year" },
    { of: "nowhere" },
    { currency: "$" },
  ];
  for (const one of wrong) expect(await ask(operator, one)).toBe(400);
  expect(await it.hub.engine.read.budgets.list(10)).toEqual([]);
  expect(await ask(operator, { of: "" })).toBe(200);
  const [budget] = await it.hub.engine.read.budgets.list(10);
  const remove = (who: typeof bank) =>
    it.post("/cost/budgets/remove", { csrf: who.csrf, id: budget!.id }, { cookie: who.cookie, headers: { "hx-request": "true" } });
  expect((await remove(bank)).status).toBe(404);
  expect((await remove(operator)).status).toBe(200);
});

test("only what was used within the range counts", async () => {
  await using it = await open();
  await beat(it);
  await pushRun(it, FIRST, ended(it.clock.now, "Old", "completed"));
  it.clock.now += 3 * 86_400_000;
  await pushRun(it, SECOND, ended(it.clock.now, "New", "completed"));
  const { cookie } = await it.signIn("viewer");
  const runs = async (days: number) => textsOf((await it.get(`/cost?project=shop&days=${days}`, { cookie })).html, "tbody .cell-main");
  expect((await runs(1)).filter((title) => ["Old", "New"].includes(title))).toEqual(["New"]);
  expect((await runs(7)).filter((title) => ["Old", "New"].includes(title)).sort()).toEqual(["New", "Old"]);
});

test("a session of one project sees no other project's cost, and nobody sees it without a session", async () => {
  await using it = await open();
  await beat(it);
  await register(it, "ann", "bank");
  await pushRun(it, FIRST, ended(it.clock.now, "Secret work", "completed"));
  const { cookie } = await it.signIn("admin", "bank");
  for (const path of ["/cost", "/cost?project=shop", "/ui/cost?project=shop"])
    expect((await it.get(path, { cookie })).html).not.toContain("Secret work");
  expect((await it.get("/cost", { cookie: (await it.signIn("viewer")).cookie })).html).toContain("Secret work");
  expect((await it.get("/cost")).headers.get("location")).toStartWith("/signin");
});

test("titles of runs are only text", async () => {
  await using it = await open();
  await beat(it);
  await pushRun(it, FIRST, ended(it.clock.now, "<img src=x onerror=1> <script>alert(1)</script>", "completed"));
  const { html } = await it.get("/cost", { cookie: (await it.signIn("viewer")).cookie });
  const { elements, attributes } = markupOf(html);
  expect([elements.has("img"), attributes.has("onerror")]).toEqual([false, false]);
  expect(html).not.toContain("<script>alert");
  expect(textsOf(html, "tbody").join(" ")).toContain("<img src=x onerror=1>");
});
