// `npm run screenshots`: renders the dashboard's pages in a browser and writes the pictures that the documentation shows.
import { install } from "./lib/install.mjs";
import { findChromium, findPrograms } from "./lib/machine.mjs";
import { at, giveUp } from "./lib/project.mjs";
import { endLike, run } from "./lib/run.mjs";

const bun = install();
findPrograms("playwright-core");
const chromium = findChromium();
if (!chromium) giveUp("screenshots need a browser.", "Install Chromium or Google Chrome, or set KXM_TEST_CHROMIUM to its path.");
const env = { ...process.env, KXM_TEST_CHROMIUM: chromium };
endLike(await run(bun, ["--no-env-file", at("tests", "browser", "screenshots.ts"), ...process.argv.slice(2)], { env }));
