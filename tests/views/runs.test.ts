// The list of runs over a real hub: both kinds in one order, views and filters in the address, starting and cancelling with their receipts.
import { expect, test } from "bun:test";
import { type DashboardWorld, openDashboard } from "../support/dashboard.ts";
import { attributesOf, hrefOf, intrudersOf, textsOf } from "../support/html.ts";
import { beat, ended, moving, pushRun, queued, refunds, uncertain } from "../support/lived-in.ts";
import { insertRaw } from "../support/raw-rows.ts";
import { OTHER_RUNTIME, PROJECT_ID, RUNTIME } from "../support/sync-events.ts";
import { DEFINITION, withWorkflows } from "../support/workflows.ts";
import { PAYLOADS } from "./payloads.ts";

const open = () => openDashboard({ settings: { rateLimit: undefined } });
const report = { outbox: [{ projectId: PROJECT_ID, name: "payments-api", state: "ok", pending: 0, acked: 9, refused: {} }] };

async function aDay(it: DashboardWorld): Promise<void> {
  const now = it.clock.now;
  await beat(it, { runtimeId: OTHER_RUNTIME, host: "laptop-m3" });
  await pushRun(it, "run_silent0001", moving(now, "Reconcile November"), { runtimeId: OTHER_RUNTIME });
  it.clock.now += 184_000;
  const later = it.clock.now;
  await beat(it, { report });
  await pushRun(it, "run_failed0001", ended(later, "Bump tzdata", "failed"));
  await pushRun(it, "run_done000001", ended(later, "Trim audit export", "completed"));
  await pushRun(it, "run_queued0001", queued(later));
  await pushRun(it, "run_uncert0001", uncertain(later));
  await pushRun(it, "run_refund0001", refunds(later));
}
const titles = (html: string) => textsOf(html, "tbody .cell-main a");
const row = (html: string, title: string) => textsOf(html, "tbody tr").find((text) => text.includes(title));

test("a filter's keys work as parameters, too, and a value it does not know is said with the one that was meant", async () => {
  await using it = await open();
  await aDay(it);
  const { cookie } = await it.signIn();
  const plain = await it.get("/runs?project=shop&status=completed&q=Trim&after=1.x", { cookie });
  expect([plain.status, plain.headers.get("location")]).toEqual([303, "/runs?project=shop&q=Trim+status%3Acompleted&after=1.x"]);
  const { html } = await it.get("/runs?project=shop&q=status%3Acompleted", { cookie });
  expect(titles(html)).toEqual(["Trim audit export"]);
  expect(hrefOf(html, "Moving 4")).toBe("/runs?project=shop&q=status%3Acompleted&view=moving");
  const mistyped = await it.get("/runs?project=shop&q=status%3Acompletd+kind%3Aghost", { cookie });
  expect(textsOf(mistyped.html, ".notice")).toEqual([
    "status:completd fits nothing. Did you mean status:completed?",
    "kind:ghost fits nothing. It is one of runtime, workflow.",
  ]);
  expect((await it.get("/runs?status=a%20b", { cookie })).status).toBe(200); // no word of a filter: left alone
  for (const path of ["/messages?status=replied", "/agents?machine=x", "/leases?holder=x", "/audit?who=x"]) {
    const answer = await it.get(path, { cookie });
    expect([path, answer.status, answer.headers.get("location")]).toEqual([path, 303, path.replace(/\?(\w+)=/, "?q=$1%3A")]);
  }
  const messages = await it.get("/messages?q=status%3Arepleid", { cookie });
  expect(textsOf(messages.html, ".notice")).toEqual(["status:repleid fits nothing. Did you mean status:replied?"]);
});

test("each run says its status, why and as of when, how far it is, where, since when and for how much", async () => {
  await using it = await open();
  await aDay(it);
  const { html } = await it.get("/runs?project=shop", { cookie: (await it.signIn()).cookie });
  expect(row(html, "Settle refunds")).toContain("needs you approval pending, for 12 min deliver, step 5 build-01 1 h 24 min $2.18");
  expect(row(html, "Rotate signing keys")).toContain("uncertain apply: 1 of 2 effects has a receipt, for 51 min");
  expect(row(html, "Document the webhook")).toContain("queued waits for one of 3 places, 1 min ago not started build-01 1 min –");
  expect(row(html, "Reconcile November")).toContain("running as of 3 min ago: laptop-m3 lost contact");
  expect(attributesOf(html, ".track .t-attn", "class")).toHaveLength(2); // the step that asks and the one nobody can prove
  expect(attributesOf(html, ".status--stale", "class")).toHaveLength(1);
  expect(titles(html)).not.toContain("Bump tzdata");
  expect(textsOf(html, ".tabs a")).toEqual(["Moving 4", "Waiting 2", "Failed 1", "Completed 1", "Cancelled 0", "All 6"]);
});

test("views and filters live in the address and fit together", async () => {
  await using it = await open();
  await aDay(it);
  const { cookie } = await it.signIn();
  const shown = async (query: string) => titles((await it.get(`/runs?${query}`, { cookie })).html).toSorted();
  expect(await shown("view=failed")).toEqual(["Bump tzdata"]);
  expect(await shown("view=waiting")).toEqual(["Rotate signing keys", "Settle refunds in the ledger"]);
  expect(await shown("q=status:completed")).toEqual(["Trim audit export"]);
  expect(await shown("q=runtime:laptop-m3")).toEqual(["Reconcile November"]);
  expect(await shown(`q=runtime:${OTHER_RUNTIME}+status:failed`)).toEqual([]);
  expect(await shown("q=workflow:quick&view=all")).toEqual(["Bump tzdata", "Trim audit export"]);
  expect(await shown("q=refunds")).toEqual(["Settle refunds in the ledger"]);
  expect(await shown("q=kind:workflow")).toEqual([]);
  expect(await shown("q=nothing:like+this")).toEqual([]);
});

test("hub workflow runs stand in the same list, in order of their newest change", async () => {
  await using it = await open();
  await beat(it);
  await pushRun(it, "run_before0001", moving(it.clock.now, "Before"));
  it.clock.now += 1_000;
  await (await withWorkflows(it)).start({ issue: { key: "PAY-1" } });
  it.clock.now += 1_000;
  await pushRun(it, "run_after00001", moving(it.clock.now, "After"));
  const { html } = await it.get("/runs", { cookie: (await it.signIn()).cookie });
  expect(titles(html)).toEqual(["After", DEFINITION.id, "Before"]);
  expect(row(html, "hub workflow")).toContain("build, 1 of 2 hub");
});

test("a list of thousands comes in pages of fifty, each run once, and costs the same", async () => {
  await using it = await open();
  const { projection } = (await seedRow(it))!;
  const rows = Array.from({ length: 5_000 }, (_, n) => ({
    ...{ project_id: "prj_many00000000", run_id: `run_many${String(n).padStart(6, "0")}`, project: "shop", home_runtime_id: RUNTIME },
    ...{ cursor: 1, held: 0, held_bytes: 0, first_received_at: n, last_received_at: Math.floor(n / 3), status: n % 2 ? "running" : "completed" },
    ...{ projection: JSON.stringify(projection), workflow_id: "many", display_title: `Run ${n}` },
  }));
  await insertRaw({ kind: "sqlite", location: it.location }, "sync_runs", rows);
  const { cookie } = await it.signIn();
  const seen: string[] = [];
  let slowest = 0;
  for (let href: string | null | undefined = "/runs?view=all&q=workflow:many"; href && seen.length < 400; ) {
    const began = performance.now();
    const { html } = await it.get(href, { cookie });
    slowest = Math.max(slowest, performance.now() - began);
    seen.push(...textsOf(html, "tbody .cell-main a"));
    href = hrefOf(html, "Older");
  }
  expect([seen.length, new Set(seen).size]).toEqual([400, 400]);
  expect(textsOf((await it.get("/runs", { cookie })).html, ".tabs a")[0]).toBe("Moving 1,000+");
  expect(slowest).toBeLessThan(500); // alone it takes about 30 ms; machines that test other things meanwhile are slower
});
/** A run whose projection serves as a sample. */
async function seedRow(it: DashboardWorld) {
  await pushRun(it, "run_sample0001", moving(it.clock.now, "sample"));
  return it.hub.engine.read.sync.findRun(PROJECT_ID, "run_sample0001");
}

test("the list is a file to keep, with the same view and filter", async () => {
  await using it = await open();
  await aDay(it);
  const { cookie } = await it.signIn("viewer", "shop");
  const { html } = await it.get("/runs?view=failed", { cookie });
  const rows = JSON.parse((await it.get(hrefOf(html, "JSON")!, { cookie })).html);
  expect(rows.map(({ runId, status, machine, cost }: Record<string, string>) => [runId, status, machine, cost])).toEqual([
    ["run_failed0001", "failed", "build-01", "$0.09"],
  ]);
  expect((await it.get("/runs/export/csv?view=all", { cookie })).html.split("\r\n")).toHaveLength(8);
  expect((await it.get("/runs/export/csv?view=all", { cookie: (await it.signIn("viewer", "bank")).cookie })).html.split("\r\n")).toHaveLength(2);
});

test("a run is started by asking its machine, and the page says what came of it", async () => {
  await using it = await open();
  await beat(it, { report });
  const { cookie, csrf } = await it.signIn();
  const form = (await it.get("/runs/new", { cookie })).html;
  expect(textsOf(form, "#start-place option")).toEqual(["payments-api on build-01"]);
  const [place] = attributesOf(form, "#start-place option", "value");
  const [key] = attributesOf(form, "input[name=key]", "value");
  const fields = { csrf, key: key!, place: place!, prompt: "Fix the <b>flaky</b> test", workflow: "quick-fix", title: "" };
  expect((await it.post("/runs/new", { ...fields, prompt: " " }, { cookie })).headers.get("location")).toStartWith("/runs/new");
  const answer = await it.post("/runs/new", fields, { cookie });
  const again = await it.post("/runs/new", fields, { cookie });
  const to = answer.headers.get("location")!;
  expect(to).toMatch(/^\/commands\?id=cmd_/);
  expect(again.headers.get("location")).toBe(to);
  const { body } = await it.call("GET", `/v1/runtime/commands?project=shop&runtimeId=${RUNTIME}`);
  expect(body.commands.map((one: { kind: string; projectId: string; payload: unknown }) => [one.kind, one.projectId, one.payload])).toEqual([
    ["start", PROJECT_ID, { prompt: "Fix the <b>flaky</b> test", workflowId: "quick-fix" }],
  ]);
  const applied = { project: "shop", runtimeId: RUNTIME, state: "applied", detail: { runId: "run_0123456789ab" } };
  await it.call("POST", `/v1/runtime/commands/${body.commands[0].id}/result`, { body: applied });
  const { html } = await it.get(to, { cookie });
  expect(textsOf(html, ".receipt li").at(-1)).toBe("applied after 0 ms");
  expect(hrefOf(html, "run_0123456789ab")).toBe(`/runs/${PROJECT_ID}/run_0123456789ab`);
  expect(html).not.toContain("flaky");
});

test("several runs are cancelled with one reason, each with its own receipt; ended ones are left out", async () => {
  await using it = await open();
  await aDay(it);
  const { cookie, csrf, id } = await it.signIn();
  const picks = ["run_refund0001", "run_queued0001", "run_done000001"].map((run) => `${PROJECT_ID}/${run}`);
  const body = (more: [string, string][]) =>
    new URLSearchParams([["csrf", csrf], ...picks.map((pick) => ["pick", pick] as [string, string]), ...more]).toString();
  const headers = { cookie, "content-type": "application/x-www-form-urlencoded" };
  const post = (more: [string, string][] = []) =>
    it.app.handle(new Request("http://127.0.0.1:7331/runs/cancel", { method: "POST", headers, body: body(more) }));
  const ask = (await post()).headers.get("location")!;
  const question = (await it.get(ask, { cookie })).html;
  expect(textsOf(question, "h1")).toEqual(["Cancel 3 runs?"]);
  expect(textsOf(question, "main button[type=submit]")).toEqual(["Cancel 2 runs"]);
  const to = (await post([["reason", "wrong branch"]])).headers.get("location")!;
  const { html } = await it.get(to, { cookie });
  expect(textsOf(html, ".item__title")).toHaveLength(2);
  expect(textsOf(html, ".flash--attn")[0]).toContain("1 left out.");
  expect(await it.hub.engine.read.audit.page({ actor: id, action: "command_sent" }, undefined, 5)).toHaveLength(2);
});

test("all runs that fit the list are cancelled after their number was confirmed; what has ended or is of another kind is left out", async () => {
  await using it = await open();
  await beat(it, { report });
  for (let n = 0; n < 52; n++) await pushRun(it, `run_fits000${String(n).padStart(3, "0")}`, queued(it.clock.now));
  await pushRun(it, "run_other00001", moving(it.clock.now, "Reconcile November"));
  await pushRun(it, "run_over000001", ended(it.clock.now, "Document the webhook, again", "completed"));
  const { cookie, csrf, id } = await it.signIn();
  const list = (await it.get("/runs?project=shop&view=all&q=Document", { cookie })).html;
  const question = (await it.get(hrefOf(list, "Cancel all that fit…")!, { cookie })).html;
  expect(textsOf(question, "h1")).toEqual(["Cancel 52 runs?"]);
  expect(textsOf(question, ".head__sub")[0]).toContain("all that fit the list and have not ended");
  expect(textsOf(question, "tbody tr")).toHaveLength(50);
  const picks = attributesOf(question, "main input[name=pick]", "value") as string[];
  expect(picks).toHaveLength(52);
  const body = new URLSearchParams([["csrf", csrf], ["reason", "superseded"], ...picks.map((pick) => ["pick", pick])]).toString();
  const headers = { cookie, "content-type": "application/x-www-form-urlencoded" };
  const done = await it.app.handle(new Request("http://127.0.0.1:7331/runs/cancel", { method: "POST", headers, body }));
  expect(done.headers.get("location")).toBe("/runs");
  expect(textsOf((await it.get("/runs", { cookie })).html, ".flash--ok")[0]).toStartWith("Cancelling 52 runs.");
  expect(await it.hub.engine.read.audit.page({ actor: id, action: "command_sent" }, undefined, 100)).toHaveLength(52);
});

test("starting and cancelling need an operator of the project", async () => {
  await using it = await open();
  await aDay(it);
  const [viewer, other] = [await it.signIn("viewer"), await it.signIn("operator", "bank")];
  const { html } = await it.get("/runs", { cookie: viewer.cookie });
  expect([html.includes("Start a run"), html.includes("Cancel…")]).toEqual([false, false]);
  for (const path of ["/runs/new", "/runs/cancel"]) expect((await it.get(path, { cookie: viewer.cookie })).status).toBe(403);
  const place = `shop/${RUNTIME}/${PROJECT_ID}`;
  await it.post("/runs/new", { csrf: other.csrf, place, prompt: "x" }, { cookie: other.cookie });
  await it.post("/runs/cancel", { csrf: other.csrf, pick: `${PROJECT_ID}/run_refund0001`, reason: "x" }, { cookie: other.cookie });
  expect((await it.call("GET", `/v1/runtime/commands?project=shop&runtimeId=${RUNTIME}`)).body.commands).toEqual([]);
  expect(titles((await it.get("/runs", { cookie: other.cookie })).html)).toEqual([]);
});

test("without a run the page teaches the first command", async () => {
  await using it = await open();
  const { html } = await it.get("/runs", { cookie: (await it.signIn()).cookie });
  expect(attributesOf(html, "[data-copy]", "data-copy")).toContain("kxm init && kxm run 'Fix the flaky test'");
});

test("what a Runtime calls its runs, steps, reasons and machines is only text", async () => {
  await using it = await open();
  const { cookie } = await it.signIn();
  const runs = PAYLOADS.map((_, index) => `run_hostile${String(index).padStart(4, "0")}`);
  for (const [index, payload] of PAYLOADS.entries()) {
    const runtimeId = `rtm_hostile${String(index).padStart(4, "0")}`;
    await beat(it, {
      runtimeId,
      host: payload.slice(0, 60).trim() || "x",
      report: { outbox: [{ ...report.outbox[0], name: payload.slice(0, 120) }] },
    });
    const told = [
      { type: "run.created" as const, payload: { workflowId: "w", displayTitle: payload.slice(0, 190).trim(), status: "created" as const } },
      { type: "run.status_changed" as const, payload: { status: "waiting" as const, reason: payload.slice(0, 900) } },
    ];
    await pushRun(it, runs[index]!, told, { runtimeId });
  }
  const pages = ["/runs?view=all", "/runs/new", `/runs?q=${encodeURIComponent(PAYLOADS[0]!)}`];
  const cancel = `/runs/cancel?${runs.map((run) => `pick=${PROJECT_ID}/${run}`).join("&")}`;
  for (const path of [...pages, ...pages.slice(0, 1).map((page) => `/ui${page}`), cancel]) {
    const { html, status } = await it.get(path, { cookie });
    expect([path, status, intrudersOf(html)]).toEqual([path, 200, []]);
  }
  expect(titles((await it.get("/runs", { cookie })).html)).toHaveLength(PAYLOADS.length);
});
