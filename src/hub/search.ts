// Search: documents are made from the event log, by a job soon after each change or by the search that comes first, so that a search finds what was
// acknowledged before it. Writing never waits for it: keeping the index in the sender's transaction cost a third of all sends. It can be made anew.
// Codes: invalid_search_query.
import type { EventRow, SearchRow } from "../db/schema.ts";
import { StorageUnavailable, type Stores, type Tx } from "../db/tx.ts";
import { sha256 } from "../protocol/canonical.ts";
import { parseSearch, SEARCH_KINDS, type SearchAnswer, type SearchHit, type SearchKind, type SearchQuery, snippetOf } from "../protocol/search.ts";
import { iso } from "../protocol/time.ts";
import type { Hub } from "./hub.ts";

const EVENTS_AT_ONCE = 500;
const ROUNDS_MAX = 20; // per project and call, so that one busy project does not hold up the others
/** How much of what is new a search itself makes findable, in events, before it answers and says how far it is behind; a write counts as so many. */
const SEARCH_EVENTS_MAX = 1_000;
const EVENTS_PER_WRITE = 25;
const BODY_MAX = 64_000;
const DOC_STEP = 4_096;
const SWEEP_ROWS = 500;
/** Documents that facets are counted over. */
export const FACET_ROWS_MAX = 1_000;

/** What a document says; the indexer adds its place. */
type Document = Omit<SearchRow, "docId" | "scope">;

const word = (prefix: string, text: string) => `${prefix}x${sha256(text.toLowerCase()).slice(0, 16)}`;
const scopeOf = ({ project, kind, sender, recipient }: Pick<Document, "project" | "kind" | "sender" | "recipient">) =>
  [word("p", project), `kx${kind}`, ...(sender ? [word("f", sender)] : []), ...(recipient ? [word("t", recipient)] : [])].join(" ");

/** Brings every project's documents up to its log. For the hub's loop. @returns how many events were looked at */
export async function index(hub: Hub): Promise<number> {
  let count = 0;
  for (const { project } of await hub.engine.read.search.behind()) {
    for (let round = 0; round < ROUNDS_MAX; round++) {
      const { seen, more } = await indexSome(hub, project);
      count += seen;
      if (!more) break;
    }
  }
  return count;
}

/**
 * Brings documents up to the log before a search, as far as that is soon done; the projects with the fewest changes first, so that a busy one does not
 * keep the others from being found.
 * @returns how many changes are still not findable
 */
async function catchUp(hub: Hub, project: string | undefined): Promise<number> {
  const behind = async () => (await hub.engine.read.search.behind()).filter((one) => project === undefined || one.project === project);
  try {
    let left = SEARCH_EVENTS_MAX;
    for (const one of (await behind()).sort((a, b) => a.count - b.count)) {
      for (let more = true; left > 0 && more; ) {
        const round = await indexSome(hub, one.project);
        left -= Math.max(round.seen, EVENTS_PER_WRITE);
        more = round.more;
      }
      if (left <= 0) break;
    }
  } catch (error) {
    if (!(error instanceof StorageUnavailable)) throw error; // what is indexed can be found although the store takes no writes
  }
  return (await behind()).reduce((sum, { count }) => sum + count, 0);
}

/**
 * One write's worth of documents. The cursor stays before a run of which more is to be read than fits: the next round goes on with it.
 * @returns how many events of the log and of runs were looked at, and whether there may be more
 */
async function indexSome(hub: Hub, project: string): Promise<{ seen: number; more: boolean }> {
  const { read } = hub.engine;
  const after = await read.search.cursor(project);
  const events = (await read.events.lastSeq(project)) > after ? await read.events.after(project, after, EVENTS_AT_ONCE) : [];
  const last = events.at(-1);
  if (!last) return { seen: 0, more: false };
  const subjects = new Map(events.map((event) => [`${event.topic} ${event.subjectId}`, event]));
  const found = await Promise.all([...subjects.values()].map(async (event) => ({ seq: event.seq, ...(await documentsOf(read, event)) })));
  const through = Math.min(last.seq, ...found.filter(({ isCut }) => isCut).map(({ seq }) => seq - 1));
  await hub.engine.write(project, async (tx) => {
    if ((await tx.search.cursor(project)) !== after) return; // another hub was faster
    const next = new Map<number, number>();
    for (const { documents, seq } of found) for (const document of documents) await put(tx, document, seq, next);
    if (through > after) await tx.search.moveCursor(project, through);
  });
  const seen = found.reduce((sum, { documents }) => sum + documents.length, 0);
  return { seen: Math.max(events.length, seen), more: events.length === EVENTS_AT_ONCE || through < last.seq };
}

/**
 * A number for a document of a moment: newer ones have larger ones. A long run's documents share a moment and fill it; then the next number behind the
 * last is taken, in a span that doubles, so that a few looks are enough however many there are.
 */
async function freeNumber(tx: Tx, at: number, first: number): Promise<number> {
  if (!(await tx.search.isTaken(first))) return first;
  for (let span = 1; ; span *= 2) {
    const end = (at + span) * DOC_STEP;
    const next = ((await tx.search.newestIn(first, end)) ?? first) + 1;
    if (next < end) return next;
  }
}

/** @param next where the documents before this one left off, by the number they began at */
async function put(tx: Tx, document: Document, seq: number, next: Map<number, number>): Promise<void> {
  const known = await tx.search.findSubject(document.kind, document.subjectId);
  const scope = scopeOf(document);
  if (!known) {
    const wanted = document.at * DOC_STEP + (seq % DOC_STEP);
    const docId = await freeNumber(tx, document.at, next.get(wanted) ?? wanted);
    next.set(wanted, docId + 1);
    return tx.search.insert({ ...document, docId, scope });
  }
  const sameText = known.title === document.title && known.body === document.body && known.scope === scope;
  if (sameText && known.through === document.through)
    return known.status === document.status ? undefined : tx.search.setStatus(known.docId, document.status);
  await tx.search.update({ ...document, docId: known.docId, scope });
}

type Subject = Pick<EventRow, "project" | "subjectId" | "at" | "data">;
const bounded = (...parts: (string | null | undefined)[]) =>
  parts
    .filter((part) => part)
    .join("\n")
    .slice(0, BODY_MAX);
const BLANK = { sender: null, recipient: null, status: null, through: 0 };

/** What each topic's subject says, as it is now. Topics that are not here make nothing searchable; neither do subjects that are gone. */
const SOURCES: Partial<Record<EventRow["topic"], (read: Stores, subject: Subject) => Promise<Document[]>>> = {
  async messages(read, { project, subjectId }) {
    const row = await read.messages.find(subjectId);
    if (!row) return [];
    const { createdAt, senderName, recipientName, status, correlationId, content, replyContent } = row;
    return [
      {
        ...BLANK,
        project,
        subjectId,
        kind: "message",
        at: createdAt,
        sender: senderName,
        recipient: recipientName,
        status,
        title: correlationId ?? "",
        body: bounded(content, replyContent),
      },
    ];
  },
  async agents(read, { project, subjectId }) {
    const row = await read.agents.find(subjectId);
    if (!row) return [];
    const { registeredAt, name, online, purpose, model, host } = row;
    return [
      {
        ...BLANK,
        project,
        subjectId,
        kind: "agent",
        at: registeredAt,
        sender: name,
        status: online === 1 ? "online" : "offline",
        title: name,
        body: bounded(purpose, model, host),
      },
    ];
  },
  async leases(read, { project, subjectId }) {
    const row = await read.leases.find(subjectId);
    if (!row) return [];
    const { acquiredAt, holderName, holderId, name } = row;
    return [
      {
        ...BLANK,
        project,
        subjectId,
        kind: "lease",
        at: acquiredAt,
        sender: holderName,
        status: holderId === null ? "free" : "held",
        title: name,
        body: bounded(holderName),
      },
    ];
  },
  async workflows(read, { project, subjectId }) {
    const row = await read.workflows.find(subjectId);
    if (!row) return [];
    const { stages } = row.record as { stages?: { label: string; summary?: string }[] };
    const body = bounded(...(stages ?? []).flatMap(({ label, summary }) => [label, summary]));
    return [
      {
        ...BLANK,
        project,
        subjectId,
        kind: "workflow",
        at: row.createdAt,
        sender: row.targetAgentName,
        status: row.status,
        title: row.definitionId,
        body,
      },
    ];
  },
  async journal(read, { project, subjectId }) {
    const row = await read.journal.find(subjectId);
    if (!row) return [];
    const { details, evidence } = row.record as { details?: string; evidence?: string[] };
    return [
      {
        ...BLANK,
        project,
        subjectId,
        kind: "journal",
        at: row.createdAt,
        sender: row.agentId,
        status: row.promotedTo,
        title: row.category,
        body: bounded(row.summary, details, ...(evidence ?? [])),
      },
    ];
  },
  async context(read, { project, subjectId }) {
    const row = await read.context.find(subjectId);
    return row
      ? [{ ...BLANK, project, subjectId, kind: "context", at: row.createdAt, status: row.status, title: row.stateKey ?? row.kind, body: row.summary }]
      : [];
  },
};

/** `isCut`: the subject says more than was read. */
type Found = { documents: Document[]; isCut: boolean };
const documentsOf = async (read: Stores, event: EventRow): Promise<Found> =>
  event.topic === "sync" ? runDocuments(read, event) : { documents: (await SOURCES[event.topic]?.(read, event)) ?? [], isCut: false };

/** A Runtime's run, and those of its events that say something in words, from where the ones before it left off. */
async function runDocuments(read: Stores, { project, subjectId, at, data }: Subject): Promise<Found> {
  const { projectId } = data;
  const run = typeof projectId === "string" ? await read.sync.findRun(projectId, subjectId) : undefined;
  if (run?.project !== project) return { documents: [], isCut: false };
  const id = `${run.projectId}/${run.runId}`;
  const base = { project, sender: run.homeRuntimeId, recipient: null, status: run.status };
  const done = (await read.search.findSubject("run", id))?.through ?? 0;
  const events = await read.sync.eventsAfter(run.projectId, run.runId, done, EVENTS_AT_ONCE);
  const told = events.flatMap(({ sequence, record }) => {
    const { payload, eventType } = JSON.parse(record) as { eventType: string; payload: Record<string, unknown> };
    const words = [payload["summary"], payload["reason"]].filter((value) => typeof value === "string").join("\n");
    return words === "" ? [] : [{ ...base, kind: "event", subjectId: `${id}/${sequence}`, at, title: eventType, body: words, through: 0 }];
  });
  // Events that wait behind a gap are found, too, and are read again once it is filled: what fills it comes before them.
  const through = Math.max(done, Math.min(run.cursor, events.at(-1)?.sequence ?? done));
  const of: Document = {
    ...base,
    kind: "run",
    subjectId: id,
    at: run.firstReceivedAt,
    title: run.displayTitle ?? run.workflowId ?? run.runId,
    body: [run.workflowId ?? "", run.runId].join("\n"),
    through,
  };
  return { documents: [of, ...told], isCut: events.length === EVENTS_AT_ONCE && through > done };
}

/** Who asks: an agent finds of messages only its own; somebody who may not read texts gets no snippets. */
export type Searcher = { project: string | undefined; agentName: string | undefined; mayRead: boolean };

/** A query as the store takes it, within what the searcher may see; undefined when nothing can fit. */
function wantedOf(query: SearchQuery, searcher: Searcher) {
  const project = searcher.project ?? query.project;
  const scope = [
    ...(project === undefined ? [] : [word("p", project)]),
    ...(query.kind ? [`kx${query.kind}`] : []),
    ...(query.from ? [word("f", query.from)] : []),
    ...(query.to ? [word("t", query.to)] : []),
  ];
  const isOther = searcher.project !== undefined && query.project !== undefined && query.project !== searcher.project;
  if (isOther || (scope.length === 0 && query.terms.length === 0)) return undefined;
  return { project, match: { scope, anyOf: scopesOf(searcher), terms: query.terms }, from: (query.since ?? 0) * DOC_STEP, status: query.status };
}

/** A page of hits, newest first. */
export async function find(hub: Hub, searcher: Searcher, request: { q: string; after?: string; limit: number }): Promise<SearchAnswer> {
  const query = parseSearch(request.q, hub.clock());
  const wanted = wantedOf(query, searcher);
  if (!wanted) return { hits: [], behind: 0 };
  const { project, ...asked } = wanted;
  const behind = await catchUp(hub, project);
  const hits: SearchRow[] = [];
  let before = request.after !== undefined && /^\d{1,16}$/.test(request.after) ? Number(request.after) : Number.MAX_SAFE_INTEGER;
  let more = true;
  while (hits.length <= request.limit && more) {
    const rows = await hub.engine.read.search.find({ ...asked, before, limit: request.limit + 1 });
    more = rows.length > request.limit && rows.some((row) => !isVisible(row, searcher));
    hits.push(...rows.filter((row) => isVisible(row, searcher)));
    before = rows.at(-1)?.docId ?? 0;
  }
  const page = hits.slice(0, request.limit);
  return {
    hits: page.map((row) => toHit(row, query.terms, searcher)),
    ...(hits.length > page.length && { next: String(page.at(-1)!.docId) }),
    behind,
  };
}

/** Of messages an agent finds its own; of everything else all. @returns words of a scope of which one must be there */
const scopesOf = ({ agentName }: Searcher): string[] =>
  agentName === undefined
    ? []
    : [word("f", agentName), word("t", agentName), ...SEARCH_KINDS.filter((kind) => kind !== "message").map((kind) => `kx${kind}`)];

/** How many were found, and of what: counted over the newest FACET_ROWS_MAX. `more`: there are older ones, which are not in the counts. */
export type SearchFacets = {
  total: number;
  more: boolean;
  /** By kind, whatever kind the query asks for; by project and by sender within it. The most first. */
  kinds: ReadonlyMap<string, number>;
  projects: ReadonlyMap<string, number>;
  senders: ReadonlyMap<string, number>;
};

/** Counts what a query finds. Costs the same however much fits it. @throws HubError invalid_search_query */
export async function facets(hub: Hub, searcher: Searcher, q: string): Promise<SearchFacets> {
  const { kind, ...query } = parseSearch(q, hub.clock());
  const wanted = wantedOf(query, searcher) ?? (kind && wantedOf({ ...query, kind }, searcher));
  const counts = { kinds: new Map<string, number>(), projects: new Map<string, number>(), senders: new Map<string, number>() };
  if (!wanted) return { total: 0, more: false, ...counts };
  const { project: _, ...asked } = wanted;
  const rows = await hub.engine.read.search.facets({ ...asked, before: Number.MAX_SAFE_INTEGER, limit: FACET_ROWS_MAX + 1 });
  const looked = rows.slice(0, FACET_ROWS_MAX);
  const add = (map: Map<string, number>, name: string) => map.set(name, (map.get(name) ?? 0) + 1);
  const fitting = looked.filter((row) => kind === undefined || row.kind === kind);
  for (const row of looked) add(counts.kinds, row.kind);
  for (const { project, sender } of fitting) {
    add(counts.projects, project);
    if (sender !== null) add(counts.senders, sender);
  }
  const most = (map: Map<string, number>) => new Map([...map].sort(([, a], [, b]) => b - a));
  return {
    total: fitting.length,
    more: rows.length > looked.length,
    kinds: counts.kinds,
    projects: most(counts.projects),
    senders: most(counts.senders),
  };
}

/** Names are compared as the index folds them: an agent may come back with another spelling of its name. */
const isVisible = ({ kind, sender, recipient }: SearchRow, { agentName }: Searcher) =>
  agentName === undefined || kind !== "message" || [sender, recipient].some((name) => name?.toLowerCase() === agentName.toLowerCase());

function toHit(
  { kind, subjectId, project, at, title, sender, recipient, status, body }: SearchRow,
  terms: Parameters<typeof snippetOf>[1],
  { mayRead }: Searcher,
): SearchHit {
  return {
    kind: kind as SearchKind,
    id: subjectId,
    project,
    at: iso(at),
    title,
    ...(sender !== null && { from: sender }),
    ...(recipient !== null && { to: recipient }),
    ...(status !== null && { status }),
    ...(mayRead && { snippet: snippetOf(body, terms) }),
  };
}

/** Removes documents whose subject retention has deleted, oldest first; stops at the first batch where all are still there. @returns how many */
export async function sweep(hub: Hub): Promise<number> {
  const { read } = hub.engine;
  const oldest = await read.search.oldest(SWEEP_ROWS);
  const messageIds = oldest.filter(({ kind }) => kind === "message").map(({ subjectId }) => subjectId);
  const alive = new Set((await read.messages.byIds(messageIds)).map(({ id }) => id));
  const gone: number[] = [];
  for (const { docId, kind, subjectId } of oldest)
    if (!(kind === "message" ? alive.has(subjectId) : await exists(read, kind, subjectId))) gone.push(docId);
  if (gone.length > 0) await hub.engine.write("", (tx) => tx.search.removeAll(gone));
  return gone.length;
}

async function exists(read: Stores, kind: string, id: string): Promise<boolean> {
  if (kind === "workflow") return (await read.workflows.find(id)) !== undefined;
  if (kind === "journal") return (await read.journal.find(id)) !== undefined;
  if (kind === "context") return (await read.context.find(id)) !== undefined;
  if (kind !== "run" && kind !== "event") return true; // agents and leases are kept
  const [projectId, runId] = id.split("/") as [string, string];
  return (await read.sync.findRun(projectId, runId)) !== undefined;
}

/** Forgets a project's documents; the job makes them anew from what its log still holds. */
export const rebuild = (hub: Hub, project: string): Promise<void> => hub.engine.write(project, (tx) => tx.search.forgetProject(project));
