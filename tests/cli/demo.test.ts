// The demo: a living hub within seconds, and nothing left of it afterwards.
import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { play } from "../../src/cli/demo-agents.ts";
import { ask, open } from "../../src/client/http.ts";
import { readFrames } from "../../src/client/sse.ts";
import { until } from "../support/fleet.ts";
import { openPlace } from "../support/program.ts";
import { serveHub } from "../support/served.ts";

test("its agents talk, answer, hold leases and stand in line, come and go, without trouble", async () => {
  await using hub = await serveHub({ KXM_RATE_LIMIT_MAX: "1000000" });
  const stop = new AbortController();
  const troubles: string[] = [];
  const played = play({ to: { url: hub.url }, project: "shop", stopping: stop.signal, pace: 0.01, trouble: (text) => troubles.push(text) });
  const types = new Set<string>();
  const wanted = [
    ...["registered", "offline"].map((type) => `agents ${type}`),
    ...["queued", "pushed", "delivered", "turn_started", "replied", "cancelled"].map((type) => `messages ${type}`),
    ...["acquired", "waiting", "renewed", "released"].map((type) => `leases ${type}`),
  ];
  for (let after = 0; !wanted.every((type) => types.has(type)); ) {
    for (const { seq, topic, type } of await hub.serving.hub.engine.read.events.after("shop", after, 500)) {
      after = seq;
      types.add(`${topic} ${type}`);
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
  stop.abort();
  await played;
  expect(troubles).toEqual([]);
}, 60_000);

test("kxm demo serves a dashboard and a run, ends with Ctrl-C, and leaves neither file nor process", async () => {
  await using place = await openPlace();
  const demo = await place.startHub({ command: "demo", env: { TMPDIR: place.folder } });
  const folder = join(place.folder, readdirSync(place.folder).find((name) => name.startsWith("kxm-demo-"))!);
  while (!/dashboard +\S+/.test(demo.stdout())) await new Promise((resolve) => setImmediate(resolve));
  const link = /dashboard +(\S+)/.exec(demo.stdout())![1]!;
  expect((await fetch(link, { redirect: "manual" })).status).toBe(303);
  const token = (await Bun.file(join(folder, "hub/state/admin.token")).text()).trim();
  const glance = () => ask({ url: demo.url, token }, "GET", "/v1/ops/snapshot?project=shop").then(({ body }) => body);
  const ran = ({ homeRuntimes: [home] }: any) => home?.runs.some(({ status }: { status?: string }) => status === "completed");
  const alive = (seen: any) => seen.agents.length >= 5 && (!Bun.which("git") || ran(seen));
  const stream = await open({ url: demo.url, token }, "GET", "/v1/ops/events?project=shop");
  for await (const _ of readFrames(stream)) if (alive(await glance())) break; // each change is a reason to look again
  expect(alive(await glance())).toBe(true);
  const stateDir = /KXM_STATE_DIR=(\S+) /.exec(demo.stdout())![1]!;
  const again = await place.run(["open", "--print"], { env: { KXM_STATE_DIR: stateDir } });
  expect((await fetch(again.stdout.trim(), { redirect: "manual" })).status).toBe(303);
  const { code, ms } = await demo.end("SIGINT");
  expect([code, demo.stderr()]).toEqual([0, ""]);
  expect(demo.stdout()).toContain("the demo has ended, and everything it made is gone");
  expect(ms).toBeLessThan(10_000);
  expect(existsSync(folder)).toBe(false);
  const left = readdirSync("/proc").filter((pid) => /^\d+$/.test(pid) && environmentOf(pid).includes(`KXM_STATE_HOME=${folder}`));
  expect(left).toEqual([]);
}, 60_000);

test("a demo that is killed takes its Runtime with it", async () => {
  await using place = await openPlace();
  const demo = await place.startHub({ command: "demo", env: { TMPDIR: place.folder } });
  const folder = join(place.folder, readdirSync(place.folder).find((name) => name.startsWith("kxm-demo-"))!);
  const ofDemo = () => readdirSync("/proc").filter((pid) => /^\d+$/.test(pid) && environmentOf(pid).includes(`KXM_STATE_HOME=${folder}`));
  await until(() => existsSync(join(folder, "state/runtime/registry.db")) && ofDemo().length > 0, "its Runtime", 20_000);
  await demo.end("SIGKILL");
  await until(() => ofDemo().length === 0, "its Runtime to end", 20_000);
}, 60_000);

function environmentOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, "utf8");
  } catch {
    return ""; // it has ended, or is not ours
  }
}
