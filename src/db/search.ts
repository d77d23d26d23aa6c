// Searchable documents and finding them. The one store whose query differs by engine: FTS5 here, full-text search there; the answer is the same.
import { and, asc, desc, eq, gte, inArray, lt, type SQL, sql } from "drizzle-orm";
import type { SearchTerm } from "../protocol/search.ts";
import type { Dialect } from "./dialect.ts";
import type { SearchRow } from "./schema.ts";
import { everySlot, slot } from "./slots.ts";

/** What must stand in a document: all words of `scope` and one of `anyOf` (unless it is empty) in its scope, and the terms in its texts. */
export type Match = { scope: string[]; anyOf: string[]; terms: SearchTerm[] };
export type Find = { match: Match; before: number; from: number; status: string | undefined; limit: number };

/** What a found document is counted by. */
export type SearchFacet = Pick<SearchRow, "kind" | "project" | "sender">;

const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`;
/** FTS5: quoted strings only, so that nothing a person types is an operator. */
const ftsQuery = ({ scope, anyOf, terms }: Match) =>
  [
    ...scope.map((word) => `scope : ${quoted(word)}`),
    ...(anyOf.length > 0 ? [`scope : (${anyOf.map(quoted).join(" OR ")})`] : []),
    ...terms.map(({ text, match }) => `{title body} : ${quoted(text)}${match === "prefix" ? " *" : ""}`),
  ].join(" AND ");
/** PostgreSQL: words of letters and digits only, so there is nothing to escape. Phrases follow each other. */
const tsScope = ({ scope, anyOf }: Match) => [...scope, ...(anyOf.length > 0 ? [`(${anyOf.join(" | ")})`] : [])];
const tsQuery = (of: Match) =>
  [...tsScope(of), ...of.terms.map(({ text, match }) => (match === "prefix" ? `${text}:*` : `(${text.split(" ").join(" <-> ")})`))].join(" & ");

export function searchStore({ db, kind, tables: { searchDocuments: documents, searchCursors, eventCounters }, one, all, run, now }: Dialect) {
  const findSubject = one(
    db
      .select()
      .from(documents)
      .where(and(eq(documents.kind, slot("kind")), eq(documents.subjectId, slot("subjectId")))),
  );
  const taken = one(
    db
      .select({ docId: documents.docId })
      .from(documents)
      .where(eq(documents.docId, slot("docId"))),
  );
  const newestIn = one(
    db
      .select({ docId: documents.docId })
      .from(documents)
      .where(and(gte(documents.docId, slot("from")), lt(documents.docId, slot("to"))))
      .orderBy(desc(documents.docId))
      .limit(1),
  );
  const insert = run(db.insert(documents).values(everySlot(documents)));
  const update = run(
    db
      .update(documents)
      .set({
        sender: slot("sender"),
        recipient: slot("recipient"),
        status: slot("status"),
        title: slot("title"),
        body: slot("body"),
        scope: slot("scope"),
        through: slot("through"),
      })
      .where(eq(documents.docId, slot("docId"))),
  );
  const setStatus = run(
    db
      .update(documents)
      .set({ status: slot("status") })
      .where(eq(documents.docId, slot("docId"))),
  );
  const oldest = all(
    db
      .select({ docId: documents.docId, kind: documents.kind, subjectId: documents.subjectId })
      .from(documents)
      .orderBy(asc(documents.docId))
      .limit(slot("limit")),
  );
  const cursor = one(
    db
      .select()
      .from(searchCursors)
      .where(eq(searchCursors.project, slot("project"))),
  );
  const moveCursor = run(
    db
      .insert(searchCursors)
      .values({ project: slot("project"), seq: slot("seq") })
      .onConflictDoUpdate({ target: searchCursors.project, set: { seq: sql`excluded.seq` } }),
  );
  const behind = db
    .select({ project: eventCounters.project, count: sql<number>`${eventCounters.lastSeq} - coalesce(${searchCursors.seq}, 0)`.mapWith(Number) })
    .from(eventCounters)
    .leftJoin(searchCursors, eq(searchCursors.project, eventCounters.project))
    .where(sql`${eventCounters.lastSeq} > coalesce(${searchCursors.seq}, 0)`);
  const allBehind = all(behind);
  const removeOfProject = run(db.delete(documents).where(eq(documents.project, slot("project"))));

  /** Which documents fit, newest first; the caller says which columns. */
  const fitting = ({ match, before, from, status }: Omit<Find, "limit">): { where: SQL | undefined; newestFirst: SQL } => {
    const kept = status === undefined ? undefined : eq(documents.status, status);
    if (kind === "postgres") {
      const words = sql`to_tsvector('simple', ${documents.scope} || ' ' || ${documents.title} || ' ' || ${documents.body}) @@ to_tsquery('simple', ${tsQuery(match)})`;
      // The index holds all texts of a document as one: a body that spells a word of the scope must not count as one.
      const own = tsScope(match).join(" & ");
      const scope = own === "" ? undefined : sql`to_tsvector('simple', ${documents.scope}) @@ to_tsquery('simple', ${own})`;
      return { where: and(words, scope, lt(documents.docId, before), gte(documents.docId, from), kept), newestFirst: desc(documents.docId) };
    }
    return {
      where: and(sql`search_index match ${ftsQuery(match)}`, sql`search_index.rowid < ${before}`, sql`search_index.rowid >= ${from}`, kept),
      newestFirst: sql`search_index.rowid desc`,
    };
  };
  const find = async (wanted: Find): Promise<SearchRow[]> => {
    const { where, newestFirst } = fitting(wanted);
    if (kind === "postgres") return now(db.select().from(documents).where(where).orderBy(newestFirst).limit(wanted.limit));
    // The index is walked from the newest document down and stops at the page: a common word costs no more than a rare one.
    const walk = db
      .select({ document: documents })
      .from(sql`search_index`)
      .innerJoin(documents, sql`${documents.docId} = search_index.rowid`)
      .where(where)
      .orderBy(newestFirst)
      .limit(wanted.limit);
    return ((await now(walk as never)) as { document: SearchRow }[]).map(({ document }) => document);
  };
  const facets = async (wanted: Find): Promise<SearchFacet[]> => {
    const { where, newestFirst } = fitting(wanted);
    const facet = { kind: documents.kind, project: documents.project, sender: documents.sender };
    if (kind === "postgres") return now(db.select(facet).from(documents).where(where).orderBy(newestFirst).limit(wanted.limit));
    const walk = db
      .select(facet)
      .from(sql`search_index`)
      .innerJoin(documents, sql`${documents.docId} = search_index.rowid`)
      .where(where)
      .orderBy(newestFirst)
      .limit(wanted.limit);
    return now(walk as never) as Promise<SearchFacet[]>;
  };
  return {
    findSubject: (kind: string, subjectId: string) => findSubject({ kind, subjectId }),
    isTaken: async (docId: number) => (await taken({ docId })) !== undefined,
    /** The largest number from `from` and below `to`. */
    newestIn: async (from: number, to: number) => (await newestIn({ from, to }))?.docId,
    insert: (row: SearchRow) => insert(row),
    update: (row: SearchRow) => update(row),
    setStatus: (docId: number, status: string | null) => setStatus({ docId, status }),
    find,
    /** What the newest documents that fit are, without their texts. */
    facets,
    oldest: (limit: number) => oldest({ limit }),
    cursor: async (project: string) => (await cursor({ project }))?.seq ?? 0,
    moveCursor: (project: string, seq: number) => moveCursor({ project, seq }),
    /** The projects whose documents do not say yet what their log says, with how many events they are behind. One counter a project is read. */
    behind: () => allBehind({}) as Promise<{ project: string; count: number }[]>,
    removeAll: async (docIds: number[]) => {
      if (docIds.length > 0) await now(db.delete(documents).where(inArray(documents.docId, docIds)).returning({ docId: documents.docId }));
    },
    /** Everything of a project, so that it can be made anew. */
    async forgetProject(project: string) {
      await removeOfProject({ project });
      await moveCursor({ project, seq: 0 });
    },
  };
}
