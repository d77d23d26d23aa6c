// The pages of sync over a real hub: conflicts with both payloads, alerts, gaps, saying what was found, and that what was pushed is only text.
import { expect, test } from "bun:test";
import { type DashboardWorld, openDashboard } from "../support/dashboard.ts";
import { attributesOf, hrefOf, intrudersOf, textsOf } from "../support/html.ts";
import { beat, moving, pushRun } from "../support/lived-in.ts";
import { OTHER_RUNTIME, PROJECT_ID, RUNTIME, syncEvent, type Told } from "../support/sync-events.ts";
import { PAYLOADS } from "./payloads.ts";

const open = () => openDashboard({ settings: { rateLimit: undefined } });
const RUN = "run_conflict0001";

const push = (it: DashboardWorld, sequence: number, told: Told, { project = "shop", runtimeId = RUNTIME } = {}) =>
  it.call("POST", "/v1/sync/events", {
    body: { project, runtimeId, events: [syncEvent(sequence, { runId: RUN, homeRuntimeId: runtimeId, ...told })] },
  });

/** A run on build-01, and other bytes for its second event. */
async function conflicting(it: DashboardWorld, summary = "all tests passed"): Promise<string> {
  await beat(it);
  await beat(it, { runtimeId: OTHER_RUNTIME, host: "laptop-m3" });
  await pushRun(it, RUN, moving(it.clock.now, "Settle refunds"));
  it.clock.now += 30_000;
  await push(it, 4, { type: "step.outcome_recorded", payload: { stepId: "plan", stepAttempt: 1, status: "failed", summary } });
  const [conflict] = await it.hub.engine.read.conflicts.openPage("shop", "~", 1);
  return conflict!.id;
}

test("a conflict shows both payloads line by line, who stored and who pushed them, and what it means", async () => {
  await using it = await open();
  const id = await conflicting(it);
  const { cookie } = await it.signIn("viewer");
  const list = (await it.get("/sync", { cookie })).html;
  expect(textsOf(list, ".tabs a")).toEqual(["Conflicts 1", "Alerts 1", "Gaps 0"]);
  expect(hrefOf(list, "Same event, different bytes")).toBe(`/sync/${id}`);
  const { html } = await it.get(`/sync/${id}`, { cookie });
  expect(textsOf(html, "main p")[0]).toContain("The hub stored this event from build-01 at 03:04:05. At 03:04:35 build-01 sent other bytes");
  expect(textsOf(html, ".diff__head")[0]).toContain("Stored · build-01");
  expect(textsOf(html, ".diff__cell.is-del").join(" ")).toContain('"summary": " planned"');
  expect(textsOf(html, ".diff__cell.is-add").join(" ")).toContain('"summary": " all tests passed"');
  expect(textsOf(html, "#around-4 .status")).toEqual(["conflict other bytes came for it"]);
  expect(html).not.toContain("Acknowledge…");
});

test("what another project owns, and what lives on another Runtime, is refused without showing it", async () => {
  await using it = await open();
  await conflicting(it);
  await push(it, 90, {}, { runtimeId: OTHER_RUNTIME });
  await push(it, 4, { payload: { summary: "leaked?" } }, { project: "bank", runtimeId: OTHER_RUNTIME });
  const { cookie } = await it.signIn("operator", "bank");
  const titles = textsOf((await it.get("/sync", { cookie })).html, "tbody .cell-main a");
  expect(titles).toHaveLength(1);
  const [conflict] = await it.hub.engine.read.conflicts.openPage("bank", "~", 1);
  const { html } = await it.get(`/sync/${conflict!.id}`, { cookie });
  expect(textsOf(html, ".untrusted__text")[0]).toContain("leaked?");
  expect(html).not.toContain("planned");
  expect(html).not.toContain("Settle refunds");
  const [foreign] = await it.hub.engine.read.conflicts.openPage("shop", "~", 1);
  expect((await it.get(`/sync/${foreign!.id}`, { cookie })).status).toBe(404);
  const mine = (await it.get(`/sync/${foreign!.id}`, { cookie: (await it.signIn()).cookie })).html;
  expect(textsOf(mine, "h1")).toEqual(["A run that lives on another Runtime"]);
});

test("acknowledging needs what was found, closes the conflict and its alert, and is audited", async () => {
  await using it = await open();
  const id = await conflicting(it);
  const { cookie, csrf, id: session } = await it.signIn();
  const inline = (await it.get(`/sync/${id}?act=acknowledge`, { cookie })).html;
  expect(attributesOf(inline, "#sync-item > .section > .section__body > form", "action")).toEqual([`/sync/${id}/acknowledgement`]);
  await it.post(`/sync/${id}/acknowledgement`, { csrf, reason: " " }, { cookie });
  expect((await it.get(`/sync/${id}`, { cookie })).html).toContain("Reason is missing.");
  await it.post(`/sync/${id}/acknowledgement`, { csrf, reason: "restored an old backup" }, { cookie });
  const { html } = await it.get(`/sync/${id}`, { cookie });
  expect(textsOf(html, ".head .status")[0]).toContain("restored an old backup");
  expect(html).not.toContain("Acknowledge…");
  const list = (await it.get("/sync", { cookie })).html;
  expect(textsOf(list, ".tabs a")).toEqual(["Conflicts 0", "Alerts 0", "Gaps 0"]);
  expect(list).toContain("No conflict is open.");
  expect(textsOf((await it.get("/sync?state=all", { cookie })).html, "tbody tr")).toHaveLength(1);
  const entries = await it.hub.engine.read.audit.page({ actor: session }, undefined, 10);
  expect(
    entries
      .filter(({ reason }) => reason === "restored an old backup")
      .map(({ action }) => action)
      .toSorted(),
  ).toEqual(["acknowledged", "conflict_acknowledged"]);
});

test("both payloads are a file to keep", async () => {
  await using it = await open();
  const id = await conflicting(it);
  const { html } = await it.get(`/sync/${id}`, { cookie: (await it.signIn("viewer")).cookie });
  const [row] = JSON.parse((await it.get(hrefOf(html, "Export both")!, { cookie: (await it.signIn("viewer")).cookie })).html);
  expect([JSON.parse(row.stored).payload.summary, JSON.parse(row.refused).payload.summary]).toEqual(["planned", "all tests passed"]);
  expect((await it.get(`/sync/${id}/export/json`, { cookie: (await it.signIn("viewer", "bank")).cookie })).status).toBe(404);
});

test("an alert is shown with what the hub noted, and acknowledged by an operator of its project alone", async () => {
  await using it = await open();
  await beat(it);
  await push(it, 1, { homeRuntimeId: OTHER_RUNTIME });
  const [alert] = await it.hub.engine.read.alerts.openPage("shop", "~", 1);
  const path = `/sync/${alert!.id}`;
  const { cookie, csrf } = await it.signIn();
  const { html } = await it.get(path, { cookie });
  expect(textsOf(html, "h1")).toEqual(["A Runtime pushed events whose home is another Runtime"]);
  expect(hrefOf(html, "rtm_0123…4567")).toBe(`/runtimes/${RUNTIME}?project=shop`);
  for (const [role, project, status] of [
    ["viewer", null, 403],
    ["operator", "bank", 404],
  ] as const) {
    const other = await it.signIn(role, project);
    expect((await it.post(`${path}/acknowledgement`, { csrf: other.csrf, reason: "r" }, { cookie: other.cookie })).status).toBe(status);
  }
  expect((await it.hub.engine.read.alerts.find(alert!.id))!.acknowledgedAt).toBeNull();
  const answer = await it.post(`${path}/acknowledgement`, { csrf, reason: "a copied folder" }, { cookie, headers: { "hx-request": "true" } });
  expect([answer.status, answer.headers.get("hx-trigger")]).toEqual([200, "live:all"]);
  expect((await it.hub.engine.read.alerts.find(alert!.id))!.reason).toBe("a copied folder");
});

test("gaps name what is missing and what is held", async () => {
  await using it = await open();
  await beat(it);
  await pushRun(it, RUN, moving(it.clock.now, "Gappy"));
  const next = moving(it.clock.now).length + 1;
  await pushRun(it, RUN, [{}, {}], { from: next + 2 });
  const { html } = await it.get("/sync?tab=gaps", { cookie: (await it.signIn()).cookie });
  expect(textsOf(html, "tbody tr")[0]).toContain(`Gappy ${RUN} sequence ${next} 2 events, from ${next + 2} on build-01`);
  expect(hrefOf(html, "Gappy")).toBe(`/runs/${PROJECT_ID}/${RUN}`);
});

test("conflicts come in pages of fifty, newest first, each once", async () => {
  await using it = await open();
  await beat(it);
  await pushRun(
    it,
    RUN,
    Array.from({ length: 60 }, () => ({})),
  );
  for (let n = 1; n <= 60; n++) await push(it, n, { payload: { summary: `other ${n}` } });
  const { cookie } = await it.signIn();
  const first = (await it.get("/sync", { cookie })).html;
  const second = (await it.get(hrefOf(first, "Older")!, { cookie })).html;
  const ids = [...attributesOf(first, "tbody tr", "id"), ...attributesOf(second, "tbody tr", "id")];
  expect([ids.length, new Set(ids).size]).toEqual([60, 60]);
  expect(ids).toEqual(ids.toSorted().toReversed());
});

test("what was pushed is only text, in the diff and in full", async () => {
  await using it = await open();
  const { cookie } = await it.signIn();
  await conflicting(it);
  for (const payload of PAYLOADS)
    await push(it, 4, {
      type: "step.outcome_recorded",
      payload: { stepId: "plan", stepAttempt: 1, status: "failed", summary: payload.slice(0, 900) },
    });
  const rows = await it.hub.engine.read.conflicts.openPage("shop", "~", 100);
  expect(rows.length).toBe(PAYLOADS.length + 1);
  for (const path of ["/sync", "/ui/sync?tab=alerts", ...rows.map(({ id }) => `/sync/${id}`)]) {
    const { html, status } = await it.get(path, { cookie });
    expect([path, status, intrudersOf(html).filter((name) => name !== "b")]).toEqual([path, 200, []]);
  }
});
