// Makes node_modules match package-lock.json and finds a bun that runs, on a machine that has only Node and npm.
// No package's install script is ever run: bun's only links a binary that npm has already downloaded, and we do that here.
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, linkSync, lstatSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { at, giveUp, ROOT, readJson, say } from "./project.mjs";

const NODE_MAJOR_MIN = 20;
const EXE = process.platform === "win32" ? "bun.exe" : "bun";

/** Everything a script needs before it can run anything: packages as locked, and the path of bun. */
export function install() {
  const major = Number(process.versions.node.split(".")[0]);
  if (major < NODE_MAJOR_MIN)
    giveUp(`Node ${process.versions.node} is too old.`, `Install Node ${NODE_MAJOR_MIN} or newer and run the command again.`);
  const lock = readJson("package-lock.json");
  if (!lock) giveUp("package-lock.json is missing.", "Restore it with `git checkout package-lock.json`.");
  const drift = driftBetween(readJson("package.json"), lock);
  if (drift) giveUp(`package.json and package-lock.json disagree about ${drift}.`, "Run `npm install` and commit both files.");
  const missing = firstMissing(lock);
  if (missing) runNpmCi(missing);
  return findBun();
}

/** The first direct dependency whose wanted version is not what the lock file was made for. */
export function driftBetween(manifest, lock) {
  const root = lock.packages?.[""] ?? {};
  for (const kind of ["dependencies", "devDependencies"]) {
    const wanted = manifest[kind] ?? {};
    const locked = root[kind] ?? {};
    for (const name of new Set([...Object.keys(wanted), ...Object.keys(locked)])) if (wanted[name] !== locked[name]) return name;
  }
}

/** The first locked package that is not installed as locked; npm keeps what it installed in node_modules/.package-lock.json. */
function firstMissing(lock) {
  const installed = readJson("node_modules", ".package-lock.json")?.packages;
  if (!installed) return "node_modules";
  for (const [path, wanted] of Object.entries(lock.packages)) {
    if (path === "" || (wanted.optional && !installed[path])) continue;
    if (installed[path]?.version !== wanted.version || installed[path]?.integrity !== wanted.integrity || !existsSync(at(path))) return path;
  }
  return Object.keys(installed).find((path) => !lock.packages[path]);
}

function runNpmCi(missing) {
  const modules = lstatSync(at("node_modules"), { throwIfNoEntry: false });
  // npm would empty the folder that the link leads to, which is somebody else's.
  if (modules?.isSymbolicLink()) giveUp(`node_modules is a link, and ${missing} is not as locked.`, "Remove the link and run the command again.");
  say(modules ? `Installing packages: ${missing} is not as locked …` : "Installing packages (first run only) …");
  const npm = process.env.npm_execpath ? [process.execPath, process.env.npm_execpath] : ["npm"];
  const args = ["ci", "--ignore-scripts", "--include=dev", "--include=optional", "--no-audit", "--no-fund", "--loglevel=error"];
  const { status, error } = spawnSync(npm[0], [...npm.slice(1), ...args], { cwd: ROOT, stdio: ["ignore", 2, 2] });
  if (error?.code === "ENOENT") giveUp("npm was not found.", "Install npm (it comes with Node) and run the command again.");
  if (status !== 0)
    giveUp(
      `\`npm ci\` failed${status === null ? "" : ` with code ${status}`}.`,
      "Check the network and `npm config get registry`, then run the command again.",
    );
}

/** Path of a bun of the locked version. Links the platform's binary into node_modules/bun where npm would have. */
function findBun() {
  const wanted = readJson("node_modules", "bun", "package.json")?.version;
  const linked = at("node_modules", "bun", "bin", "bun.exe");
  if (runs(linked, wanted)) return linked;
  for (const name of existsSync(at("node_modules", "@oven")) ? readdirSync(at("node_modules", "@oven")) : []) {
    const packed = at("node_modules", "@oven", name, "bin", EXE);
    if (!runs(packed, wanted)) continue;
    for (const target of [linked, at("node_modules", "bun", "bin", "bunx.exe")]) place(packed, target);
    return linked;
  }
  giveUp(
    `npm installed no bun that runs on ${process.platform} ${process.arch}.`,
    "Remove node_modules and run the command again; optional packages must not be left out.",
  );
}

function runs(path, version) {
  return existsSync(path) && spawnSync(path, ["--version"], { encoding: "utf8" }).stdout?.trim() === version;
}

function place(from, to) {
  mkdirSync(dirname(to), { recursive: true });
  rmSync(to, { force: true });
  try {
    linkSync(from, to);
  } catch {
    copyFileSync(from, to);
  }
}
