// When a push that failed is tried again: at the moment that the status names, however long the interval is. On a clock that moves only when told.
import { expect, test } from "bun:test";
import { HubRefusal, HubUnreachable } from "../../../src/client/http.ts";
import type { RuntimeClient } from "../../../src/client/runtime-client.ts";
import type { Project } from "../../../src/runtime/contract.ts";
import type { ProjectEntry, Projects } from "../../../src/runtime/projects.ts";
import { openRegistry } from "../../../src/runtime/registry.ts";
import { createSync } from "../../../src/runtime/sync/loop.ts";
import { pusher } from "../../../src/runtime/sync/push.ts";
import { aRun, fakeClock, PROJECT_ID, RUNTIME_ID, store } from "../support.ts";

const INTERVAL_MS = 60_000;
const BINDING = { url: "http://127.0.0.1:7331", project: "demo" };

test("a push that failed is tried again when its time has come, not only at the next round", async () => {
  const clock = fakeClock();
  const events = store({ clock });
  events.commit((tx) => tx.createRun(aRun()));
  const pushed: number[] = [];
  let away = 3;
  const hub = async (request: Request): Promise<Response> => {
    if (!request.url.endsWith("/v1/sync/events")) return Response.json({ commands: [] });
    pushed.push(clock.monotonicNs() / 1e6);
    if (away-- > 0) throw Object.assign(new Error("refused"), { code: "ConnectionRefused" });
    const { events: sent } = (await request.json()) as { events: { projectId: string; runId: string; sequence: number }[] };
    const results = sent.map(({ projectId, runId, sequence }) => ({ projectId, runId, sequence, outcome: "accepted" }));
    return Response.json({ results, cursors: [] });
  };
  const open = { key: "key", projectId: PROJECT_ID, name: "P", root: "/x", store: events, prompts: {} } as unknown as Project;
  const random = () => 0.5;
  const project = { ...open, pusher: pusher({ store: events, projectId: PROJECT_ID, clock, random }) };
  const row = { projectKey: "key", projectId: PROJECT_ID, name: "P", hubProject: null };
  const entry = { row, open: project } as unknown as ProjectEntry;
  const registry = openRegistry(":memory:", { clock });
  const sync = createSync({
    runtimeId: RUNTIME_ID,
    version: "1",
    projects: { refresh: () => {}, entries: () => [entry], open: () => [project], find: () => project } as unknown as Projects,
    binding: { read: () => BINDING } as never,
    clock,
    random,
    intervalMs: INTERVAL_MS,
    log: () => {},
    commands: { registry, apply: () => ({}) as never, leaving: (text: string) => text },
    report: () => ({}),
    fetch: hub,
  });
  const settled = () => new Promise((resume) => setImmediate(resume));
  await sync.push();
  for (let ms = 0; ms < INTERVAL_MS && events.read.outbox.counts().pending > 0; ms += 500) {
    const { nextAttemptAt = "" } = project.pusher.report();
    expect(Date.parse(nextAttemptAt)).toBeGreaterThanOrEqual(clock.now());
    clock.advance(500);
    await settled();
    await settled();
  }
  expect(events.read.outbox.counts()).toMatchObject({ pending: 0, acked: 1 });
  expect(pushed).toEqual([0, 500, 1_500, 3_500]); // half of 1, 2 and 4 seconds
  await sync.stop();
  events.close();
  registry.close();
});

test("a hub that was away for long and refuses once is asked again as after one refusal, and the other way round", async () => {
  const clock = fakeClock();
  const events = store({ clock });
  events.commit((tx) => tx.createRun(aRun()));
  const away = new HubUnreachable("the hub", "nobody answers");
  const refusal = new HubRefusal(503, "storage_unavailable", "busy", undefined, undefined, {});
  const push = pusher({ store: events, projectId: PROJECT_ID, clock, random: () => 1 });
  const waits: number[] = [];
  for (const error of [away, away, away, away, refusal, refusal, away]) {
    clock.advance(Math.max(0, push.nextAttemptAt - clock.now()));
    await push.step({ push: () => Promise.reject(error) } as unknown as RuntimeClient);
    waits.push(push.nextAttemptAt - clock.now());
  }
  expect(waits).toEqual([1_000, 2_000, 4_000, 8_000, 10_000, 14_000, 1_000]);
  events.close();
});
