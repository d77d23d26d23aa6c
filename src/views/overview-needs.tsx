// What needs a person, most urgent first: approvals with what exactly is asked, outcomes nobody can prove, conflicts, alerts, dead letters, leases that run out.
/** @jsxImportSource #jsx */
import { ApprovalItem } from "./approval-item.tsx";
import { domId } from "./dom-id.ts";
import type { Child } from "./jsx/jsx-runtime.ts";
import { agentLink, alertLink, conflictLink, leaseLink, link, runLink } from "./links.ts";
import type { DeadGroup, Lapsing, Needs } from "./overview-data.ts";
import type { Visit } from "./screen.ts";
import { Button, Csrf } from "./ui/button.tsx";
import { Inbox, InboxItem, InboxRest } from "./ui/inbox.tsx";
import { Section } from "./ui/page.tsx";
import { counted, Link, Ref, shortId } from "./ui/reference.tsx";
import { Ago, Left } from "./ui/time.tsx";
import { Line, Name } from "./ui/untrusted.tsx";

/** Dead letters to one agent that one click sends again. */
const RESEND_MAX = 50;

/** How many things need a person. */
export const needed = ({ counts }: Needs): number => Object.values(counts).reduce((sum, one) => sum + one, 0);

const CONFLICT_TITLES: Record<string, string> = {
  sync_sequence_reused: "Same place, different event",
  sync_project_mismatch: "Events of a project that is not this one's",
  sync_home_runtime_mismatch: "Events of a run that lives elsewhere",
};

/** The inbox. The first approval is shown in full; deciding is bound to the hash beside it. */
export const NeedsYou = ({ needs, visit }: { needs: Needs; visit: Visit }) => {
  const total = needed(needs);
  const items = [
    ...needs.approvals.map((asked, index) => <ApprovalItem asked={asked} visit={visit} about open={index === 0} />),
    ...needs.uncertain.map((one) => <Uncertain one={one} visit={visit} />),
    ...needs.conflicts.map((conflict) => <Conflict conflict={conflict} visit={visit} />),
    ...needs.alerts.map((alert) => <Alert alert={alert} visit={visit} />),
    ...needs.dead.map((group) => <Dead group={group} visit={visit} />),
    ...needs.lapsing.map((lapsing) => <RunsOut lapsing={lapsing} visit={visit} />),
  ];
  return (
    <Section
      id="needs"
      title="Needs you"
      count={total}
      more={needs.counts.approvals > 0 && <Link href={link("/approvals", { project: visit.project })}>Open the inbox</Link>}
    >
      <Inbox>
        {items}
        {items.length === 0 && (
          <InboxRest>Nothing. What waits for a decision, from all machines, appears here with what exactly would happen.</InboxRest>
        )}
        <Rest needs={needs} project={visit.project} />
      </Inbox>
    </Section>
  );
};

/** What there is beyond the items shown, each with the list it is in. */
const Rest = ({ needs, project }: { needs: Needs; project: string | undefined }) => {
  const { counts } = needs;
  const more: [number, string, string][] = [
    [counts.approvals - needs.approvals.length, "approvals", link("/approvals", { project })],
    [counts.uncertain - needs.uncertain.length, "uncertain runs", link("/runs", { project, q: "status:blocked_uncertain" })],
    [counts.conflicts - needs.conflicts.length, "conflicts", link("/sync", { project })],
    [counts.alerts - needs.alerts.length, "alerts", link("/sync", { project })],
    [counts.dead - needs.dead.reduce((sum, { heads }) => sum + heads.length, 0), "dead letters", link("/messages", { project, box: "dead" })],
    [counts.lapsing - needs.lapsing.length, "leases that run out", link("/leases", { project })],
  ];
  const rest = more.filter(([count]) => count > 0);
  if (rest.length === 0) return null;
  return (
    <InboxRest>
      And{" "}
      {rest.map(([count, word, href], index) => (
        <>
          {index > 0 && ", "}
          <Ref href={href}>
            {counted(count)} {word}
          </Ref>
        </>
      ))}
    </InboxRest>
  );
};

const inProject = (visit: Visit, project: string): Child =>
  visit.project === undefined && (project === "" ? "all projects" : <Name text={project} />);

const Uncertain = ({ one: { run, row, host, at }, visit }: { one: Needs["uncertain"][number]; visit: Visit }) => {
  const reason = run.waiting?.reason ?? row.projection.reason;
  const href = runLink(run.projectId, run.runId, { project: visit.project });
  return (
    <InboxItem
      id={domId("uncertain", run.projectId, run.runId)}
      tone="attn"
      icon="uncertain"
      title={
        <>
          Outcome unknown: <Line text={run.displayTitle ?? run.runId} max={80} />
        </>
      }
      why={[
        <>
          <Ref href={href}>{shortId(run.runId)}</Ref>
          {run.stepId && `, step ${run.stepId}`}
        </>,
        host && <Line text={host} max={40} />,
        reason && <Line text={reason} max={160} />,
        inProject(visit, run.project),
      ]}
      age={<Ago at={at} now={visit.now} />}
      acts={
        visit.session.role !== "viewer" && (
          <Button small href={href}>
            Resolve…
          </Button>
        )
      }
    />
  );
};

const Conflict = ({ conflict, visit }: { conflict: Needs["conflicts"][number]; visit: Visit }) => (
  <InboxItem
    id={`conflict-${conflict.id}`}
    tone="bad"
    icon="attn"
    title={
      <>
        {CONFLICT_TITLES[conflict.code] ?? "Events were refused"}: {shortId(conflict.runId)}, {conflict.sequence}
      </>
    }
    why={[
      `${shortId(conflict.runtimeId)} sent it${conflict.count > 1 ? ` ${conflict.count.toLocaleString("en")} times` : ""}`,
      conflict.existingHash === null ? "it was refused" : "both are kept",
      inProject(visit, conflict.project),
    ]}
    age={<Ago at={conflict.firstAt} now={visit.now} />}
    acts={
      <Button small href={conflictLink(conflict.id, { project: visit.project })}>
        Compare
      </Button>
    }
  />
);

/** Alerts are worded by the hub, without a capital. */
const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;

const Alert = ({ alert, visit }: { alert: Needs["alerts"][number]; visit: Visit }) => (
  <InboxItem
    id={`alert-${alert.id}`}
    tone={alert.severity === "info" ? "mute" : alert.severity === "security" ? "bad" : "attn"}
    icon="bell"
    title={<Line text={sentence(alert.summary)} max={160} />}
    why={[`alert, ${alert.severity}`, alert.count > 1 && `${alert.count.toLocaleString("en")} times`, inProject(visit, alert.project)]}
    age={<Ago at={alert.raisedAt} now={visit.now} />}
    acts={
      <Button small href={alertLink(alert.id, { project: visit.project })}>
        Look
      </Button>
    }
  />
);

const Dead = ({ group: { recipientId, recipientName, project, heads }, visit }: { group: DeadGroup; visit: Visit }) => {
  const href = link("/messages", { project: visit.project ?? project, box: "dead", q: `to:${recipientId}` });
  const ids = heads.filter(({ workflowRunId }) => workflowRunId === null).slice(0, RESEND_MAX);
  const newest = heads[0]!;
  return (
    <InboxItem
      id={`dead-${recipientId}`}
      tone="bad"
      icon="expired"
      title={`${heads.length === 1 ? "A message" : `${heads.length} messages`} expired without a reply`}
      why={[
        <>
          to{" "}
          <Ref href={agentLink(recipientId, { project: visit.project })}>
            <Name text={recipientName} />
          </Ref>
        </>,
        <Ref href={href}>{heads.length === 1 ? shortId(newest.id) : "all of them"}</Ref>,
        inProject(visit, project),
      ]}
      age={<Ago at={newest.endedAt ?? newest.expiresAt} now={visit.now} />}
      acts={
        visit.session.role !== "viewer" &&
        ids.length > 0 && (
          <form class="act" method="post" action={link("/messages/bulk", { project: visit.project })}>
            <Csrf token={visit.csrf} />
            <input type="hidden" name="act" value="resend" />
            {ids.map(({ id }) => (
              <input type="hidden" name="pick" value={id} />
            ))}
            <Button small type="submit">
              Send again
            </Button>
          </form>
        )
      }
    />
  );
};

const RunsOut = ({ lapsing: { lease, waiters }, visit }: { lapsing: Lapsing; visit: Visit }) => (
  <InboxItem
    id={domId("lapsing", lease.resource)}
    tone="attn"
    icon="leases"
    title={
      <>
        Lease{" "}
        <code>
          <Line text={lease.name} max={60} />
        </code>{" "}
        runs out while {waiters} {waiters === 1 ? "waits" : "wait"}
      </>
    }
    why={[
      <>
        held by <Name text={lease.holderName ?? "nobody"} />, token {lease.fence}
      </>,
      <>
        renewed <Ago at={lease.renewedAt} now={visit.now} plain />
      </>,
      inProject(visit, lease.project),
    ]}
    age={<Left until={lease.expiresAt} now={visit.now} />}
    acts={
      <Button small href={leaseLink(lease.project, lease.name)}>
        Look
      </Button>
    }
  />
);
