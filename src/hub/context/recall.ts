// Recall: finding items by words. Answers metadata only, never the summary.
import type { ContextItem, Lineage, Recalled, RecallRequest } from "../../protocol/context.ts";
import { readKinds } from "./packets.ts";
import type { Pool, PoolItem } from "./pool.ts";

const LINEAGE_MAX = 32;

/** Exact phrase hits first, then by score, then by id; an empty query hits everything. */
export function recall(pool: Pool, request: RecallRequest): { items: Recalled[]; unresolvedGaps: string[] } {
  const kinds = readKinds(request.kinds, { ignoreOthers: true });
  const query = (request.query ?? "").trim();
  const phrase = query.toLowerCase();
  const scores = pool.index.score(query);
  const found: { entry: PoolItem; exact: boolean; score: number }[] = [];
  for (const entry of pool.items.values()) {
    if (!entry.live || (kinds && kinds.length > 0 && !kinds.includes(entry.item.kind))) continue;
    const exact = phrase === "" || entry.text.includes(phrase);
    const score = scores.get(entry.item.id) ?? 0;
    if (exact || score > 0) found.push({ entry, exact, score });
  }
  found.sort((a, b) => Number(b.exact) - Number(a.exact) || b.score - a.score || (a.entry.item.id < b.entry.item.id ? -1 : 1));
  const items = found.slice(0, request.limit).map(({ entry, score }) => recalled(pool, entry.item, score));
  return { items, unresolvedGaps: items.length === 0 ? ["no matching context records"] : [] };
}

function recalled(pool: Pool, { id, kind, authority, confidence, provenance, status }: ContextItem, score: number): Recalled {
  return {
    id,
    kind,
    authority,
    confidence,
    sourceType: provenance.sourceType,
    derived: provenance.sourceType === "derived" || (provenance.derivedFrom?.length ?? 0) > 0,
    lineageDepth: lineageOf(pool, id).length - 1,
    ...(status && { status }),
    ...(provenance.sourceRef && { sourceRef: provenance.sourceRef }),
    relevance: Math.round(score * 1000) / 1000,
  };
}

/** An item and everything it was derived from or supersedes, nearest first, each once. */
function lineageOf(pool: Pool, id: string): ContextItem[] {
  const lineage: ContextItem[] = [];
  const waiting = [id];
  const seen = new Set<string>();
  while (waiting.length > 0 && lineage.length < LINEAGE_MAX) {
    const next = waiting.shift()!;
    const item = pool.items.get(next)?.item;
    if (!item || seen.has(next)) continue;
    seen.add(next);
    lineage.push(item);
    waiting.push(...(item.provenance.derivedFrom ?? []), ...(item.supersedes ?? []));
  }
  return lineage;
}

/** Where an item comes from. Unknown ids give found: false and empty lists. */
export function explain(pool: Pool, id: string): Lineage {
  const lineage = lineageOf(pool, id);
  return {
    found: lineage.length > 0,
    lineage: lineage.map(({ id }) => id),
    evidenceRefs: [...new Set(lineage.flatMap(({ evidenceRefs }) => evidenceRefs ?? []))],
    sources: lineage.map(({ id, provenance }) => ({
      id,
      sourceType: provenance.sourceType,
      ...(provenance.sourceRef && { sourceRef: provenance.sourceRef }),
    })),
  };
}

const EPISODES_MAX = 50;
const EPISODE_CATEGORIES = new Set(["error", "lesson", "observation", "experiment"]);

/** What happened: error, lesson, observation and experiment entries, oldest first. @param ofRun entry ids of one run, when only it is asked */
export function episodes(pool: Pool, ofRun?: ReadonlySet<string>): ContextItem[] {
  const all = [...pool.items.values()].filter(({ category, item }) => category && EPISODE_CATEGORIES.has(category) && (!ofRun || ofRun.has(item.id)));
  return all
    .map(({ item }) => item)
    .sort((a, b) => ((a.observedAt ?? "") < (b.observedAt ?? "") ? -1 : (a.observedAt ?? "") > (b.observedAt ?? "") ? 1 : a.id < b.id ? -1 : 1))
    .slice(0, EPISODES_MAX);
}
