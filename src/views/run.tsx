// The page of a run: how it stands and why, what it asks, the graph and the timeline, who worked on it, its events, evidence and sync; and what can be asked of it.
/** @jsxImportSource #jsx */
import { hasEnded } from "../hub/projection.ts";
import type { RunDetail } from "../protocol/runs.ts";
import { here } from "./address.ts";
import { ApprovalItem } from "./approval-item.tsx";
import { link, runLink, runtimeLink } from "./links.ts";
import { livePage } from "./live-page.tsx";
import { costOf } from "./money.ts";
import { Ask, AskedHere } from "./question.tsx";
import { CommandItem } from "./receipts.tsx";
import * as acts from "./run-acts.tsx";
import { loadRun, type RunData } from "./run-data.ts";
import { ChosenEvent, Events, screens as eventFiles } from "./run-events.tsx";
import { Assignments, Evidence, HowItEnded, openEffects, RunLeases, SyncFacts, UsageFacts, WhyNot } from "./run-parts.tsx";
import { graphOf, kindsOf, timelineOf } from "./run-picture.ts";
import { RunStatus, timeOf } from "./run-status.tsx";
import type { Screen, Visit } from "./screen.ts";
import { command } from "./shell.ts";
import { Button } from "./ui/button.tsx";
import { Command } from "./ui/feedback.tsx";
import { StepGraph } from "./ui/graph.tsx";
import { Inbox, InboxItem, Shown } from "./ui/inbox.tsx";
import { Columns, Facts, PageHead, Section } from "./ui/page.tsx";
import { Chip, Id, Ref, shortId } from "./ui/reference.tsx";
import { Ago, Clock, Lasting, took } from "./ui/time.tsx";
import { RunTimeline } from "./ui/timeline.tsx";
import { Line, visible } from "./ui/untrusted.tsx";

const nameOf = ({ displayTitle, runId }: RunDetail): string => displayTitle ?? runId;

const Head = ({ data, visit }: { data: RunData; visit: Visit }) => {
  const { run, where, host } = data;
  const { now, project } = visit;
  const started = timeOf(run.startedAt ?? run.projection.createdAt);
  const ended = timeOf(run.endedAt);
  const copied = command`kxm runs show ${run.runId}`;
  return (
    <PageHead
      title={<Line text={nameOf(run)} />}
      crumbs={[
        { text: "Runs", href: link("/runs", { project }) },
        ...(run.workflowId ? [{ text: run.workflowId, href: link("/runs", { project, view: "all", q: `workflow:${run.workflowId}` }) }] : []),
        { text: shortId(run.runId) },
      ]}
      sub={[
        <RunStatus run={run} row={{ projection: run.projection }} host={host} now={now} />,
        <Ref href={runtimeLink(run.project, run.runtimeId)}>{where}</Ref>,
        started !== undefined &&
          (ended === undefined ? (
            <>
              running for <Lasting since={started} now={now} />
            </>
          ) : (
            `took ${took(Math.max(0, ended - started))}`
          )),
        costOf(run.costs),
      ]}
      actions={
        <>
          {copied && (
            <Button icon="terminal" copies={copied}>
              Copy as command
            </Button>
          )}
          {acts.questionsOf(run, visit).map((question) => (
            <Ask question={question} visit={visit} />
          ))}
        </>
      }
    />
  );
};

/** Holding new work is about the project and its machine, so it stands beside them, not among what the run itself can be asked. */
const holdOf = ({ run, outbox }: RunData, visit: Visit) => acts.holdOf(run, outbox?.paused === true, visit);
const questionsOf = (data: RunData, visit: Visit) =>
  visit.session.role === "viewer" ? [] : [...acts.questionsOf(data.run, visit), holdOf(data, visit)];

/** What only a person can settle, before everything else. */
const NeedsYou = ({ data, visit }: { data: RunData; visit: Visit }) => {
  const { run, approvals } = data;
  const pending = approvals.filter(({ approval }) => approval.status === "pending");
  const effects = hasEnded(run.status ?? null) ? [] : openEffects(run);
  if (pending.length + effects.length === 0) return null;
  return (
    <>
      <h2 class="visually-hidden">Needs you</h2>
      <Inbox>
        {pending.map((asked) => (
          <ApprovalItem asked={asked} visit={visit} open />
        ))}
        {effects.map(({ id, stepId, reason, at, class: kind }) => (
          <InboxItem
            id={`uncertain-${id}`}
            tone="attn"
            icon="uncertain"
            open
            title={`Outcome unknown: effect ${shortId(id)}`}
            why={[stepId && `step ${stepId}`, kind, reason && <Line text={reason} max={200} />]}
            age={<Ago at={Date.parse(at)} now={visit.now} />}
            more={
              <Shown>
                <p>
                  It was dispatched, and nobody saw how it ended. KXM never repeats such an effect by itself: look where it would have happened, and
                  say what you found.
                </p>
                {visit.session.role === "viewer" ? null : <acts.ResolveForm run={run} effectId={id} visit={visit} />}
              </Shown>
            }
          />
        ))}
      </Inbox>
    </>
  );
};

const Picture = ({ data, visit }: { data: RunData; visit: Visit }) => {
  const { run, approvals } = data;
  const { now, url } = visit;
  const steps = run.projection.steps;
  const { nodes, edges } = graphOf(run, kindsOf(run, new Set(approvals.map(({ approval }) => approval.stepId))));
  const unfolded = url.searchParams.get("time") === "full";
  const open = !hasEnded(run.status ?? null);
  const silent = open && run.orphaned; // what happened since then is not known, so nothing is drawn there
  const live = open && !silent;
  const until = silent ? Date.parse(run.lastReceivedAt) : now;
  const from = timeOf(run.projection.createdAt);
  return (
    <>
      <Section
        title="Steps"
        count={steps.items.length}
        id="steps"
        note={steps.dropped > 0 ? `${steps.dropped} older are not kept` : open ? "so far" : undefined}
      >
        {nodes.length > 0 ? (
          <StepGraph nodes={nodes} edges={edges} label={`Steps of ${visible(nameOf(run)).slice(0, 80)}`} />
        ) : (
          <p class="section__note">No step has begun yet.</p>
        )}
      </Section>
      <Section
        title="Timeline"
        id="timeline"
        note={
          from !== undefined && (
            <>
              from <Clock at={from} />
              {live && " to now"}
              {silent && (
                <>
                  {" "}
                  to <Clock at={until} />, when it was last heard of
                </>
              )}
              {!unfolded && ", idle time is folded"}
            </>
          )
        }
        more={
          <Chip icon="list" href={`${here(url, { time: unfolded ? undefined : "full" })}#timeline`}>
            {unfolded ? "Fold idle time" : "Show folded time"}
          </Chip>
        }
      >
        <RunTimeline
          now={until}
          live={live}
          unfolded={unfolded}
          rows={timelineOf(run).map(({ since, worked, ...row }) => ({
            ...row,
            took: since === undefined ? took(worked) : <Lasting since={since} now={now} />,
          }))}
        />
      </Section>
    </>
  );
};

/** The runs that its work became again, with how they stand. */
const Retries = ({ data: { retries, host }, now }: { data: RunData; now: number }) =>
  retries.length === 0 ? null : (
    <Section title="Run again as" count={retries.length}>
      <Facts
        rows={retries.map((one) => [
          <Ref href={runLink(one.projectId, one.runId)}>
            <Id value={one.runId} />
          </Ref>,
          <>
            <RunStatus run={one} row={one} host={host} now={now} /> {fromWhere(one.projection.retryOf?.stepId)}
          </>,
        ])}
      />
    </Section>
  );

const fromWhere = (stepId: string | undefined): string => (stepId === undefined ? "from the beginning" : `from step ${visible(stepId)}`);

/** The run whose work this one does again. */
const Before = ({ run, before }: { run: RunDetail; before: NonNullable<RunDetail["projection"]["retryOf"]> }) => (
  <>
    <Ref href={runLink(run.projectId, before.runId)}>
      <Id value={before.runId} />
    </Ref>{" "}
    {fromWhere(before.stepId)}
  </>
);

const RunFacts = ({ data, visit }: { data: RunData; visit: Visit }) => {
  const { run } = data;
  const { projection, runId, projectId, runtimeId, project } = run;
  return (
    <Section title="Facts" more={visit.session.role !== "viewer" && <Ask question={holdOf(data, visit)} visit={visit} />}>
      <Facts
        rows={[
          ["Run", <Id value={runId} whole />],
          ["Project", <Line text={project} />],
          ["Of", <Id value={projectId} />],
          [
            "Runtime",
            <Ref href={runtimeLink(project, runtimeId)}>
              <Id value={runtimeId} />
            </Ref>,
          ],
          ...(projection.retryOf ? [["Repeats", <Before run={run} before={projection.retryOf} />] as const] : []),
          ["New work", data.outbox?.paused ? "held: the project is paused" : "is taken"],
          ["Transitions", String(projection.transitions)],
          ...(projection.cancelRequestedAt
            ? [["Cancel asked", <Ago at={Date.parse(projection.cancelRequestedAt)} now={visit.now} plain />] as const]
            : []),
          ...(projection.delivery ? [["Delivery", projection.delivery] as const] : []),
        ]}
      />
    </Section>
  );
};

const Terminal = ({ run }: { run: RunDetail }) => {
  const lines = [
    command`kxm runs show ${run.runId}`,
    command`kxm runs logs ${run.runId}`,
    hasEnded(run.status ?? null) ? command`kxm runs retry ${run.runId}` : command`kxm runs cancel ${run.runId} --reason ${"why"}`,
  ].filter((line) => line !== undefined);
  if (lines.length === 0) return null;
  return (
    <Section title="Same from a terminal" note="on that machine" padded>
      {lines.map((line) => (
        <Command text={line} />
      ))}
    </Section>
  );
};

const RunView = ({ data, visit }: { data: RunData; visit: Visit }) => {
  const { run, where, commands, events, approvals } = data;
  const decided = approvals.filter(({ approval }) => approval.status !== "pending");
  return (
    <>
      <Head data={data} visit={visit} />
      <AskedHere questions={questionsOf(data, visit)} visit={visit} />
      <NeedsYou data={data} visit={visit} />
      <HowItEnded run={run} now={visit.now} />
      <Picture data={data} visit={visit} />
      {events.chosen && <ChosenEvent row={events.chosen} where={where} visit={visit} />}
      <Columns
        below
        main={
          <>
            <WhyNot data={data} visit={visit} />
            <Retries data={data} now={visit.now} />
            {commands.length > 0 && (
              <Section title="What was asked of it" count={commands.length}>
                <Inbox>
                  {commands.map((one) => (
                    <CommandItem command={one} where={where} now={visit.now} />
                  ))}
                </Inbox>
              </Section>
            )}
            <Assignments run={run} now={visit.now} />
            {decided.length > 0 && (
              <Section title="Approvals" count={decided.length}>
                <Inbox>
                  {decided.map((asked) => (
                    <ApprovalItem asked={asked} visit={visit} />
                  ))}
                </Inbox>
              </Section>
            )}
            <Events data={events} cursor={run.lastSequence} total={run.lastSequence + run.held} visit={visit} />
          </>
        }
        aside={
          <>
            <RunFacts data={data} visit={visit} />
            <UsageFacts run={run} />
            <Evidence run={run} now={visit.now} />
            <RunLeases run={run} now={visit.now} />
            <SyncFacts data={data} now={visit.now} />
            <Terminal run={run} />
          </>
        }
      />
    </>
  );
};

const page = livePage<RunData>({
  path: "/runs/:projectId/:runId",
  id: "run",
  place: "runs",
  topic: ["runs", "approvals", "runtimes"],
  load: loadRun,
  title: ({ run }) => visible(nameOf(run)),
  view: (data, visit) => <RunView data={data} visit={visit} />,
});

export const screens: readonly Screen[] = [...page, ...acts.screens, ...eventFiles];
