// What each command does to a project and its runs, inside the transaction that records it. What follows from it happens after the transaction.
import { RuntimeRefusal } from "../../protocol/runtime-errors.ts";
import type { CommandEffects, EngineParts, Project } from "../contract.ts";
import type { StoreTx } from "../store/event-store.ts";
import type { NewEvent } from "../store/events.ts";
import type { NewIntake } from "../store/intake.ts";
import { coordinatorFor } from "./coordinators.ts";
import type { Execution } from "./execution.ts";
import { cancel, decideApproval, resolve, signal } from "./operations.ts";
import type { ProjectEngine } from "./project-engine.ts";
import { requireRetryable } from "./retry.ts";

const TITLE_MAX = 120;

/** @param of the engine of an open project */
export function commandEffects(parts: EngineParts, of: (project: Project) => ProjectEngine): CommandEffects {
  /** What people write beside a prompt is kept in rows of its own: without secrets, as everything that is kept. */
  const clean = (text: string | undefined) => (text === undefined ? undefined : parts.redactor.secrets(text).text);
  const afterwards = (work: () => void) => queueMicrotask(work);

  /** An operation on one run: its events are appended here; its drive hears of them afterwards. */
  function change(tx: StoreTx, project: Project, runId: string | undefined, events: (run: Execution) => NewEvent[]): { runId: string } {
    if (!runId) throw new RuntimeRefusal("runtime_protocol_error", "the command names no run");
    const engine = of(project);
    for (const event of events(engine.run(runId))) tx.append(runId, event);
    afterwards(() => engine.heard(runId));
    return { runId };
  }

  function submit(tx: StoreTx, project: Project, work: NewIntake): { intakeId: string; state: string; runId?: string } {
    const engine = of(project);
    const coordinatorId = coordinatorFor(tx.coordinators.list(), work.submittedBy, work.workflowId);
    const { intake } = tx.intake.submit({ ...work, ...(coordinatorId && { coordinatorId }) });
    afterwards(() => engine.takeIn());
    return { intakeId: intake.intakeId, state: intake.state, ...(intake.runId && { runId: intake.runId }) };
  }

  return {
    start: (tx, { commandId, payload, actor, source }, project) => {
      const { prompt, workflowId, displayTitle, intakeKey } = payload;
      const promptHash = prompt ? project.prompts.keep(prompt) : undefined;
      const title = clean(displayTitle ?? prompt?.trim().split("\n")[0])?.slice(0, displayTitle ? 200 : TITLE_MAX);
      return submit(tx, project, {
        intakeKey: intakeKey ?? commandId,
        source,
        submittedBy: actor,
        workflowId,
        displayTitle: title || undefined,
        promptHash,
      });
    },
    retry: (tx, { runId, actor, source, commandId, payload }, project) => {
      const retryOf = runId ?? "";
      requireRetryable(project, retryOf, payload.stepId);
      const { workflowId, displayTitle, promptHash } = project.store.read.runs.find(retryOf)!;
      const work = { intakeKey: commandId, source, submittedBy: actor, workflowId, displayTitle, promptHash, retryOf, retryStepId: payload.stepId };
      return { ...submit(tx, project, work), retryOf };
    },
    approve: (tx, { runId, actor, payload }, project) => change(tx, project, runId, (run) => decideApproval(run, "approved", actor, payload)),
    reject: (tx, { runId, actor, payload }, project) => change(tx, project, runId, (run) => decideApproval(run, "rejected", actor, payload)),
    signal: (tx, { runId, actor, payload, commandId }, project) => change(tx, project, runId, (run) => signal(run, actor, payload, commandId)),
    cancel: (tx, { runId, actor, payload }, project) => change(tx, project, runId, (run) => cancel(run, actor, payload.reason)),
    resolve: (tx, { runId, actor, payload }, project) => change(tx, project, runId, (run) => resolve(run, actor, payload, parts.newId)),
    "sync-retry": (tx, { payload }) => ({ requeued: tx.outbox.retry(payload.code) }),
    pause: (tx, { actor, payload }) => ({ paused: true, changed: tx.controls.pause(actor, clean(payload.reason)) }),
    resume: (tx, { actor }, project) => {
      const engine = of(project);
      afterwards(() => {
        engine.admit();
        engine.takeIn();
      });
      return { paused: false, changed: tx.controls.resume(actor) };
    },
  };
}
