// The list of messages over a real hub: boxes, filters, pages, acts on several, files; and never a text.
import { expect, test } from "bun:test";
import { expireMessages } from "../../src/hub/message-sweep.ts";
import { type DashboardWorld, openDashboard } from "../support/dashboard.ts";
import { attributesOf, hrefOf, markupOf, textsOf } from "../support/html.ts";
import { register } from "../support/lived-in.ts";
import { acknowledge, reply, send } from "../support/mail.ts";
import { PAYLOADS } from "./payloads.ts";

const open = () => openDashboard({ settings: { rateLimit: undefined } });
const parties = (html: string) => textsOf(html, "tbody .ref");
const list = async (it: DashboardWorld, query: string, cookie: string) => parties((await it.get(`/messages?${query}`, { cookie })).html);

test("the open box shows who asked whom, how far it got, why it waits and when it expires; no text", async () => {
  await using it = await open();
  const [ann, bea] = [await register(it, "ann"), await register(it, "bea")];
  const { id } = await send(it, ann, bea, { content: "the secret plan", correlationId: "plan-7" });
  await acknowledge(it, bea, id);
  await send(it, bea, ann, { ttlMs: 60_000 });
  await it.call("DELETE", `/v1/agents/${ann.id}`, { headers: ann.headers });
  it.clock.now += 5_000;
  const { html } = await it.get("/messages?project=shop", { cookie: (await it.signIn("viewer")).cookie });
  expect(textsOf(html, "tbody tr")).toEqual([
    expect.stringMatching(/^bea → ann msg_\w{4}…\w{4} stored 5 s ago, recipient offline, last seen 5 s ago followUp 1 11 5 s ago 0:55$/),
    "ann → bea thread plan-7 delivered 5 s ago followUp 1 15 5 s ago 23 h 59 min",
  ]);
  expect(textsOf(html, ".tabs a")).toEqual(["Open 2", "Dead letters 0", "All"]);
  expect(html.includes("secret plan")).toBeFalse();
  expect(attributesOf(html, "[data-pick]", "value")).toEqual([]);
});

test("dead letters are what expired unanswered, until they are sent again or put aside", async () => {
  await using it = await open();
  const [ann, bea] = [await register(it, "ann"), await register(it, "bea")];
  for (let n = 0; n < 3; n++) await send(it, ann, bea, { ttlMs: 10_000 });
  it.clock.now += 10_000;
  await expireMessages(it.hub);
  const { cookie, csrf } = await it.signIn();
  const page = await it.get("/messages?box=dead", { cookie });
  const ids = attributesOf(page.html, "[data-pick]", "value").map(String);
  expect(ids).toHaveLength(3);
  const bulk = (act: string, id: string) => it.post("/messages/bulk", { csrf, act, pick: id }, { cookie });
  expect((await bulk("resend", ids[0]!)).headers.get("location")).toBe("/messages?box=dead");
  await bulk("dismiss", ids[1]!);
  const after = await it.get("/messages?box=dead", { cookie });
  expect(textsOf(after.html, ".tabs a")).toEqual(["Open 1", "Dead letters 1", "All"]);
  expect(textsOf(after.html, ".flash").map((text) => text.split(".")[0])).toEqual(["Sent again: 1", "Put aside: 1"]);
  expect(await list(it, "box=all&q=status:expired", cookie)).toHaveLength(3);
});

test("acting on several gives each its own outcome", async () => {
  await using it = await open();
  const [ann, bea] = [await register(it, "ann"), await register(it, "bea")];
  const [first, second] = [await send(it, ann, bea), await send(it, ann, bea)];
  await reply(it, bea, second.id);
  const { cookie, csrf } = await it.signIn();
  const body = new URLSearchParams([
    ["csrf", csrf],
    ["act", "cancel"],
    ["sure", "1"],
    ...[first.id, second.id, "msg_none"].map((id) => ["pick", id]),
  ]);
  const request = new Request("http://127.0.0.1:7331/messages/bulk", {
    method: "POST",
    headers: { cookie, "content-type": "application/x-www-form-urlencoded" },
    body: body.toString(),
  });
  expect((await it.app.handle(request)).status).toBe(303);
  const flash = textsOf((await it.get("/messages", { cookie })).html, ".flash")[0]!;
  expect(flash).toStartWith("Cancelled: 1, refused: 2.");
  expect(flash).toContain("The message is replied.");
  expect((await it.hub.engine.read.messages.find(first.id))!.status).toBe("cancelled");
});

test("everything that fits a filter is acted on after its count was confirmed, and only that", async () => {
  await using it = await open();
  const [ann, bea, cat] = [await register(it, "ann"), await register(it, "bea"), await register(it, "cat")];
  for (let n = 0; n < 60; n++) await send(it, ann, bea);
  const kept = await send(it, ann, cat);
  const { cookie, csrf } = await it.signIn();
  const list = (await it.get("/messages?q=to%3Abea&q=from%3Aann", { cookie })).html;
  expect(textsOf(list, "tbody tr")).toHaveLength(50);
  expect(hrefOf(list, "CSV")).toBe("/messages/export/csv?q=to%3Abea&q=from%3Aann"); // all of the filter, not its last word
  const asked = (await it.get(hrefOf(list, "Cancel all that fit…")!, { cookie })).html;
  expect(textsOf(asked, "h1")).toEqual(["Cancel 60 messages?"]);
  expect(textsOf(asked, ".head__sub")[0]).toContain("those of the box open that fit to:bea from:ann");
  expect(textsOf(asked, "main li").at(-1)).toBe("and 40 more that were sent before these");
  const late = await send(it, ann, bea); // came after the question
  const picks = attributesOf(asked, "main input[name=pick]", "value");
  expect(new Set(picks).size).toBe(60);
  const body = new URLSearchParams([["csrf", csrf], ["act", "cancel"], ["sure", "1"], ...picks.map((id) => ["pick", id!])]).toString();
  const headers = { cookie, "content-type": "application/x-www-form-urlencoded" };
  expect((await it.app.handle(new Request("http://127.0.0.1:7331/messages/bulk", { method: "POST", headers, body }))).status).toBe(303);
  expect(textsOf((await it.get("/messages", { cookie })).html, ".flash")[0]).toStartWith("Cancelled: 60.");
  for (const { id } of [kept, late]) expect((await it.hub.engine.read.messages.find(id))!.status).toBe("queued");
  const viewer = await it.signIn("viewer");
  expect((await it.get("/messages/matching?act=cancel", { cookie: viewer.cookie })).status).toBe(403);
  expect((await it.get("/messages?q=to%3Abea", { cookie: viewer.cookie })).html).not.toContain("all that fit");
  const other = await it.signIn("operator", "bank");
  expect(textsOf((await it.get("/messages/matching?act=cancel", { cookie: other.cookie })).html, "h1")).toEqual(["Cancel 0 messages?"]);
  expect((await it.get("/messages/matching?act=resend", { cookie })).status).toBe(400); // what is open is not sent again
});

test("cancelling several asks first, by our ids", async () => {
  await using it = await open();
  const [ann, bea] = [await register(it, "ann"), await register(it, "bea")];
  const { id } = await send(it, ann, bea);
  const { cookie, csrf } = await it.signIn();
  const asked = await it.post("/messages/bulk", { csrf, act: "cancel", pick: id }, { cookie });
  expect([asked.status, textsOf(asked.html, "h1"), textsOf(asked.html, "main li .id")]).toEqual([200, ["Cancel this message?"], [id]]);
  expect((await it.hub.engine.read.messages.find(id))!.status).toBe("queued");
});

test("qualifiers narrow by sender, recipient, state, thread and mode; words by name and id", async () => {
  await using it = await open();
  const [ann, bea, cat] = [await register(it, "ann"), await register(it, "bea"), await register(it, "Cat Woman")];
  const first = await send(it, ann, bea, { correlationId: "t-1" });
  await send(it, bea, ann, { correlationId: "t-1", delivery: "steer" });
  await send(it, cat, ann);
  await reply(it, bea, first.id);
  const { cookie } = await it.signIn();
  const found = (q: string) => list(it, `box=all&q=${encodeURIComponent(q)}`, cookie);
  expect(await found("from:ann")).toEqual(["ann → bea"]);
  expect(await found("to:ANN")).toEqual(["Cat Woman → ann", "bea → ann"]);
  expect(await found(`from:${cat.id}`)).toEqual(["Cat Woman → ann"]);
  expect(await found("thread:t-1")).toEqual(["bea → ann", "ann → bea"]);
  expect(await found("thread:t-1 status:replied")).toEqual(["ann → bea"]);
  expect(await found("mode:steer")).toEqual(["bea → ann"]);
  expect(await found("woman")).toEqual(["Cat Woman → ann"]);
  expect(await found(first.id.slice(0, 20))).toContain("ann → bea");
  expect(await found("from:nobody")).toEqual([]);
  expect(await list(it, "q=to:ann", cookie)).toEqual(["Cat Woman → ann", "bea → ann"]);
});

test("a filter stays in the address as chips that can be taken away", async () => {
  await using it = await open();
  await register(it, "ann");
  const { cookie } = await it.signIn();
  const { html } = await it.get("/messages?box=all&q=from%3Aann+status%3Aopen+word", { cookie });
  expect(textsOf(html, ".qchip")).toEqual(["from: ann", "status: open"]);
  expect(attributesOf(html, ".qchip a", "href")).toEqual(["/messages?box=all&q=status%3Aopen+word", "/messages?box=all&q=from%3Aann+word"]);
  expect(attributesOf(html, "[data-find]", "value")).toEqual(["word"]);
});

test("pages of fifty cover every message once, over all projects and within one recipient", async () => {
  await using it = await open();
  const agents = [await register(it, "ann"), await register(it, "bea"), await register(it, "cat", "bank"), await register(it, "dan", "bank")];
  for (let n = 0; n < 130; n++) await (n % 2 ? send(it, agents[0]!, agents[1]!) : send(it, agents[2]!, agents[3]!));
  const { cookie } = await it.signIn();
  const walk = async (start: string) => {
    const seen: string[] = [];
    for (let href: string | null | undefined = start; href; ) {
      const { html } = await it.get(href, { cookie });
      seen.push(...attributesOf(html, "tbody tr", "id").map(String));
      href = hrefOf(html, "Older");
    }
    return [seen.length, new Set(seen).size, seen.join() === [...seen].sort().reverse().join()];
  };
  expect(await walk("/messages")).toEqual([130, 130, true]);
  expect(await walk("/messages?box=all")).toEqual([130, 130, true]);
  expect(await walk("/messages?box=all&q=to:bea")).toEqual([65, 65, true]);
  expect(await walk("/messages?box=all&q=from:cat")).toEqual([65, 65, true]);
});

test("a rare filter over many messages stops looking, says so, and goes on from there", async () => {
  await using it = await open();
  const [ann, bea, cat] = [await register(it, "ann"), await register(it, "bea"), await register(it, "cat")];
  const rare = await send(it, cat, bea, { delivery: "steer" });
  const { content, delivery } = { content: "x", delivery: "followUp" };
  await Promise.all(Array.from({ length: 1_100 }, () => send(it, ann, bea, { content, delivery })));
  const { cookie } = await it.signIn();
  const first = await it.get("/messages?q=mode:steer", { cookie });
  expect([textsOf(first.html, ".empty h3"), textsOf(first.html, ".pager")[0]]).toEqual([
    ["None of the messages looked at fits."],
    expect.stringContaining("0 shown, newest first, of 1,000 looked at"),
  ]);
  const second = await it.get(hrefOf(first.html, "Older")!, { cookie });
  expect(attributesOf(second.html, "tbody tr", "id")).toEqual([`message-${rare.id}`]);
});

test("completions offer keys, then states, modes and the agents of the session's projects", async () => {
  await using it = await open();
  await register(it, "ann");
  await register(it, "data team");
  await register(it, "annex", "bank");
  const { cookie } = await it.signIn("viewer", "shop");
  const offered = async (q: string) =>
    attributesOf((await it.get(`/ui/messages/completions?q=${encodeURIComponent(q)}`, { cookie })).html, "[data-insert]", "data-insert");
  expect(await offered("")).toEqual(["from:", "to:", "thread:", "status:", "mode:"]);
  expect(await offered("word st")).toEqual(["status:"]);
  expect(await offered("status:ex")).toEqual(["status:expired"]);
  expect(await offered("from:AN")).toEqual(["from:ann"]);
  expect((await offered("to:data"))[0]).toMatch(/^to:agt_[0-9a-f]{32}$/);
});

test("a project's session sees only its messages, on every address of the list", async () => {
  await using it = await open();
  const [mine, mine2] = [await register(it, "ann-shop"), await register(it, "bea-shop")];
  const [theirs, theirs2] = [await register(it, "cat-bank", "bank"), await register(it, "dan-bank", "bank")];
  await send(it, mine, mine2);
  await send(it, theirs, theirs2, { correlationId: "t" });
  const { cookie } = await it.signIn("operator", "shop");
  for (const path of [
    "/messages",
    "/messages?project=bank",
    "/messages?q=from:cat-bank&box=all",
    `/messages?box=all&q=to:${theirs2.id}`,
    "/messages?box=all&q=thread:t",
    "/messages/export/csv",
  ]) {
    const { html, status } = await it.get(path, { cookie });
    expect([path, status, html.includes("→ <bdi>dan"), html.includes("dan-bank,")]).toEqual([path, 200, false, false]);
    expect(attributesOf(html, "tbody tr", "id").length).toBeLessThanOrEqual(1);
  }
});

test("the list is a file of metadata, and no name in it is a formula", async () => {
  await using it = await open();
  const [ann, bea] = [await register(it, "=cmd()"), await register(it, "bea")];
  await send(it, ann, bea, { content: "the secret plan", correlationId: "+1" });
  const { cookie } = await it.signIn("viewer");
  const csv = await it.get("/messages/export/csv?box=all", { cookie });
  expect(csv.html).toContain(`"'=cmd()"`);
  expect(csv.html).toContain(`"'+1"`);
  expect(csv.html).not.toContain("secret plan");
  const [record] = JSON.parse((await it.get("/messages/export/json", { cookie })).html);
  expect(record).toMatchObject({ fromName: "=cmd()", toName: "bea", status: "queued", characters: 15, pushedAt: null });
});

test("threads, names and modes of agents are only text", async () => {
  await using it = await open();
  const { cookie } = await it.signIn();
  const bea = await register(it, "bea");
  const ann = await register(it, "ann");
  await send(it, ann, bea);
  const plain = markupOf((await it.get("/messages?box=all", { cookie })).html);
  for (const [index, payload] of PAYLOADS.entries()) {
    const agent = await register(it, `${index} ${payload}`.slice(0, 60).trim());
    const sent = await send(it, agent, bea, {
      content: payload.slice(0, 2000),
      correlationId: payload.slice(0, 100).trim() || "x",
      idempotencyKey: `${index} ${payload}`.slice(0, 100),
    });
    if (index % 2) await reply(it, bea, sent.id, payload.slice(0, 2000));
  }
  for (const path of ["/messages?box=all", "/ui/messages?box=all", "/messages", "/ui/messages/completions?q=from:"]) {
    const { html } = await it.get(path, { cookie });
    const { elements, attributes } = markupOf(html);
    expect([path, [...elements].filter((name) => !plain.elements.has(name) && name !== "code" && name !== "div")]).toEqual([path, []]);
    for (const attribute of attributes) expect(attribute).not.toMatch(/^on|^style$|^srcdoc$|^data-hx|^hx-on/);
  }
});
