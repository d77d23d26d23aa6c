// The page of one agent over a real hub: everything of it on one timeline, what it holds and owes, and what an operator may do.
import { expect, test } from "bun:test";
import { type DashboardWorld, openDashboard } from "../support/dashboard.ts";
import { hrefOf, markupOf, textsOf } from "../support/html.ts";
import { register, take } from "../support/lived-in.ts";
import { acknowledge, reply, send } from "../support/mail.ts";
import { PAYLOADS } from "./payloads.ts";

const open = () => openDashboard({ settings: { rateLimit: undefined } });
const lines = async (it: DashboardWorld, path: string, cookie: string) =>
  textsOf((await it.get(path, { cookie })).html, "#agent .cols > div .feed li > span");

test("everything of an agent is on one timeline, newest first", async () => {
  await using it = await open();
  const [ann, bea] = [await register(it, "ann"), await register(it, "bea")];
  it.clock.now += 1_000;
  const { id } = await send(it, ann, bea);
  it.clock.now += 1_000;
  await take(it, bea, "branch:main");
  it.clock.now += 1_000;
  for (let n = 0; n < 4; n++) await it.call("POST", "/v1/leases/branch:main/renew", { body: { fencingToken: 1 }, headers: bea.headers });
  it.clock.now += 1_000;
  await send(it, bea, ann);
  it.clock.now += 1_000;
  await reply(it, bea, id);
  it.clock.now += 1_000;
  await it.call("DELETE", `/v1/agents/${bea.id}`, { headers: bea.headers });
  const { cookie } = await it.signIn("viewer");
  expect(await lines(it, `/agents/${bea.id}`, cookie)).toEqual([
    "bea signed off",
    "Asked ann, request 1: stored",
    "bea renewed branch:main",
    "bea took branch:main, token 1",
    "ann asked, request 1: replied after 4.0 s",
    "bea registered",
  ]);
});

test("the timeline comes in pages, each entry once", async () => {
  await using it = await open();
  const [ann, bea] = [await register(it, "ann"), await register(it, "bea")];
  for (let n = 0; n < 40; n++) {
    it.clock.now += 1_000;
    await send(it, ann, bea, { content: "x" });
    await send(it, bea, ann, { content: "x" });
    await take(it, bea, `lease-${n}`);
  }
  const { cookie } = await it.signIn();
  const seen: string[] = [];
  let pages = 0;
  for (let href: string | null | undefined = `/agents/${bea.id}`; href; pages++) {
    const page = await it.get(href, { cookie });
    seen.push(...textsOf(page.html, "#agent .cols > div .feed li > span"));
    href = hrefOf(page.html, "Older");
  }
  expect([pages, seen.length, new Set(seen).size]).toEqual([5, 121, 121]);
});

test("figures, leases and open messages say how it keeps up", async () => {
  await using it = await open();
  const [ann, bea] = [await register(it, "ann"), await register(it, "bea")];
  for (const wait of [2_000, 4_000, 9_000]) {
    const { id } = await send(it, ann, bea);
    it.clock.now += 1_000;
    await acknowledge(it, bea, id, "turn");
    it.clock.now += wait - 1_000;
    await reply(it, bea, id);
  }
  await send(it, ann, bea);
  await take(it, bea, "branch:main", 60_000);
  const { html } = await it.get(`/agents/${bea.id}`, { cookie: (await it.signIn()).cookie });
  expect(textsOf(html, ".stat")).toEqual([
    "Replies 3 of 4 1 open, 0 expired",
    "Until a turn starts 1.0 s median",
    "Until the reply 4.0 s median",
    "Open now 1 in 0 out",
  ]);
  expect(textsOf(html, "aside .section__body .row")).toEqual(["branch:main token 1 · 1:00 left"]);
  expect(textsOf(html, "aside .feed li")).toEqual(["from ann, 4 stored 0 s ago"]);
});

test("a ping is a short message from the operator", async () => {
  await using it = await open();
  const ann = await register(it, "ann");
  const { cookie, csrf } = await it.signIn();
  expect((await it.post(`/agents/${ann.id}/ping`, { csrf }, { cookie })).headers.get("location")).toBe(`/agents/${ann.id}`);
  const { body } = await it.call("GET", `/v1/agents/${ann.id}/inbox`, { headers: ann.headers });
  expect(body.messages).toMatchObject([{ fromName: "operator", content: expect.stringContaining("Ping from the operator") }]);
  expect(await lines(it, `/agents/${ann.id}`, cookie)).toContain("operator asked, request 1: stored");
});

test("ending a key locks the agent out until it registers again", async () => {
  await using it = await open();
  const ann = await register(it, "ann");
  const { cookie, csrf, id } = await it.signIn();
  const page = await it.get(`/agents/${ann.id}`, { cookie });
  const asked = await it.get(hrefOf(page.html, "End key…")!, { cookie });
  expect(textsOf(asked.html, "main form button, h1")[0]).toMatch(/^End the key of agt_\w{4}…\w{4}\?$/);
  await it.post(`/agents/${ann.id}/end-key`, { csrf }, { cookie });
  expect((await it.call("GET", "/v1/agents", { headers: ann.headers })).status).toBe(401);
  const again = await it.call("POST", "/v1/agents/register", { body: { name: "ann", project: "shop" } });
  expect([again.status, again.body.agent.id, again.body.resumed]).toEqual([200, ann.id, true]);
  const [entry] = await it.hub.engine.read.audit.page({ action: "key_ended" }, undefined, 5);
  expect([entry!.actor, entry!.subjectId, entry!.origin]).toEqual([id, ann.id, "dashboard"]);
});

test("retiring frees leases, cancels messages, and leaves nothing to do", async () => {
  await using it = await open();
  const [ann, bea] = [await register(it, "ann"), await register(it, "bea")];
  await take(it, ann, "branch:main");
  const { id } = await send(it, bea, ann);
  const { cookie, csrf } = await it.signIn();
  const page = await it.get(`/agents/${ann.id}`, { cookie });
  expect(textsOf(page.html, "#retire .dialog__body p")[0]).toStartWith("It holds 1 lease and has 1 open message.");
  const done = await it.post(`/agents/${ann.id}/retire`, { csrf }, { cookie, headers: { "hx-request": "true" } });
  expect(textsOf(done.html, ".flash__hint")).toEqual(["Leases freed: 1. Messages cancelled: 1."]);
  expect((await it.hub.engine.read.messages.find(id))!.status).toBe("cancelled");
  const after = await it.get(`/agents/${ann.id}`, { cookie });
  expect([textsOf(after.html, ".head .status"), textsOf(after.html, ".head__actions button")]).toEqual([["retired 0 s ago"], []]);
});

test("viewers see no acts; sessions of other projects see no agent", async () => {
  await using it = await open();
  const ann = await register(it, "ann");
  const viewer = await it.signIn("viewer");
  expect(textsOf((await it.get(`/agents/${ann.id}`, { cookie: viewer.cookie })).html, ".head__actions, main form")).toEqual([]);
  const stranger = await it.signIn("admin", "bank");
  for (const path of [`/agents/${ann.id}`, `/ui/agents/${ann.id}`, `/agents/${ann.id}/end?act=retire`, "/agents/agt_none"])
    expect([path, (await it.get(path, { cookie: stranger.cookie })).status]).toEqual([path, 404]);
  for (const act of ["ping", "end-key", "retire"]) {
    expect((await it.post(`/agents/${ann.id}/${act}`, { csrf: viewer.csrf }, { cookie: viewer.cookie })).status).toBe(403);
    expect((await it.post(`/agents/${ann.id}/${act}`, { csrf: stranger.csrf }, { cookie: stranger.cookie })).status).toBe(404);
  }
  expect((await it.hub.engine.read.agents.find(ann.id))!.retiredAt).toBeNull();
});

test("names, purposes, machines and leases are only text on the page of an agent", async () => {
  await using it = await open();
  const { cookie } = await it.signIn();
  const bea = await register(it, "bea");
  await take(it, bea, "branch:main");
  await reply(it, bea, (await send(it, await register(it, "ann"), bea)).id);
  const plain = markupOf((await it.get(`/agents/${bea.id}`, { cookie })).html);
  for (const element of ["code", "form", "section"]) plain.elements.add(element);
  for (const [index, payload] of PAYLOADS.entries()) {
    const told = {
      name: `${index} ${payload}`.slice(0, 60).trim(),
      purpose: payload.slice(0, 200),
      model: payload.slice(0, 100),
      host: payload.slice(0, 60),
      project: "shop",
    };
    const { body, status } = await it.call("POST", "/v1/agents/register", { body: told });
    if (status >= 300) continue;
    const agent = { id: body.agent.id, name: told.name, headers: { "x-kxm-agent-id": body.agent.id, "x-kxm-agent-key": body.agentKey } };
    await take(it, agent, payload.slice(0, 60).trim() || "x").catch(() => undefined);
    await send(it, agent, bea, { content: "x", correlationId: payload.slice(0, 100).trim() || "x" });
    for (const path of [`/agents/${agent.id}`, `/ui/agents/${agent.id}`]) {
      const { html, status: shown } = await it.get(path, { cookie });
      expect([payload, shown]).toEqual([payload, 200]);
      const { elements, attributes } = markupOf(html);
      expect([payload, [...elements].filter((name) => !plain.elements.has(name))]).toEqual([payload, []]);
      for (const attribute of attributes) expect(attribute).not.toMatch(/^on|^style$|^srcdoc$|^data-hx|^hx-on/);
    }
  }
});
