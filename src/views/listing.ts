// Lists over one project or all of them: pages by key, merged, at most VIEW_ROWS_MAX rows; and what is typed into a filter.
import { VIEW_ROWS_MAX } from "../protocol/limits.ts";
import { nearest } from "../protocol/nearest.ts";
import { here } from "./address.ts";
import type { Visit } from "./screen.ts";
import type { Qualifier } from "./ui/filter.tsx";

/** A page over all projects looks at this many of them at most. */
const PROJECTS_LISTED_MAX = 50;

/** The projects a page is about: the chosen one, or all the session may see, the first fifty. */
export const projectsOf = ({ project, projects }: Pick<Visit, "project" | "projects">): readonly string[] =>
  project === undefined ? projects.slice(0, PROJECTS_LISTED_MAX) : [project];

/** The same for what may concern the hub as a whole: over all projects its own log (no name) is looked at as well. */
export const withHubItself = ({ project, session }: Pick<Visit, "project" | "session">, projects: readonly string[]): readonly string[] =>
  project === undefined && session.project === null ? [...projects, ""] : projects;

/** Sums a capped count over projects. Above its cap it means "or more". */
export const countOver = async (projects: readonly string[], count: (project: string) => Promise<number>): Promise<number> =>
  (await Promise.all(projects.map(count))).reduce((sum, one) => sum + one, 0);

/** How many entries of a list fit its filters: exact, or at least this many; undefined when the list cannot tell cheaply. */
export type Tally = { count: number; more: boolean } | undefined;
/** Counts a list as its address asks, looking no further than one page of it would. */
export type Tallies = (visit: Visit, limit: number) => Promise<Tally>;

export type Page<Row> = { rows: Row[]; next: Row | undefined };

/**
 * One page over several ordered sources (projects, kinds, statuses).
 * @param sources each gives up to `limit` of its own rows behind the cursor, in order
 * @param before whether one row comes before another; total, and the same order as the sources'
 * @returns at most `rows` rows and, when there are more, the last of them: what the next page begins behind
 */
export async function mergedPage<Row>(
  sources: readonly ((limit: number) => Promise<Row[]>)[],
  before: (a: Row, b: Row) => boolean,
  rows: number = VIEW_ROWS_MAX,
): Promise<Page<Row>> {
  const found = await Promise.all(sources.map((source) => source(rows + 1)));
  const merged = found.flat().sort((a, b) => (before(a, b) ? -1 : 1));
  const shown = merged.slice(0, rows);
  return { rows: shown, next: merged.length > rows ? shown.at(-1) : undefined };
}

/** Where a page begins, as its address carries it: a position and an id. Anything else is the first page. */
export function cursorOf(url: URL): { at: number; id: string } | undefined {
  const [, at, id] = /^(\d{1,16})\.(.{1,300})$/.exec(url.searchParams.get("after") ?? "") ?? [];
  return at === undefined || id === undefined ? undefined : { at: Number(at), id };
}

/** What is typed into a filter: `key:value` for the keys the list knows, and words. */
export type Asked = { qualifiers: { key: string; value: string }[]; words: string };

/** Reads all `q` of an address. A key that the list does not know is a word like any other: names may contain colons. */
export function askedOf(url: URL, keys: readonly string[]): Asked {
  const qualifiers: Asked["qualifiers"] = [];
  const words: string[] = [];
  for (const term of url.searchParams.getAll("q").join(" ").split(/\s+/).filter(Boolean)) {
    const [, key = "", value = ""] = /^([a-z]+):(.+)$/.exec(term) ?? [];
    if (keys.includes(key)) qualifiers.push({ key, value });
    else words.push(term);
  }
  return { qualifiers, words: words.join(" ") };
}

/** The value of a qualifier; the last one given wins. */
export const askedValue = ({ qualifiers }: Asked, name: string): string | undefined => qualifiers.findLast(({ key }) => key === name)?.value;

/** The address of a list that was asked with its qualifiers as parameters of their own (`?status=failed`), as its filter writes them; undefined when none was. */
export function asTyped(url: URL, keys: readonly string[]): string | undefined {
  const given = keys.flatMap((key) => url.searchParams.getAll(key).flatMap((value) => (/^\S+$/.test(value) ? [`${key}:${value}`] : [])));
  if (given.length === 0) return undefined;
  const q = [...url.searchParams.getAll("q"), ...given].join(" ").trim();
  return here(url, { ...Object.fromEntries(keys.map((key) => [key, undefined])), q });
}

/** What is wrong with a value that must be one of some words: a list that fits nothing says why. */
export function unknownValue(asked: Asked, key: string, words: readonly string[]): string | undefined {
  const value = askedValue(asked, key);
  if (value === undefined || words.includes(value)) return undefined;
  const close = nearest(value, words);
  return `${key}:${value} fits nothing. ${close ? `Did you mean ${key}:${close}?` : `It is one of ${words.join(", ")}.`}`;
}

/** The qualifiers as chips, each with the address of the list without it. */
export function chipsOf(url: URL, { qualifiers, words }: Asked): Qualifier[] {
  return qualifiers.map(({ key, value }, index) => {
    const rest = qualifiers.filter((_, other) => other !== index).map((one) => `${one.key}:${one.value}`);
    const q = [...rest, words].filter(Boolean).join(" ");
    return { key, value, without: here(url, { q: q || undefined, after: undefined }) };
  });
}

/** The parameters that a filter keeps: everything but what is typed and the place in the list. */
export const keptBy = (url: URL): Record<string, string> =>
  Object.fromEntries([...url.searchParams].filter(([name]) => name !== "q" && name !== "after"));
