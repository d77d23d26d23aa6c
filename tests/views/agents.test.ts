// The list of agents over a real hub: presence with its evidence, work, leases, filters, pages, files, and names that are only text.
import { expect, test } from "bun:test";
import { expireMessages } from "../../src/hub/message-sweep.ts";
import { startPresence, sweepStale } from "../../src/hub/presence.ts";
import { openDashboard } from "../support/dashboard.ts";
import { attributesOf, hrefOf, markupOf, textsOf } from "../support/html.ts";
import { register, take } from "../support/lived-in.ts";
import { acknowledge, send } from "../support/mail.ts";
import { PAYLOADS } from "./payloads.ts";

const open = () => openDashboard({ settings: { rateLimit: undefined } });
const rows = (html: string) => textsOf(html, "tbody tr");

test("each agent shows its presence with evidence, what it is at, what is open and what it holds", async () => {
  await using it = await open();
  const [ann, bob] = [await register(it, "ann"), await register(it, "bob")];
  const { id } = await send(it, ann, bob);
  await send(it, ann, bob);
  await acknowledge(it, bob, id, "turn");
  await take(it, bob, "branch:main");
  it.clock.now += 20_000;
  await it.call("POST", `/v1/agents/${bob.id}/heartbeat`, { headers: bob.headers });
  it.clock.now += 20_000;
  const { html } = await it.get("/agents?project=shop", { cookie: (await it.signIn("viewer")).cookie });
  expect(rows(html)).toEqual([
    "·· ann test lost contact last seen 40 s ago, bound 30 s 2 replies outstanding 0 in · 2 out – not said",
    "·· bob test working heartbeat 20 s ago Request 1 from ann turn started 40 s ago 2 in · 0 out branch:main not said",
  ]);
  expect(attributesOf(html, "tbody .status", "data-bound")).toEqual([null, "30000"]);
  expect(hrefOf(html, "Message several c")).toBeUndefined();
});

test("an agent that signed off is offline, and one without a request is idle", async () => {
  await using it = await open();
  const [ann] = [await register(it, "ann"), await register(it, "bob")];
  await it.call("DELETE", `/v1/agents/${ann.id}`, { headers: ann.headers });
  it.clock.now += 5_000;
  const { cookie } = await it.signIn();
  const all = await it.get("/agents", { cookie });
  expect(textsOf(all.html, "tbody .status")).toEqual(["offline last seen 5 s ago", "idle heartbeat 5 s ago"]);
  expect(textsOf(all.html, ".tabs a")).toEqual(["All 2", "Online 1", "Working 0", "Needs you 0", "Retired 0"]);
  const online = await it.get(hrefOf(all.html, "Online 1")!, { cookie });
  expect(textsOf(online.html, "tbody .who")).toEqual(["·· bob"]);
});

test("tabs: who is working, who needs a person and why, who was retired, each with its count", async () => {
  await using it = await open();
  const [ann, bob, cat, dan] = [await register(it, "ann"), await register(it, "bob"), await register(it, "cat"), await register(it, "dan")];
  await register(it, "eve"); // away, but nobody relies on it
  const begun = await send(it, ann, bob);
  await acknowledge(it, bob, begun.id, "turn");
  const lost = await send(it, ann, cat);
  await acknowledge(it, cat, lost.id, "turn");
  await send(it, ann, cat);
  await take(it, cat, "branch:main");
  await send(it, ann, dan, { ttlMs: 5_000 });
  it.clock.now += 40_000;
  await expireMessages(it.hub);
  for (const one of [ann, bob, dan]) await it.call("POST", `/v1/agents/${one.id}/heartbeat`, { headers: one.headers });
  const admin = await it.signIn("admin");
  await it.post(`/agents/${(await register(it, "old")).id}/retire`, { csrf: admin.csrf }, admin);
  const all = await it.get("/agents?project=shop", admin);
  expect(textsOf(all.html, ".tabs a")).toEqual(["All 6", "Online 5", "Working 1", "Needs you 2", "Retired 1"]);
  const shown = async (tab: string) => rows((await it.get(hrefOf(all.html, tab)!, admin)).html);
  expect(await shown("Working 1")).toEqual([
    "·· bob test working heartbeat 0 s ago Request 1 from ann turn started 40 s ago 1 in · 0 out – not said",
  ]);
  expect(await shown("Needs you 2")).toEqual([
    "·· cat test lost contact last seen 40 s ago, bound 30 s stopped in the middle of a request 2 requests wait for it holds 1 lease 2 in · 0 out branch:main not said",
    "·· dan test idle heartbeat 0 s ago 1 request died unanswered 0 in · 0 out – not said",
  ]);
  expect((await shown("Retired 1"))[0]).toContain("old test retired 0 s ago");
  expect(rows((await it.get("/agents?show=needs&q=d", admin)).html)).toHaveLength(1);
  expect(rows((await it.get("/agents?show=needs&after=shop/cat", admin)).html)).toHaveLength(1);
  const page = await it.get(`/agents/${cat.id}`, admin);
  expect(textsOf(page.html, ".notice")).toEqual([
    "This agent needs you. It lost contact 40 s ago, and 2 requests wait for it, and it holds 1 lease. Start it again, cancel what waits, or retire it.",
  ]);
  const file = JSON.parse((await it.get("/agents/export/json?show=needs", admin)).html);
  expect(file.map(({ name }: { name: string }) => name)).toEqual(["cat", "dan"]);
});

test("after a start of the hub nobody is called lost before it could have been heard", async () => {
  await using it = await open();
  const [ann, bob] = [await register(it, "ann"), await register(it, "bob")];
  it.clock.now += 600_000;
  await startPresence(it.hub); // ten minutes later the hub is back
  it.clock.now += 4_000;
  await it.call("POST", `/v1/agents/${bob.id}/heartbeat`, { headers: bob.headers });
  const { cookie } = await it.signIn();
  const states = async () => textsOf((await it.get("/agents", { cookie })).html, "tbody .status");
  expect(await states()).toEqual(["unknown nothing heard since this hub came back 4 s ago; last seen 10 min ago", "idle heartbeat 0 s ago"]);
  expect(textsOf((await it.get(`/agents/${ann.id}`, { cookie })).html, "dd").join(" ")).toContain("unknown: this hub came back 4 s ago");
  const sentence = async () => textsOf((await it.get("/?project=shop", { cookie })).html, ".lede")[0];
  expect(await sentence()).toContain("1 of 2 agents answers (1 could not be heard yet: this hub has just come back), no run is moving.");
  it.clock.now += 26_000;
  await sweepStale(it.hub);
  expect((await states())[0]).toBe("offline last seen 10 min ago");
  expect(await sentence()).not.toContain("could not be heard");
});

test("while the hub itself slept, silence says nothing", async () => {
  await using it = await open();
  await register(it, "ann");
  await sweepStale(it.hub);
  it.clock.now += 3_600_000;
  await sweepStale(it.hub);
  const { cookie } = await it.signIn();
  const state = async () => textsOf((await it.get("/agents", { cookie })).html, "tbody .status")[0];
  expect(await state()).toStartWith("unknown nothing heard since this hub came back 0 s ago; last seen 1 h ago");
  it.clock.now += 30_000;
  expect(await state()).toStartWith("lost contact");
});

test("a name is found by its beginning, in any case", async () => {
  await using it = await open();
  for (const name of ["Reviewer", "review-bot", "planner", "re"]) await register(it, name);
  const { cookie } = await it.signIn();
  const found = async (q: string) => textsOf((await it.get(`/agents?q=${encodeURIComponent(q)}`, { cookie })).html, "tbody .who");
  expect(await found("REV")).toEqual(["·· review-bot", "·· Reviewer"]);
  expect(await found("planner")).toEqual(["·· planner"]);
  expect(await found("x")).toEqual([]);
  expect(textsOf((await it.get("/agents?q=x", { cookie })).html, ".empty h3")).toEqual(["No agent's name begins with that."]);
});

test("agents are found by their machine; a rare one is looked for in a bounded number of agents", async () => {
  await using it = await open();
  const on = (name: string, host: string) => it.call("POST", "/v1/agents/register", { body: { name, host, project: "shop" } });
  await on("ann", "build-01");
  await on("bea", "Build-01");
  await on("cat", "studio");
  const { cookie } = await it.signIn();
  const found = async (q: string) => textsOf((await it.get(`/agents?q=${encodeURIComponent(q)}`, { cookie })).html, "tbody .who");
  expect(await found("machine:build-01")).toEqual(["·· ann", "·· bea"]);
  expect(await found("machine:build-01 b")).toEqual(["·· bea"]);
  await it.hub.engine.write("shop", async (tx) => {
    for (let n = 0; n < 1_050; n++)
      await tx.agents.insert({
        ...(await tx.agents.findByName("shop", "ann"))!,
        id: `agt_x${n}`,
        name: `m${n}`,
        nameFolded: `m${String(n).padStart(4, "0")}`,
      });
  });
  const page = await it.get("/agents?q=machine:studio+m", { cookie });
  expect([textsOf(page.html, "tbody tr"), textsOf(page.html, ".empty h3")]).toEqual([[], ["No agent here names that machine."]]);
  expect((await it.get(hrefOf(page.html, "Older")!, { cookie })).status).toBe(200);
});

test("pages of fifty cover every agent of every project once, in order", async () => {
  await using it = await open();
  for (let n = 0; n < 130; n++) await register(it, `agent-${String(n).padStart(3, "0")}`, n % 2 ? "shop" : "a/b");
  const { cookie } = await it.signIn();
  const seen: string[] = [];
  let pages = 0;
  for (let href: string | null | undefined = "/agents"; href; pages++) {
    const { html } = await it.get(href, { cookie });
    seen.push(...attributesOf(html, "tbody tr", "id").map(String));
    href = hrefOf(html, "Older");
  }
  expect([pages, seen.length, new Set(seen).size]).toEqual([3, 130, 130]);
});

test("a place that is not one of ours is the first page", async () => {
  await using it = await open();
  await register(it, "ann");
  const { cookie } = await it.signIn();
  for (const after of ["x", "%", "%25E0/", "/", "'; drop table agents; --"]) {
    const { status } = await it.get(`/agents?after=${encodeURIComponent(after)}`, { cookie });
    expect(status).toBe(200);
  }
  expect(rows((await it.get("/agents?after=x", { cookie })).html)).toHaveLength(1);
});

test("a project's session sees only its own agents, whatever the address says", async () => {
  await using it = await open();
  await register(it, "mine-of-shop", "shop");
  await register(it, "theirs-of-bank", "bank");
  const { cookie } = await it.signIn("operator", "shop");
  for (const path of ["/agents", "/agents?project=bank", "/ui/agents?project=bank", "/agents/export/json?project=bank"]) {
    const { html } = await it.get(path, { cookie });
    expect([path, html.includes("mine-of-shop"), html.includes("theirs-of-bank")]).toEqual([path, true, false]);
  }
});

test("nobody yet: the page says which command makes an agent", async () => {
  await using it = await open();
  const { html } = await it.get("/agents", { cookie: (await it.signIn()).cookie });
  expect(textsOf(html, ".empty")[0]).toContain("kxm peer --as reviewer inbox --follow");
});

test("the list is a file to keep, and no cell of it is a formula or markup", async () => {
  await using it = await open();
  await it.call("POST", "/v1/agents/register", {
    body: { name: '=HYPERLINK("//evil")', purpose: '+1";\n"x', project: "shop", host: "@sum", model: "-2" },
  });
  const { cookie } = await it.signIn("viewer");
  const csv = await it.get("/agents/export/csv", { cookie });
  expect([csv.status, csv.headers.get("content-type"), csv.headers.get("content-disposition"), csv.headers.get("x-content-type-options")]).toEqual([
    200,
    "text/csv; charset=utf-8",
    'attachment; filename="kxm-agents.csv"',
    "nosniff",
  ]);
  expect(csv.headers.get("content-security-policy")).toContain("sandbox");
  expect(csv.html.trim().split("\r\n")[1]).toContain(`"shop","'=HYPERLINK(""//evil"")","'+1"";\n""x","'-2","'@sum","idle"`);
  const json = await it.get("/agents/export/json", { cookie });
  expect(JSON.parse(json.html)).toMatchObject([{ name: '=HYPERLINK("//evil")', presence: "idle" }]);
  expect((await it.get("/agents/export/html", { cookie })).status).toBe(404);
});

test("what agents say of themselves is only text, in the list, its fragment and its files", async () => {
  await using it = await open();
  const { cookie } = await it.signIn();
  const plain = markupOf((await it.get("/agents", { cookie })).html);
  const first = await register(it, "first");
  plain.elements.add("x");
  for (const [index, payload] of PAYLOADS.entries()) {
    const name = payload.slice(0, 60).trim() || "x";
    const { body, status } = await it.call("POST", "/v1/agents/register", {
      body: { name: `${index} ${name}`, purpose: payload.slice(0, 200), project: "shop", model: payload.slice(0, 100), host: payload.slice(0, 60) },
    });
    if (status >= 300) continue; // some are longer than a field may be once trimmed
    const agent = { id: body.agent.id, name, headers: { "x-kxm-agent-id": body.agent.id, "x-kxm-agent-key": body.agentKey } };
    await take(it, agent, payload.slice(0, 60).trim() || "x").catch(() => undefined);
    const { id } = await send(it, agent, first, { content: payload.slice(0, 1000), correlationId: payload.slice(0, 100) });
    await acknowledge(it, first, id, "turn");
  }
  await expireMessages(it.hub);
  for (const path of ["/agents", "/ui/agents", "/agents?show=online", "/agents?show=working", "/agents?show=needs", "/agents?show=retired"]) {
    const { html } = await it.get(path, { cookie });
    const { elements, attributes } = markupOf(html);
    for (const element of ["script", "iframe", "object", "embed", "style", "base", "img", "math", "form"].filter((name) => !plain.elements.has(name)))
      expect([path, element, elements.has(element)]).toEqual([path, element, false]);
    for (const attribute of attributes) expect(attribute).not.toMatch(/^on|^style$|^srcdoc$|^data-hx|^hx-on/);
    expect(html).not.toMatch(/(href|action|src)="(javascript|data|vbscript):/i);
  }
  const json = await it.get("/agents/export/json", { cookie });
  expect(JSON.parse(json.html).length).toBeGreaterThan(30);
});
