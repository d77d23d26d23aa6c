// Renders the dashboard over a living demo: every page in light, dark and phone width to tests/artifacts, and the picture of the README to docs/images.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { ARTIFACTS, launch, open, PATIENCE_MS } from "./browser.ts";

const ROOT = join(import.meta.dir, "../..");
const PICTURES = join(ROOT, "docs/images");
const WARM_UP_MS = 45_000; // until the demo's agents and runs have something to show
const PAGES = {
  overview: "/",
  agents: "/agents",
  messages: "/messages",
  leases: "/leases",
  runs: "/runs",
  approvals: "/approvals",
  runtimes: "/runtimes",
  sync: "/sync",
  webhooks: "/webhooks",
  audit: "/audit",
  search: "/search?q=checkout",
  journal: "/journal",
  context: "/context",
  cost: "/cost",
  settings: "/settings",
};
const LOOKS = {
  light: { viewport: { width: 1440, height: 900 }, colorScheme: "light" },
  dark: { viewport: { width: 1440, height: 900 }, colorScheme: "dark" },
  phone: { viewport: { width: 390, height: 844 }, colorScheme: "light" },
} as const;

const demo = Bun.spawn([process.execPath, "--no-env-file", join(ROOT, "src/main.ts"), "demo", "--json"], { stdout: "pipe", stderr: "inherit" });
try {
  const link = await signInLink(demo.stdout);
  const browser = await launch();
  try {
    const { page, complaints } = await open(browser, link, LOOKS.light);
    console.log(`waiting ${WARM_UP_MS / 1_000} s for the demo to have something to show`);
    await Bun.sleep(WARM_UP_MS);
    mkdirSync(PICTURES, { recursive: true });
    const origin = new URL(link).origin;
    for (const [look, { viewport, colorScheme }] of Object.entries(LOOKS)) {
      await page.setViewportSize(viewport);
      await page.emulateMedia({ colorScheme });
      for (const [name, path] of Object.entries(PAGES)) await shoot(page, `${origin}${path}`, join(ARTIFACTS, `demo-${name}-${look}.png`));
      if (look === "light") await shoot(page, `${origin}/`, join(PICTURES, "overview.png"));
    }
    for (const complaint of complaints) console.log(`complaint: ${complaint}`);
  } finally {
    await browser.close();
  }
} finally {
  demo.kill("SIGINT");
  await demo.exited;
}

async function shoot(page: Page, address: string, path: string): Promise<void> {
  const response = await page.goto(address, { waitUntil: "load", timeout: PATIENCE_MS });
  if (response?.status() !== 200) return console.log(`${address} answers ${response?.status()}`);
  await page.screenshot({ path });
  console.log(path.slice(ROOT.length + 1));
}

/** The first JSON document that the demo prints. */
async function signInLink(stream: ReadableStream<Uint8Array>): Promise<string> {
  let text = "";
  for await (const bytes of stream) {
    text += new TextDecoder().decode(bytes);
    try {
      return (JSON.parse(text) as { signIn: string }).signIn;
    } catch {} // not whole yet
  }
  throw new Error(`the demo ended before it printed its address: ${text}`);
}
