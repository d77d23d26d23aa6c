// Which agents a list shows: its tab, names and machine from the address, and a page of them by project and name.
import type { AgentRow } from "../db/schema.ts";
import { LIST_SCAN_ROWS_MAX } from "../protocol/limits.ts";
import { needingAgents, type Works, workingAgents, worksOf } from "./agent-work.ts";
import { askedOf, askedValue, projectsOf, type Tallies } from "./listing.ts";
import type { Visit } from "./screen.ts";

/** Which agents: a tab of the page. */
export const TABS = { all: "All", online: "Online", working: "Working", needs: "Needs you", retired: "Retired" } as const;
export type Tab = keyof typeof TABS;
/** What the filter bar understands. */
export const QUALIFIERS = ["machine"];
/** Agents of one look when a filter throws some away. */
const LOOK_ROWS = 200;
/** Which of the tabs is open, what the names begin with, and on which machine. */
export type Filter = { show: Tab; prefix: string; machine: string | undefined };
export function filterOf({ url }: Visit): Filter {
  const asked = askedOf(url, QUALIFIERS);
  const show = url.searchParams.get("show") ?? "";
  return {
    show: Object.hasOwn(TABS, show) ? (show as Tab) : "all",
    prefix: asked.words.toLowerCase(),
    machine: askedValue(asked, "machine")?.toLowerCase(),
  };
}

/** Where a page begins: behind this agent of the page before. */
export type Place = Pick<AgentRow, "project" | "nameFolded">;

type Found = { rows: AgentRow[]; stoppedAt: Place | undefined };

/** A page of agents by project and name. @param chosen those of a tab about work, all of them in order */
export async function agentsBehind(
  visit: Visit,
  filter: Filter,
  place: Place | undefined,
  limit: number,
  chosen?: readonly AgentRow[],
): Promise<Found> {
  if (chosen) return amongChosen(chosen, filter, place, limit);
  if (filter.show === "working" || filter.show === "needs") {
    const { working, needing } = await chosenOf(visit, filter.show);
    return amongChosen(working ?? needing?.map(({ agent }) => agent) ?? [], filter, place, limit);
  }
  return fromStore(visit, filter, place, limit);
}

/** The agents of one or both of the tabs about work. */
export async function chosenOf(visit: Visit, which: "working" | "needs" | "both", works?: Works) {
  const projects = projectsOf(visit);
  const known = works ?? (await worksOf(visit, projects));
  const [working, needing] = await Promise.all([
    which === "needs" ? undefined : workingAgents(visit, known),
    which === "working" ? undefined : needingAgents(visit, projects, known),
  ]);
  return { working, needing };
}

function amongChosen(chosen: readonly AgentRow[], { prefix, machine }: Filter, place: Place | undefined, limit: number): Found {
  const isBehind = ({ project, nameFolded }: AgentRow) =>
    place === undefined || project > place.project || (project === place.project && nameFolded > place.nameFolded);
  const fits = (agent: AgentRow) => agent.nameFolded.startsWith(prefix) && (machine === undefined || agent.host?.toLowerCase() === machine);
  return { rows: chosen.filter((agent) => isBehind(agent) && fits(agent)).slice(0, limit), stoppedAt: undefined };
}

/** A machine has no index: a bounded number of agents is looked at for it. */
async function fromStore(visit: Visit, { show, prefix, machine }: Filter, place: Place | undefined, limit: number): Promise<Found> {
  const { agents } = visit.hub.engine.read;
  const of = show === "online" || show === "retired" ? show : "all";
  const rows: AgentRow[] = [];
  let looked = 0;
  for (const project of [...projectsOf(visit)].sort()) {
    if (place && project < place.project) continue;
    for (let after = project === place?.project ? place.nameFolded : undefined; ; ) {
      const size = machine === undefined ? limit - rows.length : LOOK_ROWS;
      const found = await agents.page(project, { of, prefix, after, limit: size });
      for (const agent of found) {
        looked++;
        if (machine === undefined || agent.host?.toLowerCase() === machine) rows.push(agent);
        if (rows.length === limit) return { rows, stoppedAt: undefined };
        if (looked === LIST_SCAN_ROWS_MAX && machine !== undefined) return { rows, stoppedAt: agent };
      }
      if (found.length < size) break;
      after = found.at(-1)!.nameFolded;
    }
  }
  return { rows, stoppedAt: undefined };
}

/** For saved views. */
export const tally: Tallies = async (visit, limit) => {
  const { rows, stoppedAt } = await agentsBehind(visit, filterOf(visit), undefined, limit + 1);
  return { count: Math.min(rows.length, limit), more: rows.length > limit || stoppedAt !== undefined };
};

export const writePlace = ({ project, nameFolded }: Place): string => `${encodeURIComponent(project)}/${nameFolded}`;
/** The project is encoded, so the first slash ends it. Anything that is not a place is the first page. */
export function placeOf(url: URL): Place | undefined {
  const [, project, nameFolded] = /^([^/]*)\/([\s\S]+)$/.exec(url.searchParams.get("after") ?? "") ?? [];
  if (project === undefined || nameFolded === undefined) return undefined;
  try {
    return { project: decodeURIComponent(project), nameFolded };
  } catch {
    return undefined;
  }
}
