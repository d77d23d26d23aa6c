// What every request asks of the store: who the agent is, and whether its project has a token of its own. Kept in memory while this process is the
// only one that writes the store, and dropped in the moment of the commit that changes it; with several hubs on one database nothing is kept.
import type { Engine } from "../db/engine.ts";
import type { AgentRow } from "../db/schema.ts";

/** Rows kept of each kind; beyond it all are dropped and read again. */
const KEPT_MAX = 20_000;

export interface Known {
  /** The agent as committed, except for `lastSeenAt`, which may be older. */
  agent(id: string): Promise<AgentRow | undefined>;
  /** Whether the project ever had a token of its own: then nobody passes without one, also when it has ended. */
  hasProjectToken(project: string): Promise<boolean>;
}

/** What every request asks, remembered until a commit changes it; on PostgreSQL, where other hubs commit, too, read each time. */
export function createKnown({ kind, read, onCommitted }: Engine): Known {
  if (kind !== "sqlite") return { agent: (id) => read.agents.find(id), hasProjectToken: (project) => read.tokens.hasProjectToken(project) };
  const agents = new Map<string, AgentRow>();
  const projects = new Map<string, boolean>();
  onCommitted(({ topic, subjectId }) => {
    if (topic === "agents") agents.delete(subjectId);
    if (topic === "settings") projects.clear();
  });
  return {
    async agent(id) {
      const kept = agents.get(id);
      if (kept) return kept;
      const agent = await read.agents.find(id);
      if (agent) keep(agents, id, agent);
      return agent;
    },
    async hasProjectToken(project) {
      const kept = projects.get(project);
      if (kept !== undefined) return kept;
      const has = await read.tokens.hasProjectToken(project);
      keep(projects, project, has);
      return has;
    },
  };
}

function keep<T>(map: Map<string, T>, key: string, value: T) {
  if (map.size >= KEPT_MAX) map.clear();
  map.set(key, value);
}
