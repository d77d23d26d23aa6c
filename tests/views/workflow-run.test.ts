// The page of a hub workflow run: the condition matrix by whom and as of when, ways and waits, the journal, and what an admin decides.
import { expect, test } from "bun:test";
import { openDashboard } from "../support/dashboard.ts";
import { attributesOf, hrefOf, intrudersOf, textsOf } from "../support/html.ts";
import { fixing, JIRA_FIX } from "../support/lived-in.ts";
import { withWorkflows } from "../support/workflows.ts";
import { PAYLOADS } from "./payloads.ts";

const open = async () => withWorkflows(await openDashboard({ settings: { rateLimit: undefined } }), JIRA_FIX);
const KEY = "independent review";

test("the matrix says of each condition whether it is met, by whom, as of when, and what would satisfy it", async () => {
  await using it = await open();
  const id = await fixing(it);
  const { html } = await it.get(`/workflows/${id}`, { cookie: (await it.signIn("viewer")).cookie });
  expect(textsOf(html, ".head .status")[0]).toBe("waiting signal ci.result, times out in 13 h 59 min");
  const rows = textsOf(html, ".matrix tbody tr");
  expect(rows[0]).toStartWith("test report evidence, one value met report-1187.json, 1,204 passed lead gave it");
  expect(rows[1]).toContain("peer reply, 2 of 3, distinct agents missing 1 more reply 1 of 2 ann replied, msg_");
  expect(rows[1]).toContain("bob stored 5 min ago");
  expect(rows[1]).toContain("cid eligible, not asked yet");
  expect(rows[2]).toContain("ci.result signed signal missing due in 13 h 59 min nothing received yet");
  expect(rows[3]).toContain("reproduction unchanged captured in reproduce met sha256");
  expect(attributesOf(html, ".quorum i", "class")).toEqual(["is-met", "is-asked"]);
  expect(attributesOf(html, "tr.matrix__row--missing", "id")).toHaveLength(2);
  expect(textsOf(html, ".blockers li")[1]).toContain("1 more answered request from bob, cid for attempt 2.");
});

test("stages, ways back with their budget, transitions, waits and the journal are shown", async () => {
  await using it = await open();
  const id = await fixing(it);
  const { cookie } = await it.signIn();
  const { html } = await it.get(`/workflows/${id}`, { cookie });
  expect(attributesOf(html, ".graph__across a", "class")).toEqual(["n-ok", "n-ok", "n-attn", "n-todo"]);
  expect(textsOf(html, ".graph__across .e-label")).toEqual(["rework, 1 of 2 used"]);
  expect(textsOf(html, ".feed li").join(" ")).toContain("verify → fix on rework, attempt 1");
  expect(textsOf(html, "#stage-fix")[0]).toContain("passed fix is done 1 of 3 diff stat 30 min");
  expect(textsOf(html, ".card__title")[0]).toBe("Check both paths of a retry before the fix");
  expect(textsOf(html, ".untrusted__text").at(-1)).toContain("Retry path re-used the idempotency key");
  await it.signal(id, "ci.result", { status: "failed", summary: "2 tests failed" }, { definitionId: "jira-fix" });
  expect(textsOf((await it.get(`/workflows/${id}`, { cookie })).html, ".feed li")[0]).toContain("ci.result failed");
});

test("a coordinator that is away is why a run does not move", async () => {
  await using it = await open();
  const { body } = await it.start({ issue: { key: "PAY-1" } }, { definitionId: "jira-fix" });
  await it.call("DELETE", "/v1/agents/me", { headers: it.agents.lead.headers }).catch(() => undefined);
  await it.hub.engine.write("shop", (tx) => tx.agents.setOnline(it.agents.lead.id, 0, it.clock.now));
  const { html } = await it.get(`/workflows/${body.runId}`, { cookie: (await it.signIn()).cookie });
  expect(textsOf(html, ".blockers li")[0]).toContain("Its coordinator lead is offline");
});

test("an admin lets one attempt pass with fewer producers, with a reason", async () => {
  await using it = await open();
  const id = await fixing(it);
  const [admin, operator] = [await it.signIn("admin"), await it.signIn()];
  const path = `/workflows/${id}/degradations`;
  expect((await it.get(`/workflows/${id}`, { cookie: operator.cookie })).html).not.toContain("Degrade…");
  const form = { stageId: "verify", requirementKey: KEY, reason: "bob is ill" };
  expect((await it.post(path, { ...form, csrf: operator.csrf }, { cookie: operator.cookie })).status).toBe(403);
  const inline = (await it.get(`/workflows/${id}?act=degrade`, { cookie: admin.cookie })).html;
  expect(textsOf(inline, "#here-degrade-key option")).toEqual([`${KEY}: 1 instead of 2`]);
  const answer = await it.post(path, { ...form, csrf: admin.csrf }, { cookie: admin.cookie, headers: { "hx-request": "true" } });
  expect(textsOf(answer.html, ".flash--ok")[0]).toContain("may pass with 1 instead of 2, for attempt 2.");
  const page = (await it.get(`/workflows/${id}`, { cookie: admin.cookie })).html;
  expect(textsOf(page, ".matrix tbody tr")[1]).toContain("(normally 2) met below the normal number 1 of 1");
  expect(page).not.toContain("Degrade…");
  const [entry] = await it.hub.engine.read.audit.page({ actor: admin.id, action: "degraded" }, undefined, 5);
  expect([entry!.reason, entry!.role, entry!.origin]).toEqual(["bob is ill", "admin", "dashboard"]);
});

test("a journal candidate is decided once, by an admin, with evidence", async () => {
  await using it = await open();
  const id = await fixing(it);
  const [admin, operator] = [await it.signIn("admin"), await it.signIn()];
  const page = (await it.get(`/workflows/${id}`, { cookie: admin.cookie })).html;
  const [action] = attributesOf(page, "dialog form[action*='/promotion']", "action");
  const form = { to: "approved", refs: "https://x/review/7\nTICKET-9", reason: "worked twice" };
  expect((await it.post(action!, { ...form, csrf: operator.csrf }, { cookie: operator.cookie })).status).toBe(403);
  expect((await it.post(action!, { ...form, csrf: admin.csrf, refs: "" }, { cookie: admin.cookie })).headers.get("location")).toBe(
    `/workflows/${id}`,
  );
  expect((await it.get(`/workflows/${id}`, { cookie: admin.cookie })).html).toContain("Refs is missing.");
  await it.post(action!, { ...form, csrf: admin.csrf }, { cookie: admin.cookie });
  const { html } = await it.get(`/workflows/${id}`, { cookie: admin.cookie });
  expect(textsOf(html, ".card").find((text) => text.includes("Check both paths"))).toContain("approved worked twice");
  expect(html).not.toContain("Decide…");
  const again = await it.post(action!, { ...form, csrf: admin.csrf }, { cookie: admin.cookie, headers: { "hx-request": "true" } });
  expect(textsOf(again.html, ".flash--bad")).toHaveLength(1);
});

test("a run of another project is not found, and one that has ended needs nothing", async () => {
  await using it = await open();
  const id = await fixing(it);
  const other = await it.signIn("admin", "elsewhere");
  expect((await it.get(`/workflows/${id}`, { cookie: other.cookie })).status).toBe(404);
  const form = { csrf: other.csrf, stageId: "verify", requirementKey: KEY, reason: "r" };
  expect((await it.post(`/workflows/${id}/degradations`, form, { cookie: other.cookie })).status).toBe(404);
  it.clock.now += 20 * 3_600_000;
  await it.hub.engine.write("shop", async (tx) => {
    const row = (await tx.workflows.find(id))!;
    const record = {
      ...row.record,
      status: "failed",
      currentStage: undefined,
      waiting: undefined,
      completedAt: new Date(it.clock.now).toISOString(),
    };
    await tx.workflows.update({ ...row, status: "failed", currentStage: null, waitingUntil: null, completedAt: it.clock.now, record });
  });
  const { html } = await it.get(`/workflows/${id}`, { cookie: (await it.signIn()).cookie });
  expect(textsOf(html, ".head .status")[0]).toStartWith("failed");
  expect([textsOf(html, ".matrix"), textsOf(html, ".blockers")]).toEqual([[], []]);
});

test("a long journal comes in pages of fifty", async () => {
  await using it = await open();
  const id = await fixing(it);
  for (let n = 0; n < 60; n++)
    await it.as("lead", "POST", `/v1/workflows/${id}/journal`, { category: "observation", area: "gates", summary: `seen ${n}` });
  const { cookie } = await it.signIn();
  const first = (await it.get(`/workflows/${id}`, { cookie })).html;
  expect(textsOf(first, ".card__title")[0]).toBe("seen 59");
  const second = (await it.get(hrefOf(first, "Older")!, { cookie })).html;
  expect([textsOf(first, ".card").length, textsOf(second, ".card__title")[0]]).toEqual([50, "seen 9"]);
});

test("what agents and signals say is only text", async () => {
  await using it = await open();
  const id = await fixing(it);
  for (const payload of PAYLOADS.slice(0, 40)) {
    const text = payload.slice(0, 900).trim();
    await it.as("lead", "POST", `/v1/workflows/${id}/journal`, {
      category: "observation",
      area: "gates",
      summary: text,
      details: payload.slice(0, 4000),
      evidence: [text.slice(0, 400)],
    });
  }
  await it.signal(
    id,
    "ci.result",
    { status: "warning", summary: PAYLOADS[1]!, evidence: { [PAYLOADS[0]!.slice(0, 100)]: PAYLOADS[2]! } },
    { definitionId: "jira-fix", deliveryId: PAYLOADS[3]!.slice(0, 100) },
  );
  const { cookie } = await it.signIn("admin");
  for (const path of [`/workflows/${id}`, `/ui/workflows/${id}`]) {
    const { html, status } = await it.get(path, { cookie });
    expect([path, status, intrudersOf(html)]).toEqual([path, 200, []]);
  }
});
