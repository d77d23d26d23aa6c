// What the store knows about itself: its generation, how often it was restored, and from where fences go on. Written when a store is opened or restored.
import { eq, isNull, sql } from "drizzle-orm";
import { HOUR_MS } from "../protocol/time.ts";
import type { Dialect } from "./dialect.ts";
import { slot } from "./slots.ts";
import type { Tx } from "./tx.ts";

/** The meta row that names the generation. */
export const GENERATION_KEY = "generation";
const KEYS = {
  generation: GENERATION_KEY,
  createdAt: "created_at",
  restores: "restores",
  restoredAt: "restored_at",
  fenceFloor: "fence_floor",
} as const;
/** Each restore leaves room for this many grants, so that no fence of before can come again. */
export const FENCES_PER_RESTORE = 2 ** 32;

export function metaStore({ tables: { meta, sessions, signinLinks, leases, leaseWaiters }, db, one, run }: Dialect) {
  const find = one(
    db
      .select({ value: meta.value })
      .from(meta)
      .where(eq(meta.key, slot("key"))),
  );
  const put = run(
    db
      .insert(meta)
      .values({ key: slot("key"), value: slot("value") })
      .onConflictDoUpdate({ target: meta.key, set: { value: sql`excluded.value` } }),
  );
  const putNew = run(
    db
      .insert(meta)
      .values({ key: slot("key"), value: slot("value") })
      .onConflictDoNothing(),
  );
  const endSessions = run(
    db
      .update(sessions)
      .set({ endedAt: slot("at") })
      .where(isNull(sessions.endedAt)),
  );
  const dropLinks = run(db.delete(signinLinks));
  const dropWaiters = run(db.delete(leaseWaiters));
  const freeLeases = run(
    db
      .update(leases)
      .set({ freedAt: slot("at") })
      .where(isNull(leases.freedAt)),
  );
  const number = async (key: string) => Number((await find({ key }))?.value ?? 0);
  return {
    find: async (key: string): Promise<string | undefined> => (await find({ key }))?.value,
    put: (key: string, value: string) => put({ key, value }),
    putNew: (key: string, value: string) => putNew({ key, value }),
    /** `gen_…`: another one means that event numbers and cursors of before say nothing any more. */
    generation: async (): Promise<string | undefined> => (await find({ key: KEYS.generation }))?.value,
    /** How often the store was restored. */
    restores: () => number(KEYS.restores),
    /** Every new grant of a lease takes max(its last fence, this) + 1. */
    fenceFloor: () => number(KEYS.fenceFloor),
    endAll: async (at: number) => {
      await endSessions({ at });
      await dropLinks({});
      await dropWaiters({});
      await freeLeases({ at });
    },
  };
}

/** Gives a new store its generation; an existing one keeps its own. @returns the generation */
export async function ensureGeneration(tx: Tx): Promise<string> {
  await tx.meta.putNew(KEYS.generation, tx.newId("gen"));
  await tx.meta.putNew(KEYS.createdAt, String(tx.now));
  return (await tx.meta.generation())!;
}

/** Stands in for a number of restores that nobody knows any more: the hours since 1970 are more than any store was restored. Enough room until 2209. */
export const unknownRestores = (now: number): number => Math.floor(now / HOUR_MS);

/**
 * Makes an older copy safe to serve: a new generation (cursors of before get `reset`), a fence floor above every fence ever granted, nobody signed in,
 * no lease held and nobody waiting for one. Run it on a store that no hub serves.
 * @param above number of restores that the replaced store knew, so that two restores of the same copy differ
 */
export async function markRestored(tx: Tx, above: number): Promise<{ generation: string; fenceFloor: number }> {
  const restores = Math.max(await tx.meta.restores(), above) + 1;
  const generation = tx.newId("gen");
  await tx.meta.put(KEYS.generation, generation);
  await tx.meta.put(KEYS.restores, String(restores));
  await tx.meta.put(KEYS.restoredAt, String(tx.now));
  await tx.meta.put(KEYS.fenceFloor, String(restores * FENCES_PER_RESTORE));
  await tx.meta.endAll(tx.now);
  return { generation, fenceFloor: restores * FENCES_PER_RESTORE };
}
