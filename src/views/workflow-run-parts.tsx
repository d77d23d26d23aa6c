// Parts of the page of a hub workflow run: its stages, what it waited for, the ways it took, and its facts.
/** @jsxImportSource #jsx */
import { TERMINAL, type WorkflowRun } from "../protocol/workflows.ts";
import { domId } from "./dom-id.ts";
import { messageLink } from "./links.ts";
import { Feed, type FeedItem } from "./ui/feed.tsx";
import { Facts, Section } from "./ui/page.tsx";
import { Id, Ref, shortId } from "./ui/reference.tsx";
import { Status, stateOf } from "./ui/status.tsx";
import { Table } from "./ui/table.tsx";
import { Ago, Lasting, took } from "./ui/time.tsx";
import { Line } from "./ui/untrusted.tsx";

export const Stages = ({ run, now }: { run: WorkflowRun; now: number }) => (
  <Section title="Stage by stage">
    <Table
      caption="Stages in the order of the definition"
      rows={run.stages}
      id={({ id }) => `stage-${id}`}
      columns={[
        {
          head: "Stage",
          kind: "main",
          slim: true,
          cell: ({ id, label }) => (
            <>
              {id}
              {label !== id && (
                <span class="sub">
                  <Line text={label} max={80} />
                </span>
              )}
            </>
          ),
        },
        {
          head: "Outcome",
          phone: "line",
          cell: ({ status, summary, degraded }) => (
            <Status
              state={stateOf(status)}
              stack={!!summary}
              why={
                <>
                  {degraded && "degraded: "}
                  {summary && <Line text={summary} max={200} />}
                </>
              }
            />
          ),
        },
        { head: "Attempts", kind: "num", tight: true, cell: ({ attempts, maxAttempts }) => `${attempts} of ${maxAttempts}` },
        {
          head: "Evidence",
          phone: "line",
          cell: ({ evidence, verifiedEvidence = {} }) => {
            const keys = [...new Set([...Object.keys(evidence), ...Object.keys(verifiedEvidence)])];
            return keys.length > 0 ? <Line text={keys.join(", ")} max={160} /> : null;
          },
        },
        {
          head: "Took",
          kind: "num",
          tight: true,
          cell: ({ startedAt, completedAt }) =>
            startedAt === undefined ? (
              "–"
            ) : completedAt === undefined ? (
              <Lasting since={Date.parse(startedAt)} now={now} />
            ) : (
              took(Math.max(0, Date.parse(completedAt) - Date.parse(startedAt)))
            ),
        },
      ]}
    />
  </Section>
);

/** Waits and signals, newest first. */
export function signalsOf({ waiting, signalReceipts = [] }: WorkflowRun, now: number): FeedItem[] {
  return [
    ...(waiting
      ? [
          {
            icon: "signal" as const,
            tone: "attn" as const,
            text: (
              <>
                waiting for <code>{<Line text={waiting.signalKey} max={80} />}</code>
              </>
            ),
            when: <Ago at={Date.parse(waiting.createdAt)} now={now} />,
          },
        ]
      : []),
    ...signalReceipts.toReversed().map(
      ({ deliveryId, signalKey, status, resumed, receivedAt, degraded }): FeedItem => ({
        id: domId("signal", deliveryId),
        icon: status === "failed" ? "bad" : "ok",
        tone: status === "passed" ? "ok" : status === "failed" ? "bad" : "attn",
        text: (
          <>
            <code>{<Line text={signalKey} max={80} />}</code> {status}, {<Line text={deliveryId} max={40} />}
            {resumed ? ", resumed" : ""}
            {degraded ? ", degraded" : ""}
          </>
        ),
        when: <Ago at={Date.parse(receivedAt)} now={now} />,
      }),
    ),
  ];
}

export const Transitions = ({ run, now }: { run: WorkflowRun; now: number }) => {
  const { transitions = [], maxTransitions } = run;
  if (transitions.length === 0) return null;
  return (
    <Section title="Transitions" count={maxTransitions ? `${transitions.length} of ${maxTransitions}` : transitions.length}>
      <Feed
        items={transitions.toReversed().map(({ id, fromStage, toStage, outcome, attempt, at }) => ({
          id,
          icon: "arrow",
          tone: "mute",
          text: (
            <>
              {fromStage} → {toStage === TERMINAL ? "the end" : toStage} on <Line text={outcome} max={64} />, attempt {attempt}
            </>
          ),
          when: <Ago at={Date.parse(at)} now={now} />,
        }))}
      />
    </Section>
  );
};

export const WorkflowFacts = ({ run }: { run: WorkflowRun }) => (
  <Section title="Facts">
    <Facts
      rows={[
        ["Run", <Id value={run.id} whole />],
        [
          "Definition",
          <>
            {<Line text={run.definitionId} max={64} />} <span class="quiet">{run.definitionHash.slice(0, 8)}</span>
          </>,
        ],
        [
          "Source",
          run.event ? (
            <>
              {run.source}, {<Line text={run.event} max={60} />}
            </>
          ) : (
            run.source
          ),
        ],
        ["Delivery", <Line text={run.deliveryId} max={80} />],
        ["Payload", `sha256 ${run.payloadHash.slice(0, 12)}…`],
        ["Project", <Line text={run.project} />],
        ["Prompt", <Ref href={messageLink(run.messageId)}>{shortId(run.messageId)}</Ref>],
        ...(run.planHash ? [["Plan", `sha256 ${run.planHash.sha256.slice(0, 12)}…`] as const] : []),
      ]}
    />
  </Section>
);
