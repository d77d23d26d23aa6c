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
  expect(textsOf(html, ".empty h3")).toEqual(["No run changed in this time."]);
});

test("the cost of runs is summed in all, by model, by agent and by run, the dearest first", async () => {
  await using it = await open();
  await beat(it);
  await pushRun(it, FIRST, ended(it.clock.now, "Small fix", "completed"));
  await pushRun(it, SECOND, refunds(it.clock.now));
  const { html } = await it.get("/cost?project=shop", { cookie: (await it.signIn("viewer")).cookie });
  expect(textsOf(html, ".stat__value")[0]).toBe("$2.27");
  const rows = textsOf(html, "tbody tr");
  const of = (word: string) => rows.find((row) => row.startsWith(word))!;
  expect(of("anthropic/claude-opus-4")).toEndWith("$2.03");
  expect(of("openai/gpt-5-codex")).toEndWith("$0.24");
  expect(of("implementer")).toContain("$1.35");
  expect(rows.findIndex((row) => row.startsWith("Settle refunds"))).toBeLessThan(rows.findIndex((row) => row.startsWith("Small fix")));
  expect(textsOf(html, ".section__note").at(-1)).toContain("every run");
});

test("only runs that changed within the range count", async () => {
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
