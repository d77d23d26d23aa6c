// Sign-in links: kept by the hash of a secret that was shown once, taken out by whoever uses them.
import { eq, isNull, sql } from "drizzle-orm";
import type { Dialect } from "./dialect.ts";
import type { SigninLinkRow } from "./schema.ts";
import { everySlot, slot } from "./slots.ts";

export function signinLinkStore({ db, tables: { signinLinks }, one, run, now }: Dialect) {
  const insert = run(db.insert(signinLinks).values(everySlot(signinLinks)));
  const take = one(
    db
      .delete(signinLinks)
      .where(eq(signinLinks.tokenHash, slot("tokenHash")))
      .returning(),
  );
  return {
    insert: (row: SigninLinkRow) => insert(row),
    /** The link, removed: whoever takes it is the only one who ever had it. */
    take: (tokenHash: string) => take({ tokenHash }),
    dropOfToken: (tokenId: string) => now(db.delete(signinLinks).where(eq(signinLinks.tokenId, tokenId)).returning({ at: signinLinks.createdAt })),
    dropOfAdmin: () => now(db.delete(signinLinks).where(isNull(signinLinks.tokenId)).returning({ at: signinLinks.createdAt })),
    /** Deletes links whose time is over; returns how many, at most `limit`. */
    async purge(before: number, limit: number) {
      const old = sql`token_hash in (select token_hash from signin_links where expires_at <= ${before} limit ${limit})`;
      return (await now(db.delete(signinLinks).where(old).returning({ at: signinLinks.createdAt }))).length;
    },
  };
}
