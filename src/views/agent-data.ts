// What the page of one agent shows, as plain data.
import type { MessageHead } from "../db/message-heads.ts";
import type { AgentRow, LeaseRow, WorkflowRunRow } from "../db/schema.ts";
import { HubError } from "../protocol/errors.ts";
import { type AgentTimeline, timelineOf } from "./agent-timeline.tsx";
import { presenceWith, type Work, worksOf } from "./agent-work.ts";
import type { Presence } from "./presence.tsx";
import type { Visit } from "./screen.ts";

/** Newest requests that the figures are over. */
export const LOOKED_AT = 200;
const OPEN_SHOWN = 8;
const LEASES_SHOWN = 20;
const RUNS_SHOWN = 5;

export type Figures = { looked: number; replied: number; open: number; expired: number; startMs: number | undefined; replyMs: number | undefined };
export type AgentData = {
  agent: AgentRow;
  presence: Presence;
  work: Work;
  figures: Figures;
  openIn: MessageHead[];
  openOut: MessageHead[];
  leases: LeaseRow[];
  coordinates: WorkflowRunRow[];
  timeline: AgentTimeline;
};

/** An agent the session may see. @throws HubError agent_not_found, also for other projects */
export async function visibleAgent({ hub, session, params }: Visit): Promise<AgentRow> {
  const agent = await hub.engine.read.agents.find(params["id"] ?? "");
  if (!agent || (session.project !== null && agent.project !== session.project))
    throw new HubError("agent_not_found", "there is no such agent", { hint: "The list of agents shows everybody who ever registered." });
  return agent;
}

/** Everything the page shows. @throws HubError agent_not_found */
export async function load(visit: Visit): Promise<AgentData> {
  const { read } = visit.hub.engine;
  const agent = await visibleAgent(visit);
  const [works, recent, sent, leases, coordinates, timeline] = await Promise.all([
    worksOf(visit, [agent.project]),
    read.messages.heads({ kind: "received", of: agent.id }, Number.MAX_SAFE_INTEGER, LOOKED_AT),
    read.messages.heads({ kind: "sent", of: agent.id }, "~", LOOKED_AT),
    read.leases.heldBy(agent.project, agent.id, LEASES_SHOWN),
    read.workflows.ofCoordinator(agent.id, RUNS_SHOWN),
    timelineOf(visit, agent),
  ]);
  const work = works.of(agent);
  const isOpen = ({ status }: MessageHead) => status === "queued" || status === "delivered";
  return {
    agent,
    work,
    leases,
    coordinates,
    timeline,
    presence: presenceWith(visit, agent, work),
    figures: figuresOf(recent),
    openIn: recent.filter(isOpen).slice(0, OPEN_SHOWN),
    openOut: sent.filter(isOpen).slice(0, OPEN_SHOWN),
  };
}

function figuresOf(recent: readonly MessageHead[]): Figures {
  const count = (...statuses: MessageHead["status"][]) => recent.filter(({ status }) => statuses.includes(status)).length;
  return {
    looked: recent.length,
    replied: count("replied"),
    open: count("queued", "delivered"),
    expired: count("expired"),
    startMs: median(recent.flatMap(({ createdAt, turnStartedAt }) => (turnStartedAt === null ? [] : [turnStartedAt - createdAt]))),
    replyMs: median(recent.flatMap(({ createdAt, repliedAt }) => (repliedAt === null ? [] : [repliedAt - createdAt]))),
  };
}
/** The middle one of some values; undefined when there are none. */
export const median = (values: readonly number[]): number | undefined => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
