// How many entries the saved views have. Invariant: one answer counts a few lists at most, and each looks no further than one page of it would;
// a count is kept until the log of its projects has moved, so that what stands still costs nothing.
import type { SavedView } from "../hub/saved-views.ts";
import * as agentList from "./agent-list.ts";
import * as approvals from "./approvals.tsx";
import * as audit from "./audit.tsx";
import * as journal from "./journal.tsx";
import * as leases from "./leases.tsx";
import type { Tallies, Tally } from "./listing.ts";
import * as messages from "./messages.tsx";
import * as runs from "./runs.tsx";
import type { Visit } from "./screen.ts";
import * as search from "./search-data.ts";
import * as sync from "./sync.tsx";
import { PLACES, type Place } from "./ui/nav.tsx";

/** The lists that can be kept under a name, and how each is counted. */
export const LISTS: Partial<Record<Place, Tallies>> = {
  runs: runs.tally,
  messages: messages.tally,
  agents: agentList.tally,
  leases: leases.tally,
  approvals: approvals.tally,
  sync: sync.tally,
  journal: journal.tally,
  audit: audit.tally,
  search: search.tally,
};
export const isList = (place: string): place is Place => Object.hasOwn(LISTS, place);

/** The address of a saved list. */
export const savedHref = ({ place, query }: Pick<SavedView, "place" | "query">): string => `${PLACES[place as Place].path}${query && `?${query}`}`;

/** Entries are counted up to here, and "or more" beyond. */
const COUNTED_MAX = 99;
/** Lists that one answer counts; the others follow with the next. */
const COUNTED_AT_ONCE = 4;
/** Ages and spans move without the log: a count is at most this old. */
const KEPT_MS = 30_000;
const KEPT_MAX = 2_000; // counts over all sessions
const PROJECTS_MAX = 200;

type Kept = { tally: Tally; at: number; heads: string };
const counts = new WeakMap<object, Map<string, Kept>>();

/** A list of the dashboard as its address would ask for it. */
export function visitOf(visit: Visit, { place, query }: Pick<SavedView, "place" | "query">): Visit {
  const url = new URL(savedHref({ place, query }), visit.url);
  const asked = url.searchParams.get("project") ?? undefined;
  const project = visit.session.project ?? (asked !== undefined && visit.projects.includes(asked) ? asked : undefined);
  return { ...visit, url, project };
}

/**
 * The counts of some views, in their order; undefined for one that is not known.
 * @returns also whether some of them are older than what the log says, because this answer has counted enough
 */
export async function countsOf(visit: Visit, views: readonly SavedView[]): Promise<{ tallies: Tally[]; behind: boolean }> {
  const { hub, now } = visit;
  const known = counts.get(hub) ?? new Map<string, Kept>();
  counts.set(hub, known);
  const heads = views.length === 0 ? new Map<string, number>() : await logHeads(visit);
  const wanted = views.map((view) => {
    const of = visitOf(visit, view);
    const key = JSON.stringify([visit.session.role, visit.session.project, view.place, view.query]);
    return { view, of, key, heads: JSON.stringify(of.project === undefined ? [...heads.values()] : [heads.get(of.project), heads.get("")]) };
  });
  const isFresh = (kept: Kept | undefined, at: string) => kept !== undefined && kept.heads === at && now - kept.at < KEPT_MS;
  const stale = wanted
    .filter(({ key, heads: at }) => !isFresh(known.get(key), at))
    .sort((a, b) => (known.get(a.key)?.at ?? 0) - (known.get(b.key)?.at ?? 0));
  await Promise.all(
    stale.slice(0, COUNTED_AT_ONCE).map(async ({ view, of, key, heads: at }) => {
      const tally = await LISTS[view.place as Place]!(of, COUNTED_MAX);
      known.delete(known.size >= KEPT_MAX ? known.keys().next().value! : key);
      known.set(key, { tally, at: now, heads: at });
    }),
  );
  return { tallies: wanted.map(({ key }) => known.get(key)?.tally), behind: stale.length > COUNTED_AT_ONCE };
}

/** How far the log of each project has come, the hub's own among them. */
async function logHeads({ hub }: Visit): Promise<Map<string, number>> {
  const { projects, events } = hub.engine.read;
  const [rows, own] = await Promise.all([projects.page("", PROJECTS_MAX), events.lastSeq("")]);
  return new Map([...rows.map(({ project, lastSeq }) => [project, lastSeq] as const), ["", own] as const]);
}
