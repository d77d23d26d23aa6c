// Cost, settings, webhooks and search in Chromium: looks in every theme and width, acts, live updates, keys, and what works without script.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { storeWork } from "../../src/cli/hub-store.ts";
import * as messages from "../../src/hub/messages.ts";
import * as upkeep from "../../src/hub/upkeep.ts";
import * as arrivals from "../../src/hub/webhook-arrivals.ts";
import { LIVELY, liven } from "../support/lively.ts";
import { hook } from "../support/webhooks.ts";
import { ARTIFACTS, CHROMIUM, isLive, launch } from "./browser.ts";
import { findings, type ServedDashboard, serveDashboard, sideways } from "./dashboard.ts";

const AFTERNOON = Date.UTC(2026, 10, 30, 14, 2, 10);
setDefaultTimeout(120_000);

const pagesOf = (endpoint: string): readonly (readonly [name: string, path: string])[] => [
  ["cost", `/cost?project=${LIVELY}&days=30`],
  ["cost-today", "/cost?days=1&by=machine"],
  ["cost-budget", `/cost?project=${LIVELY}&act=budget`],
  ["settings", "/settings"],
  ["settings-retention", "/settings?tab=retention"],
  ["settings-store", "/settings?tab=store"],
  ["webhooks", `/webhooks?project=${LIVELY}`],
  ["webhooks-incoming", "/webhooks/incoming"],
  ["search", `/search?q=ledger`],
  ["search-kind", `/search?project=${LIVELY}&q=kind:message+from:implementer`],
  ["webhook", `/webhooks/${endpoint}?act=disable`],
];
/** What axe looks at per view: it takes longer than everything else. */
const VIEWS = [
  { name: "light", width: 1440, colorScheme: "light", checked: () => true },
  { name: "dark", width: 1440, colorScheme: "dark", checked: (page: string) => ["cost", "settings-store", "webhooks-incoming"].includes(page) },
  {
    name: "phone",
    width: 360,
    colorScheme: "dark",
    checked: (page: string) => ["cost", "settings-store", "settings-retention", "webhooks", "webhooks-incoming", "search"].includes(page),
  },
] as const;

/** Gives the hub work on its store that goes on until the test ends it. */
function slowWork({ world: { hub } }: ServedDashboard) {
  const made = Promise.withResolvers<{ file: string; bytes: number; rows: number; damaged: number }>();
  const tells: upkeep.OnProgress[] = [];
  hub.storeWork.backUp = (told) => {
    tells.push(told);
    return made.promise;
  };
  return { made, tell: (...told: Parameters<upkeep.OnProgress>) => tells.at(-1)!(...told) };
}
const ended = async ({ world: { hub } }: ServedDashboard) => {
  while (await hub.engine.read.upkeep.running()) await new Promise((turn) => setImmediate(turn));
};

const flash = (page: Page) => page.locator("#flash .flash").last();

describe.skipIf(!CHROMIUM)("cost, settings, webhooks and search in Chromium", () => {
  let browser: Browser;
  let hub: ServedDashboard;
  let hooked: Awaited<ReturnType<typeof hook>>;
  beforeAll(async () => {
    [browser, hub] = await Promise.all([launch(), serveDashboard()]);
    hub.world.clock.now = AFTERNOON;
    await liven(hub.world.hub, hub.world.clock);
    hub.world.hub.storeWork = storeWork(
      { databaseUrl: undefined, dataPath: hub.world.location, stateDir: hub.world.location.replace("kxm.db", "state") },
      hub.world.hub.clock,
    );
    hooked = await hook(hub.world, LIVELY);
    const by = { actor: "ses_a", role: "admin" };
    for (const kind of ["backup", "verify"] as const) await (await upkeep.start(hub.world.hub, by, kind)).settled;
    const { cookie, csrf } = await hub.world.signIn("operator");
    for (const [of, period, amount] of [
      [LIVELY, "day", "20"],
      [LIVELY, "month", "220"],
      ["identity-platform", "day", "5"],
      ["", "month", "900"],
    ] as const)
      await hub.world.post("/cost/budgets", { csrf, of, period, amount, currency: "USD" }, { cookie });
  });
  afterAll(async () => {
    await browser?.close();
    await hub?.[Symbol.asyncDispose]();
  });

  for (const { name, width, colorScheme, checked } of VIEWS)
    test(`every page, ${name}: nothing complains, nothing scrolls sideways, axe finds nothing`, async () => {
      const { page, complaints, close } = await hub.visit(browser, "/start", { viewport: { width, height: 900 }, colorScheme, role: "admin" });
      for (const [what, path] of pagesOf(hooked.endpoints[1]!)) {
        await page.goto(`${hub.url}${path}`);
        expect([what, Math.max(0, await sideways(page))]).toEqual([what, 0]);
        await page.screenshot({ path: join(ARTIFACTS, `upkeep-${what}-${name}.png`), fullPage: true });
        if (checked(what)) expect([what, await findings(page)]).toEqual([what, []]);
      }
      expect(complaints).toEqual([]);
      await close();
    });

  test("a budget is set in a dialog, is on another page at once, and is removed without script", async () => {
    const [mine, others] = await Promise.all([hub.visit(browser, "/cost"), hub.visit(browser, "/cost", { role: "viewer" })]);
    await Promise.all([isLive(mine.page), isLive(others.page)]);
    await mine.page.getByRole("link", { name: "Set a budget…" }).click();
    const dialog = mine.page.locator("dialog[open]");
    await dialog.getByLabel("For").selectOption("");
    await dialog.getByLabel("Amount").fill("none");
    await dialog.getByRole("button", { name: "Set the budget" }).click();
    await dialog.locator(".told").getByText("The amount is a number").waitFor();
    await dialog.getByLabel("Amount").fill("0.5");
    await dialog.getByRole("button", { name: "Set the budget" }).click();
    await flash(mine.page).getByText("All projects may cost $0.50 a day.").waitFor();
    const row = others.page.locator(".budget", { hasText: "All projects, day" });
    await row.getByText("used up").waitFor();
    expect(await others.page.getByText("Remove…").count()).toBe(0);
    expect([...mine.complaints.filter((line) => !line.includes("400")), ...others.complaints]).toEqual([]);
    await Promise.all([mine.close(), others.close()]);
    const plain = await hub.visit(browser, "/cost", { javaScriptEnabled: false });
    await plain.page.locator(".budget", { hasText: "All projects, day" }).getByRole("link", { name: "Remove…" }).click();
    await plain.page.getByRole("button", { name: "Remove the budget" }).click();
    await plain.page.locator(".flash", { hasText: "is removed" }).waitFor();
    expect(await plain.page.locator(".budget", { hasText: "All projects, day" }).count()).toBe(0);
    await plain.close();
  });

  test("a backup that is started on one page is on the others while it runs, and its outcome when it is done", async () => {
    const { made, tell } = slowWork(hub);
    const open = (role: "admin" | "viewer") => hub.visit(browser, "/settings?tab=store", { role });
    const [mine, others] = await Promise.all([open("admin"), open("viewer")]);
    await Promise.all([isLive(mine.page), isLive(others.page)]);
    await mine.page.getByRole("button", { name: "Back up now" }).press("Enter");
    await flash(mine.page).getByText("The backup has begun.").waitFor();
    await others.page.getByText("Backup: beginning").waitFor();
    expect(await mine.page.getByRole("button", { name: "Verify now" }).count()).toBe(0);
    tell("copy", 30_000_000, 100_000_000);
    for (const { page } of [mine, others]) await page.getByText("30.0 MB of 100.0 MB").waitFor();
    await mine.page.screenshot({ path: join(ARTIFACTS, "upkeep-settings-running-light.png"), fullPage: true });
    expect(await findings(mine.page)).toEqual([]);
    made.resolve({ file: "/backups/kxm-monday.db", bytes: 100_000_000, rows: 1_204_331, damaged: 0 });
    await ended(hub);
    for (const { page } of [mine, others]) await page.getByText("100.0 MB, 1,204,331 rows compared").waitFor();
    await mine.page.getByText("/backups/kxm-monday.db").waitFor();
    expect(await others.page.getByText("kxm-monday").count()).toBe(0);
    expect([...mine.complaints, ...others.complaints]).toEqual([]);
    await Promise.all([mine.close(), others.close()]);
  });

  test("what comes in is on the page at once, and an endpoint is disabled with its reason, also without script", async () => {
    const { page, complaints, close } = await hub.visit(browser, `/webhooks/incoming?project=${LIVELY}`, { role: "viewer" });
    await isLive(page);
    const before = await page.locator("[id^=arrival-]").count();
    const arrival = { project: LIVELY, definitionId: "nightly-audit", kind: "start", verified: true, deliveryId: "n-31" } as const;
    hub.world.hub.arrivals.note(arrival, { outcome: "ignored", reason: "nobody asked" });
    await arrivals.flush(hub.world.hub);
    await page.getByText("nobody asked").waitFor();
    expect(await page.locator("[id^=arrival-]").count()).toBe(before + 1);
    expect(complaints).toEqual([]);
    await close();
    const plain = await hub.visit(browser, `/webhooks/${hooked.endpoints[1]}`, { role: "admin", javaScriptEnabled: false });
    await plain.page.getByRole("link", { name: "Disable…" }).click();
    await plain.page.getByLabel("Reason").fill("answers 503 since Monday");
    await plain.page.getByRole("button", { name: "Disable the endpoint" }).click();
    await plain.page.locator(".head").getByText("answers 503 since Monday").waitFor();
    await plain.page.getByRole("button", { name: "Enable" }).click();
    await plain.page.locator(".flash", { hasText: "told of events again" }).waitFor();
    await plain.close();
  });

  test("a search completes what is typed by key alone, counts what it finds, and shows what comes in", async () => {
    const { page, complaints, close } = await hub.visit(browser, `/search?project=${LIVELY}`);
    await isLive(page);
    await page.keyboard.press("/");
    await page.keyboard.type("kind:message from:imp");
    await page.locator("[role=option]", { hasText: "from:implementer" }).waitFor();
    await page.screenshot({ path: join(ARTIFACTS, "upkeep-search-completion-light.png") });
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Tab");
    await page.locator(".suggest__option").waitFor({ state: "detached" });
    await page.keyboard.press("Enter");
    await page.locator(".hits > li").first().waitFor();
    expect(await page.locator(".qchip__v").allInnerTexts()).toEqual(["message", "implementer"]);
    await page.goto(`${hub.url}/search?project=${LIVELY}&q=okapi`);
    await isLive(page);
    await page.getByText("Nothing fits.").waitFor();
    const { agents } = hub.world.hub.engine.read;
    const [planner, reviewer] = [(await agents.findByName(LIVELY, "planner"))!, (await agents.findByName(LIVELY, "reviewer"))!];
    const request = { target: reviewer.id, content: "an okapi", delivery: "followUp", hops: 1, maxHops: 5, allowOffline: true } as const;
    await hub.world.hub.engine.write(LIVELY, (tx) => messages.send(tx, planner, request, 3_600_000));
    await page.locator(".hits mark", { hasText: "okapi" }).waitFor();
    expect(await page.locator(".facets a", { hasText: "Messages" }).textContent()).toMatch(/Messages\s*1/);
    expect(complaints).toEqual([]);
    await close();
  });
});
