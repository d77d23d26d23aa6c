// The page of the journal over a real hub: entries of runs, their signals, the decision on a candidate, and that all of it is only text.
import { expect, test } from "bun:test";
import { openDashboard } from "../support/dashboard.ts";
import { attributesOf, hrefOf, markupOf, textsOf } from "../support/html.ts";
import { withWorkflows } from "../support/workflows.ts";

async function open() {
  const it = await withWorkflows(await openDashboard({ settings: { rateLimit: undefined } }));
  const runId = (await it.start({ issue: { key: "A-1" } })).body.runId as string;
  const record = async (body: object) =>
    (
      await it.as("lead", "POST", `/v1/workflows/${runId}/journal`, {
        stageId: "build",
        severity: "info",
        evidence: ["test:unit"],
        relatedEntryIds: [],
        ...body,
      })
    ).body.entry.id as string;
  return Object.assign(it, { runId, record });
}

test("without entries the page says who writes them", async () => {
  await using it = await openDashboard();
  await it.call("POST", "/v1/agents/register", { body: { name: "ann", purpose: "test", project: "shop" } });
  const { html } = await it.get("/journal?project=shop", { cookie: (await it.signIn("viewer")).cookie });
  expect(textsOf(html, ".empty h3")).toEqual(["Nothing is written down yet."]);
  const signals = await it.get("/journal?project=shop&show=signals", { cookie: (await it.signIn("viewer")).cookie });
  expect(textsOf(signals.html, ".empty h3")).toEqual(["The journal teaches nothing yet."]);
});

test("entries show who wrote what, newest first, by category, in pages", async () => {
  await using it = await open();
  for (let n = 0; n < 60; n++) await it.record({ category: "observation", summary: `seen ${n}` });
  await it.record({ category: "lesson", summary: "Take the key before the first write", details: "The retry used the old key." });
  const { cookie } = await it.signIn("viewer");
  const { html } = await it.get("/journal?project=shop", { cookie });
  expect(textsOf(html, ".card__title")[0]).toBe("Take the key before the first write");
  expect(textsOf(html, ".untrusted__text")[0]).toBe("The retry used the old key. evidence: test:unit");
  expect(textsOf(html, ".card__meta")[0]).toContain("lesson area gates lead");
  expect(textsOf((await it.get(hrefOf(html, "Older")!, { cookie })).html, ".card__title").length).toBeGreaterThanOrEqual(11);
  const lessons = await it.get(hrefOf(html, "lesson")!, { cookie });
  expect(textsOf(lessons.html, ".card__title")).toEqual(["Take the key before the first write"]);
});

test("signals are ranked within one project", async () => {
  await using it = await open();
  await it.record({ category: "lesson", severity: "warning", summary: "small" });
  await it.record({ category: "error", severity: "error", summary: "big" });
  const { cookie } = await it.signIn("viewer");
  const { html } = await it.get("/journal?project=shop&show=signals", { cookie });
  expect(textsOf(html, "tbody .cell-main a")).toEqual(["big", "small"]);
  expect(textsOf((await it.get("/journal?show=signals", { cookie })).html, ".notice")[0]).toContain("Choose one project");
});

test("an admin decides on a candidate once, with evidence and a reason", async () => {
  await using it = await open();
  const id = await it.record({ category: "skill-candidate", summary: "Run the unit gate first" });
  const admin = await it.signIn("admin");
  const list = await it.get("/journal?project=shop", { cookie: admin.cookie });
  const asks = await it.get(hrefOf(list.html, "Decide…")!, { cookie: admin.cookie });
  expect(attributesOf(asks.html, "form.form input[name=entry]", "value")).toEqual([id]);
  const form = { csrf: admin.csrf, entry: id, to: "quarantined", reason: "unclear" };
  expect((await it.post("/journal/promote", form, { cookie: admin.cookie })).status).toBe(303);
  expect((await it.get("/journal", { cookie: admin.cookie })).html).toContain("Evidence is missing.");
  expect((await it.post("/journal/promote", { ...form, evidence: "run:1\nrun:2" }, { cookie: admin.cookie })).status).toBe(303);
  const row = await it.hub.engine.read.journal.find(id);
  expect([row!.promotedTo, (row!.record as any).promotion[0].evidenceRefs]).toEqual(["quarantined", ["run:1", "run:2"]]);
  const [entry] = await it.hub.engine.read.audit.page({ actor: admin.id, action: "promoted.quarantined" }, undefined, 10);
  expect([entry!.reason, entry!.origin]).toEqual(["unclear", "dashboard"]);
  const again = await it.post("/journal/promote", { ...form, evidence: "x" }, { cookie: admin.cookie, headers: { "hx-request": "true" } });
  expect(again.status).toBeGreaterThanOrEqual(400);
  expect(textsOf((await it.get("/journal", { cookie: admin.cookie })).html, ".card__meta .status")).toContain("quarantined unclear");
});

test("deciding needs an admin of the project, and nobody else's entries are seen", async () => {
  await using it = await open();
  const id = await it.record({ category: "skill-candidate", summary: "zebra" });
  const [operator, other] = [await it.signIn("operator"), await it.signIn("admin", "elsewhere")];
  const form = { entry: id, to: "approved", reason: "r", evidence: "e" };
  expect((await it.post("/journal/promote", { ...form, csrf: operator.csrf }, { cookie: operator.cookie })).status).toBe(403);
  expect((await it.post("/journal/promote", { ...form, csrf: other.csrf }, { cookie: other.cookie })).status).toBe(404);
  expect((await it.get(`/journal?entry=${id}`, { cookie: other.cookie })).status).toBe(404);
  for (const path of ["/journal", "/journal?project=shop", "/journal?show=signals&project=shop"])
    expect((await it.get(path, { cookie: other.cookie })).html).not.toContain("zebra");
  expect((await it.get("/journal", { cookie: operator.cookie })).html).not.toContain("Decide…");
  expect((await it.hub.engine.read.journal.find(id))!.promotedTo).toBeNull();
});

test("what agents write is only text", async () => {
  await using it = await open();
  const id = await it.record({
    category: "skill-candidate",
    summary: "<img src=x onerror=1> \u202e",
    details: "<script>alert(1)</script>",
    evidence: ["<b>proof</b>"],
  });
  const { cookie } = await it.signIn("admin");
  for (const path of ["/journal", `/journal?entry=${id}&act=decide`, "/journal?project=shop&show=signals"]) {
    const { html } = await it.get(path, { cookie });
    const { elements, attributes } = markupOf(html);
    expect([path, elements.has("img"), elements.has("b"), attributes.has("onerror")]).toEqual([path, false, false, false]);
    expect(html).not.toContain("<script>alert");
    expect(textsOf(html, "main").join(" ")).toContain("<img src=x onerror=1>");
  }
});
