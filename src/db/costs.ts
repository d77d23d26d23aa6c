// What runs cost, summed by hour, by day and by what it was spent on. A day has a bounded number of names, so a page over many days costs the same
// however many agents, models and runs there are.
import { and, asc, desc, eq, gte, inArray, lt, sql } from "drizzle-orm";
import type { Dialect } from "./dialect.ts";
import type { CostRow } from "./schema.ts";
import { slot } from "./slots.ts";

export type CostDimension = CostRow["dimension"];
const DIMENSIONS: readonly CostDimension[] = ["hour", "day", "machine", "agent", "harness", "model", "run"];
/** Sums of rows, in the numbers that rows have. */
export type CostFigures = Pick<
  CostRow,
  "currency" | "amount" | "estimated" | "inputTokens" | "outputTokens" | "cacheReadTokens" | "cacheWriteTokens" | "uses" | "unknown"
>;

export function costStore({ db, tables: { costSums }, one, all, now }: Dialect) {
  const { amount, estimated, inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, uses, unknown } = costSums;
  const added = {
    amount: sql`${amount} + excluded.amount`,
    estimated: sql`${estimated} + excluded.estimated`,
    inputTokens: sql`${inputTokens} + excluded.input_tokens`,
    outputTokens: sql`${outputTokens} + excluded.output_tokens`,
    cacheReadTokens: sql`${cacheReadTokens} + excluded.cache_read_tokens`,
    cacheWriteTokens: sql`${cacheWriteTokens} + excluded.cache_write_tokens`,
    uses: sql`${uses} + excluded.uses`,
    unknown: sql`${unknown} + excluded.unknown`,
  };
  const total = (column: { name: string }) => sql<number>`sum(${column})`.as(`total_${column.name}`);
  const figures = {
    currency: costSums.currency,
    amount: total(amount),
    estimated: total(estimated),
    inputTokens: total(inputTokens),
    outputTokens: total(outputTokens),
    cacheReadTokens: total(cacheReadTokens),
    cacheWriteTokens: total(cacheWriteTokens),
    uses: total(uses),
    unknown: total(unknown),
  };
  const since = and(eq(costSums.project, slot("project")), eq(costSums.dimension, slot("dimension")), gte(costSums.at, slot("since")));
  const bySlot = all(
    db
      .select({ at: costSums.at, ...figures })
      .from(costSums)
      .where(since)
      .groupBy(costSums.at, costSums.currency),
  );
  const byName = all(
    db
      .select({ name: costSums.name, ...figures })
      .from(costSums)
      .where(since)
      .groupBy(costSums.name, costSums.currency),
  );
  const names = all(
    db
      .selectDistinct({ dimension: costSums.dimension, at: costSums.at, name: costSums.name })
      .from(costSums)
      .where(
        and(
          eq(costSums.project, slot("project")),
          inArray(costSums.dimension, ["machine", "agent", "harness", "model"]),
          eq(costSums.at, slot("day")),
        ),
      ),
  );
  const first = one(
    db
      .select({ at: costSums.at })
      .from(costSums)
      .where(and(eq(costSums.project, slot("project")), eq(costSums.dimension, "day")))
      .orderBy(asc(costSums.at))
      .limit(1),
  );
  const isRun = sql`dimension = 'run'`; // as the indexes say it
  const ofDay = and(isRun, eq(costSums.at, slot("at")));
  const dearest = all(db.select().from(costSums).where(ofDay).orderBy(desc(costSums.amount)).limit(slot("limit")));
  const dearestOf = all(
    db
      .select()
      .from(costSums)
      .where(and(ofDay, eq(costSums.project, slot("project"))))
      .orderBy(desc(costSums.amount))
      .limit(slot("limit")),
  );
  return {
    /** Adds rows to what is there; rows of one call differ in their key. */
    async add(rows: readonly CostRow[]): Promise<void> {
      if (rows.length === 0) return;
      await now(
        db
          .insert(costSums)
          .values([...rows])
          .onConflictDoUpdate({ target: [costSums.project, costSums.dimension, costSums.at, costSums.name, costSums.currency], set: added })
          .returning({ at: costSums.at }),
      );
    },
    /** The names that a day has of machines, agents, programs and models: what a new name is held against. A day has a bounded number of them. */
    names: (project: string, day: number) => names({ project, day }),
    /** Sums of a project by hour or day, from one on. */
    bySlot: async (project: string, dimension: "hour" | "day", from: number) =>
      (await bySlot({ project, dimension, since: from })).map((row) => ({ at: Number(row.at), ...numbersOf(row) })),
    /** Sums of a project by name, over the days from one on. */
    byName: async (project: string, dimension: CostDimension, from: number) =>
      (await byName({ project, dimension, since: from })).map((row) => ({ name: row.name, ...numbersOf(row) })),
    /** The dearest runs of one day, of one project or of all. */
    dearestRuns: (day: number, project: string | undefined, limit: number): Promise<CostRow[]> =>
      project === undefined ? dearest({ at: day, limit }) : dearestOf({ at: day, project, limit }),
    /** The first day that a project has sums of. */
    oldest: async (project: string): Promise<number | undefined> => (await first({ project }))?.at,
    /** Removes a project's sums of before a time, at most `limit` rows. @returns how many */
    async prune(project: string, before: number, limit: number): Promise<number> {
      const old = and(eq(costSums.project, project), inArray(costSums.dimension, [...DIMENSIONS]), lt(costSums.at, before));
      const some = sql`select project, dimension, at, name, currency from cost_sums where ${old} limit ${limit}`;
      const gone = await now(db.delete(costSums).where(sql`(project, dimension, at, name, currency) in (${some})`).returning({ at: costSums.at }));
      return gone.length;
    },
  };
}

/** Sums arrive as text from PostgreSQL. */
const numbersOf = ({ currency, ...figures }: CostFigures): CostFigures => ({
  currency,
  amount: Number(figures.amount),
  estimated: Number(figures.estimated),
  inputTokens: Number(figures.inputTokens),
  outputTokens: Number(figures.outputTokens),
  cacheReadTokens: Number(figures.cacheReadTokens),
  cacheWriteTokens: Number(figures.cacheWriteTokens),
  uses: Number(figures.uses),
  unknown: Number(figures.unknown),
});
