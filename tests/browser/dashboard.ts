// A hub with its dashboard on a real port, and pages of it opened by somebody who is signed in.
import axe from "axe-core/axe.min.js" with { type: "text" };
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { type DashboardWorld, openDashboard } from "../support/dashboard.ts";
import { open, type Watched } from "./browser.ts";

export interface ServedDashboard extends AsyncDisposable {
  world: DashboardWorld;
  url: string;
  /** Opens a page in a context of its own. @param role who looks */
  visit(browser: Browser, path: string, options?: BrowserContextOptions & { role?: "viewer" | "operator" | "admin" }): Promise<Watched>;
}

/** Streams must not be cut off in a test that is slow. */
const IDLE_SECONDS = 0;

/** Serves a fresh hub. Its clock stands still until the test moves it. */
export async function serveDashboard(): Promise<ServedDashboard> {
  const hosts = new Set<string>();
  const world = await openDashboard({ hosts, settings: { rateLimit: undefined } });
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: IDLE_SECONDS,
    fetch: (request) => world.app.handle(request),
  });
  hosts.add(`127.0.0.1:${server.port}`).add("127.0.0.1:7331"); // the second is what the world's own calls say
  const url = `http://127.0.0.1:${server.port}`;
  return {
    world,
    url,
    async visit(browser, path, { role = "operator", ...options } = {}) {
      const { cookie } = await world.signIn(role);
      const value = cookie.slice(cookie.indexOf("=") + 1);
      return open(browser, `${url}${path}`, options, [{ name: `kxm_session_${server.port}`, value, url, httpOnly: true, sameSite: "Strict" }]);
    },
    async [Symbol.asyncDispose]() {
      await server.stop(true);
      await world[Symbol.asyncDispose]();
    },
  };
}

/** How far a page can be scrolled sideways, in pixels. */
export const sideways = (page: Page): Promise<number> =>
  page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

/** What axe finds, as sentences; `contrastOnly` is what differs between light and dark. The checker is a script the policy would refuse, so it is brought in from outside the page. */
export async function findings(page: Page, { contrastOnly = false } = {}): Promise<string[]> {
  await page.evaluate(axe);
  return page.evaluate(async (contrastOnly) => {
    const { axe } = window as unknown as { axe: typeof import("axe-core") };
    const all = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
    const runOnly = contrastOnly ? { type: "rule" as const, values: ["color-contrast"] } : all;
    const { violations } = await axe.run(document, { runOnly, resultTypes: ["violations"], preload: false });
    return violations.map(({ id, impact, nodes }) => `${impact} ${id}: ${nodes[0]?.html.slice(0, 200)} ${nodes[0]?.failureSummary ?? ""}`);
  }, contrastOnly);
}
