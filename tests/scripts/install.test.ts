// The bootstrap: packages as locked, no install script, and a bun that runs although nothing linked it.
import { expect, test } from "bun:test";
import { linkSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { dirname } from "node:path";
import { workbench } from "./workbench.ts";

const INSTALL = 'import { install } from "./lib/install.mjs"; console.log(install());';
const BUN = { version: Bun.version, integrity: "sha512-bun" };
const PLATFORM = { version: Bun.version, integrity: "sha512-platform", optional: true };

/** A project that needs bun alone, and an npm that installs it as npm does when install scripts are blocked. */
function bunOnly(installed: "nothing" | "blocked" | "older") {
  const bench = workbench("none");
  const manifest = { devDependencies: { bun: Bun.version } };
  const packages = { "node_modules/bun": BUN, "node_modules/@oven/bun-here": PLATFORM };
  bench.write("package.json", JSON.stringify(manifest));
  bench.write("package-lock.json", JSON.stringify({ packages: { "": manifest, ...packages, "node_modules/@oven/bun-elsewhere": PLATFORM } }));
  bench.write("scripts/install-here.mjs", INSTALL);
  bench.write("given/bun/package.json", JSON.stringify({ name: "bun", version: Bun.version }));
  bench.write("given/bun/bin/bun.exe", 'echo "install script was not run" >&2; exit 1');
  const oven = bench.path("given/@oven/bun-here/bin/bun");
  mkdirSync(dirname(oven), { recursive: true });
  linkSync(process.execPath, oven);
  bench.write("given/.package-lock.json", JSON.stringify({ packages }));
  bench.write(
    "npm.cjs",
    `const { cpSync, rmSync, writeFileSync } = require("node:fs");
     writeFileSync(${JSON.stringify(bench.path("npm-was-called"))}, process.argv.slice(2).join(" "));
     if (process.env.NPM_FAILS) process.exit(7);
     rmSync(${JSON.stringify(bench.path("node_modules"))}, { recursive: true, force: true });
     cpSync(${JSON.stringify(bench.path("given"))}, ${JSON.stringify(bench.path("node_modules"))}, { recursive: true });`,
  );
  if (installed !== "nothing") {
    for (const name of ["bun/package.json", "bun/bin/bun.exe"])
      bench.write(`node_modules/${name}`, readFileSync(bench.path(`given/${name}`), "utf8"));
    mkdirSync(dirname(bench.path("node_modules/@oven/bun-here/bin/bun")), { recursive: true });
    linkSync(process.execPath, bench.path("node_modules/@oven/bun-here/bin/bun"));
    const version = installed === "older" ? "0.0.1" : Bun.version;
    bench.write("node_modules/.package-lock.json", JSON.stringify({ packages: { ...packages, "node_modules/bun": { ...BUN, version } } }));
  }
  const run = (env: Record<string, string> = {}) => bench.run("install-here.mjs", [], { npm_execpath: bench.path("npm.cjs"), ...env });
  const npmCalledWith = () => {
    try {
      return readFileSync(bench.path("npm-was-called"), "utf8");
    } catch {
      return undefined;
    }
  };
  return { ...bench, run, npmCalledWith, [Symbol.dispose]: bench[Symbol.dispose] };
}

const versionOf = (path: string) => Bun.spawnSync([path, "--version"]).stdout.toString().trim();

test("a machine without packages gets them by npm ci, without install scripts, and a bun that runs", async () => {
  using project = bunOnly("nothing");
  const { code, out, err } = await project.run();
  expect({ code, err }).toEqual({ code: 0, err: "Installing packages (first run only) …\n" });
  expect(project.npmCalledWith()).toStartWith("ci --ignore-scripts ");
  expect(out.trim()).toBe(project.path("node_modules/bun/bin/bun.exe"));
  expect(versionOf(out.trim())).toBe(Bun.version);
});

test("packages as locked are left alone, and a bun that was never linked is linked without npm", async () => {
  using project = bunOnly("blocked");
  expect(Bun.spawnSync(["sh", project.path("node_modules/bun/bin/bun.exe")]).exitCode).toBe(1); // it is the placeholder
  const { code, out, err } = await project.run();
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(project.npmCalledWith()).toBeUndefined();
  expect(versionOf(out.trim())).toBe(Bun.version);
});

test("packages of another version are replaced", async () => {
  using project = bunOnly("older");
  const { code, err } = await project.run();
  expect(code).toBe(0);
  expect(err).toContain("node_modules/bun is not as locked");
  expect(project.npmCalledWith()).toStartWith("ci ");
});

test("packages behind a link belong to somebody else and are not replaced", async () => {
  using project = bunOnly("older");
  Bun.spawnSync(["mv", project.path("node_modules"), project.path("theirs")]);
  symlinkSync(project.path("theirs"), project.path("node_modules"));
  const { code, err } = await project.run();
  expect(code).toBe(1);
  expect(err).toBe("kxm: node_modules is a link, and node_modules/bun is not as locked. Remove the link and run the command again.\n");
  expect(project.npmCalledWith()).toBeUndefined();
});

test("a failing npm ends with one line that says what to do", async () => {
  using project = bunOnly("nothing");
  const { code, err } = await project.run({ NPM_FAILS: "1" });
  expect(code).toBe(1);
  expect(err.trim().split("\n").at(-1)).toBe(
    "kxm: `npm ci` failed with code 7. Check the network and `npm config get registry`, then run the command again.",
  );
});

test("a manifest that the lock file was not made for is refused by the package's name", async () => {
  using project = bunOnly("blocked");
  project.write("package.json", JSON.stringify({ devDependencies: { bun: Bun.version }, dependencies: { forgotten: "1.0.0" } }));
  const { code, err } = await project.run();
  expect(code).toBe(1);
  expect(err).toBe("kxm: package.json and package-lock.json disagree about forgotten. Run `npm install` and commit both files.\n");
});

test("a machine for which there is no bun is told so", async () => {
  using project = bunOnly("blocked");
  project.write("node_modules/@oven/bun-here/package.json", "{}");
  Bun.spawnSync(["rm", project.path("node_modules/@oven/bun-here/bin/bun")]);
  const { code, err } = await project.run();
  expect(code).toBe(1);
  expect(err).toStartWith(`kxm: npm installed no bun that runs on ${process.platform} ${process.arch}.`);
});
