// Search results: one box over everything, hits newest first with the found words marked, and what narrows them.
/** @jsxImportSource #jsx */
import * as search from "../hub/search.ts";
import { HubError } from "../protocol/errors.ts";
import { QUALIFIERS, SEARCH_KINDS, type SearchAnswer, type SearchHit, type SearchKind } from "../protocol/search.ts";
import { refusal } from "./acts.tsx";
import { here } from "./address.ts";
import { domId } from "./dom-id.ts";
import type { Child } from "./jsx/jsx-runtime.ts";
import { agentLink, journalLink, leaseLink, link, messageLink, runLink, workflowRunLink } from "./links.ts";
import { type Asked, askedOf, askedValue, chipsOf, keptBy, type Tallies } from "./listing.ts";
import { type FlashText, type Screen, screen, type Visit } from "./screen.ts";
import { Empty, Notice } from "./ui/feedback.tsx";
import { FilterBar, type Suggestion, Suggestions } from "./ui/filter.tsx";
import type { IconName } from "./ui/icon.tsx";
import { Columns, PageHead, Section } from "./ui/page.tsx";
import { shortId } from "./ui/reference.tsx";
import { Facets, Found, Hits } from "./ui/search.tsx";
import { Pager } from "./ui/table.tsx";
import { Ago } from "./ui/time.tsx";
import { Line, Name } from "./ui/untrusted.tsx";

const HITS_SHOWN = 25;
const QUERY_MAX = 500;
/** Qualifiers that become chips; the project is chosen in the frame. */
const CHIPS = ["from", "to", "status", "kind", "since"];

const ICONS: Record<SearchKind, IconName> = {
  message: "messages",
  agent: "agents",
  lease: "leases",
  run: "runs",
  event: "bolt",
  workflow: "runs",
  journal: "journal",
  context: "context",
};
const PLURALS: Record<SearchKind, string> = {
  message: "Messages",
  agent: "Agents",
  lease: "Leases",
  run: "Runs",
  event: "Events of runs",
  workflow: "Workflows",
  journal: "Journal",
  context: "Context",
};

/** The page of what was found. */
function hrefOf({ kind, id, project, title }: SearchHit): string {
  const [projectId = "", runId = ""] = id.split("/");
  switch (kind) {
    case "message":
      return messageLink(id, { project });
    case "agent":
      return agentLink(id, { project });
    case "lease":
      return leaseLink(project, title);
    case "run":
    case "event":
      return runLink(projectId, runId, { project });
    case "workflow":
      return workflowRunLink(id, { project });
    case "journal":
      return journalLink(project, id);
    default:
      return link("/context", { project });
  }
}

/** What was found, in a line; titles are what agents wrote. */
function titleOf({ kind, title, from, to }: SearchHit): Child {
  if (kind !== "message") return <Line text={title === "" ? kind : title} />;
  return (
    <>
      <Name text={from ?? "?"} /> to <Name text={to ?? "?"} />
      {title !== "" && (
        <>
          : <Line text={title} />
        </>
      )}
    </>
  );
}

/** For saved views: no more hits than a page shows. */
export const tally: Tallies = async (visit) => {
  const { answer } = await resultsOf(visit);
  return answer && { count: answer.hits.length, more: answer.next !== undefined };
};

type Results = { query: string; asked: Asked; answer: SearchAnswer | undefined; refused: FlashText | undefined };

async function resultsOf(visit: Visit): Promise<Results> {
  const { hub, url, project, session } = visit;
  const query = url.searchParams.getAll("q").join(" ").trim().slice(0, QUERY_MAX);
  const asked = query.includes('"') ? { qualifiers: [], words: query } : askedOf(url, CHIPS); // a quoted value is one word to the search, not to chips
  if (query === "") return { query, asked, answer: undefined, refused: undefined };
  try {
    const searcher = { project, agentName: undefined, mayRead: session.role !== "viewer" };
    const after = url.searchParams.get("after") ?? undefined;
    const answer = await search.find(hub, searcher, { q: query, limit: HITS_SHOWN, ...(after !== undefined && { after }) });
    return { query, asked, answer, refused: undefined };
  } catch (error) {
    if (!(error instanceof HubError) || error.code !== "invalid_search_query") throw error;
    return { query, asked, answer: undefined, refused: refusal(error) };
  }
}

const FoundHits = ({ answer, visit }: { answer: SearchAnswer; visit: Visit }) => (
  <Hits
    of={answer.hits.map((hit) => ({
      id: domId("hit", hit.kind, hit.id),
      icon: ICONS[hit.kind],
      title: titleOf(hit),
      href: hrefOf(hit),
      snippet: (
        <>
          {hit.snippet && hit.snippet.text !== "" ? (
            <Found text={hit.snippet.text} ranges={hit.snippet.highlights as [number, number][]} />
          ) : (
            (hit.status ?? shortId(hit.id))
          )}
          {visit.project === undefined && (
            <>
              {" · "}
              <Line text={hit.project} />
            </>
          )}
        </>
      ),
      kind: hit.status === undefined || !hit.snippet?.text ? hit.kind : `${hit.kind}, ${hit.status}`,
      when: <Ago at={Date.parse(hit.at)} now={visit.now} plain />,
    }))}
  />
);

/** The kinds, each as the same search with that kind alone. */
const Kinds = ({ asked, url, note }: { asked: Asked; url: URL; note: Child }) => {
  const now = askedValue(asked, "kind");
  const rest = [...asked.qualifiers.filter(({ key }) => key !== "kind").map(({ key, value }) => `${key}:${value}`), asked.words].filter(Boolean);
  const href = (kind?: SearchKind) => here(url, { q: [...(kind ? [`kind:${kind}`] : []), ...rest].join(" ") || undefined, after: undefined });
  return (
    <Facets
      groups={[
        {
          title: "Kind",
          facets: [
            { text: "Everything", href: href(), current: now === undefined },
            ...SEARCH_KINDS.map((kind) => ({ text: PLURALS[kind], href: href(kind), current: now === kind })),
          ],
        },
      ]}
      note={note}
    />
  );
};

const ResultsView = ({ results: { query, asked, answer, refused }, visit }: { results: Results; visit: Visit }) => {
  const later = visit.url.searchParams.has("after");
  const note =
    visit.session.role === "viewer" ? "A viewer sees what was found, not its text." : "Words, beginnings (pay*), “phrases” and qualifiers.";
  return (
    <>
      <PageHead title="Search" sub={["messages, runs, events, journal, context, leases and agents"]} />
      <FilterBar
        action="/search"
        placeholder="words, or from: to: status: kind: since:"
        keep={keptBy(visit.url)}
        qualifiers={chipsOf(visit.url, asked)}
        value={asked.words}
        completions="/ui/search/completions"
      />
      {refused && (
        <Notice tone="attn" title={refused.text}>
          {refused.hint}
        </Notice>
      )}
      {answer && answer.behind > 0 && (
        <Notice tone="run" title={`The newest ${answer.behind} changes are not searchable yet. They are in a moment.`} />
      )}
      {query === "" && (
        <Empty title="What are you looking for?">
          Type words, the beginning of one with a star (refund*), or narrow: from:ann kind:message since:7d. The key / puts the cursor here.
        </Empty>
      )}
      {answer && (
        <Columns
          below
          main={
            <Section title="Found" count={answer.next || later ? undefined : answer.hits.length} note="newest first">
              {answer.hits.length > 0 ? (
                <FoundHits answer={answer} visit={visit} />
              ) : (
                <Empty title="Nothing fits.">Try fewer words, the beginning of one with a star, or everything instead of one kind.</Empty>
              )}
              {(answer.next !== undefined || later) && (
                <Pager
                  shown={`${answer.hits.length} shown, newest first`}
                  newer={later ? here(visit.url, { after: undefined }) : undefined}
                  older={answer.next === undefined ? undefined : here(visit.url, { after: answer.next })}
                />
              )}
            </Section>
          }
          aside={<Kinds asked={asked} url={visit.url} note={note} />}
        />
      )}
    </>
  );
};

const results = screen({
  method: "GET",
  path: "/search",
  role: "viewer",
  run: async (visit) => {
    const found = await resultsOf(visit);
    return visit.page({ title: "Search", place: "search", children: <ResultsView results={found} visit={visit} /> });
  },
});

/** What may stand behind the cursor: names of qualifiers, and kinds. */
const completions = screen({
  method: "GET",
  path: "/ui/search/completions",
  role: "viewer",
  run: ({ url }) => {
    const last = (url.searchParams.get("q")?.split(/\s+/).at(-1) ?? "").toLowerCase();
    const kinds: Suggestion[] = SEARCH_KINDS.map((kind) => ({ inserts: `kind:${kind}`, shows: `kind:${kind}`, note: PLURALS[kind] }));
    const keys: Suggestion[] = Object.entries(QUALIFIERS).map(([key, note]) => ({ inserts: `${key}:`, shows: `${key}:`, note }));
    return <Suggestions of={(last.startsWith("kind:") ? kinds : keys).filter(({ inserts }) => inserts.startsWith(last))} />;
  },
});

export const screens: readonly Screen[] = [results, completions];
