// Messages and the per-recipient counter. recipient_seq is gapless: the counter row is locked until the message that took the number is committed.
import { and, asc, eq, gt, lte, sql } from "drizzle-orm";
import type { Dialect } from "./dialect.ts";
import type { MessageRow } from "./schema.ts";
import { everySlot, slot } from "./slots.ts";

export function messageStore({ db, tables: { messages, recipientCounters }, one, all, run, locked }: Dialect) {
  const open = sql`${messages.status} in ('queued', 'delivered')`; // literals: a bound value would hide the partial indexes from SQLite's planner
  const byId = db
    .select()
    .from(messages)
    .where(eq(messages.id, slot("id")))
    .$dynamic();
  const find = one(byId);
  const lock = one(locked(byId));
  const findByKey = one(
    db
      .select()
      .from(messages)
      .where(and(eq(messages.senderId, slot("senderId")), eq(messages.idempotencyKey, slot("key")))),
  );
  const takeSeq = one(
    db
      .insert(recipientCounters)
      .values({ recipientId: slot("recipientId"), lastSeq: 1 })
      .onConflictDoUpdate({ target: recipientCounters.recipientId, set: { lastSeq: sql`${recipientCounters.lastSeq} + 1` } })
      .returning({ seq: recipientCounters.lastSeq }),
  );
  const insert = run(db.insert(messages).values(everySlot(messages)));
  const settle = run(
    db
      .update(messages)
      .set({
        status: slot("status"),
        pushedAt: slot("pushedAt"),
        deliveredAt: slot("deliveredAt"),
        turnStartedAt: slot("turnStartedAt"),
        repliedAt: slot("repliedAt"),
        cancelledAt: slot("cancelledAt"),
        endedAt: slot("endedAt"),
        replyContent: slot("replyContent"),
        replyHash: slot("replyHash"),
        error: slot("error"),
      })
      .where(eq(messages.id, slot("id"))),
  );
  const inbox = all(
    db
      .select()
      .from(messages)
      .where(and(eq(messages.recipientId, slot("recipientId")), gt(messages.recipientSeq, slot("after")), open))
      .orderBy(asc(messages.recipientSeq))
      .limit(slot("limit")),
  );
  const lockDue = all(
    locked(
      db
        .select()
        .from(messages)
        .where(and(lte(messages.expiresAt, slot("at")), open))
        .orderBy(asc(messages.expiresAt))
        .limit(slot("limit"))
        .$dynamic(),
    ),
  );
  return {
    find: (id: string) => find({ id }),
    lock: (id: string) => lock({ id }),
    findByKey: (senderId: string, key: string) => findByKey({ senderId, key }),
    takeSeq: async (recipientId: string) => (await takeSeq({ recipientId }))!.seq,
    insert: (row: MessageRow) => insert(row),
    settle: (row: MessageRow) => settle(row),
    inbox: (recipientId: string, after: number, limit: number) => inbox({ recipientId, after, limit }),
    lockDue: (at: number, limit: number) => lockDue({ at, limit }),
  };
}
