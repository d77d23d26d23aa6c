// The log of incoming deliveries, newest first: of a project, of one outcome in it, or of one definition.
import { and, desc, eq, gte, lt, lte, or, sql } from "drizzle-orm";
import type { Dialect } from "./dialect.ts";
import type { ArrivalRow } from "./schema.ts";
import { slot } from "./slots.ts";

/** Which part of the log: of a definition, else of a project, all of it or one outcome. */
export type ArrivalsOf = { project: string; outcome?: ArrivalRow["outcome"] | undefined } | { definitionId: string };
export type ArrivalCursor = { at: number; id: string };
const FIRST_PAGE: ArrivalCursor = { at: Number.MAX_SAFE_INTEGER, id: "~" };

export function webhookArrivalStore({ db, tables: { webhookArrivals: arrivals }, all, now }: Dialect) {
  const older = and(lte(arrivals.at, slot("at")), or(lt(arrivals.at, slot("at")), lt(arrivals.id, slot("id"))));
  const page = (which: typeof older) =>
    all(db.select().from(arrivals).where(and(which, older)).orderBy(desc(arrivals.at), desc(arrivals.id)).limit(slot("limit")));
  const ofProject = page(eq(arrivals.project, slot("project")));
  const ofOutcome = page(and(eq(arrivals.project, slot("project")), eq(arrivals.outcome, slot("outcome"))));
  const ofDefinition = page(eq(arrivals.definitionId, slot("definitionId")));
  const recent = db
    .select({ outcome: arrivals.outcome, count: arrivals.count })
    .from(arrivals)
    .where(and(eq(arrivals.definitionId, slot("definitionId")), gte(arrivals.at, slot("since"))))
    .orderBy(desc(arrivals.at))
    .limit(slot("limit"))
    .as("recent");
  const counts = all(
    db
      .select({ outcome: recent.outcome, count: sql<number>`sum(count)`.as("total") })
      .from(recent)
      .groupBy(recent.outcome),
  );
  return {
    /** Adds rows; one whose `fold` is there already raises its count and becomes the newest of its kind. */
    async add(rows: readonly ArrivalRow[]): Promise<void> {
      if (rows.length === 0) return;
      const newest = (name: string) => sql.join([sql`excluded.`, sql.identifier(name)]);
      await now(
        db
          .insert(arrivals)
          .values([...rows])
          .onConflictDoUpdate({
            target: arrivals.fold,
            set: {
              count: sql`${arrivals.count} + excluded.count`,
              at: newest("at"),
              reason: newest("reason"),
              deliveryId: newest("delivery_id"),
              event: newest("event"),
              sender: newest("sender"),
              program: newest("program"),
            },
          })
          .returning({ id: arrivals.id }),
      );
    },
    /** A page, newest first. */
    page: (of: ArrivalsOf, limit: number, after: ArrivalCursor = FIRST_PAGE): Promise<ArrivalRow[]> => {
      if ("definitionId" in of) return ofDefinition({ definitionId: of.definitionId, limit, ...after });
      return of.outcome === undefined
        ? ofProject({ project: of.project, limit, ...after })
        : ofOutcome({ project: of.project, outcome: of.outcome, limit, ...after });
    },
    /** How many came to a definition since a time, by what was made of them; of the newest `limit` rows. */
    counts: async (definitionId: string, since: number, limit: number): Promise<Map<ArrivalRow["outcome"], number>> =>
      new Map((await counts({ definitionId, since, limit })).map(({ outcome, count }) => [outcome, Number(count)])),
  };
}
