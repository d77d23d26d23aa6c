// The engine as the supervisor knows it: one per process, over all open projects. Commands change a run only through the effects below, in the
// transaction that records the command; what follows from them happens after it.
import { RuntimeRefusal } from "../../protocol/runtime-errors.ts";
import type { CommandEffects, Engine, MakeEngine, Project } from "../contract.ts";
import type { StoreTx } from "../store/event-store.ts";
import type { NewEvent } from "../store/events.ts";
import type { Execution } from "./execution.ts";
import { isOver } from "./execution.ts";
import { cancel, decideApproval, resolve, signal } from "./operations.ts";
import { openProjectEngine, type ProjectEngine } from "./project-engine.ts";
import { routesOf } from "./routes.ts";

/** Makes the engine. Nothing runs before a project is opened. */
export const makeEngine: MakeEngine = (parts) => {
  const engines = new Map<string, ProjectEngine>();

  const of = (project: Project): ProjectEngine => {
    const engine = engines.get(project.key);
    if (!engine) throw new RuntimeRefusal("store_unavailable", `project ${project.name} is not open`);
    return engine;
  };
  /** Things that follow once the transaction has ended. */
  const afterwards = (work: () => void) => void queueMicrotask(work);

  /** An operation on one run: its events are appended here; the drive hears of them afterwards. */
  function change(tx: StoreTx, project: Project, runId: string | undefined, events: (run: Execution) => NewEvent[]): { runId: string } {
    if (!runId) throw new RuntimeRefusal("runtime_protocol_error", "the command names no run");
    const engine = of(project);
    for (const event of events(engine.run(runId))) tx.append(runId, event);
    afterwards(() => {
      engine.heard(runId);
      engine.admit();
    });
    return { runId };
  }

  const effects: CommandEffects = {
    start: (tx, { commandId, payload, actor, source }, project) => {
      const { prompt, workflowId, displayTitle, intakeKey } = payload;
      const promptHash = prompt === undefined || prompt === "" ? undefined : project.prompts.keep(prompt);
      const title = displayTitle ?? prompt?.trim().split("\n")[0]?.slice(0, 120);
      const { intake } = tx.intake.submit({
        intakeKey: intakeKey ?? commandId,
        source,
        submittedBy: actor,
        workflowId,
        displayTitle: title || undefined,
        promptHash,
      });
      afterwards(() => void of(project).dispatch().catch(report(project)));
      return { intakeId: intake.intakeId, state: intake.state, ...(intake.runId && { runId: intake.runId }) };
    },
    approve: (tx, { runId, actor, payload }, project) => change(tx, project, runId, (run) => decideApproval(run, "approved", actor, payload)),
    reject: (tx, { runId, actor, payload }, project) => change(tx, project, runId, (run) => decideApproval(run, "rejected", actor, payload)),
    signal: (tx, { runId, actor, payload, commandId }, project) => change(tx, project, runId, (run) => signal(run, actor, payload, commandId)),
    cancel: (tx, { runId, actor, payload }, project) => change(tx, project, runId, (run) => cancel(run, actor, payload.reason)),
    resolve: (tx, { runId, actor, payload }, project) => change(tx, project, runId, (run) => resolve(run, actor, payload, () => parts.newId("evd"))),
    retry: (tx, { runId, actor, source, commandId }, project) => {
      const run = of(project).run(runId ?? "");
      if (!isOver(run))
        throw new RuntimeRefusal("run_not_accepting", `run ${run.runId} is ${run.status}: only a run that has ended can be run again`);
      const { workflowId, displayTitle, promptHash } = project.store.read.runs.find(run.runId)!;
      const { intake } = tx.intake.submit({ intakeKey: commandId, source, submittedBy: actor, workflowId, displayTitle, promptHash });
      afterwards(() => void of(project).dispatch().catch(report(project)));
      return { intakeId: intake.intakeId, retryOf: run.runId };
    },
    pause: (tx, { actor, payload }) => ({ paused: true, changed: tx.controls.pause(actor, payload.reason) }),
    resume: (tx, { actor }, project) => {
      afterwards(() => {
        of(project).admit();
        void of(project).dispatch().catch(report(project));
      });
      return { paused: false, changed: tx.controls.resume(actor) };
    },
  };

  const report = (project: Project) => (error: unknown) =>
    parts.log("engine_failed", { level: "error", projectKey: project.key, reason: error instanceof Error ? error.message : String(error) });

  const engine: Engine = {
    effects,
    opened: (project) => {
      engines.get(project.key)?.close();
      const { clock, newId, log } = parts;
      const context = {
        store: project.store,
        prompts: project.prompts,
        root: project.root,
        folder: project.folder,
        env: process.env,
        clock,
        newId,
        log,
      };
      const opened = openProjectEngine(project, context);
      engines.set(project.key, opened);
      opened.recover();
    },
    closed: (project) => {
      engines.get(project.key)?.close();
      engines.delete(project.key);
    },
    routes: routesOf({ parts, engines }),
    report: () => {
      const all = [...engines.values()].map((one) => one.slots());
      const sum = (pick: (one: { running: number; queued: number; total: number }) => number) => all.reduce((total, one) => total + pick(one), 0);
      return { slots: { running: sum((one) => one.running), queued: sum((one) => one.queued), total: sum((one) => one.total) } };
    },
    stop: async (withinMs) => {
      const suspended = Promise.all([...engines.values()].map((one) => one.suspend()));
      let timer: ReturnType<typeof setTimeout> | undefined;
      const late = new Promise<void>((done) => {
        timer = setTimeout(done, withinMs);
      });
      await Promise.race([suspended, late]);
      clearTimeout(timer);
      for (const one of engines.values()) one.close();
      engines.clear();
    },
  };
  return engine;
};
