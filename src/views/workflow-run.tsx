// The page of a hub workflow run: its stages and ways, what the current stage still needs and from whom, waits and signals, transitions, and its journal.
/** @jsxImportSource #jsx */
import type { AgentRow, JournalRow } from "../db/schema.ts";
import { entryOf } from "../hub/journal.ts";
import { degrade } from "../hub/workflows/degradations.ts";
import { runOf } from "../hub/workflows/runs.ts";
import { HubError } from "../protocol/errors.ts";
import { REASON_MAX, VIEW_ROWS_MAX } from "../protocol/limits.ts";
import { type StageState, TERMINAL, type WorkflowRun } from "../protocol/workflows.ts";
import { act, fieldOf } from "./acts.tsx";
import { here } from "./address.ts";
import * as journalEntry from "./journal-entry.tsx";
import { agentLink, link, workflowRunLink } from "./links.ts";
import { livePage } from "./live-page.tsx";
import { Ask, AskedHere, type Question } from "./question.tsx";
import { WorkflowStatus } from "./run-status.tsx";
import { type Screen, screen, type Visit } from "./screen.ts";
import { Feed } from "./ui/feed.tsx";
import { SelectField, TextField } from "./ui/form.tsx";
import { type GraphEdge, type GraphNode, StepGraph } from "./ui/graph.tsx";
import { type Blocker, Blockers } from "./ui/inbox.tsx";
import { Columns, PageHead, Section, SectionNote } from "./ui/page.tsx";
import { Ref, shortId } from "./ui/reference.tsx";
import { CardList, Pager } from "./ui/table.tsx";
import { Ago, Lasting, took } from "./ui/time.tsx";
import { Line, Name, visible } from "./ui/untrusted.tsx";
import { Matrix, matrixOf, needsOf, type StageNeeds } from "./workflow-conditions.tsx";
import { Stages, signalsOf, Transitions, WorkflowFacts } from "./workflow-run-parts.tsx";

/** Above every id. */
const TOP = "~";

type WorkflowData = {
  run: WorkflowRun;
  needs: StageNeeds;
  coordinator: AgentRow | undefined;
  lastSeenAt: number | undefined;
  journal: JournalRow[];
  next: string | undefined;
  /** Names of the journal's authors, as far as they are agents. */
  authors: ReadonlyMap<string, string>;
};

/** @throws HubError workflow_not_found for a run the session may not see, too */
async function findRun({ hub, params, session }: Visit): Promise<WorkflowRun> {
  const id = params["runId"]!;
  const row = await hub.engine.read.workflows.find(id);
  if (!row || (session.project !== null && session.project !== row.project))
    throw new HubError("workflow_not_found", `there is no workflow run ${id}`);
  return runOf(row);
}

async function load(visit: Visit): Promise<WorkflowData> {
  const { hub, url } = visit;
  const { read } = hub.engine;
  const run = await findRun(visit);
  const coordinator = await read.agents.find(run.targetAgentId);
  const rows = await read.journal.newestOfRun(run.id, url.searchParams.get("after") ?? TOP, VIEW_ROWS_MAX + 1);
  const shown = rows.slice(0, VIEW_ROWS_MAX);
  const ids = [...new Set(shown.map(({ agentId }) => agentId))].filter((id) => id.startsWith("agt_"));
  const agents = await Promise.all(ids.map((id) => read.agents.find(id)));
  return {
    run,
    needs: await needsOf(visit, run),
    coordinator,
    lastSeenAt: coordinator && hub.presence.lastSeen(coordinator.id, coordinator.lastSeenAt),
    journal: shown,
    next: rows.length > VIEW_ROWS_MAX ? shown.at(-1)!.id : undefined,
    authors: new Map(agents.flatMap((agent) => (agent ? [[agent.id, agent.name]] : []))),
  };
}

const NODE_STATES: Record<StageState["status"], GraphNode["state"]> = {
  pending: "todo",
  in_progress: "run",
  waiting: "attn",
  passed: "ok",
  warning: "attn",
  failed: "bad",
};

/** Stages in the order of their definition; ways to the next one, and back with what is used of their budget. */
function graphOf({ stages, transitions = [] }: WorkflowRun): { nodes: GraphNode[]; edges: GraphEdge[] } {
  const nodes = stages.map(
    ({ id, status, attempts, maxAttempts }): GraphNode => ({
      id,
      name: id,
      note: status === "pending" && attempts === 0 ? "not started" : `${status.replaceAll("_", " ")} · ${Math.max(attempts, 1)} of ${maxAttempts}`,
      kind: status === "waiting" ? "wait" : "agent",
      state: NODE_STATES[status],
      href: `#stage-${id}`,
    }),
  );
  const order = new Map(stages.map(({ id }, index) => [id, index]));
  const begun = (id: string | undefined) => stages.some((stage) => stage.id === id && (stage.startedAt !== undefined || stage.status !== "pending"));
  const forward = stages.slice(1).map(({ id }, index): GraphEdge => ({ from: stages[index]!.id, to: id, done: begun(id) }));
  const back = stages.flatMap(({ id, on = {} }, index) =>
    Object.entries(on)
      .filter(([, { target }]) => target !== TERMINAL && (order.get(target) ?? index + 1) <= index)
      .map(([outcome, { target, maxTransitions }]): GraphEdge => {
        const used = transitions.filter((one) => one.fromStage === id && one.toStage === target && one.outcome === outcome).length;
        return { from: id, to: target, done: used > 0, label: `${outcome}, ${used}${maxTransitions ? ` of ${maxTransitions}` : ""} used` };
      }),
  );
  return { nodes, edges: [...forward, ...back] };
}

/** Requirements that may pass with fewer producers for this attempt, if an admin says so. */
function degradable({ stage }: StageNeeds): { key: string; from: number; to: number }[] {
  const attempt = (stage?.attempts ?? 0) + 1;
  return Object.entries(stage?.resolvedEvidencePolicies ?? {}).flatMap(([key, { degradation, minProducers }]) => {
    const given = stage!.degradationApprovals?.some((approval) => approval.requirementKey === key && approval.attempt === attempt);
    return degradation && !given ? [{ key, from: minProducers, to: degradation.minProducers }] : [];
  });
}

function questionsOf({ run, needs }: WorkflowData, visit: Visit): Question[] {
  const keys = degradable(needs);
  const open = run.status === "running" || run.status === "waiting";
  if (visit.session.role !== "admin" || !open || keys.length === 0) return [];
  return [
    {
      name: "degrade",
      button: "Degrade…",
      icon: "attn",
      kind: "warn",
      title: `Let ${shortId(run.id)} pass with fewer producers?`,
      action: `${workflowRunLink(run.id)}/degradations`,
      confirm: "Allow it",
      cancel: "Keep the quorum",
      fields: (id) => (
        <>
          <p>
            For this attempt of stage <code>{run.currentStage}</code> alone. It passes nothing by itself; the journal and the audit keep it, and what
            passes so is marked as degraded.
          </p>
          <input type="hidden" name="stageId" value={run.currentStage} />
          <SelectField
            id={`${id}-key`}
            name="requirementKey"
            label="Requirement"
            options={keys.map(({ key, from, to }) => ({ value: key, text: `${visible(key)}: ${to} instead of ${from}` }))}
          />
          <TextField id={`${id}-reason`} name="reason" autofocus label="Reason" required maxlength={REASON_MAX} />
        </>
      ),
    },
  ];
}

/** Why it does not move: a wait, a coordinator that is away, what is missing. */
function blockersOf({ run, needs, coordinator, lastSeenAt }: WorkflowData, now: number): Blocker[] {
  if (run.status !== "running" && run.status !== "waiting") return [];
  const name = <Ref href={agentLink(run.targetAgentId)}>{<Name text={run.targetAgentName} />}</Ref>;
  return [
    ...(run.waiting ? [{ text: <Line text={run.waiting.summary} max={300} />, age: <Ago at={Date.parse(run.waiting.createdAt)} now={now} /> }] : []),
    ...(run.status === "running" && coordinator?.online !== 1
      ? [{ text: <>Its coordinator {name} is offline</>, ...(lastSeenAt !== undefined && { age: <Ago at={lastSeenAt} now={now} /> }) }]
      : []),
    ...needs.held.conditions.filter(({ met }) => !met).map(({ needs: sentence }) => ({ text: <Line text={sentence} max={300} /> })),
  ];
}

const Journal = ({ data, visit }: { data: WorkflowData; visit: Visit }) => {
  const { journal, authors, next, run } = data;
  const later = visit.url.searchParams.has("after");
  return (
    <Section title="Journal" count={later || next ? `${journal.length} shown` : journal.length} id="journal">
      {journal.length === 0 ? (
        <SectionNote>Nothing was written down yet.</SectionNote>
      ) : (
        <CardList ruled>
          {journal.map((row) => (
            <journalEntry.EntryCard
              entry={entryOf(row)}
              by={authors.get(row.agentId) ?? (row.agentId === run.targetAgentId ? run.targetAgentName : row.agentId)}
              visit={visit}
            />
          ))}
        </CardList>
      )}
      {(next || later) && (
        <Pager
          shown={`${journal.length} shown, newest first`}
          newer={later ? `${here(visit.url, { after: undefined })}#journal` : undefined}
          older={next && `${here(visit.url, { after: next })}#journal`}
        />
      )}
    </Section>
  );
};

const WorkflowHead = ({ run, visit, questions }: { run: WorkflowRun; visit: Visit; questions: Question[] }) => {
  const { now, project } = visit;
  const ended = run.completedAt === undefined ? undefined : Date.parse(run.completedAt);
  return (
    <PageHead
      title={<Line text={run.definitionId} />}
      crumbs={[
        { text: "Runs", href: link("/runs", { project, q: "kind:workflow" }) },
        {
          text: <Line text={run.definitionId} max={64} />,
          href: link("/runs", { project, view: "all", q: `kind:workflow workflow:${run.definitionId}` }),
        },
        { text: shortId(run.id) },
      ]}
      sub={[
        <WorkflowStatus run={run} now={now} />,
        <>
          coordinator <Ref href={agentLink(run.targetAgentId)}>{<Name text={run.targetAgentName} />}</Ref>
        </>,
        ended === undefined ? (
          <>
            for <Lasting since={Date.parse(run.createdAt)} now={now} />
          </>
        ) : (
          `took ${took(Math.max(0, ended - Date.parse(run.createdAt)))}`
        ),
        <>
          started by {run.source} delivery <code>{<Line text={run.deliveryId} max={40} />}</code>
        </>,
      ]}
      actions={questions.map((question) => <Ask question={question} visit={visit} />)}
    />
  );
};

const WorkflowView = ({ data, visit }: { data: WorkflowData; visit: Visit }) => {
  const { run, needs } = data;
  const { now } = visit;
  const questions = questionsOf(data, visit);
  const promotions = visit.session.role === "admin" ? data.journal.map((row) => journalEntry.promoteQuestion(entryOf(row))) : [];
  const { nodes, edges } = graphOf(run);
  const { rows, met } = matrixOf(run, needs, now);
  const blockers = blockersOf(data, now);
  const signals = signalsOf(run, now);
  return (
    <>
      <WorkflowHead run={run} visit={visit} questions={questions} />
      <AskedHere questions={[...questions, ...promotions]} visit={visit} />
      <Section title="Stages" count={run.stages.length}>
        <StepGraph nodes={nodes} edges={edges} label={`Stages of ${visible(run.definitionId).slice(0, 80)}`} />
      </Section>
      {needs.stage && (
        <Section
          title={`Stage ${needs.stage.id}: what it still needs`}
          count={`${met} of ${rows.length} met`}
          note={`attempt ${needs.held.attempt}, ${needs.held.attemptsLeft} left`}
        >
          <Matrix rows={rows} />
        </Section>
      )}
      <Columns
        below
        main={
          <>
            {blockers.length > 0 && (
              <Section title="Why is it not done?" count={blockers.length}>
                <Blockers items={blockers} />
              </Section>
            )}
            <Stages run={run} now={now} />
            <Journal data={data} visit={visit} />
          </>
        }
        aside={
          <>
            <Section title="Waits and signals" count={signals.length}>
              {signals.length > 0 ? <Feed items={signals} /> : <SectionNote>It has waited for nothing yet.</SectionNote>}
            </Section>
            <Transitions run={run} now={now} />
            <WorkflowFacts run={run} />
          </>
        }
      />
    </>
  );
};

const page = livePage<WorkflowData>({
  path: "/workflows/:runId",
  id: "workflow",
  place: "runs",
  topic: ["workflows", "journal", "messages"],
  load,
  title: ({ run }) => `${visible(run.definitionId)} ${shortId(run.id)}`,
  view: (data, visit) => <WorkflowView data={data} visit={visit} />,
});

const allow = screen({
  method: "POST",
  path: "/workflows/:runId/degradations",
  role: "admin",
  run: async (visit) => {
    const { hub, form, by } = visit;
    const { id, project } = await findRun(visit);
    return act(visit, workflowRunLink(id, { project: visit.project }), async () => {
      const request = {
        stageId: fieldOf(form, "stageId", 64),
        requirementKey: fieldOf(form, "requirementKey", 128),
        reason: fieldOf(form, "reason", REASON_MAX),
      };
      const { approval, duplicate } = await hub.engine.write(project, (tx) => degrade(tx, id, request, by));
      if (!duplicate) hub.metrics.add("workflow_degradations");
      return {
        tone: "ok",
        text: `${visible(approval.requirementKey)} may pass with ${approval.approvedMinProducers} instead of ${approval.policyMinProducers}, for attempt ${approval.attempt}.`,
      };
    });
  },
});

export const screens: readonly Screen[] = [...page, allow, ...journalEntry.screens];
