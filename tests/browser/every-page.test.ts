// Every page there is, in Chromium: nothing complains, nothing scrolls sideways, axe finds nothing, the keyboard reaches it, nothing moves that should
// not, everything that can be pressed without harm is pressed, every link leads somewhere; hostile text in every field; and what a long run costs.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Browser, CDPSession, Page } from "playwright-core";
import { canonical } from "../../src/protocol/canonical.ts";
import { SCREENS } from "../../src/views/screens.ts";
import { HOST } from "../support/dashboard.ts";
import { type Everything, fillEverything } from "../support/everything.ts";
import { attributesOf } from "../support/html.ts";
import { beat, moving, pushRun, type Registered, register, take } from "../support/lived-in.ts";
import { acknowledge, send } from "../support/mail.ts";
import { insertRaw } from "../support/raw-rows.ts";
import { HASH, PROJECT_ID, syncEvent } from "../support/sync-events.ts";
import { CANARY, PAYLOADS } from "../views/payloads.ts";
import { CHROMIUM, eventually, isLive, launch } from "./browser.ts";
import { findings, type ServedDashboard, serveDashboard, sideways } from "./dashboard.ts";

setDefaultTimeout(240_000);
/** Other tests let axe look at these in the same states. */
const AXE_ELSEWHERE = new Set([
  "/",
  "/start",
  "/agents",
  "/agents/:id",
  "/agents/:id/end",
  "/messages",
  "/messages/:id",
  "/messages/:id/cancel",
  "/messages/new",
]);
for (const path of ["/leases", "/leases/:name", "/runs", "/runs/:projectId/:runId", "/workflows/:runId", "/approvals", "/approvals/:id"])
  AXE_ELSEWHERE.add(path);
for (const path of ["/runtimes", "/runtimes/:runtimeId", "/sync", "/sync/:id"]) AXE_ELSEWHERE.add(path);
const GOOD = { status: 200, inside: true, unreached: [], scrolls: 0, axe: [], complaints: [] };
const LOOKS = [
  { name: "light", width: 1440, colorScheme: "light" },
  { name: "dark, on a phone", width: 360, colorScheme: "dark" },
] as const;

/** What keeps somebody without a mouse from a control, as sentences; and what moves although the reader asked for less of it. */
const unreachable = (page: Page): Promise<string[]> =>
  page.evaluate(() => {
    const isShown = (element: Element) => element.checkVisibility({ visibilityProperty: true });
    const said = (element: Element, why: string) => `${why}: ${element.outerHTML.slice(0, 120)}`;
    const controls = [...document.querySelectorAll<HTMLElement>("a, button, input, select, textarea, summary")].filter(isShown);
    const moving = document
      .getAnimations()
      .filter(({ playState, effect }) => playState === "running" && Number(effect!.getComputedTiming().activeDuration) > 1);
    return [
      ...controls.filter((one) => one.tabIndex < 0 && !one.closest("[role=listbox]")).map((one) => said(one, "cannot be reached by keyboard")),
      ...controls.filter((one) => one.tagName === "A" && !one.hasAttribute("href")).map((one) => said(one, "leads nowhere")),
      ...moving.map(({ effect }) => said((effect as KeyframeEffect).target!, "moves")),
    ];
  });

/** Whether the first key leads past the rail and the next into the page, if there is anything to press. A page may begin in a field of its own. */
async function reachesContent(page: Page): Promise<boolean> {
  const isInside = () => page.evaluate(() => document.activeElement?.matches("#main *") ?? false);
  if (await isInside()) return true;
  await page.keyboard.press("Tab");
  if (!(await page.evaluate(() => document.activeElement?.matches(".skip")))) return false;
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  return (await isInside()) || (await page.locator("#main").locator("a, button, input, select, textarea, summary").count()) === 0;
}

/** (The rail is the same everywhere and pressed once.) Presses what only shows, copies or folds, and closes what it opened. @returns how many were pressed */
const pressEverything = (page: Page): Promise<number> =>
  page.evaluate(async () => {
    const still = "[data-close], [data-live], [data-theme-next], [data-dismiss], [disabled]";
    const pressed = [...document.querySelectorAll<HTMLElement>("button[type=button], summary, a[data-open]")].filter(
      (one) =>
        !one.matches(still) && (!one.closest("dialog") || one.matches("summary")) && (!one.closest(".side, .topbar") || location.pathname === "/"),
    );
    for (const one of pressed) {
      one.click();
      await new Promise(requestAnimationFrame);
      for (const dialog of document.querySelectorAll<HTMLDialogElement>("dialog[open]")) dialog.close();
      for (const open of document.querySelectorAll<HTMLElement>("[popover]:popover-open")) open.hidePopover();
    }
    return pressed.length;
  });

const isPlain = (path: string): boolean => !path.startsWith("/ui/") && !path.includes("/export/");

describe.skipIf(!CHROMIUM)("every page in Chromium", () => {
  let browser: Browser;
  let hub: ServedDashboard;
  let it: Everything;
  beforeAll(async () => {
    [browser, hub] = await Promise.all([launch(), serveDashboard()]);
    hub.world.clock.now = Date.UTC(2026, 10, 30, 14, 2, 10);
    it = await fillEverything(hub.world);
  });
  afterAll(async () => {
    await browser?.close();
    await hub?.[Symbol.asyncDispose]();
  });

  test("the list below has every page there is", () => {
    const declared = SCREENS.filter(({ method, path }) => method === "GET" && isPlain(path)).map(({ path }) => path);
    expect(Object.keys(it.addresses).toSorted()).toEqual([...new Set<string>(declared)].toSorted());
  });

  test("the checks see what they look for", async () => {
    const { page, complaints, close } = await hub.visit(browser, "/start");
    expect([await unreachable(page), (await sideways(page)) <= 0, await reachesContent(page), complaints]).toEqual([[], true, true, []]);
    await page.evaluate(() => {
      const main = document.querySelector("#main")!;
      const [button, link] = [document.createElement("button"), document.createElement("a")];
      Object.assign(button, { tabIndex: -1, textContent: "unreachable" });
      link.textContent = "nowhere";
      main.append(button, link);
      main.animate([{ opacity: 1 }, { opacity: 0.5 }], 10_000);
      const wide = document.createElement("div");
      Object.assign(wide.style, { inlineSize: "3000px", blockSize: "1px" });
      main.append(wide);
    });
    const whys = (await unreachable(page)).map((said) => said.split(":")[0]).toSorted();
    expect(whys).toEqual(["cannot be reached by keyboard", "leads nowhere", "moves"]);
    expect(await sideways(page)).toBeGreaterThan(0);
    await page.reload();
    await page.evaluate(() => Object.assign(document.querySelector("#main")!, { inert: true }));
    expect(await reachesContent(page)).toBe(false);
    await page.evaluate(() => document.body.insertAdjacentHTML("beforeend", "<p style='color: red'>a policy is broken</p>"));
    await eventually(
      () => complaints.join(),
      (said) => said.includes("style-src"),
      "what the page complains about",
    );
    await close();
  });

  for (const { name, width, colorScheme } of LOOKS)
    test(`${name}: nothing complains, scrolls sideways, moves or is out of reach; axe finds nothing`, async () => {
      const { page, complaints, close } = await hub.visit(browser, "/start", {
        ...{ viewport: { width, height: 900 }, colorScheme, role: "admin" },
        permissions: ["clipboard-read", "clipboard-write"],
      });
      const seen: Record<string, unknown> = {};
      for (const [path, addresses] of Object.entries(it.addresses))
        for (const address of addresses) {
          const answer = await page.goto(`${hub.url}${address}`);
          const inside = await reachesContent(page);
          const [status, unreached, scrolls] = [answer?.status(), await unreachable(page), Math.max(0, await sideways(page))];
          const axe = AXE_ELSEWHERE.has(path) ? [] : await findings(page, { contrastOnly: width < 500 });
          if (width > 500) await pressEverything(page);
          seen[address] = { status, inside, unreached, scrolls, axe, complaints: complaints.splice(0) };
        }
      for (const [address, found] of Object.entries(seen)) expect([address, found]).toEqual([address, GOOD]);
      await close();
    });

  test("the rail keeps every icon in sight at every width, whatever lists somebody saved", async () => {
    const { page, complaints, close } = await hub.visit(browser, "/", { role: "admin" });
    for (const width of [1440, 1024, 820, 721]) {
      await page.setViewportSize({ width, height: 900 });
      const outside = await page.evaluate(() => {
        const rail = document.querySelector(".side")!.getBoundingClientRect();
        const icons = [...document.querySelectorAll<SVGElement>(".side .nav__item .icon")].map((icon) => icon.getBoundingClientRect());
        return icons.filter(({ left, right, width }) => width === 0 || left < rail.left || right > rail.right).length;
      });
      expect([width, outside]).toEqual([width, 0]);
    }
    expect(await page.locator("#saved-views .nav__item").count()).toBeGreaterThan(0);
    expect(complaints).toEqual([]);
    await close();
  });

  test("the first load of any page weighs at most 100 KB, with everything it loads and nothing kept before", async () => {
    const { cookie } = await hub.world.signIn("admin");
    const weight = async (path: string) => {
      const answer = await hub.world.app.handle(new Request(`http://${HOST}${path}`, { headers: { cookie, "accept-encoding": "gzip" } }));
      return { bytes: await answer.bytes(), zipped: answer.headers.get("content-encoding") === "gzip" };
    };
    const { html } = await hub.world.get("/start", { cookie });
    const files = [...attributesOf(html, "script", "src"), ...attributesOf(html, "link", "href")].map(String);
    expect(files).toHaveLength(4);
    const loaded = await Promise.all(files.map(weight));
    const shared = loaded.reduce((sum, { bytes }) => sum + bytes.byteLength, 0);
    const heavy: Record<string, number> = {};
    for (const address of Object.values(it.addresses).flat()) {
      const { bytes, zipped } = await weight(address);
      expect([address, zipped]).toEqual([address, true]);
      if (shared + bytes.byteLength > 100 * 1024) heavy[address] = shared + bytes.byteLength;
    }
    expect(heavy).toEqual({});
    expect(shared).toBeGreaterThan(25 * 1024); // the sum is of something
  });

  test("every link of every page leads to a page", async () => {
    const { cookie } = await hub.world.signIn("admin");
    const shapes = new Map<string, string>();
    const visited = new Set<string>();
    const follow = async (address: string, deep: boolean) => {
      const { status, html, headers } = await hub.world.get(address, { cookie });
      expect([address, status]).toEqual([address, 200]);
      if (!deep || !headers.get("content-type")?.startsWith("text/html")) return;
      for (const href of attributesOf(html, "a", "href")) {
        const url = new URL(href!, hub.url);
        expect([address, url.origin]).toEqual([address, hub.url]);
        if (/^\/(docs|openapi)/.test(url.pathname)) continue; // another part of the hub
        const target = `${url.pathname}${url.search}`;
        // One address of each shape: ids and values differ, pages do not.
        const shape = `${url.pathname.replaceAll(/[a-z]+_[0-9a-f]{6,}/g, "id")}?${[...url.searchParams.keys()].sort().join("&")}`;
        if (!visited.has(target) && !shapes.has(shape)) shapes.set(shape, target);
      }
    };
    for (const address of Object.values(it.addresses).flat()) {
      visited.add(address);
      await follow(address, true);
    }
    for (const target of [...shapes.values()]) await follow(target, false);
    expect(shapes.size).toBeGreaterThan(100);
  });

  test("many changes are not read out: nothing in a page is a live region, and the two that are stay quiet", async () => {
    const { world } = hub;
    const [ann, bea] = [await register(world, "chatty-ann", "chatter"), await register(world, "chatty-bea", "chatter")];
    const { page, close } = await hub.visit(browser, "/messages?project=chatter");
    await isLive(page);
    await page.evaluate(() => {
      const heard: string[] = [];
      Object.assign(window, { heard });
      const spoken = "[aria-live], [role=status], [role=alert], [role=log], [role=timer], output";
      new MutationObserver((changes) => {
        for (const { target } of changes) {
          const region = (target instanceof Element ? target : target.parentElement)?.closest(spoken);
          if (region) heard.push(region.textContent ?? "");
        }
      }).observe(document.body, { subtree: true, childList: true, characterData: true });
    });
    for (let n = 0; n < 60; n++) await send(world, ann, bea, { correlationId: `chat-${n}` });
    await page.locator("main", { hasText: "chat-59" }).waitFor();
    expect(await page.evaluate(() => (window as unknown as { heard: string[] }).heard)).toEqual([]);
    for (const path of ["/?project=atlas-payments", "/agents", "/context?project=atlas-payments&key=retry/payments", "/cost", "/settings"]) {
      await page.goto(`${hub.url}${path}`);
      // A dialog has a place of its own for what fails while it is open.
      const spoken = page.locator("main :is([aria-live], [role=status], [role=alert], [role=log]):not(dialog *)");
      expect([path, await spoken.count()]).toEqual([path, 0]);
    }
    // The observer would have heard: a person's own act is announced, once.
    await page.goto(`${hub.url}/start`);
    await page.evaluate(() => {
      Object.assign(window, { heard: 0 });
      new MutationObserver(() => {
        (window as unknown as { heard: number }).heard++;
      }).observe(document.querySelector("#announce")!, { childList: true, characterData: true, subtree: true });
    });
    await page.click("[data-theme-next]");
    await eventually(
      () => page.evaluate(() => (window as unknown as { heard: number }).heard),
      (heard) => heard === 1,
      "what is announced",
    );
    await close();
  });

  test("what agents propose and write down is on screen within half a second, and a contradiction is decided beside both values", async () => {
    const { world } = hub;
    const took: number[] = [];
    const { page, complaints, close } = await hub.visit(browser, "/context?project=shop", { role: "admin" });
    const shownAfter = async (change: Promise<{ status: number }>, text: string) => {
      expect((await change).status).toBeLessThan(300);
      const began = performance.now();
      await page.locator("main", { hasText: text }).waitFor();
      took.push(performance.now() - began);
    };
    const by = await register(world, "live-proposer");
    const propose = (summary: string) =>
      world.call("POST", "/v1/context/state/propose", {
        headers: by.headers,
        body: { project: "shop", key: "live/key", summary, authority: "evidence", confidence: "verified", evidenceRefs: ["adr:1"] },
      });
    await isLive(page);
    await shownAfter(propose("first\nshared"), "first");
    await shownAfter(propose("second\nshared"), "Contradictions");
    await page.getByRole("link", { name: "Compare" }).click();
    await page.locator("#compare .diff").waitFor();
    await isLive(page);
    await page.locator("#compare").getByRole("link", { name: "Both hold…" }).click();
    await page.locator("dialog[open] input[name=newKey]").fill("live/other");
    await page.locator("dialog[open] input[name=reason]").fill("two places");
    await page.keyboard.press("Enter");
    await page.locator("#flash .flash", { hasText: "Both are kept" }).waitFor();
    await page.locator("#compare").waitFor({ state: "detached" });
    expect(complaints).toEqual([]);
    expect(Math.min(...took)).toBeLessThan(500); // a busy machine can only make it slower
    await close();
  });

  test("a list is saved in a dialog, stands in the rail, and its count follows what happens", async () => {
    const { world } = hub;
    const [ann, bea] = [await register(world, "ann", "saving"), await register(world, "bea", "saving")];
    await send(world, ann, bea, { correlationId: "mine" });
    const { page, complaints, close } = await hub.visit(browser, "/messages?project=saving&q=thread:mine");
    await isLive(page);
    await page.getByRole("link", { name: "Save this list…" }).click();
    await page.keyboard.type("My thread");
    await page.keyboard.press("Enter");
    const entry = page.locator("#saved-views .nav__item", { hasText: "My thread" });
    await entry.waitFor();
    expect(await page.locator("#flash .flash").last().textContent()).toContain("Saved.");
    await send(world, bea, ann, { correlationId: "mine" });
    await page.locator("#saved-views .nav__item", { hasText: "My thread" }).getByText("2", { exact: true }).waitFor();
    await page.goto(`${hub.url}/runs?project=saving`);
    await entry.click();
    await page.waitForURL(/thread(%3A|:)mine/);
    expect(await entry.getAttribute("aria-current")).toBe("page");
    expect(complaints).toEqual([]);
    await close();
  });

  test("hostile text in every field an agent fills stays text in lists, details, search, results, fragments and files", async () => {
    const { world } = hub;
    const hostile = await fillHostile(hub);
    const { page, complaints, close } = await hub.visit(browser, "/?project=hostile", { role: "admin" });
    const paths = [
      "/",
      "/agents",
      "/agents?show=needs",
      "/messages?box=all",
      "/leases",
      "/runs?view=all",
      "/journal",
      "/context",
      "/audit",
      "/approvals",
      "/runtimes",
      "/sync",
      "/cost",
    ];
    const searches = PAYLOADS.filter((_, index) => index % 8 === 0).map((payload) => `/search?q=${encodeURIComponent(payload.slice(0, 120))}`);
    for (const path of [...paths, ...searches, ...hostile]) {
      await page.goto(`${hub.url}${path}${path.includes("?") ? "&" : "?"}project=hostile`);
      expect([path, (await sideways(page)) <= 0]).toEqual([path, true]);
      await page.evaluate(() => document.body.dispatchEvent(new CustomEvent("live:all", { bubbles: true }))); // the fragments, too
    }
    // A result that names what agents wrote.
    const named = `0 ${PAYLOADS[0]}`.slice(0, 60).trim();
    await page.goto(`${hub.url}/messages/new?project=hostile&to=${encodeURIComponent(named)}`);
    await page.fill("textarea", PAYLOADS[1]!);
    await page.keyboard.press("Control+Enter");
    await page.locator("#flash .flash").last().waitFor();
    for (const list of ["agents", "messages", "leases", "runs", "audit"])
      for (const format of ["csv", "json"]) {
        const file = await page.request.get(`${hub.url}/${list}/export/${format}?project=hostile&box=all&view=all`);
        expect([
          list,
          file.status(),
          file.headers()["x-content-type-options"],
          file.headers()["content-disposition"]?.startsWith("attachment"),
        ]).toEqual([list, 200, "nosniff", true]);
        const cells = format === "csv" ? (await file.text()).matchAll(/(?:^|,)"([^"]|"")*"/gm) : [];
        for (const [cell] of cells) expect(cell).not.toMatch(/^,?"[=+@\t\r-]/);
      }
    expect(complaints.filter((complaint) => complaint.includes(CANARY))).toEqual([]);
    expect(complaints).toEqual([]);
    await close();
    expect(world.hub.engine).toBeDefined();
  });

  test("a run of 50,000 events opens within a second, and its page stays as small and as light however long one looks", async () => {
    const { world } = hub;
    const RUN = "run_long000000000001";
    await beat(world);
    await pushRun(world, RUN, moving(world.clock.now, "A long one"));
    const { read, write } = world.hub.engine;
    const row = (await read.sync.findRun(PROJECT_ID, RUN))!;
    const rows = Array.from({ length: 50_000 - row.cursor }, (_, n) => {
      const sequence = row.cursor + 1 + n;
      return {
        project_id: PROJECT_ID,
        run_id: RUN,
        sequence,
        hash: HASH,
        received_at: world.clock.now,
        record: canonical(syncEvent(sequence, { runId: RUN, at: world.clock.now })),
      };
    });
    await insertRaw({ kind: "sqlite", location: world.location }, "sync_events", rows);
    await write("shop", (tx) => tx.sync.updateRun({ ...row, cursor: 50_000 }));
    const { page, complaints, close } = await hub.visit(browser, "/start?project=shop");
    const opened: number[] = [];
    for (let round = 0; round < 3; round++) {
      const began = performance.now();
      await page.goto(`${hub.url}/runs/${PROJECT_ID}/${RUN}?project=shop`, { waitUntil: "load" });
      await page.locator("#events .events__seq").first().waitFor();
      opened.push(performance.now() - began);
    }
    expect(Math.min(...opened)).toBeLessThan(1_000); // alone about 200 ms
    await isLive(page);
    const cdp = await page.context().newCDPSession(page);
    await cdp.send("Performance.enable");
    const before = await sizeOf(cdp);
    // Updates, one after another, as somebody sees them who leaves the page open; then a walk through older pages.
    for (let n = 1; n <= 15; n++) {
      await pushRun(world, RUN, [{ type: "step.status_changed", payload: { stepId: "panel", status: "running", reason: `look ${n}` } }], {
        from: 50_000 + n,
      });
      await page.locator("#events li").first().getByText(`look ${n}`, { exact: false }).waitFor();
    }
    const after = await sizeOf(cdp);
    expect(await page.locator("#events .events__seq").count()).toBe(50);
    expect(after.nodes - before.nodes).toBeLessThan(500);
    expect(after.heap - before.heap).toBeLessThan(4 * 1024 * 1024);
    await page.getByRole("link", { name: "Trouble" }).click();
    await page.getByText("No such event here.").waitFor();
    expect(complaints).toEqual([]);
    await close();
  });
});

/** What a page holds once the browser has cleaned up behind it. */
async function sizeOf(cdp: CDPSession): Promise<{ nodes: number; heap: number }> {
  await cdp.send("HeapProfiler.collectGarbage");
  const { metrics } = await cdp.send("Performance.getMetrics");
  const of = (name: string) => metrics.find((metric) => metric.name === name)!.value;
  return { nodes: of("Nodes"), heap: of("JSHeapUsedSize") };
}

/** Every payload in every field that an agent or a Runtime fills. @returns addresses of details */
async function fillHostile({ world }: ServedDashboard): Promise<string[]> {
  const { engine } = world.hub;
  const agents: Registered[] = [];
  const details: string[] = [];
  await beat(world, { project: "hostile", runtimeId: "rtm_hostile00000000000000000", host: "host" } as never).catch(() => undefined);
  for (const [index, payload] of PAYLOADS.entries()) {
    const text = (max: number) => `${index} ${payload}`.slice(0, max).trim();
    const { body } = await world.call("POST", "/v1/agents/register", {
      body: { name: text(60), purpose: text(200), model: text(100), host: text(60), project: "hostile" },
    });
    if (!body.agent) continue; // some are longer than a field may be
    const agent: Registered = { id: body.agent.id, name: text(60), headers: { "x-kxm-agent-id": body.agent.id, "x-kxm-agent-key": body.agentKey } };
    agents.push(agent);
    const to = agents[Math.max(0, agents.length - 2)]!;
    if (to !== agent) {
      const { id } = await send(world, agent, to, { content: payload, correlationId: text(100) });
      if (index % 4 === 0) await acknowledge(world, to, id, "turn");
    }
    await take(world, agent, text(80)).catch(() => undefined);
    await world.call("POST", "/v1/context/state/propose", {
      headers: agent.headers,
      body: {
        project: "hostile",
        key: text(200),
        summary: payload.slice(0, 2_000),
        authority: "evidence",
        confidence: "verified",
        evidenceRefs: [text(100)],
      },
    });
    const runId = `run_hostile${String(index).padStart(4, "0")}`;
    const told = [
      { type: "run.created", payload: { workflowId: "w", displayTitle: text(190), status: "created" } },
      { type: "step.entered", payload: { stepId: "s", stepAttempt: 1, status: "running", summary: text(900) } },
      { type: "run.status_changed", payload: { status: index % 2 ? "failed" : "waiting", reason: text(900) } },
    ] as const;
    const events = told.map((one, n) =>
      syncEvent(n + 1, { ...one, projectId: "prj_hostile0001", runId, at: world.clock.now, homeRuntimeId: "rtm_hostile00000000000000000" } as never),
    );
    const pushed = await world.call("POST", "/v1/sync/events", { body: { project: "hostile", runtimeId: "rtm_hostile00000000000000000", events } });
    if (pushed.status !== 200) throw new Error(JSON.stringify(pushed.body));
    if (index % 10 === 0) details.push(`/agents/${agent.id}`, `/runs/prj_hostile0001/${runId}`, `/context?key=${encodeURIComponent(text(200))}`);
  }
  const [message] = await engine.read.messages.heads({ kind: "all", of: "hostile" }, "~", 1);
  return [...details, `/messages/${message!.id}`];
}
