// `kxm runtime` and `kxm redact` as a person uses them: beside a hub of the workspace, in an ordinary repository.
import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readEndpoint } from "../../src/client/local-runtime.ts";
import { statePaths } from "../../src/client/state-paths.ts";
import { sh } from "./engine/world.ts";
import { until } from "./runtime-process.ts";
import { temporaryFolder } from "./support.ts";

const MAIN = join(import.meta.dir, "../../src/main.ts");

function person() {
  const folder = temporaryFolder();
  const shop = folder.file("shop");
  sh(folder.path, "mkdir shop && cd shop && git init -q");
  const env = {
    PATH: process.env["PATH"]!,
    HOME: folder.path,
    USER: "ana",
    KXM_STATE_HOME: folder.file("state"),
    KXM_RUNTIME_SYNC_INTERVAL_MS: "250",
  };
  const spawn = (args: string[]) => Bun.spawn([process.execPath, MAIN, ...args], { cwd: shop, env, stdout: "pipe", stderr: "pipe" });
  const kxm = async (...args: string[]) => {
    const child = spawn(args);
    const [out, err, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
    return { out, err, code };
  };
  return {
    root: env.KXM_STATE_HOME,
    kxm,
    json: async (...args: string[]) => JSON.parse((await kxm(...args, "--json")).out),
    hub: async () => {
      const child = spawn(["hub", "start", "--json", "--port", "0"]);
      const { value } = await child.stdout.getReader().read();
      return { url: JSON.parse(new TextDecoder().decode(value)).url as string, [Symbol.dispose]: () => child.kill("SIGKILL") };
    },
    [Symbol.dispose]: () => {
      try {
        process.kill(readEndpoint(env.KXM_STATE_HOME).pid, "SIGKILL");
      } catch {} // it was stopped
      folder[Symbol.dispose]();
    },
  };
}

test("start, status and stop say what is so, and a second start changes nothing", async () => {
  using me = person();
  const none = await me.kxm("runtime", "status");
  expect([none.code, none.err.includes("kxm runtime start")]).toEqual([3, true]);
  const started = await me.json("runtime", "start");
  expect(started.runtimeId).toMatch(/^rtm_[0-9a-f]{24}$/);
  expect(started).toMatchObject({ generation: 1, sync: { projects: [] } });
  expect((await me.json("runtime", "start")).pid).toBe(started.pid);
  const shown = await me.kxm("runtime");
  expect(shown.out).toContain(started.runtimeId);
  expect(shown.out).toContain("none: `kxm runtime bind` names one");
  expect(await me.json("runtime", "stop")).toEqual({ stopped: started.pid });
  expect((await me.kxm("runtime", "stop")).code).toBe(3);
  expect((await me.json("runtime", "start")).generation).toBe(2);
}, 60_000);

test("a run in a repository with a hub shows at the hub without a word about it", async () => {
  using me = person();
  using hub = await me.hub();
  await me.kxm("init");
  const first = await me.kxm("run", "hello");
  expect([first.code, first.err.includes("reports to")]).toEqual([0, false]);
  const status = await until(async () => {
    const now = await me.json("runtime", "status");
    return now.sync.projects[0]?.acked > 0 && now.sync.projects[0].pending === 0 ? now : undefined;
  }, "the run's events to be taken");
  expect(status.sync).toMatchObject({ hub: { url: hub.url, project: "shop" }, projects: [{ state: "ok", refused: {} }] });
  const runs = await (await fetch(`${hub.url}/v1/runs?project=shop`)).json();
  expect(runs.runs ?? runs.code).toBeDefined();
  expect(await me.json("runtime", "sync-retry")).toEqual({ requeued: 0 });
  const healthy = await me.kxm("doctor");
  expect(healthy.out).toContain(`This machine's Runtime reports to ${hub.url} as project shop.`);
  expect(healthy.out).toContain("Project shop: everything is sent.");
  expect(await me.json("runtime", "unbind")).toEqual({ hub: null });
  expect((await me.kxm("doctor")).out).toContain(`reports to no hub, not to ${hub.url}`);
  expect((await me.json("runtime", "status")).sync.projects[0].state).toBe("no_hub");
  expect(await me.json("runtime", "bind", "--hub", hub.url, "--project", "shop")).toEqual({ hub: { url: hub.url, project: "shop" } });
  await me.json("runtime", "bind", "--hub", "http://127.0.0.1:9");
  const away = await me.kxm("run", "hello", "--detach");
  expect([away.code, away.err]).toEqual([0, expect.stringContaining(`reports to http://127.0.0.1:9, not to ${hub.url}`)]);
  const stuck = await until(async () => {
    const looked = await me.kxm("doctor");
    return looked.out.includes("wait to be sent: ") ? looked : undefined;
  }, "the Runtime to have tried the address where nobody listens");
  expect([stuck.code, stuck.out]).toEqual([1, expect.stringMatching(/look {2}Project shop: \d+ events wait to be sent: .*; tried again at /)]);
  expect(stuck.out).toContain(
    `reports to http://127.0.0.1:9 as project shop, not to ${hub.url}; \`kxm runtime bind --hub ${hub.url}\` changes that.`,
  );
  await me.json("runtime", "bind", "--hub", hub.url.replace("127.0.0.1", "localhost"));
  expect((await me.kxm("run", "hello", "--detach")).err).not.toContain("reports to");
}, 60_000);

test("redact scan ends with 0 when there is nothing and with 1 when there is something, which it does not show", async () => {
  using me = person();
  await me.kxm("runtime", "start");
  expect(await me.kxm("redact", "scan")).toMatchObject({ code: 0, out: expect.stringContaining("nothing that looks like a secret") });
  const token = ["gh", "p_", "a1B2".repeat(9)].join("");
  mkdirSync(statePaths(me.root).logs, { recursive: true });
  writeFileSync(`${statePaths(me.root).log}.1`, `${token}\n`);
  const found = await me.kxm("redact", "scan");
  expect(found.code).toBe(1);
  expect(found.out).toContain("github-token");
  expect(found.out).not.toContain(token);
}, 60_000);
