// Evidence of a checkpoint, wait or signal: shape, references to peers' answers and their proof, and what is still missing.
// Codes: invalid_workflow_evidence, invalid_workflow_evidence_refs, workflow_evidence_policy_missing, workflow_provenance_invalid.
import type { MessageRow } from "../../db/schema.ts";
import type { Tx } from "../../db/tx.ts";
import { sha256 } from "../../protocol/canonical.ts";
import { HubError } from "../../protocol/errors.ts";
import { own } from "../../protocol/own.ts";
import { iso } from "../../protocol/time.ts";
import {
  type MessageContext,
  normalizeKey,
  type ResolvedPolicy,
  type StageState,
  type VerifiedPeerEvidence,
  type WorkflowRun,
} from "../../protocol/workflows.ts";

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null && !Array.isArray(value);

/** What is written under `__proto__` would not be a member but change what all members are looked up in. */
const isKey = (key: string) => key !== "" && key !== "__proto__";

/** Plain evidence by normalized key. @throws HubError invalid_workflow_evidence */
export function readEvidence(value: unknown): Record<string, string> {
  const bad = (why: string) => new HubError("invalid_workflow_evidence", `evidence ${why}`);
  if (value === undefined || value === null) return {};
  if (!isObject(value)) throw bad("must be an object");
  const entries = Object.entries(value);
  if (entries.length > 64) throw bad("holds more than 64 keys");
  const evidence: Record<string, string> = Object.create(null);
  for (const [name, item] of entries) {
    const key = normalizeKey(name);
    if (!isKey(key) || name.length > 128) throw bad("has a key that is empty, not allowed, or longer than 128 characters");
    if (typeof item !== "string" || item.trim() === "" || item.trim().length > 1000) throw bad(`for ${key} must be a string of 1 to 1000 characters`);
    if (key in evidence) throw bad(`names ${key} twice`);
    evidence[key] = item.trim();
  }
  return { ...evidence };
}

/** Message ids by normalized requirement key. @throws HubError invalid_workflow_evidence_refs */
export function readEvidenceRefs(value: unknown): Map<string, string[]> {
  const bad = (why: string) => new HubError("invalid_workflow_evidence_refs", `evidenceRefs ${why}`);
  const refs = new Map<string, string[]>();
  if (value === undefined || value === null) return refs;
  if (!isObject(value)) throw bad("must be an object");
  if (Object.keys(value).length > 32) throw bad("holds more than 32 keys");
  for (const [name, item] of Object.entries(value)) {
    const key = normalizeKey(name);
    if (!isKey(key) || name.length > 128) throw bad("has a key that is empty, not allowed, or longer than 128 characters");
    if (refs.has(key)) throw bad(`names ${key} twice`);
    if (!isObject(item) || Object.keys(item).join() !== "messageIds" || !Array.isArray(item["messageIds"]))
      throw bad(`for ${key} must be { messageIds: [...] } and nothing else`);
    const ids = item["messageIds"] as unknown[];
    const wellFormed = ids.every((id) => typeof id === "string" && id.length >= 1 && id.length <= 80);
    if (ids.length < 1 || ids.length > 16 || !wellFormed || new Set(ids).size !== ids.length)
      throw bad(`for ${key} must list 1 to 16 different message ids`);
    refs.set(key, ids as string[]);
  }
  return refs;
}

/** Proves every reference or none: each message asked an eligible peer for exactly this run, stage, key and attempt, and was answered. */
export async function verifyRefs(
  tx: Tx,
  run: WorkflowRun,
  stage: StageState,
  refs: Map<string, string[]>,
): Promise<Map<string, VerifiedPeerEvidence[]>> {
  const verified = new Map<string, VerifiedPeerEvidence[]>();
  const seen = new Set<string>();
  for (const [key, ids] of refs) {
    const policy = own(stage.resolvedEvidencePolicies, key);
    if (!policy) throw new HubError("workflow_evidence_policy_missing", `${key} takes no message references in stage ${stage.id}`);
    const proofs: VerifiedPeerEvidence[] = [];
    for (const id of ids) {
      if (seen.has(id)) throw new HubError("workflow_provenance_invalid", `message ${id} is referred to twice`);
      seen.add(id);
      proofs.push(proofOf(run, stage, key, policy, await tx.messages.find(id), id, tx.now));
    }
    verified.set(key, proofs);
  }
  return verified;
}

function proofOf(
  run: WorkflowRun,
  stage: StageState,
  key: string,
  policy: ResolvedPolicy,
  message: MessageRow | undefined,
  id: string,
  now: number,
): VerifiedPeerEvidence {
  const context = message?.workflowContext as MessageContext | null | undefined;
  const producer = policy.eligibleProducers.find((eligible) => eligible.id === message?.recipientId);
  const proven =
    message &&
    context &&
    producer &&
    message.project === run.project &&
    message.senderId === run.targetAgentId &&
    message.correlationId === run.id &&
    context.runId === run.id &&
    context.stageId === stage.id &&
    context.requirementKey === key &&
    context.attempt === stage.attempts + 1 &&
    message.status === "replied" &&
    message.replyContent !== null &&
    message.replyContent.trim() !== "" &&
    message.repliedAt !== null &&
    message.createdAt <= message.repliedAt &&
    message.repliedAt <= now;
  if (!proven)
    throw new HubError("workflow_provenance_invalid", `message ${id} does not prove ${key} for attempt ${stage.attempts + 1} of stage ${stage.id}`);
  const repliedAt = iso(message.repliedAt!);
  return {
    schema: "pi-mesh.verified-peer-evidence.v1",
    messageId: id,
    producerId: producer.id,
    producerName: producer.name,
    context,
    status: "replied",
    requestSha256: sha256(message.content),
    replySha256: sha256(message.replyContent!),
    createdAt: iso(message.createdAt),
    replyCreatedAt: repliedAt,
    repliedAt,
    verifiedAt: iso(now),
  };
}

/** How one required key stands: met or not, by whom, and what would satisfy it. */
export interface Requirement {
  requirementKey: string;
  kind: "evidence" | "peer-reply";
  met: boolean;
  degraded: boolean;
  /** Values held (plain evidence). */
  values: string[];
  policyMinProducers?: number;
  effectiveMinProducers?: number;
  /** Ids of the distinct eligible producers verified for the current attempt. */
  producers?: string[];
  approval?: StageState["degradationApprovals"] extends (infer A)[] | undefined ? A : never;
}

/** Every required key of a stage, with evidence held so far and what this request adds. */
export function requirementsOf(
  stage: StageState,
  added: Record<string, string> = {},
  verified: Map<string, VerifiedPeerEvidence[]> = new Map(),
): Requirement[] {
  const attempt = stage.attempts + 1;
  return stage.requiredEvidence.map((requirementKey) => {
    const policy = own(stage.resolvedEvidencePolicies, requirementKey);
    const more = own(added, requirementKey);
    const values = [...new Set([...(own(stage.evidence, requirementKey) ?? []), ...(more === undefined ? [] : [more])])];
    if (!policy) return { requirementKey, kind: "evidence", met: values.length > 0, degraded: false, values };
    const proofs = [...(own(stage.verifiedEvidence, requirementKey) ?? []), ...(verified.get(requirementKey) ?? [])];
    const eligible = new Set(policy.eligibleProducers.map(({ id }) => id));
    const producers = [
      ...new Set(
        proofs.filter(({ context, producerId }) => context.attempt === attempt && eligible.has(producerId)).map(({ producerId }) => producerId),
      ),
    ];
    const approval = stage.degradationApprovals?.find((given) => given.requirementKey === requirementKey && given.attempt === attempt);
    const effectiveMinProducers = approval?.approvedMinProducers ?? policy.minProducers;
    const met = producers.length >= effectiveMinProducers;
    return {
      requirementKey,
      kind: "peer-reply",
      met,
      degraded: met && producers.length < policy.minProducers,
      values,
      policyMinProducers: policy.minProducers,
      effectiveMinProducers,
      producers,
      ...(approval && { approval }),
    };
  });
}
