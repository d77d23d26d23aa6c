// A real browser for tests, and a page that remembers everything it complained about.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from "playwright-core";

/** Chromium as the test runner found it; without one, browser tests are skipped by name. */
export const CHROMIUM = process.env.KXM_TEST_CHROMIUM ?? Bun.which("chromium") ?? Bun.which("google-chrome") ?? undefined;
export const ARTIFACTS = join(import.meta.dir, "../artifacts");
export const PATIENCE_MS = 10_000;

export function launch(): Promise<Browser> {
  mkdirSync(ARTIFACTS, { recursive: true });
  return chromium.launch({
    executablePath: CHROMIUM,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      "--hide-scrollbars",
    ],
  });
}

export type Watched = {
  page: Page;
  /** Console errors and warnings, exceptions, dialogs, policy reports and requests to another host, as sentences. */
  complaints: string[];
  close: () => Promise<void>;
};

type Cookies = Parameters<BrowserContext["addCookies"]>[0];

/** Opens a page in a context of its own. Everything a page must never do lands in `complaints`. */
export async function open(browser: Browser, url: string, options: BrowserContextOptions = {}, cookies: Cookies = []): Promise<Watched> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, reducedMotion: "reduce", ...options });
  if (cookies.length > 0) await context.addCookies(cookies);
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  const complaints: string[] = [];
  const { origin } = new URL(url);
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") complaints.push(`console ${message.type()}: ${message.text()}`);
  });
  page.on("pageerror", (error) => complaints.push(`exception: ${error.message}`));
  page.on("dialog", (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(origin)) complaints.push(`request to ${request.url()}`);
  });
  if (options.javaScriptEnabled !== false) {
    await page.exposeFunction("reportViolation", (what: string) => complaints.push(`policy: ${what}`));
    await page.addInitScript(() => {
      document.addEventListener("securitypolicyviolation", (event) =>
        (window as unknown as { reportViolation: (what: string) => void }).reportViolation(
          `${event.violatedDirective} ${event.blockedURI} ${event.sample}`,
        ),
      );
    });
  }
  await page.goto(url);
  return { page, complaints, close: () => context.close() };
}

/** What the page says about its own freshness: `Live0.3 s behind`. */
export const liveState = (page: Page): Promise<string | null> => page.locator(".side [data-live]").textContent();
/** Waits until the page's stream is open. */
export const isLive = (page: Page): Promise<string | null> =>
  eventually(
    () => liveState(page),
    (state) => state?.startsWith("Live") ?? false,
    "the live indicator",
  );

/** Waits until `check` holds; says what it last saw when it never does. */
export async function eventually<T>(check: () => T | Promise<T>, holds: (value: T) => boolean, what: string): Promise<T> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const value = await check();
    if (holds(value)) return value;
    if (performance.now() > deadline) throw new Error(`${what}: still ${JSON.stringify(value)}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}
