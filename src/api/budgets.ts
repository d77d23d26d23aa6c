// Budgets over HTTP: list them with what was spent, set one, remove one. The hub tells when one is used up, and stops nothing.
import * as budgets from "../hub/budgets.ts";
import { type Budget, BudgetAnswer, BudgetParams, BudgetsAnswer, SetBudgetBody } from "../protocol/budgets.ts";
import { HubError } from "../protocol/errors.ts";
import { iso } from "../protocol/time.ts";
import { byOf, type TokenCaller } from "./credentials.ts";
import { type Route, route } from "./route.ts";

const shown = ({ budget, limit, spent, unknown, level, since }: budgets.BudgetUse): Budget => ({
  id: budget.id,
  ...(budget.project !== "" && { project: budget.project }),
  period: budget.period,
  currency: budget.currency,
  amount: limit,
  spent,
  unknown,
  level,
  since: iso(since),
  updatedAt: iso(budget.updatedAt),
  updatedBy: budget.updatedBy,
});

/** A token of one project has nothing to do with the others', nor with what they may cost together. */
const isForeign = ({ project }: TokenCaller, of: string): boolean => project !== null && project !== of;

const list = route({
  method: "GET",
  path: "/v1/budgets",
  operationId: "listBudgets",
  tag: "budgets",
  summary: "Lists the budgets with what was spent of each in the period that is going on.",
  credential: "viewer",
  answers: { 200: BudgetsAnswer },
  errors: [],
  run: async ({ hub, caller }) => ({ status: 200, body: { budgets: (await budgets.usesFor(hub, caller.project)).map(shown) } }),
});

const set = route({
  method: "POST",
  path: "/v1/budgets",
  operationId: "setBudget",
  tag: "budgets",
  summary: "Sets a budget, or changes the one of the same project, period and currency.",
  credential: "operator",
  body: SetBudgetBody,
  answers: { 200: BudgetAnswer },
  errors: ["invalid_budget", "budget_limit"],
  run: async ({ hub, caller, body, request }) => {
    const { project = "", period, currency, amount } = body;
    if (isForeign(caller, project)) throw new HubError("role_forbidden", "this token belongs to another project");
    if (project !== "" && !(await hub.engine.read.projects.find(project))) throw new HubError("invalid_budget", "there is no project of this name");
    const row = await hub.engine.write(project, (tx) =>
      budgets.set(tx, byOf(caller, request), { project, period, currency, amount: Number(amount) }),
    );
    const use = (await budgets.usesFor(hub, caller.project)).find(({ budget }) => budget.id === row.id);
    if (!use) throw new HubError("budget_not_found", "somebody removed the budget at once");
    return { status: 200, body: { budget: shown(use) } };
  },
});

const remove = route({
  method: "DELETE",
  path: "/v1/budgets/:id",
  operationId: "removeBudget",
  tag: "budgets",
  summary: "Removes a budget. Nobody is told any more when it is used up.",
  credential: "operator",
  params: BudgetParams,
  answers: { 204: null },
  errors: ["budget_not_found"],
  run: async ({ hub, caller, params, request }) => {
    const row = await hub.engine.read.budgets.find(params.id);
    if (!row || isForeign(caller, row.project)) throw new HubError("budget_not_found", `there is no budget ${params.id}`);
    await hub.engine.write(row.project, (tx) => budgets.remove(tx, byOf(caller, request), params.id));
    return { status: 204 };
  },
});

export const budgetRoutes: readonly Route[] = [list, set, remove];
