// Trouble with the store becomes one alert, after it is over; a large write-ahead log one an hour.
import { expect, test } from "bun:test";
import type { Health } from "../../src/db/engine.ts";
import { type StorageTrouble, watchStorage } from "../../src/hub/storage-watch.ts";
import { WAL_BYTES_MAX } from "../../src/protocol/limits.ts";
import { openHubWorld } from "../support/hub.ts";

test("an outage is one alert that says from when to when, however often it was looked at", async () => {
  await using it = await openHubWorld();
  const start = it.clock.now;
  const looks: Health[] = [
    { ok: true, queued: 0 },
    { ok: false, queued: 3, reason: "disk_full", degradedSince: start + 5_000 },
    { ok: false, queued: 9, reason: "disk_full", degradedSince: start + 5_000 },
    { ok: true, queued: 0 },
    { ok: true, queued: 0 },
  ];
  let trouble: StorageTrouble;
  const raised = [];
  for (const health of looks) {
    const look = await watchStorage({ ...it.hub, engine: { ...it.hub.engine, health: async () => health } }, trouble);
    trouble = look.trouble;
    raised.push(look.raised);
    it.clock.now += 5_000;
  }
  expect(raised).toEqual([0, 0, 0, 1, 0]);
  const [alert, ...others] = await it.hub.engine.read.alerts.page("", "~", 10);
  expect(others).toEqual([]);
  expect(alert).toMatchObject({ kind: "storage_degraded", severity: "warning", count: 1 });
  expect(alert!.summary).toContain(new Date(start + 5_000).toISOString());
  expect(alert!.summary).toContain("disk_full");
});

test("a write-ahead log over its bound is told once an hour while it lasts", async () => {
  await using it = await openHubWorld();
  const hub = {
    ...it.hub,
    engine: { ...it.hub.engine, health: async (): Promise<Health> => ({ ok: true, queued: 0, walBytes: WAL_BYTES_MAX + 1 }) },
  };
  it.clock.now = Math.floor(it.clock.now / 3_600_000) * 3_600_000;
  const raised = [];
  for (let look = 0; look < 4; look++) {
    raised.push((await watchStorage(hub, undefined)).raised);
    it.clock.now += 20 * 60_000;
  }
  expect(raised).toEqual([1, 0, 0, 1]);
  const small = { ...it.hub, engine: { ...it.hub.engine, health: async (): Promise<Health> => ({ ok: true, queued: 0, walBytes: WAL_BYTES_MAX }) } };
  expect((await watchStorage(small, undefined)).raised).toBe(0);
});
