// Context: what a project knows, with provenance and authority. Requests and answers of the context routes.
import { type Static, Type } from "@sinclair/typebox";
import { integer, oneOf, optionalInteger, optionalText, ruled, text, textList } from "./fields.ts";

export const KINDS = ["evidence", "state", "episode", "knowledge", "skill"] as const;
export type ContextKind = (typeof KINDS)[number];
/** Strongest first. */
export const AUTHORITIES = ["policy", "instruction", "evidence", "hypothesis"] as const;
export type Authority = (typeof AUTHORITIES)[number];
/** Surest first. */
export const CONFIDENCES = ["verified", "probable", "uncertain"] as const;
export type Confidence = (typeof CONFIDENCES)[number];
export const SOURCE_TYPES = ["human", "git", "workflow", "tool", "peer", "external", "derived"] as const;
export type SourceType = (typeof SOURCE_TYPES)[number];
export const ITEM_STATUSES = ["current", "superseded", "proposed", "rejected"] as const;

/** The most an origin may claim: nothing a peer or tool says becomes an instruction by itself. */
export const CEILING: Record<SourceType, Authority> = {
  human: "policy",
  workflow: "policy",
  git: "instruction",
  tool: "evidence",
  peer: "evidence",
  external: "evidence",
  derived: "evidence",
};
/** Whether an authority is above what its origin may claim. */
export const exceedsCeiling = (authority: Authority, source: SourceType): boolean =>
  AUTHORITIES.indexOf(authority) < AUTHORITIES.indexOf(CEILING[source]);

/** An item as the wire shows it. */
export interface ContextItem {
  id: string;
  kind: ContextKind;
  project: string;
  summary: string;
  provenance: { sourceType: SourceType; sourceRef?: string; derivedFrom?: string[] };
  authority: Authority;
  confidence: Confidence;
  stateKey?: string;
  observedAt?: string;
  validFrom?: string;
  validUntil?: string;
  status?: (typeof ITEM_STATUSES)[number];
  supersedes?: string[];
  evidenceRefs?: string[];
}

/** What a role should know for a task, within its budget. */
export interface Packet {
  workingState: Record<string, unknown>;
  currentState: ContextItem[];
  knowledge: ContextItem[];
  evidence: ContextItem[];
  episodes: ContextItem[];
  skills: ContextItem[];
  contradictions: ContextItem[];
  unresolvedGaps: string[];
  provenanceSummary: Partial<Record<SourceType, number>>;
  estimatedTokens: number;
}
/** How a packet came about. */
export interface PacketAudit {
  request: { project: string; role: string; task: string; workflowRunId?: string; stageId?: string };
  selectedIds: string[];
  provenanceSummary: Partial<Record<SourceType, number>>;
  estimatedTokens: number;
  budgetTokens: number;
  candidateCount: number;
  excludedSuperseded: number;
  unresolvedGaps: string[];
  relevance: { taskTokens: number; matchedCandidates: number; selected: { id: string; score: number }[] };
}

/** What recalling answers of an item: never its text. */
export interface Recalled {
  id: string;
  kind: ContextKind;
  authority: Authority;
  confidence: Confidence;
  sourceType: SourceType;
  derived: boolean;
  lineageDepth: number;
  status?: ContextItem["status"];
  sourceRef?: string;
  relevance: number;
}

/** Where an item comes from. An id that is not known has `found: false` and empty lists. */
export interface Lineage {
  found: boolean;
  lineage: string[];
  evidenceRefs: string[];
  sources: { id: string; sourceType: SourceType; sourceRef?: string }[];
}

const project = text(200, { description: "The project whose context is asked" });
const REQUEST = { code: "invalid_context_request" } as const;

export const PacketRequest = Type.Object({
  project,
  role: text(64, { description: "repro, planner, critic, implementer, verifier or any other word" }),
  task: text(2000, { description: "What the reader is about to do; matching context comes first" }),
  workflowRunId: optionalText(128),
  stageId: optionalText(128),
  budgetTokens: optionalInteger({ min: 512, max: 200_000 }, { ...REQUEST, description: "Tokens the packet may take; a default per role" }),
  includeKinds: ruled({ type: "array", items: { enum: [...KINDS] } }, "Kinds instead of the role's own"),
});
export type PacketRequest = Static<typeof PacketRequest>;
export const RecallRequest = Type.Object({
  project,
  query: optionalText(500, { description: "Words to look for; empty lists everything" }),
  kinds: ruled({ type: "array", items: { enum: [...KINDS] } }),
  limit: integer({ default: 25, min: 1, max: 100 }),
});
export type RecallRequest = Static<typeof RecallRequest>;
export const StateRequest = Type.Object({ project, key: text(200), asOf: optionalText(64, { description: "A timestamp; now when left out" }) });
export type StateRequest = Static<typeof StateRequest>;
export const EpisodeRequest = Type.Object({ project, workflowRunId: optionalText(128) });
export const ExplainRequest = Type.Object({ project, id: text(128) });
export const WikiRequest = Type.Object({ project });
export const ProposeRequest = Type.Object({
  project,
  key: text(200),
  summary: text(4000),
  authority: oneOf(AUTHORITIES, REQUEST),
  confidence: oneOf(CONFIDENCES, REQUEST),
  evidenceRefs: textList(32, { description: "At least one reference" }),
  proposedBy: optionalText(200),
});
export type ProposeRequest = Static<typeof ProposeRequest>;
export const PromoteRequest = Type.Object({
  proposalId: text(128),
  project,
  evidence: textList(32, { description: "At least one line of evidence" }),
  promotedBy: optionalText(200),
  caller: optionalText(200),
});
export type PromoteRequest = Static<typeof PromoteRequest>;
