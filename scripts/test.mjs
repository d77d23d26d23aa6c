// `npm test` and its sisters (`npm run test:faults|test:clients`): installs what is missing, gives the tests a browser and a
// private PostgreSQL, runs them in random order on two workers, and ends with one line of counts.
//   npm test                      everything that is not apart
//   npm test -- tests/hub leases  files under a folder, or with a word in their path
//   npm test -- -t "a lease"      tests by name; any other flag of `bun test` is passed on as well (--seed=7 repeats an order)
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { install } from "./lib/install.mjs";
import { findPrograms } from "./lib/machine.mjs";
import { startPostgres } from "./lib/postgres.mjs";
import { at, giveUp, say } from "./lib/project.mjs";
import { run } from "./lib/run.mjs";
import { allTestFiles, choose, SUITES, sourcesOf } from "./lib/test-files.mjs";
import { closingLine, quietly, readJunit } from "./lib/test-report.mjs";

const WORKERS = 2;
const SLOW_SHOWN = 5;
const SLOW_SECONDS = 2;
const PROGRESS_MS = 20_000;

const { suite, wanted, flags } = readArguments(process.argv.slice(2));
const bun = install();
const files = choose(allTestFiles(), suite, wanted);
if (files.length === 0) giveUp(`no test file ${wanted.length > 0 ? `matches ${wanted.join(" ")}` : "found"}.`, "Test files are tests/**/*.test.ts.");
const programs = findPrograms(sourcesOf(files));
const folder = mkdtempSync(join(tmpdir(), "kxm-test-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

const postgres = await postgresFor(programs);
const started = performance.now();
const seconds = () => ((performance.now() - started) / 1000).toFixed(1);
const { counts, end } = await runTests();
await postgres?.stop();
report(counts, end);

function readArguments(args) {
  const suite = Object.hasOwn(SUITES, args[0]) && args[0] !== "all" ? SUITES[args.shift()] : SUITES.all;
  const wanted = [];
  const flags = [];
  while (args.length > 0) {
    const arg = args.shift();
    if (arg === "-t" || arg === "--test-name-pattern") flags.push(arg, args.shift() ?? "");
    else (arg.startsWith("-") ? flags : wanted).push(arg);
  }
  return { suite, wanted, flags };
}

async function postgresFor({ postgres: bin }) {
  if (!bin || process.env.KXM_TEST_POSTGRES) return;
  try {
    return await startPostgres(bin);
  } catch (error) {
    giveUp(`${error.message}.`, "Set KXM_TEST_POSTGRES to the address of a server to use instead.");
  }
}

/** Settings of the person's own hub must not reach the tests: of KXM_* only what is meant for tests is kept. */
function testEnvironment() {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith("KXM_") || name.startsWith("KXM_TEST_"));
  const temporary = join(folder, "tmp");
  mkdirSync(temporary);
  for (const path of [folder, temporary]) chmodSync(path, 0o711); // a test may start a program under another account
  const env = { ...Object.fromEntries(kept), TMPDIR: temporary, ...suite.env };
  if (programs.chromium) env.KXM_TEST_CHROMIUM = programs.chromium;
  if (postgres) env.KXM_TEST_POSTGRES = postgres.url;
  return env;
}

async function runTests() {
  const junit = join(folder, "junit.xml");
  const timings = at("node_modules", ".cache", "kxm", "test-times.json");
  mkdirSync(join(timings, ".."), { recursive: true });
  const order = flags.some((flag) => flag.startsWith("--seed")) ? [] : [`--seed=${(Math.random() * 2 ** 31) | 0}`];
  const parallel = files.length > 1 && suite === SUITES.all ? [`--parallel=${WORKERS}`, `--timings=${timings}`, "--update-timings"] : [];
  const report = ["--reporter=junit", `--reporter-outfile=${junit}`];
  const args = [
    "--no-env-file",
    "test",
    ...parallel,
    "--randomize",
    ...order,
    `--timeout=${suite.testMs}`,
    ...report,
    ...flags,
    ...files.map((path) => `./${path}`),
  ];
  const output = wanted.length > 0 ? undefined : quietly((line) => process.stderr.write(`${line}\n`));
  const progress = output && setInterval(() => say(`… ${output.progress()} (${seconds()} s)`), PROGRESS_MS);
  let tail = "";
  const end = await run(bun, args, {
    env: testEnvironment(),
    limitMs: suite.runMs,
    stdio: ["ignore", "inherit", "pipe"],
    onChild: (child) =>
      child.stderr.setEncoding("utf8").on("data", (chunk) => {
        tail = (tail + chunk).slice(-2_000);
        if (output) output.push(chunk);
        else process.stderr.write(chunk);
      }),
  });
  clearInterval(progress);
  output?.end();
  const counts = readJunit(junit) ?? { passed: 0, failed: 1, skipped: 0, files: [] }; // no report: something ended the run from inside
  counts.failed += Number(/^ +(\d+) errors?$/m.exec(tail)?.[1] ?? 0); // a file that does not load is in no report
  if (end.code !== 0 && counts.failed === 0) counts.failed = 1;
  return { counts, end };
}

function report(counts, { code, signal, interrupted }) {
  const slow = counts.files.filter((file) => file.seconds >= SLOW_SECONDS).sort((a, b) => b.seconds - a.seconds);
  for (const file of slow.slice(0, SLOW_SHOWN)) say(`slow: ${file.seconds.toFixed(1).padStart(6)} s ${file.path}`);
  say(
    `${files.length} test ${files.length === 1 ? "file" : "files"} in ${seconds()} s${interrupted ? `, interrupted${signal ? ` by ${signal}` : ""}` : ""}`,
  );
  console.log(closingLine(counts));
  process.exitCode = code === 0 && counts.failed > 0 ? 1 : code;
}
