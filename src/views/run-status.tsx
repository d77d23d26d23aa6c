// How a run stands, in words with evidence and age. One place, so that lists, the page of a run and the overview say the same.
/** @jsxImportSource #jsx */
import type { SyncRunRow } from "../db/schema.ts";
import { hasEnded } from "../hub/projection.ts";
import type { ListedRun } from "../hub/run-list.ts";
import type { RunSummary } from "../protocol/runs.ts";
import type { StageState, WorkflowRun } from "../protocol/workflows.ts";
import type { Child } from "./jsx/jsx-runtime.ts";
import type { Mark } from "./ui/charts.tsx";
import { type State, Status, stateOf } from "./ui/status.tsx";
import { Ago, Lasting, Left } from "./ui/time.tsx";
import { Line } from "./ui/untrusted.tsx";

/** A run's own words in a list. */
const REASON_SHOWN = 90;
const MARKS_SHOWN = 12;

/** `needs you` when a person is asked, whatever the Runtime calls it. */
export function runState({ status, waiting }: Pick<RunSummary, "status" | "waiting">): { state: State; word: string } {
  if (status === undefined) return { state: "unknown", word: "nothing yet" };
  if (waiting?.for === "approval") return { state: "needs you", word: "needs you" };
  const state = stateOf(status);
  return { state, word: state === "unknown" ? status : state };
}

/** Milliseconds of a time that a Runtime reported. */
export const timeOf = (iso: string | undefined): number | undefined => (iso === undefined ? undefined : Date.parse(iso));

type RuntimeRun = { run: RunSummary; row: Pick<SyncRunRow, "projection">; host: string | undefined };

/** What a run waits for, did last or ended with, in the run's own words. */
function Evidence({ run, row, now }: RuntimeRun & { now: number }) {
  const { waiting, status, stepId } = run;
  const updated = timeOf(run.updatedAt) ?? Date.parse(run.lastReceivedAt);
  const reason = waiting?.reason ?? row.projection.reason;
  const error = row.projection.error;
  if (status === undefined)
    return (
      <>
        waits for its first event since <Ago at={Date.parse(run.firstReceivedAt)} now={now} plain />
      </>
    );
  if (waiting)
    return (
      <>
        {waiting.for === "approval" ? "approval pending" : reason ? <Line text={reason} max={REASON_SHOWN} /> : waiting.stepId}, for{" "}
        <Lasting since={timeOf(waiting.since) ?? updated} now={now} />
      </>
    );
  if (status === "failed" || status === "cancelled" || status === "queued")
    return (
      <>
        {reason ? <Line text={reason} max={REASON_SHOWN} /> : status === "failed" && error ? error.class : null}
        {(reason || error) && ", "}
        <Ago at={timeOf(run.endedAt) ?? updated} now={now} plain />
      </>
    );
  return (
    <>
      {stepId && !hasEnded(status) && `${stepId}: `}
      {hasEnded(status) ? "" : "event "}
      <Ago at={updated} now={now} plain />
    </>
  );
}

/** Shape, word, reason and age of a Runtime's run. When its Runtime is silent, what is shown is of then, and says so. */
export const RunStatus = ({ run, row, host, now, stack }: RuntimeRun & { now: number; stack?: boolean }) => {
  const { state, word } = runState(run);
  const silent = run.orphaned && !hasEnded(run.status ?? null);
  const evidence: Child = <Evidence run={run} row={row} host={host} now={now} />;
  return (
    <Status
      state={state}
      word={word}
      stack={stack}
      stale={silent}
      why={
        silent ? (
          <>
            as of <Ago at={Date.parse(run.lastReceivedAt)} now={now} plain />: {host ? <Line text={host} max={40} /> : "its Runtime"}{" "}
            {run.presence === "unknown" ? "never reported" : "lost contact"}
          </>
        ) : (
          evidence
        )
      }
    />
  );
};

/** The same for a run of the hub's own workflows. */
export const WorkflowStatus = ({ run, now, stack }: { run: WorkflowRun; now: number; stack?: boolean }) => {
  const { waiting, status } = run;
  const why: Child = waiting ? (
    <>
      signal <Line text={waiting.signalKey} max={60} />, times out in <Left until={Date.parse(waiting.expiresAt)} now={now} />
    </>
  ) : (
    <>
      {run.currentStage && `${run.currentStage}: `}
      <Ago at={Date.parse(run.completedAt ?? run.updatedAt)} now={now} plain />
    </>
  );
  return <Status state={stateOf(status)} stack={stack} why={why} />;
};

const STEP_MARKS: Record<string, Mark> = {
  passed: "ok",
  completed: "ok",
  failed: "bad",
  rejected: "bad",
  waiting: "attn",
  blocked_uncertain: "attn",
  running: "run",
  created: "todo",
  cancelled: "todo",
  skipped: "todo",
};
const STAGE_MARKS: Record<StageState["status"], Mark> = {
  pending: "todo",
  in_progress: "run",
  waiting: "attn",
  passed: "ok",
  warning: "attn",
  failed: "bad",
};

/** Where a run stands as marks, and the same in words. A Runtime tells of steps as they are entered, so their number is so far. */
export function progressOf(one: ListedRun): { marks: Mark[]; text: string; label: string } {
  if (one.kind === "workflow") {
    const { stages, currentStage } = one.run;
    const at = stages.findIndex(({ id }) => id === currentStage);
    const done = stages.filter(({ status }) => status === "passed").length;
    return {
      marks: stages.slice(0, MARKS_SHOWN).map(({ status }) => STAGE_MARKS[status]),
      text: currentStage === undefined ? `${done} of ${stages.length}` : `${currentStage}, ${at + 1} of ${stages.length}`,
      label: `${done} of ${stages.length} stages passed`,
    };
  }
  const { run, row } = one;
  const marks = row.projection.steps.items
    .slice(-MARKS_SHOWN)
    .map(({ status, outcome }) => STEP_MARKS[outcome === "passed" ? "passed" : status] ?? "todo");
  if (run.status === "blocked_uncertain" && marks.length > 0) marks[marks.length - 1] = "attn";
  if (hasEnded(run.status ?? null))
    return {
      marks,
      text: `${run.stepsEntered} ${run.stepsEntered === 1 ? "step" : "steps"}`,
      label: `${run.stepsDone} of ${run.stepsEntered} steps ended`,
    };
  return {
    marks,
    text: run.stepId ? `${run.stepId}, step ${run.stepsEntered}` : "not started",
    label: `${run.stepsDone} of ${run.stepsEntered} steps so far ended`,
  };
}
