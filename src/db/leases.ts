// Leases: one row per resource, never deleted, so its fence can only rise; and the agents that stand in line for one.
import { and, asc, count, desc, eq, gt, isNotNull, isNull, lte, sql } from "drizzle-orm";
import type { Dialect } from "./dialect.ts";
import type { LeaseRow, LeaseWaiterRow } from "./schema.ts";
import { everySlot, slot } from "./slots.ts";

export function leaseStore(dialect: Dialect) {
  return { ...leaseRows(dialect), ...leaseLists(dialect), ...waiterRows(dialect) };
}

function leaseRows({ db, tables: { leases }, one, run, locked }: Dialect) {
  const byResource = db
    .select()
    .from(leases)
    .where(eq(leases.resource, slot("resource")))
    .$dynamic();
  const find = one(byResource);
  const lock = one(locked(byResource));
  const insert = run(db.insert(leases).values(everySlot(leases)));
  const update = run(
    db
      .update(leases)
      .set({
        fence: slot("fence"),
        holderId: slot("holderId"),
        holderName: slot("holderName"),
        ttlMs: slot("ttlMs"),
        acquiredAt: slot("acquiredAt"),
        renewedAt: slot("renewedAt"),
        expiresAt: slot("expiresAt"),
        freedAt: slot("freedAt"),
        lastWaiter: slot("lastWaiter"),
      })
      .where(eq(leases.resource, slot("resource"))),
  );
  return {
    find: (resource: string) => find({ resource }),
    lock: (resource: string) => lock({ resource }),
    insert: (row: LeaseRow) => insert(row),
    update: (row: LeaseRow) => update(row),
  };
}

function leaseLists({ db, tables: { leases }, one, all }: Dialect) {
  const held = isNull(leases.freedAt);
  const lapsed = and(isNotNull(leases.holderId), isNotNull(leases.freedAt));
  const overdue = all(
    db
      .select()
      .from(leases)
      .where(and(held, lte(leases.expiresAt, slot("at"))))
      .orderBy(asc(leases.expiresAt))
      .limit(slot("limit")),
  );
  const nextEnd = one(db.select({ at: leases.expiresAt }).from(leases).where(held).orderBy(asc(leases.expiresAt)).limit(1));
  const page = and(eq(leases.project, slot("project")), gt(leases.name, slot("after")));
  const ofProject = all(db.select().from(leases).where(and(page, held)).orderBy(asc(leases.name)).limit(slot("limit")));
  const lapsedOfProject = all(
    db
      .select()
      .from(leases)
      .where(and(eq(leases.project, slot("project")), lapsed))
      .orderBy(desc(leases.freedAt))
      .limit(slot("limit")),
  );
  const freedOfProject = all(
    db
      .select()
      .from(leases)
      .where(and(eq(leases.project, slot("project")), isNotNull(leases.freedAt)))
      .orderBy(desc(leases.freedAt), desc(leases.name))
      .limit(slot("limit")),
  );
  const heldRows = db
    .select({ one: sql`1` })
    .from(leases)
    .where(and(eq(leases.project, slot("project")), held))
    .limit(slot("limit"))
    .as("counted");
  const countHeld = one(db.select({ count: sql<number>`count(*)` }).from(heldRows));
  const lapsedBefore = all(
    db
      .select()
      .from(leases)
      .where(and(lapsed, lte(leases.freedAt, slot("at"))))
      .limit(slot("limit")),
  );
  const heldBy = all(
    db
      .select()
      .from(leases)
      .where(and(eq(leases.project, slot("project")), held, eq(leases.holderId, slot("holderId"))))
      .orderBy(asc(leases.name))
      .limit(slot("limit")),
  );
  return {
    /** Held rows whose time is up, earliest first. */
    overdue: (at: number, limit: number) => overdue({ at, limit }),
    nextEnd: async () => (await nextEnd())?.at,
    /** Held leases of a project by name. */
    held: (project: string, after: string, limit: number) => ofProject({ project, after, limit }),
    /** Leases that ended by time and were not taken over, last ended first. */
    lapsed: (project: string, limit: number) => lapsedOfProject({ project, limit }),
    /** Free resources of a project, last freed first, whether given back or lapsed. */
    freed: (project: string, limit: number) => freedOfProject({ project, limit }),
    /** Held leases of a project; the count stops at `limit`. */
    countHeld: async (project: string, limit: number) => Number((await countHeld({ project, limit }))!.count),
    lapsedBefore: (at: number, limit: number) => lapsedBefore({ at, limit }),
    heldBy: (project: string, holderId: string, limit: number) => heldBy({ project, holderId, limit }),
  };
}

function waiterRows({ db, tables: { leaseWaiters }, one, all, run }: Dialect) {
  const ofResource = eq(leaseWaiters.resource, slot("resource"));
  const live = and(ofResource, gt(leaseWaiters.deadlineAt, slot("at")));
  const byTicket = and(ofResource, eq(leaseWaiters.ticket, slot("ticket")));
  const waiters = all(db.select().from(leaseWaiters).where(live).orderBy(asc(leaseWaiters.ticket)).limit(slot("limit")));
  const countWaiters = one(db.select({ count: count() }).from(leaseWaiters).where(live));
  const findWaiter = one(db.select().from(leaseWaiters).where(byTicket));
  const insertWaiter = run(db.insert(leaseWaiters).values(everySlot(leaseWaiters)));
  const removeWaiter = run(db.delete(leaseWaiters).where(byTicket));
  const ticketsOf = all(
    db
      .select({ ticket: leaseWaiters.ticket })
      .from(leaseWaiters)
      .where(and(ofResource, eq(leaseWaiters.agentId, slot("agentId"))))
      .orderBy(asc(leaseWaiters.ticket)),
  );
  const removeWaitersOf = run(db.delete(leaseWaiters).where(and(ofResource, eq(leaseWaiters.agentId, slot("agentId")))));
  const overdueWaiters = all(
    db
      .select()
      .from(leaseWaiters)
      .where(lte(leaseWaiters.deadlineAt, slot("at")))
      .orderBy(asc(leaseWaiters.deadlineAt))
      .limit(slot("limit")),
  );
  const overdueOf = all(
    db
      .select()
      .from(leaseWaiters)
      .where(and(ofResource, lte(leaseWaiters.deadlineAt, slot("at"))))
      .orderBy(asc(leaseWaiters.ticket)),
  );
  const nextDeadline = one(db.select({ at: leaseWaiters.deadlineAt }).from(leaseWaiters).orderBy(asc(leaseWaiters.deadlineAt)).limit(1));
  return {
    /** Who stands in line and may still be granted, first first. */
    waiters: (resource: string, at: number, limit: number) => waiters({ resource, at, limit }),
    countWaiters: async (resource: string, at: number) => Number((await countWaiters({ resource, at }))!.count),
    findWaiter: (resource: string, ticket: number) => findWaiter({ resource, ticket }),
    insertWaiter: (row: LeaseWaiterRow) => insertWaiter(row),
    removeWaiter: (resource: string, ticket: number) => removeWaiter({ resource, ticket }),
    /** Takes every request of an agent out of the line. @returns their tickets */
    removeWaitersOf: async (resource: string, agentId: string) => {
      const tickets = (await ticketsOf({ resource, agentId })).map(({ ticket }) => ticket);
      if (tickets.length > 0) await removeWaitersOf({ resource, agentId });
      return tickets;
    },
    overdueWaiters: (at: number, limit: number) => overdueWaiters({ at, limit }),
    overdueOf: (resource: string, at: number) => overdueOf({ resource, at }),
    nextDeadline: async () => (await nextDeadline())?.at,
  };
}
