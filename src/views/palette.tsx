// The command palette's answers: places, agents, runs and actions by a few letters, and one of our ids straight to its page.
/** @jsxImportSource #jsx */
import * as runList from "../hub/run-list.ts";
import * as savedViews from "../hub/saved-views.ts";
import { agentLink, composeLink, link, messageLink, runLink, workflowRunLink } from "./links.ts";
import { projectsOf } from "./listing.ts";
import { isList, savedHref } from "./saved-counts.ts";
import { type Screen, screen, type Visit } from "./screen.ts";
import { PLACES, type Place, placeHref } from "./ui/nav.tsx";
import { type PaletteGroup, type PaletteItem, PaletteResults } from "./ui/palette.tsx";
import { shortId } from "./ui/reference.tsx";
import { stateOf } from "./ui/status.tsx";
import { Line, Name } from "./ui/untrusted.tsx";

const AGENTS_SHOWN = 6;
const RUNS_SHOWN = 5;
const TYPED_MAX = 100;

async function results(visit: Visit) {
  const typed = (visit.url.searchParams.get("q") ?? "").trim().slice(0, TYPED_MAX);
  return <PaletteResults groups={(await groupsFor(visit, typed)).filter(({ items }) => items.length > 0)} />;
}

/** `>` asks for actions only, `@` for agents only. */
async function groupsFor(visit: Visit, typed: string): Promise<PaletteGroup[]> {
  const { project } = visit;
  if (typed.startsWith(">")) return [actions(visit, typed.slice(1).trim())];
  if (typed.startsWith("@")) return [await agents(visit, typed.slice(1).trim())];
  if (typed === "") return [actions(visit, ""), places(project, "")];
  const [named, saved, found, running] = await Promise.all([byId(visit, typed), savedLists(visit, typed), agents(visit, typed), runs(visit, typed)]);
  const search: PaletteItem = {
    icon: "search",
    text: (
      <>
        Search for “<Line text={typed} max={60} />”
      </>
    ),
    hint: "everything",
    href: link("/search", { project, q: typed }),
  };
  return [named, saved, places(project, typed), found, running, actions(visit, typed), { title: "Search", items: [search] }];
}

async function savedLists({ hub, session }: Visit, typed: string): Promise<PaletteGroup> {
  const found = (await savedViews.list(hub.engine.read, session)).filter(({ place, name }) => isList(place) && fits(name, typed));
  return {
    title: "Saved lists",
    items: found.map((view) => ({ icon: PLACES[view.place as Place].icon, text: <Name text={view.name} />, href: savedHref(view) })),
  };
}

const fits = (text: string, typed: string): boolean => text.toLowerCase().includes(typed.toLowerCase());

const places = (project: string | undefined, typed: string): PaletteGroup => ({
  title: "Go to",
  items: Object.entries(PLACES)
    .filter(([, { text }]) => fits(text, typed))
    .map(([name, { icon, text, go }]) => ({ icon, text, hint: `g ${go}`, href: placeHref(name as Place, project) })),
});

function actions({ project, session }: Visit, typed: string): PaletteGroup {
  const all: (PaletteItem & { text: string; acts?: boolean })[] = [
    { icon: "send", text: "Message an agent…", href: composeLink([], { project }), acts: true },
    { icon: "play", text: "Start a run…", href: link("/runs/new", { project }), acts: true },
    { icon: "retry", text: "Look at dead letters", href: link("/messages", { project, box: "dead" }) },
    { icon: "star", text: "Saved lists", href: link("/views", { project }) },
    { icon: "plus", text: "Connect an agent", href: link("/start", { project }) },
    { icon: "terminal", text: "Read the API reference", href: "/docs" },
  ];
  const allowed = all.filter(({ acts }) => !acts || session.role !== "viewer");
  return { title: "Do", items: allowed.filter(({ text }) => fits(text, typed)).map(({ icon, text, href }) => ({ icon, text, href })) };
}

async function agents(visit: Visit, typed: string): Promise<PaletteGroup> {
  const { project } = visit;
  const store = visit.hub.engine.read.agents;
  const page = (one: string) => store.page(one, { of: "all", prefix: typed.toLowerCase(), limit: AGENTS_SHOWN });
  const found = (await Promise.all(projectsOf(visit).map(page))).flat().slice(0, AGENTS_SHOWN);
  return {
    title: "Agents",
    items: found.map(({ id, name, project: of, online }) => ({
      icon: "agents",
      text: <Name text={name} />,
      hint: (
        <>
          {project === undefined && (
            <>
              <Name text={of} /> ·{" "}
            </>
          )}
          {online === 1 ? "online" : "offline"}
        </>
      ),
      href: agentLink(id, { project }),
    })),
  };
}

/** Runs whose title or id holds what is typed, the newest first. A bounded number of them is looked at. */
async function runs(visit: Visit, typed: string): Promise<PaletteGroup> {
  const { hub, project } = visit;
  const found = await runList.list(hub, projectsOf(visit), { view: "all", words: typed }, { after: undefined, limit: RUNS_SHOWN });
  return {
    title: "Runs",
    items: found.runs.map((one) =>
      one.kind === "workflow"
        ? {
            icon: "runs",
            text: <Line text={one.run.definitionId} max={60} />,
            hint: stateOf(one.run.status),
            href: workflowRunLink(one.id, { project }),
          }
        : {
            icon: "runs",
            text: <Line text={one.run.displayTitle ?? one.run.runId} max={60} />,
            hint: one.run.status === undefined ? shortId(one.run.runId) : stateOf(one.run.status),
            href: runLink(one.run.projectId, one.run.runId, { project }),
          },
    ),
  };
}

/** A whole id of ours, typed or pasted. */
async function byId({ hub, session, project }: Visit, typed: string): Promise<PaletteGroup> {
  const { messages, agents: store } = hub.engine.read;
  const mine = (of: string) => session.project === null || session.project === of;
  const items: PaletteItem[] = [];
  if (/^msg_[0-9a-f]{32}$/.test(typed)) {
    const head = await messages.head(typed);
    if (head && mine(head.project)) items.push({ icon: "messages", text: `Message ${shortId(typed)}`, href: messageLink(typed, { project }) });
  }
  if (/^agt_[0-9a-f]{32}$/.test(typed)) {
    const agent = await store.find(typed);
    if (agent && mine(agent.project))
      items.push({ icon: "agents", text: <Name text={agent.name} />, hint: shortId(typed), href: agentLink(typed, { project }) });
  }
  return { title: "By id", items };
}

export const screens: readonly Screen[] = [screen({ method: "GET", path: "/ui/palette", role: "viewer", run: results })];
