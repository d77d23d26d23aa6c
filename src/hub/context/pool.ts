// The pool of a project: stored items, journal entries as items, and authored memory. Kept in memory per project and brought up to date from the
// store by revision before each request, so that a request costs what changed, not what is stored.
import type { Stores } from "../../db/tx.ts";
import { AUTHORITIES, CONFIDENCES, type ContextItem, type ContextKind, KINDS } from "../../protocol/context.ts";
import type { Category, JournalEntry } from "../../protocol/journal.ts";
import { type Bm25, createBm25 } from "./bm25.ts";

const PAGE = 1_000;
const POOLS_MAX = 8; // projects held at once; the least recently used one is dropped

/** An item with what retrieval needs of it. */
export interface PoolItem {
  item: ContextItem;
  /** Journal category, for journal entries. */
  category: Category | undefined;
  /** Lower-cased text for exact phrases. */
  text: string;
  tokens: number;
  live: boolean;
}
/** What one project knows, in memory, ready to be asked. */
export interface Pool {
  readonly items: ReadonlyMap<string, PoolItem>;
  readonly index: Bm25;
  /** Live items of a kind, best first. */
  ofKind(kind: ContextKind): readonly PoolItem[];
  readonly superseded: number;
}
/** The pools of a process, each made when it is first asked for. */
export interface Pools {
  /** The project's pool as committed now. */
  get(read: Stores, project: string): Promise<Pool>;
}

/** Characters of an item over four, rounded up: the usual estimate of its tokens. */
export const estimateTokens = ({ summary, id, kind, provenance }: ContextItem): number =>
  Math.ceil((summary.length + id.length + kind.length + (provenance.sourceRef?.length ?? 0)) / 4);

/** Surest, strongest, newest first; then by id, so that equal pools always give equal orders. */
export const byWorth = (a: PoolItem, b: PoolItem): number =>
  CONFIDENCES.indexOf(a.item.confidence) - CONFIDENCES.indexOf(b.item.confidence) ||
  AUTHORITIES.indexOf(a.item.authority) - AUTHORITIES.indexOf(b.item.authority) ||
  compare(b.item.observedAt ?? "", a.item.observedAt ?? "") ||
  compare(a.item.id, b.item.id);
const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

const JOURNAL_KINDS: Partial<Record<Category, ContextKind>> = {
  plan: "knowledge",
  decision: "knowledge",
  lesson: "knowledge",
  "skill-candidate": "skill",
};

/** A journal entry as an item. */
export function itemOfEntry(entry: JournalEntry, project: string): ContextItem {
  const kind = JOURNAL_KINDS[entry.category] ?? "evidence";
  const promoted = entry.promotion?.at(-1)?.to;
  const status = kind !== "skill" ? undefined : promoted === undefined ? "proposed" : promoted === "approved" ? "current" : "rejected";
  return {
    id: `journal_${entry.id}`,
    kind,
    project,
    summary: entry.summary,
    provenance: { sourceType: "workflow", sourceRef: `journal:${entry.id}` },
    authority: "evidence",
    confidence: "probable",
    observedAt: entry.createdAt,
    ...(status && { status }),
    evidenceRefs: entry.evidence.filter((line) => line.length <= 200).slice(0, 16),
  };
}

/** The pools of all projects. @param memory authored items of a project, read outside of any write */
export function createPools(memory: (project: string) => readonly ContextItem[]): Pools {
  const pools = new Map<string, ReturnType<typeof createPool>>();
  return {
    async get(read, project) {
      const pool = pools.get(project) ?? createPool(project);
      pools.delete(project);
      pools.set(project, pool);
      if (pools.size > POOLS_MAX) pools.delete(pools.keys().next().value!);
      await pool.refresh(read, memory(project));
      return pool;
    },
  };
}

function createPool(project: string) {
  let items = new Map<string, PoolItem>();
  let index = createBm25();
  let byKind = new Map<ContextKind, PoolItem[]>();
  let seen = { items: 0, entries: 0, purges: -1 };
  let authored = "";
  let superseded = 0;
  let refreshing: Promise<void> | undefined;

  const put = (item: ContextItem, category?: Category) => {
    const before = items.get(item.id);
    if (before?.live) index.remove(item.id, before.text);
    if (before && !before.live) superseded--;
    const live = item.status !== "superseded" && item.status !== "rejected";
    const searched = searchedText(item);
    items.set(item.id, { item, category, text: searched.toLowerCase(), tokens: estimateTokens(item), live });
    live ? index.add(item.id, searched) : superseded++;
    byKind = new Map();
  };
  const reset = () => {
    [items, index, byKind, superseded, authored] = [new Map(), createBm25(), new Map(), 0, ""];
    seen = { items: 0, entries: 0, purges: -1 };
  };
  async function bringUpToDate(read: Stores, memory: readonly ContextItem[]) {
    const { purges } = await read.context.counters(project);
    if (purges !== seen.purges) reset(); // something was deleted: start over
    seen.purges = purges;
    seen.items = await eachPage(
      seen.items,
      (after, limit) => read.context.changedAfter(project, after, limit),
      (row) => put(row.record as unknown as ContextItem),
    );
    seen.entries = await eachPage(
      seen.entries,
      (after, limit) => read.journal.changedAfter(project, after, limit),
      (row) => {
        const entry = row.record as unknown as JournalEntry;
        put(itemOfEntry(entry, project), entry.category);
      },
    );
    const shape = memory.map(({ id, summary }) => `${id} ${summary}`).join("\n");
    if (shape !== authored) {
      for (const item of memory) put(item);
      authored = shape;
    }
  }
  return {
    get items() {
      return items;
    },
    get index() {
      return index;
    },
    get superseded() {
      return superseded;
    },
    ofKind(kind: ContextKind): readonly PoolItem[] {
      if (byKind.size === 0) byKind = sortedByKind(items.values());
      return byKind.get(kind)!;
    },
    /** One refresh at a time: concurrent requests share it or start the next one after it. */
    async refresh(read: Stores, memory: readonly ContextItem[]) {
      while (refreshing) await refreshing;
      refreshing = bringUpToDate(read, memory).finally(() => {
        refreshing = undefined;
      });
      await refreshing;
    },
  };
}

/** What words are looked for in. */
const searchedText = ({ summary, stateKey }: ContextItem) => (stateKey === undefined ? summary : `${summary} ${stateKey}`);

/** Live items of each kind, best first. */
function sortedByKind(items: Iterable<PoolItem>): Map<ContextKind, PoolItem[]> {
  const byKind = new Map<ContextKind, PoolItem[]>(KINDS.map((kind) => [kind, []]));
  for (const item of items) if (item.live) byKind.get(item.item.kind)!.push(item);
  for (const list of byKind.values()) list.sort(byWorth);
  return byKind;
}

/** Every page after a revision, up to the newest. @returns the revision reached */
async function eachPage<R extends { revision: number }>(
  after: number,
  read: (after: number, limit: number) => Promise<R[]>,
  use: (row: R) => void,
): Promise<number> {
  let reached = after;
  for (;;) {
    const page = await read(reached, PAGE);
    for (const row of page) use(row);
    reached = page.at(-1)?.revision ?? reached;
    if (page.length < PAGE) return reached;
  }
}
