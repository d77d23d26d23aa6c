// Budgets: what a project, or all of them together, may cost in a day or a month (UTC). People set them; the hub compares them with what was spent,
// says once per period when one is nearly or wholly used, and stops nothing: a run's own limit is its Runtime's to keep.
// Codes: budget_not_found, budget_limit, invalid_budget.
import type { BudgetRow } from "../db/schema.ts";
import type { Stores, Tx } from "../db/tx.ts";
import { HubError } from "../protocol/errors.ts";
import { BUDGETS_MAX, COST_AMOUNT_MAX } from "../protocol/limits.ts";
import { type By, raise } from "./alerts.ts";
import { byTime, type CostSum, dayOf, monthOf } from "./costs.ts";
import type { Hub } from "./hub.ts";

/** How much of a budget is used: within, near or over. */
export type BudgetLevel = BudgetRow["level"];
/** From this part of a budget on it asks for attention. */
const NEAR = 0.8;
const MILLIONTHS = 1_000_000;
const PROJECTS_PAGE = 500;
/** An ISO 4217 code. */
export const CURRENCY = /^[A-Z]{3}$/;

/** A budget with what was spent of it in the period that is going on. Money in units of its currency. */
export type BudgetUse = { budget: BudgetRow; limit: number; spent: number; unknown: number; level: BudgetLevel; since: number };

/** When the period of a budget began. */
const sinceOf = ({ period }: Pick<BudgetRow, "period">, now: number): number => (period === "day" ? dayOf(now) : monthOf(now));

/** What a budget comes to. @param sum what its projects spent since the period began */
function useOf(budget: BudgetRow, sum: CostSum, since: number): BudgetUse {
  const spent = sum.costs[budget.currency] ?? 0;
  const limit = budget.amount / MILLIONTHS;
  const level = spent >= limit ? "over" : spent >= NEAR * limit ? "near" : "within";
  return { budget, limit, spent, unknown: sum.unknown, level, since };
}

/** The budgets of some projects and, when `all` is given, those over all of them, with what was spent. @param all every project there is */
export async function uses(read: Stores, projects: readonly string[], all: readonly string[] | undefined, now: number): Promise<BudgetUse[]> {
  const budgets = (await read.budgets.list(BUDGETS_MAX)).filter(({ project }) => (project === "" ? all !== undefined : projects.includes(project)));
  return Promise.all(
    budgets.map(async (budget) => {
      const since = sinceOf(budget, now);
      const { total } = await byTime(read, budget.project === "" ? all! : [budget.project], "day", since);
      return useOf(budget, total, since);
    }),
  );
}

/** The budgets that a caller may see, with what was spent. @param project the only one it sees; null: all of them, and those over all together */
export async function usesFor({ engine: { read }, clock }: Pick<Hub, "engine" | "clock">, project: string | null): Promise<BudgetUse[]> {
  if (project !== null) return uses(read, [project], undefined, clock());
  const all = await everyProject(read);
  return uses(read, all, all, clock());
}

/** A budget as a person sets it. `project` is empty for all projects together; `amount` is in units of the currency. */
export type NewBudget = { project: string; period: BudgetRow["period"]; currency: string; amount: number };

/**
 * Sets a budget, or changes the one of the same project, period and currency.
 * @param wanted.project empty: all projects together @param wanted.amount in units of the currency
 * @throws HubError invalid_budget, budget_limit
 */
export async function set(tx: Tx, by: By, { project, period, currency, amount }: NewBudget): Promise<BudgetRow> {
  const millionths = Math.round(amount * MILLIONTHS);
  if (!(millionths > 0) || millionths > COST_AMOUNT_MAX) throw new HubError("invalid_budget", "a budget is more than nothing and at most a million");
  if (!CURRENCY.test(currency)) throw new HubError("invalid_budget", "a currency is three capital letters, such as USD");
  const all = await tx.budgets.list(BUDGETS_MAX);
  const known = all.find((one) => one.project === project && one.period === period && one.currency === currency);
  if (!known && all.length >= BUDGETS_MAX) throw new HubError("budget_limit", `there are ${BUDGETS_MAX} budgets already`);
  if (known?.amount === millionths) return known;
  const changed = { amount: millionths, level: "within" as const, levelSince: null, updatedAt: tx.now, updatedBy: by.actor };
  const row: BudgetRow = { id: tx.newId("bud"), project, period, currency, createdAt: tx.now, ...known, ...changed };
  await (known ? tx.budgets.update(row) : tx.budgets.insert(row));
  note(tx, row, "budget_set", by, { period, currency, amount: millionths, ...(known && { before: known.amount }) });
  return row;
}

/** Removes a budget. @throws HubError budget_not_found */
export async function remove(tx: Tx, by: By, id: string): Promise<BudgetRow> {
  const row = await tx.budgets.find(id);
  if (!row) throw new HubError("budget_not_found", `there is no budget ${id}`);
  await tx.budgets.remove(id);
  note(tx, row, "budget_removed", by, { period: row.period, currency: row.currency, amount: row.amount });
  return row;
}

function note(tx: Tx, { project, id }: BudgetRow, type: string, { actor, role, origin }: By, data: Record<string, unknown>): void {
  tx.append({ project, topic: "settings", type, subjectId: id, actor, data, audit: { role, origin } });
}

/** Compares every budget with what was spent, and says what has changed. @returns how many budgets changed their level */
export async function watch(hub: Hub): Promise<number> {
  const { read } = hub.engine;
  const budgets = await read.budgets.list(BUDGETS_MAX);
  if (budgets.length === 0) return 0;
  const now = hub.clock();
  const all = budgets.some(({ project }) => project === "") ? await everyProject(read) : undefined;
  const projects = budgets.map(({ project }) => project);
  let changed = 0;
  for (const use of await uses(read, projects, all, now)) {
    const { budget, level, since } = use;
    // A quiet period that begins anew is no news; only what a person should know is told.
    if (budget.level === level && (level === "within" || budget.levelSince === since)) continue;
    if (await hub.engine.write(budget.project, (tx) => tell(tx, use))) changed++;
  }
  return changed;
}

async function everyProject(read: Stores): Promise<string[]> {
  const names: string[] = [];
  for (let after = ""; ; ) {
    const page = await read.projects.page(after, PROJECTS_PAGE);
    names.push(...page.map(({ project }) => project));
    if (page.length < PROJECTS_PAGE) return names;
    after = page.at(-1)!.project;
  }
}

async function tell(tx: Tx, { budget: { id }, level, since, spent, limit }: BudgetUse): Promise<boolean> {
  const row = await tx.budgets.find(id);
  if (!row || (row.level === level && row.levelSince === since)) return false; // another hub was faster
  await tx.budgets.update({ ...row, level, levelSince: since });
  const { project, period, currency } = row;
  const data = { period, currency, level, before: row.level };
  if (level === "within") {
    tx.append({ project, topic: "settings", type: "budget_within", subjectId: id, actor: "hub", data });
    return true;
  }
  const whose = project === "" ? "of all projects" : "of this project";
  const share = level === "over" ? "is used up" : `is ${Math.floor((100 * spent) / limit)} percent used`;
  const summary = `The budget ${whose} for ${period === "day" ? "today" : "this month"} ${share}: ${spent.toFixed(2)} of ${limit.toFixed(2)} ${currency}`;
  const dedupeKey = `${id} ${new Date(since).toISOString().slice(0, 10)} ${level}`;
  await raise(tx, { project, kind: `budget_${level}`, dedupeKey, severity: "warning", summary, subject: id, data, reopens: true });
  return true;
}
