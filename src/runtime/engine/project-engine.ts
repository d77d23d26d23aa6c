// The engine of one open project: takes work in, admits runs in order of arrival, drives them, and knows why a run waits.
import { RuntimeRefusal } from "../../protocol/runtime-errors.ts";
import type { Project } from "../contract.ts";
import { CONCURRENT_RUNS_DEFAULT } from "../project/plan.ts";
import { ProjectProblems } from "../project/problems.ts";
import type { IntakeRow } from "../store/intake.ts";
import type { EngineContext } from "./context.ts";
import { createRun, planRun } from "./create-run.ts";
import { Drive } from "./drive.ts";
import type { Attempt, Execution } from "./execution.ts";
import { catchUp, load } from "./load.ts";

/** Statuses in which a run that is driven takes one of the places. */
const WORKING = ["created", "queued", "preparing", "running", "cancelling"];
/** After a failure of the store the work that waits is looked at again this much later. */
const AGAIN_MS = 1000;

/** Why a run does not execute yet. */
export type Queued = { position: number; blockers: string[] };

export class ProjectEngine {
  private readonly drives = new Map<string, Drive>();
  private closed = false;
  private dispatching: Promise<void> | undefined;
  /** As the project's files said when the last run was made. */
  private places: number;

  /** @param project an open store that is ours */
  constructor(
    readonly project: Project,
    readonly context: EngineContext,
  ) {
    const [last] = project.store.read.runs.list({ limit: 1 });
    this.places = Number(last?.detail["places"] ?? CONCURRENT_RUNS_DEFAULT);
  }

  /** Goes on with every run that has not ended, and with the work that waits. */
  recover(): void {
    for (const { runId, state } of this.project.store.read.runs.open())
      if (!["created", "queued"].includes(state.status)) this.quietly(() => this.drive(runId));
    this.admit();
    this.takeIn();
  }

  /** What is known of a run: as it is driven, or as stored. @throws RuntimeRefusal run_not_found */
  run(runId: string): Execution {
    const drive = this.drives.get(runId);
    return drive ? catchUp(this.context, drive.run) : load(this.context, runId);
  }

  /** Milliseconds an attempt has run, as its drive counts. */
  ranMs(runId: string): (attempt: Attempt) => number {
    return this.drives.get(runId)?.ranMs ?? (() => 0);
  }

  /** A command changed the run in the store: hear of it. */
  heard(runId: string): void {
    this.quietly(() => {
      const drive = this.drives.get(runId);
      if (drive) drive.heard();
      // A run that waits in the queue is not driven: what was asked of it is heard by opening it.
      else if (this.run(runId).cancel) this.drive(runId);
    });
    this.admit();
  }

  /** Makes a run of every message that waits, oldest first. One at a time: the order of arrival is the order of runs. */
  dispatch(): Promise<void> {
    this.dispatching ??= this.dispatchAll().then(
      () => {
        this.dispatching = undefined;
        if (this.nextIntake()) this.takeIn(); // it came just as the last look was over
      },
      (error) => {
        this.dispatching = undefined;
        this.lookAgain();
        throw error;
      },
    );
    return this.dispatching;
  }

  /** The same for callers that have nobody to tell. */
  takeIn(): void {
    if (this.closed) return;
    void this.dispatch().catch((error) => this.report(error));
  }

  /** Lets waiting runs begin, in order of arrival, as far as there are places. */
  admit(): void {
    this.quietly(() => {
      if (this.closed || this.project.store.read.controls.pause()) return;
      for (const runId of this.waiting()) {
        if (this.working().length >= this.places) return;
        this.drive(runId);
      }
    });
  }

  /** Place in the queue and what stands before it; undefined for a run that does not queue. */
  queued(runId: string): Queued | undefined {
    const queue = this.waiting();
    const at = queue.indexOf(runId);
    if (at === -1) return undefined;
    const pause = this.project.store.read.controls.pause();
    const blockers = pause
      ? [`the project is paused by ${pause.actor}${pause.reason ? `: ${pause.reason}` : ""}`]
      : [...this.working(), ...queue.slice(0, at)];
    return { position: at + 1, blockers };
  }

  slots(): { running: number; queued: number; total: number } {
    return { running: this.working().length, queued: this.waiting().length, total: this.places };
  }

  /** Forgets the project without touching what runs. */
  close(): void {
    this.closed = true;
    for (const drive of this.drives.values()) drive.leave();
    this.drives.clear();
  }

  /** Ends what runs; the runs go on after the next start. */
  async suspend(): Promise<void> {
    this.closed = true;
    await Promise.all([...this.drives.values()].map((drive) => drive.suspend()));
    this.drives.clear();
  }

  /** A failed write may have happened all the same: runs that wait are looked at, too. */
  private lookAgain(): void {
    this.context.clock.after(AGAIN_MS, () => {
      this.admit();
      this.takeIn();
    });
  }

  private drive(runId: string): void {
    const ended = () => {
      this.drives.delete(runId);
      this.admit();
    };
    const drive = new Drive(this.context, runId, { ended, rests: () => this.admit() });
    this.drives.set(runId, drive);
    drive.open();
  }

  private working(): string[] {
    return [...this.drives.values()].filter(({ run }) => WORKING.includes(run.status)).map(({ runId }) => runId);
  }

  private waiting(): string[] {
    const open = this.project.store.read.runs.open();
    return open.filter(({ runId, state }) => !this.drives.has(runId) && ["created", "queued"].includes(state.status)).map(({ runId }) => runId);
  }

  private nextIntake(): IntakeRow | undefined {
    const { store } = this.project;
    return this.closed || store.read.controls.pause() ? undefined : store.read.intake.next();
  }

  private async dispatchAll(): Promise<void> {
    for (let next = this.nextIntake(); next; next = this.nextIntake()) await this.makeRun(next);
  }

  private async makeRun(intake: IntakeRow): Promise<void> {
    const { project } = this;
    try {
      const { worktrees, loadBundle } = this.context.machine;
      const planned = planRun(project, this.context, loadBundle(project.root), intake);
      const pinned = await worktrees.pinHeads(project.root, planned.plan.repositories);
      if (planned.carried) await worktrees.requireCommits(project.root, planned.plan.repositories, planned.carried.repositories);
      if (this.closed) return;
      const { runId, places, admitted } = createRun(project, planned, intake, pinned, (limit) => this.working().length < limit);
      this.places = places;
      if (admitted) this.drive(runId);
    } catch (error) {
      const sentence = refusalOf(error);
      if (sentence === undefined) throw error;
      project.store.commit((tx) => tx.intake.settle(intake.intakeId, { state: "refused", reason: sentence }));
    }
  }

  private quietly(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.report(error);
      if (!this.closed) this.lookAgain();
    }
  }

  private report(error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    this.context.log("engine_failed", { level: "error", projectKey: this.project.key, reason });
  }
}

/** The sentence of a refusal that is the work's own; undefined for anything else. */
function refusalOf(error: unknown): string | undefined {
  if (error instanceof ProjectProblems) return error.message.slice(0, 1000);
  if (!(error instanceof RuntimeRefusal) || error.code.startsWith("store_")) return undefined;
  return error.options.hint ? `${error.message}. ${error.options.hint}` : error.message;
}
