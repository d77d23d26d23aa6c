// What happens when a stage ends: evidence is kept or not, attempts are counted, a transition is taken or refused by its budget, the run goes on or ends.
// Used by checkpoints and by signals, which are checkpoints of a waiting stage.
import type { Tx } from "../../db/tx.ts";
import { sha256 } from "../../protocol/canonical.ts";
import { HubError } from "../../protocol/errors.ts";
import { own } from "../../protocol/own.ts";
import { iso } from "../../protocol/time.ts";
import type { Area, CapturedHash, EvidencePlace, StageState, TransitionRule, VerifiedPeerEvidence, WorkflowRun } from "../../protocol/workflows.ts";
import { AUDIT_ESCALATION, AUDIT_ESCALATION_MS, TERMINAL } from "../../protocol/workflows.ts";
import * as journal from "../journal.ts";
import { type Requirement, requirementsOf } from "./evidence.ts";

/** What a coordinator or a signal says of a stage. */
export type Ending = {
  status: "passed" | "warning" | "failed";
  outcome: string | undefined;
  summary: string;
  evidence: Record<string, string>;
  verified: Map<string, VerifiedPeerEvidence[]>;
  /** Who says so: the journal's author. */
  actor: string;
  /** Area of the error entry when the stage has none. */
  fallbackArea: Area;
};

/** The current stage by id. @throws HubError workflow_stage_not_found, workflow_stage_out_of_order */
export function currentStage(run: WorkflowRun, stageId: string, status: "in_progress" | "waiting"): StageState {
  const stage = run.stages.find(({ id }) => id === stageId);
  if (!stage) throw new HubError("workflow_stage_not_found", `the run has no stage ${stageId}`);
  if (run.currentStage !== stageId || stage.status !== status)
    throw new HubError("workflow_stage_out_of_order", `the current stage is ${run.currentStage ?? "none"}, not ${stageId}`);
  return stage;
}

/**
 * Refuses an ending that may not be: weakened reproduction, missing plan hash, missing evidence. Changes nothing.
 * @throws HubError weakened_reproduction, plan_hash_required, workflow_evidence_incomplete
 */
export function checkEnding(run: WorkflowRun, stage: StageState, ending: Pick<Ending, "status" | "evidence" | "verified">): void {
  const { oracle, planHash, requirePlanHash } = run;
  const again = oracle && own(ending.evidence, oracle.evidenceKey);
  if (oracle && again !== undefined && sha256(again) !== oracle.sha256) {
    throw new HubError("weakened_reproduction", `the evidence for ${oracle.evidenceKey} differs from the reproduction that was captured`);
  }
  if (requirePlanHash?.includes(stage.id) && !planHash)
    throw new HubError("plan_hash_required", `stage ${stage.id} needs the plan hash, which is not captured yet`);
  if (ending.status !== "passed") return;
  const requirements = requirementsOf(stage, ending.evidence, ending.verified);
  const missing = requirements.filter(({ met }) => !met);
  if (missing.length === 0) return;
  const names = missing.map(({ requirementKey }) => requirementKey);
  throw new HubError("workflow_evidence_incomplete", `stage ${stage.id} still needs: ${names.join(", ")}`, {
    missingRequirements: names,
    providedRequirements: [
      ...new Set([
        ...Object.keys(stage.evidence),
        ...Object.keys(ending.evidence),
        ...requirements.filter(({ met }) => met).map(({ requirementKey }) => requirementKey),
      ]),
    ],
    peerRequirements: requirements.filter(({ kind }) => kind === "peer-reply").map(({ kind: _, values: __, ...peer }) => peer),
    hint: `Provide ${names.join(", ")} for attempt ${stage.attempts + 1}, then checkpoint again.`,
  });
}

/** Ends a stage as checked. Changes `run` in place and writes journal entries; the caller saves the run. @returns whether it is a plain retry */
export async function endStage(tx: Tx, run: WorkflowRun, stage: StageState, ending: Ending): Promise<{ retry: boolean }> {
  const requirements = requirementsOf(stage, ending.evidence, ending.verified);
  stage.attempts += 1;
  stage.summary = ending.summary;
  stage.updatedAt = iso(tx.now);
  delete run.waiting;
  run.status = "running";
  return ending.status === "passed" ? pass(tx, run, stage, ending, requirements) : miss(tx, run, stage, ending);
}

async function pass(tx: Tx, run: WorkflowRun, stage: StageState, ending: Ending, requirements: Requirement[]) {
  mergeEvidence(stage, ending.evidence, ending.verified);
  stage.status = "passed";
  stage.completedAt = iso(tx.now);
  run.oracle ??= capture(run.reproOracle, stage, tx.now);
  run.planHash ??= capture(run.planHashConfig, stage, tx.now);
  if (!run.oracle) delete run.oracle;
  if (!run.planHash) delete run.planHash;
  const degraded = requirements.filter((requirement) => requirement.degraded).map(({ requirementKey }) => requirementKey);
  if (degraded.length > 0) {
    stage.degraded = true;
    stage.degradedRequirements = degraded;
    await journal.append(tx, run.project, {
      runId: run.id,
      agentId: ending.actor,
      category: "decision",
      area: stage.area ?? "workflow",
      severity: "warning",
      summary: `Stage ${stage.id} passed below the normal number of producers for: ${degraded.join(", ")}`.slice(0, 1000),
      evidence: [],
      relatedEntryIds: [],
      stageId: stage.id,
      attempt: stage.attempts,
    });
  }
  const rule = stage.on?.[ending.outcome ?? "passed"] ?? stage.on?.["passed"];
  if (rule) await follow(tx, run, stage, ending.outcome ?? "passed", rule, ending.actor);
  else enterNext(tx, run);
  return { retry: false };
}

async function miss(tx: Tx, run: WorkflowRun, stage: StageState, ending: Ending) {
  await journal.append(tx, run.project, {
    runId: run.id,
    agentId: ending.actor,
    category: "error",
    area: stage.area ?? ending.fallbackArea,
    severity: ending.status === "failed" ? "error" : "warning",
    summary: ending.summary.slice(0, 1000),
    evidence: [],
    relatedEntryIds: [],
    stageId: stage.id,
    attempt: stage.attempts,
  });
  if (stage.attempts >= stage.maxAttempts) {
    stage.status = ending.status;
    stage.completedAt = iso(tx.now);
    run.status = "failed";
    return { retry: false };
  }
  if (stage.autoResumeLimit !== undefined && stage.attempts >= stage.autoResumeLimit) {
    escalate(tx, run, stage, ending.summary);
    return { retry: false };
  }
  const rule = own(stage.on, ending.outcome ?? ending.status) ?? own(stage.on, ending.status);
  if (!rule) {
    stage.status = "in_progress";
    return { retry: true };
  }
  stage.status = "pending";
  await follow(tx, run, stage, ending.outcome ?? ending.status, rule, ending.actor);
  return { retry: false };
}

/** Adds values to what the stage holds, each value once. */
export function mergeEvidence(stage: StageState, evidence: Record<string, string>, verified: Map<string, VerifiedPeerEvidence[]>): void {
  for (const [key, value] of Object.entries(evidence)) stage.evidence[key] = [...new Set([...(own(stage.evidence, key) ?? []), value])];
  for (const [key, proofs] of verified) {
    const held = own(stage.verifiedEvidence, key) ?? [];
    const fresh = proofs.filter(({ messageId }) => !held.some((proof) => proof.messageId === messageId));
    stage.verifiedEvidence = { ...stage.verifiedEvidence, [key]: [...held, ...fresh] };
  }
}

function capture(place: EvidencePlace | undefined, stage: StageState, now: number): CapturedHash | undefined {
  const values = place?.stageId === stage.id ? own(stage.evidence, place.evidenceKey) : undefined;
  return values && values.length > 0
    ? { evidenceKey: place!.evidenceKey, sha256: sha256([...values].sort().join("\n")), capturedAt: iso(now) }
    : undefined;
}

/** Stops the automatic retries until somebody looks: the stage waits for the signal audit_escalation. */
function escalate(tx: Tx, run: WorkflowRun, stage: StageState, summary: string) {
  const [at, expiresAt] = [iso(tx.now), iso(tx.now + AUDIT_ESCALATION_MS)];
  stage.status = "waiting";
  stage.auditEscalation = { attempts: stage.attempts, at, expiresAt };
  stage.receipt = {
    schema: "kxm.terminal-receipt.v1",
    status: AUDIT_ESCALATION,
    runId: run.id,
    stageId: stage.id,
    attempts: stage.attempts,
    summary,
    at,
  };
  run.status = "waiting";
  run.waiting = {
    stageId: stage.id,
    signalKey: AUDIT_ESCALATION,
    summary: `Stopped after ${stage.attempts} attempts: ${summary}`.slice(0, 4000),
    createdAt: at,
    expiresAt,
  };
}

async function follow(tx: Tx, run: WorkflowRun, stage: StageState, outcome: string, rule: TransitionRule, actor: string) {
  const taken = run.transitions ?? [];
  const spent =
    (rule.maxTransitions !== undefined &&
      taken.filter((past) => past.fromStage === stage.id && past.toStage === rule.target && past.outcome === outcome).length >= rule.maxTransitions &&
      "edge") ||
    (stage.maxTransitions !== undefined && taken.filter((past) => past.fromStage === stage.id).length >= stage.maxTransitions && "stage") ||
    (run.maxTransitions !== undefined && taken.length >= run.maxTransitions && "run");
  const note = (summary: string, category: "error" | "state-change") =>
    journal.append(tx, run.project, {
      runId: run.id,
      agentId: actor,
      category,
      area: stage.area ?? "workflow",
      severity: category === "error" ? "error" : "info",
      summary,
      evidence: [],
      relatedEntryIds: [],
      stageId: stage.id,
      attempt: stage.attempts,
    });
  if (spent) {
    if (stage.status === "pending") stage.status = "failed";
    run.status = "failed";
    await note(`The transition budget of the ${spent} is exhausted: ${stage.id} → ${rule.target} on ${outcome}`, "error");
    return;
  }
  run.transitions = [
    ...taken,
    {
      id: tx.newId("trans"),
      fromStage: stage.id,
      toStage: rule.target,
      outcome,
      attempt: stage.attempts,
      evidenceKeys: Object.keys(stage.evidence).slice(0, 32),
      at: iso(tx.now),
    },
  ];
  await note(`${stage.id} → ${rule.target} on ${outcome}`, "state-change");
  if (rule.target === TERMINAL) run.status = "completed";
  else enter(tx, run, run.stages.find(({ id }) => id === rule.target)!);
}

function enter(tx: Tx, run: WorkflowRun, stage: StageState) {
  stage.status = "in_progress";
  stage.attempts = 0;
  stage.evidence = {};
  stage.startedAt = iso(tx.now);
  stage.updatedAt = stage.startedAt;
  for (const member of ["verifiedEvidence", "summary", "completedAt", "degraded", "degradedRequirements"] as const) delete stage[member];
  run.currentStage = stage.id;
}

function enterNext(tx: Tx, run: WorkflowRun) {
  const next = run.stages.find(({ status }) => status === "pending");
  if (!next) {
    run.status = "completed";
    return;
  }
  next.status = "in_progress";
  next.startedAt = iso(tx.now);
  next.updatedAt = next.startedAt;
  run.currentStage = next.id;
}
