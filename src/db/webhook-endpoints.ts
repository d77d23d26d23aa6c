// Endpoints of outgoing webhooks and the log of their deliveries.
import { and, asc, desc, eq, gte, isNull, lt, lte, sql } from "drizzle-orm";
import type { Dialect } from "./dialect.ts";
import type { DeliveryRow, WebhookRow } from "./schema.ts";
import { everySlot, slot } from "./slots.ts";

export function webhookEndpointStore({
  db,
  tables: { webhooksOut: endpoints, webhookDeliveries: deliveries },
  one,
  all,
  run,
  locked,
  insertAll,
}: Dialect) {
  const byId = db
    .select()
    .from(endpoints)
    .where(eq(endpoints.id, slot("id")))
    .$dynamic();
  const find = one(byId);
  const lock = one(locked(byId));
  const ofProject = all(
    db
      .select()
      .from(endpoints)
      .where(eq(endpoints.project, slot("project")))
      .orderBy(asc(endpoints.id))
      .limit(slot("limit")),
  );
  const active = all(db.select().from(endpoints).where(isNull(endpoints.disabledAt)).orderBy(asc(endpoints.id)).limit(slot("limit")));
  const insert = run(db.insert(endpoints).values(everySlot(endpoints)));
  const update = run(
    db
      .update(endpoints)
      .set({ secrets: slot("secrets"), lastSeq: slot("lastSeq"), disabledAt: slot("disabledAt"), disabledReason: slot("disabledReason") })
      .where(eq(endpoints.id, slot("id"))),
  );
  const remove = run(db.delete(endpoints).where(eq(endpoints.id, slot("id"))));
  const removeDeliveries = run(db.delete(deliveries).where(eq(deliveries.webhookId, slot("id"))));
  const deliveryById = db
    .select()
    .from(deliveries)
    .where(eq(deliveries.id, slot("id")))
    .$dynamic();
  const findDelivery = one(deliveryById);
  const lockDelivery = one(locked(deliveryById));
  const log = all(
    db
      .select()
      .from(deliveries)
      .where(and(eq(deliveries.webhookId, slot("webhookId")), lt(deliveries.id, slot("before"))))
      .orderBy(desc(deliveries.id))
      .limit(slot("limit")),
  );
  const newest = db
    .select({ state: deliveries.state, createdAt: deliveries.createdAt })
    .from(deliveries)
    .where(eq(deliveries.webhookId, slot("webhookId")))
    .orderBy(desc(deliveries.id))
    .limit(slot("limit"))
    .as("newest");
  const counts = all(
    db
      .select({ state: newest.state, count: sql<number>`count(*)`.as("total") })
      .from(newest)
      .where(gte(newest.createdAt, slot("since")))
      .groupBy(newest.state),
  );
  const due = all(
    db
      .select()
      .from(deliveries)
      .where(and(lte(deliveries.nextAt, slot("at")), sql`state = 'pending'`))
      .orderBy(asc(deliveries.nextAt))
      .limit(slot("limit")),
  );
  const updateDelivery = run(
    db
      .update(deliveries)
      .set({ state: slot("state"), attempts: slot("attempts"), nextAt: slot("nextAt"), finishedAt: slot("finishedAt") })
      .where(eq(deliveries.id, slot("id"))),
  );
  return {
    find: (id: string) => find({ id }),
    lock: (id: string) => lock({ id }),
    ofProject: (project: string, limit: number) => ofProject({ project, limit }),
    /** Endpoints that are not disabled, over all projects. */
    active: (limit: number) => active({ limit }),
    insert: (row: WebhookRow) => insert(row),
    update: (row: WebhookRow) => update(row),
    /** With its log. */
    async remove(id: string) {
      await removeDeliveries({ id });
      await remove({ id });
    },
    findDelivery: (id: string) => findDelivery({ id }),
    lockDelivery: (id: string) => lockDelivery({ id }),
    /** Newest first, before an id. */
    log: (webhookId: string, before: string, limit: number) => log({ webhookId, before, limit }),
    /** How many deliveries were made since a time, by state; of the newest `limit`. */
    counts: async (webhookId: string, since: number, limit: number): Promise<Map<DeliveryRow["state"], number>> =>
      new Map((await counts({ webhookId, since, limit })).map(({ state, count }) => [state, Number(count)])),
    due: (at: number, limit: number) => due({ at, limit }),
    insertDeliveries: insertAll(deliveries),
    updateDelivery: (row: DeliveryRow) => updateDelivery(row),
  };
}
