// Everything of one agent, newest first: what it was asked, what it asked, what it did, its comings and goings. Four indexes, read from four places on.
/** @jsxImportSource #jsx */
import type { MessageHead } from "../db/message-heads.ts";
import type { AgentRow, EventRow } from "../db/schema.ts";
import { DAY_MS } from "../protocol/time.ts";
import { happening, namesIn } from "./happenings.tsx";
import type { Child } from "./jsx/jsx-runtime.ts";
import { agentLink, messageLink } from "./links.ts";
import { stateOfMessage } from "./message-state.tsx";
import type { Visit } from "./screen.ts";
import type { FeedItem } from "./ui/feed.tsx";
import { Ref } from "./ui/reference.tsx";
import { STATES } from "./ui/status.tsx";
import { Clock, Day, took } from "./ui/time.tsx";
import { Name } from "./ui/untrusted.tsx";

const TIMELINE_ROWS = 30;

/** Below which number, id and event each source goes on. */
type Place = { received: number; sent: string; seq: number };
const START: Place = { received: Number.MAX_SAFE_INTEGER, sent: "~", seq: Number.MAX_SAFE_INTEGER };

type Entry = { kind: "received" | "sent"; at: number; head: MessageHead } | { kind: "event"; at: number; event: EventRow };
export type AgentTimeline = { items: FeedItem[]; next: string | undefined };

const writePlace = ({ received, sent, seq }: Place): string => `${received}.${sent}.${seq}`;
function placeOf(url: URL): Place {
  const [, received, sent, seq] = /^(\d{1,16})\.(~|msg_[0-9a-f]{32})\.(\d{1,16})$/.exec(url.searchParams.get("after") ?? "") ?? [];
  return received === undefined ? START : { received: Number(received), sent: sent!, seq: Number(seq) };
}

/** A page of the timeline. Renewals of one lease in a row are one line. */
export async function timelineOf(visit: Visit, agent: AgentRow): Promise<AgentTimeline> {
  const { messages, events } = visit.hub.engine.read;
  const place = placeOf(visit.url);
  const limit = TIMELINE_ROWS + 1;
  const [received, sent, about, deeds] = await Promise.all([
    messages.heads({ kind: "received", of: agent.id }, place.received, limit),
    messages.heads({ kind: "sent", of: agent.id }, place.sent, limit),
    events.about(agent.project, agent.id, place.seq, limit),
    events.deedsOf(agent.project, agent.id, place.seq, limit),
  ]);
  const entries: Entry[] = [
    ...received.map((head): Entry => ({ kind: "received", head, at: head.createdAt })),
    ...sent.map((head): Entry => ({ kind: "sent", head, at: head.createdAt })),
    ...[...about, ...deeds].map((event): Entry => ({ kind: "event", event, at: event.at })),
  ].sort((a, b) => b.at - a.at || orderOf(b) - orderOf(a));
  const shown = entries.slice(0, TIMELINE_ROWS);
  const named = await namesIn(
    visit,
    shown.flatMap((entry) => (entry.kind === "event" ? [entry.event] : [])),
  );
  const context = { named, project: visit.project };
  const items = withoutRepeats(shown).flatMap((entry) => lineOf(entry, visit, context) ?? []);
  return { items, next: entries.length > TIMELINE_ROWS ? writePlace(behind(shown, place)) : undefined };
}

/** Events of one millisecond keep the order of the log. */
const orderOf = (entry: Entry): number => (entry.kind === "event" ? entry.event.seq : 0);

/** Where the next page begins: behind the last of each source that was shown. */
function behind(shown: readonly Entry[], place: Place): Place {
  const next = { ...place };
  for (const entry of shown) {
    if (entry.kind === "event") next.seq = Math.min(next.seq, entry.event.seq);
    else if (entry.kind === "received") next.received = entry.head.recipientSeq;
    else next.sent = entry.head.id;
  }
  return next;
}

/** Leases are renewed again and again; of renewals in a row the newest is enough. */
function withoutRepeats(entries: readonly Entry[]): Entry[] {
  const renewalOf = (entry: Entry | undefined) => {
    if (entry?.kind !== "event") return undefined;
    const { topic, type, subjectId } = entry.event;
    return topic === "leases" && type === "renewed" ? subjectId : undefined;
  };
  return entries.filter((entry, index) => renewalOf(entry) === undefined || renewalOf(entry) !== renewalOf(entries[index - 1]));
}

function lineOf(entry: Entry, visit: Visit, context: Parameters<typeof happening>[1]): FeedItem | undefined {
  const when = visit.now - entry.at < DAY_MS ? <Clock at={entry.at} /> : <Day at={entry.at} />;
  if (entry.kind === "event") {
    const item = happening(entry.event, context, { now: visit.now, clock: true });
    return item && { ...item, when };
  }
  const { head } = entry;
  const { state } = stateOfMessage(head, visit.now);
  const [tone, icon] = STATES[state];
  const name = entry.kind === "received" ? head.senderName : head.recipientName;
  const id = entry.kind === "received" ? head.senderId : head.recipientId;
  const other: Child = id.startsWith("agt_") ? (
    <Ref href={agentLink(id, { project: context.project })}>
      <Name text={name} />
    </Ref>
  ) : (
    <Name text={name} />
  );
  const end = head.repliedAt === null ? state : `replied after ${took(head.repliedAt - head.createdAt)}`;
  const request = <Ref href={messageLink(head.id, { project: context.project })}>request {head.recipientSeq}</Ref>;
  return {
    id: `${entry.kind}-${head.id}`,
    icon: entry.kind === "sent" ? "send" : icon,
    tone: entry.kind === "sent" ? "mute" : tone,
    text:
      entry.kind === "received" ? (
        <>
          {other} asked, {request}: {end}
        </>
      ) : (
        <>
          Asked {other}, {request}: {end}
        </>
      ),
    when,
  };
}
