// `npm run bench`: runs tests/bench/*.bench.ts one after another; each prints its own table. `npm run bench -- sends sync` runs those named.
import { existsSync, readdirSync } from "node:fs";
import { install } from "./lib/install.mjs";
import { findPrograms } from "./lib/machine.mjs";
import { startPostgres } from "./lib/postgres.mjs";
import { at, giveUp, say } from "./lib/project.mjs";
import { run } from "./lib/run.mjs";
import { sourcesOf } from "./lib/test-files.mjs";

const names = process.argv.slice(2);
const bun = install();
const all = (existsSync(at("tests/bench")) ? readdirSync(at("tests/bench")) : []).filter((name) => name.endsWith(".bench.ts")).sort();
const chosen = all.filter((name) => names.length === 0 || names.some((part) => name.includes(part)));
if (chosen.length === 0)
  giveUp(`no benchmark ${names.length > 0 ? `is called ${names.join(" or ")}` : "found in tests/bench"}.`, `There are: ${all.join(", ") || "none"}.`);

const programs = findPrograms(sourcesOf(chosen.map((name) => `tests/bench/${name}`)));
const postgres = programs.postgres && !process.env.KXM_TEST_POSTGRES ? await startPostgres(programs.postgres, { durable: true }) : undefined;
const env = { ...process.env, ...(postgres && { KXM_TEST_POSTGRES: postgres.url }) };
for (const name of chosen) {
  say(`\n${name}`);
  const { code, interrupted } = await run(bun, ["--no-env-file", at("tests/bench", name)], { env });
  if (code !== 0) {
    say(`kxm: ${name} ended with code ${code}.`);
    process.exitCode = code;
  }
  if (interrupted) break;
}
await postgres?.stop();
