// What may stand behind the cursor of a search: names of qualifiers, and the values of the one that is being typed.
/** @jsxImportSource #jsx */
import { QUALIFIERS, SEARCH_KINDS } from "../protocol/search.ts";
import { projectsOf } from "./listing.ts";
import { type Screen, screen, type Visit } from "./screen.ts";
import { PLURALS, valued } from "./search-words.ts";
import { type Suggestion, Suggestions } from "./ui/filter.tsx";
import { visible } from "./ui/untrusted.tsx";

const OFFERED_MAX = 8;
const SPANS: readonly (readonly [span: string, says: string])[] = [
  ["30m", "the last 30 minutes"],
  ["12h", "the last 12 hours"],
  ["7d", "the last 7 days"],
  ["4w", "the last 4 weeks"],
];
/** Words that what can be found calls its state. */
const STATUSES = [
  "queued",
  "delivered",
  "replied",
  "cancelled",
  "expired",
  "online",
  "offline",
  "held",
  "free",
  "running",
  "waiting",
  "completed",
  "failed",
  "blocked_uncertain",
  "approved",
  "rejected",
  "quarantined",
  "current",
  "superseded",
  "proposed",
] as const;

/** What may stand behind a qualifier's colon. @param typed lower case */
async function valuesOf(visit: Visit, key: string, typed: string): Promise<Suggestion[]> {
  const offer = (value: string, note?: string): Suggestion => ({ inserts: valued(key, value), shows: `${key}:${visible(value)}`, note });
  const starting = (values: readonly string[]) => values.filter((value) => value.toLowerCase().startsWith(typed)).map((value) => offer(value));
  if (key === "kind") return SEARCH_KINDS.filter((kind) => kind.startsWith(typed)).map((kind) => offer(kind, PLURALS[kind]));
  if (key === "since") return SPANS.filter(([span]) => span.startsWith(typed)).map(([span, says]) => offer(span, says));
  if (key === "status") return starting(STATUSES);
  if (key === "project") return starting(visit.projects);
  if (key !== "from" && key !== "to") return [];
  const found = await Promise.all(
    projectsOf(visit).map((project) => visit.hub.engine.read.agents.page(project, { of: "all", prefix: typed, limit: OFFERED_MAX })),
  );
  return [...new Set(found.flat().map(({ name }) => name))]
    .filter((name) => !name.includes('"'))
    .sort()
    .map((name) => offer(name));
}

const completions = screen({
  method: "GET",
  path: "/ui/search/completions",
  role: "viewer",
  run: async (visit) => {
    const last = (visit.url.searchParams.get("q")?.split(/\s+/).at(-1) ?? "").toLowerCase();
    const [, key, typed = ""] = /^([a-z]+):(.*)$/.exec(last) ?? [];
    if (key !== undefined && Object.hasOwn(QUALIFIERS, key)) {
      const values = (await valuesOf(visit, key, typed)).filter(({ inserts }) => inserts.toLowerCase() !== last); // what is typed whole needs no offer
      return <Suggestions of={values.slice(0, OFFERED_MAX)} />;
    }
    const keys: Suggestion[] = Object.entries(QUALIFIERS).map(([name, note]) => ({ inserts: `${name}:`, shows: `${name}:`, note }));
    return <Suggestions of={keys.filter(({ inserts }) => inserts.startsWith(last))} />;
  },
});

export const screens: readonly Screen[] = [completions];
