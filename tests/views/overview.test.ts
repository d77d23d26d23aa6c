// The front page over a real hub: the sentence, what needs a person, the fleet, what runs, what just happened, and a hub that is new.
import { expect, test } from "bun:test";
import { countActivity } from "../../src/hub/activity.ts";
import * as alerts from "../../src/hub/alerts.ts";
import * as costs from "../../src/hub/costs.ts";
import { expireMessages } from "../../src/hub/message-sweep.ts";
import { openDashboard } from "../support/dashboard.ts";
import { attributesOf, hrefOf, markupOf, textsOf } from "../support/html.ts";
import { beat, pushRun, register, take } from "../support/lived-in.ts";
import { LIVELY, liven } from "../support/lively.ts";
import { acknowledge, reply, send } from "../support/mail.ts";
import { PAYLOADS } from "./payloads.ts";

const open = () => openDashboard({ settings: { rateLimit: undefined } });
const RUN = "run_0123456789abcdef";

test("a new hub shows the commands that make it useful, and then the overview", async () => {
  await using it = await open();
  const { cookie } = await it.signIn();
  const empty = await it.get("/", { cookie });
  expect(textsOf(empty.html, ".lede")[0]).toStartWith("This hub is up, and nobody is here yet.");
  expect(attributesOf(empty.html, "main [data-copy]", "data-copy")).toEqual([
    "kxm connect",
    "kxm peer --as reviewer inbox --follow",
    "kxm init && kxm run 'Say hello'",
    "kxm runtime start",
  ]);
  await register(it, "ann");
  const lived = await it.get("/", { cookie });
  expect(textsOf(lived.html, ".lede")).toEqual(["Nothing needs you. The agent answers, no run is moving."]);
  expect((await it.get("/start", { cookie })).status).toBe(200);
});

test("the sentence counts what needs a person, what is broken, who answers and what moves, and each figure leads there", async () => {
  await using it = await open();
  await liven(it.hub, it.clock);
  const { html } = await it.get(`/?project=${LIVELY}`, { cookie: (await it.signIn()).cookie });
  expect(textsOf(html, ".lede")).toEqual([
    "7 things need you, the oldest for 52 min. One sync conflict is open. 30 of 33 agents answer, 4 runs are moving, $3.42 spent since midnight UTC.",
  ]);
  expect(attributesOf(html, ".lede a", "href")).toEqual([
    "#needs",
    `/sync?project=${LIVELY}`,
    `/agents?project=${LIVELY}`,
    `/runs?project=${LIVELY}`,
    `/cost?project=${LIVELY}`,
  ]);
  const { total } = await costs.byTime(it.hub.engine.read, [LIVELY], "day", costs.dayOf(it.clock.now));
  expect(total.costs["USD"]).toBeCloseTo(3.42, 2);
  expect(textsOf(html, ".stat__label")).toEqual(["Messages, 24 h", "Cost, 24 h", "Runs finished, 24 h", "Not yet here"]);
  expect(textsOf(html, "#needs .item__title").map((title) => title.split(/[:,]/)[0])).toEqual([
    "git push --force-with-lease=refs/heads/main",
    "Outcome unknown",
    "Same place",
    "The write-ahead log is larger than 64 MiB",
    "2 messages expired without a reply",
    "Lease db",
  ]);
  expect(textsOf(html, ".machine__name")).toEqual(["laptop-m3", "build-01", "studio", "ci-spot-eu-west-3-a7f2"]);
  expect(textsOf(html, ".machine .status")[0]).toBe("lost contact last seen 3 min ago");
  expect(attributesOf(html, ".machine .pips i", "class").filter((name) => name === "pip-run")).toHaveLength(2);
  expect(attributesOf(html, ".machine .pips", "aria-label").at(-1)).toBe("7 agents: 1 working, 6 idle");
  expect(attributesOf(html, ".machine .pips", "href")[1]).toBe(`/agents?project=${LIVELY}&show=online&q=machine%3Abuild-01`);
  expect(textsOf(html, ".stat__value")[0]).toMatch(/^4\d\d$/);
});

test("an approval is decided from the front page, bound to the hash that is shown", async () => {
  await using it = await open();
  await beat(it);
  const asked = [{ id: "apr_0123456789abcdef", kind: "approval-request", hash: `sha256:${"ab".repeat(32)}`, status: "waiting" as const }];
  await pushRun(it, RUN, [
    { type: "run.created", payload: { workflowId: "release", displayTitle: "Ship it", status: "created" } },
    { type: "step.entered", payload: { stepId: "deliver", status: "running" } },
    { type: "step.status_changed", payload: { stepId: "deliver", status: "waiting", summary: "git push origin main", evidenceRefs: asked } },
  ]);
  const { cookie, csrf } = await it.signIn();
  const { html } = await it.get("/", { cookie });
  expect(textsOf(html, "#needs .shown .code")).toEqual(["git push origin main"]);
  const [action] = attributesOf(html, "#needs form", "action");
  const [hash] = attributesOf(html, "#needs form input[name=contentHash]", "value");
  const done = await it.post(action!, { csrf, decision: "approve", contentHash: hash! }, { cookie });
  expect(done.status).toBe(303);
  expect(textsOf((await it.get("/", { cookie })).html, "#needs .item")).toEqual([]);
});

test("dead letters to one agent are sent again by one click", async () => {
  await using it = await open();
  const [ann, bea] = [await register(it, "ann"), await register(it, "bea")];
  for (let n = 0; n < 3; n++) await send(it, ann, bea, { ttlMs: 5_000 });
  it.clock.now += 5_000;
  await expireMessages(it.hub);
  const { cookie, csrf } = await it.signIn();
  const { html } = await it.get("/", { cookie });
  expect(textsOf(html, "#needs .item__title")).toEqual(["3 messages expired without a reply"]);
  const form = [["csrf", csrf], ["act", "resend"], ...attributesOf(html, "#needs form input[name=pick]", "value").map((id) => ["pick", id!])];
  const answer = await it.app.handle(
    new Request(`http://127.0.0.1:7331${attributesOf(html, "#needs form", "action")[0]}`, {
      method: "POST",
      headers: { cookie, "content-type": "application/x-www-form-urlencoded" },
      body: new URLSearchParams(form as [string, string][]).toString(),
    }),
  );
  expect(answer.status).toBe(303);
  expect(textsOf((await it.get("/", { cookie })).html, "#needs .item")).toEqual([]);
  expect((await it.call("GET", `/v1/agents/${bea.id}/inbox`, { headers: bea.headers })).body.messages).toHaveLength(3);
});

test("what just happened is told in sentences, one for each thing, newest first", async () => {
  await using it = await open();
  const [ann, bea] = [await register(it, "ann"), await register(it, "bea")];
  it.clock.now += 1_000;
  const { id } = await send(it, ann, bea);
  await acknowledge(it, bea, id);
  await reply(it, bea, id);
  await send(it, bea, ann);
  await take(it, ann, "branch:main");
  await it.call("DELETE", `/v1/agents/${bea.id}`, { headers: bea.headers });
  const { html } = await it.get("/", { cookie: (await it.signIn("viewer")).cookie });
  expect(textsOf(html, "aside .feed li > span")).toEqual([
    "bea signed off",
    "ann took branch:main, token 1",
    "bea asked ann",
    "bea replied to ann",
    "ann registered",
  ]);
});

test("the figures of the day come from the count of the log and from the newest messages", async () => {
  await using it = await open();
  const [ann, bea] = [await register(it, "ann"), await register(it, "bea")];
  for (const wait of [1_000, 3_000, 9_000]) {
    const { id } = await send(it, ann, bea);
    it.clock.now += wait;
    await acknowledge(it, bea, id, "turn");
    await reply(it, bea, id);
    it.clock.now += 3_600_000;
  }
  await countActivity(it.hub);
  const { html } = await it.get("/", { cookie: (await it.signIn()).cookie });
  expect(textsOf(html, ".stat").slice(0, 2)).toEqual([
    "Messages, 24 h 3 until a turn starts: p50 3.0 s, p99 9.0 s",
    "Replies, 24 h 3 0 expired unanswered",
  ]);
  expect(attributesOf(html, ".spark", "aria-label")[0]).toBe("Messages per hour, last 24 hours, peak 1");
});

test("a project's session sees only its own project on the front page", async () => {
  await using it = await open();
  const [ann, bea] = [await register(it, "mine-of-shop"), await register(it, "theirs-of-bank", "bank")];
  await take(it, bea, "secret-of-bank");
  await send(it, ann, await register(it, "other-of-shop"));
  await it.hub.engine.write("bank", (tx) =>
    alerts.raise(tx, { project: "bank", kind: "k", dedupeKey: "k", severity: "warning", summary: "alert-of-bank" }),
  );
  const { cookie } = await it.signIn("operator", "shop");
  for (const path of ["/", "/?project=bank", "/ui/", "/ui/?project=bank"]) {
    const { html, status } = await it.get(path, { cookie });
    expect([path, status, html.includes("of-bank"), html.includes("mine-of-shop")]).toEqual([path, 200, false, true]);
  }
});

test("a viewer sees what needs somebody, and no way to act", async () => {
  await using it = await open();
  await liven(it.hub, it.clock);
  const { html } = await it.get("/", { cookie: (await it.signIn("viewer")).cookie });
  expect(textsOf(html, "#needs .item__title")).toHaveLength(6);
  expect(textsOf(html, "main form")).toEqual([]);
  expect(textsOf(html, "main .item__acts a")).toEqual(["Compare", "Look", "Look"]);
});

test("the overview's fragment is its own region", async () => {
  await using it = await open();
  await register(it, "ann");
  const { cookie } = await it.signIn();
  const page = await it.get("/?project=shop", { cookie });
  const [href] = attributesOf(page.html, "#overview", "hx-get");
  expect(href).toBe("/ui/?project=shop");
  const fragment = await it.get(href!, { cookie, headers: { "hx-request": "true" } });
  expect(fragment.html.startsWith('<div id="overview"')).toBeTrue();
  expect(attributesOf(fragment.html, "#overview", "hx-get")).toEqual([href!]);
  expect(hrefOf(fragment.html, "Audit")).toBe("/audit?project=shop");
});

test("names, titles, reasons and machines are only text on the front page", async () => {
  await using it = await open();
  const { cookie } = await it.signIn();
  await liven(it.hub, it.clock);
  const plain = markupOf((await it.get("/", { cookie })).html);
  for (const [index, payload] of PAYLOADS.entries()) {
    const word = payload.slice(0, 60).trim() || "x";
    const agent = await register(it, `${index} ${word}`.slice(0, 60).trim());
    await take(it, agent, `${index} ${word}`.slice(0, 60)).catch(() => undefined);
    await send(it, agent, agent.id === "" ? agent : await register(it, `to ${index} ${word}`.slice(0, 60).trim()), {
      ttlMs: 1_000,
      correlationId: word,
    });
    await it.call("POST", "/v1/runtime/presence", { body: { project: "shop", runtimeId: `rtm_${String(index).padStart(24, "0")}`, host: word } });
    await pushRun(it, `run_${String(index).padStart(16, "0")}`, [
      { type: "run.created", payload: { workflowId: "release", displayTitle: payload.slice(0, 190), status: "created" } },
      { type: "run.status_changed", payload: { status: "blocked_uncertain", stepId: "apply", reason: payload.slice(0, 900) } },
    ]);
    it.clock.now += 1_000;
    await expireMessages(it.hub);
    for (const path of ["/", "/ui/"]) {
      const { html, status } = await it.get(path, { cookie });
      expect([payload, status]).toEqual([payload, 200]);
      const { elements, attributes } = markupOf(html);
      expect([payload, [...elements].filter((name) => !plain.elements.has(name))]).toEqual([payload, []]);
      for (const attribute of attributes) expect(attribute).not.toMatch(/^on|^style$|^srcdoc$|^data-hx|^hx-on/);
    }
  }
}, 60_000);
