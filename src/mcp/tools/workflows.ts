// Working through a hub workflow as its coordinator.
import { Type } from "@sinclair/typebox";
import { improvements } from "../../hub/improvements.ts";
import * as journal from "../../hub/journal.ts";
import * as checkpoints from "../../hub/workflows/checkpoints.ts";
import { conditionsOf } from "../../hub/workflows/conditions.ts";
import { lockRun, projectOfRun, requireCoordinator, runOf } from "../../hub/workflows/runs.ts";
import { HubError } from "../../protocol/errors.ts";
import { text } from "../../protocol/fields.ts";
import { JournalRequest } from "../../protocol/journal.ts";
import { CheckpointRequest, WaitRequest, type WorkflowRun } from "../../protocol/workflows.ts";
import { tool } from "../tool.ts";

const RUNS_MAX = 50;
const runId = text(80, { description: "Workflow run id" });

/** A run without what its coordinator need not read again. */
const brief = (run: WorkflowRun) => ({
  runId: run.id,
  definitionId: run.definitionId,
  status: run.status,
  currentStage: run.currentStage,
  ...(run.waiting && { waiting: run.waiting }),
  stages: run.stages.map(({ id, status, attempts, maxAttempts }) => ({ id, status, attempts, maxAttempts })),
});

export const list = tool({
  name: "kxm_workflow_list",
  title: "Your workflow runs",
  description: "Lists workflow runs you coordinate.",
  input: Type.Object({}),
  effect: "read",
  idempotent: true,
  run: async ({ hub, agent }) => {
    const rows = await hub.engine.read.workflows.ofCoordinator(agent.id, RUNS_MAX);
    return { result: { runs: rows.map((row) => brief(runOf(row))) }, next: "Read one with kxm_workflow_get before you work on it." };
  },
});

export const get = tool({
  name: "kxm_workflow_get",
  title: "Read a workflow run",
  description: "Reads a run you coordinate: the current stage's instructions, what it still needs and from whom.",
  input: Type.Object({ runId }),
  effect: "read",
  idempotent: true,
  run: async ({ hub, agent, input }) => {
    const row = await hub.engine.read.workflows.find(input.runId);
    if (!row) throw new HubError("workflow_not_found", `there is no workflow run ${input.runId}`);
    const run = runOf(row);
    requireCoordinator(run, agent, "get");
    const stage = run.stages.find(({ id }) => id === run.currentStage);
    const current = stage && { instructions: stage.instructions, evidence: stage.evidence };
    return { result: { ...brief(run), ...current, needs: conditionsOf(run) }, next: checkpoints.instructionFor(run, false) };
  },
});

export const checkpoint = tool({
  name: "kxm_workflow_checkpoint",
  title: "Checkpoint a stage",
  description: "Ends an attempt at the current stage: passed with every required evidence key, or warning or failed with what went wrong.",
  input: Type.Object({ runId, ...CheckpointRequest.properties }),
  effect: "write",
  idempotent: false,
  run: async ({ hub, agent, input: { runId, ...request } }) => {
    const project = await projectOfRun(hub.engine.read, runId);
    const { run, retry, completed, instruction } = await hub.engine.write(project, (tx) => checkpoints.checkpoint(tx, agent, runId, request));
    hub.metrics.add("workflow_checkpoints");
    return { result: { ...brief(run), retry, completed }, next: instruction };
  },
});

export const wait = tool({
  name: "kxm_workflow_wait",
  title: "Wait for a signal",
  description: "Puts the run to sleep until a signed signal arrives, such as CI checks. Stop working on it until a message resumes you.",
  input: Type.Object({ runId, ...WaitRequest.properties }),
  effect: "write",
  idempotent: false,
  run: async ({ hub, agent, input: { runId, ...request } }) => {
    const { run, instruction } = await hub.engine.write(await projectOfRun(hub.engine.read, runId), (tx) =>
      checkpoints.wait(tx, agent, runId, request),
    );
    hub.metrics.add("workflow_waits");
    return { result: brief(run), next: instruction };
  },
});

export const record = tool({
  name: "kxm_workflow_record",
  title: "Record in the journal",
  description: "Records a plan, decision, error, lesson or other finding of the run.",
  input: Type.Object({ runId, ...JournalRequest.properties }),
  effect: "write",
  idempotent: false,
  run: async ({ hub, agent, input: { runId, ...request } }) => {
    const entry = await hub.engine.write(await projectOfRun(hub.engine.read, runId), async (tx) => {
      const run = await lockRun(tx, runId);
      requireCoordinator(run, agent, "journal");
      return journal.record(tx, run, agent.id, request);
    });
    hub.metrics.add("workflow_journal_entries");
    return { result: { entryId: entry.id, category: entry.category }, next: "Go on with the stage." };
  },
});

export const improvementReport = tool({
  name: "kxm_improvement_report",
  title: "What the project teaches",
  description: "Ranked signals from the project's journal: repeated errors, open contradictions, lessons.",
  input: Type.Object({}),
  effect: "read",
  idempotent: true,
  run: async ({ hub, agent }) => {
    const { signals, entries } = await improvements(hub.engine.read, agent.project);
    const brief = signals.map(({ category, area, severity, frequency, priority, summary }) => ({
      category,
      area,
      severity,
      frequency,
      priority,
      summary,
    }));
    return { result: { entries, signals: brief }, next: brief.length > 0 ? "Heed the first ones in what you do next." : "Nothing is recorded yet." };
  },
});
