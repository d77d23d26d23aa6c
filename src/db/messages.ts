// Messages and the per-recipient counter. recipient_seq is gapless: the counter row is locked until the message that took the number is committed.
import { and, asc, desc, eq, gt, isNull, lt, lte, sql } from "drizzle-orm";
import { chunksOf, idSlots, inChunk, timeOfChunk, timeSlots } from "./chunks.ts";
import type { Dialect } from "./dialect.ts";
import { messageHeads } from "./message-heads.ts";
import type { MessageRow } from "./schema.ts";
import { everySlot, slot } from "./slots.ts";

export function messageStore(dialect: Dialect) {
  return { ...oneMessage(dialect), ...manyMessages(dialect), ...messagePages(dialect), ...messageHeads(dialect) };
}

// A literal: a bound value would hide the partial index from SQLite's planner.
const openState = ({ messages }: Dialect["tables"]) => sql`${messages.isOpen} = 1`;

/** Columns that are null until something happens to a message. */
const NULL_AT_FIRST = [
  ...(["pushedAt", "deliveredAt", "turnStartedAt", "repliedAt", "cancelledAt", "endedAt"] as const),
  ...(["replyContent", "replyHash", "error", "dismissedAt"] as const),
] as const;
/** What is known of a message when it is queued. */
export type QueuedRow = Omit<MessageRow, (typeof NULL_AT_FIRST)[number] | "status" | "isOpen">;

const slotsAtFirst = (messages: Dialect["tables"]["messages"]) => {
  const { status, isOpen, ...named } = everySlot(messages);
  return Object.fromEntries(Object.entries(named).filter(([name]) => !NULL_AT_FIRST.some((other) => other === name))) as typeof named;
};

/** One message by its id or key, its number, its changes. */
function oneMessage({ db, tables: { messages, recipientCounters, eventCounters }, one, run, locked }: Dialect) {
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
  const streamStart = one(
    db
      .select({ seq: eventCounters.lastSeq, recipientSeq: recipientCounters.lastSeq })
      .from(eventCounters)
      .leftJoin(recipientCounters, eq(recipientCounters.recipientId, slot("recipientId")))
      .where(eq(eventCounters.project, slot("project"))),
  );
  const insert = run(db.insert(messages).values(everySlot(messages)));
  const insertQueued = run(db.insert(messages).values({ ...slotsAtFirst(messages), status: "queued", isOpen: 1 }));
  const settle = run(
    db
      .update(messages)
      .set({
        status: slot("status"),
        isOpen: slot("isOpen"),
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
  const dismiss = run(
    db
      .update(messages)
      .set({ dismissedAt: slot("at") })
      .where(eq(messages.id, slot("id"))),
  );
  return {
    dismiss: (id: string, at: number) => dismiss({ id, at }),
    find: (id: string) => find({ id }),
    lock: (id: string) => lock({ id }),
    findByKey: (senderId: string, key: string) => findByKey({ senderId, key }),
    takeSeq: async (recipientId: string) => (await takeSeq({ recipientId }))!.seq,
    /**
     * Where a stream starts, in one look at the store: the newest event of the project, and the number of the recipient's newest message.
     * Messages up to that number were queued by events up to that one, and no others.
     */
    streamStart: async (project: string, recipientId: string): Promise<{ seq: number; recipientSeq: number }> => {
      const start = await streamStart({ project, recipientId });
      return { seq: start?.seq ?? 0, recipientSeq: start?.recipientSeq ?? 0 };
    },
    insert: (row: MessageRow) => insert(row),
    /** A message to which nothing has happened yet: half as many values to hand over. */
    insertQueued: (row: QueuedRow) => insertQueued(row),
    settle: (row: MessageRow) => settle(row),
  };
}

/** What sweeps and streams do to several messages at once. */
function manyMessages({ db, tables, all }: Dialect) {
  const { messages } = tables;
  const open = openState(tables);
  const idAndProject = { id: messages.id, project: messages.project };
  const due = all(
    db
      .select(idAndProject)
      .from(messages)
      .where(and(lte(messages.expiresAt, slot("at")), open))
      .orderBy(asc(messages.expiresAt))
      .limit(slot("limit")),
  );
  const ended = all(
    db
      .select(idAndProject)
      .from(messages)
      .where(lt(messages.endedAt, slot("before")))
      .orderBy(asc(messages.endedAt))
      .limit(slot("limit")),
  );
  const remove = all(
    db
      .delete(messages)
      .where(and(inChunk(messages.id), lt(messages.endedAt, slot("before"))))
      .returning({ id: messages.id }),
  );
  const pushed = all(
    db
      .update(messages)
      .set({ pushedAt: timeOfChunk(messages.id) })
      .where(and(inChunk(messages.id), isNull(messages.pushedAt)))
      .returning({ id: messages.id }),
  );
  const byIds = all(db.select().from(messages).where(inChunk(messages.id)));
  return {
    /** Open messages whose time is over, the longest overdue first. */
    due: (at: number, limit: number) => due({ at, limit }),
    /** Messages that ended before a time, the oldest first. */
    ended: (before: number, limit: number) => ended({ before, limit }),
    /** Deletes those that ended before a time; others stay. @returns how many */
    removeEnded: async (ids: readonly string[], before: number) => {
      let count = 0;
      for (const chunk of chunksOf(ids)) count += (await remove({ ...idSlots(chunk), before })).length;
      return count;
    },
    /** Notes when messages were first written to a stream. @returns the ids that had no such time */
    pushed: async (times: readonly { id: string; at: number }[]) => {
      const changed: string[] = [];
      for (const chunk of chunksOf(times)) {
        const slots = { ...idSlots(chunk.map(({ id }) => id)), ...timeSlots(chunk.map(({ at }) => at)) };
        changed.push(...(await pushed(slots)).map(({ id }) => id));
      }
      return changed;
    },
    /** In no particular order; unknown ids are left out. */
    byIds: async (ids: readonly string[]) => {
      const rows: MessageRow[] = [];
      for (const chunk of chunksOf(ids)) rows.push(...(await byIds(idSlots(chunk))));
      return rows;
    },
  };
}

/** A message's place in a list: what lists filter by, without the texts. */
export type MessageEntry = Pick<MessageRow, "id" | "recipientSeq" | "senderId" | "recipientId" | "status" | "correlationId">;

/** Keyset pages. Each reads one index from its cursor on. */
function messagePages({ db, tables, all }: Dialect) {
  const { messages } = tables;
  const open = openState(tables);
  const inbox = all(
    db
      .select()
      .from(messages)
      .where(and(eq(messages.recipientId, slot("recipientId")), gt(messages.recipientSeq, slot("after")), open))
      .orderBy(asc(messages.recipientSeq))
      .limit(slot("limit")),
  );
  const queued = all(
    db
      .select()
      .from(messages)
      .where(
        and(
          eq(messages.recipientId, slot("recipientId")),
          gt(messages.recipientSeq, slot("after")),
          lte(messages.recipientSeq, slot("upTo")),
          open,
          sql`${messages.status} = 'queued'`,
        ),
      )
      .orderBy(asc(messages.recipientSeq))
      .limit(slot("limit")),
  );
  const { id, recipientSeq, senderId, recipientId, status, correlationId, project } = messages;
  const entries = () => db.select({ id, recipientSeq, senderId, recipientId, status, correlationId }).from(messages).$dynamic();
  const box = (isOpen: 0 | 1) => and(eq(recipientId, slot("of")), eq(messages.isOpen, isOpen));
  const sent = eq(senderId, slot("of"));
  const thread = and(eq(project, slot("of")), eq(correlationId, slot("correlationId")));
  const forward = (scope: typeof sent | typeof thread, key: typeof id | typeof recipientSeq) =>
    all(
      entries()
        .where(and(scope, gt(key, slot("after"))))
        .orderBy(asc(key))
        .limit(slot("limit")),
    );
  const backward = (scope: typeof sent | typeof thread, key: typeof id | typeof recipientSeq) =>
    all(
      entries()
        .where(and(scope, lt(key, slot("after"))))
        .orderBy(desc(key))
        .limit(slot("limit")),
    );
  const pages = {
    open: { oldest: forward(box(1), recipientSeq), newest: backward(box(1), recipientSeq) },
    ended: { oldest: forward(box(0), recipientSeq), newest: backward(box(0), recipientSeq) },
    sent: { oldest: forward(sent, id), newest: backward(sent, id) },
    thread: { oldest: forward(thread, id), newest: backward(thread, id) },
  };
  type Scope =
    | { kind: "open" | "ended"; of: string; after: number }
    | { kind: "sent"; of: string; after: string }
    | { kind: "thread"; of: string; correlationId: string; after: string };
  return {
    /** Open messages of a recipient with a higher number than `after`, oldest first. */
    inbox: (recipientId: string, after: number, limit: number) => inbox({ recipientId, after, limit }),
    /** Those not yet acknowledged, numbered up to `upTo`. */
    queued: (recipientId: string, range: { after: number; upTo: number; limit: number }) => queued({ recipientId, ...range }),
    /** Entries beyond a cursor: open or ended ones of a recipient, those of a sender, or of a thread. `of` is an agent's id, or for a thread its project. */
    entries: ({ kind, ...scope }: Scope, order: "oldest" | "newest", limit: number): Promise<MessageEntry[]> =>
      pages[kind][order]({ ...scope, limit }),
  };
}
