// Which test files a command runs, and what their sources say they need.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { at, ROOT } from "./project.mjs";

/** Folders under tests/ that `npm test` leaves out: each is long or needs something of its own, and has a command of its own. */
const APART = ["clients", "bench"];

/** What each command runs, the environment it adds, and its time limits in milliseconds. */
export const SUITES = {
  all: { folders: undefined, env: {}, testMs: 30_000, runMs: 20 * 60_000 },
  faults: { folders: ["faults", "simulation"], env: { KXM_FAULTS: "full" }, testMs: 30 * 60_000, runMs: 120 * 60_000 },
  clients: { folders: ["clients"], env: { KXM_CLIENTS: "full" }, testMs: 5 * 60_000, runMs: 60 * 60_000 },
};

/** All test files under tests/, as paths from the root. */
export function allTestFiles() {
  if (!existsSync(at("tests"))) return [];
  return readdirSync(at("tests"), { recursive: true })
    .map((name) => join("tests", name))
    .filter((path) => /\.test\.tsx?$/.test(path))
    .sort();
}

/**
 * The files of a suite; with `wanted`, those whose path starts with or contains one of them (then folders that are left out count, too).
 * @param {{folders?: string[]}} suite
 * @param {string[]} wanted paths or parts of paths
 */
export function choose(files, suite, wanted) {
  const folderOf = (path) => path.split("/")[1];
  const scope = suite.folders ? files.filter((path) => suite.folders.includes(folderOf(path))) : files;
  if (wanted.length === 0) return suite.folders ? scope : scope.filter((path) => !APART.includes(folderOf(path)));
  const names = wanted.map((name) => relative(ROOT, at(name)));
  return scope.filter((path) => names.some((name) => path === name || path.startsWith(`${name}/`) || (!existsSync(at(name)) && path.includes(name))));
}

/** Text of the files and of everything under tests/ that they import, joined. */
export function sourcesOf(files) {
  const texts = new Map();
  const visit = (path) => {
    if (texts.has(path) || !path.startsWith("tests/") || !existsSync(at(path))) return;
    const text = readFileSync(at(path), "utf8");
    texts.set(path, text);
    for (const [, target] of text.matchAll(/["'](\.{1,2}\/[^"'\n]+\.tsx?)["']/g)) visit(join(dirname(path), target));
  };
  for (const file of files) visit(file);
  return [...texts.values()].join("\n");
}
