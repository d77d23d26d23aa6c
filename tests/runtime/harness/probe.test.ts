// What is said of installed programs: stand-ins that answer as the real ones do.
import { expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { harnessReports } from "../../../src/runtime/harness/probe.ts";

/** A home and a PATH of its own. */
function person(programs: Record<string, string>) {
  const folder = mkdtempSync("/dev/shm/kxm-probe-");
  const put = (path: string, text: string) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  };
  for (const [name, text] of Object.entries(programs)) {
    put(`bin/${name}`, `#!/bin/sh\n${text}\n`);
    chmodSync(join(folder, "bin", name), 0o755);
  }
  const report = async (id: string, env: Record<string, string> = {}) =>
    (await harnessReports({ HOME: folder, PATH: join(folder, "bin"), ...env })).harnesses.find((one) => one.id === id)!;
  return { put, report, [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) };
}
const CODEX = (said: string) => `case "$1" in --version) echo codex-cli 0.171.0;; login) echo 'WARNING: something' >&2; echo '${said}' >&2;; esac`;

test("a program that can be asked says itself whether somebody is signed in", async () => {
  using me = person({
    claude: `case "$1" in --version) echo '2.1.332 (Claude Code)';; auth) if [ -f "$HOME/in" ]; then echo '{"loggedIn": true}'; else echo '{"loggedIn": false}'; exit 1; fi;; esac`,
    codex: CODEX("Not logged in"),
    gemini: "echo 0.61.0",
  });
  expect(await me.report("claude")).toMatchObject({ state: "signed_out", signedIn: "no", version: "2.1.332" });
  me.put("in", "");
  expect(await me.report("claude")).toMatchObject({ state: "ready", signedIn: "yes" });
  expect(await me.report("codex")).toMatchObject({ state: "signed_out", signedIn: "no", version: "0.171.0" });
  // A key of the environment may do, which the program does not count; so may a provider of the user's own.
  expect(await me.report("codex", { OPENAI_API_KEY: "k" })).toMatchObject({ state: "unknown", signedIn: "unknown" });
  me.put(".codex/config.toml", 'model_provider = "mine"\n');
  expect((await me.report("codex")).signedIn).toBe("unknown");
  // One that cannot be asked: what lies here shows a sign-in, and never that there is none.
  expect((await me.report("gemini")).signedIn).toBe("unknown");
  me.put(".gemini/oauth_creds.json", "{}");
  expect((await me.report("gemini")).signedIn).toBe("yes");
  expect(await me.report("qwen")).toMatchObject({ state: "missing", signedIn: "unknown" });
});

test("an answer in another form than is known leaves it to what lies here", async () => {
  using me = person({ claude: "echo 'unknown command'; exit 2", codex: CODEX("Logged in using ChatGPT") });
  expect((await me.report("claude")).signedIn).toBe("unknown");
  me.put(".claude/.credentials.json", "{}");
  expect((await me.report("claude")).signedIn).toBe("yes");
  expect((await me.report("codex")).signedIn).toBe("yes");
});
