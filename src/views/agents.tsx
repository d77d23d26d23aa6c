// The list of agents: who is there, how the hub knows, what each is at, what waits for it and what it holds.
/** @jsxImportSource #jsx */
import type { AgentRow, LeaseRow } from "../db/schema.ts";
import { COUNT_EXACT_MAX, LIST_SCAN_ROWS_MAX, PAGE_ROWS_MAX, VIEW_ROWS_MAX } from "../protocol/limits.ts";
import { here } from "./address.ts";
import { download, type ExportColumn } from "./export.ts";
import { agentLink, composeLink, leaseLink, link, messageLink } from "./links.ts";
import { askedOf, askedValue, chipsOf, countOver, keptBy, projectsOf, type Tallies } from "./listing.ts";
import { livePage } from "./live-page.tsx";
import { AgentStatus, harnessOf, type Presence, presenceAt } from "./presence.tsx";
import { type Screen, screen, type Visit } from "./screen.ts";
import { Button } from "./ui/button.tsx";
import { Command, Empty } from "./ui/feedback.tsx";
import { FilterBar, Tabs } from "./ui/filter.tsx";
import { PageHead } from "./ui/page.tsx";
import { Chip, counted, Link, Quiet, Ref, Sub, Who } from "./ui/reference.tsx";
import { type Column, Pager, Table } from "./ui/table.tsx";
import { Ago } from "./ui/time.tsx";
import { Line, Name } from "./ui/untrusted.tsx";

/** Open messages of a project that a page looks at to see who waits for whom; beyond them counts are "or more". */
const OPEN_LOOKED_AT = 1_000;
const LEASES_SHOWN = 3;
const EXPORT_ROWS_MAX = 5_000;

/** What an agent is at, from the open messages of its project. */
export type Work = { openIn: number; openOut: number; orMore: boolean; begun?: { id: string; by: string; seq: number; since: number } };
export type AgentEntry = { agent: AgentRow; presence: Presence; work: Work; leases: readonly LeaseRow[] };

const QUALIFIERS = ["machine"];
/** Agents of one look when a filter throws some away. */
const LOOK_ROWS = 200;
/** Which of the tabs is open, what the names begin with, and on which machine. */
type Filter = { show: "all" | "online"; prefix: string; machine: string | undefined };
function filterOf({ url }: Visit): Filter {
  const asked = askedOf(url, QUALIFIERS);
  const show = url.searchParams.get("show") === "online" ? "online" : "all";
  return { show, prefix: asked.words.toLowerCase(), machine: askedValue(asked, "machine")?.toLowerCase() };
}

/** What the open messages of projects say about their agents' work. */
export async function workOf({ hub }: Visit, projects: readonly string[]): Promise<(agent: Pick<AgentRow, "id" | "project">) => Work> {
  const { messages } = hub.engine.read;
  const found = await Promise.all(
    projects.map(async (project) => {
      const [open, begun] = await Promise.all([messages.openParties(project, OPEN_LOOKED_AT), messages.inWork(project, OPEN_LOOKED_AT)]);
      return { project, open, begun };
    }),
  );
  const [received, sent, begunBy] = [new Map<string, number>(), new Map<string, number>(), new Map<string, Work["begun"]>()];
  const orMore = new Set<string>();
  for (const { project, open, begun } of found) {
    if (open.length === OPEN_LOOKED_AT) orMore.add(project);
    for (const { recipientId, senderId } of open) {
      received.set(recipientId, (received.get(recipientId) ?? 0) + 1);
      sent.set(senderId, (sent.get(senderId) ?? 0) + 1);
    }
    for (const { recipientId, id, senderName, recipientSeq, turnStartedAt } of begun)
      begunBy.set(recipientId, { id, by: senderName, seq: recipientSeq, since: turnStartedAt });
  }
  return ({ id, project }) => {
    const begun = begunBy.get(id);
    return { openIn: received.get(id) ?? 0, openOut: sent.get(id) ?? 0, orMore: orMore.has(project), ...(begun && { begun }) };
  };
}

/** Where a page begins: behind this agent of the page before. */
type Place = Pick<AgentRow, "project" | "nameFolded">;

type Found = { rows: AgentRow[]; stoppedAt: Place | undefined };

/** Agents of a page's projects, by project and name. A machine has no index: a bounded number of agents is looked at for it. */
async function agentsBehind(visit: Visit, { show, prefix, machine }: Filter, place: Place | undefined, limit: number): Promise<Found> {
  const { agents } = visit.hub.engine.read;
  const rows: AgentRow[] = [];
  let looked = 0;
  for (const project of [...projectsOf(visit)].sort()) {
    if (place && project < place.project) continue;
    for (let after = project === place?.project ? place.nameFolded : undefined; ; ) {
      const size = machine === undefined ? limit - rows.length : LOOK_ROWS;
      const found = await agents.page(project, { online: show === "online", prefix, after, limit: size });
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

const writePlace = ({ project, nameFolded }: Place): string => `${encodeURIComponent(project)}/${nameFolded}`;
/** The project is encoded, so the first slash ends it. Anything that is not a place is the first page. */
function placeOf(url: URL): Place | undefined {
  const [, project, nameFolded] = /^([^/]*)\/([\s\S]+)$/.exec(url.searchParams.get("after") ?? "") ?? [];
  if (project === undefined || nameFolded === undefined) return undefined;
  try {
    return { project: decodeURIComponent(project), nameFolded };
  } catch {
    return undefined;
  }
}

async function entriesOf(visit: Visit, agents: readonly AgentRow[]): Promise<AgentEntry[]> {
  const { hub, now } = visit;
  const work = await workOf(visit, [...new Set(agents.map(({ project }) => project))]);
  return Promise.all(
    agents.map(async (agent) => {
      const of = work(agent);
      const leases = await hub.engine.read.leases.heldBy(agent.project, agent.id, LEASES_SHOWN + 1);
      return { agent, work: of, leases, presence: presenceAt(hub, agent, now, { begun: of.begun !== undefined, open: of.openIn > 0 }) };
    }),
  );
}

type AgentsData = { entries: AgentEntry[]; next: Place | undefined; filter: Filter; total: number; online: number };

async function load(visit: Visit): Promise<AgentsData> {
  const { agents, projects: projectStore } = visit.hub.engine.read;
  const [filter, projects] = [filterOf(visit), projectsOf(visit)];
  const [{ rows, stoppedAt }, total, online] = await Promise.all([
    agentsBehind(visit, filter, placeOf(visit.url), VIEW_ROWS_MAX + 1),
    countOver(projects, (project) => agents.count(project, COUNT_EXACT_MAX + 1)),
    countOver(projects, (project) => projectStore.countOnline(project)),
  ]);
  const shown = rows.slice(0, VIEW_ROWS_MAX);
  return { entries: await entriesOf(visit, shown), next: rows.length > VIEW_ROWS_MAX ? shown.at(-1) : stoppedAt, filter, total, online };
}

const columnsOf = ({ project, now }: Visit): readonly Column<AgentEntry>[] => [
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
  { head: "Doing now", phone: "line", cell: ({ work, presence }) => <Doing work={work} presence={presence} now={now} project={project} /> },
  { head: "Open", tight: true, cell: ({ work }) => <OpenCounts work={work} /> },
  { head: "Leases", tight: true, cell: ({ leases }) => (leases.length > 0 ? <LeaseChips leases={leases} /> : "–") },
  { head: "Machine", tight: true, cell: ({ agent }) => (agent.host === null ? <Quiet>not said</Quiet> : <Line text={agent.host} max={28} />) },
];

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

const AgentsView = ({ data, visit }: { data: AgentsData; visit: Visit }) => {
  const { url, project, now, session } = visit;
  const { entries, filter, total, online } = data;
  const asked = askedOf(url, QUALIFIERS);
  const tab = (show: "online" | undefined) => here(url, { show, after: undefined });
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
      <FilterBar
        action="/agents"
        qualifiers={chipsOf(url, asked)}
        value={asked.words}
        placeholder="names that begin with…, or machine:"
        keep={keptBy(url)}
      />
      <Tabs
        label="Views"
        tabs={[
          { text: "All", href: tab(undefined), count: total, current: filter.show === "all" },
          { text: "Online", href: tab("online"), count: online, current: filter.show === "online" },
        ]}
      />
      <h2 class="visually-hidden">{filter.show === "online" ? "Agents that are online" : "All agents"}</h2>
      {entries.length > 0 ? (
        <>
          <Table caption="Agents" columns={columnsOf(visit)} rows={entries} id={({ agent }) => `agent-${agent.id}`} />
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

const isWhole = ({ prefix, machine }: Filter): boolean => prefix === "" && machine === undefined;

/** How many are shown, the list as a file, and the next page. */
const Way = ({ data: { entries, next, filter, total, online }, url }: { data: AgentsData; url: URL }) => {
  const file = (format: string) => link(`/agents/export/${format}`, Object.fromEntries(url.searchParams));
  return (
    <Pager
      shown={
        <>
          {entries.length} {isWhole(filter) && `of ${counted(filter.show === "online" ? online : total)}`} by project and name · as{" "}
          <Link href={file("csv")}>CSV</Link> or <Link href={file("json")}>JSON</Link>
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
  ) : total > 0 ? (
    <Empty title="Nobody is online.">An agent that sends any request is online from then on. All agents are in the other tab.</Empty>
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
  return download("agents", visit.params["format"]!, EXPORT, await entriesOf(visit, rows));
}

/** The list, its fragment, and the list as a file. */
export const screens: readonly Screen[] = [
  ...livePage({
    path: "/agents",
    id: "agents",
    place: "agents",
    topic: ["agents", "messages", "leases"],
    load,
    title: () => "Agents",
    view: (data, visit) => <AgentsView data={data} visit={visit} />,
  }),
  screen({ method: "GET", path: "/agents/export/:format", role: "viewer", run: exportAgents }),
];
