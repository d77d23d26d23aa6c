// The list of agents: who is there, how the hub knows, what each is at, what waits for it and what it holds.
/** @jsxImportSource #jsx */
import type { AgentRow, LeaseRow } from "../db/schema.ts";
import { COUNT_EXACT_MAX, PAGE_ROWS_MAX, VIEW_ROWS_MAX } from "../protocol/limits.ts";
import { here, withQuery } from "./address.ts";
import { agentsBehind, chosenOf, type Filter, filterOf, type Place, placeOf, QUALIFIERS, TABS, type Tab, writePlace } from "./agent-list.ts";
import { type Need, presenceWith, type Work, type Works, worksOf } from "./agent-work.ts";
import { download, type ExportColumn } from "./export.ts";
import { agentLink, composeLink, leaseLink, link, messageLink } from "./links.ts";
import { askedOf, chipsOf, countOver, keptBy, projectsOf } from "./listing.ts";
import { livePage } from "./live-page.tsx";
import { AgentStatus, harnessOf, type Presence } from "./presence.tsx";
import { type Screen, screen, type Visit } from "./screen.ts";
import { Button } from "./ui/button.tsx";
import { Command, Empty } from "./ui/feedback.tsx";
import { FilterBar, Tabs } from "./ui/filter.tsx";
import { PageHead } from "./ui/page.tsx";
import { Chip, counted, Link, Quiet, Ref, Sub, Who } from "./ui/reference.tsx";
import { type Column, Pager, Table } from "./ui/table.tsx";
import { Ago } from "./ui/time.tsx";
import { Line, Name } from "./ui/untrusted.tsx";

const LEASES_SHOWN = 3;
const EXPORT_ROWS_MAX = 5_000;

/** Over more projects than this the tabs about work carry no counts: they would cost more than the list. */
const PROJECTS_COUNTED_MAX = 10;

export type AgentEntry = { agent: AgentRow; presence: Presence; work: Work; leases: readonly LeaseRow[]; need: Need | undefined };

async function entriesOf(visit: Visit, agents: readonly AgentRow[], works: Works, needs: ReadonlyMap<string, Need>): Promise<AgentEntry[]> {
  return Promise.all(
    agents.map(async (agent) => {
      const work = works.of(agent);
      const leases = await visit.hub.engine.read.leases.heldBy(agent.project, agent.id, LEASES_SHOWN + 1);
      return { agent, work, leases, presence: presenceWith(visit, agent, work), need: needs.get(agent.id) };
    }),
  );
}

/** How many each tab has, as text; undefined where it would cost more than the list. */
type Counts = Record<Tab, number | string | undefined>;
type AgentsData = { entries: AgentEntry[]; next: Place | undefined; filter: Filter; total: number; online: number; counts: Counts };

async function load(visit: Visit): Promise<AgentsData> {
  const { agents, projects: projectStore } = visit.hub.engine.read;
  const [filter, projects] = [filterOf(visit), projectsOf(visit)];
  const counted = projects.length <= PROJECTS_COUNTED_MAX;
  const isChosen = filter.show === "working" || filter.show === "needs";
  const works = counted || isChosen ? await worksOf(visit, projects) : undefined;
  const { working, needing } = counted
    ? await chosenOf(visit, "both", works)
    : isChosen
      ? await chosenOf(visit, filter.show as "working", works)
      : {};
  const chosen = filter.show === "working" ? working : filter.show === "needs" ? needing?.map(({ agent }) => agent) : undefined;
  const [{ rows, stoppedAt }, total, online, retired] = await Promise.all([
    agentsBehind(visit, filter, placeOf(visit.url), VIEW_ROWS_MAX + 1, chosen),
    countOver(projects, (project) => agents.count(project, COUNT_EXACT_MAX + 1)),
    countOver(projects, (project) => projectStore.countOnline(project)),
    countOver(projects, (project) => agents.countRetired(project, COUNT_EXACT_MAX + 1)),
  ]);
  const shown = rows.slice(0, VIEW_ROWS_MAX);
  const seen = works ?? (await worksOf(visit, [...new Set(shown.map(({ project }) => project))]));
  const orMore = (of: readonly unknown[] | undefined) => of && (seen.orMore ? `${of.length}+` : of.length);
  return {
    entries: await entriesOf(visit, shown, seen, new Map(needing?.map(({ agent, need }) => [agent.id, need]))),
    next: rows.length > VIEW_ROWS_MAX ? shown.at(-1) : stoppedAt,
    filter,
    total,
    online,
    counts: { all: total, online, working: orMore(working), needs: orMore(needing), retired },
  };
}

const columnsOf = ({ project, now }: Visit, show: Tab): readonly Column<AgentEntry>[] => [
  {
    head: "Agent",
    kind: "main",
    slim: true,
    cell: ({ agent }) => (
      <>
        <Who name={agent.name} harness={harnessOf(agent.model)} href={agentLink(agent.id, { project })} />
        <Sub>
          {project === undefined && (
            <>
              <Name text={agent.project} /> ·{" "}
            </>
          )}
          <Line text={agent.purpose} max={80} />
        </Sub>
      </>
    ),
  },
  { head: "Presence", phone: "line", cell: ({ presence }) => <AgentStatus presence={presence} now={now} stack /> },
  show === "needs"
    ? { head: "Why", phone: "line", cell: ({ need }) => need && <Why need={need} /> }
    : { head: "Doing now", phone: "line", cell: ({ work, presence }) => <Doing work={work} presence={presence} now={now} project={project} /> },
  { head: "Open", tight: true, cell: ({ work }) => <OpenCounts work={work} /> },
  { head: "Leases", tight: true, cell: ({ leases }) => (leases.length > 0 ? <LeaseChips leases={leases} /> : "–") },
  { head: "Machine", tight: true, cell: ({ agent }) => (agent.host === null ? <Quiet>not said</Quiet> : <Line text={agent.host} max={28} />) },
];

const some = (count: number, one: string, more: string): string => `${count.toLocaleString("en")} ${count === 1 ? one : more}`;

/** What a person is needed for, the worst first. */
const Why = ({ need: { begun, waiting, leases, dead } }: { need: Need }) => (
  <>
    {[
      begun && "stopped in the middle of a request",
      waiting > (begun ? 1 : 0) && `${some(waiting, "request waits", "requests wait")} for it`,
      leases > 0 && `holds ${some(leases, "lease", "leases")}`,
      dead > 0 && `${some(dead, "request", "requests")} died unanswered`,
    ]
      .filter((why) => why !== false)
      .map((why, index) => (index === 0 ? why : <Sub>{why}</Sub>))}
  </>
);

/** What an agent is at: the request it has begun, or how many wait for it. */
const Doing = ({ work, presence, now, project }: { work: Work; presence: Presence; now: number; project?: string | undefined }) => {
  const { begun, openIn, openOut } = work;
  const many = (count: number, one: string, more: string): string =>
    `${count.toLocaleString("en")}${work.orMore ? "+" : ""} ${count === 1 ? one : more}`;
  if (begun)
    return (
      <>
        <Ref href={messageLink(begun.id, { project })}>
          Request {begun.seq} from <Name text={begun.by} />
        </Ref>
        <Sub>
          {presence.state === "offline" || presence.state === "lost contact" ? "was: " : ""}turn started <Ago at={begun.since} now={now} plain />
        </Sub>
      </>
    );
  if (openIn > 0) return <Quiet>{many(openIn, "request waits", "requests wait")}</Quiet>;
  return <Quiet>{openOut > 0 ? many(openOut, "reply outstanding", "replies outstanding") : "nothing open"}</Quiet>;
};

const OpenCounts = ({ work: { openIn, openOut, orMore } }: { work: Work }) => {
  const plus = orMore ? "+" : "";
  return (
    <>
      {openIn}
      {plus} in · {openOut}
      {plus} out
    </>
  );
};

const LeaseChips = ({ leases }: { leases: readonly LeaseRow[] }) => (
  <>
    {leases.slice(0, LEASES_SHOWN).map(({ project, name }) => (
      <Chip icon="leases" href={leaseLink(project, name)} title={name}>
        <Line text={name} max={24} />
      </Chip>
    ))}
    {leases.length > LEASES_SHOWN && <Quiet>and more</Quiet>}
  </>
);

const HEADS: Record<Tab, string> = {
  all: "All agents",
  online: "Agents that are online",
  working: "Agents that are at a request",
  needs: "Agents that need you",
  retired: "Agents that were retired",
};

const AgentsView = ({ data, visit }: { data: AgentsData; visit: Visit }) => {
  const { url, project, now, session } = visit;
  const { entries, filter, total, online, counts } = data;
  const asked = askedOf(url, QUALIFIERS);
  return (
    <>
      <PageHead
        title="Agents"
        sub={[
          `${counted(total)} registered`,
          `${counted(online)} online`,
          <>
            as of <Ago at={now} now={now} plain />
          </>,
        ]}
        actions={
          <>
            {session.role !== "viewer" && (
              <Button icon="send" href={composeLink([], { project })} hotkey="c">
                Message several
              </Button>
            )}
            <Button kind="primary" icon="plus" href={link("/start", { project })}>
              Connect an agent
            </Button>
          </>
        }
      />
      <Tabs
        label="Views"
        tabs={Object.entries(TABS).map(([name, text]) => ({
          text,
          href: here(url, { show: name === "all" ? undefined : name, after: undefined }),
          current: filter.show === name,
          count: counts[name as Tab],
        }))}
      />
      <FilterBar
        action="/agents"
        qualifiers={chipsOf(url, asked)}
        value={asked.words}
        placeholder="names that begin with…, or machine:"
        keep={keptBy(url)}
      />
      <h2 class="visually-hidden">{HEADS[filter.show]}</h2>
      {entries.length > 0 ? (
        <>
          <Table caption="Agents" columns={columnsOf(visit, filter.show)} rows={entries} id={({ agent }) => `agent-${agent.id}`} />
          <Way data={data} url={url} />
        </>
      ) : (
        <>
          <NoAgents filter={filter} total={total} />
          {data.next && <Way data={data} url={url} />}
        </>
      )}
    </>
  );
};

const NOBODY: Record<Exclude<Tab, "all">, readonly [title: string, words: string]> = {
  online: ["Nobody is online.", "An agent that sends any request is online from then on. All agents are in the first tab."],
  working: ["Nobody is at a request.", "An agent is working once it has said that its turn has started."],
  needs: ["No agent needs you.", "Who is away while somebody waits for it, or holds a lease, stands here, and whose requests died unanswered."],
  retired: ["Nobody was retired.", "Retiring an agent is on its page. It comes back when it registers again under its name."],
};

const isWhole = ({ prefix, machine }: Filter): boolean => prefix === "" && machine === undefined;

/** How many are shown, the list as a file, and the next page. */
const Way = ({ data: { entries, next, filter, counts }, url }: { data: AgentsData; url: URL }) => {
  const count = counts[filter.show];
  const file = (format: string) => withQuery(`/agents/export/${format}`, url);
  return (
    <Pager
      shown={
        <>
          {entries.length} {isWhole(filter) && count !== undefined && `of ${typeof count === "number" ? counted(count) : count}`} by project and name
          · as <Link href={file("csv")}>CSV</Link> or <Link href={file("json")}>JSON</Link>
        </>
      }
      newer={url.searchParams.has("after") ? here(url, { after: undefined }) : undefined}
      older={next && here(url, { after: writePlace(next) })}
    />
  );
};

const NoAgents = ({ filter, total }: { filter: Filter; total: number }) =>
  filter.machine !== undefined ? (
    <Empty title="No agent here names that machine.">Take the filter away, or go on below where there are more.</Empty>
  ) : filter.prefix !== "" ? (
    <Empty title="No agent's name begins with that.">Clear the filter, or look in another project.</Empty>
  ) : total > 0 && filter.show !== "all" ? (
    <Empty title={NOBODY[filter.show][0]}>{NOBODY[filter.show][1]}</Empty>
  ) : (
    <Empty title="No agent has registered yet." acts={<Command text="kxm peer --as reviewer inbox --follow" />}>
      This command takes part as an agent named reviewer and shows what comes in. Any program can do the same through the API or MCP.
    </Empty>
  );

const EXPORT: readonly ExportColumn<AgentEntry>[] = [
  ["id", ({ agent }) => agent.id],
  ["project", ({ agent }) => agent.project],
  ["name", ({ agent }) => agent.name],
  ["purpose", ({ agent }) => agent.purpose],
  ["model", ({ agent }) => agent.model],
  ["host", ({ agent }) => agent.host],
  ["presence", ({ presence }) => presence.state],
  ["lastSeenAt", ({ presence }) => new Date(presence.at).toISOString()],
  ["registeredAt", ({ agent }) => new Date(agent.registeredAt).toISOString()],
  ["openIn", ({ work }) => work.openIn],
  ["openOut", ({ work }) => work.openOut],
  ["leases", ({ leases }) => leases.map(({ name }) => name).join(" ")],
];

async function exportAgents(visit: Visit): Promise<Response> {
  const rows: AgentRow[] = [];
  for (let place = placeOf(visit.url); rows.length < EXPORT_ROWS_MAX; place = rows.at(-1)) {
    const found = await agentsBehind(visit, filterOf(visit), place, PAGE_ROWS_MAX);
    rows.push(...found.rows);
    if (found.rows.length < PAGE_ROWS_MAX) break;
  }
  const works = await worksOf(visit, [...new Set(rows.map(({ project }) => project))]);
  return download("agents", visit.params["format"]!, EXPORT, await entriesOf(visit, rows, works, new Map()));
}

/** The list, its fragment, and the list as a file. */
export const screens: readonly Screen[] = [
  ...livePage({
    path: "/agents",
    id: "agents",
    place: "agents",
    qualifiers: QUALIFIERS,
    topic: ["agents", "messages", "leases"],
    load,
    title: () => "Agents",
    view: (data, visit) => <AgentsView data={data} visit={visit} />,
  }),
  screen({ method: "GET", path: "/agents/export/:format", role: "viewer", run: exportAgents }),
];
