// The one object that takes secrets and places out of text before the text is written or sent. It must exist before a store can be opened.
// Order: known values, structure, shapes, places, invisible characters. What is found is replaced by its kind, never by a length or a hash.
import type { KnownSecrets, Match } from "./known-secrets.ts";
import { findPlaces } from "./places.ts";
import { findOpenShape, findShapes } from "./shapes.ts";
import { findStructural } from "./structural.ts";
import { type View, viewsOf, withoutInvisible } from "./views.ts";

/** Name of the rule set, part of every sync event. Raise it when rules change. */
export const REDACTION_VERSION = "kxm-redact-1";

/** A text without what was taken out, and how many places that were. */
export type Scrubbed = { text: string; replaced: number };

export type Redactor = {
  readonly version: string;
  /** The values known to be secret; grows while the process lives. */
  readonly known: KnownSecrets;
  /** Takes out secrets only: for text that stays on this machine. */
  secrets(text: string): Scrubbed;
  /**
   * Takes out secrets, absolute paths and invisible characters: for text that leaves.
   * @param before the `tail` of the text that left before it, so that a secret cut in two is seen
   */
  leaving(text: string, before?: string): Scrubbed & { tail: string };
  /** Adds a place to take out by name, such as the root of a project. */
  addFolder(folder: string): void;
  /** Where whole secrets stand in a text: for streams and scans. */
  find(text: string): Match[];
  /** The same, and pieces of secrets at the text's edges that another text would complete. */
  findAtEnd(text: string): Match[];
};

/**
 * @param known values to find exactly; add every secret before the first text
 * @param options.folders places to take out by name besides what looks like a path: home, state root, project roots
 */
export function createRedactor(known: KnownSecrets, options: { folders?: readonly string[] } = {}): Redactor {
  const folders: string[] = [];
  const addFolder = (folder: string) => {
    if (folder.length <= 3 || folders.includes(folder)) return;
    folders.push(folder);
    folders.sort((a, b) => b.length - a.length);
  };
  for (const folder of options.folders ?? []) addFolder(folder);
  const find = (text: string) => findSecrets(text, known);
  const findAtEnd = remembering(known, (text) => {
    const open = findOpenShape(text);
    return [...find(text), ...known.findFragments(text), ...(open ? [open] : [])];
  });
  return {
    version: REDACTION_VERSION,
    known,
    addFolder,
    find,
    findAtEnd,
    secrets: (text) => (text === "" ? { text, replaced: 0 } : replaced(text, merge(findAtEnd(text)))),
    leaving: (given, before = "") => {
      if (given === "") return { text: given, replaced: 0, tail: before };
      const text = given.toWellFormed();
      const secrets = findAtEnd(text);
      const joined = before === "" ? [] : findAtEnd(before + text);
      const seam = before.length;
      const all = [...secrets, ...continued(joined, seam, text), ...findPlaces(text, folders)];
      const scrubbed = replaced(text, merge(all));
      const tail = tailOf(before + text, before === "" ? secrets : joined);
      return { ...scrubbed, text: withoutInvisible(scrubbed.text), tail };
    },
  };
}

const REMEMBERED_MAX = 64;
const REMEMBERED_CHARS_MAX = 4_096;
/** An event's texts are looked at twice, once to be kept and once to leave: the second time is free. */
function remembering(known: KnownSecrets, find: (text: string) => Match[]): (text: string) => Match[] {
  const found = new Map<string, Match[]>();
  let size = known.size;
  return (text) => {
    if (text.length > REMEMBERED_CHARS_MAX) return find(text);
    if (found.size >= REMEMBERED_MAX || known.size !== size) found.clear();
    size = known.size;
    const before = found.get(text);
    if (before) return before;
    const matches = find(text);
    found.set(text, matches);
    return matches;
  };
}

/** Secrets in a text and in its other readings. */
function findSecrets(text: string, known: KnownSecrets): Match[] {
  const matches: Match[] = [];
  for (const view of viewsOf(text)) {
    const found = [...known.find(view.text), ...findStructural(view.text), ...findShapes(view.text)];
    for (const match of found) matches.push(original(view, match));
  }
  return matches;
}

const original = ({ at }: View, match: Match): Match => (at ? { ...match, start: at[match.start]!, end: at[match.end]! } : match);

/** Matches in order, overlapping ones as one. The kind is that of the longest. */
export function merge(matches: Match[]): Match[] {
  const sorted = matches.filter(({ start, end }) => end > start).sort((a, b) => a.start - b.start || b.end - a.end);
  const merged: (Match & { longest: number })[] = [];
  for (const match of sorted) {
    const last = merged.at(-1);
    const length = match.end - match.start;
    if (!last || match.start >= last.end) merged.push({ ...match, longest: length });
    else {
      if (length > last.longest && match.kind !== "path") Object.assign(last, { kind: match.kind, longest: length });
      last.end = Math.max(last.end, match.end);
    }
  }
  return merged;
}

/** A text with its matches replaced by their kinds. @param matches in order and apart, as `merge` gives them */
export function replaced(text: string, matches: Match[]): Scrubbed {
  if (matches.length === 0) return { text, replaced: 0 };
  const pieces: string[] = [];
  let from = 0;
  for (const { start, end, kind } of matches) {
    pieces.push(text.slice(from, start), kind === "path" ? "[path]" : `[REDACTED:${kind}]`);
    from = end;
  }
  pieces.push(text.slice(from));
  return { text: pieces.join(""), replaced: matches.length };
}

const TAIL_MAX = 1024;
const OPEN_MAX = 8192;
/** The end of a text that a secret may go on from: its last word, or a match that reaches the end. Kept in memory only, never written. */
function tailOf(text: string, matches: Match[]): string {
  const floor = Math.max(0, text.length - TAIL_MAX);
  let from = text.length;
  while (from > floor && !/\s/.test(text[from - 1]!)) from--;
  for (const match of matches) if (match.end === text.length && text.length - match.start <= OPEN_MAX) from = Math.min(from, match.start);
  return text.slice(from);
}

/** What of `text` belongs to a secret that began before it. @param joined matches in the text with what was before; `seam` is where it begins */
function continued(joined: Match[], seam: number, text: string): Match[] {
  return joined
    .filter(({ start, end }) => start < seam && end > seam)
    .map(({ end, kind }) => ({ start: 0, end: end - seam, kind }))
    .filter(({ end }) => !/^[A-Z]?[a-z]*$/.test(text.slice(0, end))); // an ordinary word that only follows one
}
