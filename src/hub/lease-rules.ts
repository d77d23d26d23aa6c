// The rules of leases, each inside one write: one holder at a time by the hub's clock, a fence that rises with every grant and never goes back,
// a line that is served first come, first served, by whatever call or sweep frees the resource.
import type { LeaseRow, LeaseWaiterRow } from "../db/schema.ts";
import type { Stores, Tx } from "../db/tx.ts";
import { HubError } from "../protocol/errors.ts";
import type { Lease, LeaseState } from "../protocol/leases.ts";
import { LEASE_WAITERS_MAX } from "../protocol/limits.ts";
import { iso } from "../protocol/time.ts";
import type { Caller } from "./agents.ts";

/** Somebody who asks for a resource: what and for how long, both times in milliseconds. */
export type AcquireRequest = { name: string; ttlMs: number; waitMs: number };
/** What asking came to. `held` changes nothing; `waiting` left a place in the line. */
export type Asked =
  | { kind: "granted"; lease: LeaseRow; renewed: boolean }
  | { kind: "waiting"; lease: LeaseRow; ticket: number }
  | { kind: "held"; lease: LeaseRow; waiters: number };

/** The row's key. A slash in the project's name is escaped, so that two projects can never mean the same row. */
export const resourceOf = (project: string, name: string): string => `${project.replaceAll("%", "%25").replaceAll("/", "%2F")}/${name}`;

const isHeld = (lease: LeaseRow, now: number) => lease.freedAt === null && lease.expiresAt > now;

/** Grants a free resource, extends the caller's own lease, or takes a place in the line when `waitMs` is given. */
export async function acquire(tx: Tx, agent: Caller, { name, ttlMs, waitMs }: AcquireRequest): Promise<Asked> {
  const resource = resourceOf(agent.project, name);
  let lease = await tx.leases.lock(resource);
  if (lease && lease.freedAt === null && lease.expiresAt <= tx.now) lease = await lapse(tx, lease);
  if (!lease || lease.freedAt !== null) {
    const free = lease ?? emptyRow(agent.project, name, resource, ttlMs);
    return { kind: "granted", lease: await grant(tx, free, { agent, ttlMs, isNew: !lease }), renewed: false };
  }
  if (lease.holderId === agent.id) return { kind: "granted", lease: await extend(tx, lease, ttlMs), renewed: true };
  const waiters = await tx.leases.countWaiters(resource, tx.now);
  if (waitMs === 0 || waiters >= LEASE_WAITERS_MAX) return { kind: "held", lease, waiters };
  return { kind: "waiting", lease, ticket: await queue(tx, lease, agent, { ttlMs, waitMs }) };
}

/** Extends a live lease. @throws HubError lease_not_found, lease_superseded, lease_expired */
export async function renew(tx: Tx, agent: Caller, name: string, fence: number, ttlMs: number): Promise<LeaseRow> {
  const lease = await lockOwn(tx, agent, name, fence);
  if (!isHeld(lease, tx.now)) throw await refusal(tx, "lease_expired", lease, tx.now);
  return extend(tx, lease, ttlMs);
}

/** Frees a lease, also one that has lapsed but was not taken over, and serves the line. @throws HubError lease_not_found, lease_superseded */
export async function release(tx: Tx, agent: Caller, name: string, fence: number): Promise<LeaseRow> {
  const lease = await lockOwn(tx, agent, name, fence);
  await free(tx, lease, "released", agent.id);
  return lease;
}

/**
 * Takes a lease away from its holder and serves the line.
 * @param what.fence the token that was looked at: a holder who came later is left alone
 * @throws HubError lease_not_found, lease_superseded
 */
export async function forceRelease(
  tx: Tx,
  by: { actor: string; role: string; origin?: string },
  { project, name, reason, fence }: { project: string; name: string; reason: string; fence?: number },
): Promise<LeaseRow> {
  const lease = await tx.leases.lock(resourceOf(project, name));
  if (!lease || lease.holderId === null) throw new HubError("lease_not_found", `nobody holds ${project}/${name}`);
  if (fence !== undefined && lease.fence !== fence) {
    const hint = "Look who holds it now, and decide again.";
    throw new HubError("lease_superseded", `somebody else holds ${project}/${name} by now, under token ${lease.fence}`, { hint });
  }
  await free(tx, lease, "force_released", by.actor, { role: by.role, reason, origin: by.origin });
  return lease;
}

/** Ends one resource's lease and waits that are over by now. Nothing happens when neither is. @returns whether the lease ended */
export async function sweep(tx: Tx, resource: string): Promise<boolean> {
  const lease = await tx.leases.lock(resource);
  if (!lease) return false;
  await endWaits(tx, lease);
  if (lease.freedAt !== null || lease.expiresAt > tx.now) return false;
  await lapse(tx, lease);
  return true;
}

/** Takes a waiter out of the line. @returns false when it is not in it any more: it was granted or its wait was ended */
export async function withdraw(tx: Tx, project: string, resource: string, ticket: number): Promise<boolean> {
  const waiter = await tx.leases.findWaiter(resource, ticket);
  if (!waiter) return false;
  await tx.leases.removeWaiter(resource, ticket);
  recordWait(tx, project, "wait_ended", waiter);
  return true;
}

/** Frees what was granted to a waiter that had hung up, unless the agent has used the lease since. */
export async function giveBack(tx: Tx, resource: string, agentId: string, fence: number): Promise<void> {
  const lease = await tx.leases.lock(resource);
  const untouched = lease?.holderId === agentId && lease.fence === fence && lease.freedAt === null && lease.renewedAt === lease.acquiredAt;
  if (untouched) await free(tx, lease, "released", agentId);
}

/** Forgets who last held a lease that lapsed long ago. The row and its fence stay. */
export async function forgetHolder(tx: Tx, resource: string, lapsedBefore: number): Promise<boolean> {
  const lease = await tx.leases.lock(resource);
  if (!lease || lease.holderId === null || lease.freedAt === null || lease.freedAt > lapsedBefore) return false;
  await tx.leases.update({ ...lease, holderId: null, holderName: null });
  record(tx, "forgotten", lease, "hub");
  return true;
}

/** A refusal that shows the lease, how long it has been held and who waits. */
export async function refusal(read: Pick<Stores, "leases">, code: "lease_held" | "lease_expired" | "lease_superseded", lease: LeaseRow, now: number) {
  const waiters = await read.leases.countWaiters(lease.resource, now);
  const name = `${lease.project}/${lease.name}`;
  const messages = {
    lease_held: `${name} is held by ${lease.holderName}`,
    lease_expired: `the lease on ${name} ended at ${iso(lease.expiresAt)}`,
    lease_superseded: `the lease on ${name} is not yours or has another token`,
  };
  return new HubError(code, messages[code], { lease: stateOf(lease, now, waiters) });
}

/** The lease as existing clients know it. @throws when nobody ever held it */
export const leaseOf = (lease: LeaseRow): Lease => ({
  resource: `${lease.project}/${lease.name}`,
  project: lease.project,
  name: lease.name,
  holderAgentId: lease.holderId!,
  holderAgentName: lease.holderName!,
  fencingToken: lease.fence,
  acquiredAt: iso(lease.acquiredAt),
  expiresAt: iso(lease.expiresAt),
});

/** The same with its age and line. @param now milliseconds by the hub's clock */
export const stateOf = (lease: LeaseRow, now: number, waiters: number): LeaseState => ({
  ...leaseOf(lease),
  state: isHeld(lease, now) ? "held" : "lapsed",
  renewedAt: iso(lease.renewedAt),
  ttlMs: lease.ttlMs,
  heldForMs: Math.max(0, (isHeld(lease, now) ? now : lease.expiresAt) - lease.acquiredAt),
  waiters,
});

const emptyRow = (project: string, name: string, resource: string, ttlMs: number): LeaseRow => ({
  resource,
  project,
  name,
  fence: 0,
  holderId: null,
  holderName: null,
  ttlMs,
  acquiredAt: 0,
  renewedAt: 0,
  expiresAt: 0,
  freedAt: 0,
  lastWaiter: 0,
});

async function lockOwn(tx: Tx, agent: Caller, name: string, fence: number): Promise<LeaseRow> {
  const lease = await tx.leases.lock(resourceOf(agent.project, name));
  if (!lease || lease.holderId === null) throw new HubError("lease_not_found", `nobody holds ${agent.project}/${name}`);
  if (lease.holderId !== agent.id || lease.fence !== fence) throw await refusal(tx, "lease_superseded", lease, tx.now);
  return lease;
}

type Grant = { agent: Pick<Caller, "id" | "name">; ttlMs: number; isNew?: boolean; ticket?: number };

/** A new holder. The fence is above every fence this resource ever had and above the floor that a restore sets. */
async function grant(tx: Tx, lease: LeaseRow, { agent, ttlMs, isNew = false, ticket }: Grant): Promise<LeaseRow> {
  const granted: LeaseRow = {
    ...lease,
    fence: Math.max(lease.fence, await tx.meta.fenceFloor()) + 1,
    holderId: agent.id,
    holderName: agent.name,
    ttlMs,
    acquiredAt: tx.now,
    renewedAt: tx.now,
    expiresAt: tx.now + ttlMs,
    freedAt: null,
  };
  await (isNew ? tx.leases.insert(granted) : tx.leases.update(granted));
  // Whichever of its requests asked: the agent has it. Tickets are never used twice, so a waiter cannot take an older grant for its own.
  const tickets = lease.lastWaiter > 0 ? await tx.leases.removeWaitersOf(lease.resource, agent.id) : [];
  record(tx, "acquired", granted, agent.id, {
    expiresAt: granted.expiresAt,
    ...(ticket !== undefined && { ticket }),
    ...(tickets.length > 0 && { tickets }),
  });
  return granted;
}

async function extend(tx: Tx, lease: LeaseRow, ttlMs: number): Promise<LeaseRow> {
  // renewedAt rises with every renewal, so "untouched since the grant" can be told even within a millisecond.
  const renewed = { ...lease, ttlMs, renewedAt: Math.max(tx.now, lease.renewedAt + 1), expiresAt: tx.now + ttlMs };
  await tx.leases.update(renewed);
  record(tx, "renewed", renewed, lease.holderId!, { expiresAt: renewed.expiresAt });
  return renewed;
}

/** Time is up: the row keeps its last holder's name, so that a late renewal is told the truth, until somebody else takes over. */
async function lapse(tx: Tx, lease: LeaseRow): Promise<LeaseRow> {
  const lapsed = { ...lease, freedAt: lease.expiresAt };
  await tx.leases.update(lapsed);
  record(tx, "lapsed", lapsed, "hub");
  return serveLine(tx, lapsed);
}

async function free(tx: Tx, lease: LeaseRow, type: string, actor: string, audit?: Parameters<Tx["append"]>[0]["audit"]): Promise<void> {
  const freed = { ...lease, holderId: null, holderName: null, freedAt: tx.now };
  await tx.leases.update(freed);
  record(tx, type, lease, actor, { heldForMs: tx.now - lease.acquiredAt }, audit);
  await serveLine(tx, freed);
}

/** Grants a free resource to the first in line whose own deadline has not passed. */
async function serveLine(tx: Tx, lease: LeaseRow): Promise<LeaseRow> {
  if (lease.lastWaiter === 0) return lease; // nobody ever waited
  const [first] = await tx.leases.waiters(lease.resource, tx.now, 1);
  if (!first) return lease;
  return grant(tx, lease, { agent: { id: first.agentId, name: first.agentName }, ttlMs: first.ttlMs, ticket: first.ticket });
}

async function queue(tx: Tx, lease: LeaseRow, agent: Caller, { ttlMs, waitMs }: { ttlMs: number; waitMs: number }): Promise<number> {
  const ticket = lease.lastWaiter + 1;
  const waiter = {
    resource: lease.resource,
    ticket,
    agentId: agent.id,
    agentName: agent.name,
    ttlMs,
    askedAt: tx.now,
    deadlineAt: tx.now + waitMs,
  };
  await tx.leases.update({ ...lease, lastWaiter: ticket });
  await tx.leases.insertWaiter(waiter);
  recordWait(tx, lease.project, "waiting", waiter);
  return ticket;
}

async function endWaits(tx: Tx, lease: LeaseRow): Promise<void> {
  for (const waiter of await tx.leases.overdueOf(lease.resource, tx.now)) {
    await tx.leases.removeWaiter(lease.resource, waiter.ticket);
    recordWait(tx, lease.project, "wait_ended", waiter);
  }
}

function record(
  tx: Tx,
  type: string,
  { project, resource, name, fence, holderId, holderName }: LeaseRow,
  actor: string,
  more: Record<string, unknown> = {},
  audit?: Parameters<Tx["append"]>[0]["audit"],
) {
  const data = { name, fence, holderId, holderName, ...more };
  tx.append({ project, topic: "leases", type, subjectId: resource, actor, data, ...(audit && { audit }) });
}

function recordWait(tx: Tx, project: string, type: string, { resource, ticket, agentId, agentName }: LeaseWaiterRow) {
  tx.append({ project, topic: "leases", type, subjectId: resource, actor: agentId, data: { ticket, agentName } });
}
