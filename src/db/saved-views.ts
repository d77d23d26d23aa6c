// Lists that somebody keeps under a name. Read by owner; an owner has few.
import { and, asc, eq, sql } from "drizzle-orm";
import type { Dialect } from "./dialect.ts";
import type { SavedViewRow } from "./schema.ts";
import { everySlot, slot } from "./slots.ts";

export function savedViewStore({ db, tables: { savedViews: views }, one, all, run, now }: Dialect) {
  const ofOwner = all(
    db
      .select()
      .from(views)
      .where(eq(views.owner, slot("owner")))
      .orderBy(asc(views.nameFolded))
      .limit(slot("limit")),
  );
  const find = one(
    db
      .select()
      .from(views)
      .where(eq(views.id, slot("id"))),
  );
  const findByName = one(
    db
      .select()
      .from(views)
      .where(and(eq(views.owner, slot("owner")), eq(views.nameFolded, slot("nameFolded")))),
  );
  const count = one(
    db
      .select({ count: sql<number>`count(*)` })
      .from(views)
      .where(eq(views.owner, slot("owner"))),
  );
  const insert = run(db.insert(views).values(everySlot(views)));
  const update = run(
    db
      .update(views)
      .set({ place: slot("place"), query: slot("query"), name: slot("name"), nameFolded: slot("nameFolded") })
      .where(eq(views.id, slot("id"))),
  );
  const remove = run(db.delete(views).where(eq(views.id, slot("id"))));
  return {
    /** By name. */
    ofOwner: (owner: string, limit: number) => ofOwner({ owner, limit }),
    find: (id: string) => find({ id }),
    findByName: (owner: string, name: string) => findByName({ owner, nameFolded: name.toLowerCase() }),
    count: async (owner: string) => Number((await count({ owner }))!.count),
    insert: (row: SavedViewRow) => insert(row),
    update: (row: SavedViewRow) => update(row),
    remove: (id: string) => remove({ id }),
    dropOfToken: (tokenId: string) => now(db.delete(views).where(eq(views.tokenId, tokenId)).returning({ id: views.id })),
  };
}
