// Temporal state: a key has one current value; a new one is proposed with evidence and promoted by somebody else. Nothing is ever overwritten.
// Codes: invalid_state_request, state_contradiction, state_promotion_invalid, invalid_context_field, state_proposer_mismatch, context_authority_violation,
// state_proposal_not_found, state_proposal_not_promotable.
import type { ContextItemRow } from "../../db/schema.ts";
import type { AuditNote, Stores, Tx } from "../../db/tx.ts";
import { type ContextItem, exceedsCeiling, type ProposeRequest, type SourceType } from "../../protocol/context.ts";
import { HubError } from "../../protocol/errors.ts";
import { iso } from "../../protocol/time.ts";

/** The item of a row, as the wire shows it. */
export const itemOf = (row: ContextItemRow): ContextItem => row.record as unknown as ContextItem;

/** The value of a key at a time. @throws HubError invalid_state_request, state_contradiction */
export async function stateAt(read: Stores, request: { project: string; key: string; asOf?: string }, now: number): Promise<ContextItem | null> {
  const at = request.asOf === undefined ? now : Date.parse(request.asOf);
  if (Number.isNaN(at)) throw new HubError("invalid_state_request", "asOf is not a readable timestamp");
  const valid = await read.context.stateAt(request.project, request.key, at);
  if (valid.filter(({ status }) => status === "current").length > 1) {
    throw new HubError("state_contradiction", `${request.key} has ${valid.length} current values`);
  }
  const found = valid.find(({ status }) => status === "current") ?? valid[0];
  return found ? itemOf(found) : null;
}

/** Every value a key ever had, newest first, with open proposals. */
export const history = async (read: Stores, project: string, key: string, limit: number): Promise<ContextItem[]> =>
  (await read.context.historyOf(project, key, limit)).map(itemOf);

/** Proposes a value. @param origin who speaks: an agent is a peer, the admin a human */
export async function propose(
  tx: Tx,
  origin: { caller: string; actor: string; sourceType: Extract<SourceType, "peer" | "human"> },
  request: ProposeRequest,
): Promise<string> {
  const { project, key, summary, authority, confidence, evidenceRefs, proposedBy } = request;
  if (evidenceRefs.length === 0) throw new HubError("state_promotion_invalid", "a proposal needs at least one evidence reference");
  if (new Set(evidenceRefs).size !== evidenceRefs.length) throw new HubError("invalid_context_field", "evidenceRefs must be unique");
  if (proposedBy !== undefined && proposedBy !== origin.caller)
    throw new HubError("state_proposer_mismatch", "proposedBy is not the caller's own name");
  if (exceedsCeiling(authority, origin.sourceType))
    throw new HubError("context_authority_violation", `a ${origin.sourceType} may not claim the authority ${authority}`);
  const item: ContextItem = {
    id: tx.newId("ctx"),
    kind: "state",
    project,
    summary,
    provenance: { sourceType: origin.sourceType, sourceRef: `proposed-by:${origin.caller}` },
    authority,
    confidence,
    stateKey: key,
    observedAt: iso(tx.now),
    validFrom: iso(tx.now),
    status: "proposed",
    evidenceRefs,
  };
  await insertItem(tx, item);
  tx.append({ project, topic: "context", type: "state.proposed", subjectId: item.id, actor: origin.actor, data: { key } });
  return item.id;
}

/** Promotes a proposal: the key's current value ends, the new one begins. */
export async function promote(
  tx: Tx,
  by: { promoter: string; actor: string } & AuditNote,
  request: { proposalId: string; project: string; evidence: string[] },
): Promise<ContextItem> {
  if (request.evidence.length === 0) throw new HubError("state_promotion_invalid", "a promotion needs at least one line of evidence");
  const row = await tx.context.lock(request.proposalId);
  if (!row || row.project !== request.project || row.kind !== "state")
    throw new HubError("state_proposal_not_found", `there is no proposal ${request.proposalId} in ${request.project}`);
  const proposal = itemOf(row);
  if (proposal.status !== "proposed") throw new HubError("state_proposal_not_promotable", `the proposal is ${proposal.status}`);
  if (proposal.provenance.sourceRef === `proposed-by:${by.promoter}`)
    throw new HubError("state_promotion_invalid", "the proposer cannot promote its own proposal");
  const [at, key] = [iso(tx.now), proposal.stateKey!];
  const current = (await tx.context.stateAt(row.project, key, tx.now)).filter(({ status }) => status === "current");
  for (const old of current) await updateItem(tx, old, { ...itemOf(old), status: "superseded", validUntil: at });
  await updateItem(tx, row, { ...proposal, status: "rejected", validUntil: at });
  const promoted: ContextItem = {
    ...proposal,
    id: tx.newId("ctx"),
    status: "current",
    validFrom: at,
    observedAt: at,
    supersedes: current.map(({ id }) => id),
    provenance: { ...proposal.provenance, sourceRef: `promoted-by:${by.promoter}`, derivedFrom: [proposal.id] },
    evidenceRefs: [...new Set([...(proposal.evidenceRefs ?? []), ...request.evidence])].sort(),
  };
  delete promoted.validUntil;
  await insertItem(tx, promoted);
  tx.append({
    project: row.project,
    topic: "context",
    type: "state.promoted",
    subjectId: promoted.id,
    actor: by.actor,
    data: { key, proposalId: proposal.id },
    audit: { role: by.role, origin: by.origin, reason: by.reason },
  });
  return promoted;
}

type Decider = { promoter: string; actor: string } & AuditNote;
type Decision = { project: string; itemId: string; evidence: string[] };

/** A value of a key that is open to a decision: a proposal, or a current value. */
async function openValue(tx: Tx, { project, itemId }: Pick<Decision, "project" | "itemId">): Promise<{ row: ContextItemRow; item: ContextItem }> {
  const row = await tx.context.lock(itemId);
  if (!row || row.project !== project || row.kind !== "state")
    throw new HubError("state_proposal_not_found", `there is no value ${itemId} in ${project}`);
  const item = itemOf(row);
  if (item.status !== "proposed" && item.status !== "current") throw new HubError("state_proposal_not_promotable", `the value is ${item.status}`);
  return { row, item };
}

/** Settles a key with several current values: this one stays, the others end. @throws HubError state_proposal_not_found, state_proposal_not_promotable */
export async function keepOnly(tx: Tx, by: Decider, { project, itemId }: Omit<Decision, "evidence">): Promise<ContextItem> {
  const { row, item } = await openValue(tx, { project, itemId });
  const [at, key] = [iso(tx.now), item.stateKey!];
  const others = (await tx.context.stateAt(project, key, tx.now)).filter(({ id, status }) => status === "current" && id !== row.id);
  if (item.status !== "current" || others.length === 0) throw new HubError("state_proposal_not_promotable", "the key has no other current value");
  for (const old of others) await updateItem(tx, old, { ...itemOf(old), status: "superseded", validUntil: at });
  const kept: ContextItem = { ...item, supersedes: [...new Set([...(item.supersedes ?? []), ...others.map(({ id }) => id)])] };
  await updateItem(tx, row, kept);
  appendDecision(tx, by, { project, type: "state.kept", subjectId: row.id, data: { key, ended: others.length } });
  return kept;
}

/**
 * Both values hold: this one gets a key of its own, where it is current from now on, so that no key says two things.
 * @throws HubError state_promotion_invalid without evidence, by the proposer, or for a key that says something already; state_proposal_not_found,
 *   state_proposal_not_promotable
 */
export async function keepBoth(tx: Tx, by: Decider, { project, itemId, evidence, newKey }: Decision & { newKey: string }): Promise<ContextItem> {
  const { row, item } = await openValue(tx, { project, itemId });
  const refuse = (why: string, hint: string): never => {
    throw new HubError("state_promotion_invalid", why, { hint });
  };
  if (evidence.length === 0) refuse("the decision needs at least one line of evidence", "Say what shows that both hold.");
  if (item.provenance.sourceRef === `proposed-by:${by.promoter}`) refuse("the proposer cannot promote its own proposal", "Ask somebody else.");
  const taken = (await tx.context.stateAt(project, newKey, tx.now)).some(({ status }) => status === "current");
  if (newKey === item.stateKey || taken) refuse(`${newKey} says something already`, "Give the value a key that nothing is said of yet.");
  const at = iso(tx.now);
  await updateItem(tx, row, { ...item, status: item.status === "current" ? "superseded" : "rejected", validUntil: at });
  const moved: ContextItem = {
    ...item,
    id: tx.newId("ctx"),
    stateKey: newKey,
    status: "current",
    validFrom: at,
    observedAt: at,
    supersedes: [],
    provenance: { ...item.provenance, sourceRef: `promoted-by:${by.promoter}`, derivedFrom: [item.id] },
    evidenceRefs: [...new Set([...(item.evidenceRefs ?? []), ...evidence])].sort(),
  };
  delete moved.validUntil;
  await insertItem(tx, moved);
  appendDecision(tx, by, { project, type: "state.split", subjectId: moved.id, data: { key: item.stateKey, newKey, from: item.id } });
  return moved;
}

function appendDecision(tx: Tx, by: Decider, event: { project: string; type: string; subjectId: string; data: Record<string, unknown> }) {
  tx.append({ ...event, topic: "context", actor: by.actor, audit: { role: by.role, origin: by.origin, reason: by.reason } });
}

/** Refuses a proposal, with a reason. @throws HubError state_proposal_not_found, state_proposal_not_promotable */
export async function reject(tx: Tx, by: { actor: string } & AuditNote, request: { proposalId: string; project: string }): Promise<ContextItem> {
  const row = await tx.context.lock(request.proposalId);
  if (!row || row.project !== request.project || row.kind !== "state")
    throw new HubError("state_proposal_not_found", `there is no proposal ${request.proposalId} in ${request.project}`);
  const proposal = itemOf(row);
  if (proposal.status !== "proposed") throw new HubError("state_proposal_not_promotable", `the proposal is ${proposal.status}`);
  const rejected: ContextItem = { ...proposal, status: "rejected", validUntil: iso(tx.now) };
  await updateItem(tx, row, rejected);
  tx.append({
    project: row.project,
    topic: "context",
    type: "state.rejected",
    subjectId: row.id,
    actor: by.actor,
    data: { key: proposal.stateKey },
    audit: { role: by.role, origin: by.origin, reason: by.reason },
  });
  return rejected;
}

const ms = (time: string | undefined) => (time === undefined ? null : Date.parse(time));
const columnsOf = (item: ContextItem) => ({
  project: item.project,
  kind: item.kind,
  stateKey: item.stateKey ?? null,
  status: item.status ?? null,
  summary: item.summary,
  authority: item.authority,
  confidence: item.confidence,
  sourceType: item.provenance.sourceType,
  observedAt: ms(item.observedAt),
  validFrom: ms(item.validFrom),
  validUntil: ms(item.validUntil),
  record: item as unknown as Record<string, unknown>,
});

async function insertItem(tx: Tx, item: ContextItem) {
  await tx.context.insert({ id: item.id, ...columnsOf(item), createdAt: tx.now, revision: await tx.context.takeRevision(item.project) });
}
async function updateItem(tx: Tx, row: ContextItemRow, item: ContextItem) {
  await tx.context.update({ ...row, ...columnsOf(item), revision: await tx.context.takeRevision(item.project) });
}
