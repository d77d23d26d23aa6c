// The engine of one open project: takes work in, admits runs in order of arrival, drives them, and knows why a run waits.
import { RuntimeRefusal } from "../../protocol/runtime-errors.ts";
import type { Project } from "../contract.ts";
import { loadBundle } from "../project/bundle.ts";
import { CONCURRENT_RUNS_DEFAULT, compilePlan, revisionsOf } from "../project/plan.ts";
import { ProjectProblems } from "../project/problems.ts";
import { REDACTION_VERSION } from "../redact/redactor.ts";
import type { StoreTx } from "../store/event-store.ts";
import type { IntakeRow } from "../store/intake.ts";
import { type Pinned, pinHead } from "../workspace/worktrees.ts";
import type { EngineContext } from "./context.ts";
import { type Drive, load, openDrive } from "./drive.ts";
import type { Execution } from "./execution.ts";

/** Statuses in which a run takes one of the places. */
const WORKING = ["preparing", "running", "cancelling"];

/** Why a run does not execute yet. */
export type Queued = { position: number; blockers: string[] };
export type ProjectEngine = ReturnType<typeof openProjectEngine>;

/** @param project an open store that is ours */
export function openProjectEngine(project: Project, context: EngineContext) {
  const drives = new Map<string, Drive>();
  let closed = false;
  let dispatching: Promise<void> | undefined;
  let slots = CONCURRENT_RUNS_DEFAULT;

  const { store } = project;
  const working = () => [...drives.values()].filter(({ run }) => WORKING.includes(run.status)).length;
  const waiting = () => store.read.runs.open().filter(({ runId, state }) => !drives.has(runId) && ["created", "queued"].includes(state.status));

  function drive(runId: string): void {
    const opened = openDrive(context, runId, () => {
      drives.delete(runId);
      quietly(admit);
    });
    drives.set(runId, opened);
    opened.open();
  }

  /** Lets waiting runs begin, in order of arrival, as far as there are places. */
  function admit(): void {
    if (closed || store.read.controls.pause()) return;
    for (const { runId } of waiting()) {
      if (working() >= slots) return;
      drive(runId);
    }
  }

  /** For callers that have nobody to tell. */
  const quietly = (work: () => void): void => {
    try {
      work();
    } catch (error) {
      report(error);
    }
  };

  /** Makes a run of every intake message that waits, oldest first. One at a time: order of arrival is order of runs. */
  function dispatch(): Promise<void> {
    dispatching ??= dispatchAll().finally(() => {
      dispatching = undefined;
      if (!closed && nextIntake()) void dispatch().catch(report); // it came just as the last look was over
    });
    return dispatching;
  }
  async function dispatchAll(): Promise<void> {
    for (let next = nextIntake(); next && !closed; next = nextIntake()) await makeRun(next);
  }
  const report = (error: unknown) =>
    context.log("engine_failed", { level: "error", projectKey: project.key, reason: error instanceof Error ? error.message : String(error) });
  const nextIntake = (): IntakeRow | undefined => (store.read.controls.pause() ? undefined : store.read.intake.next());

  async function makeRun(intake: IntakeRow): Promise<void> {
    try {
      const pinned = await pinHead(project.root);
      if (closed) return;
      const runId = store.commit((tx) => createRun(tx, intake, pinned));
      if (working() < slots) drive(runId);
    } catch (error) {
      const sentence = refusalOf(error);
      if (sentence === undefined) throw error;
      store.commit((tx) => tx.intake.settle(intake.intakeId, { state: "refused", reason: sentence }));
    }
  }

  /** The project's files are read now and pinned; whatever happens to them later, this run executes what was compiled. */
  function createRun(tx: StoreTx, intake: IntakeRow, pinned: Pinned): string {
    const bundle = loadBundle(project.root);
    if (bundle.project.id !== project.projectId)
      throw new RuntimeRefusal(
        "project_conflict",
        `.kxm/project.yaml now has the id ${bundle.project.id}, this checkout is registered as ${project.projectId}`,
      );
    slots = bundle.project.limits?.maxConcurrentRuns ?? CONCURRENT_RUNS_DEFAULT;
    const workflowId = intake.workflowId ?? bundle.project.defaultWorkflow;
    if (!bundle.workflows.has(workflowId))
      throw new RuntimeRefusal("project_invalid", `no workflow is called ${workflowId}; there are ${[...bundle.workflows.keys()].join(", ")}`);
    const { plan, planHash } = compilePlan(bundle, workflowId);
    const { intakeId, displayTitle, promptHash, source, submittedBy } = intake;
    const identity = { workflowId, displayTitle, promptHash, source, createdBy: submittedBy };
    const row = tx.createRun(
      { ...identity, ...revisionsOf(bundle, REDACTION_VERSION), plan, planHash, detail: { intakeId } },
      { planHash, base: pinned.base, dirty: pinned.dirty },
    );
    if (working() >= slots)
      tx.append(row.runId, {
        type: "run.status_changed",
        payload: { status: "queued", previousStatus: "created", reason: `waits for one of ${slots} places` },
      });
    tx.intake.settle(intakeId, { state: "dispatched", runId: row.runId });
    return row.runId;
  }

  return {
    project,
    context,
    /** Goes on with every run that has not ended. Runs that wait for nothing of ours are driven too: they hear of decisions. */
    recover: (): void => {
      for (const { runId, state } of store.read.runs.open()) if (!["created", "queued"].includes(state.status)) quietly(() => drive(runId));
      quietly(admit);
      void dispatch().catch(report);
    },
    dispatch,
    admit: () => quietly(admit),
    /** What is known of a run: as it is driven, or as stored. @throws RuntimeRefusal run_not_found */
    run: (runId: string): Execution => drives.get(runId)?.run ?? load(context, runId),
    /** A command changed the run in the store: hear of it. */
    heard: (runId: string): void => quietly(() => drives.get(runId)?.advance()),
    /** Place in the queue and what stands before it; undefined for a run that does not queue. */
    queued: (runId: string): Queued | undefined => {
      const queue = waiting();
      const at = queue.findIndex((run) => run.runId === runId);
      if (at === -1) return undefined;
      const pause = store.read.controls.pause();
      if (pause) return { position: at + 1, blockers: [`the project is paused by ${pause.actor}${pause.reason ? `: ${pause.reason}` : ""}`] };
      const busy = [...drives.values()].filter(({ run }) => WORKING.includes(run.status)).map(({ run }) => run.runId);
      return { position: at + 1, blockers: [...busy, ...queue.slice(0, at).map((run) => run.runId)] };
    },
    slots: () => ({ running: working(), queued: waiting().length, total: slots }),
    /** Forgets the project without touching what runs. */
    close: (): void => {
      closed = true;
      for (const one of drives.values()) one.leave();
      drives.clear();
    },
    /** Ends what runs; the runs go on after the next start. */
    suspend: async (): Promise<void> => {
      closed = true;
      await Promise.all([...drives.values()].map((one) => one.suspend()));
      drives.clear();
    },
  };
}

/** The sentence of an expected refusal; undefined for anything else. */
function refusalOf(error: unknown): string | undefined {
  if (error instanceof ProjectProblems) return error.message.slice(0, 1000);
  return error instanceof RuntimeRefusal && error.code !== "store_fenced" && error.code !== "store_unavailable" ? error.message : undefined;
}
