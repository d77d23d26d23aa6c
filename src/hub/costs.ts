// What runs cost: summed by hour, by day and by what it went to, in the write that takes the report. A page reads sums, never runs or events, so it
// costs the same however much is stored. What has no price is counted as unknown, never as nothing.
import type { CostDimension, CostFigures } from "../db/costs.ts";
import type { CostRow, SyncRunRow } from "../db/schema.ts";
import type { Stores, Tx } from "../db/tx.ts";
import { COST_AMOUNT_MAX, COST_NAMES_MAX, COST_TOKENS_MAX } from "../protocol/limits.ts";
import { NO_CURRENCY } from "../protocol/runs.ts";
import { DAY_MS, HOUR_MS } from "../protocol/time.ts";
import type { Used } from "./projection-usage.ts";

/** Parts of a unit of money that are counted. */
const MILLIONTHS = 1_000_000;
/** A report about an older time is counted on the day this long ago. */
const BACKDATED_MS_MAX = 35 * DAY_MS;
/** What is summed once a day has COST_NAMES_MAX names. No machine, agent, program or model is called so. */
export const OTHERS = "*";
const RUNS_LOOKED_AT = 20; // of each day
const RUNS_SHOWN = 10;
/** What cost is told by, besides time and project. */
const NAMED = ["machine", "agent", "harness", "model"] as const;
export type CostPart = (typeof NAMED)[number];

/** Sums under one name. Money by currency, in units. */
export type CostSum = {
  name: string;
  costs: Record<string, number>;
  /** The part of it that is estimated. */
  estimated: Record<string, number>;
  tokens: number;
  cacheReadTokens: number;
  /** Attempts that reported, and those of them without a price. */
  uses: number;
  unknown: number;
};

const emptyFigures = (): Omit<CostFigures, "currency"> => ({
  amount: 0,
  estimated: 0,
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  uses: 0,
  unknown: 0,
});

/** What reports of one hour by the same agent, in one currency, come to: most reports of a push share all of it. */
type Change = { at: number; agentId: string; harness: string; model: string; currency: string; figures: Omit<CostFigures, "currency"> };

/** Adds reports of one run to the sums. Part of the write that takes them: both are stored or neither is. */
export async function record(tx: Tx, run: SyncRunRow, reports: readonly Used[]): Promise<void> {
  if (reports.length === 0) return;
  const changes = new Map<string, Change>();
  for (const report of reports) {
    const at = Math.min(Math.max(Date.parse(report.at) || tx.now, tx.now - BACKDATED_MS_MAX), tx.now);
    if (report.before) count(changes, { ...report, usage: report.before }, at - (at % HOUR_MS), -1);
    count(changes, report, at - (at % HOUR_MS), 1);
  }
  const rows = new Map<string, CostRow>();
  for (const change of changes.values()) for (const [dimension, name] of placesOf(run, change)) put(rows, run.project, { dimension, name, change });
  await tx.costs.add(await bounded(tx, run.project, [...rows.values()]));
}

function count(changes: Map<string, Change>, { usage, agentId = "", harness = "", model = "" }: Used, at: number, sign: 1 | -1): void {
  const priced = usage.cost !== undefined && usage.costKind !== "unknown";
  const currency = priced ? (usage.currency ?? NO_CURRENCY) : "";
  const key = `${at}\n${currency}\n${agentId}\n${harness}\n${model}`; // none of them holds a line break
  let change = changes.get(key);
  if (!change) changes.set(key, (change = { at, agentId, harness, model, currency, figures: emptyFigures() }));
  const { figures } = change;
  const amount = priced ? sign * Math.min(Math.round(usage.cost! * MILLIONTHS), COST_AMOUNT_MAX) : 0;
  figures.amount += amount;
  if (usage.costKind === "estimated") figures.estimated += amount;
  for (const kind of ["inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens"] as const)
    figures[kind] += sign * Math.min(usage[kind] ?? 0, COST_TOKENS_MAX);
  figures.uses += sign;
  if (!priced) figures.unknown += sign;
}

const placesOf = ({ homeRuntimeId, projectId, runId }: SyncRunRow, { agentId, harness, model }: Change) =>
  [
    ["hour", ""],
    ["day", ""],
    ["machine", homeRuntimeId],
    ["agent", agentId],
    ["harness", harness],
    ["model", model],
    ["run", `${projectId}/${runId}`],
  ] as const satisfies [CostDimension, string][];

type Placed = { dimension: CostDimension; name: string; change: Change };

function put(rows: Map<string, CostRow>, project: string, { dimension, name, change }: Placed): void {
  const { currency, figures } = change;
  const at = dimension === "hour" ? change.at : dayOf(change.at);
  const key = `${dimension}\n${at}\n${currency}\n${name}`;
  const row = rows.get(key);
  rows.set(key, row ? plus(row, figures) : { project, dimension, at, name, currency, ...figures });
}

/** Names beyond what a day may have become OTHERS. */
async function bounded(tx: Tx, project: string, rows: readonly CostRow[]): Promise<CostRow[]> {
  const named = rows.filter(({ dimension }) => (NAMED as readonly string[]).includes(dimension));
  const keyOf = ({ dimension, at, name }: Pick<CostRow, "dimension" | "at" | "name">) => `${dimension} ${at} ${name}`;
  const days = [...new Set(named.map(({ at }) => at))];
  const found = (await Promise.all(days.map((day) => tx.costs.names(project, day)))).flat();
  const known = new Set(found.map(keyOf));
  const counts = new Map<string, number>();
  for (const { dimension, at } of found) counts.set(`${dimension} ${at}`, (counts.get(`${dimension} ${at}`) ?? 0) + 1);
  const result = new Map<string, CostRow>();
  for (const row of rows) {
    const day = `${row.dimension} ${row.at}`;
    const fits = !named.includes(row) || known.has(keyOf(row)) || (counts.get(day) ?? 0) < COST_NAMES_MAX;
    if (fits && named.includes(row) && !known.has(keyOf(row))) {
      known.add(keyOf(row));
      counts.set(day, (counts.get(day) ?? 0) + 1);
    }
    const placed = fits ? row : { ...row, name: OTHERS };
    const key = `${placed.dimension}\n${placed.at}\n${placed.currency}\n${placed.name}`;
    const other = result.get(key);
    result.set(key, other ? plus(other, placed) : placed);
  }
  return [...result.values()];
}

function plus(a: CostRow, b: Omit<CostFigures, "currency">): CostRow {
  const sum = { ...a };
  for (const figure of Object.keys(emptyFigures()) as (keyof ReturnType<typeof emptyFigures>)[]) sum[figure] += b[figure];
  return sum;
}

/** A sum of nothing. @param name what it is the sum of: an agent, a model, a program, a machine or a run */
export const emptySum = (name = ""): CostSum => ({ name, costs: {}, estimated: {}, tokens: 0, cacheReadTokens: 0, uses: 0, unknown: 0 });

function addTo(sum: CostSum, { currency, ...row }: CostFigures): CostSum {
  if (currency !== "") {
    sum.costs[currency] = Math.round((sum.costs[currency] ?? 0) * MILLIONTHS + row.amount) / MILLIONTHS;
    sum.estimated[currency] = Math.round((sum.estimated[currency] ?? 0) * MILLIONTHS + row.estimated) / MILLIONTHS;
  }
  sum.tokens += row.inputTokens + row.outputTokens + row.cacheReadTokens + row.cacheWriteTokens;
  sum.cacheReadTokens += row.cacheReadTokens;
  sum.uses += row.uses;
  sum.unknown += row.unknown;
  return sum;
}

/** A sum that is complete. None shows less than nothing: what an earlier day reported may be taken back on a later one. */
function settled<Sum extends CostSum>(sum: Sum): Sum {
  for (const money of [sum.costs, sum.estimated]) for (const currency of Object.keys(money)) money[currency] = Math.max(0, money[currency]!);
  for (const count of ["tokens", "cacheReadTokens", "uses", "unknown"] as const) sum[count] = Math.max(0, sum[count]);
  return sum;
}

/** The cost of a sum in the currency that has most of it; amounts in others only break ties. */
const weight = ({ costs }: CostSum): number => Math.max(0, ...Object.values(costs));
const dearestFirst = (sums: Iterable<CostSum>): CostSum[] =>
  [...sums].sort((a, b) => weight(b) - weight(a) || b.tokens - a.tokens || (a.name < b.name ? -1 : 1));

/** The sum of a time and, by when each hour or day began, its parts. */
export type CostTimes = { total: CostSum; slots: Map<number, CostSum> };

/** Sums of some projects by hour or by day. @param since the begin of an hour or day, ms */
export async function byTime(read: Stores, projects: readonly string[], of: "hour" | "day", since: number): Promise<CostTimes> {
  const times: CostTimes = { total: emptySum(), slots: new Map() };
  for (const rows of await Promise.all(projects.map((project) => read.costs.bySlot(project, of, since)))) {
    for (const row of rows) {
      addTo(times.total, row);
      times.slots.set(row.at, addTo(times.slots.get(row.at) ?? emptySum(), row));
    }
  }
  settled(times.total);
  for (const slot of times.slots.values()) settled(slot);
  return times;
}

/** Sums by what the cost went to, the dearest first. @param since the begin of a day, ms */
export async function byPart(read: Stores, projects: readonly string[], part: CostPart | "project", since: number): Promise<CostSum[]> {
  const sums = new Map<string, CostSum>();
  const add = (name: string, row: CostFigures) => sums.set(name, addTo(sums.get(name) ?? emptySum(name), row));
  await Promise.all(
    projects.map(async (project) => {
      if (part === "project") for (const row of await read.costs.bySlot(project, "day", since)) add(project, row);
      else for (const { name, ...row } of await read.costs.byName(project, part, since)) add(name, row);
    }),
  );
  return dearestFirst(sums.values().map(settled));
}

/** A run and what it cost in the time that was asked for. */
export type RunCost = CostSum & { project: string; projectId: string; runId: string };

/**
 * The dearest runs of some days: of each day its twenty dearest are looked at.
 * @param project undefined: of all projects @param since the begin of a day, ms @param now ms
 */
export async function dearestRuns(read: Stores, project: string | undefined, since: number, now: number): Promise<RunCost[]> {
  const runs = new Map<string, RunCost>();
  for (let day = since; day <= now; day += DAY_MS) {
    for (const row of await read.costs.dearestRuns(day, project, RUNS_LOOKED_AT)) {
      const [projectId = "", runId = ""] = row.name.split("/");
      const run = runs.get(row.name) ?? { ...emptySum(row.name), project: row.project, projectId, runId };
      addTo(run, row);
      runs.set(row.name, run);
    }
  }
  return (dearestFirst(runs.values().map(settled)) as RunCost[]).slice(0, RUNS_SHOWN);
}

/** When the day of a time began, in UTC. */
export const dayOf = (at: number): number => at - (at % DAY_MS);
/** When the month of a time began, in UTC. */
export const monthOf = (at: number): number => {
  const date = new Date(at);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1);
};
