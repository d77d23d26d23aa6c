// One message: how far it got and who saw it, why it waits, its thread with each text opened by a click, and what a person can do about it.
/** @jsxImportSource #jsx */
import type { MessageHead } from "../db/message-heads.ts";
import { agentLink, link, messageLink, workflowRunLink } from "./links.ts";
import { livePage } from "./live-page.tsx";
import { messageActs } from "./message-acts.tsx";
import { EARLIER_SHOWN, load, type MessageData, type Waiting } from "./message-data.ts";
import { deliverySteps, isDead, isOpen, stateOfMessage } from "./message-state.tsx";
import { ThreadSection } from "./message-thread.tsx";
import type { Screen, Visit } from "./screen.ts";
import { Act, Button } from "./ui/button.tsx";
import { Delivery } from "./ui/delivery.tsx";
import { ConfirmDialog } from "./ui/dialog.tsx";
import { type Blocker, Blockers } from "./ui/inbox.tsx";
import { Columns, Facts, PageHead, Section } from "./ui/page.tsx";
import { Id, Ref, shortId } from "./ui/reference.tsx";
import { Status } from "./ui/status.tsx";
import { Ago, Left } from "./ui/time.tsx";
import { Line, Name } from "./ui/untrusted.tsx";

const PartyName = ({ id, name, project }: { id: string; name: string; project?: string | undefined }) =>
  id.startsWith("agt_") ? (
    <Ref href={agentLink(id, { project })}>
      <Name text={name} />
    </Ref>
  ) : (
    <Name text={name} />
  );

const MessageView = ({ data, visit }: { data: MessageData; visit: Visit }) => {
  const { head } = data;
  const { now, project } = visit;
  const { state, at } = stateOfMessage(head, now);
  const open = isOpen(head, now);
  const back = link("/messages", { project, box: open ? undefined : isDead(head) ? "dead" : "all" });
  return (
    <>
      <PageHead
        title={
          <>
            <Name text={head.senderName} /> → <Name text={head.recipientName} />, {head.recipientSeq}
          </>
        }
        crumbs={[
          { text: "Messages", href: link("/messages", { project }) },
          { text: open ? "Open" : isDead(head) ? "Dead letters" : "All", href: back },
          { text: shortId(head.id) },
        ]}
        sub={[
          <Status state={state} why={<Ago at={at} now={now} plain />} />,
          <Id value={head.id} whole />,
          open && (
            <>
              expires in <Left until={head.expiresAt} now={now} />
            </>
          ),
        ]}
        actions={visit.session.role !== "viewer" && <HeadActs head={head} visit={visit} />}
      />
      <Section title="Delivery" note="each mark is a fact with a witness">
        <Delivery steps={deliverySteps(head, now)} />
      </Section>
      <Columns below main={<ThreadSection data={data} visit={visit} />} aside={<Aside data={data} visit={visit} />} />
    </>
  );
};

/** Cancel, or what is left to do about a dead letter. Without script the buttons lead to a page that asks. */
const HeadActs = ({ head, visit }: { head: MessageHead; visit: Visit }) => {
  const { csrf, now } = visit;
  if (isOpen(head, now))
    return (
      <>
        <Button icon="undo" href="#reply-text">
          Reply as operator
        </Button>
        <Button kind="warn" opens="cancel-message" href={link(`/messages/${head.id}/cancel`)}>
          Cancel…
        </Button>
        <ConfirmDialog
          id="cancel-message"
          title={`Cancel ${shortId(head.id)}?`}
          action={`/messages/${head.id}/cancel`}
          csrf={csrf}
          target="#cancel-message"
          confirm="Cancel the message"
          cancel="Keep waiting"
        >
          <p>
            Nobody needs to answer it any more. Its recipient is told; work that has begun may go on. <code>{head.id}</code>
          </p>
        </ConfirmDialog>
      </>
    );
  if (!isDead(head)) return null;
  return (
    <>
      {head.workflowRunId === null && (
        <Act action={`/messages/${head.id}/resend`} csrf={csrf}>
          <Button kind="primary" icon="retry" type="submit">
            Send again
          </Button>
        </Act>
      )}
      <Act action={`/messages/${head.id}/dismiss`} csrf={csrf}>
        <Button type="submit">Put aside</Button>
      </Act>
    </>
  );
};

const Aside = ({ data: { head, waiting, openings }, visit }: { data: MessageData; visit: Visit }) => {
  const { now, project, session } = visit;
  const blockers = blockersOf(waiting, now, project);
  return (
    <>
      {blockers.length > 0 && (
        <Section title="Why it waits" count={blockers.length}>
          <Blockers items={blockers} />
        </Section>
      )}
      <Section title="Facts">
        <Facts
          rows={[
            ["From", <PartyName id={head.senderId} name={head.senderName} project={project} />],
            ["To", <PartyName id={head.recipientId} name={head.recipientName} project={project} />],
            ["Project", <Name text={head.project} />],
            ["Mode", head.delivery],
            ["Hops", `${head.hops} of ${head.maxHops}`],
            ["Sequence", head.recipientSeq.toLocaleString("en")],
            ["Thread", head.correlationId === null ? "none" : <ThreadLink id={head.correlationId} project={head.project} />],
            ["Goes back to", head.replyTo === null ? "nothing" : <Ref href={messageLink(head.replyTo, { project })}>{shortId(head.replyTo)}</Ref>],
            ...(head.workflowRunId === null
              ? []
              : [["Workflow run", <Ref href={workflowRunLink(head.workflowRunId, { project })}>{shortId(head.workflowRunId)}</Ref>] as const]),
            ...(head.error === null ? [] : [["Why it ended", <Line text={head.error} />] as const]),
            ...(head.dismissedAt === null ? [] : [["Dealt with", <Ago at={head.dismissedAt} now={now} plain />] as const]),
            ["Text opened", openings.length === 0 ? "by nobody" : <Openings of={openings} mine={session.id} now={now} />],
          ]}
        />
      </Section>
    </>
  );
};

const ThreadLink = ({ id, project }: { id: string; project: string }) =>
  /\s/.test(id) ? (
    <Line text={id} max={60} />
  ) : (
    <Ref href={link("/messages", { project, box: "all", q: `thread:${id}` })}>
      <Line text={id} max={60} />
    </Ref>
  );

const Openings = ({ of, mine, now }: { of: MessageData["openings"]; mine: string; now: number }) => (
  <>
    {of.slice(0, 3).map(({ actor, at }, index) => (
      <>
        {index > 0 && ", "}
        {actor === mine ? "by you" : <>by {shortId(actor)}</>} <Ago at={at} now={now} plain />
      </>
    ))}
    {of.length > 3 && ` and ${of.length - 3} more`} (audited)
  </>
);

function blockersOf({ earlier, recipient }: Waiting, now: number, project: string | undefined): Blocker[] {
  const blockers: Blocker[] = [];
  if (recipient)
    blockers.push({
      text: (
        <>
          <Ref href={recipient.href}>Its recipient</Ref>{" "}
          {recipient.word === "stale" ? "lost contact" : recipient.word === "offline" ? "is offline" : `is ${recipient.word}`}
        </>
      ),
      age: recipient.at > 0 && <Ago at={recipient.at} now={now} />,
    });
  for (const head of earlier.slice(0, EARLIER_SHOWN))
    blockers.push({
      text: (
        <>
          <Ref href={messageLink(head.id, { project })}>
            Request {head.recipientSeq} from <Name text={head.senderName} />
          </Ref>{" "}
          {head.turnStartedAt === null ? "comes before it" : "has the turn"}
        </>
      ),
      age: <Ago at={head.turnStartedAt ?? head.createdAt} now={now} />,
    });
  return blockers;
}

/** The page of one message, its fragment, and the acts on it. */
export const screens: readonly Screen[] = [
  ...livePage({
    path: "/messages/:id",
    id: "message",
    place: "messages",
    topic: ["messages", "agents"],
    load,
    title: ({ head }) => `Message ${shortId(head.id)}`,
    view: (data, visit) => <MessageView data={data} visit={visit} />,
  }),
  ...messageActs,
];
