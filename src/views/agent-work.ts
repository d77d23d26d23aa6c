// What agents are at and which of them need a person, from facts: open requests, presence, held leases, dead letters. Bounded looks per project.
import type { AgentRow } from "../db/schema.ts";
import { type Presence, presenceAt } from "./presence.tsx";
import type { Visit } from "./screen.ts";

/** Open messages, held leases and dead letters of a project that a page looks at; beyond them counts are "or more". */
const LOOKED_AT = 1_000;
const DEAD_LOOKED_AT = 200;
const ABOVE_ALL = "~";

/** What an agent is at, from the open messages of its project. */
export type Work = { openIn: number; openOut: number; orMore: boolean; begun?: { id: string; by: string; seq: number; since: number } };
/** Why an agent needs a person: what it does not answer for, and what nobody answered. */
export type Need = { presence: Presence; begun: boolean; waiting: number; leases: number; dead: number };
export type Works = {
  of(agent: Pick<AgentRow, "id" | "project">): Work;
  /** Agents that have begun on a request. */
  begun: ReadonlySet<string>;
  /** Agents that requests wait for. */
  asked: ReadonlySet<string>;
  /** More messages are open than were looked at. */
  orMore: boolean;
};

/** What the open messages of projects say about their agents' work. */
export async function worksOf({ hub }: Visit, projects: readonly string[]): Promise<Works> {
  const { messages } = hub.engine.read;
  const found = await Promise.all(
    projects.map(async (project) => {
      const [open, begun] = await Promise.all([messages.openParties(project, LOOKED_AT), messages.inWork(project, LOOKED_AT)]);
      return { project, open, begun };
    }),
  );
  const [received, sent, begunBy] = [new Map<string, number>(), new Map<string, number>(), new Map<string, Work["begun"]>()];
  const orMore = new Set<string>();
  for (const { project, open, begun } of found) {
    if (open.length === LOOKED_AT) orMore.add(project);
    for (const { recipientId, senderId } of open) {
      received.set(recipientId, (received.get(recipientId) ?? 0) + 1);
      sent.set(senderId, (sent.get(senderId) ?? 0) + 1);
    }
    for (const { recipientId, id, senderName, recipientSeq, turnStartedAt } of begun)
      begunBy.set(recipientId, { id, by: senderName, seq: recipientSeq, since: turnStartedAt });
  }
  return {
    of({ id, project }) {
      const begun = begunBy.get(id);
      return { openIn: received.get(id) ?? 0, openOut: sent.get(id) ?? 0, orMore: orMore.has(project), ...(begun && { begun }) };
    },
    begun: new Set(begunBy.keys()),
    asked: new Set(received.keys()),
    orMore: orMore.size > 0,
  };
}

/** How an agent is doing, given its work. */
export const presenceWith = ({ hub, now }: Visit, agent: AgentRow, work: Work): Presence =>
  presenceAt(hub, agent, now, { begun: work.begun !== undefined, open: work.openIn > 0 });

const byPlace = (a: AgentRow, b: AgentRow): number =>
  a.project === b.project ? (a.nameFolded < b.nameFolded ? -1 : 1) : a.project < b.project ? -1 : 1;

/** Agents that have begun on a request and answer, by project and name. */
export async function workingAgents(visit: Visit, works: Works): Promise<AgentRow[]> {
  const rows = await visit.hub.engine.read.agents.among([...works.begun]);
  return rows.filter((agent) => presenceWith(visit, agent, works.of(agent)).state === "working").sort(byPlace);
}

/**
 * Agents that need a person, by project and name: away (lost, offline or retired) while somebody waits for them or they hold a lease, or with requests
 * that died unanswered.
 */
export async function needingAgents(visit: Visit, projects: readonly string[], works: Works): Promise<{ agent: AgentRow; need: Need }[]> {
  const { agents, leases: leaseStore, messages } = visit.hub.engine.read;
  const [held, dead] = await Promise.all([
    Promise.all(projects.map((project) => leaseStore.held(project, "", LOOKED_AT))),
    Promise.all(projects.map((project) => messages.heads({ kind: "dead", of: project }, ABOVE_ALL, DEAD_LOOKED_AT))),
  ]);
  const leases = tally(held.flat().map(({ holderId }) => holderId ?? ""));
  const letters = tally(dead.flat().map(({ recipientId }) => recipientId));
  const ids = new Set([...works.asked, ...works.begun, ...leases.keys(), ...letters.keys()]);
  const found: { agent: AgentRow; need: Need }[] = [];
  for (const agent of await agents.among([...ids])) {
    const work = works.of(agent);
    const presence = presenceWith(visit, agent, work);
    const away = presence.state === "lost contact" || presence.state === "offline" || presence.state === "retired";
    const need: Need = {
      presence,
      begun: away && work.begun !== undefined,
      waiting: away ? work.openIn : 0,
      leases: away ? (leases.get(agent.id) ?? 0) : 0,
      dead: letters.get(agent.id) ?? 0,
    };
    if (need.begun || need.waiting > 0 || need.leases > 0 || need.dead > 0) found.push({ agent, need });
  }
  return found.sort((a, b) => byPlace(a.agent, b.agent));
}

function tally(ids: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const id of ids) counts.set(id, (counts.get(id) ?? 0) + 1);
  return counts;
}
