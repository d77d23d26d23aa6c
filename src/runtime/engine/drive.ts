// Drives one run: records what happened, decides, commits, and only then acts. It owns the run's knowledge and its running attempts, nothing else.
import { RuntimeRefusal } from "../../protocol/runtime-errors.ts";
import type { NewEvent } from "../store/events.ts";
import { type Work, workAgent } from "./agent-attempt.ts";
import { nextDeadline } from "./budgets.ts";
import { closeFailed } from "./close-attempt.ts";
import type { EngineContext } from "./context.ts";
import { decide } from "./decide.ts";
import { attemptsToStop } from "./decide-step.ts";
import { type Attempt, type Execution, isOver, learn, openAttempts, type RunStatus } from "./execution.ts";
import { workGate } from "./gate-attempt.ts";
import { catchUp, load } from "./load.ts";
import { mirror } from "./mirror.ts";
import type { Setting } from "./moves.ts";
import { receiptOf } from "./receipts.ts";
import { takeUp } from "./recovery.ts";
import { type Ask, type Stop, stopper } from "./supervise.ts";
import { workspaceFor } from "./workspaces.ts";

/** A timer is never set further ahead: its moment is looked at again then. */
const TIMER_MS_MAX = 3_600_000;
/** Statuses in which a run works at nothing. */
const RESTING: readonly RunStatus[] = ["waiting", "blocked_uncertain"];
/** After a failure of the store the run looks again this much later. */
const AGAIN_MS = 1000;

export class Drive {
  /** What is known of the run. Replaced as a whole when it had to be read again. */
  run: Execution;
  private readonly active = new Map<string, { stop: Stop; done: Promise<void> }>();
  private callOff: (() => void) | undefined;
  /** `suspended`: what ends now is still recorded, but nothing new begins. `left`: nothing is recorded any more. */
  private state: "driving" | "suspended" | "left" = "driving";
  /** What opens the drive, until it is recorded. */
  private opening: NewEvent[] = [];
  private readonly opened: { ns: number; at: number };
  /** Since when the attempts of this drive run, and how long those had run that an earlier one began. */
  private readonly running = new Map<string, { ns: number; beforeMs: number }>();
  private readonly beforeMs: number;

  /**
   * @param on.ended called once the run has ended and nothing of it runs any more
   * @param on.rests called when the run waits for somebody: another one may have its place
   */
  constructor(
    private readonly context: EngineContext,
    readonly runId: string,
    private readonly on: { ended: () => void; rests: () => void },
  ) {
    this.run = load(context, runId);
    this.opened = { ns: context.clock.monotonicNs(), at: context.clock.now() };
    this.beforeMs = this.run.startedAt === undefined ? 0 : Math.max(0, this.opened.at - this.run.startedAt);
  }

  /** Milliseconds an executing attempt has run: by the wall until this drive saw it first, by the monotonic clock since then. */
  readonly ranMs = ({ attemptId, startedAt }: Attempt): number => {
    const ns = this.context.clock.monotonicNs();
    const seen = this.running.get(attemptId) ?? { ns, beforeMs: Math.max(0, this.context.clock.now() - (startedAt ?? Number.POSITIVE_INFINITY)) };
    this.running.set(attemptId, seen);
    return seen.beforeMs + (ns - seen.ns) / 1e6;
  };

  /** Opens the drive: looks after what an earlier one left, and goes on. A store that cannot take it now is asked again. */
  open(): void {
    const fresh = this.run.status === "created" || this.run.status === "queued";
    const admitted: NewEvent[] = fresh ? [{ type: "run.status_changed", payload: { status: "preparing", previousStatus: this.run.status } }] : [];
    const { status, reason } = fresh ? { status: "preparing" as const, reason: undefined } : this.run; // what it waits for is still so
    const opened: NewEvent = { type: "run.drive_opened", payload: { status, ...(reason && { reason }) }, local: { pid: process.pid } };
    for (const attempt of openAttempts(this.run)) if (attempt.status !== "blocked_uncertain") this.begin(attempt);
    this.opening = [...admitted, opened];
    this.quietly();
  }

  /** Something about the run was recorded by somebody else: what follows from it comes now, or as soon as the store can take it. */
  heard(): void {
    this.quietly();
  }

  /**
   * Records what happened and all that follows from it, in one transaction; then acts.
   * @throws whatever the store throws; the run has been read again by then
   */
  advance(happened: NewEvent[] = []): void {
    if (this.state === "left") return;
    try {
      catchUp(this.context, this.run);
      const at = this.setting();
      const all = [...this.opening, ...happened];
      for (const event of all) learn(this.run, { ...event, at: event.occurredAt ?? at.now });
      this.commit([...all, ...(this.state === "driving" ? decide(this.run, at) : [])], at.now);
      this.opening = [];
    } catch (error) {
      this.readAgain(error);
      throw error;
    }
    if (this.state === "driving") this.act();
  }

  /** Ends what runs without ending the run. What was interrupted is tried again when the run is opened the next time. */
  async suspend(): Promise<void> {
    this.state = "suspended";
    this.callOff?.();
    this.askAll("suspend");
    while (this.active.size > 0) await Promise.all([...this.active.values()].map(({ done }) => done));
    if (!isOver(this.run)) this.close();
    this.leave();
  }

  /** The receipt of a drive whose run goes on later. Without room for it the run goes on all the same. */
  private close(): void {
    try {
      this.context.store.commit((tx) => receiptOf(tx, this.run));
    } catch (error) {
      this.context.log("receipt_missing", { level: "warn", runId: this.runId, ...wordsOf(error) });
    }
  }

  /** Lets go of the run without touching what runs: another supervisor owns it. */
  leave(): void {
    this.state = "left";
    this.callOff?.();
    this.askAll("leave");
  }

  private setting(): Setting {
    const { context } = this;
    const openMs = (context.clock.monotonicNs() - this.opened.ns) / 1e6;
    return {
      now: context.clock.now(),
      elapsedMs: this.beforeMs + openMs,
      steady: this.opened.at + openMs,
      ranMs: this.ranMs,
      newId: context.newId,
      boot: context.machine.programs.bootId(),
      attemptFolder: (attemptId) => `${context.folder}/attempts/${attemptId}`,
      workspace: (of, step, access, attemptId) => workspaceFor(context, of, step, access, attemptId),
    };
  }

  /** @param now what was learned as their time: the stored events say the same */
  private commit(events: NewEvent[], now: number): void {
    if (events.length === 0) return;
    this.context.store.commit((tx) => {
      for (const event of events) mirror(tx, this.run, tx.append(this.runId, { ...event, occurredAt: event.occurredAt ?? now }));
      if (isOver(this.run)) receiptOf(tx, this.run);
    });
  }

  /** After a failure the knowledge may be ahead of the store: it is read again, or the run is left to whoever opens the store next. */
  private readAgain(error: unknown): void {
    this.context.log("drive_failed", { level: "error", runId: this.runId, ...wordsOf(error) });
    try {
      if (error instanceof RuntimeRefusal && error.code === "store_fenced") this.leave();
      else this.run = load(this.context, this.runId);
    } catch {
      this.leave();
    }
  }

  /** Makes the world follow what was committed: begins what is intended, stops what is not wanted, looks again in time. */
  private act(): void {
    this.callOff?.();
    for (const { attemptId } of attemptsToStop(this.run)) this.active.get(attemptId)?.stop.ask("stop");
    for (const attempt of openAttempts(this.run))
      if (attempt.status !== "blocked_uncertain" && !this.active.has(attempt.attemptId)) this.begin(attempt);
    if (isOver(this.run)) {
      if (this.active.size > 0) return;
      this.leave();
      this.on.ended();
      return;
    }
    if (RESTING.includes(this.run.status)) this.on.rests();
    const wait = timeToLook(this.run, this.setting());
    if (wait !== undefined) this.callOff = this.context.clock.after(Math.min(wait, TIMER_MS_MAX), () => this.quietly());
  }

  /** Carries out an attempt beside everything else; what comes of it is recorded whatever it is. */
  private begin(attempt: Attempt): void {
    const { attemptId } = attempt;
    const stop = stopper();
    const unwanted = attempt.status === "created" && attemptsToStop(this.run).some((one) => one.attemptId === attemptId);
    const events = this.carryOut(this.workOf(attempt, stop), unwanted);
    const done = events.then((closing) => {
      this.active.delete(attemptId);
      if (closing === "again") return this.lookAgain();
      if (closing === undefined || this.state === "left") return;
      this.quietly(closing);
      // What the folder holds is recorded now; or the run was read again, and the folder is still needed.
      if (!openAttempts(this.run).some((one) => one.attemptId === attemptId)) this.context.machine.programs.clearFolder(attempt.folder);
    });
    this.active.set(attemptId, { stop, done });
  }

  /** An unexpected failure of ours is a failed attempt with a reason, never a run that hangs. */
  private async carryOut(work: Work, unwanted: boolean): Promise<NewEvent[] | undefined | "again"> {
    try {
      return await takeUp(work, perform, unwanted);
    } catch (error) {
      if (this.state === "left") return undefined;
      this.context.log("attempt_failed", { level: "error", runId: this.runId, attemptId: work.attempt.attemptId, ...wordsOf(error) });
      // A disk that is full says nothing about the attempt: it is taken up again, where it stands, once there may be room.
      return isDiskTrouble(error) ? "again" : await closeFailed(work, error);
    }
  }

  private workOf(attempt: Attempt, stop: Stop): Work {
    return { context: this.context, run: this.run, attempt, stop, confirm: () => this.confirm(), record: (events) => this.record(events) };
  }

  /** @throws RuntimeRefusal store_fenced once the run was left, store_unavailable when the store cannot tell */
  private confirm(): void {
    if (this.state === "left") throw new RuntimeRefusal("store_fenced", "this run is driven by another supervisor");
    try {
      this.context.store.probe();
    } catch (error) {
      this.readAgain(error); // of another supervisor: what runs is its own, and is let be
      throw error;
    }
  }

  /** Records in the middle of an attempt: decides nothing. @throws RuntimeRefusal store_fenced once the run was left */
  private record(events: NewEvent[]): void {
    if (this.state === "left") throw new RuntimeRefusal("store_fenced", "this run is driven by another supervisor");
    catchUp(this.context, this.run);
    const now = this.context.clock.now();
    for (const event of events) learn(this.run, { ...event, at: event.occurredAt ?? now });
    try {
      this.commit(events, now);
    } catch (error) {
      this.readAgain(error);
      throw error;
    }
    for (const attempt of openAttempts(this.run)) if (attempt.status === "executing") this.ranMs(attempt); // seen from now on
  }

  /** For callers that have nobody to tell: the failure is logged, the run was read again, and looks once more soon. */
  private quietly(happened: NewEvent[] = []): void {
    try {
      this.advance(happened);
    } catch {
      this.lookAgain();
    }
  }

  private lookAgain(): void {
    this.callOff?.();
    if (this.state === "driving") this.callOff = this.context.clock.after(AGAIN_MS, () => this.quietly());
  }

  private askAll(what: Ask): void {
    for (const { stop } of this.active.values()) stop.ask(what);
  }
}

const perform = (work: Work): Promise<NewEvent[] | undefined> => (work.attempt.kind === "agent" ? workAgent(work) : workGate(work));

/** Storage that cannot be written now: ours, or the attempt's folder. */
function isDiskTrouble(error: unknown): boolean {
  const { code } = (error ?? {}) as { code?: unknown };
  return code === "store_unavailable" || code === "ENOSPC" || code === "EDQUOT";
}

const wordsOf = (error: unknown) => ({
  reason: error instanceof Error ? `${error.name}: ${error.message}` : String(error),
  ...(error instanceof RuntimeRefusal && { code: error.code }),
});

/** Milliseconds until time alone may change something. */
function timeToLook(run: Execution, at: Setting): number | undefined {
  const waits = [nextDeadline(run, at)];
  for (const deadline of [run.visit?.waitDeadline, run.visit?.asked?.deadline])
    if (deadline !== undefined && Number.isFinite(deadline)) waits.push(Math.max(0, deadline - at.steady));
  const known = waits.filter((wait) => wait !== undefined);
  return known.length === 0 ? undefined : Math.min(...known) + 1;
}
