// Which messages a list shows: what the address asks, and finding a page of them through the index that narrows most.
import type { HeadScope, MessageHead } from "../db/message-heads.ts";
import type { AgentRow } from "../db/schema.ts";
import { LIST_SCAN_ROWS_MAX, VIEW_ROWS_MAX } from "../protocol/limits.ts";
import { type Asked, askedOf, askedValue, projectsOf } from "./listing.ts";
import type { Visit } from "./screen.ts";

/** The tabs of the list. */
export const BOXES = ["open", "dead", "all"] as const;
export type Box = (typeof BOXES)[number];
/** What the filter bar understands. */
export const QUALIFIERS = ["from", "to", "status", "thread", "mode"];
/** Words that `status:` takes. */
export const STATUS_WORDS = ["open", "queued", "delivered", "replied", "cancelled", "expired", "dead"] as const;

export type MessageQuery = { box: Box; asked: Asked };
/** The box of an address that names none: a status is looked for in all of them. */
export const usualBox = (asked: Asked): Box => (askedValue(asked, "status") === undefined ? "open" : "all");
export function queryOf(url: URL): MessageQuery {
  const asked = askedOf(url, QUALIFIERS);
  return { box: BOXES.find((box) => box === url.searchParams.get("box")) ?? usualBox(asked), asked };
}

export type FoundHeads = {
  heads: MessageHead[];
  /** Id that the next page begins below; undefined on the last page. */
  next: string | undefined;
  /** How many messages were looked at, when the list stopped looking before its page was full. */
  lookedAt: number | undefined;
};

const ABOVE_ALL = "~";
/** Rows of one look when a filter throws some away. */
const LOOK_ROWS = 250;
const MESSAGE_ID = /^msg_[0-9a-f]{32}$/;

/** A page of what an address asks for, newest first. At most LIST_SCAN_ROWS_MAX messages of each project are looked at. */
export async function findHeads(visit: Visit, query: MessageQuery, limit: number = VIEW_ROWS_MAX): Promise<FoundHeads> {
  const after = visit.url.searchParams.get("after") ?? "";
  const before = MESSAGE_ID.test(after) ? after : ABOVE_ALL;
  const found = await Promise.all(projectsOf(visit).map((project) => findInProject(visit, project, query, before, limit)));
  // What lies below the place where one project stopped looking may be missing there, so the page ends at the highest of them.
  const floor =
    found
      .flatMap(({ stoppedAt }) => stoppedAt ?? [])
      .sort()
      .at(-1) ?? "";
  const merged = found.flatMap(({ heads }) => heads).sort((a, b) => (a.id < b.id ? 1 : -1));
  const complete = merged.filter(({ id }) => id >= floor);
  const heads = complete.slice(0, limit);
  const isFull = complete.length > limit;
  const next = isFull ? heads.at(-1)!.id : floor || undefined;
  return { heads, next, lookedAt: !isFull && floor ? found.reduce((sum, { looked }) => sum + looked, 0) : undefined };
}

type Found = { heads: MessageHead[]; looked: number; stoppedAt: string | undefined };

async function findInProject({ hub }: Visit, project: string, query: MessageQuery, before: string, limit: number): Promise<Found> {
  const { messages, agents } = hub.engine.read;
  const named = (name: string | undefined) => (name === undefined ? undefined : agentNamed(agents, project, name));
  const [from, to] = await Promise.all([named(askedValue(query.asked, "from")), named(askedValue(query.asked, "to"))]);
  const scope = scopeOf(project, query, { from, to });
  const fits = fitsOf(project, query);
  const whole = isWhole(scope, query);
  const heads: MessageHead[] = [];
  let looked = 0;
  for (let cursor: string | number = scope.kind === "received" ? await numberBelow(messages, scope.of, before) : before; ; ) {
    const size = whole ? limit + 1 : LOOK_ROWS;
    const rows = await messages.heads(scope, cursor, size);
    for (const head of rows) {
      looked++;
      if (head.id < before && fits(head)) heads.push(head);
      if (heads.length > limit) return { heads, looked, stoppedAt: undefined };
    }
    const last = rows.at(-1);
    if (rows.length < size || !last) return { heads, looked, stoppedAt: undefined };
    if (looked >= LIST_SCAN_ROWS_MAX) return { heads, looked, stoppedAt: last.id };
    cursor = scope.kind === "received" ? last.recipientSeq : last.id;
  }
}

type Agents = { find(id: string): Promise<AgentRow | undefined>; findByName(project: string, name: string): Promise<AgentRow | undefined> };
async function agentNamed(agents: Agents, project: string, name: string): Promise<AgentRow | undefined> {
  const byId = name.startsWith("agt_") ? await agents.find(name) : undefined;
  return byId?.project === project ? byId : agents.findByName(project, name);
}

/** The index to read: a thread, a sender or a recipient narrows more than a state. */
function scopeOf(project: string, { box, asked }: MessageQuery, { from, to }: { from: AgentRow | undefined; to: AgentRow | undefined }): HeadScope {
  const thread = askedValue(asked, "thread");
  if (thread !== undefined) return { kind: "thread", of: project, correlationId: thread };
  const status = askedValue(asked, "status");
  if (box === "dead" || status === "dead") return { kind: "dead", of: project };
  if (status === "expired" || status === "cancelled") return { kind: status, of: project };
  if (box === "open" || status === "open" || status === "queued" || status === "delivered") return { kind: "open", of: project };
  if (from) return { kind: "sent", of: from.id };
  return to ? { kind: "received", of: to.id } : { kind: "all", of: project };
}

/** Whether every row of the scope fits, so that one look gives the page. */
const isWhole = ({ kind }: HeadScope, { box, asked }: MessageQuery): boolean => asked.qualifiers.length === 0 && asked.words === "" && kind === box;

/** The number of a recipient below which its messages are older than an id: what a page of one recipient begins with. */
async function numberBelow(messages: { head(id: string): Promise<MessageHead | undefined> }, recipientId: string, before: string): Promise<number> {
  const head = before === ABOVE_ALL ? undefined : await messages.head(before);
  return head?.recipientId === recipientId ? head.recipientSeq : Number.MAX_SAFE_INTEGER;
}

function fitsOf(project: string, { box, asked }: MessageQuery): (head: MessageHead) => boolean {
  const [from, to, mode] = ["from", "to", "mode"].map((key) => askedValue(asked, key)?.toLowerCase());
  const [status, thread] = [askedValue(asked, "status"), askedValue(asked, "thread")];
  const words = asked.words.toLowerCase();
  const isParty = (asked: string | undefined, id: string, name: string) => asked === undefined || id === asked || name.toLowerCase() === asked;
  return (head) =>
    head.project === project &&
    isInState(head, box === "all" ? undefined : box) &&
    isInState(head, status) &&
    isParty(from, head.senderId, head.senderName) &&
    isParty(to, head.recipientId, head.recipientName) &&
    (thread === undefined || head.correlationId === thread) &&
    (mode === undefined || head.delivery.toLowerCase() === mode) &&
    (words === "" || [head.id, head.senderName, head.recipientName, head.correlationId ?? ""].some((text) => text.toLowerCase().includes(words)));
}

function isInState({ status, dismissedAt }: MessageHead, word: string | undefined): boolean {
  if (word === undefined) return true;
  if (word === "open") return status === "queued" || status === "delivered";
  return word === "dead" ? status === "expired" && dismissedAt === null : status === word;
}
