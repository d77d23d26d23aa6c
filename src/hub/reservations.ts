// Reserved paths: a lease per path pattern, named `file:<pattern>`, granted only while no other agent holds one that can match a common path. Asking
// looks at every `file:` lease of the project in the same write, so two agents can never both be told yes.
import type { LeaseRow } from "../db/schema.ts";
import type { Stores } from "../db/tx.ts";
import { HubError } from "../protocol/errors.ts";
import { globsOverlap, readGlob } from "../protocol/globs.ts";
import { RESERVATIONS_MAX } from "../protocol/limits.ts";
import type { Caller } from "./agents.ts";
import type { Hub } from "./hub.ts";
import * as leases from "./lease-rules.ts";

const PREFIX = "file:";
/** Pattern and lease of a path that was granted. */
export type Reserved = { pattern: string; lease: LeaseRow };
/** Who is in the way of a pattern. */
export type InTheWay = { pattern: string; holders: LeaseRow[] };

/**
 * Reserves each pattern that is free and says who holds what overlaps the others. One's own are extended and never in the way.
 * @param ttlMs how long they hold without being asked for again
 * @throws HubError protocol_error for a pattern that is none, or when the project has as many as it may
 */
export async function reserve(
  hub: Hub,
  agent: Caller,
  { patterns, ttlMs }: { patterns: readonly string[]; ttlMs: number },
): Promise<{ granted: Reserved[]; conflicts: InTheWay[] }> {
  const wanted = [...new Set(patterns.map(globOf))];
  const outcome = await hub.engine.write(agent.project, async (tx) => {
    const held = await heldIn(tx, agent.project);
    const others = held.filter(({ holderId, expiresAt }) => holderId !== agent.id && expiresAt > tx.now);
    const granted: Reserved[] = [];
    const conflicts: InTheWay[] = [];
    let count = held.length;
    for (const pattern of wanted) {
      const holders = others.filter(({ name }) => isInTheWay(name, pattern));
      const asked = holders.length === 0 ? await leases.acquire(tx, agent, { name: PREFIX + pattern, ttlMs, waitMs: 0 }) : undefined;
      if (asked?.kind === "granted") {
        granted.push({ pattern, lease: asked.lease });
        if (!asked.renewed) count++;
      } else conflicts.push({ pattern, holders: asked ? [asked.lease] : holders }); // asked: it lapsed, and somebody stood in line for it
    }
    if (count > RESERVATIONS_MAX) throw full(agent.project);
    return { granted, conflicts };
  });
  hub.metrics.add("leases_granted", outcome.granted.length);
  hub.metrics.add("leases_refused", outcome.conflicts.length);
  return outcome;
}

/** Gives back patterns of one's own, or all of them. @returns what was given back */
export async function release(hub: Hub, agent: Caller, patterns?: readonly string[]): Promise<string[]> {
  const wanted = patterns && new Set(patterns.map(globOf));
  const released = await hub.engine.write(agent.project, async (tx) => {
    const own = (await tx.leases.heldBy(agent.project, agent.id, RESERVATIONS_MAX)).filter(({ name }) => name.startsWith(PREFIX));
    const mine = own.filter(({ name }) => !wanted || wanted.has(name.slice(PREFIX.length)));
    for (const { name, fence } of mine) await leases.release(tx, agent, name, fence);
    return mine.map(({ name }) => name.slice(PREFIX.length));
  });
  hub.metrics.add("leases_released", released.length);
  return released;
}

function globOf(text: string): string {
  const glob = readGlob(text);
  if (glob === undefined)
    throw new HubError("protocol_error", `${JSON.stringify(text.slice(0, 140))} is not a path or pattern`, {
      hint: "Name paths below the project's folder, such as src/app.ts or src/**/*.ts.",
    });
  return glob;
}

/** A name of somebody's plain lease need not be a pattern; then only the very same is in the way. */
function isInTheWay(name: string, pattern: string): boolean {
  const glob = readGlob(name.slice(PREFIX.length));
  return glob === undefined ? name.slice(PREFIX.length) === pattern : globsOverlap(glob, pattern);
}

/** Every `file:` lease of a project. @throws HubError protocol_error when there are too many to look at */
async function heldIn(read: Pick<Stores, "leases">, project: string): Promise<LeaseRow[]> {
  const rows = (await read.leases.held(project, PREFIX, RESERVATIONS_MAX + 1)).filter(({ name }) => name.startsWith(PREFIX));
  if (rows.length > RESERVATIONS_MAX) throw full(project);
  return rows;
}

const full = (project: string) =>
  new HubError("protocol_error", `${project} has ${RESERVATIONS_MAX} reserved paths already`, { hint: "Release some, or reserve wider patterns." });
