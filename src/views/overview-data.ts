// What the overview shows, as plain data: what needs a person, what runs, who is there, what just happened. Bounded, whatever is stored.
import type { MessageHead } from "../db/message-heads.ts";
import type { AlertRow, LeaseRow, SyncConflictRow } from "../db/schema.ts";
import * as activity from "../hub/activity.ts";
import * as approvals from "../hub/approvals.ts";
import * as costs from "../hub/costs.ts";
import { unheardOf } from "../hub/presence.ts";
import * as runList from "../hub/run-list.ts";
import { COUNT_EXACT_MAX } from "../protocol/limits.ts";
import { HOUR_MS } from "../protocol/time.ts";
import type { AskedApproval } from "./approval-item.tsx";
import { withMachine } from "./approvals.tsx";
import { foldedHappenings, namesIn } from "./happenings.tsx";
import { countOver, projectsOf, withHubItself } from "./listing.ts";
import { type Machine, machinesOf } from "./overview-fleet.tsx";
import type { Visit } from "./screen.ts";
import type { FeedItem } from "./ui/feed.tsx";

const APPROVALS_SHOWN = 4;
const ITEMS_SHOWN = 3; // of each other kind
const DEAD_LOOKED_AT = 50;
const ALERTS_LOOKED_AT = 50;
const RUNNING_SHOWN = 6;
const FEED_SHOWN = 12;
const FEED_EVENTS = 120;
const TIMES_LOOKED_AT = 200;
const HOURS = 24;
const ABOVE_ALL = "~";
/** A lease this near to its end, in milliseconds and of its whole time, is about to run out. */
const LAPSING_MS = 60_000;
const LAPSING_SHARE = 0.2;
const LAPSING_LOOKED_AT = 200;

/** Requests to one agent that expired without a reply. */
export type DeadGroup = { recipientId: string; recipientName: string; project: string; heads: MessageHead[] };
export type Lapsing = { lease: LeaseRow; waiters: number };
/** A number of things, and since when the oldest of them waits. */
export type Needs = {
  approvals: AskedApproval[];
  uncertain: Extract<runList.ListedRun, { kind: "runtime" }>[];
  conflicts: SyncConflictRow[];
  alerts: AlertRow[];
  dead: DeadGroup[];
  lapsing: Lapsing[];
  counts: { approvals: number; uncertain: number; conflicts: number; alerts: number; dead: number; lapsing: number };
  oldestAt: number | undefined;
};
export type Strip = {
  messages: number[];
  /** Milliseconds from being stored to the start of a turn, of the newest messages: the middle one, and the 99th of 100. */
  toTurn: { p50: number; p99: number } | undefined;
  replies: number[];
  expired: number;
  runs: { values: number[]; completed: number; failed: number; cancelled: number };
};
/** What was spent: by hour over the last day, in the currency that has most of it, and since midnight UTC. */
export type Spent = { today: costs.CostSum; day: costs.CostSum; currency: string; hours: number[] };
export type OverviewData = {
  /** Nothing was ever registered or run here. */
  isNew: boolean;
  /** `unknown`: nobody can say yet, because the hub itself was away. */
  agents: { answering: number; total: number; unknown: number };
  moving: number;
  needs: Needs;
  strip: Strip;
  machines: Machine[];
  running: runList.ListedRun[];
  feed: FeedItem[];
  spent: Spent;
};

export async function load(visit: Visit): Promise<OverviewData> {
  const { hub } = visit;
  const { read } = hub.engine;
  const projects = projectsOf(visit);
  const [total, online, moving, needs, strip, { machines, silent, unknown }, running, feed, spent] = await Promise.all([
    countOver(projects, (project) => read.agents.count(project, COUNT_EXACT_MAX + 1)),
    countOver(projects, (project) => read.projects.countOnline(project)),
    runList.count(hub, projects, "moving"),
    needsOf(visit, projects),
    stripOf(visit, projects),
    machinesOf(visit, projects),
    runList.list(hub, projects, { view: "moving" }, { after: undefined, limit: RUNNING_SHOWN }),
    feedOf(visit, projects),
    spentOf(visit, projects),
  ]);
  const isNew = total === 0 && moving === 0 && machines.length === 0 && feed.length === 0;
  return {
    isNew,
    agents: { answering: online - silent - unknown, total, unknown: unknown + unheardOf(hub, projects, visit.now) },
    moving,
    needs,
    strip,
    machines,
    running: running.runs,
    feed,
    spent,
  };
}

async function spentOf({ hub, now }: Visit, projects: readonly string[]): Promise<Spent> {
  const { read } = hub.engine;
  const first = Math.floor(now / HOUR_MS) * HOUR_MS - (HOURS - 1) * HOUR_MS;
  const [{ total: day, slots }, { total: today }] = await Promise.all([
    costs.byTime(read, projects, "hour", first),
    costs.byTime(read, projects, "day", costs.dayOf(now)),
  ]);
  const [currency = ""] = Object.entries(day.costs).sort((a, b) => b[1] - a[1])[0] ?? [];
  return { today, day, currency, hours: Array.from({ length: HOURS }, (_, hour) => slots.get(first + hour * HOUR_MS)?.costs[currency] ?? 0) };
}

/** Merges what each project has and keeps the first few. */
async function firstOf<Row>(
  projects: readonly string[],
  find: (project: string) => Promise<Row[]>,
  before: (a: Row, b: Row) => number,
  limit: number,
) {
  return (await Promise.all(projects.map(find))).flat().sort(before).slice(0, limit);
}

async function needsOf(visit: Visit, projects: readonly string[]): Promise<Needs> {
  const { hub } = visit;
  const { read } = hub.engine;
  const newest = (a: { id: string }, b: { id: string }) => (a.id < b.id ? 1 : -1);
  const pending = (project: string) => approvals.list(read, project, { status: "pending", limit: APPROVALS_SHOWN });
  const uncertain = { view: "waiting", kind: "runtime", status: "blocked_uncertain" } as const;
  const [asked, unsure, conflicts, alerts, dead, lapsing] = await Promise.all([
    firstOf(
      projects,
      async (project) => (await pending(project)).approvals,
      (a, b) => a.requestedAt.localeCompare(b.requestedAt),
      APPROVALS_SHOWN,
    ),
    runList.list(hub, projects, uncertain, { after: undefined, limit: ITEMS_SHOWN }),
    firstOf(projects, (project) => read.conflicts.openPage(project, ABOVE_ALL, ITEMS_SHOWN), newest, ITEMS_SHOWN),
    firstOf(withHubItself(visit, projects), (project) => read.alerts.openPage(project, ABOVE_ALL, ALERTS_LOOKED_AT), newest, ALERTS_LOOKED_AT),
    firstOf(projects, (project) => read.messages.heads({ kind: "dead", of: project }, ABOVE_ALL, DEAD_LOOKED_AT), newest, DEAD_LOOKED_AT),
    lapsingOf(visit, projects),
  ]);
  const count = (of: (project: string, limit: number) => Promise<number>) => countOver(projects, (project) => of(project, COUNT_EXACT_MAX + 1));
  const ownAlerts = alerts.filter(({ kind }) => kind !== "sync_conflict"); // each of those is a conflict above
  const counts = {
    approvals: await count(read.approvals.countPending),
    uncertain: await count((project, limit) => read.sync.countRunsOfStatus(project, "blocked_uncertain", limit)),
    conflicts: await count(read.conflicts.countOpen),
    alerts: ownAlerts.length,
    dead: await count((project, limit) => read.messages.countHeads("dead", project, limit)),
    lapsing: lapsing.length,
  };
  const uncertainRuns = unsure.runs.filter((one) => one.kind === "runtime");
  const times = [
    ...asked.map(({ requestedAt }) => Date.parse(requestedAt)),
    ...uncertainRuns.map(({ at }) => at),
    ...conflicts.map(({ firstAt }) => firstAt),
    ...ownAlerts.map(({ raisedAt }) => raisedAt),
    ...dead.map(({ endedAt, expiresAt }) => endedAt ?? expiresAt),
  ];
  return {
    approvals: await Promise.all(asked.map((approval) => withMachine(visit, approval))),
    uncertain: uncertainRuns,
    conflicts,
    alerts: ownAlerts.slice(0, ITEMS_SHOWN),
    dead: groupsOf(dead).slice(0, ITEMS_SHOWN),
    lapsing: lapsing.slice(0, ITEMS_SHOWN),
    counts,
    oldestAt: times.length === 0 ? undefined : Math.min(...times),
  };
}

const groupsOf = (heads: readonly MessageHead[]): DeadGroup[] =>
  [...Map.groupBy(heads, ({ recipientId }) => recipientId).values()].map((group) => {
    const { recipientId, recipientName, project } = group[0]!;
    return { recipientId, recipientName, project, heads: group };
  });

/** Held leases whose time is nearly over. Those that nobody waits for are their holder's own business. */
async function lapsingOf({ hub, now }: Visit, projects: readonly string[]): Promise<Lapsing[]> {
  const { leases } = hub.engine.read;
  const near = (await leases.overdue(now + LAPSING_MS, LAPSING_LOOKED_AT)).filter(
    ({ project, expiresAt, ttlMs, lastWaiter }) =>
      projects.includes(project) && expiresAt > now && expiresAt - now <= ttlMs * LAPSING_SHARE && lastWaiter > 0,
  );
  const found = await Promise.all(near.map(async (lease) => ({ lease, waiters: await leases.countWaiters(lease.resource, now) })));
  return found.filter(({ waiters }) => waiters > 0);
}

async function stripOf({ hub, now }: Visit, projects: readonly string[]): Promise<Strip> {
  const { read } = hub.engine;
  const over = (type: string) => activity.byHour(read, projects, { topic: "messages", type }, { hours: HOURS, now });
  const since = (Math.floor(now / HOUR_MS) - HOURS + 1) * HOUR_MS;
  const [messages, replies, expired, times, ended] = await Promise.all([
    over("queued"),
    over("replied"),
    over("expired"),
    Promise.all(projects.map((project) => read.messages.recentTimes(project, Math.ceil(TIMES_LOOKED_AT / projects.length)))),
    Promise.all(projects.map((project) => read.sync.endedByHour(project, since))),
  ]);
  const runs = { values: Array.from({ length: HOURS }, () => 0), completed: 0, failed: 0, cancelled: 0 };
  for (const { hour, status, count } of ended.flat()) {
    const index = hour - since / HOUR_MS;
    if (index >= 0 && index < HOURS) runs.values[index]! += count;
    if (status === "completed" || status === "failed" || status === "cancelled") runs[status] += count;
  }
  const toTurn = times.flat().flatMap(({ createdAt, turnStartedAt }) => (turnStartedAt === null ? [] : [turnStartedAt - createdAt]));
  return { messages, replies, expired: sum(expired), runs, toTurn: percentilesOf(toTurn) };
}

export const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);
function percentilesOf(values: readonly number[]): { p50: number; p99: number } | undefined {
  if (values.length === 0) return undefined;
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!;
  return { p50: at(0.5), p99: at(0.99) };
}

async function feedOf(visit: Visit, projects: readonly string[]): Promise<FeedItem[]> {
  const { events } = visit.hub.engine.read;
  const each = Math.max(FEED_SHOWN, Math.ceil(FEED_EVENTS / projects.length));
  const newest = await firstOf(
    projects,
    (project) => events.newest(project, Number.MAX_SAFE_INTEGER, each),
    (a, b) => b.at - a.at || b.seq - a.seq,
    FEED_EVENTS,
  );
  const named = await namesIn(visit, newest);
  return foldedHappenings(newest, { named, project: visit.project }, { now: visit.now, limit: FEED_SHOWN });
}
