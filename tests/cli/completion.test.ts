// Completion: what a shell offers after some words. bash is asked itself; zsh and fish where they are installed.
import { expect, test } from "bun:test";
import { runHere } from "../support/served.ts";

const script = async (shell: string) => (await runHere(["completion", shell], { folder: "/nowhere" })).stdout;

/** What bash offers for the last word. */
async function offered(line: string): Promise<string[]> {
  const words = line.split(" ");
  const ask = `COMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${words.length - 1}; _kxm; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout, stderr, exitCode } = Bun.spawnSync(["bash", "--norc", "-c", `${await script("bash")}\n${ask}`]);
  expect([exitCode, stderr.toString()]).toEqual([0, ""]);
  return stdout.toString().split("\n").filter(Boolean);
}

test("bash offers commands, then those of a group, then options, whatever stands between", async () => {
  expect(await offered("kxm pe")).toEqual(["peer"]);
  expect(await offered("kxm ")).toEqual(expect.arrayContaining(["hub", "open", "peer", "lease", "token"]));
  expect(await offered("kxm peer s")).toEqual(["send"]);
  expect(await offered("kxm peer --as ann s")).toEqual(["send"]);
  expect(await offered("kxm peer send --w")).toEqual(["--wait"]);
  expect(await offered("kxm peer send bob --a")).toEqual(["--as"]); // the group's options count behind the command, too
  expect(await offered("kxm hub --det")).toEqual(["--detach"]); // those of its default command
  expect(await offered("kxm lease acquire x --ttl 5m --js")).toEqual(["--json"]);
  expect(await offered("kxm xyz")).toEqual([]);
});

test.skipIf(!Bun.which("zsh"))("zsh reads its script", async () => {
  expect(Bun.spawnSync(["zsh", "-n", "-c", await script("zsh")]).exitCode).toBe(0);
});

test.skipIf(!Bun.which("fish"))("fish reads its script", async () => {
  expect(Bun.spawnSync(["fish", "--no-execute", "-c", await script("fish")]).exitCode).toBe(0);
});

test("every script quotes summaries with apostrophes and colons", async () => {
  for (const shell of ["zsh", "fish"]) {
    const text = await script(shell);
    expect(text).toContain("\\'"); // a summary has an apostrophe
    expect(text.replaceAll("\\'", "").split("'").length % 2).toBe(1);
    expect(text).toContain("see which agent programs can run here");
  }
});

test("another shell is a mistake in the call", async () => {
  expect((await runHere(["completion", "tcsh"], { folder: "/nowhere" })).code).toBe(2);
  expect((await runHere(["completion"], { folder: "/nowhere" })).code).toBe(2);
});
