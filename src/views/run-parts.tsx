// The parts of a run's page below the picture: why it is not done, who worked on it, what was shown, how its sync stands.
/** @jsxImportSource #jsx */
import { hasEnded } from "../hub/projection.ts";
import { NO_CURRENCY, type RunAssignment, type RunDetail, type UsageSum } from "../protocol/runs.ts";
import { domId } from "./dom-id.ts";
import type { Child } from "./jsx/jsx-runtime.ts";
import { approvalLink, runtimeLink } from "./links.ts";
import { costOf, tokens } from "./money.ts";
import type { RunData } from "./run-data.ts";
import { timeOf } from "./run-status.tsx";
import type { Visit } from "./screen.ts";
import { Feed, type FeedItem } from "./ui/feed.tsx";
import { type Blocker, Blockers } from "./ui/inbox.tsx";
import { Facts, Section, SectionNote } from "./ui/page.tsx";
import { Id, Quiet, Ref, Sub, shortId } from "./ui/reference.tsx";
import { Status, stateOf } from "./ui/status.tsx";
import { Table } from "./ui/table.tsx";
import { Ago, Lasting, NoTime, took } from "./ui/time.tsx";
import { Line } from "./ui/untrusted.tsx";

const REASON_SHOWN = 200;

/** What keeps a run from going on, in the order in which it must be lifted. Empty while it moves. */
export function blockersOf({ run, where, runtime, outbox, approvals, commands, heldFrom }: RunData, visit: Visit): Blocker[] {
  const { now, project } = visit;
  if (hasEnded(run.status ?? null)) return [];
  const since = (iso: string | undefined) => (iso === undefined ? undefined : <Ago at={Date.parse(iso)} now={now} />);
  const machine = <Ref href={runtimeLink(run.project, run.runtimeId)}>{where}</Ref>;
  const blockers: (Blocker | false | undefined)[] = [
    run.presence === "expired" && {
      text: <>{machine} lost contact: it may have gone on, but nothing newer is known here</>,
      age: runtime && <Ago at={runtime.heartbeatAt} now={now} />,
    },
    run.presence === "unknown" && { text: <>{machine} never reported itself: only its events are known</> },
    run.held > 0 && {
      text: `${run.held} events wait for sequence ${run.lastSequence + 1}${heldFrom ? `; held from ${heldFrom} on` : ""}`,
      age: since(run.lastReceivedAt),
    },
    ...approvals
      .filter(({ approval }) => approval.status === "pending")
      .map(({ approval: { id, requestedAt } }) => ({
        text: (
          <>
            Approval <Ref href={approvalLink(id, { project })}>{shortId(id)}</Ref> waits for an operator
          </>
        ),
        age: since(requestedAt),
      })),
    ...openEffects(run).map(({ id, stepId, reason, at }) => ({
      text: (
        <>
          Nobody knows whether effect <code>{shortId(id)}</code> of {stepId ?? "a step"} happened
          {reason && <>: {<Line text={reason} max={REASON_SHOWN} />}</>}
        </>
      ),
      age: since(at),
    })),
    run.waiting !== undefined &&
      run.waiting.for !== "approval" &&
      run.waiting.for !== "uncertain" && {
        text: run.waiting.reason ? <Line text={run.waiting.reason} max={REASON_SHOWN} /> : `${run.waiting.stepId ?? "It"} waits`,
        age: since(run.waiting.since),
      },
    run.status === "queued" && {
      text: run.projection.reason ? <Line text={run.projection.reason} max={REASON_SHOWN} /> : "It waits for a place",
      age: since(run.updatedAt),
    },
    outbox?.paused === true && { text: <>The project is paused on {machine}: no new work begins</> },
    ...commands
      .filter(({ state }) => state === "sent" || state === "received")
      .map(({ kind, state, createdAt }) => ({
        text: `${kind}: ${state === "sent" ? `waits for ${where} to fetch it` : "is being applied"}`,
        age: since(createdAt),
      })),
  ];
  return blockers.filter((one): one is Blocker => !!one);
}

/** Effects whose outcome nobody can prove, and that nobody has resolved. */
export const openEffects = ({ projection }: RunDetail) => projection.effects.items.filter(({ state }) => state === "blocked_uncertain");

/** The answer to "why is it not done?". */
export const WhyNot = ({ data, visit }: { data: RunData; visit: Visit }) => {
  const blockers = blockersOf(data, visit);
  const { run } = data;
  if (hasEnded(run.status ?? null)) return null;
  return (
    <Section title="Why is it not done?" count={blockers.length > 0 ? blockers.length : undefined}>
      {blockers.length > 0 ? (
        <Blockers items={blockers} />
      ) : (
        <SectionNote>
          Nothing stands in its way: {run.stepId ?? "it"} is at work
          {run.updatedAt && (
            <>
              , last event <Ago at={Date.parse(run.updatedAt)} now={visit.now} plain />
            </>
          )}
          .
        </SectionNote>
      )}
    </Section>
  );
};

/** The answer to "why did it end so?". */
export const HowItEnded = ({ run, now }: { run: RunDetail; now: number }) => {
  const { status, projection, endedAt } = run;
  if (status !== "failed" && status !== "cancelled") return null;
  const { reason, error } = projection;
  return (
    <Section title={status === "failed" ? "Why did it fail?" : "Why was it cancelled?"}>
      <Blockers
        items={[
          ...(reason ? [{ text: <Line text={reason} max={1000} />, age: endedAt && <Ago at={Date.parse(endedAt)} now={now} /> }] : []),
          ...(error
            ? [
                {
                  text: (
                    <>
                      <code>{error.class}</code> in {<Line text={error.component} max={60} />}
                      {error.stepId && `, step ${error.stepId}`}
                      {error.retryable ? "; trying again may help" : "; trying again does not help"}
                    </>
                  ),
                  age: <Ago at={Date.parse(error.at)} now={now} />,
                },
              ]
            : []),
          ...(reason || error ? [] : [{ text: "The Runtime gave no reason." }]),
        ]}
      />
    </Section>
  );
};

const tokensOf = ({ inputTokens = 0, outputTokens = 0, cacheReadTokens = 0, cacheWriteTokens = 0 }: Partial<UsageSum>): number =>
  inputTokens + outputTokens + cacheReadTokens + cacheWriteTokens;

const Worked = ({ one, now, over }: { one: RunAssignment; now: number; over: boolean }): ReturnType<typeof Lasting> => {
  const started = timeOf(one.startedAt);
  if (one.durationMs !== undefined) return <NoTime>{took(one.durationMs)}</NoTime>;
  return started === undefined || over ? <NoTime>–</NoTime> : <Lasting since={started} now={now} />;
};

/** Who worked on what, with which model, what it used and what came of it. */
export const Assignments = ({ run, now }: { run: RunDetail; now: number }) => {
  const { items, dropped } = run.projection.assignments;
  if (items.length === 0) return null;
  const over = hasEnded(run.status ?? null);
  return (
    <Section title="Assignments" count={items.length} note={dropped > 0 && `${dropped} older are not kept`}>
      <Table
        caption="Assignments of agents"
        rows={items}
        id={({ assignmentId }) => domId("assignment", assignmentId)}
        columns={[
          {
            head: "Agent",
            kind: "main",
            slim: true,
            cell: ({ agentId, assignmentId, model }) => (
              <>
                {agentId ?? <Id value={assignmentId} />}
                {model && (
                  <Sub>
                    <Line text={model} max={60} />
                  </Sub>
                )}
              </>
            ),
          },
          { head: "Step", kind: "tight", phone: "line", cell: ({ stepId, attempt }) => `${stepId ?? "–"}${attempt > 1 ? `, ${attempt}` : ""}` },
          {
            head: "Outcome",
            phone: "line",
            cell: ({ status, outcome, error }) => (
              <Status
                state={outcome === undefined ? stateOf(status) : stateOf(outcome)}
                word={outcome ?? stateOf(status)}
                why={error}
                stack={error !== undefined}
              />
            ),
          },
          { head: "Took", kind: "num", tight: true, cell: (one) => <Worked one={one} now={now} over={over} /> },
          { head: "Tokens", kind: "num", tight: true, cell: ({ usage }) => (usage ? tokens(tokensOf(usage)) : "–") },
          {
            head: "Cost",
            kind: "num",
            tight: true,
            cell: ({ usage }) => (usage?.cost === undefined ? "–" : costOf({ [usage.currency ?? NO_CURRENCY]: usage.cost })),
          },
        ]}
      />
    </Section>
  );
};

/** What was shown on the way: evidence of steps, receipts from outside. */
export const Evidence = ({ run, now }: { run: RunDetail; now: number }) => {
  const { evidence, receipts, effects } = run.projection;
  const items: FeedItem[] = [
    ...evidence.items.map(({ id, kind, stepId, hash, status, at }): FeedItem & { at: number } => ({
      id: domId("evidence", id),
      icon: "check",
      tone: "ok",
      at: Date.parse(at),
      text: (
        <>
          {kind}
          {stepId && ` of ${stepId}`} <Quiet>{hash ? `${hash.slice(7, 15)}…` : shortId(id)}</Quiet>
          {status && ` ${status}`}
        </>
      ),
      when: <Ago at={Date.parse(at)} now={now} />,
    })),
    ...receipts.items.map(
      ({ provider, kind, id, at }): FeedItem => ({
        id: domId("receipt", provider, kind, id),
        icon: "check",
        tone: "ok",
        text: (
          <>
            {provider} {kind} <Line text={id} max={60} />
          </>
        ),
        when: <Ago at={Date.parse(at)} now={now} />,
      }),
    ),
    ...effects.items.map(
      ({ id, class: kind, state, resolution, at }): FeedItem => ({
        id: domId("effect", id),
        icon: state === "blocked_uncertain" ? "uncertain" : "arrow",
        tone: state === "blocked_uncertain" ? "attn" : state === "settled" || state === "uncertainty_resolved" ? "ok" : "mute",
        text: (
          <>
            effect {shortId(id)}, {kind}: {state.replaceAll("_", " ")}
            {resolution && `, ${resolution}`}
          </>
        ),
        when: <Ago at={Date.parse(at)} now={now} />,
      }),
    ),
  ];
  const dropped = evidence.dropped + receipts.dropped + effects.dropped;
  if (items.length === 0) return null;
  return (
    <Section title="Evidence" count={items.length}>
      <Feed items={items.toReversed()} />
      {dropped > 0 && <SectionNote>{dropped} older are not kept.</SectionNote>}
    </Section>
  );
};

/** Leases the run took on the hub while it worked. */
export const RunLeases = ({ run, now }: { run: RunDetail; now: number }) => {
  const { items } = run.projection.leases;
  if (items.length === 0) return null;
  return (
    <Section title="Leases" count={items.length}>
      <Feed
        items={items.toReversed().map(({ id, operation, fencingToken, state, acquiredAt }) => ({
          id: domId("held", id),
          icon: "lock",
          tone: state === "lost" ? "bad" : state === "held" ? "ok" : "mute",
          text: (
            <>
              {state} <Line text={id} max={60} />, token <Line text={fencingToken} max={20} />
              {operation && `, ${operation}`}
            </>
          ),
          when: <Ago at={Date.parse(acquiredAt)} now={now} />,
        }))}
      />
    </Section>
  );
};

/** How complete what is shown here is. */
export const SyncFacts = ({ data, now }: { data: RunData; now: number }) => {
  const { run, outbox, heldFrom } = data;
  const refused = Object.values(outbox?.refused ?? {}).reduce((sum, n) => sum + n, 0);
  const rows: [Child, Child][] = [
    [
      "State",
      run.held > 0 ? (
        <Status state="gap" why={`waits for ${run.lastSequence + 1}`} />
      ) : (
        <Status state="synced" why={`${run.lastSequence.toLocaleString("en")} in order`} />
      ),
    ],
    ["Last event", <Ago at={Date.parse(run.lastReceivedAt)} now={now} plain />],
    ["Held", run.held > 0 ? `${run.held}, from ${heldFrom ?? "?"} on` : "none"],
    ["Outbox", outbox ? `${outbox.pending.toLocaleString("en")} pending, ${refused} refused` : "not reported"],
    ["Redacted", `${run.projection.valuesReplaced.toLocaleString("en")} values`],
    ...(run.projection.degraded > 0 ? [["Left out", `${run.projection.degraded} events could not be redacted`] as [Child, Child]] : []),
  ];
  return (
    <Section title="Sync">
      <Facts rows={rows} />
    </Section>
  );
};

/** What the run used, by model. */
export const UsageFacts = ({ run }: { run: RunDetail }) => {
  const { usage, models } = run.projection;
  if (tokensOf(usage) === 0 && Object.keys(usage.costs).length === 0 && usage.unknown === 0) return null;
  return (
    <Section title="Use">
      <Facts
        rows={[
          [
            "Cost",
            <>
              {costOf(usage.costs) ?? "not reported"}
              {usage.estimated && <Quiet> partly estimated</Quiet>}
              {usage.unknown > 0 && <Quiet> {usage.unknown} uses without a price</Quiet>}
            </>,
          ],
          ["Tokens", `${tokens(usage.inputTokens)} in, ${tokens(usage.outputTokens)} out, ${tokens(usage.cacheReadTokens)} cached`],
          ...models.items.map((model): [Child, Child] => [
            <Line text={model.name} max={40} />,
            `${costOf(model.costs) ?? "–"}, ${tokens(tokensOf(model))}`,
          ]),
        ]}
      />
    </Section>
  );
};
