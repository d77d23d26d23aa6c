// The commands that only change what waits: work is taken in, a project is paused and goes on. What makes runs go on adds its own effects to these.
import { RuntimeRefusal } from "../../src/protocol/runtime-errors.ts";
import type { CommandEffects, MakeEngine, Project } from "../../src/runtime/contract.ts";

const noRun = () => {
  throw new RuntimeRefusal("run_not_accepting", "no run on this machine waits for this");
};

/** Takes work in and holds it; nothing is executed. */
export const waitingEffects: Pick<CommandEffects, "start" | "pause" | "resume"> = {
  start: (tx, { commandId, payload, actor, source }, project: Project) => {
    const { prompt, workflowId, displayTitle, intakeKey = commandId } = payload;
    const promptHash = prompt ? project.prompts.keep(prompt) : undefined;
    const { intake } = tx.intake.submit({ intakeKey, source, submittedBy: actor, workflowId, displayTitle, promptHash });
    return { intakeId: intake.intakeId, state: intake.state };
  },
  pause: (tx, { payload, actor }) => ({ paused: true, changed: tx.controls.pause(actor, payload.reason) }),
  resume: (tx, { actor }) => ({ paused: false, changed: tx.controls.resume(actor) }),
};

const pushAgain: CommandEffects["sync-retry"] = (tx, { payload }) => ({ requeued: tx.outbox.retry(payload.code) });

/** An engine that only takes work in. */
export const intakeEngine: MakeEngine = () => ({
  effects: { ...waitingEffects, approve: noRun, reject: noRun, signal: noRun, retry: noRun, cancel: noRun, resolve: noRun, "sync-retry": pushAgain },
  opened: () => {},
  closed: () => {},
  routes: [],
  report: () => ({}),
  stop: async () => {},
});
