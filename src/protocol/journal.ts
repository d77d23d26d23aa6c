// Journal entries of hub workflow runs, their promotion, and the improvements drawn from them.
import { type Static, Type } from "@sinclair/typebox";
import { oneOf, optionalText, text, textList } from "./fields.ts";
import { REASON_MAX } from "./limits.ts";
import { AREAS, type Area } from "./workflows.ts";

export const CATEGORIES = [
  "plan",
  "decision",
  "contradiction",
  "error",
  "lesson",
  "observation",
  "hypothesis",
  "experiment",
  "state-change",
  "skill-candidate",
] as const;
export type Category = (typeof CATEGORIES)[number];
export const SEVERITIES = ["info", "warning", "error"] as const;
export type Severity = (typeof SEVERITIES)[number];
/** Categories that an admin promotes, once. */
export const PROMOTABLE: readonly Category[] = ["skill-candidate", "hypothesis", "experiment"];

export type Promotion = {
  schema: "kxm.journal-promotion.v1";
  from: "proposed";
  to: "approved" | "rejected" | "quarantined";
  evidenceRefs: string[];
  decidedBy: string;
  reason: string;
  decidedAt: string;
};

/** An entry as the wire shows it. */
export interface JournalEntry {
  id: string;
  runId: string;
  agentId: string;
  category: Category;
  area: Area;
  severity: Severity;
  summary: string;
  details?: string;
  evidence: string[];
  relatedEntryIds: string[];
  createdAt: string;
  stageId?: string;
  attempt?: number;
  promotion?: Promotion[];
}

/** What the entries of one area come to. */
export type AreaReport = { area: Area; total: number; errors: number; contradictions: number; lessons: number; priorities: JournalEntry[] };
/** Something that comes up again and again, with how much it costs. */
export interface ImprovementSignal {
  key: string;
  basis: "class" | "stage" | "summary";
  category: Category;
  area: Area;
  overrideTier?: "security";
  frequency: number;
  runIds: string[];
  entryIds: string[];
  severity: Severity;
  severityWeight: number;
  workflowCost: number | null;
  costBasis: "run-attempts" | "unknown";
  confidence: number;
  priority: number;
  summary: string;
}
/** What the journal of a project teaches, ranked. */
export type Improvements = { reports: AreaReport[]; signals: ImprovementSignal[]; entries: number };

export const JournalRequest = Type.Object({
  category: oneOf(CATEGORIES, { code: "invalid_journal_category", description: "What kind of entry" }),
  stageId: optionalText(128, { description: "A stage of the run" }),
  area: Type.Optional(oneOf(AREAS, { code: "invalid_improvement_area", description: "The stage's area when left out" })),
  severity: oneOf(SEVERITIES, { default: "info", code: "invalid_journal_severity" }),
  relatedEntryIds: textList(16, { itemMax: 80, description: "Entries of the same run" }),
  evidence: textList(32, { description: "Lines of evidence; at least one for lesson and skill-candidate" }),
  summary: text(1000, { description: "One or two sentences" }),
  details: optionalText(8000),
});
export type JournalRequest = Static<typeof JournalRequest>;

export const PromotionRequest = Type.Object({
  to: oneOf(["approved", "rejected", "quarantined"], { code: "invalid_journal_promotion" }),
  evidenceRefs: textList(32, { description: "At least one reference" }),
  reason: text(REASON_MAX),
});
export type PromotionRequest = Static<typeof PromotionRequest>;
