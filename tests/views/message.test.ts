// The page of one message over a real hub: delivery with witnesses, why it waits, texts on demand and noted, and what an operator may do.
import { expect, test } from "bun:test";
import { expireMessages } from "../../src/hub/message-sweep.ts";
import { type DashboardWorld, openDashboard } from "../support/dashboard.ts";
import { attributesOf, hrefOf, markupOf, textsOf } from "../support/html.ts";
import { register } from "../support/lived-in.ts";
import { acknowledge, reply, send } from "../support/mail.ts";
import { PAYLOADS } from "./payloads.ts";

const open = () => openDashboard({ settings: { rateLimit: undefined } });
const two = async (it: DashboardWorld) => [await register(it, "ann"), await register(it, "bea")] as const;
const deliveryOf = (html: string) => textsOf(html, ".delivery li");

test("the chain names each mark with its witness, its time and the way to the next; slow ways say so", async () => {
  await using it = await open();
  const [ann, bea] = await two(it);
  const { id } = await send(it, ann, bea);
  it.clock.now += 1_400;
  await acknowledge(it, bea, id);
  it.clock.now += 42_000;
  await acknowledge(it, bea, id, "turn");
  it.clock.now += 7_000;
  const { cookie } = await it.signIn("viewer");
  const { html } = await it.get(`/messages/${id}`, { cookie });
  expect(deliveryOf(html)).toEqual([
    "Stored 03:04:05.678 hub, fsynced 1.4 s",
    "Pushed not needed",
    "Delivered 03:04:07.078 acknowledged by bea 42 s, slow",
    "Turn started 03:04:49.078 said by bea so far 7 s",
    "Replied not yet",
  ]);
  await reply(it, bea, id);
  expect(deliveryOf((await it.get(`/messages/${id}`, { cookie })).html).at(-1)).toBe("Replied 03:04:56.078 by bea");
});

test("what expired or was taken back ends the chain where it got", async () => {
  await using it = await open();
  const [ann, bea] = await two(it);
  const [dead, gone] = [await send(it, ann, bea, { ttlMs: 5_000 }), await send(it, ann, bea)];
  await it.call("DELETE", `/v1/messages/${gone.id}`, { headers: ann.headers });
  it.clock.now += 5_000;
  await expireMessages(it.hub);
  const { cookie } = await it.signIn();
  const [first, second] = [await it.get(`/messages/${dead.id}`, { cookie }), await it.get(`/messages/${gone.id}`, { cookie })];
  expect(deliveryOf(first.html)).toEqual(["Stored 03:04:05.678 hub, fsynced 5.0 s", "Expired 03:04:10.678 no reply in time"]);
  expect(deliveryOf(second.html)[1]).toBe("Cancelled 03:04:05.678 taken back");
  expect(textsOf(first.html, ".head .status")).toEqual(["dead letter 0 s ago"]);
});

test("an open message says in order what it waits for", async () => {
  await using it = await open();
  const [ann, bea] = await two(it);
  const [first] = [await send(it, ann, bea), await send(it, ann, bea)];
  const third = await send(it, ann, bea);
  await acknowledge(it, bea, first.id, "turn");
  await it.call("DELETE", `/v1/agents/${bea.id}`, { headers: bea.headers });
  it.clock.now += 3_000;
  const { html } = await it.get(`/messages/${third.id}`, { cookie: (await it.signIn()).cookie });
  expect(textsOf(html, ".blockers li")).toEqual([
    "Its recipient is offline 3 s ago",
    "Request 1 from ann has the turn 3 s ago",
    "Request 2 from ann comes before it 3 s ago",
  ]);
});

test("a text is shown to the session that opened it and to no other, and that is in the audit", async () => {
  await using it = await open();
  const [ann, bea] = await two(it);
  const { id } = await send(it, ann, bea, { content: "the secret plan" });
  await reply(it, bea, id, "a secret answer");
  const [me, other, viewer] = [await it.signIn(), await it.signIn(), await it.signIn("viewer")];
  const shown = async (cookie: string) => (await it.get(`/messages/${id}`, { cookie })).html;
  expect((await shown(me.cookie)).includes("secret")).toBeFalse();
  expect((await it.post(`/messages/${id}/open`, { csrf: viewer.csrf }, { cookie: viewer.cookie })).status).toBe(403);
  const opened = await it.post(`/messages/${id}/open`, { csrf: me.csrf }, { cookie: me.cookie });
  expect([opened.status, opened.headers.get("location")]).toEqual([303, `/messages/${id}`]);
  expect(textsOf(await shown(me.cookie), ".untrusted__text")).toEqual(["the secret plan", "a secret answer"]);
  for (const { cookie } of [other, viewer]) expect((await shown(cookie)).includes("secret")).toBeFalse();
  const audit = await it.hub.engine.read.audit.page({ action: "opened" }, undefined, 10);
  expect(audit.map(({ actor, subjectId, origin }) => [actor, subjectId, origin])).toEqual([[me.id, id, "dashboard"]]);
  expect(textsOf(await shown(other.cookie), ".kv dd").at(-1)).toMatch(/^by ses_\w+…\w+ 0 s ago \(audited\)$/);
});

test("all texts of a thread can be opened at once, each noted", async () => {
  await using it = await open();
  const [ann, bea] = await two(it);
  const thread = { correlationId: "plan" };
  const first = await send(it, ann, bea, { content: "one", ...thread });
  await send(it, bea, ann, { content: "two", replyTo: first.id, ...thread });
  await send(it, ann, bea, { content: "elsewhere" });
  const { cookie, csrf } = await it.signIn();
  await it.post(`/messages/${first.id}/open`, { csrf, thread: "1" }, { cookie });
  const { html } = await it.get(`/messages/${first.id}`, { cookie });
  expect(textsOf(html, ".untrusted__text")).toEqual(["one", "two"]);
  expect(await it.hub.engine.read.audit.page({ action: "opened" }, undefined, 10)).toHaveLength(2);
});

test("without a thread, the messages it goes back to are its conversation; a circle ends", async () => {
  await using it = await open();
  const [ann, bea] = await two(it);
  const first = await send(it, ann, bea);
  const second = await send(it, bea, ann, { replyTo: first.id });
  const third = await send(it, ann, bea, { replyTo: second.id });
  const lost = await send(it, ann, bea, { replyTo: "msg_none" });
  const { cookie } = await it.signIn();
  const posts = async (id: string) => attributesOf((await it.get(`/messages/${id}`, { cookie })).html, ".post", "id");
  expect(await posts(third.id)).toEqual([first, second, third].map(({ id }) => `post-${id}`));
  expect(await posts(lost.id)).toEqual([`post-${lost.id}`]);
});

test("an operator replies once, in the name of the session", async () => {
  await using it = await open();
  const [ann, bea] = await two(it);
  const { id } = await send(it, ann, bea);
  const { cookie, csrf, id: session } = await it.signIn();
  const missing = await it.post(`/messages/${id}/reply`, { csrf, content: "  " }, { cookie, headers: { "hx-request": "true" } });
  expect([missing.status, textsOf(missing.html, ".flash")[0]]).toEqual([400, expect.stringContaining("Content is missing.")]);
  await it.post(`/messages/${id}/reply`, { csrf, content: "use the old one" }, { cookie });
  const message = await it.call("GET", `/v1/messages/${id}`, { headers: ann.headers });
  expect(message.body.message).toMatchObject({ status: "replied", reply: { content: "use the old one" } });
  const again = await it.post(`/messages/${id}/reply`, { csrf, content: "x" }, { cookie, headers: { "hx-request": "true" } });
  expect(again.status).toBe(409);
  const [entry] = await it.hub.engine.read.audit.page({ action: "replied" }, undefined, 10);
  expect([entry!.actor, entry!.role]).toEqual([session, "operator"]);
});

test("an operator cancels; without script the page asks first", async () => {
  await using it = await open();
  const [ann, bea] = await two(it);
  const { id } = await send(it, ann, bea);
  const { cookie, csrf } = await it.signIn();
  const page = await it.get(`/messages/${id}`, { cookie });
  const asked = await it.get(hrefOf(page.html, "Cancel…")!, { cookie });
  expect([textsOf(asked.html, "h1"), attributesOf(asked.html, "main form", "action")]).toEqual([
    ["Cancel this message?"],
    [`/messages/${id}/cancel`],
  ]);
  const done = await it.post(`/messages/${id}/cancel`, { csrf }, { cookie, headers: { "hx-request": "true" } });
  expect([done.status, done.headers.get("hx-trigger"), textsOf(done.html, ".flash").length]).toEqual([200, "live:all", 1]);
  expect((await it.call("GET", `/v1/messages/${id}`, { headers: ann.headers })).body.message).toMatchObject({
    status: "cancelled",
    error: "message cancelled by an operator",
  });
});

test("a dead letter is sent again by a button, and then there is nothing more to do", async () => {
  await using it = await open();
  const [ann, bea] = await two(it);
  const { id } = await send(it, ann, bea, { ttlMs: 5_000 });
  it.clock.now += 5_000;
  await expireMessages(it.hub);
  const { cookie, csrf } = await it.signIn();
  const buttons = async () => textsOf((await it.get(`/messages/${id}`, { cookie })).html, ".head__actions button");
  expect(await buttons()).toEqual(["Send again", "Put aside"]);
  await it.post(`/messages/${id}/resend`, { csrf }, { cookie });
  expect(await buttons()).toEqual([]);
  const inbox = await it.call("GET", `/v1/agents/${bea.id}/inbox`, { headers: bea.headers });
  expect(inbox.body.messages.map(({ seq, fromName }: { seq: number; fromName: string }) => [seq, fromName])).toEqual([[2, "ann"]]);
});

test("viewers see no acts, and other projects' sessions see nothing at all", async () => {
  await using it = await open();
  const [ann, bea] = await two(it);
  const { id } = await send(it, ann, bea);
  const viewer = await it.get(`/messages/${id}`, { cookie: (await it.signIn("viewer")).cookie });
  expect([textsOf(viewer.html, "main button"), textsOf(viewer.html, "main form")]).toEqual([[], []]);
  const stranger = await it.signIn("admin", "bank");
  for (const path of [`/messages/${id}`, `/ui/messages/${id}`, `/messages/${id}/cancel`, "/messages/msg_none", "/messages/..%2Fx"])
    expect([path, (await it.get(path, { cookie: stranger.cookie })).status]).toEqual([path, 404]);
  for (const act of ["open", "reply", "cancel", "resend", "dismiss"]) {
    const answer = await it.post(`/messages/${id}/${act}`, { csrf: stranger.csrf, content: "x" }, { cookie: stranger.cookie });
    expect([act, answer.status]).toEqual([act, 404]);
  }
  expect(await it.hub.engine.read.audit.page({ subject: id }, undefined, 10)).toEqual([]);
});

test("texts, replies, threads and names are only text; hidden characters are tokens", async () => {
  await using it = await open();
  const { cookie, csrf } = await it.signIn();
  const plainIt = await two(it);
  const plainId = (await send(it, ...plainIt)).id;
  await it.post(`/messages/${plainId}/open`, { csrf }, { cookie });
  const plain = markupOf((await it.get(`/messages/${plainId}`, { cookie })).html);
  for (const [index, payload] of PAYLOADS.entries()) {
    const agent = await register(it, `${index} ${payload}`.slice(0, 60).trim());
    const { id } = await send(it, plainIt[0], agent, { content: payload, correlationId: `${index} ${payload}`.slice(0, 100).trim() });
    await reply(it, agent, id, payload);
    await it.post(`/messages/${id}/open`, { csrf }, { cookie });
    for (const path of [`/messages/${id}`, `/ui/messages/${id}`]) {
      const { html, status } = await it.get(path, { cookie });
      expect(status).toBe(200);
      const { elements, attributes } = markupOf(html);
      expect([payload, [...elements].filter((name) => !plain.elements.has(name))]).toEqual([payload, []]);
      for (const attribute of attributes) expect(attribute).not.toMatch(/^on|^style$|^srcdoc$|^data-hx|^hx-on/);
      const [text, answer] = textsOf(html, ".untrusted__text");
      expect(text).toBe(answer!);
    }
  }
});
