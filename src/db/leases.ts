// Leases: one row per resource, never deleted, so its fence can only rise.
import { and, eq, isNotNull, lte } from "drizzle-orm";
import type { Dialect } from "./dialect.ts";
import type { LeaseRow } from "./schema.ts";
import { everySlot, slot } from "./slots.ts";

export function leaseStore({ db, tables: { leases }, one, all, run, locked }: Dialect) {
  const byResource = db
    .select()
    .from(leases)
    .where(eq(leases.resource, slot("resource")))
    .$dynamic();
  const find = one(byResource);
  const lock = one(locked(byResource));
  const insert = run(db.insert(leases).values(everySlot(leases)));
  const update = run(
    db
      .update(leases)
      .set({
        fence: slot("fence"),
        holderId: slot("holderId"),
        holderName: slot("holderName"),
        ttlMs: slot("ttlMs"),
        acquiredAt: slot("acquiredAt"),
        renewedAt: slot("renewedAt"),
        expiresAt: slot("expiresAt"),
        freedAt: slot("freedAt"),
        lastWaiter: slot("lastWaiter"),
      })
      .where(eq(leases.resource, slot("resource"))),
  );
  const lapsed = all(
    db
      .select()
      .from(leases)
      .where(and(isNotNull(leases.holderId), lte(leases.expiresAt, slot("at"))))
      .limit(slot("limit")),
  );
  return {
    find: (resource: string) => find({ resource }),
    lock: (resource: string) => lock({ resource }),
    insert: (row: LeaseRow) => insert(row),
    update: (row: LeaseRow) => update(row),
    lapsed: (at: number, limit: number) => lapsed({ at, limit }),
  };
}
