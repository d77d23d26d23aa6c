// What the tests need from the machine: found where it is, installed where that is possible, and otherwise said in one line.
import { afterAll, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NODE, ROOT } from "./workbench.ts";

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** A machine whose PATH has Node and what the test puts there. */
function machine(programs: Record<string, string> = {}) {
  const folder = mkdtempSync(join(tmpdir(), "kxm-machine-"));
  folders.push(folder);
  symlinkSync(NODE, join(folder, "node"));
  for (const [name, script] of Object.entries(programs)) writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  const find = async (sources: string, env: Record<string, string> = {}) => {
    const ask = `import { findPrograms } from ${JSON.stringify(join(ROOT, "scripts/lib/machine.mjs"))};
      console.log(JSON.stringify(findPrograms(${JSON.stringify(sources)})));`;
    const child = Bun.spawn([NODE, "--input-type=module", "-e", ask], { env: { PATH: folder, ...env }, stdout: "pipe", stderr: "pipe" });
    const [out, said] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    return { found: JSON.parse(out) as Record<string, string>, said };
  };
  return { folder, find };
}

test("nothing is looked for that no chosen test uses", async () => {
  const { find } = machine({ "apt-get": "echo called >&2; exit 1" });
  expect(await find('test("a lease", () => {});')).toEqual({ found: {}, said: "" });
});

test("a program on PATH is found, and one that is named in the environment comes first", async () => {
  const { folder, find } = machine({ "google-chrome": "exit 0", other: "exit 0" });
  expect((await find('from "playwright-core"')).found).toEqual({ chromium: join(folder, "google-chrome") });
  expect((await find('from "playwright-core"', { KXM_TEST_CHROMIUM: join(folder, "other") })).found).toEqual({ chromium: join(folder, "other") });
});

test("what is missing and cannot be installed is one line that says what is skipped and what to install", async () => {
  const { find } = machine();
  expect(await find('Bun.spawn(["strace", "-f"]); from "playwright-core"')).toEqual({
    found: {},
    said:
      "No chromium: browser tests are skipped. Install Chromium or Google Chrome to run them.\n" +
      "No strace: tests that trace or fail system calls are skipped. Install strace (Linux only) to run them.\n",
  });
});

const rootOnDebian = process.getuid?.() === 0 && existsSync("/etc/debian_version");

test.skipIf(!rootOnDebian)("as root on Debian what is missing is installed, after the package list is refreshed if need be", async () => {
  const { folder, find } = machine({
    "apt-get": `PATH=/usr/bin:/bin; cd "$(dirname "$0")"; echo "$@" >> calls; [ "$1" = update ] && touch fresh; [ -e fresh ] || exit 100; [ "$1" = install ] && touch chromium strace; exit 0`,
  });
  const { found, said } = await find('Bun.spawn(["strace", "-f"]); from "playwright-core"');
  expect(said).toBe("Installing chromium, strace with apt-get (first run only, a few minutes) …\n");
  expect(found).toEqual({ chromium: join(folder, "chromium"), strace: join(folder, "strace") });
  const calls = readFileSync(join(folder, "calls"), "utf8").trim().split("\n");
  expect(calls.map((call) => call.split(" ")[0])).toEqual(["install", "update", "install"]);
  expect(calls[0]).toEndWith(" chromium strace");
});

test.skipIf(!rootOnDebian)("an apt-get that fails is reported, and its tests are skipped, not passed over in silence", async () => {
  const { find } = machine({ "apt-get": "echo 'E: no network' >&2; exit 100" });
  const { found, said } = await find('from "playwright-core"');
  expect(found).toEqual({});
  expect(said).toContain("apt-get failed: E: no network\n");
  expect(said).toContain("No chromium: browser tests are skipped.");
});
