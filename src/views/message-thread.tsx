// The conversation of a message: posts in order, each text a button until this session has opened it, and the form for the one reply.
/** @jsxImportSource #jsx */
import type { MessageHead } from "../db/message-heads.ts";
import { MESSAGE_CONTENT_MAX } from "../protocol/limits.ts";
import { agentLink, messageLink } from "./links.ts";
import type { MessageData, PostData } from "./message-data.ts";
import { isOpen } from "./message-state.tsx";
import type { Visit } from "./screen.ts";
import { Act, Button, Csrf } from "./ui/button.tsx";
import { Fields, TextAreaField } from "./ui/form.tsx";
import { Row, Section } from "./ui/page.tsx";
import { Quiet, Ref, Who } from "./ui/reference.tsx";
import { Post, Thread } from "./ui/thread.tsx";
import { Ago } from "./ui/time.tsx";
import { Name, Untrusted } from "./ui/untrusted.tsx";

/** The thread and, while the message is open, the reply. */
export const ThreadSection = ({ data: { head, posts, moreInThread, harness }, visit }: { data: MessageData; visit: Visit }) => {
  const acts = visit.session.role !== "viewer";
  const closed = posts.filter(({ row }) => row === undefined).length;
  return (
    <>
      <Section
        title="Thread"
        count={posts.length}
        note={moreInThread && "the newest are shown"}
        more={
          acts &&
          closed > 1 && (
            <Act action={`/messages/${head.id}/open`} csrf={visit.csrf} fields={{ thread: 1 }}>
              <Button kind="quiet" small icon="file" type="submit">
                Show all texts
              </Button>
            </Act>
          )
        }
      >
        <Thread>
          {posts.map((post) => (
            <MessagePost post={post} harness={harness} visit={visit} isThis={post.head.id === head.id} />
          ))}
        </Thread>
      </Section>
      {acts && isOpen(head, visit.now) && <ReplyForm head={head} csrf={visit.csrf} />}
    </>
  );
};

/** A message and its reply. Texts that this session has not opened are a button. */
type MessagePostProps = { post: PostData; harness: MessageData["harness"]; visit: Visit; isThis: boolean };
const MessagePost = ({ post: { head, row }, harness, visit, isThis }: MessagePostProps) => {
  const { now, project, session, csrf } = visit;
  const who = (id: string, name: string) => (
    <Who name={name} harness={harness.get(id)} href={id.startsWith("agt_") ? agentLink(id, { project }) : undefined} />
  );
  return (
    <>
      <Post
        id={`post-${head.id}`}
        who={who(head.senderId, head.senderName)}
        to={
          <>
            to <Name text={head.recipientName} /> ·{" "}
            {isThis ? <>{head.recipientSeq}, this one</> : <Ref href={messageLink(head.id, { project })}>{head.recipientSeq}</Ref>}
          </>
        }
        when={<Ago at={head.createdAt} now={now} />}
      >
        {row ? (
          <Untrusted by={head.senderName} text={row.content} note="message body" />
        ) : (
          <ClosedText head={head} csrf={session.role === "viewer" ? undefined : csrf} />
        )}
      </Post>
      {head.repliedAt !== null && (
        <Post
          id={`reply-${head.id}`}
          who={who(head.recipientId, head.recipientName)}
          to={
            <>
              replied to <Name text={head.senderName} />
            </>
          }
          when={<Ago at={head.repliedAt} now={now} />}
        >
          {row?.replyContent ? (
            <Untrusted by={head.recipientName} text={row.replyContent} note="reply" />
          ) : (
            <Quiet>{(head.replySize ?? 0).toLocaleString("en")} characters, shown with the message</Quiet>
          )}
        </Post>
      )}
    </>
  );
};

const ClosedText = ({ head, csrf }: { head: MessageHead; csrf: string | undefined }) =>
  csrf === undefined ? (
    <Quiet>{head.size.toLocaleString("en")} characters; operators may open them</Quiet>
  ) : (
    <Act action={`/messages/${head.id}/open`} csrf={csrf}>
      <Button small icon="file" type="submit">
        Show text
      </Button>{" "}
      <Quiet>{head.size.toLocaleString("en")} characters; who opens it is noted</Quiet>
    </Act>
  );

const ReplyForm = ({ head, csrf }: { head: MessageHead; csrf: string }) => (
  <Section title="Reply as operator" note="the one reply it gets" id="reply" padded>
    <form method="post" action={`/messages/${head.id}/reply`} hx-post={`/messages/${head.id}/reply`} hx-disable="find button" class="form">
      <Csrf token={csrf} />
      <Fields>
        <TextAreaField
          id="reply-text"
          name="content"
          label={
            <>
              To <Name text={head.senderName} />
            </>
          }
          required
          maxlength={MESSAGE_CONTENT_MAX}
          rows={5}
          hint="Ctrl+Enter sends it."
        />
      </Fields>
      <Row>
        <Button kind="primary" icon="send" type="submit">
          Reply
        </Button>
      </Row>
    </form>
  </Section>
);
