// The pages of context over a real hub: state, proposals and the decision on them, the pool, and that all of it is only text.
import { expect, test } from "bun:test";
import { openDashboard } from "../support/dashboard.ts";
import { hrefOf, markupOf, textsOf } from "../support/html.ts";
import { withWorkflows } from "../support/workflows.ts";

async function open() {
  const it = await withWorkflows(await openDashboard({ settings: { rateLimit: undefined } }));
  const propose = async (key: string, summary: string) =>
    (
      await it.as("ann", "POST", "/v1/context/state/propose", {
        project: "shop",
        key,
        summary,
        authority: "evidence",
        confidence: "verified",
        evidenceRefs: ["adr:1"],
      })
    ).body.proposalId as string;
  return Object.assign(it, { propose });
}

test("a project that knows nothing says how something comes to be known", async () => {
  await using it = await open();
  const { html } = await it.get("/context?project=shop", { cookie: (await it.signIn("viewer")).cookie });
  expect(textsOf(html, ".empty h3")).toEqual(["Nothing is known here yet."]);
});

test("an admin promotes a proposal with evidence, rejects another with a reason, and the key keeps its history", async () => {
  await using it = await open();
  const [first, second] = [await it.propose("db/engine", "SQLite"), await it.propose("db/engine", "a text file")];
  const { cookie, csrf, id } = await it.signIn("admin");
  const list = await it.get("/context?project=shop", { cookie });
  expect(textsOf(list.html, ".card__title")).toEqual(["db/engine", "db/engine"]);
  expect((await it.get(hrefOf(list.html, "Promote…")!, { cookie })).html).toContain('action="/context/promote"');
  expect((await it.post("/context/promote", { csrf, project: "shop", proposal: first, evidence: "bench:7" }, { cookie })).status).toBe(303);
  expect((await it.post("/context/reject", { csrf, project: "shop", proposal: second, reason: "too slow" }, { cookie })).status).toBe(303);
  const [current] = await it.hub.engine.read.context.currentAfter("shop", "", 10);
  expect([current!.stateKey, current!.summary, (await it.hub.engine.read.context.find(second))!.status]).toEqual(["db/engine", "SQLite", "rejected"]);
  const acts = await it.hub.engine.read.audit.page({ actor: id, project: "shop" }, undefined, 10);
  expect(acts.map(({ action, reason }) => [action, reason])).toEqual([
    ["state.rejected", "too slow"],
    ["state.promoted", null],
  ]);
  const after = await it.get("/context?project=shop", { cookie });
  expect(textsOf(after.html, "tbody td").slice(0, 2)).toEqual(["db/engine", "SQLite"]);
  const key = await it.get(hrefOf(after.html, "db/engine")!, { cookie });
  expect(textsOf(key.html, ".card__meta .status").sort()).toEqual(["current", "rejected", "rejected"]);
  const again = await it.post(
    "/context/promote",
    { csrf, project: "shop", proposal: first, evidence: "x" },
    { cookie, headers: { "hx-request": "true" } },
  );
  expect(again.status).toBeGreaterThanOrEqual(400);
});

test("a long state comes in pages, each key once", async () => {
  await using it = await open();
  const { cookie, csrf } = await it.signIn("admin");
  for (let n = 0; n < 55; n++)
    await it.post(
      "/context/promote",
      { csrf, project: "shop", proposal: await it.propose(`key/${String(n).padStart(2, "0")}`, "v"), evidence: "e" },
      { cookie },
    );
  const seen: string[] = [];
  for (let href: string | null | undefined = "/context"; href; ) {
    const { html } = await it.get(href, { cookie });
    seen.push(...textsOf(html, "tbody .cell-main a"));
    href = hrefOf(html, "Older");
  }
  expect([seen.length, new Set(seen).size]).toEqual([55, 55]);
});

test("the pool shows the packet of a role and what words recall", async () => {
  await using it = await open();
  const { cookie, csrf } = await it.signIn("admin");
  await it.post(
    "/context/promote",
    { csrf, project: "shop", proposal: await it.propose("db/engine", "SQLite with fsync"), evidence: "e" },
    { cookie },
  );
  const packet = await it.get("/context/pool?project=shop&role=implementer&task=choose+the+engine", { cookie });
  expect(textsOf(packet.html, "tbody .cell-main")[0]).toStartWith("SQLite with fsync");
  expect(textsOf((await it.get("/context/pool?project=shop&words=fsync", { cookie })).html, "tbody .cell-main")).toHaveLength(1);
  expect(textsOf((await it.get("/context/pool?project=shop&words=zebra", { cookie })).html, ".empty h3")).toEqual(["No item fits these words."]);
  expect((await it.get("/context/pool?project=shop", { cookie: (await it.signIn("operator")).cookie })).status).toBe(403);
});

test("deciding needs an admin of the project, and other projects' state is not seen", async () => {
  await using it = await open();
  const proposal = await it.propose("secret/plan", "stripes of a horse");
  const [operator, other] = [await it.signIn("operator"), await it.signIn("admin", "elsewhere")];
  for (const path of ["/context/promote", "/context/reject"]) {
    const form = { project: "shop", proposal, evidence: "e", reason: "r" };
    expect((await it.post(path, { ...form, csrf: operator.csrf }, { cookie: operator.cookie })).status).toBe(403);
    expect((await it.post(path, { ...form, csrf: other.csrf }, { cookie: other.cookie })).status).toBe(403);
    await it.post(path, { ...form, project: "elsewhere", csrf: other.csrf }, { cookie: other.cookie });
  }
  expect((await it.hub.engine.read.context.find(proposal))!.status).toBe("proposed");
  for (const path of ["/context", "/context?project=shop", "/context?project=shop&key=secret/plan", "/context/pool?project=shop&words=horse"])
    expect((await it.get(path, { cookie: other.cookie })).html).not.toContain("stripes");
  expect((await it.get("/context", { cookie: operator.cookie })).html).not.toContain("Promote…");
});

test("keys and values are only text", async () => {
  await using it = await open();
  const proposal = await it.propose("<b>key</b>", "<img src=x onerror=1> <script>alert(1)</script> \u202e");
  const { cookie, csrf } = await it.signIn("admin");
  const look = async (path: string) => {
    const { html } = await it.get(path, { cookie });
    const { elements, attributes } = markupOf(html);
    expect([path, elements.has("img"), elements.has("b"), attributes.has("onerror")]).toEqual([path, false, false, false]);
    expect(html).not.toContain("<script>alert");
    expect(textsOf(html, "main").join(" ")).toContain("<img src=x onerror=1>");
  };
  await look("/context");
  await it.post("/context/promote", { csrf, project: "shop", proposal, evidence: "e" }, { cookie });
  for (const path of ["/context", `/context?project=shop&key=${encodeURIComponent("<b>key</b>")}`, "/context/pool?project=shop&role=planner&task=x"])
    await look(path);
});
