// The list of messages: who asked whom, how far it got and why it waits; dead letters; and what is done to several at once. No text is in it.
/** @jsxImportSource #jsx */
import type { MessageHead } from "../db/message-heads.ts";
import * as agents from "../hub/agents.ts";
import { COUNT_EXACT_MAX } from "../protocol/limits.ts";
import { DELIVERIES } from "../protocol/messages.ts";
import { here, withQuery } from "./address.ts";
import { download, type ExportColumn } from "./export.ts";
import { composeLink, link, messageLink } from "./links.ts";
import { chipsOf, countOver, keptBy, projectsOf, type Tallies, unknownValue } from "./listing.ts";
import { livePage } from "./live-page.tsx";
import { askWord, deedsOf } from "./message-acts.tsx";
import { BOXES, type Box, type FoundHeads, findHeads, type MessageQuery, QUALIFIERS, queryOf, STATUS_WORDS, usualBox } from "./message-query.ts";
import { DeliveryCell, isOpen } from "./message-state.tsx";
import { type Screen, screen, type Visit } from "./screen.ts";
import { Button } from "./ui/button.tsx";
import { Command, Empty, Notice } from "./ui/feedback.tsx";
import { FilterBar, type Suggestion, Suggestions, Tabs } from "./ui/filter.tsx";
import { PageHead } from "./ui/page.tsx";
import { Link, Ref, Sub, shortId } from "./ui/reference.tsx";
import { BulkBar, type Column, Pager, Table } from "./ui/table.tsx";
import { Ago, Left } from "./ui/time.tsx";
import { Line, Name, visible } from "./ui/untrusted.tsx";

const EXPORT_ROWS_MAX = 2_000;
const NAMES_SUGGESTED = 8;
const BULK = "messages-bulk";

/** Whether the recipient of an open message answers. */
type Recipient = { word: "online" | "stale" | "offline" | "retired" | "gone"; at: number };
type Row = { head: MessageHead; recipient: Recipient | undefined };
type MessagesData = { query: MessageQuery; rows: Row[]; found: FoundHeads; counts: { open: number; dead: number } };

async function load(visit: Visit): Promise<MessagesData> {
  const { messages } = visit.hub.engine.read;
  const [query, projects] = [queryOf(visit.url), projectsOf(visit)];
  const count = (kind: "open" | "dead") => countOver(projects, (project) => messages.countHeads(kind, project, COUNT_EXACT_MAX + 1));
  const [found, open, dead] = await Promise.all([findHeads(visit, query), count("open"), count("dead")]);
  return { query, found, counts: { open, dead }, rows: await withRecipients(visit, found.heads) };
}

/** For saved views. */
export const tally: Tallies = async (visit, limit) => {
  const { heads, next } = await findHeads(visit, queryOf(visit.url), limit);
  return { count: heads.length, more: next !== undefined };
};

/** Looks at the recipients of what is open: an agent that does not answer is why a message waits. */
async function withRecipients({ hub, now }: Visit, heads: readonly MessageHead[]): Promise<Row[]> {
  const ids = [...new Set(heads.filter((head) => isOpen(head, now)).map(({ recipientId }) => recipientId))];
  const found = await Promise.all(ids.map((id) => hub.engine.read.agents.find(id)));
  const known = new Map<string, Recipient>();
  for (const [index, id] of ids.entries()) {
    const agent = found[index];
    if (!agent) known.set(id, { word: "gone", at: 0 });
    else if (agent.retiredAt !== null) known.set(id, { word: "retired", at: agent.retiredAt });
    else known.set(id, { word: agents.presenceOf(hub, agent, now), at: hub.presence.lastSeen(id, agent.lastSeenAt) });
  }
  return heads.map((head) => ({ head, recipient: known.get(head.recipientId) }));
}

/** Why an open message waits, when it is the recipient's absence. */
const Why = ({ recipient, now }: { recipient: Recipient | undefined; now: number }) => {
  if (!recipient || recipient.word === "online") return null;
  if (recipient.word === "gone" || recipient.word === "retired") return <>recipient is {recipient.word}</>;
  return (
    <>
      recipient {recipient.word === "stale" ? "lost contact" : "offline"}, last seen <Ago at={recipient.at} now={now} plain />
    </>
  );
};

const columnsOf = ({ project, now }: Visit): readonly Column<Row>[] => [
  {
    head: "Message",
    kind: "main",
    cell: ({ head }) => (
      <>
        <Ref href={messageLink(head.id, { project })}>
          <Name text={head.senderName} /> → <Name text={head.recipientName} />
        </Ref>
        <Sub>
          {project === undefined && (
            <>
              <Name text={head.project} /> ·{" "}
            </>
          )}
          {head.correlationId !== null ? (
            <>
              thread <Line text={head.correlationId} max={40} />
            </>
          ) : (
            shortId(head.id)
          )}
          {head.workflowRunId !== null && " · of a workflow run"}
        </Sub>
      </>
    ),
  },
  {
    head: "Delivery",
    phone: "line",
    cell: ({ head, recipient }) => (
      <DeliveryCell
        course={head}
        now={now}
        why={recipient && recipient.word !== "online" && head.deliveredAt === null ? <Why recipient={recipient} now={now} /> : undefined}
      />
    ),
  },
  { head: "Mode", kind: "tight", phone: "hide", cell: ({ head }) => head.delivery },
  { head: "Seq", kind: "num", phone: "hide", cell: ({ head }) => head.recipientSeq.toLocaleString("en") },
  { head: "Size", kind: "num", tight: true, phone: "hide", cell: ({ head }) => head.size.toLocaleString("en") },
  { head: "Asked", kind: "num", tight: true, cell: ({ head }) => <Ago at={head.createdAt} now={now} /> },
  {
    head: "Expires",
    kind: "num",
    tight: true,
    cell: ({ head }) => (isOpen(head, now) ? <Left until={head.expiresAt} now={now} /> : "–"),
  },
];

const TITLES: Record<Box, string> = { open: "Open", dead: "Dead letters", all: "All" };

const MessagesView = ({ data, visit }: { data: MessagesData; visit: Visit }) => {
  const { url, project, session } = visit;
  const { query, counts } = data;
  const acts = session.role !== "viewer";
  const usual = usualBox(query.asked);
  const wrong = unknownValue(query.asked, "status", STATUS_WORDS);
  return (
    <>
      <PageHead
        title="Messages"
        sub={[
          `${counts.open.toLocaleString("en")} open`,
          `${counts.dead.toLocaleString("en")} unanswered`,
          "texts are opened one by one, and that is noted",
        ]}
        actions={
          acts && (
            <Button kind="primary" icon="send" href={composeLink([], { project })} hotkey="c">
              New message
            </Button>
          )
        }
      />
      <Tabs
        label="Boxes"
        tabs={BOXES.map((box) => ({
          text: TITLES[box],
          href: here(url, { box: box === usual ? undefined : box, after: undefined }),
          count: box === "all" ? undefined : counts[box],
          current: query.box === box,
        }))}
      />
      <FilterBar
        action="/messages"
        qualifiers={chipsOf(url, query.asked)}
        value={query.asked.words}
        placeholder="from:, to:, thread:, status:, mode:, or words of a name or id"
        keep={keptBy(url)}
        completions={link("/ui/messages/completions", { project })}
      />
      {wrong && <Notice tone="attn" title={wrong} />}
      <h2 class="visually-hidden">{TITLES[query.box]} messages</h2>
      {acts && <Bulk box={query.box} csrf={visit.csrf} project={project} />}
      {data.rows.length > 0 ? (
        <Table
          caption={`${TITLES[query.box]} messages`}
          columns={columnsOf(visit)}
          rows={data.rows}
          id={({ head }) => `message-${head.id}`}
          pick={acts && query.box !== "all" ? { bulk: BULK, value: ({ head }) => head.id, label: ({ head }) => shortId(head.id) } : undefined}
        />
      ) : (
        <Nothing query={query} lookedAt={data.found.lookedAt} />
      )}
      <Way data={data} url={url} deeds={acts ? deedsOf(query.box) : []} />
    </>
  );
};

/** What is done to all that are picked: each gets its own outcome. */
const Bulk = ({ box, csrf, project }: { box: Box; csrf: string; project?: string | undefined }) => (
  <BulkBar id={BULK} action={link("/messages/bulk", { project })} csrf={csrf} note="each gets its own outcome">
    {box === "dead" ? (
      <>
        <Button kind="primary" small type="submit" name="act" value="resend">
          Send again
        </Button>
        <Button small type="submit" name="act" value="dismiss">
          Put aside
        </Button>
      </>
    ) : (
      <Button kind="warn" small type="submit" name="act" value="cancel">
        Cancel…
      </Button>
    )}
  </BulkBar>
);

const Way = ({ data: { rows, found }, url, deeds }: { data: MessagesData; url: URL; deeds: ReturnType<typeof deedsOf> }) => {
  const all = (act: string) => withQuery("/messages/matching", url, { after: undefined, act });
  const file = (format: string) => withQuery(`/messages/export/${format}`, url);
  return (
    <Pager
      shown={
        <>
          {rows.length} shown, newest first{found.lookedAt !== undefined && `, of ${found.lookedAt.toLocaleString("en")} looked at`} · as{" "}
          <Link href={file("csv")}>CSV</Link> or <Link href={file("json")}>JSON</Link>
          {rows.length > 1 &&
            deeds.map((name) => (
              <>
                {" · "}
                <Link href={all(name)}>{askWord(name)} all that fit…</Link>
              </>
            ))}
        </>
      }
      newer={url.searchParams.has("after") ? here(url, { after: undefined }) : undefined}
      older={found.next && here(url, { after: found.next })}
    />
  );
};

const Nothing = ({ query: { box, asked }, lookedAt }: { query: MessageQuery; lookedAt: number | undefined }) => {
  if (lookedAt !== undefined) return <Empty title="None of the messages looked at fits.">There are older ones: go on below.</Empty>;
  if (asked.qualifiers.length > 0 || asked.words !== "") return <Empty title="No message fits.">Take a filter away, or look in the tab All.</Empty>;
  if (box === "dead") return <Empty title="No dead letters.">What expires without a reply is kept here until it is sent again or put aside.</Empty>;
  return (
    <Empty
      title={box === "open" ? "Nothing is open." : "No message was sent yet."}
      acts={<Command text="kxm peer send reviewer 'please look at #12' --wait 10m" />}
    >
      A request is stored before its sender hears of it, and waits for its one reply.
    </Empty>
  );
};

/** What can follow in the filter bar: keys, then values. */
async function completions(visit: Visit) {
  const last = visit.url.searchParams.get("q")?.split(/\s+/).at(-1) ?? "";
  const [, key = "", typed = ""] = /^([a-z]+):(.*)$/.exec(last) ?? [];
  if (key === "status") return <Suggestions of={words("status", STATUS_WORDS, typed)} />;
  if (key === "mode") return <Suggestions of={words("mode", DELIVERIES, typed)} />;
  if (key === "from" || key === "to") return <Suggestions of={await names(visit, key, typed.toLowerCase())} />;
  const keys: Suggestion[] = [
    { inserts: "from:", shows: "from:", note: "who asked" },
    { inserts: "to:", shows: "to:", note: "who was asked" },
    { inserts: "thread:", shows: "thread:", note: "a correlation id" },
    { inserts: "status:", shows: "status:", note: STATUS_WORDS.join(", ") },
    { inserts: "mode:", shows: "mode:", note: DELIVERIES.join(", ") },
  ];
  return <Suggestions of={keys.filter(({ inserts }) => inserts.startsWith(last))} />;
}

const words = (key: string, of: readonly string[], typed: string): Suggestion[] =>
  of.filter((word) => word.toLowerCase().startsWith(typed.toLowerCase())).map((word) => ({ inserts: `${key}:${word}`, shows: `${key}:${word}` }));

async function names(visit: Visit, key: string, prefix: string): Promise<Suggestion[]> {
  const { agents: store } = visit.hub.engine.read;
  const found = await Promise.all(projectsOf(visit).map((project) => store.page(project, { of: "all", prefix, limit: NAMES_SUGGESTED })));
  return found
    .flat()
    .slice(0, NAMES_SUGGESTED)
    .map(({ id, name, purpose }) => ({
      inserts: `${key}:${/\s/.test(name) || visible(name) !== name ? id : name}`, // a word of the filter holds no space
      shows: (
        <>
          {key}:<Name text={name} />
        </>
      ),
      note: <Line text={purpose} max={40} />,
    }));
}

const EXPORT: readonly ExportColumn<MessageHead>[] = [
  ["id", ({ id }) => id],
  ["project", ({ project }) => project],
  ["from", ({ senderId }) => senderId],
  ["fromName", ({ senderName }) => senderName],
  ["to", ({ recipientId }) => recipientId],
  ["toName", ({ recipientName }) => recipientName],
  ["seq", ({ recipientSeq }) => recipientSeq],
  ["status", ({ status }) => status],
  ["delivery", ({ delivery }) => delivery],
  ["thread", ({ correlationId }) => correlationId],
  ["replyTo", ({ replyTo }) => replyTo],
  ["characters", ({ size }) => size],
  ...(["createdAt", "pushedAt", "deliveredAt", "turnStartedAt", "repliedAt", "endedAt", "expiresAt"] as const).map(
    (name): ExportColumn<MessageHead> => [name, (head) => (head[name] === null ? null : new Date(head[name]).toISOString())],
  ),
];

async function exportMessages(visit: Visit): Promise<Response> {
  const { heads } = await findHeads(visit, queryOf(visit.url), EXPORT_ROWS_MAX);
  return download("messages", visit.params["format"]!, EXPORT, heads);
}

/** The list, its fragment, completions of its filter, and the list as a file. */
export const screens: readonly Screen[] = [
  ...livePage({
    path: "/messages",
    id: "messages",
    place: "messages",
    qualifiers: QUALIFIERS,
    topic: ["messages", "agents"],
    load,
    title: ({ query }) => (query.box === "open" ? "Messages" : TITLES[query.box]),
    view: (data, visit) => <MessagesView data={data} visit={visit} />,
  }),
  screen({ method: "GET", path: "/ui/messages/completions", role: "viewer", run: completions }),
  screen({ method: "GET", path: "/messages/export/:format", role: "viewer", run: exportMessages }),
];
