// Budgets on the wire: what a project, or all of them together, may cost in a day or a month, and how much of it is used.
import { type Static, Type } from "@sinclair/typebox";
import { oneOf, optionalText, text } from "./fields.ts";

export const BUDGET_PERIODS = ["day", "month"] as const;
export const BUDGET_LEVELS = ["within", "near", "over"] as const;

/** One budget with what was spent of it in the period that is going on. */
export const Budget = Type.Object({
  id: Type.String(),
  project: Type.Optional(Type.String({ description: "Absent: all projects together." })),
  period: oneOf(BUDGET_PERIODS, { description: "By UTC." }),
  currency: Type.String(),
  amount: Type.Number({ description: "In units of the currency." }),
  spent: Type.Number({ description: "Of it, since the period began; what has no price is not in it." }),
  unknown: Type.Integer({ description: "Uses of the period without a price." }),
  level: oneOf(BUDGET_LEVELS, { description: "near from 80 percent on, over from 100." }),
  since: Type.String({ description: "When the period began." }),
  updatedAt: Type.String(),
  updatedBy: Type.String(),
});
export type Budget = Static<typeof Budget>;

/** Body of POST /v1/budgets. */
export const SetBudgetBody = Type.Object({
  project: optionalText(128, { description: "Absent: all projects together." }),
  period: oneOf(BUDGET_PERIODS, { description: "A day or a month, by UTC.", code: "invalid_budget" }),
  currency: text(3, { description: "Three capital letters.", code: "invalid_budget", pattern: /^[A-Z]{3}$/ }),
  amount: text(14, {
    description: "In units of the currency, as a decimal text such as 40 or 12.50.",
    code: "invalid_budget",
    pattern: /^[0-9]{1,7}([.][0-9]{1,6})?$/,
  }),
});
export const BudgetAnswer = Type.Object({ budget: Budget });
export const BudgetsAnswer = Type.Object({ budgets: Type.Array(Budget) });
export const BudgetParams = Type.Object({ id: Type.String({ description: "Budget id." }) });
