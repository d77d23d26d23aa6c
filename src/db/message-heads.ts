// Messages without their texts, for lists that people read. Each page reads one index from its cursor on, newest first.
import { and, desc, eq, lt, type SQL, sql } from "drizzle-orm";
import { chunksOf, idSlots, inChunk } from "./chunks.ts";
import type { Dialect } from "./dialect.ts";
import type { MessageRow } from "./schema.ts";
import { slot } from "./slots.ts";

type Texts = "isOpen" | "content" | "contentHash" | "workflowContext" | "replyContent" | "replyHash" | "idempotencyKey";
/** Everything about a message but its texts; `size` and `replySize` are their lengths in characters. */
export type MessageHead = Omit<MessageRow, Texts> & { size: number; replySize: number | null };

/** Which messages a page is over. `received` goes by the recipient's numbers, the others by id. */
export type HeadScope =
  | { kind: "open" | "dead" | "expired" | "cancelled" | "all"; of: string }
  | { kind: "received" | "sent"; of: string }
  | { kind: "thread"; of: string; correlationId: string };
type Scope = HeadScope["kind"];
const COUNTED = ["open", "dead", "expired", "cancelled"] as const;

export function messageHeads(dialect: Dialect) {
  const { db, one, all } = dialect;
  const { messages } = dialect.tables;
  const { id, project, senderId, recipientId, recipientSeq, status, correlationId } = messages;
  const columns = {
    ...{ id, project, senderId, senderName: messages.senderName, recipientId, recipientName: messages.recipientName, recipientSeq, status },
    ...{ delivery: messages.delivery, hops: messages.hops, maxHops: messages.maxHops, correlationId, replyTo: messages.replyTo },
    ...{ workflowRunId: messages.workflowRunId, createdAt: messages.createdAt, expiresAt: messages.expiresAt, pushedAt: messages.pushedAt },
    ...{ deliveredAt: messages.deliveredAt, turnStartedAt: messages.turnStartedAt, repliedAt: messages.repliedAt, endedAt: messages.endedAt },
    ...{ cancelledAt: messages.cancelledAt, error: messages.error, dismissedAt: messages.dismissedAt },
    size: sql<number>`length(${messages.content})`,
    replySize: sql<number | null>`length(${messages.replyContent})`,
  };
  // Literals: a bound value would hide the partial indexes from SQLite's planner.
  const states = {
    open: sql`${messages.isOpen} = 1`,
    ended: sql`${messages.isOpen} = 0`,
    dead: sql`${status} = 'expired' and ${messages.dismissedAt} is null`,
    expired: sql`${status} in ('cancelled', 'expired') and ${status} = 'expired'`,
    cancelled: sql`${status} in ('cancelled', 'expired') and ${status} = 'cancelled'`,
  };
  const ofProject = eq(project, slot("of"));
  const where: Record<Scope, SQL> = {
    open: and(ofProject, states.open)!,
    dead: and(ofProject, states.dead)!,
    expired: and(ofProject, states.expired)!,
    cancelled: and(ofProject, states.cancelled)!,
    all: ofProject,
    received: eq(recipientId, slot("of")),
    sent: eq(senderId, slot("of")),
    thread: and(ofProject, eq(correlationId, slot("correlationId")))!,
  };
  const ranged = (scope: Scope, condition: SQL) => {
    const key = scope === "received" ? recipientSeq : id;
    const page = db
      .select(columns)
      .from(messages)
      .where(and(condition, lt(key, slot("before"))));
    return all(page.orderBy(desc(key)).limit(slot("limit")));
  };
  const pageOf = (scope: Scope) => {
    if (scope !== "all" && scope !== "received") return ranged(scope, where[scope]);
    const key = scope === "received" ? ("recipientSeq" as const) : ("id" as const);
    const [open, ended] = [ranged(scope, and(where[scope], states.open)!), ranged(scope, and(where[scope], states.ended)!)];
    return (slots: Record<string, unknown>) => bothRanges(open, ended, slots, (row) => row[key]);
  };
  const pages = Object.fromEntries((Object.keys(where) as Scope[]).map((scope) => [scope, pageOf(scope)])) as Record<
    Scope,
    (slots: Record<string, unknown>) => Promise<MessageHead[]>
  >;
  const byIds = all(db.select(columns).from(messages).where(inChunk(id)));
  const head = one(
    db
      .select(columns)
      .from(messages)
      .where(eq(id, slot("id"))),
  );
  return {
    ...headCounts(dialect, where),
    ...messageWork(dialect, states.open),
    /** One message without its texts. */
    head: (id: string): Promise<MessageHead | undefined> => head({ id }),
    /** Heads below a cursor, newest first. @param before a message id; for `received` a number */
    heads: (scope: HeadScope, before: string | number, limit: number): Promise<MessageHead[]> => {
      const { kind, ...slots } = scope;
      return pages[kind]({ ...slots, before, limit });
    },
    /** Heads by id, in no particular order; unknown ids are left out. */
    headsByIds: async (ids: readonly string[]): Promise<MessageHead[]> => {
      const rows: MessageHead[] = [];
      for (const chunk of chunksOf(ids)) rows.push(...(await byIds(idSlots(chunk))));
      return rows;
    },
  };
}

/**
 * One page, newest first, over open and ended messages, which lie in two ranges of their index. Open ones are read first: a message that ends between the two looks is
 * found twice, never not at all.
 */
async function bothRanges<T extends { id: string }>(
  open: (slots: Record<string, unknown>) => Promise<T[]>,
  ended: (slots: Record<string, unknown>) => Promise<T[]>,
  slots: Record<string, unknown>,
  keyOf: (row: T) => string | number,
): Promise<T[]> {
  const rows = [...(await open(slots)), ...(await ended(slots))];
  const sorted = [...new Map(rows.map((row) => [row.id, row])).values()].sort((a, b) => (keyOf(a) < keyOf(b) ? 1 : -1));
  return sorted.slice(0, slots["limit"] as number);
}

function headCounts({ db, tables: { messages }, one }: Dialect, where: Record<Scope, SQL>) {
  const counts = Object.fromEntries(
    COUNTED.map((scope) => {
      const counted = db.select({ one: sql`1` }).from(messages).where(where[scope]).limit(slot("limit")).as("counted");
      return [scope, one(db.select({ count: sql<number>`count(*)` }).from(counted))];
    }),
  ) as Record<(typeof COUNTED)[number], (slots: Record<string, unknown>) => Promise<{ count: number } | undefined>>;
  return {
    /** Messages of a project in one of these states; the count stops at `limit`. */
    countHeads: async (kind: (typeof COUNTED)[number], project: string, limit: number): Promise<number> =>
      Number((await counts[kind]({ of: project, limit }))!.count),
  };
}

/** What open messages say about agents, and how long answers take. */
function messageWork({ db, tables: { messages }, all }: Dialect, open: SQL) {
  const { id, project, senderId, senderName, recipientId, recipientSeq, createdAt, turnStartedAt, repliedAt } = messages;
  const ofProject = eq(project, slot("project"));
  const openOf = all(
    db.select({ id, senderId, recipientId, turnStartedAt }).from(messages).where(and(ofProject, open)).orderBy(desc(id)).limit(slot("limit")),
  );
  const inWork = all(
    db
      .select({ id, senderId, senderName, recipientId, recipientSeq, turnStartedAt: sql<number>`${turnStartedAt}` })
      .from(messages)
      .where(and(ofProject, sql`${messages.status} = 'delivered' and ${turnStartedAt} is not null`))
      .limit(slot("limit")),
  );
  const recent = (isOpen: SQL) =>
    all(db.select({ id, createdAt, turnStartedAt, repliedAt }).from(messages).where(and(ofProject, isOpen)).orderBy(desc(id)).limit(slot("limit")));
  const [recentOpen, recentEnded] = [recent(open), recent(sql`${messages.isOpen} = 0`)];
  return {
    /** Who waits for whom: the newest open messages of a project. */
    openParties: (project: string, limit: number) => openOf({ project, limit }),
    /** Open messages whose recipients have started on them. */
    inWork: (project: string, limit: number) => inWork({ project, limit }),
    /** When the newest messages of a project were stored, begun and answered. */
    recentTimes: (project: string, limit: number) => bothRanges(recentOpen, recentEnded, { project, limit }, (row) => row.id),
  };
}
