// What operators do to messages: open a text, reply, cancel, send a dead letter again, put it aside; one or several, each with its own outcome.
/** @jsxImportSource #jsx */
import type { MessageHead } from "../db/message-heads.ts";
import type { Tx } from "../db/tx.ts";
import * as mailbox from "../hub/mailbox.ts";
import * as desk from "../hub/message-desk.ts";
import * as messages from "../hub/messages.ts";
import { HubError } from "../protocol/errors.ts";
import { BULK_ROWS_MAX, MESSAGE_CONTENT_MAX } from "../protocol/limits.ts";
import { act, fieldOf, personOf, refusal } from "./acts.tsx";
import type { Child } from "./jsx/jsx-runtime.ts";
import { link, messageLink } from "./links.ts";
import { visibleHead } from "./message-data.ts";
import { findHeads, queryOf } from "./message-query.ts";
import { type FlashText, type Screen, screen, type Visit } from "./screen.ts";
import { Button, Csrf } from "./ui/button.tsx";
import { PageHead, Row, Section } from "./ui/page.tsx";
import { Id, shortId } from "./ui/reference.tsx";
import { Name, visible } from "./ui/untrusted.tsx";

const THREAD_OPENED_MAX = 50;
/** Messages that a question names; more are counted. */
const NAMED_MAX = 20;

/** Who acts, as a party to messages of a project. */
const partyOf = (visit: Visit, project: string): messages.Party => ({ ...personOf(visit), project, name: "operator" });

/** Runs a rule on a message. When it was refused because the message's time is over, that is written down now. */
async function change<T>({ hub }: Visit, { id, project }: MessageHead, rule: (tx: Tx) => Promise<T>): Promise<T> {
  try {
    return await hub.engine.write(project, rule);
  } catch (error) {
    if (error instanceof HubError && error.code === "invalid_message_state") await mailbox.settleDue(hub, project, id);
    throw error;
  }
}

type Deed = (visit: Visit, head: MessageHead) => Promise<FlashText>;

const cancel: Deed = async (visit, head) => {
  const { changed } = await change(visit, head, (tx) => messages.cancel(tx, partyOf(visit, head.project), head.id));
  if (changed) visit.hub.metrics.add("messages_cancelled");
  return { tone: "ok", text: `Cancelled ${shortId(head.id)}.`, hint: "Its recipient is told. Work that has begun may go on." };
};
const resend: Deed = async (visit, head) => {
  const { hub } = visit;
  const again = await hub.engine.write(head.project, (tx) => desk.resend(tx, personOf(visit), head.project, head.id, hub.settings.messageTtlMs));
  hub.metrics.add("messages_sent");
  return { tone: "ok", text: `Sent ${shortId(head.id)} again as ${shortId(again.id)}.`, hint: "The reply goes to who asked first." };
};
const dismiss: Deed = async (visit, head) => {
  await visit.hub.engine.write(head.project, (tx) => desk.dismiss(tx, personOf(visit), head.project, head.id));
  return { tone: "ok", text: `Put ${shortId(head.id)} aside.`, hint: "It stays in the list of all messages until retention takes it." };
};
const reply: Deed = async (visit, head) => {
  const content = fieldOf(visit.form, "content", MESSAGE_CONTENT_MAX);
  await change(visit, head, (tx) => messages.reply(tx, partyOf(visit, head.project), head.id, () => content));
  visit.hub.metrics.add("messages_replied");
  return { tone: "ok", text: `Replied to ${visible(head.senderName)}.` };
};
const DEEDS = { cancel, resend, dismiss } as const;
type DeedName = keyof typeof DEEDS;
/** The question before several are acted on, what it says, and what the button that acts says. */
const QUESTIONS: Record<DeedName, { asks: string; says: string; note: string; does: string }> = {
  cancel: {
    asks: "Cancel",
    says: "Nobody needs to answer them any more",
    note: "recipients are told; work that has begun may go on",
    does: "Cancel",
  },
  resend: { asks: "Send again", says: "Each is sent anew to its recipient", note: "the reply goes to who asked first", does: "Send again" },
  dismiss: {
    asks: "Put aside",
    says: "They leave the dead letters",
    note: "the list of all messages keeps them until retention takes them",
    does: "Put aside",
  },
};
/** Which messages a list can do this to: what is open, or what nobody answered. */
export const deedsOf = (box: string): readonly DeedName[] => (box === "dead" ? ["resend", "dismiss"] : box === "open" ? ["cancel"] : []);
export const askWord = (name: DeedName): string => QUESTIONS[name].asks;

/** Opens the text of a message, or of every message shown in its thread. */
const open: Deed = async (visit, head) => {
  const { hub, form } = visit;
  const scope = { kind: "thread", of: head.project, correlationId: head.correlationId ?? "" } as const;
  const whole = form.get("thread") === "1" && head.correlationId !== null;
  const heads = whole ? await hub.engine.read.messages.heads(scope, "~", THREAD_OPENED_MAX) : [head];
  await hub.engine.write(head.project, async (tx) => {
    for (const one of heads) await desk.open(tx, personOf(visit), head.project, one.id);
  });
  return {
    tone: "ok",
    text: heads.length > 1 ? `Opened ${heads.length} texts.` : `Opened the text of ${shortId(head.id)}.`,
    hint: "This is noted in the audit.",
  };
};

const onOne = (name: string, deed: Deed): Screen =>
  screen({
    method: "POST",
    path: `/messages/:id/${name}`,
    role: "operator",
    run: async (visit) => {
      const head = await visibleHead(visit);
      return act(visit, messageLink(head.id, { project: visit.project }), () => deed(visit, head));
    },
  });

/** Asks before a message is cancelled, where there is no script to ask. */
const askCancel = screen({
  method: "GET",
  path: "/messages/:id/cancel",
  role: "operator",
  run: async (visit) => {
    const head = await visibleHead(visit);
    return visit.page({
      title: "Cancel a message",
      place: "messages",
      children: <Ask visit={visit} heads={[head]} action={`/messages/${head.id}/cancel`} />,
    });
  },
});

type AskProps = { visit: Visit; heads: readonly MessageHead[]; action: string; deed?: DeedName; rest?: Child };

/** What would be done to which messages, by our ids: exactly those that the form names. @param rest what is said of those beyond them */
const Ask = ({ visit: { csrf, project }, heads, action, deed = "cancel", rest }: AskProps) => {
  const { asks, says, note, does } = QUESTIONS[deed];
  const many = `${heads.length} ${heads.length === 1 ? "message" : "messages"}`;
  return (
    <>
      <PageHead
        title={heads.length === 1 ? `${asks} this message?` : `${asks} ${many}?`}
        crumbs={[{ text: "Messages", href: link("/messages", { project }) }, { text: asks }]}
        sub={[rest]}
      />
      <form method="post" action={action}>
        <Csrf token={csrf} />
        <input type="hidden" name="act" value={deed} />
        <input type="hidden" name="sure" value="1" />
        {heads.map(({ id }) => (
          <input type="hidden" name="pick" value={id} />
        ))}
        <Section title={says} note={note} padded>
          <ul>
            {heads.slice(0, NAMED_MAX).map((head) => (
              <li>
                <Id value={head.id} whole /> <Name text={head.senderName} /> → <Name text={head.recipientName} />
              </li>
            ))}
            {heads.length > NAMED_MAX && <li>and {heads.length - NAMED_MAX} more that were sent before these</li>}
          </ul>
        </Section>
        <Row>
          <Button kind={deed === "cancel" ? "danger" : "primary"} type="submit" disabled={heads.length === 0}>
            {does} {heads.length === 1 ? "the message" : many}
          </Button>
          <Button href={link("/messages", { project, box: deed === "cancel" ? undefined : "dead" })}>
            {deed === "cancel" ? "Keep waiting" : "Leave them"}
          </Button>
        </Row>
      </form>
    </>
  );
};

/** Asks before something is done to everything that fits a filter: how many these are now, and which. */
const matching = screen({
  method: "GET",
  path: "/messages/matching",
  role: "operator",
  run: async (visit) => {
    const { url, project } = visit;
    const query = queryOf(url);
    const deed = deedsOf(query.box).find((name) => name === url.searchParams.get("act"));
    if (!deed) throw new HubError("protocol_error", `this cannot be done to the box ${query.box}`);
    const { heads, next, lookedAt } = await findHeads(visit, query, BULK_ROWS_MAX);
    const filter = [...query.asked.qualifiers.map(({ key, value }) => `${key}:${value}`), query.asked.words].filter(Boolean).join(" ");
    const of = filter === "" ? `all of the box ${query.box}` : `those of the box ${query.box} that fit ${visible(filter)}`;
    const rest =
      next === undefined ? of : `the newest of ${of}${lookedAt === undefined ? "" : ` among ${lookedAt} looked at`}; ask again for the others`;
    const action = link("/messages/bulk", { project });
    return visit.page({
      title: `${QUESTIONS[deed].asks}?`,
      place: "messages",
      live: false,
      children: <Ask visit={visit} heads={heads} action={action} deed={deed} rest={rest} />,
    });
  },
});

const bulk = screen({
  method: "POST",
  path: "/messages/bulk",
  role: "operator",
  run: async (visit) => {
    const name = visit.form.get("act") ?? "";
    if (!Object.hasOwn(DEEDS, name)) throw new HubError("protocol_error", "act must be cancel, resend or dismiss");
    const ids = [...new Set(visit.form.getAll("pick"))];
    const to = link("/messages", { project: visit.project, box: name === "cancel" ? undefined : "dead" });
    if (ids.length === 0) return visit.redirect(to, { tone: "attn", text: "Nothing was picked." });
    if (ids.length > BULK_ROWS_MAX) throw new HubError("protocol_error", `at most ${BULK_ROWS_MAX} at once`);
    if (name === "cancel" && visit.form.get("sure") !== "1") {
      const heads = await Promise.all(ids.map((id) => visibleHead(visit, id)));
      const children = <Ask visit={visit} heads={heads} action={link("/messages/bulk", { project: visit.project })} />;
      return visit.page({ title: "Cancel messages", place: "messages", children });
    }
    return visit.redirect(to, await onEach(visit, ids, DEEDS[name as DeedName], name as DeedName));
  },
});

const DONE = { cancel: "Cancelled", resend: "Sent again", dismiss: "Put aside" } as const;

/** Each message for itself: one that is refused hurts none of the others. */
async function onEach(visit: Visit, ids: readonly string[], deed: Deed, name: DeedName): Promise<FlashText> {
  const refused: string[] = [];
  for (const id of ids) {
    try {
      await deed(visit, await visibleHead(visit, id));
    } catch (error) {
      if (!(error instanceof HubError) || error.status >= 500) throw error;
      refused.push(`${shortId(id)}: ${refusal(error).text}`);
    }
  }
  const done = ids.length - refused.length;
  if (refused.length === 0) return { tone: "ok", text: `${DONE[name]}: ${done}.` };
  return { tone: done > 0 ? "attn" : "bad", text: `${DONE[name]}: ${done}, refused: ${refused.length}.`, hint: refused.slice(0, 5).join(" ") };
}

/** Acts on messages, for the list of screens. */
export const messageActs: readonly Screen[] = [
  onOne("open", open),
  onOne("reply", reply),
  onOne("cancel", cancel),
  onOne("resend", resend),
  onOne("dismiss", dismiss),
  askCancel,
  matching,
  bulk,
];
