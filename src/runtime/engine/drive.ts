// Drives one run: records what happened, decides, commits, and only then acts. It owns the run's knowledge and its running attempts, nothing else.
import { RuntimeRefusal } from "../../protocol/runtime-errors.ts";
import { clearFolder } from "../harness/launch.ts";
import { bootId } from "../harness/process.ts";
import { PLAN_SCHEMA, type Plan } from "../project/plan.ts";
import type { NewEvent } from "../store/events.ts";
import { type Work, workAgent } from "./agent-attempt.ts";
import { nextDeadline } from "./budgets.ts";
import { closeFailed, closeUnstarted } from "./close-attempt.ts";
import type { EngineContext } from "./context.ts";
import { decide } from "./decide.ts";
import { attemptsToStop } from "./decide-step.ts";
import { type Attempt, type Execution, emptyExecution, fromRow, isOver, learn, openAttempts } from "./execution.ts";
import { workGate } from "./gate-attempt.ts";
import type { Setting } from "./moves.ts";
import { receiptOf } from "./receipts.ts";
import { takeUp } from "./recovery.ts";
import { type Ask, type Stop, stopper } from "./supervise.ts";
import { workspaceFor } from "./workspaces.ts";

const PAGE = 1000;
/** A timer is never set further ahead: its moment is looked at again then. */
const TIMER_MS_MAX = 3_600_000;

/** Learns what the store has of a run beyond what is known. */
export function catchUp(context: EngineContext, run: Execution): Execution {
  for (;;) {
    const page = context.store.read.events.after(run.runId, run.lastSequence, PAGE);
    for (const row of page) learn(run, fromRow(row));
    if (page.length < PAGE) return run;
  }
}

/** Folds a run from its stored events. @throws RuntimeRefusal run_not_found */
export function load(context: EngineContext, runId: string): Execution {
  const pinned = context.store.read.runs.planOf(runId);
  if (!pinned) throw new RuntimeRefusal("run_not_found", `there is no run ${runId} in this project`);
  const plan = pinned.plan as Plan;
  if (plan.schema !== PLAN_SCHEMA) throw new RuntimeRefusal("store_too_new", `run ${runId} has a plan of another version (${String(plan.schema)})`);
  return catchUp(context, emptyExecution(runId, plan, pinned.planHash));
}

type Active = { stop: Stop; done: Promise<void> };
export type Drive = ReturnType<typeof openDrive>;

/** @param ended called once the run has ended and nothing of it runs any more */
export function openDrive(context: EngineContext, runId: string, ended: (run: Execution) => void) {
  let run = load(context, runId);
  const active = new Map<string, Active>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  /** `suspended`: what ends now is still recorded, but nothing new begins. `left`: nothing is recorded any more. */
  let state: "driving" | "suspended" | "left" = "driving";
  const openedNs = context.clock.monotonicNs();
  const beforeMs = run.startedAt === undefined ? 0 : Math.max(0, context.clock.now() - run.startedAt);

  const setting = (): Setting => ({
    now: context.clock.now(),
    elapsedMs: beforeMs + (context.clock.monotonicNs() - openedNs) / 1e6,
    newId: context.newId,
    boot: bootId(),
    attemptFolder: (attemptId) => `${context.folder}/attempts/${attemptId}`,
    workspace: (of, step, access, attemptId) => workspaceFor(context, of, step, access, attemptId),
  });

  /** Records what happened and all that follows from it, in one transaction; then acts. A store that fails makes the run be read again. */
  function advance(happened: NewEvent[] = []): void {
    if (state === "left") return;
    try {
      catchUp(context, run);
      const at = setting();
      for (const event of happened) learn(run, { ...event, at: event.occurredAt ?? at.now });
      commit([...happened, ...(state === "driving" ? decide(run, at) : [])]);
    } catch (error) {
      recover(error);
      throw error;
    }
    if (state === "driving") act();
  }

  function commit(events: NewEvent[]): void {
    if (events.length === 0) return;
    context.store.commit((tx) => {
      for (const event of events) tx.append(runId, event);
      if (isOver(run)) receiptOf(tx, run);
    });
  }

  /** After a failure the knowledge may be ahead of the store: it is read again, or the run is left to whoever opens the store next. */
  function recover(error: unknown): void {
    context.log("drive_failed", { level: "error", runId, ...wordsOf(error) });
    try {
      if (error instanceof RuntimeRefusal && error.code === "store_fenced") leave();
      else run = load(context, runId);
    } catch {
      leave();
    }
  }

  function act(): void {
    clearTimeout(timer);
    for (const { attemptId } of attemptsToStop(run)) active.get(attemptId)?.stop.ask("stop");
    for (const attempt of openAttempts(run)) if (attempt.status !== "blocked_uncertain" && !active.has(attempt.attemptId)) begin(attempt);
    if (isOver(run)) {
      if (active.size === 0) finish();
      return;
    }
    const wait = timeToLook(run, setting());
    if (wait !== undefined) timer = setTimeout(() => quietly(() => advance()), Math.min(wait, TIMER_MS_MAX));
  }

  function finish(): void {
    leave();
    ended(run);
  }

  /** Carries out an attempt beside everything else; what comes of it is recorded whatever it is. */
  function begin(attempt: Attempt): void {
    const stop = stopper();
    const unwanted = attempt.status === "created" && attemptsToStop(run).some(({ attemptId }) => attemptId === attempt.attemptId);
    const events = unwanted ? Promise.resolve(closeUnstarted(run, attempt)) : tryTask(workOf(attempt, stop));
    const done = events.then((closing) => {
      active.delete(attempt.attemptId);
      if (closing === undefined || state === "left") return;
      quietly(() => advance(closing));
      // What the folder holds is recorded now, or the run is read again and the folder is still needed.
      if (!openAttempts(run).some(({ attemptId }) => attemptId === attempt.attemptId)) clearFolder(attempt.folder);
    });
    active.set(attempt.attemptId, { stop, done });
  }

  /** An unexpected failure of ours is a failed attempt with a reason, never a run that hangs. */
  async function tryTask(work: Work): Promise<NewEvent[] | undefined> {
    try {
      return await takeUp(work, perform);
    } catch (error) {
      if (state === "left") return undefined;
      context.log("attempt_failed", { level: "error", runId, attemptId: work.attempt.attemptId, ...wordsOf(error) });
      return closeFailed(work, error);
    }
  }

  const workOf = (attempt: Attempt, stop: Stop): Work => ({
    context,
    run,
    attempt,
    stop,
    record: (events) => {
      if (state === "left") throw new RuntimeRefusal("store_fenced", "this run is driven by another supervisor");
      catchUp(context, run);
      for (const event of events) learn(run, { ...event, at: event.occurredAt ?? context.clock.now() });
      commit(events);
    },
  });

  /** For callers that have nobody to tell: `recover` has logged it and read the run again. */
  const quietly = (work: () => void): void => {
    try {
      work();
    } catch {
      if (state === "driving") timer = setTimeout(() => quietly(() => advance()), 1000);
    }
  };

  const askAll = (what: Ask) => {
    for (const { stop } of active.values()) stop.ask(what);
  };

  /** Lets go of the run without touching what runs: another supervisor owns it. */
  function leave(): void {
    state = "left";
    clearTimeout(timer);
    askAll("leave");
  }

  return {
    get run(): Execution {
      return run;
    },
    advance,
    /** Opens the drive: looks after what an earlier one left, and goes on. */
    open: (): void => {
      const fresh = run.status === "created" || run.status === "queued";
      const admitted: NewEvent[] = fresh ? [{ type: "run.status_changed", payload: { status: "preparing", previousStatus: run.status } }] : [];
      const drive: NewEvent = { type: "run.drive_opened", payload: { status: fresh ? "preparing" : run.status }, local: { pid: process.pid } };
      for (const attempt of openAttempts(run)) if (attempt.status !== "blocked_uncertain") begin(attempt);
      advance([...admitted, drive]);
    },
    /** Ends what runs without ending the run. What was interrupted is tried again when the run is opened the next time. */
    suspend: async (): Promise<void> => {
      state = "suspended";
      clearTimeout(timer);
      askAll("suspend");
      while (active.size > 0) await Promise.all([...active.values()].map(({ done }) => done));
      leave();
    },
    leave,
  };
}

const perform = (work: Work): Promise<NewEvent[] | undefined> => (work.attempt.kind === "agent" ? workAgent(work) : workGate(work));

const wordsOf = (error: unknown) => ({
  reason: error instanceof Error ? `${error.name}: ${error.message}` : String(error),
  ...(error instanceof RuntimeRefusal && { code: error.code }),
});

/** Milliseconds until time alone may change something. */
function timeToLook(run: Execution, at: Setting): number | undefined {
  const waits = [nextDeadline(run, at)];
  for (const deadline of [run.visit?.waitDeadline, run.visit?.asked?.deadline])
    if (deadline !== undefined && Number.isFinite(deadline)) waits.push(Math.max(0, deadline - at.now));
  const known = waits.filter((wait) => wait !== undefined);
  return known.length === 0 ? undefined : Math.min(...known) + 1;
}
