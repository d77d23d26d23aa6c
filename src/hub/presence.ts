// Signs of life, kept in memory and written in batches, so that reading routes never write. What the table says may be a few seconds older.

/** When each agent was last seen by this process and what has not been written yet. */
export interface Presence {
  /** Notes a sign of life. @param at milliseconds by the hub's clock */
  saw(agentId: string, at: number): void;
  /** The newer of the given time and what this process saw. */
  lastSeen(agentId: string, stored: number): number;
  /** Forgets an agent that signed off. */
  forget(agentId: string): void;
  /** What was seen since the last call, for the next batch. */
  takeUnwritten(): Map<string, number>;
}

export function createPresence(): Presence {
  const seen = new Map<string, number>();
  let unwritten = new Map<string, number>();
  return {
    saw(agentId, at) {
      seen.set(agentId, at);
      unwritten.set(agentId, at);
    },
    lastSeen: (agentId, stored) => Math.max(stored, seen.get(agentId) ?? 0),
    forget(agentId) {
      seen.delete(agentId);
      unwritten.delete(agentId);
    },
    takeUnwritten() {
      const taken = unwritten;
      unwritten = new Map();
      return taken;
    },
  };
}
