// The pages of webhooks over a real hub: receivers, their secret shown once, their log, and that addresses and errors are only text.
import { expect, test } from "bun:test";
import * as arrivals from "../../src/hub/webhook-arrivals.ts";
import * as deliveries from "../../src/hub/webhook-deliveries.ts";
import { parseDefinitions } from "../../src/hub/workflows/definitions.ts";
import { type DashboardWorld, openDashboard } from "../support/dashboard.ts";
import { attributesOf, hrefOf, markupOf, textsOf } from "../support/html.ts";
import { register } from "../support/lived-in.ts";
import { DEFINITION, withWorkflows } from "../support/workflows.ts";

const open = () => openDashboard({ settings: { rateLimit: undefined } });
const ADDRESS = "https://ci.example.org/hooks/kxm";

async function add(it: DashboardWorld, more: Record<string, string> = {}, project = "shop") {
  const { cookie, csrf, id } = await it.signIn("admin");
  const answer = await it.post("/webhooks/new", { csrf, project, url: ADDRESS, events: "approvals.* messages.replied", ...more }, { cookie });
  const [row] = await it.hub.engine.read.webhookEndpoints.ofProject(project, 10);
  return { cookie, csrf, id, answer, row: row! };
}

test("without any endpoint the page says what one does, and only an admin is offered the form", async () => {
  await using it = await open();
  await register(it, "ann");
  const viewer = await it.get("/webhooks", { cookie: (await it.signIn("viewer")).cookie });
  expect(textsOf(viewer.html, ".empty h3")).toEqual(["No definition waits for a delivery.", "Nobody is told of events."]);
  expect(hrefOf(viewer.html, "Add an endpoint")).toBeUndefined();
  const admin = await it.get("/webhooks?project=shop", { cookie: (await it.signIn("admin")).cookie });
  const form = await it.get(hrefOf(admin.html, "Add an endpoint")!, { cookie: (await it.signIn("admin")).cookie });
  expect(textsOf(form.html, "option")).toContain("shop");
});

test("an endpoint is added, its secret is shown in that one answer, and the audit says who did it", async () => {
  await using it = await open();
  await register(it, "ann");
  const { cookie, id, answer, row } = await add(it);
  const [secret] = textsOf(answer.html, ".cmd code");
  expect(secret).toBe(row.secrets[0]!.value);
  expect([answer.status, answer.headers.get("cache-control")]).toEqual([200, "no-store"]);
  expect([row.eventTypes, row.allowBodies, row.allowPrivate]).toEqual([["approvals.*", "messages.replied"], 0, 0]);
  for (const path of ["/webhooks", `/webhooks/${row.id}`, `/webhooks/${row.id}?act=rotate`])
    expect((await it.get(path, { cookie })).html).not.toContain(secret!.slice(6));
  const [entry] = await it.hub.engine.read.audit.page({ actor: id, action: "endpoint.created" }, undefined, 10);
  expect([entry!.subjectId, entry!.origin]).toEqual([row.id, "dashboard"]);
});

test("an address inside the network is refused in place, with what was filled in", async () => {
  await using it = await open();
  await register(it, "ann");
  const { answer } = await add(it, { url: "https://10.0.0.1/x", bodies: "1" });
  expect([answer.status, textsOf(answer.html, ".flash")[0]]).toEqual([400, expect.stringContaining("its host is not public")]);
  expect(attributesOf(answer.html, "#endpoint-url", "value")).toEqual(["https://10.0.0.1/x"]);
  expect(await it.hub.engine.read.webhookEndpoints.ofProject("shop", 10)).toEqual([]);
});

test("a test is queued, its failure shows as failing, and a replay sends it again", async () => {
  await using it = await open();
  await register(it, "ann");
  const { cookie, csrf, row, id } = await add(it);
  expect((await it.post(`/webhooks/${row.id}/test`, { csrf }, { cookie })).status).toBe(303);
  await deliveries.deliverDue(it.hub, { post: async () => ({ status: 410, retryAfter: null }), random: () => 0.5 });
  const page = await it.get(`/webhooks/${row.id}`, { cookie });
  expect(textsOf(page.html, "tbody .status")).toEqual(["failed 410"]);
  expect(textsOf(page.html, ".head .status")[0]).toContain("disabled");
  const [delivery] = attributesOf(page.html, "tbody input[name=id]", "value");
  const operator = await it.signIn("operator");
  expect((await it.post("/webhooks/replay", { csrf: operator.csrf, id: delivery! }, { cookie: operator.cookie })).status).toBe(303);
  expect((await it.hub.engine.read.webhookEndpoints.findDelivery(delivery!))!.state).toBe("pending");
  expect((await it.hub.engine.read.audit.page({ actor: operator.id }, undefined, 10)).map(({ action }) => action)).toContain("delivery.replayed");
  expect((await it.post(`/webhooks/${row.id}/enable`, { csrf }, { cookie })).status).toBe(303);
  await deliveries.deliverDue(it.hub, { post: async () => ({ status: 204, retryAfter: null }), random: () => 0.5 });
  const healed = await it.get("/webhooks", { cookie });
  expect(textsOf(healed.html, "tbody .status")).toEqual([expect.stringContaining("active 204"), "delivered 204"]);
  expect((await it.hub.engine.read.audit.page({ actor: id }, undefined, 10)).map(({ action }) => action)).toContain("endpoint.enabled");
});

test("a new secret is shown once, and removing takes the log along", async () => {
  await using it = await open();
  await register(it, "ann");
  const { cookie, csrf, row } = await add(it);
  const asks = await it.get(`/webhooks/${row.id}?act=rotate`, { cookie });
  const [action] = attributesOf(asks.html, "form.form", "action");
  const rotated = await it.post(action!, { csrf }, { cookie });
  const secrets = (await it.hub.engine.read.webhookEndpoints.find(row.id))!.secrets;
  expect([textsOf(rotated.html, ".cmd code")[0], secrets.length]).toEqual([secrets[0]!.value, 2]);
  expect((await it.post(`/webhooks/${row.id}/remove`, { csrf }, { cookie })).headers.get("location")).toBe("/webhooks");
  expect((await it.get(`/webhooks/${row.id}`, { cookie })).status).toBe(404);
});

test("only an admin of the project changes an endpoint, only an operator replays, and others do not see it", async () => {
  await using it = await open();
  await register(it, "ann");
  await register(it, "bob", "bank");
  const { row } = await add(it);
  const [viewer, operator, other] = [await it.signIn("viewer"), await it.signIn("operator"), await it.signIn("admin", "bank")];
  for (const act of ["test", "enable", "rotate", "remove"]) {
    expect((await it.post(`/webhooks/${row.id}/${act}`, { csrf: operator.csrf }, { cookie: operator.cookie })).status).toBe(403);
    expect((await it.post(`/webhooks/${row.id}/${act}`, { csrf: other.csrf }, { cookie: other.cookie })).status).toBe(404);
  }
  expect((await it.post("/webhooks/replay", { csrf: viewer.csrf, id: "dlv_1" }, { cookie: viewer.cookie })).status).toBe(403);
  expect((await it.post("/webhooks/new", { csrf: other.csrf, project: "shop", url: ADDRESS }, { cookie: other.cookie })).status).toBe(403);
  expect((await it.get("/webhooks", { cookie: other.cookie })).html).not.toContain("ci.example.org");
  expect((await it.get(`/webhooks/${row.id}`, { cookie: other.cookie })).status).toBe(404);
  expect((await it.hub.engine.read.webhookEndpoints.find(row.id))!.secrets).toHaveLength(1);
});

test("what a receiver answers and what definitions are called is only text", async () => {
  await using it = await open();
  await register(it, "ann");
  it.hub.definitions = parseDefinitions(JSON.stringify([{ ...DEFINITION, target: "<img src=x onerror=1>" }]), {}).definitions;
  const { cookie, csrf, row } = await add(it, { url: `${ADDRESS}?<script>alert(1)</script>` });
  await it.post(`/webhooks/${row.id}/test`, { csrf }, { cookie });
  await deliveries.deliverDue(it.hub, { post: () => Promise.reject(new Error("<b>no</b> \u202e route")), random: () => 0.5 });
  for (const path of ["/webhooks", `/webhooks/${row.id}`]) {
    const { html } = await it.get(path, { cookie });
    const { elements, attributes } = markupOf(html);
    expect([elements.has("b"), elements.has("img"), attributes.has("onerror")]).toEqual([false, false, false]);
    expect(html).not.toContain("<script>alert");
    expect(textsOf(html, "tbody").join(" ")).toContain("<b>no</b>");
  }
  expect(textsOf((await it.get("/webhooks", { cookie })).html, "tbody")[0]).toContain("<img src=x onerror=1> · 2 stages");
});

test("the form for a new secret sent twice makes one, and shows the same", async () => {
  await using it = await open();
  await register(it, "ann");
  const { cookie, csrf, row } = await add(it);
  const page = await it.get(`/webhooks/${row.id}?act=rotate`, { cookie });
  const [key] = attributesOf(page.html, "input[name=key]", "value");
  const send = async (more: Record<string, string>) =>
    textsOf((await it.post(`/webhooks/${row.id}/rotate`, { csrf, ...more }, { cookie })).html, ".cmd code")[0];
  const first = await send({ key: key! });
  expect(first).toStartWith("whsec_");
  expect(await send({ key: key! })).toBe(first!);
  const secrets = async () => (await it.hub.engine.read.webhookEndpoints.find(row.id))!.secrets.map(({ value }) => value);
  expect(await secrets()).toEqual([first!, row.secrets[0]!.value]);
  const [again] = attributesOf((await it.get(`/webhooks/${row.id}?act=rotate`, { cookie })).html, "input[name=key]", "value");
  const second = await send({ key: again! });
  expect([second === first, (await secrets()).length]).toEqual([false, 3]);
  expect(await send({ key: key! })).toBe(first!); // an old request that arrives late
  expect(await secrets()).toHaveLength(3);
});

test("a mistyped topic is refused with the one that was meant", async () => {
  await using it = await open();
  await register(it, "ann");
  for (const [events, said] of [
    ["mesages.*", "Did you mean messages.*?"],
    ["aproval.requested", "did you mean approvals.requested?"],
    ["zzz.*", "topics are agents, messages"],
    ["messages", "is not topic.type"],
  ] as const) {
    const { answer } = await add(it, { events });
    expect([answer.status, textsOf(answer.html, ".flash")[0]!.toLowerCase()]).toEqual([400, expect.stringContaining(said.toLowerCase())]);
  }
  expect(await it.hub.engine.read.webhookEndpoints.ofProject("shop", 10)).toEqual([]);
});

test("an admin disables an endpoint with a reason and enables it again; an operator may not", async () => {
  await using it = await open();
  await register(it, "ann");
  const { cookie, csrf, row, id } = await add(it);
  const operator = await it.signIn("operator");
  const headers = { "hx-request": "true" };
  const refused = await it.post(`/webhooks/${row.id}/disable`, { csrf: operator.csrf, reason: "x" }, { cookie: operator.cookie, headers });
  expect(refused.status).toBe(403);
  expect((await it.post(`/webhooks/${row.id}/disable`, { csrf, reason: " " }, { cookie, headers })).status).toBe(400);
  const page = await it.get(`/webhooks/${row.id}?act=disable`, { cookie });
  expect(attributesOf(page.html, "#disable-reason", "name")).toEqual(["reason"]);
  const reason = "moves <b>away</b>";
  expect((await it.post(`/webhooks/${row.id}/disable`, { csrf, reason }, { cookie })).status).toBe(303);
  await it.post(`/webhooks/${row.id}/disable`, { csrf, reason: "again" }, { cookie });
  const after = await it.get(`/webhooks/${row.id}`, { cookie });
  expect(textsOf(after.html, ".head .status")[0]).toContain(reason);
  const audit = (await it.hub.engine.read.audit.page({ actor: id }, undefined, 10)).filter(({ action }) => action === "endpoint.disabled");
  expect(audit.map((entry) => entry.reason)).toEqual([reason]);
  await it.post(`/webhooks/${row.id}/enable`, { csrf }, { cookie });
  expect((await it.hub.engine.read.webhookEndpoints.find(row.id))!.disabledAt).toBeNull();
});

test("deliveries that came in are on the page with counts of a day, in a log of their own, and in a file", async () => {
  await using it = await withWorkflows(await open());
  const hostile = "<img src=x onerror=1>\u202e";
  const { runId } = (await it.start({ issue: { key: "A" } }, { deliveryId: "d-1", headers: { "user-agent": "=cmd()" } })).body;
  it.clock.now += 1_000;
  await it.start({ issue: { key: "A" } }, { deliveryId: "d-1" });
  it.clock.now += 1_000;
  await it.start({ issue: { key: "B" }, event: hostile }, { deliveryId: "d-1" });
  for (const n of [1, 2]) await it.start({}, { deliveryId: `forged-${n}`, headers: { "x-kxm-signature": "sha256=00" } });
  await arrivals.flush(it.hub);
  const { cookie } = await it.signIn("viewer");
  const { html } = await it.get("/webhooks?project=shop", { cookie });
  expect(textsOf(html, "#incoming-release")[0]).toMatch(/5 3 refused$/);
  const log = await it.get("/webhooks/incoming?project=shop", { cookie });
  const rows = textsOf(log.html, "[id^=arrival-]");
  expect(rows.map((row) => /accepted|duplicate|refused/.exec(row)![0])).toEqual(["refused", "refused", "duplicate", "accepted"]);
  expect(rows[0]).toContain("2 alike in that hour");
  expect(rows[0]).toContain("forged-2 (claimed)");
  expect(rows[1]).toContain("<img src=x onerror=1>");
  expect([markupOf(log.html).elements.has("img"), log.html.includes("\u202e")]).toEqual([false, false]);
  expect(hrefOf(log.html, "Open run")).toContain(runId);
  expect(textsOf((await it.get("/webhooks/incoming?project=shop&outcome=duplicate", { cookie })).html, "[id^=arrival-]")).toHaveLength(1);
  expect(textsOf((await it.get("/webhooks/incoming?definition=release", { cookie })).html, "[id^=arrival-]")).toHaveLength(4);
  const csv = await it.get("/webhooks/incoming/export/csv?project=shop", { cookie });
  expect(csv.html).toContain('"\'=cmd()"');
  expect(csv.html.trim().split("\r\n")).toHaveLength(5);
  const bank = (await it.signIn("admin", "bank")).cookie;
  expect((await it.get("/webhooks/incoming?definition=release", { cookie: bank })).status).toBe(404);
  expect(textsOf((await it.get("/webhooks/incoming?project=shop", { cookie: bank })).html, "[id^=arrival-]")).toEqual([]);
});

test("an endpoint's log goes along as a file, without what was sent and not to those of another project", async () => {
  await using it = await open();
  await register(it, "ann");
  const { cookie, csrf, row } = await add(it);
  await it.post(`/webhooks/${row.id}/test`, { csrf }, { cookie });
  await deliveries.deliverDue(it.hub, { post: async () => ({ status: 503, retryAfter: null }), random: () => 0.5 });
  const path = hrefOf((await it.get(`/webhooks/${row.id}`, { cookie })).html, "JSON")!;
  const file = JSON.parse((await it.get(path, { cookie })).html);
  expect(file).toEqual([expect.objectContaining({ event: "webhooks.test", state: "pending", attempts: 1, lastAnswer: 503, finishedAt: null })]);
  expect(Object.keys(file[0])).not.toContain("body");
  expect((await it.get(path, { cookie: (await it.signIn("admin", "bank")).cookie })).status).toBe(404);
});
