// Search over everything: the query language, its answer, and how a found place in a text is shown.
import { type Static, Type } from "@sinclair/typebox";
import { HubError } from "./errors.ts";
import { integer, optionalText, text } from "./fields.ts";

/** What can be found. */
export const SEARCH_KINDS = ["message", "agent", "lease", "run", "event", "workflow", "journal", "context"] as const;
export type SearchKind = (typeof SEARCH_KINDS)[number];
/** Words before a colon that narrow a search. */
export const QUALIFIERS = {
  from: "sender, author or holder",
  to: "recipient",
  status: "state of what is found",
  project: "one project",
  kind: SEARCH_KINDS.join(", "),
  since: "a date, or a span such as 7d, 12h, 30m",
} as const;
export type Qualifier = keyof typeof QUALIFIERS;
const TERMS_MAX = 16;

/** A word; with `prefix` (written `pay*`) the beginning of one; or a phrase of words that follow each other. */
export type SearchTerm = { text: string; match: "word" | "prefix" | "phrase" };

/** A query, taken apart. */
export interface SearchQuery {
  /** Words and phrases that must all occur. */
  terms: SearchTerm[];
  from?: string;
  to?: string;
  status?: string;
  project?: string;
  kind?: SearchKind;
  /** Milliseconds since 1970. */
  since?: number;
}

/** Reads a query. @param now for spans such as 7d @throws HubError invalid_search_query */
export function parseSearch(query: string, now: number): SearchQuery {
  const bad = (why: string) => new HubError("invalid_search_query", why);
  const parsed: SearchQuery = { terms: [] };
  for (const [, name, quotedValue, value, phrase, word] of query.matchAll(/(?:(\w+):(?:"([^"]*)"|(\S+)))|"([^"]*)"|(\S+)/g)) {
    if (name !== undefined && Object.hasOwn(QUALIFIERS, name.toLowerCase()))
      readQualifier(parsed, name.toLowerCase() as Qualifier, (quotedValue ?? value)!.trim(), now, bad);
    else {
      const given = phrase ?? word ?? `${name}:${quotedValue ?? value}`;
      const words = given.match(/[\p{L}\p{N}]+/gu) ?? [];
      if (words.length > 0)
        parsed.terms.push({
          text: words.join(" "),
          match: phrase !== undefined || words.length > 1 ? "phrase" : given.endsWith("*") ? "prefix" : "word",
        });
    }
  }
  if (parsed.terms.length > TERMS_MAX) throw bad(`a search has at most ${TERMS_MAX} words`);
  return parsed;
}

function readQualifier(parsed: SearchQuery, name: Qualifier, value: string, now: number, bad: (why: string) => HubError) {
  if (value === "") throw bad(`${name}: needs a value`);
  if (name === "kind") {
    const kind = SEARCH_KINDS.find((known) => known === value.toLowerCase());
    if (!kind) throw bad(`kind: is one of ${SEARCH_KINDS.join(", ")}`);
    parsed.kind = kind;
  } else if (name === "since") {
    const span = /^(\d{1,5})([mhdw])$/.exec(value);
    const at = span
      ? now - Number(span[1]) * { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }[span[2] as "m" | "h" | "d" | "w"]
      : Date.parse(value);
    if (Number.isNaN(at)) throw bad("since: is a date such as 2026-01-31, or a span such as 7d, 12h, 30m");
    parsed.since = at;
  } else parsed[name] = value;
}

/** Where words were found in a text: start and end of each place, in UTF-16 units. Never markup. */
export type Highlight = [start: number, end: number];
const SNIPPET_MAX = 240;

/** The part of a text around its first find, and where the words stand in it. */
export function snippetOf(text: string, terms: SearchQuery["terms"]): { text: string; highlights: Highlight[] } {
  const wanted = terms.flatMap(({ text, match }) =>
    text
      .toLowerCase()
      .split(" ")
      .map((word) => ({ word, isPrefix: match === "prefix" })),
  );
  const finds: Highlight[] = [];
  for (const match of text.matchAll(/[\p{L}\p{N}]+/gu)) {
    const found = match[0].toLowerCase();
    if (wanted.some(({ word, isPrefix }) => (isPrefix ? found.startsWith(word) : found === word)))
      finds.push([match.index, match.index + match[0].length]);
    if (finds.length >= 64) break;
  }
  const start = Math.max(0, (finds[0]?.[0] ?? 0) - 60);
  const end = Math.min(text.length, start + SNIPPET_MAX);
  const cut = text.slice(start, end).toWellFormed(); // a cut may halve a surrogate pair
  const highlights = finds.filter(([from, to]) => from >= start && to <= end).map(([from, to]): Highlight => [from - start, to - start]);
  return { text: cut, highlights };
}

export const SearchRequest = Type.Object({
  q: text(500, { description: 'Words, beginnings of words (pay*), "phrases" and qualifiers: from: to: status: project: kind: since:' }),
  project: optionalText(128, { description: "The project to search; a token for all projects may leave it out" }),
  after: optionalText(32, { description: "next of the page before" }),
  limit: integer({ default: 20, min: 1, max: 50 }),
});
export const SearchHit = Type.Object({
  kind: Type.Union(SEARCH_KINDS.map((word) => Type.Literal(word))),
  id: Type.String(),
  project: Type.String(),
  at: Type.String(),
  title: Type.String(),
  from: Type.Optional(Type.String()),
  to: Type.Optional(Type.String()),
  status: Type.Optional(Type.String()),
  snippet: Type.Optional(
    Type.Object(
      { text: Type.String(), highlights: Type.Array(Type.Array(Type.Integer())) },
      { description: "Absent for callers that may not read texts" },
    ),
  ),
});
export type SearchHit = Static<typeof SearchHit>;
export const SearchAnswer = Type.Object({
  hits: Type.Array(SearchHit),
  next: Type.Optional(Type.String()),
  behind: Type.Integer({ description: "Changes of the project that are not searchable yet" }),
});
export type SearchAnswer = Static<typeof SearchAnswer>;
