// Context packets: what a role should know for a task, within a token budget. The same pool and request always give the same packet.
// Codes: invalid_context_request, invalid_context_field.

import { type ContextKind, KINDS, type Packet, type PacketAudit, type PacketRequest, type SourceType } from "../../protocol/context.ts";
import { HubError } from "../../protocol/errors.ts";
import type { Category } from "../../protocol/journal.ts";
import { own } from "../../protocol/own.ts";
import { byWorth, type Pool, type PoolItem } from "./pool.ts";
import { wordsOf } from "./words.ts";

const ITEMS_MAX = 256;
const SMALLEST_ITEM = 4; // tokens; below it nothing more can fit

type Role = { budget: number; kinds: readonly ContextKind[]; categories: readonly Category[] };
const ROLES: Record<string, Role> = {
  repro: { budget: 8_000, kinds: ["evidence", "episode", "knowledge"], categories: ["error", "lesson", "observation", "contradiction"] },
  planner: {
    budget: 16_000,
    kinds: ["state", "knowledge", "evidence"],
    categories: ["plan", "decision", "contradiction", "observation", "hypothesis", "experiment"],
  },
  critic: { budget: 12_000, kinds: ["knowledge", "evidence", "episode"], categories: ["contradiction", "error", "lesson", "experiment"] },
  implementer: {
    budget: 16_000,
    kinds: ["knowledge", "state", "skill", "episode", "evidence"],
    categories: ["plan", "decision", "lesson", "state-change"],
  },
  verifier: { budget: 8_000, kinds: ["evidence", "knowledge", "episode"], categories: ["plan", "error", "lesson", "contradiction"] },
};
const OTHER: Role = { budget: 32_000, kinds: ["knowledge", "evidence"], categories: ["lesson", "observation"] };

/** Words that name a set of kinds in a request. @throws HubError invalid_context_request for an empty or too long list, invalid_context_field for an unknown kind */
export function readKinds(value: unknown, options: { ignoreOthers: boolean }): ContextKind[] | undefined {
  if (value === undefined || value === null) return undefined;
  if (!Array.isArray(value)) throw new HubError("invalid_context_request", "kinds must be a list");
  const words = options.ignoreOthers ? value.filter((kind) => typeof kind === "string") : value;
  if (!options.ignoreOthers && (words.length === 0 || words.length > KINDS.length))
    throw new HubError("invalid_context_request", `includeKinds must list 1 to ${KINDS.length} kinds`);
  for (const kind of words)
    if (!KINDS.includes(kind as ContextKind)) throw new HubError("invalid_context_field", `${String(kind).slice(0, 64)} is not a kind`);
  return [...new Set(words as ContextKind[])];
}

/** The packet for a request over a pool, and how it came about. */
export function packetOf(pool: Pool, request: PacketRequest): { packet: Packet; audit: PacketAudit } {
  const role = own(ROLES, request.role.toLowerCase()) ?? OTHER;
  const kinds = readKinds(request.includeKinds, { ignoreOthers: false }) ?? role.kinds;
  const budgetTokens = request.budgetTokens ?? role.budget;
  const scores = pool.index.score(request.task);
  const isCandidate = ({ item, category }: PoolItem) =>
    !(item.kind === "state" && item.status === "proposed") &&
    (category === undefined || role.categories.includes(category) || request.includeKinds !== undefined);
  const lists = kinds.map((kind) => pool.ofKind(kind).filter(isCandidate));
  const candidateCount = lists.reduce((sum, list) => sum + list.length, 0);
  const matched = lists.flatMap((list, order) =>
    list.flatMap((entry) => (scores.has(entry.item.id) ? [{ entry, order, score: scores.get(entry.item.id)! }] : [])),
  );
  matched.sort((a, b) => b.score - a.score || a.order - b.order || byWorth(a.entry, b.entry));
  const selected: PoolItem[] = [];
  let estimatedTokens = 0;
  const offer = (entry: PoolItem) => {
    if (selected.length < ITEMS_MAX && estimatedTokens + entry.tokens <= budgetTokens) {
      selected.push(entry);
      estimatedTokens += entry.tokens;
    }
    return selected.length < ITEMS_MAX && budgetTokens - estimatedTokens >= SMALLEST_ITEM;
  };
  if (matched.every(({ entry }) => offer(entry))) {
    for (const list of lists) if (!list.every((entry) => scores.has(entry.item.id) || offer(entry))) break;
  }
  const unresolvedGaps = gapsOf(pool, { candidateCount, selected: selected.length, budgetTokens });
  const provenanceSummary: Partial<Record<SourceType, number>> = {};
  for (const { item } of selected) provenanceSummary[item.provenance.sourceType] = (provenanceSummary[item.provenance.sourceType] ?? 0) + 1;
  const { project, task, workflowRunId, stageId } = request;
  const packet = { workingState: {}, ...sectionsOf(selected), unresolvedGaps, provenanceSummary, estimatedTokens };
  const audit: PacketAudit = {
    request: { project, role: request.role, task, ...(workflowRunId && { workflowRunId }), ...(stageId && { stageId }) },
    selectedIds: selected.map(({ item }) => item.id),
    provenanceSummary,
    estimatedTokens,
    budgetTokens,
    candidateCount,
    excludedSuperseded: pool.superseded,
    unresolvedGaps,
    relevance: {
      taskTokens: wordsOf(task).length,
      matchedCandidates: matched.length,
      selected: selected.flatMap(({ item }) => (scores.has(item.id) ? [{ id: item.id, score: Math.round(scores.get(item.id)! * 1000) / 1000 }] : [])),
    },
  };
  return { packet, audit };
}

function gapsOf(
  pool: Pool,
  { candidateCount, selected, budgetTokens }: { candidateCount: number; selected: number; budgetTokens: number },
): string[] {
  if (pool.items.size === 0) return ["no context records exist for this project yet"];
  if (candidateCount > 0 && selected === 0) return [`budget of ${budgetTokens} tokens cannot fit any selected context`];
  return candidateCount > selected ? [`budget of ${budgetTokens} tokens reached; ${candidateCount - selected} candidates deferred`] : [];
}

function sectionsOf(selected: PoolItem[]) {
  const currentPerKey = new Map<string, number>();
  for (const { item } of selected)
    if (item.kind === "state" && item.stateKey) currentPerKey.set(item.stateKey, (currentPerKey.get(item.stateKey) ?? 0) + 1);
  const competes = ({ item, category }: PoolItem) =>
    category === "contradiction" || (item.kind === "state" && (currentPerKey.get(item.stateKey ?? "") ?? 0) > 1);
  const of = (kind: ContextKind) => selected.filter((entry) => entry.item.kind === kind && !competes(entry)).map(({ item }) => item);
  return {
    currentState: of("state"),
    knowledge: of("knowledge"),
    evidence: of("evidence"),
    episodes: of("episode"),
    skills: of("skill"),
    contradictions: selected.filter(competes).map(({ item }) => item),
  };
}
