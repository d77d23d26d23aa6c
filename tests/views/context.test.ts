// The pages of context over a real hub: state, proposals and the decision on them, the pool, and that all of it is only text.
import { expect, test } from "bun:test";
import { openDashboard } from "../support/dashboard.ts";
import { attributesOf, hrefOf, markupOf, textsOf } from "../support/html.ts";
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

const values = async (it: Awaited<ReturnType<typeof open>>, key: string) =>
  (await it.hub.engine.read.context.stateAt("shop", key, it.clock.now)).filter(({ status }) => status === "current").map(({ summary }) => summary);
const buttons = (html: string) => textsOf(html, "#compare .btn");

test("a proposal against what is current is compared side by side, and one of them is promoted in place", async () => {
  await using it = await open();
  const me = await it.signIn("admin");
  const first = await it.propose("db/engine", "SQLite\nwith fsync");
  expect((await it.get("/context?project=shop", me)).html).not.toContain("Contradictions"); // one value contradicts nothing
  await it.post("/context/promote", { csrf: me.csrf, project: "shop", proposal: first, evidence: "e" }, me);
  it.clock.now += 60_000;
  const second = await it.propose("db/engine", "PostgreSQL\nwith fsync");
  const list = await it.get("/context?project=shop", me);
  expect(textsOf(list.html, "tr[id^=contradiction]")).toEqual(["db/engine current and proposed 1 proposal Compare"]);
  const page = await it.get("/context?project=shop&key=db/engine", me);
  expect(textsOf(page.html, ".diff .is-del")).toEqual(["1 − removed: SQLite"]);
  expect(textsOf(page.html, ".diff .is-add")).toEqual(["1 + added: PostgreSQL"]);
  expect(textsOf(page.html, ".diff__head > div").map((text) => text.split(" ")[0])).toEqual(["current", "proposed"]);
  const asks = attributesOf(page.html, "#compare a[data-open]", "href");
  expect(textsOf((await it.get(asks[0]!, me)).html, "main h2")[0]).toStartWith("Promote ctx_");
  const done = await it.post("/context/promote", { csrf: me.csrf, project: "shop", key: "db/engine", proposal: second, evidence: "bench:9" }, me);
  expect(done.headers.get("location")).toBe("/context?project=shop&key=db%2Fengine");
  expect(await values(it, "db/engine")).toEqual(["PostgreSQL\nwith fsync"]);
  expect(buttons((await it.get("/context?project=shop&key=db/engine", me)).html)).toEqual([]);
});

test("both hold: the second gets a key of its own, with the reason in the audit", async () => {
  await using it = await open();
  const me = await it.signIn("admin");
  await it.post("/context/promote", { csrf: me.csrf, project: "shop", proposal: await it.propose("retry", "3 times"), evidence: "e" }, me);
  const second = await it.propose("retry", "never");
  const form = { csrf: me.csrf, project: "shop", key: "retry", proposal: second };
  const said = async (over: Record<string, string>) => {
    await it.post("/context/both", { ...form, ...over }, me);
    return textsOf((await it.get("/context?project=shop&key=retry", me)).html, ".flash").at(-1);
  };
  expect(await said({ newKey: "retry", reason: "r" })).toContain("Retry says something already.");
  expect(await said({ newKey: "retry/payments", reason: "" })).toContain("Reason is missing.");
  expect(await values(it, "retry/payments")).toEqual([]);
  expect(await said({ newKey: "retry/payments", reason: "money must not be sent twice" })).toContain("Both are kept, each under its own key.");
  expect([await values(it, "retry"), await values(it, "retry/payments")]).toEqual([["3 times"], ["never"]]);
  expect((await it.hub.engine.read.context.find(second))!.status).toBe("rejected");
  const [act] = await it.hub.engine.read.audit.page({ action: "state.split" }, undefined, 5);
  expect([act!.actor, act!.reason, act!.data]).toEqual([
    me.id,
    "money must not be sent twice",
    { key: "retry", newKey: "retry/payments", from: second },
  ]);
  expect(await said({ newKey: "retry/other", reason: "again" })).toContain("The value is rejected.");
});

test("several current values are said to be refused, and one is kept or each gets its key", async () => {
  await using it = await open();
  const me = await it.signIn("admin");
  await it.post("/context/promote", { csrf: me.csrf, project: "shop", proposal: await it.propose("region", "eu"), evidence: "e" }, me);
  const [first] = await it.hub.engine.read.context.currentAfter("shop", "", 10);
  const rival = async (summary: string) => {
    const id = `ctx_${summary}`;
    const record = { ...first!.record, id, summary };
    await it.hub.engine.write("shop", async (tx) => {
      tx.append({ project: "shop", topic: "context", type: "state.proposed", subjectId: id, actor: "hub", data: { key: "region" } });
      await tx.context.insert({ ...first!, id, summary, record, revision: await tx.context.takeRevision("shop") });
    });
    return id;
  };
  const us = await rival("us");
  expect((await it.as("ann", "POST", "/v1/context/state", { project: "shop", key: "region" })).body.code).toBe("state_contradiction");
  expect(textsOf((await it.get("/context", me)).html, "tr[id^=contradiction]")).toEqual(["region shop 2 current values Compare"]);
  const page = (await it.get("/context?project=shop&key=region", me)).html;
  expect(textsOf(page, "#compare a[data-open]").map((text) => text.replace(/ctx_\S*/, "ctx…"))).toEqual([
    "Keep only ctx…",
    "Keep only ctx…",
    "Both hold…",
  ]);
  await it.post("/context/keep", { csrf: me.csrf, project: "shop", key: "region", proposal: us, reason: "moved in May" }, me);
  expect(await values(it, "region")).toEqual(["us"]);
  await it.post("/context/keep", { csrf: me.csrf, project: "shop", key: "region", proposal: us, reason: "again" }, me);
  expect(textsOf((await it.get("/context", me)).html, ".flash").join(" ")).toContain("The key has no other current value.");
  const asia = await rival("asia");
  await it.post(
    "/context/both",
    { csrf: me.csrf, project: "shop", key: "region", proposal: asia, newKey: "region/asia", reason: "two clusters" },
    me,
  );
  expect([await values(it, "region"), await values(it, "region/asia")]).toEqual([["us"], ["asia"]]);
  expect((await it.as("ann", "POST", "/v1/context/state", { project: "shop", key: "region" })).body.state.summary).toBe("us");
});

test("deciding needs an admin of the project, and other projects' state is not seen", async () => {
  await using it = await open();
  const proposal = await it.propose("secret/plan", "stripes of a horse");
  const [operator, other] = [await it.signIn("operator"), await it.signIn("admin", "elsewhere")];
  for (const path of ["/context/promote", "/context/reject", "/context/keep", "/context/both"]) {
    const form = { project: "shop", proposal, evidence: "e", reason: "r", newKey: "n" };
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
  const look = async (path: string, marks = false) => {
    const { html } = await it.get(path, { cookie });
    const { elements, attributes } = markupOf(html);
    expect([path, elements.has("img"), !marks && elements.has("b"), attributes.has("onerror")]).toEqual([path, false, false, false]);
    expect(html).not.toContain("<script>alert");
    expect(textsOf(html, "main").join(" ")).toContain("<img src=x onerror=1>");
  };
  await look("/context");
  await it.propose("<b>key</b>", "<img src=x onerror=1> <script>alert(2)</script>");
  await look(`/context?project=shop&key=${encodeURIComponent("<b>key</b>")}`, true); // the difference itself is marked
  await it.post("/context/promote", { csrf, project: "shop", proposal, evidence: "e" }, { cookie });
  for (const path of ["/context", `/context?project=shop&key=${encodeURIComponent("<b>key</b>")}`, "/context/pool?project=shop&role=planner&task=x"])
    await look(path, path.includes("key="));
});
