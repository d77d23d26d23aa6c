// What the page of one message shows, as plain data: its thread, what it waits for, and which texts this session may see.
import type { MessageHead } from "../db/message-heads.ts";
import type { MessageRow } from "../db/schema.ts";
import * as agents from "../hub/agents.ts";
import * as desk from "../hub/message-desk.ts";
import { HubError } from "../protocol/errors.ts";
import { agentLink } from "./links.ts";
import { isOpen } from "./message-state.tsx";
import { harnessOf } from "./presence.tsx";
import type { Visit } from "./screen.ts";

const THREAD_SHOWN = 50;
const REPLY_CHAIN_MAX = 10;
/** Earlier requests of a recipient that are named as what a message waits for. */
export const EARLIER_SHOWN = 3;
const OPENINGS_LOOKED_AT = 200;

/** A message of the thread; `row` when this session has opened its texts. */
export type PostData = { head: MessageHead; row: MessageRow | undefined };
export type Waiting = { earlier: MessageHead[]; recipient: { word: string; at: number; href: string } | undefined };
export type MessageData = {
  head: MessageHead;
  posts: PostData[];
  moreInThread: boolean;
  /** The programs behind those who speak, by agent id. */
  harness: ReadonlyMap<string, string>;
  waiting: Waiting;
  /** Who opened the text, newest first. */
  openings: { actor: string; at: number }[];
};

/** A message the session may see. @throws HubError message_not_found, also for other projects */
export async function visibleHead({ hub, session, params }: Visit, id = params["id"] ?? ""): Promise<MessageHead> {
  const head = await hub.engine.read.messages.head(id);
  if (!head || (session.project !== null && head.project !== session.project)) throw new HubError("message_not_found", "there is no such message");
  return head;
}

/** Everything the page shows. @throws HubError message_not_found */
export async function load(visit: Visit): Promise<MessageData> {
  const { hub, session } = visit;
  const { read } = hub.engine;
  const head = await visibleHead(visit);
  const { heads, more } = await threadOf(visit, head);
  const posts = await Promise.all(
    heads.map(async (one): Promise<PostData> => {
      const isOpened = await desk.isOpenTo(read, session.id, one.project, one.id);
      return { head: one, row: isOpened ? await read.messages.find(one.id) : undefined };
    }),
  );
  const openings = (await read.events.openings(head.project, head.id, OPENINGS_LOOKED_AT)).map(({ actor, at }) => ({ actor, at }));
  return { head, posts, moreInThread: more, harness: await harnessesOf(visit, heads), waiting: await waitingOf(visit, head), openings };
}

async function harnessesOf({ hub }: Visit, heads: readonly MessageHead[]): Promise<Map<string, string>> {
  const ids = [...new Set(heads.flatMap(({ senderId, recipientId }) => [senderId, recipientId]))];
  const found = await Promise.all(ids.map((id) => (id.startsWith("agt_") ? hub.engine.read.agents.find(id) : undefined)));
  const known = new Map<string, string>();
  for (const [index, id] of ids.entries()) {
    const harness = id.startsWith("operator:") ? "operator" : id.startsWith("workflow:") ? "hub" : harnessOf(found[index]?.model ?? null);
    if (harness !== undefined) known.set(id, harness);
  }
  return known;
}

/** The conversation a message belongs to, oldest first: its thread, or what it goes back to. */
async function threadOf({ hub }: Visit, head: MessageHead): Promise<{ heads: MessageHead[]; more: boolean }> {
  const { messages } = hub.engine.read;
  if (head.correlationId !== null) {
    const newest = await messages.heads({ kind: "thread", of: head.project, correlationId: head.correlationId }, "~", THREAD_SHOWN + 1);
    const shown = newest.slice(0, THREAD_SHOWN);
    const heads = shown.some(({ id }) => id === head.id) ? shown : [...shown, head];
    return { heads: heads.reverse(), more: newest.length > THREAD_SHOWN };
  }
  const heads = [head];
  for (let back = head.replyTo; back !== null && heads.length <= REPLY_CHAIN_MAX; ) {
    const earlier = await messages.head(back);
    if (earlier?.project !== head.project || heads.some(({ id }) => id === earlier.id)) break;
    heads.push(earlier);
    back = earlier.replyTo;
  }
  return { heads: heads.reverse(), more: false };
}

/** What an open message waits for: earlier ones of its recipient, and the recipient itself. */
async function waitingOf({ hub, now }: Visit, head: MessageHead): Promise<Waiting> {
  if (!isOpen(head, now) || head.turnStartedAt !== null) return { earlier: [], recipient: undefined };
  const { read } = hub.engine;
  const [first, agent] = await Promise.all([read.messages.inbox(head.recipientId, 0, EARLIER_SHOWN + 1), read.agents.find(head.recipientId)]);
  const ids = first.filter(({ recipientSeq }) => recipientSeq < head.recipientSeq).map(({ id }) => id);
  const earlier = (ids.length > 0 ? await read.messages.headsByIds(ids) : []).sort((a, b) => a.recipientSeq - b.recipientSeq);
  const word = agent === undefined ? "gone" : agent.retiredAt !== null ? "retired" : agents.presenceOf(hub, agent, now);
  const at = agent ? hub.presence.lastSeen(agent.id, agent.lastSeenAt) : 0;
  return { earlier, recipient: word === "online" ? undefined : { word, at, href: agentLink(head.recipientId) } };
}
