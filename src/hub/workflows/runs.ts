// A workflow run: loading, saving, starting it from a delivery. Run, receipt, journal entry and message of one step commit together.
// Codes: workflow_not_found, workflow_forbidden, webhook_delivery_conflict, webhook_payload_replayed, workflow_target_unavailable, workflow_evidence_policy_invalid, workflow_evidence_policy_unresolvable.
import type { AgentRow, WorkflowRunRow } from "../../db/schema.ts";
import type { Stores, Tx } from "../../db/tx.ts";
import { HubError } from "../../protocol/errors.ts";
import { iso } from "../../protocol/time.ts";
import type { EvidencePolicy, ResolvedPolicy, StageState, WorkflowDefinition, WorkflowRun } from "../../protocol/workflows.ts";
import { definitionHash } from "./definitions.ts";
import { tell } from "./notices.ts";
import { promptFor } from "./prompts.ts";

const PROMPT_MAX = 32_000;

/** The run of a row, as the wire shows it. */
export const runOf = (row: WorkflowRunRow): WorkflowRun => row.record as unknown as WorkflowRun;

/** The run, locked for this write. @throws HubError workflow_not_found */
export async function lockRun(tx: Tx, id: string): Promise<WorkflowRun> {
  const row = await tx.workflows.lock(id);
  if (!row) throw new HubError("workflow_not_found", `there is no workflow run ${id}`);
  return structuredClone(runOf(row));
}

/** The project whose lane a write on this run takes. @throws HubError workflow_not_found */
export async function projectOfRun(read: Stores, id: string): Promise<string> {
  const row = await read.workflows.find(id);
  if (!row) throw new HubError("workflow_not_found", `there is no workflow run ${id}`);
  return row.project;
}

/** Refuses everybody but the coordinator. @throws HubError workflow_forbidden naming the coordinator */
export function requireCoordinator(
  run: WorkflowRun,
  agent: { id: string; project: string },
  operation: "get" | "wait" | "checkpoint" | "journal",
): void {
  if (run.targetAgentId === agent.id && run.project === agent.project) return;
  const assignedCoordinatorName = run.project === agent.project ? run.targetAgentName : undefined; // another project learns nothing
  throw new HubError(
    "workflow_forbidden",
    `only the assigned coordinator works on this run, and that is not this agent of project ${agent.project}`,
    {
      operation,
      assignedCoordinatorName,
      nextAction: "use_assigned_coordinator",
    },
  );
}

/** Writes a changed run and its one event. */
export async function saveRun(tx: Tx, run: WorkflowRun, type: string, actor: string, data: Record<string, unknown> = {}): Promise<WorkflowRun> {
  run.updatedAt = iso(tx.now);
  if (run.status === "completed" || run.status === "failed") {
    run.completedAt ??= run.updatedAt;
    delete run.currentStage;
  }
  await tx.workflows.update(rowOf(run));
  tx.append({
    project: run.project,
    topic: "workflows",
    type,
    subjectId: run.id,
    actor,
    data: { definitionId: run.definitionId, status: run.status, ...(run.currentStage && { stage: run.currentStage }), ...data },
  });
  return run;
}

const rowOf = (run: WorkflowRun): WorkflowRunRow => ({
  id: run.id,
  project: run.project,
  definitionId: run.definitionId,
  deliveryId: run.deliveryId,
  payloadHash: run.payloadHash,
  source: run.source,
  status: run.status,
  targetAgentId: run.targetAgentId,
  targetAgentName: run.targetAgentName,
  messageId: run.messageId,
  currentStage: run.currentStage ?? null,
  waitingUntil: run.waiting ? Date.parse(run.waiting.expiresAt) : null,
  createdAt: Date.parse(run.createdAt),
  updatedAt: Date.parse(run.updatedAt),
  completedAt: run.completedAt ? Date.parse(run.completedAt) : null,
  record: run as unknown as Record<string, unknown>,
});

/** A verified delivery, with everything that was computed outside the write. */
export type Delivery = { deliveryId: string; form: "envelope" | "body"; payloadHash: string; payload: unknown; event: string | undefined };
export type Started = { duplicate: true; runId: string; status: WorkflowRun["status"] } | { duplicate: false; run: WorkflowRun };

/** Starts a run from a verified delivery, or recognises the delivery. */
export async function start(tx: Tx, definition: WorkflowDefinition, delivery: Delivery): Promise<Started> {
  const { deliveryId, payloadHash } = delivery;
  if (deliveryId.trim() === "" || deliveryId.length > 128) throw new HubError("protocol_error", "the delivery id must have 1 to 128 characters");
  const known = await tx.workflows.findByDelivery(definition.id, deliveryId);
  if (known && known.payloadHash !== payloadHash) throw new HubError("webhook_delivery_conflict", "this delivery id was used for another body");
  if (known) return { duplicate: true, runId: known.id, status: known.status };
  if (delivery.form === "body" && (await tx.workflows.findByPayload(definition.id, payloadHash))) {
    throw new HubError("webhook_payload_replayed", "this body has started a run of this definition already");
  }
  const coordinator = await findAgent(tx, definition.project, definition.target);
  if (!coordinator)
    throw new HubError("workflow_target_unavailable", `the coordinator ${definition.target} has never registered in ${definition.project}`);
  const run = await newRun(tx, definition, delivery, coordinator);
  const content = promptFor(run, definition, delivery.payload);
  if (content.length > PROMPT_MAX)
    throw new HubError("protocol_error", `the prompt would have ${content.length} characters; at most ${PROMPT_MAX} are sent`);
  run.messageId = await tell(tx, run, { fromName: `webhook:${definition.id}`, content, idempotencyKey: `${definition.id}:${deliveryId}` });
  await tx.workflows.insert(rowOf(run));
  tx.append({
    project: run.project,
    topic: "workflows",
    type: "started",
    subjectId: run.id,
    actor: `webhook:${definition.id}`,
    data: { definitionId: definition.id, status: run.status, stage: run.currentStage },
  });
  return { duplicate: false, run };
}

async function newRun(tx: Tx, definition: WorkflowDefinition, delivery: Delivery, coordinator: AgentRow): Promise<WorkflowRun> {
  const at = iso(tx.now);
  const stages: StageState[] = [];
  for (const [index, stage] of definition.stages.entries()) {
    const resolved = stage.evidencePolicies && (await resolvePolicies(tx, definition.project, coordinator, stage.evidencePolicies));
    stages.push({
      ...stage,
      status: index === 0 ? "in_progress" : "pending",
      attempts: 0,
      evidence: {},
      updatedAt: at,
      ...(index === 0 && { startedAt: at }),
      ...(resolved && { resolvedEvidencePolicies: resolved }),
    });
  }
  const { maxTransitions, reproOracle, planHash, requirePlanHash, ttlMs } = definition;
  return {
    id: tx.newId("run"),
    definitionId: definition.id,
    source: definition.source,
    deliveryId: delivery.deliveryId,
    payloadHash: delivery.payloadHash,
    definitionHash: definitionHash(definition),
    ...(delivery.event && { event: delivery.event }),
    project: definition.project,
    targetAgentId: coordinator.id,
    targetAgentName: coordinator.name,
    messageId: "",
    status: "running",
    currentStage: stages[0]!.id,
    stages,
    ...(maxTransitions && { maxTransitions }),
    ...(reproOracle && { reproOracle }),
    ...(planHash && { planHashConfig: planHash }),
    ...(requirePlanHash && { requirePlanHash }),
    delivery: definition.delivery,
    ...(ttlMs && { ttlMs }),
    createdAt: at,
    updatedAt: at,
  };
}

/** An agent of a project by id, else by name; it may be offline. */
async function findAgent(tx: Tx, project: string, target: string): Promise<AgentRow | undefined> {
  const byId = target.startsWith("agt_") ? await tx.agents.find(target) : undefined;
  return byId?.project === project ? byId : tx.agents.findByName(project, target);
}

async function resolvePolicies(
  tx: Tx,
  project: string,
  coordinator: AgentRow,
  policies: Record<string, EvidencePolicy>,
): Promise<Record<string, ResolvedPolicy>> {
  const resolved: Record<string, ResolvedPolicy> = {};
  for (const [key, policy] of Object.entries(policies)) {
    const producers = new Map<string, string>();
    for (const name of policy.eligibleAgents) {
      const agent = await findAgent(tx, project, name);
      if (!agent) throw new HubError("workflow_target_unavailable", `the eligible agent ${name} has never registered in ${project}`);
      if (agent.id === coordinator.id)
        throw new HubError("workflow_evidence_policy_invalid", `${name} is the coordinator and cannot prove ${key} itself`);
      producers.set(agent.id, agent.name);
    }
    if (producers.size < policy.minProducers)
      throw new HubError("workflow_evidence_policy_unresolvable", `${key} needs ${policy.minProducers} different producers`);
    const { kind, minProducers, acceptedStatuses, degradation } = policy;
    resolved[key] = {
      kind,
      minProducers,
      eligibleProducers: [...producers].map(([id, name]) => ({ id, name })),
      acceptedStatuses,
      ...(degradation && { degradation }),
    };
  }
  return resolved;
}
