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
