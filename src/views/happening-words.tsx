// What each kind of event is called: a sentence with links to what it is about. Names come escaped and marked; nothing else of an event's data is shown.
/** @jsxImportSource #jsx */
import type { MessageHead } from "../db/message-heads.ts";
import type { EventRow } from "../db/schema.ts";
import type { Child } from "./jsx/jsx-runtime.ts";
import { agentLink, approvalLink, leaseLink, link, messageLink, runLink, workflowRunLink } from "./links.ts";
import type { IconName } from "./ui/icon.tsx";
import { Ref, shortId } from "./ui/reference.tsx";
import { STATES, stateOf, type Tone } from "./ui/status.tsx";
import { Line, Name } from "./ui/untrusted.tsx";

/** What sentences name beside what is in the event itself. */
export type Named = {
  heads: ReadonlyMap<string, MessageHead>;
  agents: ReadonlyMap<string, string>;
  runs: ReadonlyMap<string, string | null>;
};

/** How a run is found among the named ones. */
export const runKey = (projectId: unknown, runId: unknown): string => `${projectId}/${runId}`;

export type Sentence = { icon: IconName; tone: Tone; text: Child };
export type Context = { named: Named; project: string | undefined };

const text = (value: unknown): string => (typeof value === "string" ? value : "");

const Agent = ({ id, name, project }: { id: string; name: string; project: string | undefined }) =>
  id.startsWith("agt_") ? (
    <Ref href={agentLink(id, { project })}>
      <Name text={name} />
    </Ref>
  ) : (
    <Name text={name} />
  );

/** Who acted: an agent by its name, a person as an operator, everything else as the hub. */
const Actor = ({ event: { actor }, context }: { event: EventRow; context: Context }) => {
  const name = context.named.agents.get(actor);
  if (name !== undefined) return <Agent id={actor} name={name} project={context.project} />;
  return <>{/^(ses_|tok_|operator:|admin)/.test(actor) ? "operator" : actor.startsWith("agt_") ? shortId(actor) : "the hub"}</>;
};

type Teller = (event: EventRow, context: Context) => Sentence | undefined;

type Parts = { from: Child; to: Child; it: (words: string) => Child; byRecipient: boolean };
/** Steps of the way (delivered, pushed) and what retention does are not told. */
const MESSAGE_WORDS: Record<string, (parts: Parts) => Sentence> = {
  queued: ({ from, to, it }) => ({ icon: "messages", tone: "mute", text: [from, " ", it("asked"), " ", to] }),
  turn_started: ({ from, to, it }) => ({ icon: "run", tone: "run", text: [to, " began on ", it("a request"), " of ", from] }),
  replied: ({ from, to, it, byRecipient }) =>
    byRecipient
      ? { icon: "messages", tone: "ok", text: [to, " ", it("replied"), " to ", from] }
      : { icon: "person", tone: "mute", text: ["operator ", it("replied"), " to ", from, " for ", to] },
  cancelled: ({ from, to, it }) => ({ icon: "cancelled", tone: "mute", text: [it("A request"), " of ", from, " to ", to, " was cancelled"] }),
  expired: ({ from, to, it }) => ({ icon: "expired", tone: "bad", text: [it("A request"), " of ", from, " to ", to, " expired unanswered"] }),
  opened: ({ from, it }) => ({ icon: "audit", tone: "mute", text: ["operator opened ", it("a text"), " of ", from] }),
  dismissed: ({ from, it }) => ({ icon: "check", tone: "mute", text: ["operator put ", it("a dead letter"), " of ", from, " aside"] }),
};

const ofMessages: Teller = (event, { named, project }) => {
  const head = named.heads.get(event.subjectId);
  return (
    head &&
    MESSAGE_WORDS[event.type]?.({
      from: <Agent id={head.senderId} name={head.senderName} project={project} />,
      to: <Agent id={head.recipientId} name={head.recipientName} project={project} />,
      it: (words) => <Ref href={messageLink(head.id, { project })}>{words}</Ref>,
      byRecipient: event.actor === head.recipientId,
    })
  );
};

const AGENT_WORDS: Record<string, readonly [icon: IconName, tone: Tone, words: string]> = {
  registered: ["agents", "ok", "registered"],
  described: ["agents", "mute", "says what it works on"],
  online: ["agents", "ok", "is back"],
  retired: ["cancelled", "mute", "was retired by an operator"],
  key_ended: ["lock", "mute", "lost its key: an operator ended it"],
};
const ofAgents: Teller = ({ type, subjectId, data }, { project }) => {
  const who = <Agent id={subjectId} name={text(data["name"])} project={project} />;
  if (type === "offline") {
    if (data["reason"] === "hub_restarted") return undefined;
    if (data["reason"] === "visit_ended") return { icon: "signout", tone: "mute", text: <>{who} made its call and went</> };
    return data["reason"] === "silent"
      ? { icon: "lost", tone: "bad", text: <>{who} lost contact</> }
      : { icon: "signout", tone: "mute", text: <>{who} signed off</> };
  }
  const [icon, tone, words] = AGENT_WORDS[type] ?? [];
  return (
    icon &&
    tone && {
      icon,
      tone,
      text: (
        <>
          {who} {type === "registered" && data["resumed"] === true ? "is back with a new key" : words}
        </>
      ),
    }
  );
};

const LEASE_WORDS: Record<string, readonly [icon: IconName, tone: Tone, words: string]> = {
  acquired: ["leases", "mute", "took"],
  renewed: ["leases", "mute", "renewed"],
  released: ["leases", "mute", "gave back"],
  waiting: ["wait", "attn", "stands in line for"],
};
const ofLeases: Teller = (event, { project }) => {
  const { type, data, subjectId } = event;
  const name = text(data["name"]) || subjectId.slice(subjectId.indexOf("/") + 1);
  const lease = (
    <Ref href={leaseLink(event.project, name)}>
      <Line text={name} max={60} />
    </Ref>
  );
  const holder = <Agent id={text(data["holderId"]) || event.actor} name={text(data["holderName"]) || text(data["agentName"])} project={project} />;
  if (type === "lapsed")
    return {
      icon: "expired",
      tone: "bad",
      text: (
        <>
          {holder} let {lease} run out
        </>
      ),
    };
  if (type === "force_released")
    return {
      icon: "leases",
      tone: "attn",
      text: (
        <>
          operator took {lease} from {holder}
        </>
      ),
    };
  const [icon, tone, words] = LEASE_WORDS[type] ?? [];
  return (
    icon &&
    tone && {
      icon,
      tone,
      text: (
        <>
          {holder} {words} {lease}
          {type === "acquired" && `, token ${data["fence"]}`}
        </>
      ),
    }
  );
};

const RunRef = ({ projectId, runId, context }: { projectId: string; runId: string; context: Context }) => (
  <Ref href={runLink(projectId, runId, { project: context.project })}>
    <Line text={context.named.runs.get(runKey(projectId, runId)) ?? shortId(runId)} max={60} />
  </Ref>
);

const ofSync: Teller = ({ type, subjectId, data }, context) => {
  const run = <RunRef projectId={text(data["projectId"])} runId={subjectId} context={context} />;
  if (type === "events_refused") return { icon: "attn", tone: "bad", text: <>Events of {run} were refused</> };
  if (type === "conflict_acknowledged") return { icon: "check", tone: "mute", text: <>operator looked at a sync conflict</> };
  const status = text(data["status"]);
  if (!("previousStatus" in data) || status === "") return undefined;
  const state = stateOf(status);
  const [tone, icon] = STATES[state];
  return {
    icon,
    tone,
    text: (
      <>
        {run} {status === "created" ? "was created" : state === "unknown" ? <Line text={status} /> : `is ${state}`}
      </>
    ),
  };
};

const ofApprovals: Teller = ({ type, subjectId, data }, context) => {
  const run = <RunRef projectId={text(data["projectId"])} runId={text(data["runId"])} context={context} />;
  const asked = (words: string) => <Ref href={approvalLink(subjectId, { project: context.project })}>{words}</Ref>;
  if (type === "requested")
    return {
      icon: "person",
      tone: "attn",
      text: (
        <>
          {asked("Approval")} asked for {run}
        </>
      ),
    };
  if (type === "approved")
    return {
      icon: "ok",
      tone: "ok",
      text: (
        <>
          {asked("Approved")}: {run}
        </>
      ),
    };
  if (type === "rejected")
    return {
      icon: "bad",
      tone: "bad",
      text: (
        <>
          {asked("Rejected")}: {run}
        </>
      ),
    };
  return {
    icon: "approvals",
    tone: "mute",
    text: (
      <>
        {asked("Approval")} of {run} was {type}
      </>
    ),
  };
};

const ofRuntimes: Teller = ({ type, subjectId, data }) => {
  const machine = <Line text={text(data["host"]) || shortId(subjectId)} max={40} />;
  if (type === "registered") return { icon: "runtimes", tone: "ok", text: <>A Runtime on {machine} reported for the first time</> };
  if (type === "returned") return { icon: "runtimes", tone: "ok", text: <>{machine} is back</> };
  const command = /^command_(\w+)$/.exec(type)?.[1];
  if (command === undefined) return undefined;
  const tone: Tone = command === "applied" ? "ok" : command === "refused" || command === "expired" ? "bad" : "mute";
  return {
    icon: "terminal",
    tone,
    text: (
      <>
        Command <Line text={text(data["kind"])} max={20} /> {command}
      </>
    ),
  };
};

const ofAlerts: Teller = ({ type, data }) => {
  const kind = <Line text={text(data["kind"]).replaceAll("_", " ")} max={60} />;
  if (type === "acknowledged") return { icon: "check", tone: "mute", text: <>operator acknowledged an alert: {kind}</> };
  return {
    icon: "bell",
    tone: data["severity"] === "info" ? "mute" : "bad",
    text: (
      <>
        Alert {type === "reopened" ? "again" : "raised"}: {kind}
      </>
    ),
  };
};

const ofWorkflows: Teller = ({ type, subjectId, data }, { project }) => {
  const run = (
    <Ref href={workflowRunLink(subjectId, { project })}>
      <Line text={text(data["definitionId"]) || shortId(subjectId)} max={40} />
    </Ref>
  );
  const tone: Tone = type === "completed" ? "ok" : type === "failed" ? "bad" : type === "waiting" || type === "degraded" ? "attn" : "run";
  return {
    icon: tone === "bad" ? "bad" : tone === "ok" ? "ok" : "runs",
    tone,
    text: (
      <>
        Workflow {run}: {type.replaceAll("_", " ")}
      </>
    ),
  };
};

const ofJournal: Teller = (event, context) => ({
  icon: "journal",
  tone: event.data["severity"] === "error" ? "bad" : "mute",
  text: (
    <>
      <Actor event={event} context={context} />{" "}
      {event.type.startsWith("promoted.") ? `marked an entry ${event.type.slice("promoted.".length)}` : "noted"}{" "}
      {event.type.startsWith("promoted.") ? "" : <Line text={event.type} max={30} />} in{" "}
      <Ref href={link("/journal", { project: context.project })}>the journal</Ref>
    </>
  ),
});

const ofContext: Teller = (event, context) => ({
  icon: "context",
  tone: event.type === "state.proposed" ? "attn" : "mute",
  text: (
    <>
      <Actor event={event} context={context} /> {event.type.replace("state.", "")} <Line text={text(event.data["key"]) || "state"} max={60} />
    </>
  ),
});

const ofWebhooks: Teller = ({ type }, { project }) => {
  if (type === "delivery.delivered") return undefined;
  const tone: Tone = type === "delivery.failed" || type === "endpoint.disabled" ? "bad" : "mute";
  return {
    icon: "webhooks",
    tone,
    text: (
      <>
        <Ref href={link("/webhooks", { project })}>Webhook</Ref> {type.replace(".", " ")}
      </>
    ),
  };
};

const ofSettings: Teller = ({ type }, { project }) => ({
  icon: "settings",
  tone: "mute",
  text: (
    <>
      <Ref href={link("/audit", { project })}>{type.replaceAll(/[._]/g, " ")}</Ref>
    </>
  ),
});

const TOPICS: Partial<Record<EventRow["topic"], Teller>> = {
  messages: ofMessages,
  agents: ofAgents,
  leases: ofLeases,
  sync: ofSync,
  approvals: ofApprovals,
  runtimes: ofRuntimes,
  alerts: ofAlerts,
  workflows: ofWorkflows,
  journal: ofJournal,
  context: ofContext,
  webhooks: ofWebhooks,
  settings: ofSettings,
};

/** An event in words; undefined when it says nothing to a person. */
export const sentenceOf = (event: EventRow, context: Context): Sentence | undefined => TOPICS[event.topic]?.(event, context);
