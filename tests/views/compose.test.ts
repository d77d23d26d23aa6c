// Writing to agents as an operator, over a real hub: one or several recipients, each with its own outcome, nothing twice, nothing lost.
import { expect, test } from "bun:test";
import { type DashboardWorld, openDashboard } from "../support/dashboard.ts";
import { attributesOf, markupOf, textsOf } from "../support/html.ts";
import { register } from "../support/lived-in.ts";
import { PAYLOADS } from "./payloads.ts";

const open = () => openDashboard({ settings: { rateLimit: undefined } });
const inbox = async (it: DashboardWorld, agent: { id: string; headers: Record<string, string> }) =>
  (await it.call("GET", `/v1/agents/${agent.id}/inbox`, { headers: agent.headers })).body.messages;

test("one recipient: the message is sent by the operator of this session, and its page opens", async () => {
  await using it = await open();
  const ann = await register(it, "ann");
  const { cookie, csrf, id } = await it.signIn();
  const { html } = await it.get("/messages/new?project=shop&to=ann", { cookie });
  expect([attributesOf(html, "#compose-to", "value"), textsOf(html, "aside .check")]).toEqual([["ann"], ["ann idle heartbeat 0 s ago"]]);
  const sent = await it.post(
    "/messages?project=shop",
    { csrf, to: "ANN", content: " which one is live? ", delivery: "steer", ttl: "600000" },
    { cookie },
  );
  expect(sent.headers.get("location")).toMatch(/^\/messages\/msg_[0-9a-f]{32}\?project=shop$/);
  expect(await inbox(it, ann)).toMatchObject([
    { from: `operator:${id}`, fromName: "operator", content: "which one is live?", delivery: "steer", hops: 0 },
  ]);
  const [entry] = await it.hub.engine.read.audit.page({ action: "queued" }, undefined, 10);
  expect([entry!.actor, entry!.role, entry!.origin]).toEqual([`operator:${id}`, "operator", "dashboard"]);
});

test("several recipients, typed and picked: each has its own outcome, and those that failed can be tried again", async () => {
  await using it = await open();
  const [ann, bea] = [await register(it, "ann"), await register(it, "bea")];
  const { cookie, csrf } = await it.signIn();
  const answer = await it.post(
    "/messages?project=shop",
    { csrf, to: "ann, nobody", agent: bea.id, content: "hello", thread: "t-9", offline: "on" },
    { cookie },
  );
  expect(textsOf(answer.html, "h1")).toEqual(["Sent to 2 of 3"]);
  expect(textsOf(answer.html, "tbody .status")).toEqual([
    "stored on its way",
    "refused No agent of this name or id is known in the project shop.",
    "stored on its way",
  ]);
  expect(attributesOf(answer.html, ".head__actions a", "href")).toEqual(["/messages/new?to=nobody&project=shop&correlation=t-9"]);
  for (const agent of [ann, bea]) expect(await inbox(it, agent)).toMatchObject([{ content: "hello", correlationId: "t-9" }]);
});

test("the same form sent twice sends nothing twice", async () => {
  await using it = await open();
  const ann = await register(it, "ann");
  const { cookie, csrf } = await it.signIn();
  const [once] = attributesOf((await it.get("/messages/new?project=shop", { cookie })).html, "input[name=once]", "value");
  const form = { csrf, once: once!, to: "ann", content: "hello" };
  const places = [await it.post("/messages?project=shop", form, { cookie }), await it.post("/messages?project=shop", form, { cookie })];
  expect(places[0]!.headers.get("location")).toBe(places[1]!.headers.get("location"));
  expect(await inbox(it, ann)).toHaveLength(1);
});

test("what is missing is said under its field, and what was typed stays", async () => {
  await using it = await open();
  await register(it, "ann");
  await register(it, "bea", "bank");
  const { cookie, csrf } = await it.signIn();
  const nothing = await it.post("/messages", { csrf }, { cookie });
  expect([nothing.status, textsOf(nothing.html, ".field__error")]).toEqual([
    422,
    ["Choose the project its recipients are in.", "Name at least one agent, or pick one below.", "Write what you ask for."],
  ]);
  const unknown = await it.post("/messages", { csrf, project: "shop", to: "bea", content: "<b>hi</b>\n there" }, { cookie });
  expect([unknown.status, textsOf(unknown.html, ".field__error")]).toEqual([422, [expect.stringContaining("bea: No agent of this name")]]);
  expect(textsOf(unknown.html, "textarea")).toEqual(["<b>hi</b> there"]);
  const many = await it.post(
    "/messages",
    { csrf, project: "shop", to: Array.from({ length: 21 }, (_, n) => `a${n}`).join(","), content: "x" },
    { cookie },
  );
  expect(textsOf(many.html, ".field__error")).toEqual(["At most 20 agents at once; these are 21."]);
});

test("an offline agent gets it later only if the form says so", async () => {
  await using it = await open();
  const ann = await register(it, "ann");
  await it.call("DELETE", `/v1/agents/${ann.id}`, { headers: ann.headers });
  const { cookie, csrf } = await it.signIn();
  const strict = await it.post("/messages?project=shop", { csrf, to: "ann", content: "x" }, { cookie });
  expect(textsOf(strict.html, ".field__error")).toEqual([expect.stringContaining("offline")]);
  const queued = await it.post("/messages?project=shop", { csrf, to: "ann", content: "x", offline: "on" }, { cookie });
  expect(queued.status).toBe(303);
});

test("viewers may not write, and a project's session writes into its own project alone", async () => {
  await using it = await open();
  await register(it, "ann");
  const bea = await register(it, "bea", "bank");
  const [viewer, shop] = [await it.signIn("viewer"), await it.signIn("operator", "shop")];
  expect((await it.get("/messages/new", { cookie: viewer.cookie })).status).toBe(403);
  expect((await it.post("/messages", { csrf: viewer.csrf, project: "shop", to: "ann", content: "x" }, { cookie: viewer.cookie })).status).toBe(403);
  const foreign = await it.post("/messages?project=bank", { csrf: shop.csrf, project: "bank", to: "bea", content: "x" }, { cookie: shop.cookie });
  expect(foreign.status).toBe(422);
  expect(await inbox(it, bea)).toEqual([]);
  const page = await it.get("/messages/new?project=bank", { cookie: shop.cookie });
  expect(textsOf(page.html, "aside .check")).toEqual([expect.stringContaining("ann")]);
});

test("what is typed comes back as text only", async () => {
  await using it = await open();
  await register(it, "ann");
  const { cookie, csrf } = await it.signIn();
  for (const payload of PAYLOADS) {
    const { html } = await it.post(
      "/messages?project=shop",
      { csrf, to: payload, content: payload, thread: payload.slice(0, 128), delivery: payload },
      { cookie },
    );
    expect(textsOf(html, "main script, main iframe, main img, main svg[onload], main object")).toEqual([]);
    for (const attribute of markupOf(html).attributes) expect(attribute).not.toMatch(/^on|^style$|^srcdoc$|^data-hx|^hx-on/);
  }
});
