// `npm run screenshots`: every page of the dashboard over one lively afternoon, in light, dark and phone width, to tests/artifacts; the few that the
// documentation shows also to docs/images. The afternoon is always the same one, so a picture changes only when a page does.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import * as savedViews from "../../src/hub/saved-views.ts";
import * as search from "../../src/hub/search.ts";
import { fixing, JIRA_FIX } from "../support/lived-in.ts";
import { LIVELY, type Lively, liven } from "../support/lively.ts";
import { withWorkflows } from "../support/workflows.ts";
import { ARTIFACTS, isLive, launch } from "./browser.ts";
import { serveDashboard } from "./dashboard.ts";
import { smallPng } from "./small-png.ts";

const PICTURES = join(import.meta.dir, "../../docs/images");
const AFTERNOON = Date.UTC(2026, 10, 30, 14, 2, 10);
const PICTURE_BYTES_MAX = 120 * 1024;
const LOOKS = {
  light: { viewport: { width: 1280, height: 800 }, colorScheme: "light" },
  dark: { viewport: { width: 1280, height: 800 }, colorScheme: "dark" },
  phone: { viewport: { width: 390, height: 844 }, colorScheme: "light" },
} as const;
type Look = keyof typeof LOOKS;
/** What the documentation shows: page, look, name of the file. */
const SHOWN: readonly (readonly [page: string, look: Look, file: string])[] = [
  ["overview", "light", "overview.png"],
  ["overview", "dark", "overview-dark.png"],
  ["overview", "phone", "overview-phone.png"],
  ["agents", "light", "agents.png"],
  ["message", "dark", "message-dark.png"],
];

/** What the reader keeps under a name. */
const SAVED = [
  ["Broken runs", "runs", `project=${LIVELY}&view=failed`],
  ["Asked by planner", "messages", `box=all&project=${LIVELY}&q=from%3Aplanner`],
  ["On the laptop", "agents", `project=${LIVELY}&q=machine%3Alaptop-m3`],
] as const;
const READER = { actor: "admin", role: "admin", origin: "dashboard" };

const pagesOf = ({ agents, openMessage, run }: Lively, workflow: string): Record<string, string> => ({
  overview: "/",
  agents: "/agents",
  "runs-filtered": "/runs?view=completed&q=workflow:repro",
  views: "/views",
  agent: `/agents/${agents["implementer"]!.id}`,
  messages: "/messages",
  compose: "/messages/new",
  leases: "/leases",
  runs: "/runs",
  run: `/runs/${run.projectId}/${run.runId}`,
  approvals: "/approvals",
  runtimes: "/runtimes",
  sync: "/sync",
  webhooks: "/webhooks",
  audit: "/audit",
  search: "/search?q=ledger",
  journal: "/journal",
  context: "/context",
  "context-compare": "/context?key=retry/payments",
  "workflow-run": `/workflows/${workflow}?project=shop`,
  "journal-shop": "/journal?project=shop",
  "agents-needs": "/agents?show=needs",
  cost: "/cost",
  settings: "/settings",
  message: `/messages/${openMessage}`, // last: what it opens shows on the others
});

/** Opening a text leaves a line in the audit, which is why no page does it before its turn. */
async function openTexts(page: Page): Promise<void> {
  const button = page.getByRole("button", { name: "Show all texts" });
  if ((await button.count()) > 0) await button.click();
  await page.locator(".untrusted__text").first().waitFor();
}

mkdirSync(PICTURES, { recursive: true });
const browser = await launch();
const table = await browser.newPage();
await using hub = await serveDashboard();
hub.world.clock.now = AFTERNOON - 5 * 3_600_000;
const workflow = await fixing(await withWorkflows(hub.world, JIRA_FIX)); // of another project, some hours ago
hub.world.clock.now = AFTERNOON;
const lively = await liven(hub.world.hub, hub.world.clock);
await search.index(hub.world.hub);
for (const [name, place, query] of SAVED)
  await hub.world.hub.engine.write("", (tx) => savedViews.save(tx, READER, { role: "admin", project: null, tokenId: null }, { name, place, query }));
try {
  const readers = await Promise.all(
    Object.entries(LOOKS).map(async ([look, options]) => ({ look, ...(await hub.visit(browser, "/", { ...options, role: "admin" })) })),
  );
  for (const [name, path] of Object.entries(pagesOf(lively, workflow)))
    for (const { look, page } of readers) {
      const answer = await page.goto(`${hub.url}${path}${path.includes("project=") ? "" : `${path.includes("?") ? "&" : "?"}project=${LIVELY}`}`, {
        waitUntil: "load",
      });
      if (answer?.status() !== 200) {
        console.log(`${path} answers ${answer?.status()}`);
        continue;
      }
      await isLive(page);
      if (name === "message") await openTexts(page);
      const whole = await page.screenshot({ path: join(ARTIFACTS, `page-${name}-${look}.png`) });
      const file = SHOWN.find(([shown, inLook]) => shown === name && inLook === look)?.[2];
      if (file === undefined) continue;
      const picture = await smallPng(table, whole);
      if (picture.byteLength > PICTURE_BYTES_MAX)
        console.log(`${file} has ${picture.byteLength} bytes; at most ${PICTURE_BYTES_MAX} should be kept in the repository`);
      await Bun.write(join(PICTURES, file), picture);
    }
  for (const { look, complaints } of readers) for (const complaint of complaints) console.log(`${look}: ${complaint}`);
  console.log(`pictures in ${ARTIFACTS} and ${PICTURES}`);
} finally {
  await browser.close();
}
