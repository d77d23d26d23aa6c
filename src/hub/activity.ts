// How much happened, by hour, for charts. Counted from the event log in the background: what a chart shows may be a few seconds old, never wrong.
import type { Topic } from "../db/schema.ts";
import type { Stores, Tx } from "../db/tx.ts";
import { HOUR_MS } from "../protocol/time.ts";
import type { Hub } from "./hub.ts";

/** Events that one write counts. */
const STEP_EVENTS = 20_000;
/** Steps of one project in one round: the next round goes on. */
const STEPS_MAX = 10;
const HOURS_KEPT = 35 * 24;
const PRUNE_ROWS = 500;

/** Counts what the log has gained since the last round, in bounded steps. @returns how many events were counted */
export async function countActivity(hub: Hub): Promise<number> {
  const { read } = hub.engine;
  const cursors = await read.activity.cursors();
  let counted = 0;
  for (const { project, lastSeq } of await read.events.projects()) {
    if ((cursors.get(project) ?? 0) >= lastSeq) continue;
    for (let step = 0; step < STEPS_MAX; step++) {
      const count = await hub.engine.write(project, (tx) => countStep(tx, project));
      counted += count;
      if (count < STEP_EVENTS) break;
    }
  }
  return counted;
}

async function countStep(tx: Tx, project: string): Promise<number> {
  const after = await tx.activity.cursor(project);
  const upTo = Math.min(await tx.events.lastSeq(project), after + STEP_EVENTS);
  if (upTo <= after) return 0;
  for (const hour of await tx.activity.countEvents(project, { after, upTo })) await tx.activity.add(project, hour);
  await tx.activity.setCursor(project, upTo);
  await tx.activity.prune(Math.floor(tx.now / HOUR_MS) - HOURS_KEPT, PRUNE_ROWS);
  return upTo - after;
}

/** A kind of event, as charts name it. */
export type Kind = { topic: Topic; type: string };

/**
 * How often something happened in each of the last hours, oldest first; the last one is the hour that is going on.
 * @param hours 1 to 35 days of them @param now milliseconds by the hub's clock
 */
export async function byHour(read: Stores, projects: readonly string[], { topic, type }: Kind, { hours, now }: { hours: number; now: number }) {
  const since = Math.floor(now / HOUR_MS) - hours + 1;
  const values = Array.from({ length: hours }, () => 0);
  for (const found of await Promise.all(projects.map((project) => read.activity.hours(project, topic, type, since)))) {
    for (const { hour, count } of found) if (hour - since < hours) values[hour - since]! += count;
  }
  return values;
}
