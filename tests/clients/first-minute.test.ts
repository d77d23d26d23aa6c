// The README's first minute, measured: from packed programs on an empty machine to the first answered message between two agents, with the commands
// that stand in the README and no others. `npm run test:first-minute`.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "../..");
const README = readFileSync(join(ROOT, "README.md"), "utf8");
const GOAL_MS = 60_000;
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "kxm-first-"));
  if (!existsSync(join(ROOT, "dist/kxm"))) throw new Error("dist/kxm is not built: run `npm run build` first");
  const packed = Bun.spawnSync(["tar", "-czf", join(folder, "kxm.tar.gz"), "-C", join(ROOT, "dist"), "kxm", "kxm-runtime"]);
  if (packed.exitCode !== 0) throw new Error(packed.stderr.toString());
}, GOAL_MS);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The command of the README that begins so, without its comment. */
function documented(beginning: string): string {
  const found = [...README.matchAll(/`([^`\n]+)`|^(kxm [^\n#]+)/gm)].map(([, inline, line]) => (inline ?? line)!.trim());
  const command = found.find((one) => one.startsWith(beginning));
  if (!command) throw new Error(`the README has no command that begins with ${beginning}`);
  return command;
}

test(
  "an unpacked program and the README's commands lead to an answer within a minute",
  async () => {
    const [bin, home, work] = ["bin", "home", "work"].map((name) => join(folder, name));
    for (const path of [bin!, home!, work!]) mkdirSync(path);
    const env = { HOME: home!, PATH: `${bin}:/usr/bin:/bin`, KXM_PORT: "0" }; // any free port: a hub of this machine's own may use the usual one
    const type = (command: string) =>
      Bun.spawn(["sh", "-c", `exec ${command}`], { cwd: work!, env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
    const marks: [what: string, ms: number][] = [];
    const began = performance.now();
    const mark = (what: string) => marks.push([what, performance.now() - began]);

    Bun.spawnSync(["tar", "-xzf", join(folder, "kxm.tar.gz"), "-C", bin!]);
    mark("unpacked");
    const started = type(documented("kxm hub start --detach"));
    const address = await new Response(started.stdout).text();
    expect([await started.exited, address]).toEqual([0, expect.stringContaining("http://127.0.0.1:")]);
    mark("the hub runs");
    try {
      const alice = type(documented("kxm peer --as alice inbox --follow"));
      const online = Promise.withResolvers<void>();
      const shown = Promise.withResolvers<string>();
      void watch(alice.stderr, (text) => text.includes("online") && online.resolve());
      void watch(alice.stdout, (text) => {
        const id = /msg_[0-9a-f]{32}/.exec(text)?.[0];
        if (id) shown.resolve(id);
      });
      await online.promise;
      const bob = type(documented("kxm peer --as bob send alice"));
      const id = await shown.promise;
      mark("the message is shown");
      const reply = type(documented("kxm peer --as alice reply").replace("<id>", id));
      expect(await reply.exited).toBe(0);
      const answer = await new Response(bob.stdout).text();
      expect([await bob.exited, answer.trim()]).toEqual([0, "hello yourself"]);
      mark("the answer is read");
      alice.kill("SIGINT");
      await alice.exited;
    } finally {
      await type("kxm hub stop").exited;
    }
    console.log(marks.map(([what, ms]) => `${(ms / 1_000).toFixed(2).padStart(6)} s  ${what}`).join("\n"));
    expect(marks.at(-1)![1]).toBeLessThan(GOAL_MS);
  },
  GOAL_MS + 30_000,
);

/** Tells of everything a stream has said so far, whenever it says more. */
async function watch(stream: ReadableStream<Uint8Array>, look: (text: string) => unknown) {
  let text = "";
  for await (const chunk of stream as unknown as AsyncIterable<Uint8Array>) look((text += new TextDecoder().decode(chunk)));
}
