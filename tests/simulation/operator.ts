// The people of a simulation: they start runs, answer what is asked, and say the truth about effects, at the machine or through the hub. What they have
// asked for once must be done once.
import type { ProjectCommand } from "../../src/runtime/contract.ts";
import type { OpenProject } from "../../src/runtime/projects.ts";
import { executionOf, openRuns, runsOf } from "./checks.ts";
import type { SimulatedHub } from "./hub.ts";
import type { SimulatedRuntime } from "./runtimes.ts";
import type { Schedule } from "./schedule.ts";

const WORKFLOWS = ["main", "panel", "signal", "race", "quick"];
const AGAIN_MS = 1_500;

export type SimulatedOperator = ReturnType<typeof simulatedOperator>;
type Wish = Pick<ProjectCommand, "kind" | "payload"> & { runId?: string };

export function simulatedOperator(schedule: Schedule, hub: SimulatedHub, runtime: SimulatedRuntime) {
  let wishes = 0;
  /** Commands that somebody asked for, by id: the hub's own once it took one. */
  const asked: string[] = [];
  /** What was answered already: nobody decides twice about the same thing. */
  const answered = new Set<string>();

  function ask(wish: Wish) {
    const number = ++wishes;
    if (schedule.oneIn(2)) return locally(`cmd_local_${runtime.number}_${number}`, wish);
    void throughHub(number, wish);
  }

  function locally(commandId: string, wish: Wish) {
    if (!asked.includes(commandId)) asked.push(commandId);
    const done = runtime.apply({ commandId, actor: "operator:ana", source: "cli", ...wish } as ProjectCommand);
    if (!done) schedule.after(AGAIN_MS, `${runtime.number} asks again`, () => locally(commandId, wish));
  }

  async function throughHub(number: number, { kind, runId, payload }: Wish) {
    const runtimeId = runtime.runtimeId;
    const answer = await hub.call("POST", "/v1/runtime/commands", { project: "demo", runtimeId, projectId: runtime.projectId, runId, kind, payload });
    if (answer?.status === 201) asked.push(answer.body.command.id);
    // The hub is away, or has not heard of this Runtime yet.
    else
      schedule.after(AGAIN_MS, `${runtime.number} asks the hub again`, () =>
        locally(`cmd_local_${runtime.number}_${number}`, { kind, runId, payload } as Wish),
      );
  }

  /** Answers what a run waits for, if it waits for somebody. */
  function answer(runId: string) {
    const project = runtime.project();
    if (!project) return;
    const run = executionOf(project, runId);
    const { asked: question, waitDeadline, signal } = run.visit ?? {};
    const once = (key: string): boolean => !answered.has(key) && answered.add(key) !== undefined;
    if (question && !run.visit?.answer && once(question.approvalId)) {
      const { approvalId, contentHash } = question;
      if (schedule.oneIn(8)) ask({ kind: "approve", runId, payload: { approvalId, contentHash: `sha256:${"0".repeat(64)}` } }); // of something else
      ask({ kind: schedule.oneIn(5) ? "reject" : "approve", runId, payload: { approvalId, contentHash } });
    } else if (waitDeadline !== undefined && !signal && once(`${runId} ${run.visit!.stepAttempt}`))
      ask({ kind: "signal", runId, payload: { signal: "go", status: "passed" } });
    for (const { effectId, attemptId } of Object.values(run.uncertain)) if (once(effectId)) resolve(runId, effectId, attemptId);
  }

  /** Asks for a run again, also for one that has not ended and cannot be. */
  function again(project: OpenProject) {
    const runId = schedule.pick(runsOf(project));
    const steps = Object.keys(executionOf(project, runId).counts);
    const stepId = steps.length > 0 && schedule.oneIn(2) ? schedule.pick(steps) : undefined;
    ask({ kind: "retry", runId, payload: { ...(stepId && { stepId }) } });
  }

  function resolve(runId: string, effectId: string, attemptId: string) {
    if (runtime.machine.running(attemptId)) schedule.troubles.push(`${runId} is uncertain about ${attemptId}, which still runs`);
    const effect = runtime.machine.effects.find((one) => one.attemptId === attemptId && !one.undone);
    const truths = effect
      ? (["mark-completed", "compensate-and-retry", "mark-failed", "cancel"] as const)
      : (["confirm-absent-and-retry", "mark-failed"] as const);
    const action = schedule.pick(truths);
    if (effect && action !== "mark-completed") effect.undone = true; // they clean up before they say so
    ask({ kind: "resolve", runId, payload: { action, effectId, reason: "looked" } });
  }

  return {
    asked,
    start: () => ask({ kind: "start", payload: { workflowId: schedule.pick(WORKFLOWS), prompt: `work ${wishes}` } }),
    pause: () => ask({ kind: "pause", payload: {} }),
    resume: () => ask({ kind: "resume", payload: {} }),
    /** Looks after one run, or ends it. */
    lookAfter: (mayCancel: boolean) => {
      const project = runtime.project();
      const open = project ? openRuns(project) : [];
      if (open.length === 0) return;
      const runId = schedule.pick(open);
      if (mayCancel && schedule.oneIn(15)) return ask({ kind: "cancel", runId, payload: {} });
      if (mayCancel && schedule.oneIn(20)) return again(project!);
      answer(runId);
    },
    /** Looks after every run. */
    lookAfterAll: () => {
      const project = runtime.project();
      for (const runId of project ? openRuns(project) : []) answer(runId);
    },
    /** Commands that were not done, or done more than once. */
    wrongs: (): string[] => {
      const project = runtime.project();
      if (!project) return [];
      const done = Map.groupBy(project.store.read.commands.list(10_000), ({ commandId }) => commandId);
      return asked.flatMap((id) => {
        const times = done.get(id)?.length ?? 0;
        return times === 1 ? [] : [`command ${id} was done ${times} times`];
      });
    },
  };
}
