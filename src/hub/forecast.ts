// What retention will delete next, and what within a day: counted by the indexes that retention itself uses, and no further than FORECAST_ROWS_MAX.
import { type ByProject, type Due, TIMED, type Timed } from "../db/forecast.ts";
import { FORECAST_ROWS_MAX, RETENTION_INTERVAL_MS } from "../protocol/limits.ts";
import { DAY_MS } from "../protocol/time.ts";
import type { Hub } from "./hub.ts";
import { type Kept, keptFor } from "./retention.ts";

const PROJECTS_MAX = 200;

/** One kind of records. */
export type Forecast = {
  kind: Kept;
  keptMs: number;
  /** What the next round deletes, and what the rounds of the next 24 hours do, if nothing changes. More rows than FORECAST_ROWS_MAX are not counted. */
  next: Due;
  day: Due;
  /** When the first of what is there is due; undefined when nothing has ended. */
  firstAt: number | undefined;
};

/** @param now ms @returns a forecast per kind of records, in the order they are shown */
export async function forecast(hub: Hub, now: number): Promise<Forecast[]> {
  const kept = keptFor(hub);
  const timed = await Promise.all(TIMED.map((kind) => ofTimed(hub, kind, kept[kind], now)));
  return [...timed, await ofProjects(hub, "events", kept.events, now), await ofProjects(hub, "costSums", kept.costSums, now)];
}

async function ofTimed({ engine: { read } }: Hub, kind: Timed, keptMs: number, now: number): Promise<Forecast> {
  const before = now + RETENTION_INTERVAL_MS - keptMs;
  const [next, day, oldest] = await Promise.all([
    read.forecast.due(kind, before, FORECAST_ROWS_MAX + 1),
    read.forecast.due(kind, before + DAY_MS, FORECAST_ROWS_MAX + 1),
    read.forecast.oldest(kind),
  ]);
  return { kind, keptMs, next, day, firstAt: oldest === undefined ? undefined : oldest + keptMs };
}

/** Records that are kept by project. A project is counted only when something of it is due. */
async function ofProjects({ engine: { read } }: Hub, kind: ByProject, keptMs: number, now: number): Promise<Forecast> {
  const before = now + RETENTION_INTERVAL_MS - keptMs;
  const sums: Forecast = { kind, keptMs, next: { rows: 0, bytes: 0 }, day: { rows: 0, bytes: 0 }, firstAt: undefined };
  for (const { project } of (await read.events.projects()).slice(0, PROJECTS_MAX)) {
    const oldest = kind === "events" ? (await read.events.oldest(project))?.at : await read.costs.oldest(project);
    if (oldest === undefined) continue;
    sums.firstAt = Math.min(sums.firstAt ?? Number.POSITIVE_INFINITY, oldest + keptMs);
    for (const [sum, until] of [
      [sums.next, before],
      [sums.day, before + DAY_MS],
    ] as const) {
      if (oldest >= until || sum.rows > FORECAST_ROWS_MAX) continue;
      const due = await read.forecast.dueOfProject(kind, project, until, FORECAST_ROWS_MAX + 1);
      sum.rows += due.rows;
      sum.bytes += due.bytes;
    }
  }
  return sums;
}
