import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import axe from "axe-core/axe.min.js" with { type: "text" };
import type { Browser } from "playwright-core";
import { CANARY, PAYLOADS } from "../views/payloads.ts";
import { ARTIFACTS, CHROMIUM, eventually, isLive, launch, open } from "./browser.ts";
import { payloadPage } from "./payload-page.tsx";
import { type StoriesServer, serveStories } from "./stories-server.tsx";

const SLOW_MS = 60_000;
const VIEWS = [
  { name: "light", width: 1440, colorScheme: "light" },
  { name: "dark", width: 1440, colorScheme: "dark" },
  { name: "tablet", width: 820, colorScheme: "light" },
  { name: "phone-light", width: 360, colorScheme: "light" },
  { name: "phone-dark", width: 360, colorScheme: "dark" },
] as const;
const PAGES = [
  ["stories", "/stories"],
  ["overview", "/stories?only=overview"],
  ["sign-in", "/sign-in"],
] as const;
setDefaultTimeout(SLOW_MS);

describe.skipIf(!CHROMIUM)("the story page in Chromium", () => {
  let browser: Browser;
  let server: StoriesServer;
  beforeAll(async () => {
    server = serveStories();
    browser = await launch();
  });
  afterAll(async () => {
    await browser?.close();
    await server?.stop();
  });

  for (const { name, width, colorScheme } of VIEWS)
    for (const [what, path] of PAGES)
      test(`${what}, ${name}: nothing complains, nothing scrolls sideways, axe finds nothing`, async () => {
        const { page, complaints, close } = await open(browser, `${server.url}${path}`, { viewport: { width, height: 900 }, colorScheme });
        expect(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)).toBeLessThanOrEqual(0);
        expect(await page.evaluate(() => getComputedStyle(document.documentElement).colorScheme)).toContain(colorScheme);
        await page.screenshot({ path: join(ARTIFACTS, `${what}-${name}.png`), fullPage: true });
        // The checker itself is a script the policy would refuse, so it is brought in from outside the page.
        await page.evaluate(axe);
        const findings = await page.evaluate(async () => {
          const { axe } = window as unknown as { axe: typeof import("axe-core") };
          const { violations } = await axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] });
          return violations.map(({ id, impact, nodes }) => `${impact} ${id}: ${nodes[0]?.html.slice(0, 200)} ${nodes[0]?.failureSummary ?? ""}`);
        });
        expect(findings).toEqual([]);
        expect(complaints).toEqual([]);
        await close();
      });

  test("a switched theme is kept and painted by the server", async () => {
    const { page, complaints, close } = await open(browser, `${server.url}/stories?only=status`, { colorScheme: "light" });
    const theme = () => page.evaluate(() => [document.documentElement.dataset.theme, getComputedStyle(document.documentElement).colorScheme]);
    await page.click("[data-theme-next]");
    expect(await theme()).toEqual(["light", "light"]);
    await page.click("[data-theme-next]");
    expect(await theme()).toEqual(["dark", "dark"]);
    await page.reload();
    expect(await theme()).toEqual(["dark", "dark"]);
    expect(complaints).toEqual([]);
    await close();
  });

  test("the rail, palette and dialogs open on a phone", async () => {
    const { page, complaints, close } = await open(browser, `${server.url}/stories?only=buttons`, {
      viewport: { width: 360, height: 780 },
      hasTouch: true,
    });
    await page.getByRole("button", { name: "More" }).last().click();
    await page.waitForSelector("#nav:popover-open");
    await page.screenshot({ path: join(ARTIFACTS, "stories-phone-sheet.png") });
    await page.keyboard.press("Escape");
    await page.click("[data-open=story-confirm] >> nth=0");
    await page.waitForSelector("#story-confirm[open]");
    await page.screenshot({ path: join(ARTIFACTS, "stories-phone-dialog.png") });
    await page.click("#story-confirm [data-close]:has-text('Keep running')");
    await page.waitForSelector("#story-confirm:not([open])", { state: "attached" });
    expect(complaints).toEqual([]);
    await close();
  });

  test(
    "hostile text is only text: nothing runs, nothing is fetched, and it reads as it was written",
    async () => {
      server.fragments.set("/ui/hostile", payloadPage);
      const { page, complaints, close } = await open(browser, `${server.url}/live`);
      // Once as sent with the page, once as a live fragment that htmx parsed and morphed in.
      for (const round of ["page", "fragment"]) {
        const shown = await page.$$eval("[data-payload]", (places) =>
          places.map((place) => [place.getAttribute("data-payload") ?? "", place.getAttribute("title"), place.textContent]),
        );
        expect(shown).toHaveLength(PAYLOADS.length);
        for (const [index, title, text] of shown) {
          expect([round, index, title]).toEqual([round, index, PAYLOADS[Number(index)]!]);
          expect([round, index, text]).toEqual([round, index, PAYLOADS[Number(index)]!]);
        }
        if (round === "page") {
          await isLive(page);
          const rendered = await page.getAttribute("#hostile", "data-round");
          server.send({ event: "hostile", id: "g1.8" });
          await eventually(
            () => page.getAttribute("#hostile", "data-round"),
            (now) => now !== rendered,
            "the fragment",
          );
          expect(server.fetched).toContain("/ui/hostile");
        }
      }
      await page.hover("#hostile");
      await page.keyboard.press("j");
      expect(complaints.filter((complaint) => complaint.includes(CANARY))).toEqual([]);
      expect(complaints).toEqual([]);
      server.fragments.delete("/ui/hostile");
      await close();
    },
    SLOW_MS,
  );
});
