// One agent: how it is doing and how the hub knows, what it is at and what waits for it, what it holds, everything it did; and what a person can do about it.
/** @jsxImportSource #jsx */
import type { MessageHead } from "../db/message-heads.ts";
import type { LeaseRow } from "../db/schema.ts";
import { here } from "./address.ts";
import { agentActs, HeadActs } from "./agent-acts.tsx";
import { type AgentData, type Figures, LOOKED_AT, load } from "./agent-data.ts";
import type { Work } from "./agent-work.ts";
import { domId } from "./dom-id.ts";
import { leaseLink, link, messageLink, workflowRunLink } from "./links.ts";
import { livePage } from "./live-page.tsx";
import { stateOfMessage } from "./message-state.tsx";
import { AgentStatus, type Presence } from "./presence.tsx";
import type { Screen, Visit } from "./screen.ts";
import { Stat, StatStrip } from "./ui/charts.tsx";
import { Feed } from "./ui/feed.tsx";
import { Empty, Notice } from "./ui/feedback.tsx";
import { Ring } from "./ui/lease.tsx";
import { Columns, Facts, PageHead, Section } from "./ui/page.tsx";
import { Chip, Id, Link, Quiet, Ref } from "./ui/reference.tsx";
import { Status, stateOf } from "./ui/status.tsx";
import { Pager } from "./ui/table.tsx";
import { Ago, Left, took, words } from "./ui/time.tsx";
import { Line, Name, visible } from "./ui/untrusted.tsx";

const AgentView = ({ data, visit }: { data: AgentData; visit: Visit }) => {
  const { agent, presence } = data;
  const { project, now, session } = visit;
  return (
    <>
      <PageHead
        title={<Name text={agent.name} />}
        crumbs={[{ text: "Agents", href: link("/agents", { project }) }, { text: <Line text={agent.project} max={40} /> }]}
        sub={[
          <AgentStatus presence={presence} now={now} />,
          agent.model !== null && (
            <Chip>
              <Line text={agent.model} max={40} />
            </Chip>
          ),
          agent.host !== null && <Line text={agent.host} max={40} />,
          <Id value={agent.id} whole />,
        ]}
        actions={session.role !== "viewer" && <HeadActs data={data} visit={visit} />}
      />
      <Needed data={data} now={now} />
      <FigureStrip figures={data.figures} work={data.work} />
      <Columns main={<Timeline data={data} visit={visit} />} aside={<Aside data={data} visit={visit} />} />
    </>
  );
};

/** It is away while somebody relies on it. */
const Needed = ({ data: { presence, work, leases }, now }: { data: AgentData; now: number }) => {
  const away = presence.state === "lost contact" || presence.state === "offline" || presence.state === "retired";
  const relied = [
    work.openIn > 0 && `${work.openIn}${work.orMore ? "+" : ""} ${work.openIn === 1 ? "request waits" : "requests wait"} for it`,
    leases.length > 0 && `it holds ${leases.length} ${leases.length === 1 ? "lease" : "leases"}`,
  ].filter((why) => why !== false);
  if (!away || relied.length === 0) return null;
  return (
    <Notice tone="attn" title="This agent needs you.">
      {presence.state === "lost contact" ? "It lost contact" : `It is ${presence.state}, as of`} <Ago at={presence.at} now={now} plain />, and{" "}
      {relied.join(", and ")}. Start it again, cancel what waits, or retire it.
    </Notice>
  );
};

const FigureStrip = ({ figures: { looked, replied, open, expired, startMs, replyMs }, work }: { figures: Figures; work: Work }) => (
  <StatStrip>
    <Stat
      label={looked === LOOKED_AT ? `Replies, newest ${LOOKED_AT}` : "Replies"}
      value={replied}
      unit={`of ${looked}`}
      note={`${open} open, ${expired} expired`}
    />
    <Stat label="Until a turn starts" value={startMs === undefined ? "–" : took(startMs)} note="median" />
    <Stat label="Until the reply" value={replyMs === undefined ? "–" : took(replyMs)} note="median" />
    <Stat label="Open now" value={`${work.openIn}${work.orMore ? "+" : ""}`} unit="in" note={`${work.openOut}${work.orMore ? "+" : ""} out`} />
  </StatStrip>
);

const Timeline = ({ data: { timeline }, visit: { url } }: { data: AgentData; visit: Visit }) => (
  <Section title="Everything, newest first">
    {timeline.items.length > 0 ? (
      <Feed items={timeline.items} />
    ) : (
      <Empty title="Nothing yet.">What it is asked and what it does appears here.</Empty>
    )}
    <Pager
      shown={`${timeline.items.length} shown`}
      newer={url.searchParams.has("after") ? here(url, { after: undefined }) : undefined}
      older={timeline.next && here(url, { after: timeline.next })}
    />
  </Section>
);

const Aside = ({ data, visit }: { data: AgentData; visit: Visit }) => {
  const { agent, presence, leases, openIn, openOut, coordinates } = data;
  const { now, project } = visit;
  return (
    <>
      <Section title="Facts">
        <Facts
          rows={[
            ["Purpose", <Line text={agent.purpose} />],
            ["Presence", <PresenceWords presence={presence} now={now} />],
            ["Program", agent.model === null ? "not said" : <Line text={agent.model} max={60} />],
            ["Machine", agent.host === null ? "not said" : <Line text={agent.host} max={60} />],
            ["Project", <Name text={agent.project} />],
            ["Registered", <Ago at={agent.registeredAt} now={now} plain />],
            ["Connected", <Ago at={agent.connectedAt} now={now} plain />],
          ]}
        />
      </Section>
      <Section title="Leases held" count={leases.length}>
        {leases.length === 0 ? <p class="section__body quiet">None.</p> : <HeldLeases leases={leases} now={now} />}
      </Section>
      <Section
        title="Open messages"
        count={openIn.length + openOut.length}
        more={<Link href={link("/messages", { project: agent.project, q: `to:${agent.id}` })}>All to it</Link>}
      >
        <Feed items={[...openIn.map((head) => openItem(head, "in", now, project)), ...openOut.map((head) => openItem(head, "out", now, project))]} />
      </Section>
      {coordinates.length > 0 && (
        <Section title="Coordinates" count={coordinates.length}>
          <Feed
            items={coordinates.map(({ id, definitionId, status, updatedAt }) => ({
              id: `coordinates-${id}`,
              icon: "runs",
              tone: status === "failed" ? "bad" : status === "completed" ? "ok" : "run",
              text: (
                <>
                  <Ref href={workflowRunLink(id, { project })}>
                    <Line text={definitionId} max={40} />
                  </Ref>{" "}
                  <Status state={stateOf(status)} />
                </>
              ),
              when: <Ago at={updatedAt} now={now} />,
            }))}
          />
        </Section>
      )}
    </>
  );
};

const PresenceWords = ({ presence: { state, at, bound, listensSince }, now }: { presence: Presence; now: number }) =>
  listensSince !== undefined ? (
    <>
      unknown: this hub came back <Ago at={listensSince} now={now} plain /> and gives everybody {words(bound)} to be heard; last seen{" "}
      <Ago at={at} now={now} plain />
    </>
  ) : state === "working" || state === "online" || state === "idle" ? (
    <>
      heartbeat <Ago at={at} now={now} plain />; turns “lost contact” after {words(bound)}
    </>
  ) : (
    <>
      {state} <Ago at={at} now={now} plain />
    </>
  );

const HeldLeases = ({ leases, now }: { leases: readonly LeaseRow[]; now: number }) => (
  <ul role="list" class="section__body">
    {leases.map(({ resource, project, name, fence, expiresAt, ttlMs }) => (
      <li class="row" id={domId("held", resource)} data-ttl={ttlMs}>
        <Ring left={expiresAt - now} ttl={ttlMs} />
        <span>
          <Ref href={leaseLink(project, name)}>
            <Line text={name} max={60} />
          </Ref>
          <span class="sub">
            token {fence} · <Left until={expiresAt} now={now} /> left
          </span>
        </span>
      </li>
    ))}
  </ul>
);

function openItem(head: MessageHead, way: "in" | "out", now: number, project: string | undefined) {
  const { state, at } = stateOfMessage(head, now);
  return {
    id: `open-${head.id}`,
    icon: way === "in" ? ("messages" as const) : ("send" as const),
    tone: way === "in" && state === "turn started" ? ("run" as const) : ("mute" as const),
    text: (
      <>
        <Ref href={messageLink(head.id, { project })}>
          {way === "in" ? "from" : "to"} <Name text={way === "in" ? head.senderName : head.recipientName} />, {head.recipientSeq}
        </Ref>{" "}
        <Quiet>{state}</Quiet>
      </>
    ),
    when: <Ago at={at} now={now} />,
  };
}

/** The page of one agent, its fragment, and the acts on it. */
export const screens: readonly Screen[] = [
  ...livePage({
    path: "/agents/:id",
    id: "agent",
    place: "agents",
    topic: ["agents", "messages", "leases", "workflows", "journal", "context"],
    load,
    title: ({ agent }) => visible(agent.name),
    view: (data, visit) => <AgentView data={data} visit={visit} />,
  }),
  ...agentActs,
];
