// Hub workflows on the wire: definitions, runs, stages, checkpoints, waits, signals and peer evidence.
import { type Static, Type } from "@sinclair/typebox";
import { integer, oneOf, optionalText, ruled, text } from "./fields.ts";
import { REASON_MAX } from "./limits.ts";

/** Areas that journal entries and improvement reports are grouped by, in report order. */
export const AREAS = ["harness", "gates", "implementation", "workflow", "documentation", "security", "other"] as const;
export type Area = (typeof AREAS)[number];

/** Evidence keys are compared trimmed, with single spaces, in lower case. */
export const normalizeKey = (key: string): string => key.trim().replaceAll(/\s+/g, " ").toLowerCase();

export const SIGNAL_KEY = /^[A-Za-z0-9][A-Za-z0-9._:-]*$/;
/** The signal that lifts an automatic stop after too many failed attempts. */
export const AUDIT_ESCALATION = "audit_escalation";
export const AUDIT_ESCALATION_MS = 86_400_000;
export const TERMINAL = "$terminal";

/** Where an outcome leads: a stage id or $terminal, with a budget of its own if it may be taken often. */
export type TransitionRule = { target: string; maxTransitions?: number };
/** Who must have answered for a key, and how many. */
export type EvidencePolicy = {
  kind: "peer-reply";
  minProducers: number;
  eligibleAgents: string[];
  acceptedStatuses: ["replied"];
  degradation?: { minProducers: number };
};
export type EvidencePlace = { stageId: string; evidenceKey: string };

/** A stage as its definition says it, parsed: defaults filled, keys normalized, transitions in object form. */
export interface StageDefinition {
  id: string;
  label: string;
  instructions: string;
  requiredEvidence: string[];
  maxAttempts: number;
  autoResumeLimit?: number;
  area?: Area;
  maxTransitions?: number;
  on?: Record<string, TransitionRule>;
  evidencePolicies?: Record<string, EvidencePolicy>;
}

/** A workflow definition, parsed. Secrets are never shown, hashed or stored. */
export interface WorkflowDefinition {
  id: string;
  source: "jira" | "github" | "generic";
  project: string;
  target: string;
  secret: string;
  signalSecret?: string;
  event?: string;
  filter?: { path: string; equals: string };
  delivery: "followUp" | "steer";
  ttlMs?: number;
  promptTemplate: string;
  maxTransitions?: number;
  reproOracle?: EvidencePlace;
  planHash?: EvidencePlace;
  requirePlanHash?: string[];
  stages: StageDefinition[];
}

export type ResolvedPolicy = {
  kind: "peer-reply";
  minProducers: number;
  eligibleProducers: { id: string; name: string }[];
  acceptedStatuses: ["replied"];
  degradation?: { minProducers: number };
};

/** One peer's answer, proven to belong to this run, stage, key and attempt. */
export interface VerifiedPeerEvidence {
  schema: "pi-mesh.verified-peer-evidence.v1";
  messageId: string;
  producerId: string;
  producerName: string;
  context: MessageContext;
  status: "replied";
  requestSha256: string;
  replySha256: string;
  createdAt: string;
  replyCreatedAt: string;
  repliedAt: string;
  verifiedAt: string;
}
export interface DegradationApproval {
  schema: "pi-mesh.workflow-degradation-approval.v1";
  id: string;
  requirementKey: string;
  attempt: number;
  policyMinProducers: number;
  approvedMinProducers: number;
  approvedBy: string;
  reason: string;
  approvedAt: string;
}
/** What a message that asks a peer for evidence is bound to. */
export type MessageContext = {
  schema: "pi-mesh.workflow-message-context.v1";
  runId: string;
  stageId: string;
  requirementKey: string;
  attempt: number;
};

export interface StageState extends StageDefinition {
  status: "pending" | "in_progress" | "waiting" | "passed" | "warning" | "failed";
  attempts: number;
  evidence: Record<string, string[]>;
  summary?: string;
  resolvedEvidencePolicies?: Record<string, ResolvedPolicy>;
  verifiedEvidence?: Record<string, VerifiedPeerEvidence[]>;
  degradationApprovals?: DegradationApproval[];
  degraded?: boolean;
  degradedRequirements?: string[];
  startedAt?: string;
  completedAt?: string;
  updatedAt?: string;
  receipt?: Record<string, unknown>;
  auditEscalation?: Record<string, unknown>;
}
export interface SignalReceipt {
  deliveryId: string;
  payloadHash: string;
  signalKey: string;
  stageId: string;
  status: string;
  receivedAt: string;
  degraded?: boolean;
  degradedRequirements?: string[];
  messageId?: string;
  resumed?: boolean;
}
export type Transition = { id: string; fromStage: string; toStage: string; outcome: string; attempt: number; evidenceKeys: string[]; at: string };
export type CapturedHash = { evidenceKey: string; sha256: string; capturedAt: string };

/** A run as the wire shows it to its coordinator. */
export interface WorkflowRun {
  id: string;
  definitionId: string;
  source: string;
  deliveryId: string;
  payloadHash: string;
  definitionHash: string;
  event?: string;
  project: string;
  targetAgentId: string;
  targetAgentName: string;
  messageId: string;
  status: "running" | "waiting" | "completed" | "failed";
  currentStage?: string;
  waiting?: { stageId: string; signalKey: string; summary: string; createdAt: string; expiresAt: string };
  signalReceipts?: SignalReceipt[];
  stages: StageState[];
  transitions?: Transition[];
  maxTransitions?: number;
  oracle?: CapturedHash;
  planHash?: CapturedHash;
  reproOracle?: EvidencePlace;
  planHashConfig?: EvidencePlace;
  requirePlanHash?: string[];
  /** How resume and prompt messages are sent; kept so that a run outlives its definition. */
  delivery: "followUp" | "steer";
  ttlMs?: number;
  createdAt: string;
  updatedAt: string;
  completedAt?: string;
}

/** One thing the current stage needs. */
export interface Condition {
  requirementKey: string;
  kind: "evidence" | "peer-reply";
  met: boolean;
  degraded: boolean;
  /** Values held, or the answers that count. */
  has: { by: string; value: string; at?: string; messageId?: string }[];
  /** How many producers count and how many are needed (peer replies only). */
  quorum?: { have: number; need: number; of: string[]; normally: number };
  /** One sentence: what would satisfy it. Empty when met. */
  needs: string;
}
/** What the current stage needs, and why the run does not move. */
export interface Conditions {
  stageId: string | null;
  attempt: number;
  attemptsLeft: number;
  /** Why the run does not move, in order. Empty while the coordinator is working. */
  blockers: string[];
  conditions: Condition[];
}

/** Evidence and references are checked by the rules, which give the exact code; here they may be anything. */
const evidence = ruled(
  { type: "object", additionalProperties: { type: "string" } },
  "At most 64 keys, each with a string of at most 1000 characters",
);
const evidenceRefs = ruled(
  { type: "object", additionalProperties: { type: "object" } },
  "Keys, each { messageIds: [...] }: replied messages that prove a peer requirement",
);

export const CheckpointRequest = Type.Object({
  stageId: text(64, { description: "The current stage" }),
  status: oneOf(["passed", "warning", "failed"], { code: "invalid_checkpoint_status", description: "passed, warning or failed" }),
  summary: text(4000, { description: "What was done and found" }),
  evidence,
  evidenceRefs,
  outcome: optionalText(64, { description: "A declared outcome of the stage, when it is not the status" }),
});
export type CheckpointRequest = Static<typeof CheckpointRequest>;

export const WaitRequest = Type.Object({
  stageId: text(64, { description: "The current stage" }),
  signalKey: text(128, { description: "The signal that will resume the run", pattern: SIGNAL_KEY, code: "invalid_signal_key" }),
  summary: text(4000, { description: "What is waited for" }),
  evidence,
  evidenceRefs,
  timeoutMs: integer({ default: 86_400_000, min: 1000, max: 2_592_000_000 }, { description: "How long to wait, in milliseconds" }),
});
export type WaitRequest = Static<typeof WaitRequest>;

export const DegradationRequest = Type.Object({ stageId: text(64), requirementKey: text(128), reason: text(REASON_MAX) });
export type DegradationRequest = Static<typeof DegradationRequest>;

export const SignalRequest = Type.Object({
  status: oneOf(["passed", "warning", "failed"], { code: "invalid_checkpoint_status" }),
  summary: text(4000),
  evidence,
});
export type SignalRequest = Static<typeof SignalRequest>;
