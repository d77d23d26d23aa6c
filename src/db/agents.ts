// Agents: one row per name and project, found by id (every request) or by folded name (targets).
import { and, asc, eq, gt, gte, lt, lte, type SQL, sql } from "drizzle-orm";
import { chunksOf, idSlots, inChunk, timeOfChunk, timeSlots } from "./chunks.ts";
import type { Dialect } from "./dialect.ts";
import type { AgentRow } from "./schema.ts";
import { everySlot, slot } from "./slots.ts";

/** What a sender must know of an agent. */
export type AgentTarget = Pick<AgentRow, "id" | "project" | "name" | "online" | "retiredAt">;

export function agentStore(dialect: Dialect) {
  return { ...oneAgent(dialect), ...manyAgents(dialect), ...agentPages(dialect) };
}

function oneAgent({ db, tables: { agents }, one, run, locked }: Dialect) {
  const byId = db
    .select()
    .from(agents)
    .where(eq(agents.id, slot("id")))
    .$dynamic();
  const find = one(byId);
  const lock = one(locked(byId));
  const findByName = one(
    db
      .select()
      .from(agents)
      .where(and(eq(agents.project, slot("project")), eq(agents.nameFolded, slot("nameFolded")))),
  );
  // What a send asks of its target: fewer columns than a whole agent.
  const target = one(
    db
      .select({ id: agents.id, project: agents.project, name: agents.name, online: agents.online, retiredAt: agents.retiredAt })
      .from(agents)
      .where(and(eq(agents.project, slot("project")), eq(agents.nameFolded, slot("nameFolded")))),
  );
  const insert = run(db.insert(agents).values(everySlot(agents)));
  const resume = run(
    db
      .update(agents)
      .set({
        name: slot("name"),
        purpose: slot("purpose"),
        model: slot("model"),
        host: slot("host"),
        keyHash: slot("keyHash"),
        online: slot("online"),
        connectedAt: slot("connectedAt"),
        lastSeenAt: slot("lastSeenAt"),
        retiredAt: null,
      })
      .where(eq(agents.id, slot("id"))),
  );
  const setOnline = run(
    db
      .update(agents)
      .set({ lastSeenAt: slot("at"), online: slot("online") })
      .where(eq(agents.id, slot("id"))),
  );
  const endKey = run(
    db
      .update(agents)
      .set({ keyHash: slot("keyHash"), online: 0, retiredAt: slot("retiredAt") })
      .where(eq(agents.id, slot("id"))),
  );
  return {
    /** Offline, and no key fits any more. */
    endKey: (id: string, keyHash: string, retiredAt: number | null) => endKey({ id, keyHash, retiredAt }),
    find: (id: string) => find({ id }),
    lock: (id: string) => lock({ id }),
    findByName: (project: string, name: string) => findByName({ project, nameFolded: name.toLowerCase() }),
    /** The agent of a name, as far as a sender must know it. */
    findTarget: (project: string, name: string): Promise<AgentTarget | undefined> => target({ project, nameFolded: name.toLowerCase() }),
    insert: (row: AgentRow) => insert(row),
    resume: (row: AgentRow) => resume(row),
    setOnline: (id: string, online: 0 | 1, at: number) => setOnline({ id, online, at }),
  };
}

/** What lists, sweeps and batches do to several agents at once. */
function manyAgents({ db, tables: { agents }, one, all, run }: Dialect) {
  const online = sql`${agents.online} = 1`; // a literal: a bound value would hide the partial index from SQLite's planner
  const ofProject = all(
    db
      .select()
      .from(agents)
      .where(eq(agents.project, slot("project")))
      .orderBy(asc(agents.nameFolded)),
  );
  const onlineOf = all(
    db
      .select()
      .from(agents)
      .where(and(eq(agents.project, slot("project")), online))
      .orderBy(asc(agents.nameFolded)),
  );
  const silent = all(
    db
      .select({ id: agents.id, project: agents.project, lastSeenAt: agents.lastSeenAt })
      .from(agents)
      .where(and(lte(agents.lastSeenAt, slot("until")), online))
      .orderBy(asc(agents.lastSeenAt))
      .limit(slot("limit")),
  );
  const seenAt = timeOfChunk(agents.id);
  const seen = run(
    db
      .update(agents)
      .set({ lastSeenAt: seenAt })
      .where(and(inChunk(agents.id), lt(agents.lastSeenAt, seenAt))),
  );
  const countOnline = one(db.select({ count: sql<number>`count(*)` }).from(agents).where(online));
  return {
    countOnline: async () => Number((await countOnline())!.count), // bigint arrives as text from PostgreSQL
    /** Every agent ever registered, by name. */
    ofProject: (project: string) => ofProject({ project }),
    onlineOf: (project: string) => onlineOf({ project }),
    /** Online in the table and last seen at a time or before it, longest silent first. */
    silent: (until: number, limit: number) => silent({ until, limit }),
    /** Moves last-seen times forward, never back. */
    seen: async (times: readonly { id: string; at: number }[]) => {
      for (const chunk of chunksOf(times)) {
        await seen({ ...idSlots(chunk.map(({ id }) => id)), ...timeSlots(chunk.map(({ at }) => at)) });
      }
    },
  };
}

/** Which agents a page is of. */
export type AgentsOf = "all" | "online" | "retired";
/** Where a page of agents begins: its names start with `prefix` ("" for all), and lie after a folded name. */
export type AgentPage = { of: AgentsOf; prefix: string; after?: string | undefined; limit: number };
/** The last code point there is: a prefix followed by it sorts after every name that starts with the prefix. */
const LAST = "\u{10ffff}";

/** Keyset pages by folded name. */
function agentPages({ db, tables: { agents }, one, all }: Dialect) {
  const { project, nameFolded: name } = agents;
  const ofProject = eq(project, slot("project"));
  const online = sql`${agents.online} = 1`;
  const retired = sql`${agents.retiredAt} is not null`;
  const pageOf = (from: SQL) => {
    const page = (only?: SQL) =>
      all(
        db
          .select()
          .from(agents)
          .where(and(ofProject, from, lt(name, slot("end")), only))
          .orderBy(asc(name))
          .limit(slot("limit")),
      );
    return { all: page(), online: page(online), retired: page(retired) };
  };
  const [first, next] = [pageOf(gte(name, slot("prefix"))), pageOf(gt(name, slot("after")))];
  const countOf = (only?: SQL) => {
    const counted = db.select({ one: sql`1` }).from(agents).where(and(ofProject, only)).limit(slot("limit")).as("counted");
    return one(db.select({ count: sql<number>`count(*)` }).from(counted));
  };
  const [count, countRetired] = [countOf(), countOf(retired)];
  const among = all(db.select().from(agents).where(inChunk(agents.id)));
  return {
    /** A page by name. */
    page: (project: string, { of, prefix, after, limit }: AgentPage): Promise<AgentRow[]> => {
      const slots = { project, end: prefix + LAST, limit };
      return after === undefined ? first[of]({ ...slots, prefix }) : next[of]({ ...slots, after });
    },
    /** The agents of these ids, in no order; what is no agent's id is left out. */
    async among(ids: readonly string[]): Promise<AgentRow[]> {
      const found: AgentRow[] = [];
      for (const chunk of chunksOf(ids)) found.push(...(await among(idSlots(chunk))));
      return found;
    },
    /** Agents ever registered in a project; the count stops at `limit`. */
    count: async (project: string, limit: number) => Number((await count({ project, limit }))!.count),
    /** Those that a person retired; the count stops at `limit`. */
    countRetired: async (project: string, limit: number) => Number((await countRetired({ project, limit }))!.count),
  };
}
