// Budgets: what a project, or all of them, may cost in a day or a month. Few rows, set by people.
import { asc, eq } from "drizzle-orm";
import type { Dialect } from "./dialect.ts";
import type { BudgetRow } from "./schema.ts";
import { everySlot, slot } from "./slots.ts";

export function budgetStore({ db, tables: { budgets }, one, all, run }: Dialect) {
  const byId = eq(budgets.id, slot("id"));
  const find = one(db.select().from(budgets).where(byId));
  const every = all(db.select().from(budgets).orderBy(asc(budgets.project), asc(budgets.period), asc(budgets.currency)).limit(slot("limit")));
  const insert = run(db.insert(budgets).values(everySlot(budgets)));
  const update = run(
    db
      .update(budgets)
      .set({
        amount: slot("amount"),
        level: slot("level"),
        levelSince: slot("levelSince"),
        updatedAt: slot("updatedAt"),
        updatedBy: slot("updatedBy"),
      })
      .where(byId),
  );
  const remove = run(db.delete(budgets).where(byId));
  return {
    find: (id: string): Promise<BudgetRow | undefined> => find({ id }),
    /** All of them, by project, period and currency. */
    list: (limit: number): Promise<BudgetRow[]> => every({ limit }),
    insert: (row: BudgetRow) => insert(row),
    update: (row: BudgetRow) => update(row),
    remove: (id: string) => remove({ id }),
  };
}
