// The inbox of approvals over a real hub: what is asked, decisions bound to the hash that was shown, one and many, and their receipts.
import { expect, test } from "bun:test";
import { type DashboardWorld, openDashboard } from "../support/dashboard.ts";
import { attributesOf, hrefOf, intrudersOf, textsOf } from "../support/html.ts";
import { APPROVAL, asks, beat, CONTENT_HASH, ended, moving, pushRun, refunds } from "../support/lived-in.ts";
import { HASH, OTHER_RUNTIME, RUNTIME } from "../support/sync-events.ts";
import { PAYLOADS } from "./payloads.ts";

const open = () => openDashboard({ settings: { rateLimit: undefined } });
const RUN = "run_5b1ec07d2f9a4b1e8c33";
const OTHER_HASH = `sha256:${"ab".repeat(32)}`;

/** A run that asks, on a machine that answers. */
async function asking(it: DashboardWorld): Promise<void> {
  await beat(it);
  await pushRun(it, RUN, refunds(it.clock.now));
}
/** What the Runtime does with the newest command: fetches it and says what came of it. */
async function settle(it: DashboardWorld, state: "received" | "applied" | "refused", reason?: string) {
  const { body } = await it.call("GET", `/v1/runtime/commands?project=shop&runtimeId=${RUNTIME}`);
  const [command] = body.commands;
  const result = { project: "shop", runtimeId: RUNTIME, state, ...(reason !== undefined && { reason }) };
  const answer = await it.call("POST", `/v1/runtime/commands/${command.id}/result`, { body: result });
  expect(answer.status).toBe(200);
  return command;
}

test("the inbox shows exactly what is asked, by whom and under which hash", async () => {
  await using it = await open();
  await asking(it);
  const { html } = await it.get("/approvals", { cookie: (await it.signIn()).cookie });
  expect(textsOf(html, ".item__title")).toEqual(["Push 3 commits to payments-api main?"]);
  expect(textsOf(html, ".code")[0]).toContain("git push --force-with-lease=refs/heads/main:8b1f04e");
  expect(textsOf(html, ".shown__head")[0]).toContain("sha256 9f2c 41ab 77d0 1e05 …");
  expect(attributesOf(html, "input[name=contentHash]", "value")).toEqual([CONTENT_HASH, CONTENT_HASH]);
  expect(textsOf(html, "#nav-places .nav__count--attn")).toEqual(["1"]);
});

test("a decision carries the hash, is audited, and shows how far it got", async () => {
  await using it = await open();
  await asking(it);
  const { cookie, csrf, id } = await it.signIn();
  const answer = await it.post(
    `/approvals/${APPROVAL}/decision`,
    { csrf, decision: "approve", contentHash: CONTENT_HASH },
    { cookie, headers: { "hx-request": "true" } },
  );
  expect([answer.status, answer.headers.get("hx-trigger"), answer.headers.get("hx-reswap")]).toEqual([200, "live:all", "none"]);
  expect(textsOf(answer.html, ".flash--ok")[0]).toContain("Approved apr_77c0…ab34.");
  const receipt = async () => textsOf((await it.get("/approvals", { cookie })).html, ".receipt li");
  expect(await receipt()).toEqual(["sent 03:04:05", "waits for build-01 to fetch it, sent 0 s ago"]);
  const command = await settle(it, "received");
  expect(command.payload).toEqual({ approvalId: APPROVAL, contentHash: CONTENT_HASH });
  expect((await receipt()).slice(1)).toEqual(["received by build-01 after 0 ms", "being applied"]);
  await settle(it, "applied");
  expect((await receipt()).slice(2)).toEqual(["applied after 0 ms"]);
  const [entry] = await it.hub.engine.read.audit.page({ actor: id, action: "approved" }, undefined, 5);
  expect([entry!.subjectId, entry!.role, entry!.origin]).toEqual([APPROVAL, "operator", "dashboard"]);
  expect((await it.get("/approvals", { cookie })).html).toContain("Nothing waits on you.");
});

test("a refused decision is asked again, and says why it was refused", async () => {
  await using it = await open();
  await asking(it);
  const { cookie, csrf } = await it.signIn();
  await it.post(`/approvals/${APPROVAL}/decision`, { csrf, decision: "approve", contentHash: CONTENT_HASH }, { cookie });
  await settle(it, "refused", "content hash is c3d8 <b>");
  const { html } = await it.get("/approvals", { cookie });
  expect(textsOf(html, ".receipt .is-bad")).toEqual(["refused: content hash is c3d8 <b>"]);
  expect(html).toContain("asked again");
  expect(textsOf(html, "#approvals button[type=submit]")).toContain("Approve a");
});

test("content that changed after it was opened is not decided, and the page shows what is asked now", async () => {
  await using it = await open();
  await asking(it);
  const { cookie, csrf } = await it.signIn();
  const next = refunds(it.clock.now).length + 1;
  await pushRun(it, RUN, [asks(APPROVAL, OTHER_HASH, "Push 4 commits to main?", it.clock.now)], { from: next });
  const form = { csrf, decision: "approve", contentHash: CONTENT_HASH };
  for (const headers of [{}, { "hx-request": "true" }] as Record<string, string>[]) {
    const answer = await it.post(`/approvals/${APPROVAL}/decision`, form, { cookie, headers });
    const to = answer.headers.get("location") ?? answer.headers.get("hx-redirect");
    expect(to).toBe(`/approvals/${APPROVAL}?seen=${encodeURIComponent(CONTENT_HASH.slice(0, 23))}`);
    const { html } = await it.get(to!, { cookie });
    expect(textsOf(html, ".notice")[0]).toContain("The content changed after you opened it. Nothing was decided.");
    expect(textsOf(html, ".flash--bad")).toHaveLength(1);
    expect(textsOf(html, ".code")).toEqual(["Push 4 commits to main?"]);
    expect(attributesOf(html, "input[name=contentHash]", "value")[0]).toBe(OTHER_HASH);
  }
  expect((await it.call("GET", `/v1/runtime/commands?project=shop&runtimeId=${RUNTIME}`)).body.commands).toEqual([]);
});

test("several are decided at once, each with its own outcome on a page that can be reloaded", async () => {
  await using it = await open();
  await asking(it);
  await pushRun(it, "run_second00001", [...moving(it.clock.now, "Second"), asks("apr_second00001", HASH, "May it?", it.clock.now, "panel")]);
  await pushRun(it, "run_third000001", [...moving(it.clock.now, "Third"), asks("apr_third000001", HASH, "And this?", it.clock.now, "panel")]);
  const { cookie, csrf } = await it.signIn();
  const { html } = await it.get("/approvals", { cookie });
  const picks = attributesOf(html, "input[name=pick]", "value") as string[];
  expect(picks).toHaveLength(3);
  await pushRun(it, "run_third000001", [asks("apr_third000001", OTHER_HASH, "And that?", it.clock.now, "panel")], {
    from: moving(it.clock.now).length + 2,
  });
  const body = new URLSearchParams([["csrf", csrf], ["decision", "approve"], ...picks.map((pick) => ["pick", pick] as [string, string])]);
  const headers = { cookie, "content-type": "application/x-www-form-urlencoded" };
  const answer = await it.app.handle(new Request("http://127.0.0.1:7331/approvals/decisions", { method: "POST", headers, body: body.toString() }));
  const to = answer.headers.get("location")!;
  expect(to).toStartWith("/approvals/outcome?decision=approve&pick=");
  await settle(it, "applied");
  for (let look = 0; look < 2; look++) {
    const outcome = (await it.get(to, { cookie })).html;
    expect(textsOf(outcome, "h1")).toEqual(["Approved 2 of 3"]);
    expect(textsOf(outcome, ".receipt .is-done").filter((text) => text.startsWith("applied"))).toHaveLength(1);
    expect(textsOf(outcome, "#approval-apr_third000001 .item__why")[0]).toContain("the content changed after you opened it");
    expect(hrefOf(outcome, "See the new content")).toContain("/approvals/apr_third000001?seen=");
  }
});

test("rejecting asks for a reason: one, several, and without script", async () => {
  await using it = await open();
  await asking(it);
  const { cookie, csrf } = await it.signIn();
  const pick = `${APPROVAL} ${CONTENT_HASH}`;
  const question = await it.post("/approvals/decisions", { csrf, decision: "reject", pick }, { cookie });
  expect(question.headers.get("location")).toStartWith("/approvals/reject?decision=reject&pick=");
  const page = await it.get(question.headers.get("location")!, { cookie });
  expect(attributesOf(page.html, "main form input[name=pick]", "value")).toEqual([pick]);
  const inline = await it.get(`/approvals/${APPROVAL}?act=reject`, { cookie });
  expect(attributesOf(inline.html, "#approval > .section > .section__body > form", "action")).toEqual([`/approvals/${APPROVAL}/decision`]);
  const form = { csrf, decision: "reject", contentHash: CONTENT_HASH };
  await it.post(`/approvals/${APPROVAL}/decision`, form, { cookie });
  expect((await it.get("/approvals", { cookie })).html).toContain("Reason is missing.");
  await it.post(`/approvals/${APPROVAL}/decision`, { ...form, reason: "wrong branch" }, { cookie });
  expect((await it.call("GET", `/v1/runtime/commands?project=shop&runtimeId=${RUNTIME}`)).body.commands[0].payload.reason).toBe("wrong branch");
});

test("deciding needs an operator of the project", async () => {
  await using it = await open();
  await asking(it);
  const form = { decision: "approve", contentHash: CONTENT_HASH };
  const [viewer, other] = [await it.signIn("viewer"), await it.signIn("operator", "bank")];
  expect((await it.post(`/approvals/${APPROVAL}/decision`, { ...form, csrf: viewer.csrf }, { cookie: viewer.cookie })).status).toBe(403);
  expect((await it.get("/approvals", { cookie: viewer.cookie })).html).not.toContain("Reject…");
  expect((await it.get(`/approvals/${APPROVAL}`, { cookie: other.cookie })).status).toBe(404);
  await it.post(`/approvals/${APPROVAL}/decision`, { ...form, csrf: other.csrf }, { cookie: other.cookie });
  expect((await it.hub.engine.read.approvals.find(APPROVAL))!.status).toBe("pending");
});

test("a machine that is away keeps the decision waiting, and the inbox says so", async () => {
  await using it = await open();
  await beat(it, { runtimeId: OTHER_RUNTIME, host: "laptop-m3" });
  await pushRun(it, RUN, refunds(it.clock.now), { runtimeId: OTHER_RUNTIME });
  it.clock.now += 180_000;
  const { html } = await it.get("/approvals", { cookie: (await it.signIn()).cookie });
  expect(textsOf(html, ".item .status")).toEqual(["lost contact machine last seen 3 min ago"]);
});

test("a run that ends asks nothing any more", async () => {
  await using it = await open();
  await asking(it);
  await pushRun(it, RUN, ended(it.clock.now, "x", "cancelled").slice(-1), { from: refunds(it.clock.now).length + 1 });
  const { cookie, csrf } = await it.signIn();
  expect((await it.get("/approvals?view=cancelled", { cookie })).html).toContain("Not asked any more");
  await it.post(`/approvals/${APPROVAL}/decision`, { csrf, decision: "approve", contentHash: CONTENT_HASH }, { cookie });
  expect(textsOf((await it.get("/approvals", { cookie })).html, ".flash--bad")[0]).toContain("does not ask for this any more");
});

test("the inbox comes in pages of fifty, longest wait first, over all projects", async () => {
  await using it = await open();
  for (let n = 0; n < 60; n++) {
    it.clock.now += 1_000;
    const id = String(n).padStart(8, "0");
    const told = [...moving(it.clock.now).slice(0, 2), asks(`apr_page${id}`, HASH, `Question ${n}?`, it.clock.now, "panel")].map((one) => ({
      ...one,
      projectId: `prj_page${n % 2}00000`,
    }));
    await pushRun(it, `run_page${id}`, told, { project: n % 2 ? "shop" : "bank" });
  }
  const { cookie } = await it.signIn();
  const first = (await it.get("/approvals", { cookie })).html;
  const second = (await it.get(hrefOf(first, "Older")!, { cookie })).html;
  const seen = [...textsOf(first, ".item__title"), ...textsOf(second, ".item__title")];
  expect(seen).toEqual(Array.from({ length: 60 }, (_, n) => `Question ${n}?`));
  expect(textsOf((await it.get("/approvals", { cookie: (await it.signIn("viewer", "bank")).cookie })).html, ".item__title")).toHaveLength(30);
});

test("what waits and what was decided is a file to keep", async () => {
  await using it = await open();
  await asking(it);
  const { cookie } = await it.signIn();
  const [row] = JSON.parse((await it.get("/approvals/export/json", { cookie })).html);
  expect([row.id, row.contentHash, row.status]).toEqual([APPROVAL, CONTENT_HASH, "pending"]);
  expect(JSON.parse((await it.get("/approvals/export/json?view=decided", { cookie })).html)).toEqual([]);
});

test("what is asked, the title of its run and the name of its machine are only text", async () => {
  await using it = await open();
  const { cookie } = await it.signIn();
  const ids = PAYLOADS.map((_, index) => `apr_hostile${String(index).padStart(4, "0")}`);
  for (const [index, payload] of PAYLOADS.entries()) {
    const runtimeId = `rtm_hostile${String(index).padStart(4, "0")}`;
    await beat(it, { runtimeId, host: payload.slice(0, 60).trim() || "x" });
    const told = [
      { type: "run.created" as const, payload: { workflowId: "w", displayTitle: payload.slice(0, 190).trim(), status: "created" as const } },
      asks(ids[index]!, HASH, payload.slice(0, 900), it.clock.now, "panel"),
    ];
    await pushRun(it, `run_hostile${String(index).padStart(4, "0")}`, told, { runtimeId });
  }
  const picks = ids.map((id) => `pick=${id}`).join("&");
  const details = ids.slice(0, 12).map((id) => `/approvals/${id}?act=reject`);
  for (const path of [
    "/approvals",
    "/ui/approvals",
    `/approvals/outcome?decision=approve&${picks}`,
    `/approvals/reject?decision=reject&${picks}`,
    ...details,
  ]) {
    const { html, status } = await it.get(path, { cookie });
    expect([path, status, intrudersOf(html)]).toEqual([path, 200, []]);
  }
  expect(textsOf((await it.get("/approvals", { cookie })).html, ".item__title")).toHaveLength(PAYLOADS.length);
});
