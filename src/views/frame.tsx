// The frame of every page: projects, counts, role and clock around a screen's content. One place that asks the store for what all pages show.
/** @jsxImportSource #jsx */
import type { Hub } from "../hub/hub.ts";
import * as runList from "../hub/run-list.ts";
import { COUNT_EXACT_MAX } from "../protocol/limits.ts";
import { VERSION } from "../protocol/version.ts";
import { cookieValues } from "./cookies.ts";
import type { Html } from "./jsx/jsx-runtime.ts";
import { countOver } from "./listing.ts";
import { railViews, SaveAskedHere, SaveDialog } from "./saved-views.tsx";
import type { FlashText, PageProps, Visit } from "./screen.ts";
import { Flash } from "./ui/feedback.tsx";
import { Layout, THEME_COOKIE, themeOf } from "./ui/layout.tsx";
import { Nav, type NavCounts } from "./ui/nav.tsx";

/** Counts of the rail: what needs a person first. Each is capped, so that none grows with what is stored. */
async function navCounts(hub: Hub, projects: readonly string[]): Promise<NavCounts> {
  const { read } = hub.engine;
  const sum = async (count: (project: string) => Promise<number>) => (await Promise.all(projects.map(count))).reduce((a, b) => a + b, 0);
  const limit = COUNT_EXACT_MAX + 1;
  const [approvals, conflicts] = await Promise.all([
    sum((project) => read.approvals.countPending(project, limit)),
    sum((project) => read.conflicts.countOpen(project, limit)),
  ]);
  const calm = projects.length > CALM_COUNTED_MAX ? {} : await calmCounts(hub, projects);
  return {
    ...calm,
    ...(approvals > 0 && { approvals: { count: approvals, tone: "attn" as const } }),
    ...(conflicts > 0 && { sync: { count: conflicts, tone: "bad" as const } }),
  };
}

/** What is there, beyond what needs a person. Over many projects it would cost more than the page. */
async function calmCounts(hub: Hub, projects: readonly string[]): Promise<NavCounts> {
  const { read } = hub.engine;
  const limit = COUNT_EXACT_MAX + 1;
  const [runs, messages, leases, agents] = await Promise.all([
    runList.count(hub, projects, "moving"),
    countOver(projects, (project) => read.messages.countHeads("open", project, limit)),
    countOver(projects, (project) => read.leases.countHeld(project, limit)),
    countOver(projects, (project) => read.projects.countOnline(project)),
  ]);
  return { runs: { count: runs }, messages: { count: messages }, leases: { count: leases }, agents: { count: agents } };
}

/** Where the address leads when another project is chosen: the same place, without what belonged to the old one. */
const switchHref = (url: URL, project?: string) => (project === undefined ? url.pathname : `${url.pathname}?project=${encodeURIComponent(project)}`);

/** Over more projects than this the rail counts only what needs a person. */
const CALM_COUNTED_MAX = 10;
/** The projects a page over all of them counts; one page never asks more stores than this. */
const PROJECTS_COUNTED = 50;

/** The document around a page's content. */
export async function framed(visit: Visit, props: PageProps, flashes: readonly FlashText[]): Promise<Html> {
  const { hub, project, projects, since, url, now, csrf, session } = visit;
  const shown = project === undefined ? projects.slice(0, PROJECTS_COUNTED) : [project];
  const [counts, saved] = await Promise.all([navCounts(hub, shown), railViews(visit, url)]);
  const query = project === undefined ? "" : `?project=${encodeURIComponent(project)}`;
  const home = /^\/[^/]+\/./.test(url.pathname) ? new URL("/", url) : url; // a detail page belongs to its project: switching leads to the overview
  return (
    <Layout
      title={props.title}
      place={props.place}
      project={project === undefined ? undefined : { id: project, name: project }}
      projects={[
        ...(session.project === null ? [{ name: "All projects", href: switchHref(home), current: project === undefined }] : []),
        ...projects.map((name) => ({ name, href: switchHref(home, name), current: name === project })),
      ]}
      counts={counts}
      saved={saved}
      navHref={`/ui/nav?place=${props.place ?? ""}${project === undefined ? "" : `&project=${encodeURIComponent(project)}`}`}
      events={props.live === false ? undefined : `/ui/events${query}${since === undefined ? "" : `&after=${since}`}`}
      csrf={csrf}
      session={{ role: session.role, signOut: "/signout" }}
      theme={themeOf(cookieValues(visit.request, THEME_COOKIE)[0])}
      now={now}
      version={VERSION}
      palette={{ href: `/ui/palette${query}` }}
      flashes={flashes.map((flash) => <Flash {...flash} />)}
      dialogs={
        <>
          {props.dialogs}
          <SaveDialog visit={visit} />
        </>
      }
    >
      <SaveAskedHere visit={visit} />
      {props.children}
    </Layout>
  );
}

/** The rail's places with fresh counts, as the fragment refetches them. */
export async function navFragment(visit: Visit): Promise<Html> {
  const { hub, project, projects, url } = visit;
  const shown = project === undefined ? projects.slice(0, PROJECTS_COUNTED) : [project];
  const place = (url.searchParams.get("place") || undefined) as PageProps["place"];
  const [counts, saved] = await Promise.all([navCounts(hub, shown), railViews(visit, pageOf(visit))]);
  return <Nav place={place} project={project} counts={counts} saved={saved} refetch={`${url.pathname}${url.search}`} />;
}

/** The page that asks for its rail, as htmx says; it decides no more than which entry is marked. */
function pageOf({ request, url }: Visit): URL {
  const said = request.headers.get("hx-current-url") ?? "";
  const page = URL.canParse(said, url) ? new URL(said, url) : url;
  return page.origin === url.origin ? page : url;
}
