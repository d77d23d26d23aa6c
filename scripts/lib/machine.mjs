// What the tests need from the machine beside npm packages, how to find it, and how Debian installs it.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { say } from "./project.mjs";

/**
 * Programs that tests use. A program is looked for only when a chosen test file (or what it imports) matches `usedBy`.
 * `debian` is the package that has it; `elsewhere` is what a person without that package is told to install.
 */
export const PROGRAMS = [
  {
    name: "chromium",
    debian: "chromium",
    usedBy: /KXM_TEST_CHROMIUM|playwright-core/,
    find: findChromium,
    why: "browser tests",
    elsewhere: "Chromium or Google Chrome",
  },
  {
    name: "postgres",
    debian: "postgresql",
    usedBy: /KXM_TEST_POSTGRES/,
    find: findPostgres,
    why: "tests on PostgreSQL",
    elsewhere: "PostgreSQL 15 or newer (server programs)",
  },
  {
    name: "strace",
    debian: "strace",
    usedBy: /["'`/]strace\b/,
    find: () => inPath("strace"),
    why: "tests that trace or fail system calls",
    elsewhere: "strace (Linux only)",
  },
  {
    name: "faketime",
    debian: "faketime",
    usedBy: /["'`/](lib)?faketime\b/,
    find: () => inPath("faketime"),
    why: "tests that move the clock",
    elsewhere: "libfaketime",
  },
  {
    name: "sqlite3",
    debian: "sqlite3",
    usedBy: /["'`/]sqlite3["'` ]/,
    find: () => inPath("sqlite3"),
    why: "tests with a second program at the data file",
    elsewhere: "the sqlite3 command",
  },
];

/**
 * Finds the programs that the given test sources use; as root on Debian installs the missing ones first.
 * What is still missing is said in one line each; its tests are skipped, and counted as skipped.
 * @param {string} sources text of the chosen test files and all they import
 * @returns {Record<string, string>} path by program name
 */
export function findPrograms(sources) {
  const used = PROGRAMS.filter((program) => program.usedBy.test(sources));
  const missing = used.filter((program) => !program.find());
  if (missing.length > 0 && canInstall()) aptInstall(missing.map((program) => program.debian));
  const found = {};
  for (const program of used) {
    const path = program.find();
    if (path) found[program.name] = path;
    else say(`No ${program.name}: ${program.why} are skipped. Install ${program.elsewhere} to run them.`);
  }
  return found;
}

/** First executable of these names on PATH. */
export function inPath(...names) {
  for (const name of names)
    for (const folder of (process.env.PATH ?? "").split(delimiter)) {
      const path = join(folder, name);
      if (folder && existsSync(path)) return path;
    }
}

/** Chromium or Chrome: KXM_TEST_CHROMIUM, PATH, or where macOS keeps applications. */
export function findChromium() {
  const named = process.env.KXM_TEST_CHROMIUM;
  if (named) return existsSync(named) ? named : undefined;
  const mac = ["Google Chrome", "Chromium"].map((app) => `/Applications/${app}.app/Contents/MacOS/${app}`);
  return inPath("chromium", "chromium-browser", "google-chrome", "google-chrome-stable") ?? mac.find((path) => existsSync(path));
}

/** Folder with initdb and postgres of the newest installed PostgreSQL. */
export function findPostgres() {
  const debian = "/usr/lib/postgresql";
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  const config = inPath("pg_config");
  const folders = [
    ...versions.map((version) => join(debian, version, "bin")),
    ...(config ? [spawnSync(config, ["--bindir"], { encoding: "utf8" }).stdout.trim()] : []),
    ...["/opt/homebrew/opt", "/usr/local/opt"].flatMap((folder) =>
      (existsSync(folder) ? readdirSync(folder) : []).filter((name) => name.startsWith("postgresql")).map((name) => join(folder, name, "bin")),
    ),
    ...(process.env.PATH ?? "").split(delimiter),
  ];
  return folders.find((folder) => folder && existsSync(join(folder, "initdb")) && existsSync(join(folder, "postgres")));
}

function canInstall() {
  return process.getuid?.() === 0 && existsSync("/etc/debian_version") && Boolean(inPath("apt-get"));
}

/** Installs packages; Debian's list is refreshed only when the packages cannot be had without. */
function aptInstall(packages) {
  say(`Installing ${packages.join(", ")} with apt-get (first run only, a few minutes) …`);
  if (packages.includes("postgresql")) {
    const common = apt("install", "postgresql-common");
    if (!common.ok) return aptFailed(common);
    return withoutMainCluster(() => aptFailed(apt("install", ...packages)));
  }
  aptFailed(apt("install", ...packages));
}

function apt(command, ...packages) {
  const install = () => {
    const args = [command, "-y", "-q", "--no-install-recommends", "-o", "Dpkg::Use-Pty=0", "-o", "DPkg::Lock::Timeout=300", ...packages];
    return spawnSync("apt-get", args, {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
      maxBuffer: 1 << 26,
    });
  };
  let end = install();
  if (end.status !== 0) {
    spawnSync("apt-get", ["update", "-q"], { stdio: "ignore" });
    end = install();
  }
  return { ok: end.status === 0, error: `${end.stderr ?? ""}${end.error ?? ""}`.trim().split("\n").slice(-3).join("; ") };
}

function aptFailed({ ok, error }) {
  if (!ok) say(`apt-get failed: ${error}`);
}

/** Debian starts a database server when PostgreSQL is installed. Tests start their own; the machine should not get one by running tests. */
function withoutMainCluster(action) {
  const path = "/etc/postgresql-common/createcluster.conf";
  const before = existsSync(path) ? readFileSync(path, "utf8") : "";
  writeFileSync(path, `${before}\ncreate_main_cluster = false\n`);
  try {
    action();
  } finally {
    writeFileSync(path, before);
  }
}
