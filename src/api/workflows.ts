// Workflow runs for their coordinators, and what admins do to them.
import { Type } from "@sinclair/typebox";
import { text } from "../http/answer.ts";
import type { Hub } from "../hub/hub.ts";
import * as journal from "../hub/journal.ts";
import { retrospectiveMarkdown, retrospectiveOf } from "../hub/retrospectives.ts";
import * as checkpoints from "../hub/workflows/checkpoints.ts";
import { conditionsOf } from "../hub/workflows/conditions.ts";
import { definitionHash } from "../hub/workflows/definitions.ts";
import * as degradations from "../hub/workflows/degradations.ts";
import { failOverdue } from "../hub/workflows/endings.ts";
import { lockRun, projectOfRun, requireCoordinator, runOf } from "../hub/workflows/runs.ts";
import { HubError } from "../protocol/errors.ts";
import { oneOf } from "../protocol/fields.ts";
import { JournalRequest } from "../protocol/journal.ts";
import { CheckpointRequest, DegradationRequest, WaitRequest, type WorkflowRun } from "../protocol/workflows.ts";
import { route } from "./route.ts";

const RUNS_MAX = 200; // runs one coordinator is shown
const ENTRIES_MAX = 1_000; // journal entries one run shows
const params = Type.Object({ runId: Type.String() });
const WORKFLOW_ERRORS = ["workflow_not_found", "workflow_forbidden"] as const;

/** The run as it stands now: a wait that ran out is failed first, in a write of its own and only then. */
async function currentRun(hub: Hub, id: string): Promise<WorkflowRun> {
  const row = await hub.engine.read.workflows.find(id);
  if (!row) throw new HubError("workflow_not_found", `there is no workflow run ${id}`);
  if (row.waitingUntil === null || row.waitingUntil > hub.clock()) return runOf(row);
  const { run, timedOut } = await hub.engine.write(row.project, async (tx) => {
    const locked = await lockRun(tx, id);
    return { timedOut: await failOverdue(tx, locked), run: locked };
  });
  if (timedOut) hub.metrics.add("workflow_wait_timeouts"); // a rule may run again: what it did is counted once it is stored
  return run;
}

const listWorkflows = route({
  method: "GET",
  path: "/v1/workflows",
  operationId: "listWorkflows",
  tag: "workflows",
  summary: "Runs whose coordinator is the caller.",
  credential: "agent",
  answers: { 200: Type.Object({ runs: Type.Array(Type.Unknown()) }) },
  errors: [],
  run: async ({ hub, caller }) => {
    const rows = await hub.engine.read.workflows.ofCoordinator(caller.agent.id, RUNS_MAX);
    const runs = rows.filter(({ project }) => project === caller.project);
    return { status: 200, body: { runs: await Promise.all(runs.map(({ id }) => currentRun(hub, id))) } };
  },
});

const getWorkflow = route({
  method: "GET",
  path: "/v1/workflows/:runId",
  operationId: "getWorkflow",
  tag: "workflows",
  summary: "A run with its journal and what its current stage still needs.",
  credential: "agent",
  params,
  answers: { 200: Type.Object({ run: Type.Unknown(), journal: Type.Array(Type.Unknown()), conditions: Type.Unknown() }) },
  errors: WORKFLOW_ERRORS,
  run: async ({ hub, caller, params }) => {
    const run = await currentRun(hub, params.runId);
    requireCoordinator(run, caller.agent, "get");
    const entries = await hub.engine.read.journal.ofRun(run.id, ENTRIES_MAX);
    return { status: 200, body: { run, journal: entries.map(journal.entryOf), conditions: conditionsOf(run) } };
  },
});

const checkpointWorkflow = route({
  method: "POST",
  path: "/v1/workflows/:runId/checkpoints",
  operationId: "checkpointWorkflow",
  tag: "workflows",
  summary: "Ends an attempt at the current stage with its evidence.",
  credential: "agent",
  params,
  body: CheckpointRequest,
  answers: { 200: Type.Object({ run: Type.Unknown(), retry: Type.Boolean(), completed: Type.Boolean(), instruction: Type.String() }) },
  errors: [
    ...WORKFLOW_ERRORS,
    "invalid_checkpoint_status",
    "invalid_workflow_evidence",
    "invalid_workflow_evidence_refs",
    "workflow_terminal",
    "workflow_stage_not_found",
    "workflow_stage_out_of_order",
    "weakened_reproduction",
    "plan_hash_required",
    "workflow_evidence_incomplete",
    "workflow_evidence_policy_missing",
    "workflow_provenance_invalid",
  ],
  run: async ({ hub, caller, params, body }) => {
    const result = await hub.engine.write(await projectOfRun(hub.engine.read, params.runId), (tx) =>
      checkpoints.checkpoint(tx, caller.agent, params.runId, body),
    );
    hub.metrics.add("workflow_checkpoints");
    return { status: 200, body: result };
  },
});

const waitWorkflow = route({
  method: "POST",
  path: "/v1/workflows/:runId/waits",
  operationId: "waitWorkflow",
  tag: "workflows",
  summary: "Puts the run to sleep until a signed signal or the timeout.",
  credential: "agent",
  params,
  body: WaitRequest,
  answers: { 202: Type.Object({ run: Type.Unknown(), instruction: Type.String() }) },
  errors: [
    ...WORKFLOW_ERRORS,
    "invalid_signal_key",
    "workflow_not_running",
    "workflow_stage_not_found",
    "workflow_stage_out_of_order",
    "invalid_workflow_evidence",
    "invalid_workflow_evidence_refs",
    "workflow_provenance_invalid",
  ],
  run: async ({ hub, caller, params, body }) => {
    const result = await hub.engine.write(await projectOfRun(hub.engine.read, params.runId), (tx) =>
      checkpoints.wait(tx, caller.agent, params.runId, body),
    );
    hub.metrics.add("workflow_waits");
    return { status: 202, body: result };
  },
});

const recordJournal = route({
  method: "POST",
  path: "/v1/workflows/:runId/journal",
  operationId: "recordJournal",
  tag: "journal",
  summary: "Records a plan, decision, finding or lesson of the run.",
  credential: "agent",
  params,
  body: JournalRequest,
  answers: { 201: Type.Object({ entry: Type.Unknown() }) },
  errors: [
    ...WORKFLOW_ERRORS,
    "invalid_journal_category",
    "invalid_journal_severity",
    "invalid_journal_relation",
    "invalid_improvement_area",
    "journal_evidence_required",
  ],
  run: async ({ hub, caller, params, body }) => {
    const entry = await hub.engine.write(await projectOfRun(hub.engine.read, params.runId), async (tx) => {
      const run = await lockRun(tx, params.runId);
      requireCoordinator(run, caller.agent, "journal");
      return journal.record(tx, run, caller.agent.id, body);
    });
    hub.metrics.add("workflow_journal_entries");
    return { status: 201, body: { entry } };
  },
});

const degradeWorkflow = route({
  method: "POST",
  path: "/v1/workflows/:runId/degradations",
  operationId: "degradeWorkflow",
  tag: "workflows",
  summary: "Lowers the quorum of one requirement for the current attempt, with a reason.",
  credential: "admin-configured",
  params,
  body: DegradationRequest,
  answers: {
    201: Type.Object({ run: Type.Unknown(), approval: Type.Unknown(), duplicate: Type.Boolean() }),
    200: Type.Object({ run: Type.Unknown(), approval: Type.Unknown(), duplicate: Type.Boolean() }),
  },
  errors: [
    "workflow_not_found",
    "workflow_terminal",
    "workflow_stage_not_found",
    "workflow_stage_out_of_order",
    "workflow_degradation_forbidden",
    "workflow_degradation_conflict",
  ],
  run: async ({ hub, caller, params, body }) => {
    const project = await projectOfRun(hub.engine.read, params.runId);
    if (caller.project !== null && caller.project !== project) throw new HubError("workflow_not_found", `there is no workflow run ${params.runId}`);
    const result = await hub.engine.write(project, (tx) =>
      degradations.degrade(tx, params.runId, body, { actor: caller.actor, role: caller.role, origin: "api" }),
    );
    if (!result.duplicate) hub.metrics.add("workflow_degradations");
    return { status: result.duplicate ? 200 : 201, body: result };
  },
});

const getRetrospective = route({
  method: "GET",
  path: "/v1/workflows/:runId/retrospective",
  operationId: "getRetrospective",
  tag: "workflows",
  summary: "What was asked, how each stage went and what the journal holds, as JSON or Markdown.",
  credential: "agent-or-viewer",
  params,
  query: Type.Object({ format: oneOf(["json", "md"], { default: "json" }) }),
  answers: { 200: Type.Unknown() },
  errors: ["workflow_not_found"],
  run: async ({ hub, caller, params, query, headers }) => {
    const run = await currentRun(hub, params.runId);
    if (caller.project !== null && caller.project !== run.project)
      throw new HubError("workflow_not_found", `there is no workflow run ${params.runId}`);
    const report = retrospectiveOf(run, (await hub.engine.read.journal.ofRun(run.id, ENTRIES_MAX)).map(journal.entryOf));
    return query.format === "json"
      ? { status: 200, body: report }
      : text(200, retrospectiveMarkdown(report), "text/markdown; charset=utf-8", headers);
  },
});

const listDefinitions = route({
  method: "GET",
  path: "/v1/workflow-definitions",
  operationId: "listWorkflowDefinitions",
  tag: "workflows",
  summary: "The workflow definitions in force, without their secrets.",
  credential: "viewer",
  answers: { 200: Type.Object({ definitions: Type.Array(Type.Unknown()) }) },
  errors: [],
  run: ({ hub, caller }) => {
    const shown = [...hub.definitions.values()].filter(({ project }) => caller.project === null || caller.project === project);
    return {
      status: 200,
      body: {
        definitions: shown.map(({ secret: _, signalSecret: __, ...definition }) => ({
          ...definition,
          definitionHash: definitionHash({ ...definition, secret: "" }),
        })),
      },
    };
  },
});

const reloadDefinitions = route({
  method: "POST",
  path: "/v1/workflow-definitions/reload",
  operationId: "reloadWorkflowDefinitions",
  tag: "workflows",
  summary: "Reads the definitions' file again, those of all projects; a file with problems keeps the old set and says why.",
  credential: "admin-configured",
  answers: { 200: Type.Object({ count: Type.Integer() }) },
  errors: ["invalid_definitions"],
  run: ({ hub, caller }) => {
    if (caller.project !== null) throw new HubError("role_forbidden", "only an admin of all projects reads the definitions again");
    return { status: 200, body: { count: hub.reloadDefinitions() } };
  },
});

export const workflowRoutes = [
  listWorkflows,
  getWorkflow,
  checkpointWorkflow,
  waitWorkflow,
  recordJournal,
  degradeWorkflow,
  getRetrospective,
  listDefinitions,
  reloadDefinitions,
];
