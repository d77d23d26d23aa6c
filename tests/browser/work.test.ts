// Runs, approvals, leases, machines and sync in Chromium: looks, live updates, acts, keys, phones, and what works without script.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import {
  APPROVAL,
  asks,
  beat,
  ended,
  fixing,
  JIRA_FIX,
  moving,
  pushRun,
  queued,
  type Registered,
  refunds,
  register,
  standInLine,
  take,
  uncertain,
} from "../support/lived-in.ts";
import { HASH, OTHER_RUNTIME, PROJECT_ID, RUNTIME, syncEvent } from "../support/sync-events.ts";
import { withWorkflows } from "../support/workflows.ts";
import { ARTIFACTS, CHROMIUM, isLive, launch } from "./browser.ts";
import { findings, type ServedDashboard, serveDashboard, sideways } from "./dashboard.ts";

const LIVE_MS = 500;
const REFUNDS = "run_5b1ec07d2f9a4b1e8c3377a0e9d4c07d";
const UNCERTAIN = "run_e04caabb8812";
const runPage = (runId: string) => `/runs/${PROJECT_ID}/${runId}?project=shop`;
const outbox = (more: Record<string, unknown> = {}) => ({
  projectId: PROJECT_ID,
  name: "payments-api",
  state: "ok",
  pending: 0,
  acked: 12_408,
  refused: {},
  ...more,
});
const report = {
  startedAt: "2026-01-02T01:00:00Z",
  outbox: [outbox()],
  slots: { running: 3, queued: 1, total: 3 },
  harnesses: [{ id: "claude", version: "2.1.0", state: "ready" }],
};
setDefaultTimeout(120_000);

type Scene = { agents: Record<string, Registered>; workflow: string; conflict: string };

/** A day's work: what every page below is about. */
async function scene({ world }: ServedDashboard): Promise<Scene> {
  const it = await withWorkflows(world, JIRA_FIX);
  const workflow = await fixing(it);
  const agents: Record<string, Registered> = {};
  for (const name of ["migration-runner", "implementer", "release-captain", "payments-ledger-double-entry-reconciliation-specialist-02"])
    agents[name] = await register(world, name);
  await beat(world, {
    runtimeId: OTHER_RUNTIME,
    host: "laptop-m3",
    version: "0.9.8",
    report: { outbox: [outbox({ pending: 214, state: "blocked", lastError: "connect ECONNREFUSED" })] },
  });
  await pushRun(world, "run_0be75d21aa5d21", moving(world.clock.now, "Reconcile November statements"), { runtimeId: OTHER_RUNTIME });
  world.clock.now += 184_000;
  const { now } = world.clock;
  await beat(world, { report });
  await pushRun(world, "run_4410aabbee07", ended(now, "Bump tzdata", "failed", 65));
  await pushRun(world, "run_a3f1aabb9b0c", queued(now));
  await pushRun(world, UNCERTAIN, uncertain(now));
  await pushRun(world, "run_77aaccdd02f4", moving(now));
  await pushRun(world, REFUNDS, refunds(now));
  await pushRun(world, "run_91aabbcc7c3e", [
    ...moving(now, "Migrate identity tables, batch 7 of 9"),
    asks("apr_migrate0000001", HASH, "Run migration 0042_refund_entries.sql on staging?", now, "panel"),
  ]);
  const other = syncEvent(24, {
    runId: REFUNDS,
    homeRuntimeId: OTHER_RUNTIME,
    type: "step.outcome_recorded",
    payload: { stepId: "unit", stepAttempt: 1, status: "passed", outcome: "passed", summary: "all tests passed\u202e" },
  });
  await world.call("POST", "/v1/sync/events", { body: { project: "shop", runtimeId: OTHER_RUNTIME, events: [other] } });
  await take(world, agents["migration-runner"]!, "db:migrations", 300_000);
  await take(world, agents["implementer"]!, "file:services/payments/internal/ledger/generated/schema.snapshot.json", 600_000);
  await standInLine(world, agents["release-captain"]!, "db:migrations");
  await standInLine(world, agents["payments-ledger-double-entry-reconciliation-specialist-02"]!, "db:migrations");
  world.clock.now += 12_000;
  await beat(world, { report });
  const [conflict] = await world.hub.engine.read.conflicts.openPage("shop", "~", 1);
  return { agents, workflow, conflict: conflict!.id };
}

const pagesOf = ({ workflow, conflict }: Scene): readonly (readonly [name: string, path: string])[] => [
  ["leases", "/leases?project=shop"],
  ["lease", "/leases/db%3Amigrations?project=shop"],
  ["runs", "/runs?project=shop&view=all"],
  ["run", runPage(REFUNDS)],
  ["run-uncertain", runPage(UNCERTAIN)],
  ["workflow-run", `/workflows/${workflow}?project=shop`],
  ["approvals", "/approvals?project=shop"],
  ["approval", `/approvals/${APPROVAL}?project=shop`],
  ["runtimes", "/runtimes?project=shop"],
  ["runtime", `/runtimes/${RUNTIME}?project=shop`],
  ["sync", "/sync?project=shop"],
  ["sync-conflict", `/sync/${conflict}?project=shop`],
];
/** What axe looks at per view: it takes longer than everything else. */
const VIEWS = [
  { name: "light", width: 1440, colorScheme: "light", checked: () => true },
  { name: "dark", width: 1440, colorScheme: "dark", checked: () => false },
  { name: "phone", width: 360, colorScheme: "dark", checked: (page: string) => ["run-uncertain", "approvals", "sync-conflict"].includes(page) },
] as const;

/** Milliseconds from a change until the page shows it. */
async function shownAfter(change: Promise<unknown>, shown: () => Promise<unknown>): Promise<number> {
  await change;
  const began = performance.now();
  await shown();
  return performance.now() - began;
}
const flash = (page: Page) => page.locator("#flash .flash").last();

describe.skipIf(!CHROMIUM)("runs, approvals, leases, machines and sync in Chromium", () => {
  let browser: Browser;
  let hub: ServedDashboard;
  let it: Scene;
  beforeAll(async () => {
    [browser, hub] = await Promise.all([launch(), serveDashboard()]);
    it = await scene(hub);
  });
  afterAll(async () => {
    await browser?.close();
    await hub?.[Symbol.asyncDispose]();
  });

  for (const { name, width, colorScheme, checked } of VIEWS)
    test(`every page, ${name}: nothing complains, nothing scrolls sideways, axe finds nothing`, async () => {
      const { page, complaints, close } = await hub.visit(browser, "/leases", { viewport: { width, height: 900 }, colorScheme, role: "admin" });
      for (const [what, path] of pagesOf(it)) {
        await page.goto(`${hub.url}${path}`);
        expect([what, Math.max(0, await sideways(page))]).toEqual([what, 0]);
        await page.screenshot({ path: join(ARTIFACTS, `${what}-${name}.png`), fullPage: true });
        if (checked(what)) expect([what, await findings(page)]).toEqual([what, []]);
      }
      expect(complaints).toEqual([]);
      await close();
    });

  test("a change made through the API is on every screen within half a second", async () => {
    const { world } = hub;
    const { page, complaints, close } = await hub.visit(browser, "/leases?project=shop");
    const took: Record<string, number> = {};
    const watch = async (name: string, path: string, change: () => Promise<unknown>, text: string) => {
      await page.goto(`${hub.url}${path}`);
      await isLive(page);
      took[name] = await shownAfter(change(), () => page.locator("main", { hasText: text }).waitFor());
    };
    await watch("leases", "/leases?project=shop", () => take(world, it.agents["release-captain"]!, "env:staging"), "env:staging");
    await watch("runs", "/runs?project=shop", () => pushRun(world, "run_live000001", moving(world.clock.now, "Came in live")), "Came in live");
    const next = moving(world.clock.now).length + 1;
    await watch(
      "run",
      runPage("run_live000001"),
      () =>
        pushRun(
          world,
          "run_live000001",
          [{ type: "step.status_changed", payload: { stepId: "panel", status: "waiting", reason: "waits for the signal ci-result" } }],
          { from: next },
        ),
      "waits for the signal ci-result",
    );
    await watch(
      "approvals",
      "/approvals?project=shop",
      () =>
        pushRun(world, "run_live000002", [
          ...moving(world.clock.now, "Asks"),
          asks("apr_live00000001", HASH, "May it go live?", world.clock.now, "panel"),
        ]),
      "May it go live?",
    );
    await watch("runtimes", "/runtimes?project=shop", () => beat(world, { runtimeId: "rtm_newmachine0000", host: "studio" }), "studio");
    await watch(
      "sync",
      "/sync?project=shop",
      () =>
        world.call("POST", "/v1/sync/events", {
          body: { project: "shop", runtimeId: RUNTIME, events: [syncEvent(1, { runId: "run_live000002", payload: { summary: "other" } })] },
        }),
      "run_live000002 1",
    );
    await watch(
      "workflow",
      `/workflows/${it.workflow}?project=shop`,
      () =>
        hub.world.hub.engine.write("shop", async (tx) => {
          const row = (await tx.workflows.find(it.workflow))!;
          await tx.workflows.update({
            ...row,
            record: { ...row.record, waiting: { ...(row.record["waiting"] as object), summary: "CI was started again" } },
          });
          tx.append({ project: "shop", topic: "workflows", type: "waiting", subjectId: it.workflow, actor: "test", data: {} });
        }),
      "CI was started again",
    );
    // A busy machine may be late once; most of the screens may not.
    expect(Object.values(took).toSorted((a, b) => a - b)[3]).toBeLessThan(LIVE_MS);
    for (const [name, ms] of Object.entries(took)) expect([name, ms < 4 * LIVE_MS]).toEqual([name, true]);
    expect(complaints).toEqual([]);
    await close();
  });

  test("what is typed and chosen survives a live update, and a resolution is sent with its receipt in place", async () => {
    const { page, complaints, close } = await hub.visit(browser, runPage(UNCERTAIN));
    await isLive(page);
    await page.getByText("It happened: go on").click();
    await page.getByLabel("How you know").fill("saw the key at the prov");
    await pushRun(hub.world, UNCERTAIN, [{ type: "run.drive_opened", payload: { status: "blocked_uncertain" } }], { from: uncertain(0).length + 1 });
    await page.locator(".events__seq", { hasText: String(uncertain(0).length + 1) }).waitFor();
    expect(await page.getByLabel("How you know").inputValue()).toBe("saw the key at the prov");
    expect(await page.locator("input[value=mark-completed]").isChecked()).toBe(true);
    await page.getByLabel("How you know").pressSequentially("ider");
    await page.getByRole("button", { name: /^Resolve/ }).click();
    await flash(page).getByText("The machine is told what you found.").waitFor();
    await page.locator(".receipt", { hasText: "waits for build-01 to fetch it" }).waitFor();
    const { commands } = (await hub.world.call("GET", `/v1/runtime/commands?project=shop&runtimeId=${RUNTIME}`)).body;
    expect(commands.at(-1).payload).toMatchObject({ action: "mark-completed", reason: "saw the key at the provider" });
    expect(complaints).toEqual([]);
    await close();
  });

  test("a lease is taken away in a dialog, in place, and the first in line has it", async () => {
    await take(hub.world, it.agents["implementer"]!, "db:backfill", 300_000);
    await standInLine(hub.world, it.agents["migration-runner"]!, "db:backfill");
    const { page, complaints, close } = await hub.visit(browser, "/leases?project=shop");
    await isLive(page);
    const row = page.locator(".lease", { hasText: "db:backfill" });
    await row.getByText("Force release…").click();
    const dialog = page.locator("dialog[open]");
    expect(await dialog.locator("h2").textContent()).toBe("Force release token 1?");
    await dialog.getByLabel("Reason").fill("its machine is gone");
    await dialog.getByRole("button", { name: "Force release" }).click();
    await flash(page).getByText("was taken away, token 1").waitFor();
    await row.locator(".lease__name", { hasText: "token 2" }).waitFor();
    expect(await page.locator("dialog[open]").count()).toBe(0);
    expect(page.url()).toContain("/leases?project=shop");
    expect(complaints).toEqual([]);
    await close();
  });

  test("what fails in a dialog is said in it, survives updates of the page, and is gone when it opens again", async () => {
    await take(hub.world, it.agents["implementer"]!, "db:told", 300_000);
    const { page, close } = await hub.visit(browser, "/leases?project=shop");
    await isLive(page);
    const row = page.locator(".lease", { hasText: "db:told" });
    const dialog = page.locator("dialog[open]");
    await row.getByText("Force release…").click();
    await dialog.getByLabel("Reason").fill("its machine is gone");
    await dialog.locator("input[name=csrf]").evaluate((field) => field.setAttribute("value", "another page's"));
    await dialog.getByRole("button", { name: "Force release" }).click();
    await dialog.locator(".told .flash--bad").waitFor();
    expect(await page.locator("#flash .flash").count()).toBe(0);
    await page.screenshot({ path: join(ARTIFACTS, "work-dialog-told.png") });
    await take(hub.world, it.agents["implementer"]!, "db:another", 300_000);
    await page.locator(".lease", { hasText: "db:another" }).waitFor({ state: "attached" });
    expect(await dialog.locator(".told .flash--bad").count()).toBe(1);
    expect(await dialog.getByLabel("Reason").inputValue()).toBe("its machine is gone");
    await dialog.getByRole("button", { name: "Leave it" }).click();
    await row.getByText("Force release…").click();
    await dialog.waitFor();
    expect(await dialog.locator(".told .flash").count()).toBe(0);
    await close();
  });

  test("approvals are walked and decided with the keyboard alone", async () => {
    const { page, complaints, close } = await hub.visit(browser, "/approvals?project=shop");
    await isLive(page);
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    const current = page.locator(".item[aria-current=true]");
    const asked = await current.locator(".item__title").textContent();
    await page.keyboard.press("x");
    expect(await current.locator("[data-pick]").isChecked()).toBe(true);
    await page.keyboard.press("x");
    await page.keyboard.press("a");
    await flash(page).getByText("Approved").waitFor();
    await page.locator(".item--done", { hasText: asked! }).waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("r");
    await page.locator("dialog[open]").waitFor();
    await page.keyboard.type("wrong branch");
    expect(await page.locator("dialog[open] input[name=reason]").inputValue()).toBe("wrong branch");
    await page.keyboard.press("Enter");
    await flash(page).getByText("Rejected").waitFor();
    expect(complaints).toEqual([]);
    await close();
  });

  test("several runs are picked, cancelled with a reason, and each has its receipt", async () => {
    const { page, complaints, close } = await hub.visit(browser, "/runs?project=shop");
    await isLive(page);
    await page.keyboard.press("/");
    expect(await page.evaluate(() => document.activeElement?.id)).toBe("filter-q");
    await page.keyboard.press("Escape");
    for (const title of ["Upgrade OpenSSL", "Document the webhook"]) await page.locator("tr", { hasText: title }).locator("[data-pick]").check();
    await page.locator(".bulk").getByText("2 selected").waitFor();
    await pushRun(hub.world, "run_between0001", moving(hub.world.clock.now, "Came between"));
    await page.locator("tr", { hasText: "Came between" }).waitFor();
    expect(await page.locator("[data-pick]:checked").count()).toBe(2);
    await page.getByRole("button", { name: "Cancel…" }).click();
    await page.getByRole("heading", { name: "Cancel 2 runs?" }).waitFor();
    await page.getByLabel("Reason").fill("superseded");
    await page.getByRole("button", { name: "Cancel 2 runs" }).click();
    await page.getByRole("heading", { name: "What came of it" }).waitFor();
    await isLive(page);
    const { commands } = (await hub.world.call("GET", `/v1/runtime/commands?project=shop&runtimeId=${RUNTIME}`)).body;
    const cancel = commands.findLast((one: { kind: string }) => one.kind === "cancel"); // other tests cancel, too
    const result = { project: "shop", runtimeId: RUNTIME, state: "applied" };
    const took = await shownAfter(hub.world.call("POST", `/v1/runtime/commands/${cancel.id}/result`, { body: result }), () =>
      page.locator(`#command-${cancel.id}`, { hasText: "applied after" }).waitFor(),
    );
    expect(took).toBeLessThan(4 * LIVE_MS);
    expect(complaints).toEqual([]);
    await close();
  });

  test("new work is held, a conflict acknowledged and a quorum lowered, each in place", async () => {
    const { page, complaints, close } = await hub.visit(browser, `/runtimes/${RUNTIME}?project=shop`, { role: "admin" });
    await isLive(page);
    await page.locator("tr", { hasText: "payments-api" }).getByText("Pause…").click();
    await page.locator("dialog[open]").getByLabel("Reason").fill("release freeze");
    await page.locator("dialog[open]").getByRole("button", { name: "Hold new work" }).click();
    await page.locator(".item", { hasText: "Pause the project" }).waitFor();
    await page.goto(`${hub.url}/sync/${it.conflict}?project=shop`);
    await page.getByText("Acknowledge…").click();
    await page.locator("dialog[open]").getByLabel("What you found").fill("a restored backup");
    await page.locator("dialog[open]").getByRole("button", { name: "Acknowledge" }).click();
    await page.locator(".head .status", { hasText: "a restored backup" }).waitFor();
    await page.goto(`${hub.url}/workflows/${it.workflow}?project=shop`);
    await page.getByText("Degrade…").click();
    await page.locator("dialog[open]").getByLabel("Reason").fill("bob is ill");
    await page.locator("dialog[open]").getByRole("button", { name: "Allow it" }).click();
    await page.locator(".matrix", { hasText: "below the normal number" }).waitFor();
    expect(complaints).toEqual([]);
    await close();
  });

  test("without script a run is cancelled by a link, a form and a page that says what came of it", async () => {
    const { page, close } = await hub.visit(browser, runPage(REFUNDS), { javaScriptEnabled: false });
    await page.getByText("Cancel…").click();
    await page.locator("#here-cancel-reason").fill("no script here");
    await page
      .locator("main form:not(dialog form)", { has: page.locator("#here-cancel-reason") })
      .getByRole("button", { name: "Cancel the run" })
      .click();
    expect(await flash(page).textContent()).toContain("The machine is asked to stop the run.");
    expect(await page.locator(".item__why", { hasText: "no script here" }).count()).toBe(1);
    await page.getByText("Show folded time").click();
    expect(await page.getByText("Fold idle time").count()).toBe(1);
    await close();
  });
});
