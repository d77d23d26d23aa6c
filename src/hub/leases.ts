// Leases for everybody who asks: agents acquire, wait, renew and release; operators look and take away; the loop ends what has lapsed.
// Codes: lease_held, lease_not_found, lease_superseded, lease_expired, lease_token_required.
import type { EventRow, LeaseRow } from "../db/schema.ts";
import type { Stores } from "../db/tx.ts";
import { HubError } from "../protocol/errors.ts";
import type { LeaseDetail, LeaseGranted, LeaseList, LeaseReleased, LeaseValid } from "../protocol/leases.ts";
import { LEASE_WAITERS_MAX } from "../protocol/limits.ts";
import { iso } from "../protocol/time.ts";
import type { Caller } from "./agents.ts";
import type { Hub } from "./hub.ts";
import * as rules from "./lease-rules.ts";
import { type LogWatch, type Wait, watchLog } from "./log-watch.ts";

const SWEEP_ROWS = 500;

/**
 * Acquires a lease, or extends the caller's own. With `waitMs` the caller stands in line until it is granted or `wait` ends.
 * @param wait ends the waiting; required when waitMs is above 0
 * @throws HubError lease_held with the lease, when somebody else holds it (still, after waiting)
 */
export async function acquire(hub: Hub, agent: Caller, request: rules.AcquireRequest, wait?: Wait): Promise<LeaseGranted> {
  if (!wait || request.waitMs === 0) return answer(hub, await ask(hub, agent, { ...request, waitMs: 0 }));
  const resource = rules.resourceOf(agent.project, request.name);
  let ticket: number | undefined;
  const watch = await watchLog(hub, agent.project, (event) => verdictOf(event, ticket), resource);
  try {
    const asked = await ask(hub, agent, request);
    if (asked.kind !== "waiting") return answer(hub, asked);
    ticket = asked.ticket;
    const lease = await inLine(hub, agent, asked, watch, wait);
    return answer(hub, lease ? { kind: "granted", lease, renewed: false } : { ...asked, kind: "held", waiters: 0 });
  } finally {
    watch.leave();
  }
}

const ask = (hub: Hub, agent: Caller, request: rules.AcquireRequest) => hub.engine.write(agent.project, (tx) => rules.acquire(tx, agent, request));

/** @throws HubError lease_held, shutting_down */
async function answer(hub: Hub, asked: rules.Asked): Promise<LeaseGranted> {
  if (asked.kind === "granted") return granted(hub, asked.lease, asked.renewed);
  hub.metrics.add("leases_refused");
  if (hub.stopping.aborted) throw new HubError("shutting_down", "the hub is stopping");
  throw await rules.refusal(hub.engine.read, "lease_held", (await currentHolder(hub, asked.lease)) ?? asked.lease, hub.clock());
}

/** Extends a live lease. @throws HubError lease_token_required, lease_not_found, lease_superseded, lease_expired */
export async function renew(hub: Hub, agent: Caller, name: string, fence: number | undefined, ttlMs: number): Promise<LeaseGranted> {
  const token = requireToken(fence);
  const lease = await counted(
    hub,
    hub.engine.write(agent.project, (tx) => rules.renew(tx, agent, name, token, ttlMs)),
  );
  return granted(hub, lease, true);
}

/** Gives a lease back. @throws HubError lease_token_required, lease_not_found, lease_superseded */
export async function release(hub: Hub, agent: Caller, name: string, fence: number | undefined): Promise<LeaseReleased> {
  const token = requireToken(fence);
  const lease = await counted(
    hub,
    hub.engine.write(agent.project, (tx) => rules.release(tx, agent, name, token)),
  );
  hub.metrics.add("leases_released");
  return { released: true, lease: rules.leaseOf(lease) };
}

/** Takes a lease away, with a reason for the audit log. @throws HubError lease_not_found, lease_superseded */
export async function forceRelease(hub: Hub, by: Parameters<typeof rules.forceRelease>[1], what: Parameters<typeof rules.forceRelease>[2]) {
  const lease = await hub.engine.write(what.project, (tx) => rules.forceRelease(tx, by, what));
  hub.metrics.add("leases_released");
  return { released: true as const, lease: rules.leaseOf(lease) };
}

/**
 * Whether a token is the current one of a live lease: what a guarded resource asks before it lets a writer in. Changes nothing.
 * @throws HubError lease_token_required, lease_not_found, lease_superseded, lease_expired
 */
export async function check(hub: Hub, project: string, name: string, fence: number | undefined): Promise<LeaseValid> {
  const token = requireToken(fence);
  const { read } = hub.engine;
  const [now, lease] = [hub.clock(), await read.leases.find(rules.resourceOf(project, name))];
  if (!lease || lease.holderId === null) throw new HubError("lease_not_found", `nobody holds ${project}/${name}`);
  if (lease.fence !== token) throw await rules.refusal(read, "lease_superseded", lease, now);
  if (lease.freedAt !== null || lease.expiresAt <= now) throw await rules.refusal(read, "lease_expired", lease, now);
  return { valid: true, lease: await withLine(read, lease, now) };
}

/** One lease and who stands in line. @throws HubError lease_not_found when nobody holds it and none has lapsed */
export async function find(hub: Hub, project: string, name: string): Promise<LeaseDetail> {
  const { read } = hub.engine;
  const [now, lease] = [hub.clock(), await read.leases.find(rules.resourceOf(project, name))];
  if (!lease || lease.holderId === null) throw new HubError("lease_not_found", `nobody holds ${project}/${name}`);
  const line = await read.leases.waiters(lease.resource, now, LEASE_WAITERS_MAX);
  return {
    lease: rules.stateOf(lease, now, line.length),
    waiting: line.map(({ agentId, agentName, askedAt, deadlineAt }) => ({
      agentId,
      agentName,
      waitingSince: iso(askedAt),
      deadlineAt: iso(deadlineAt),
    })),
  };
}

/** A page of a project's leases: held ones by name, or those that lapsed and were not taken over, last ended first. */
export async function list(
  hub: Hub,
  project: string,
  { state, after = "", limit }: { state: "held" | "lapsed"; after?: string | undefined; limit: number },
): Promise<LeaseList> {
  const { read } = hub.engine;
  const now = hub.clock();
  const rows = state === "held" ? await read.leases.held(project, after, limit + 1) : await read.leases.lapsed(project, limit);
  const shown = rows.slice(0, limit);
  const next = state === "held" && rows.length > limit ? shown.at(-1)!.name : undefined;
  return { leases: await Promise.all(shown.map((lease) => withLine(read, lease, now))), ...(next !== undefined && { next }) };
}

/** What one resource's log says of a moment: an event of leases, with the reason a person gave for it. */
export type LeaseMoment = Pick<EventRow, "seq" | "at" | "type" | "actor" | "data"> & { reason?: string };

/** The retained history of a resource, newest first, also of one that is free now. `next` is the `before` of the page after. */
export async function history(
  read: Stores,
  project: string,
  name: string,
  { before = Number.MAX_SAFE_INTEGER, limit }: { before?: number | undefined; limit: number },
): Promise<{ moments: LeaseMoment[]; next?: number }> {
  const rows = await read.events.about(project, rules.resourceOf(project, name), before, limit + 1);
  const moments = rows.slice(0, limit).map(async ({ seq, at, type, actor, data }): Promise<LeaseMoment> => {
    const note = type === "force_released" ? await read.audit.find(project, seq) : undefined;
    return { seq, at, type, actor, data, ...(note?.reason && { reason: note.reason }) };
  });
  return { moments: await Promise.all(moments), ...(rows.length > limit && { next: rows[limit - 1]!.seq }) };
}

/**
 * Ends every lease whose time is up and serves its line, and ends waits past their deadline. The loop calls it at `nextLapseAt`; any hub may.
 * @returns how many leases ended
 */
export async function expireLapsed(hub: Hub): Promise<number> {
  const { read, write } = hub.engine;
  let ended = 0;
  for (;;) {
    const now = hub.clock();
    const due = new Map((await read.leases.overdue(now, SWEEP_ROWS)).map((lease) => [lease.resource, lease.project]));
    for (const { resource } of await read.leases.overdueWaiters(now, SWEEP_ROWS)) {
      if (!due.has(resource)) due.set(resource, (await read.leases.find(resource))!.project);
    }
    if (due.size === 0) return ended;
    const swept = await Promise.all([...due].map(([resource, project]) => write(project, (tx) => rules.sweep(tx, resource))));
    ended += swept.filter(Boolean).length;
    if (due.size < SWEEP_ROWS) return ended;
  }
}

/** When the next lease or wait ends, in milliseconds by the hub's clock; undefined when none does. */
export async function nextLapseAt(read: Stores): Promise<number | undefined> {
  const times = [await read.leases.nextEnd(), await read.leases.nextDeadline()].filter((at) => at !== undefined);
  return times.length === 0 ? undefined : Math.min(...times);
}

/** Retention: forgets the last holders of leases that lapsed before a time; rows and fences stay for ever. @returns how many, at most `limit` */
export async function forgetLapsed(hub: Hub, before: number, limit = SWEEP_ROWS): Promise<number> {
  const old = await hub.engine.read.leases.lapsedBefore(before, limit);
  const done = await Promise.all(old.map(({ project, resource }) => hub.engine.write(project, (tx) => rules.forgetHolder(tx, resource, before))));
  return done.filter(Boolean).length;
}

type Verdict = { granted: EventRow | undefined; own: boolean };

/** What an event means for the holder of a ticket: granted (through this ticket or another request of the same agent), or the wait is over. */
function verdictOf(event: EventRow, own: number | undefined): Verdict | undefined {
  const { type, data } = event;
  if (own === undefined) return undefined; // not in line yet
  if (type === "acquired" && (data["tickets"] as number[] | undefined)?.includes(own)) return { granted: event, own: data["ticket"] === own };
  return type === "wait_ended" && data["ticket"] === own ? { granted: undefined, own: true } : undefined;
}

/** Waits for the grant of one ticket. A client that hung up leaves the line and, if it was granted just then, gives the lease back. */
async function inLine(
  hub: Hub,
  agent: Caller,
  { lease, ticket }: { lease: LeaseRow; ticket: number },
  watch: LogWatch<Verdict>,
  { until, gone }: Wait,
): Promise<LeaseRow | undefined> {
  const { resource, project } = lease;
  // What was committed before the ticket was known passed the watch unseen.
  let found = (await watch.passed()) ?? (await watch.first(AbortSignal.any([until, gone])));
  if (!found && (await hub.engine.write(project, (tx) => rules.withdraw(tx, project, resource, ticket)))) return undefined;
  found ??= await watch.passed();
  const event = found?.granted;
  if (!event) return undefined;
  const fence = event.data["fence"] as number;
  if (gone.aborted && found!.own) await hub.engine.write(project, (tx) => rules.giveBack(tx, resource, agent.id, fence));
  return { ...lease, fence, holderId: agent.id, holderName: agent.name, acquiredAt: event.at, expiresAt: event.data["expiresAt"] as number };
}

async function currentHolder(hub: Hub, { resource }: LeaseRow): Promise<LeaseRow | undefined> {
  const lease = await hub.engine.read.leases.find(resource);
  return lease?.holderId ? lease : undefined;
}

const withLine = async (read: Stores, lease: LeaseRow, now: number) =>
  rules.stateOf(lease, now, lease.lastWaiter === 0 ? 0 : await read.leases.countWaiters(lease.resource, now));

function granted(hub: Hub, lease: LeaseRow, renewed: boolean): LeaseGranted {
  hub.metrics.add("leases_granted");
  return { lease: rules.leaseOf(lease), renewed };
}

async function counted<T>(hub: Hub, work: Promise<T>): Promise<T> {
  return work.catch((error) => {
    if (error instanceof HubError && error.code.startsWith("lease_")) hub.metrics.add("leases_refused");
    throw error;
  });
}

function requireToken(fence: number | undefined): number {
  if (fence === undefined) throw new HubError("lease_token_required", "fencingToken is required");
  return fence;
}
