// Writing to one or several agents as an operator. Each recipient gets a message of its own, and the answer says for each what became of it.
/** @jsxImportSource #jsx */
import type { AgentRow } from "../db/schema.ts";
import * as messages from "../hub/messages.ts";
import { HubError } from "../protocol/errors.ts";
import { MESSAGE_CONTENT_MAX } from "../protocol/limits.ts";
import { DELIVERIES, MAX_HOPS_DEFAULT } from "../protocol/messages.ts";
import { personOf, refusal } from "./acts.tsx";
import { agentLink, composeLink, link, messageLink } from "./links.ts";
import { AgentStatus, harnessOf, type Presence, presenceAt } from "./presence.tsx";
import { ProjectField } from "./project-field.tsx";
import { type Answer, type Screen, screen, type Visit } from "./screen.ts";
import { Button, Csrf } from "./ui/button.tsx";
import { Command, Empty, Notice } from "./ui/feedback.tsx";
import { Check, Choices, Fields, SelectField, TextAreaField, TextField } from "./ui/form.tsx";
import { Columns, PageHead, Section } from "./ui/page.tsx";
import { Ref, Sub, shortId, Who } from "./ui/reference.tsx";
import { Status } from "./ui/status.tsx";
import { type Column, Table } from "./ui/table.tsx";
import { Line, Name } from "./ui/untrusted.tsx";

const RECIPIENTS_MAX = 20;
const ONLINE_SHOWN = 30;
const TTLS = [
  ["", "a day, as the hub is set"],
  ["600000", "10 minutes"],
  ["3600000", "1 hour"],
  ["604800000", "7 days"],
] as const;
const MODES: Record<(typeof DELIVERIES)[number], string> = {
  followUp: "followUp: after the current turn",
  steer: "steer: into the current turn",
  nextTurn: "nextTurn: with its next turn",
};

/** What is typed. `once` makes sending the same form twice send nothing twice. */
type Draft = {
  project: string;
  to: string;
  picked: readonly string[];
  content: string;
  delivery: string;
  ttl: string;
  thread: string;
  offline: boolean;
  once: string;
};
type Problems = Partial<Record<"project" | "to" | "content", string>>;
/** What became of one recipient. */
type Outcome = { to: string; agent?: AgentRow; messageId?: string; refused?: { text: string; hint?: string | undefined } };

const blank = (visit: Visit): Draft => {
  const { searchParams } = visit.url;
  return {
    project: visit.project ?? (visit.projects.length === 1 ? visit.projects[0]! : ""),
    to: searchParams.get("to") ?? "",
    picked: [],
    content: "",
    delivery: "followUp",
    ttl: "",
    thread: searchParams.get("correlation") ?? "",
    offline: true,
    once: visit.hub.newId("req"),
  };
};

function draftOf({ form, project }: Visit): Draft {
  const text = (name: string) => form.get(name)?.trim() ?? "";
  return {
    project: project ?? text("project"),
    to: text("to"),
    picked: form.getAll("agent"),
    content: form.get("content") ?? "",
    delivery: text("delivery"),
    ttl: text("ttl"),
    thread: text("thread"),
    offline: form.get("offline") !== null,
    once: text("once"),
  };
}

/** Names and ids that are typed, apart by commas or lines, and those that are picked. */
const recipientsOf = ({ to, picked }: Draft): string[] => [
  ...new Set([
    ...to
      .split(/[,;\n]/)
      .map((name) => name.trim())
      .filter(Boolean),
    ...picked,
  ]),
];

function problemsOf(draft: Draft, { projects, session }: Visit): Problems {
  const recipients = recipientsOf(draft);
  const isKnown = session.project === null ? projects.includes(draft.project) : draft.project === session.project;
  return {
    ...(!isKnown && { project: "Choose the project its recipients are in." }),
    ...(recipients.length === 0 && { to: "Name at least one agent, or pick one below." }),
    ...(recipients.length > RECIPIENTS_MAX && { to: `At most ${RECIPIENTS_MAX} agents at once; these are ${recipients.length}.` }),
    ...(draft.content.trim() === "" && { content: "Write what you ask for." }),
    ...(draft.content.length > MESSAGE_CONTENT_MAX && { content: `At most ${MESSAGE_CONTENT_MAX.toLocaleString("en")} characters.` }),
  };
}

type Choice = { agent: AgentRow; presence: Presence };
async function choicesOf(visit: Visit, project: string): Promise<Choice[]> {
  const { hub, now, session } = visit;
  if (project === "" || (session.project !== null && session.project !== project)) return [];
  const rows = await hub.engine.read.agents.page(project, { of: "online", prefix: "", limit: ONLINE_SHOWN });
  return rows.map((agent) => ({ agent, presence: presenceAt(hub, agent, now, { begun: false, open: false }) }));
}

type FormProps = { draft: Draft; problems: Problems; visit: Visit };

const ComposeForm = ({ choices, ...props }: FormProps & { choices: readonly Choice[] }) => {
  const { draft, visit } = props;
  return (
    <form method="post" action={link("/messages", { project: visit.project })}>
      <Csrf token={visit.csrf} />
      <input type="hidden" name="once" value={draft.once} />
      <Columns
        main={
          <Section title="What you ask for" padded>
            <Fields>
              <Recipients {...props} />
              <Request {...props} />
              <div class="row">
                <Button kind="primary" icon="send" type="submit">
                  Send
                </Button>
                <Button href={link("/messages", { project: visit.project })}>Leave it</Button>
              </div>
            </Fields>
          </Section>
        }
        aside={
          <Section title="Connected" count={choices.length === ONLINE_SHOWN ? `${ONLINE_SHOWN}+` : choices.length} padded>
            {choices.length > 0 ? (
              <Picks choices={choices} draft={draft} now={visit.now} />
            ) : (
              <p class="quiet">{draft.project === "" ? "Choose a project to see who is online." : "Nobody."}</p>
            )}
          </Section>
        }
      />
    </form>
  );
};

const Recipients = ({ draft, problems, visit: { project, projects } }: FormProps) => (
  <>
    {project === undefined && projects.length !== 1 && (
      <ProjectField
        id="compose-project"
        name="project"
        projects={projects}
        first={{ value: "", text: "choose one" }}
        value={draft.project}
        error={problems.project || undefined}
      />
    )}
    {project === undefined && projects.length === 1 && <input type="hidden" name="project" value={draft.project} />}
    <TextField
      id="compose-to"
      name="to"
      label="To"
      value={draft.to}
      placeholder="reviewer, security-review"
      hint="Names or ids, apart by commas. Each gets a message of its own."
      {...(problems.to && { error: problems.to })}
    />
  </>
);

const Request = ({ draft, problems }: FormProps) => (
  <>
    <TextAreaField
      id="compose-content"
      name="content"
      label="Message"
      value={draft.content}
      rows={9}
      maxlength={MESSAGE_CONTENT_MAX}
      hint="Ctrl+Enter sends it. The reply comes to the message's page."
      {...(problems.content && { error: problems.content })}
    />
    <SelectField
      id="compose-delivery"
      name="delivery"
      label="Delivery"
      value={draft.delivery}
      options={DELIVERIES.map((value) => ({ value, text: MODES[value] }))}
    />
    <SelectField id="compose-ttl" name="ttl" label="Waits for a reply" value={draft.ttl} options={TTLS.map(([value, text]) => ({ value, text }))} />
    <TextField
      id="compose-thread"
      name="thread"
      label="Thread"
      value={draft.thread}
      maxlength={128}
      hint="A word of yours that keeps messages together. May be empty."
    />
    <Check name="offline" label="Queue it for agents that are offline" checked={draft.offline} />
  </>
);

const Picks = ({ choices, draft, now }: { choices: readonly Choice[]; draft: Draft; now: number }) => (
  <Choices legend="Agents to write to" tight>
    {choices.map(({ agent, presence }) => (
      <Check
        name="agent"
        value={agent.id}
        checked={draft.picked.includes(agent.id)}
        label={<Name text={agent.name} />}
        note={<AgentStatus presence={presence} now={now} />}
      />
    ))}
  </Choices>
);

async function composePage(visit: Visit, draft: Draft, problems: Problems = {}) {
  const choices = await choicesOf(visit, draft.project);
  return visit.page({
    title: "New message",
    place: "messages",
    children: (
      <>
        <PageHead
          title="New message"
          crumbs={[{ text: "Messages", href: link("/messages", { project: visit.project }) }, { text: "New" }]}
          sub={["from operator", visit.session.id]}
        />
        {visit.projects.length === 0 ? (
          <Empty title="There is nobody to write to yet." acts={<Command text="kxm peer --as reviewer inbox --follow" />}>
            A project begins with its first agent.
          </Empty>
        ) : (
          <ComposeForm draft={draft} problems={problems} choices={choices} visit={visit} />
        )}
      </>
    ),
  });
}

/** Sends to each recipient in a write of its own, so that one that is refused hurts none of the others. */
async function sendAll(visit: Visit, draft: Draft): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const to of recipientsOf(draft)) outcomes.push(await sendOne(visit, draft, to));
  return outcomes;
}

async function sendOne(visit: Visit, draft: Draft, to: string): Promise<Outcome> {
  const { hub } = visit;
  const { id, audit } = personOf(visit);
  const sender: messages.Party = { id: `operator:${id}`, project: draft.project, name: "operator", audit };
  const request = {
    target: to,
    content: draft.content.trim(),
    delivery: DELIVERIES.find((mode) => mode === draft.delivery) ?? "followUp",
    hops: 0,
    maxHops: MAX_HOPS_DEFAULT,
    allowOffline: draft.offline,
    ...(draft.thread !== "" && { correlationId: draft.thread.slice(0, 128) }),
    ...(/^\d{4,9}$/.test(draft.ttl) && { ttlMs: Number(draft.ttl) }),
    ...(draft.once !== "" && { idempotencyKey: `${draft.once.slice(0, 40)} ${to.slice(0, 80)}` }),
  };
  try {
    const { message, idempotent } = await hub.engine.write(draft.project, (tx) =>
      messages.sendAs(tx, sender, request, { ttlMs: hub.settings.messageTtlMs }),
    );
    if (!idempotent) hub.metrics.add("messages_sent");
    const agent = await hub.engine.read.agents.find(message.recipientId);
    return { to, messageId: message.id, ...(agent && { agent }) };
  } catch (error) {
    if (!(error instanceof HubError) || error.status >= 500) throw error;
    const { text, hint } = refusal(error);
    return { to, refused: { text, hint } };
  }
}

const OUTCOMES = (visit: Visit): readonly Column<Outcome>[] => [
  {
    head: "Agent",
    kind: "main",
    cell: ({ to, agent }) =>
      agent ? <Who name={agent.name} harness={harnessOf(agent.model)} href={agentLink(agent.id, { project: visit.project })} /> : <Name text={to} />,
  },
  {
    head: "Outcome",
    phone: "line",
    cell: ({ agent, refused }) =>
      refused ? (
        <Status state="refused" stack why={refused.text} />
      ) : (
        <Status state="stored" stack why={agent && agent.online === 0 ? "offline: it gets it when it is back" : "on its way"} />
      ),
  },
  {
    head: "Message",
    cell: ({ messageId, refused }) =>
      messageId ? <Ref href={messageLink(messageId, { project: visit.project })}>{shortId(messageId)}</Ref> : <Sub>{refused?.hint}</Sub>,
  },
];

async function outcomePage(visit: Visit, draft: Draft, outcomes: readonly Outcome[]) {
  const refused = outcomes.filter((one) => one.refused);
  const sent = outcomes.length - refused.length;
  return visit.page({
    title: "Sent",
    place: "messages",
    children: (
      <>
        <PageHead
          title={`Sent to ${sent} of ${outcomes.length}`}
          crumbs={[{ text: "Messages", href: link("/messages", { project: visit.project }) }, { text: "New" }]}
          actions={
            refused.length > 0 && (
              <Button
                href={composeLink(
                  refused.map(({ to }) => to),
                  { project: draft.project, correlation: draft.thread || undefined },
                )}
              >
                Try the rest again
              </Button>
            )
          }
        />
        {refused.length > 0 && (
          <Notice tone="attn" title={`${refused.length} ${refused.length === 1 ? "agent was" : "agents were"} not written to`}>
            The others have theirs. Nothing was sent twice.
          </Notice>
        )}
        <Table
          caption="What became of each"
          columns={OUTCOMES(visit)}
          rows={outcomes}
          id={({ to }) => `outcome-${outcomes.findIndex((one) => one.to === to)}`}
        />
        <Section title="What was sent" padded>
          <p class="quiet">
            {draft.content.trim().length.toLocaleString("en")} characters, {draft.delivery}
            {draft.thread !== "" && (
              <>
                , thread <Line text={draft.thread} max={60} />
              </>
            )}
          </p>
        </Section>
      </>
    ),
  });
}

async function send(visit: Visit): Promise<Answer> {
  const draft = draftOf(visit);
  const problems = problemsOf(draft, visit);
  if (Object.keys(problems).length > 0) return { html: await composePage(visit, draft, problems), status: 422 };
  visit.requireProject(draft.project);
  const outcomes = await sendAll(visit, draft);
  const [only] = outcomes;
  if (outcomes.length === 1 && only?.messageId)
    return visit.redirect(messageLink(only.messageId, { project: visit.project }), {
      tone: "ok",
      text: `Sent as ${shortId(only.messageId)}.`,
      hint: "The reply will appear here.",
    });
  if (outcomes.every(({ refused }) => refused))
    return {
      html: await composePage(visit, draft, { to: outcomes.map(({ to, refused }) => `${to.slice(0, 80)}: ${refused!.text}`).join(" ") }),
      status: 422,
    };
  return outcomePage(visit, draft, outcomes);
}

/** The form, and what it sends. */
export const screens: readonly Screen[] = [
  screen({ method: "GET", path: "/messages/new", role: "operator", run: (visit) => composePage(visit, blank(visit)) }),
  screen({ method: "POST", path: "/messages", role: "operator", run: send }),
];
