// Search results: one box over everything, hits newest first with the found words marked, and what narrows them.
/** @jsxImportSource #jsx */
import * as savedViews from "../hub/saved-views.ts";
import * as search from "../hub/search.ts";
import { PAGE_ROWS_MAX } from "../protocol/limits.ts";
import { SEARCH_KINDS, type SearchAnswer, type SearchHit, type SearchKind } from "../protocol/search.ts";
import { here } from "./address.ts";
import { domId } from "./dom-id.ts";
import { download, type ExportColumn } from "./export.ts";
import { EXPORT_ROWS_MAX, FileLinks } from "./file-links.tsx";
import type { Child } from "./jsx/jsx-runtime.ts";
import { agentLink, journalLink, leaseLink, link, messageLink, runLink, workflowRunLink } from "./links.ts";
import { type Asked, askedValue, chipsOf, keptBy } from "./listing.ts";
import { livePage } from "./live-page.tsx";
import * as savedCounts from "./saved-counts.ts";
import { type Screen, screen, type Visit } from "./screen.ts";
import { type Found, queryOf, resultsOf, searcherOf } from "./search-data.ts";
import { PLURALS, valued } from "./search-words.ts";
import { Empty, Notice } from "./ui/feedback.tsx";
import { FilterBar } from "./ui/filter.tsx";
import type { IconName } from "./ui/icon.tsx";
import { Columns, PageHead, Section } from "./ui/page.tsx";
import { shortId } from "./ui/reference.tsx";
import { Facets, Found as FoundText, Hits } from "./ui/search.tsx";
import { Pager } from "./ui/table.tsx";
import { Ago } from "./ui/time.tsx";
import { Line, Name } from "./ui/untrusted.tsx";

const LINE_MAX = 40;

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

type Results = Found & {
  facets: search.SearchFacets | undefined;
  saved: { text: string; href: string; count: string | undefined }[];
};

async function load(visit: Visit): Promise<Results> {
  const found = await resultsOf(visit);
  const saved = await savedSearches(visit);
  if (!found.answer) return { ...found, facets: undefined, saved };
  return { ...found, facets: await search.facets(visit.hub, searcherOf(visit), found.query), saved };
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
            <FoundText text={hit.snippet.text} ranges={hit.snippet.highlights as [number, number][]} />
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

const SENDERS_SHOWN = 6;
const PROJECTS_SHOWN = 8;

/** The same search with one qualifier set to another value, or without it. */
function withQualifier(url: URL, asked: Asked, key: string, value: string | undefined): string {
  const rest = [...asked.qualifiers.filter((one) => one.key !== key).map((one) => `${one.key}:${one.value}`), asked.words].filter(Boolean);
  return here(url, { q: [...(value === undefined ? [] : [valued(key, value)]), ...rest].join(" ") || undefined, after: undefined, act: undefined });
}

/** The searches that somebody keeps, and the way to their names. */
const keptGroup = (saved: Results["saved"], { project }: Visit) =>
  saved.length === 0
    ? []
    : [
        {
          title: "Saved searches",
          facets: [
            ...saved.map(({ text, href, count }) => ({ text: <Line text={text} max={LINE_MAX} />, href, count })),
            { text: "Rename or delete…", href: link("/views", { project }) },
          ],
        },
      ];

/** What narrows the search: kinds, projects and senders with how many there are of each, and the searches somebody keeps. */
const Narrow = ({ results: { asked, facets, saved }, visit, note }: { results: Results; visit: Visit; note: Child }) => {
  const { url } = visit;
  const kind = askedValue(asked, "kind");
  const from = askedValue(asked, "from");
  const counted = (count: number | undefined) =>
    facets === undefined ? undefined : count === undefined ? (facets.more ? undefined : 0) : facets.more ? `${count}+` : count;
  const all = facets && [...facets.kinds.values()].reduce((sum, one) => sum + one, 0);
  return (
    <Facets
      groups={[
        {
          title: "Kind",
          facets: [
            { text: "Everything", href: withQualifier(url, asked, "kind", undefined), current: kind === undefined, count: counted(all) },
            ...SEARCH_KINDS.map((one) => ({
              text: PLURALS[one],
              href: withQualifier(url, asked, "kind", one),
              current: kind === one,
              count: counted(facets?.kinds.get(one)),
            })),
          ],
        },
        ...(visit.project === undefined && facets && facets.projects.size > 0
          ? [
              {
                title: "Project",
                facets: [...facets.projects].slice(0, PROJECTS_SHOWN).map(([project, count]) => ({
                  text: <Line text={project} max={LINE_MAX} />,
                  href: here(url, { project, after: undefined, act: undefined }),
                  count: counted(count),
                })),
              },
            ]
          : []),
        ...(facets && facets.senders.size > 0
          ? [
              {
                title: "From",
                facets: [...facets.senders].slice(0, SENDERS_SHOWN).map(([sender, count]) => ({
                  text: <Line text={/^(agt|rtm)_/.test(sender) ? shortId(sender) : sender} max={LINE_MAX} />,
                  href: withQualifier(url, asked, "from", from === sender ? undefined : sender),
                  current: from === sender,
                  count: counted(count),
                })),
              },
            ]
          : []),
        ...keptGroup(saved, visit),
      ]}
      note={
        facets?.more ? (
          <>
            Counted over the newest {search.FACET_ROWS_MAX.toLocaleString("en")}. {note}
          </>
        ) : (
          note
        )
      }
    />
  );
};

const found = ({ total, more }: search.SearchFacets): string => `${total.toLocaleString("en")}${more ? "+" : ""}`;

const ResultsView = ({ results, visit }: { results: Results; visit: Visit }) => {
  const { query, asked, answer, facets, refused } = results;
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
        completions={link("/ui/search/completions", { project: visit.project })}
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
            <Section title="Found" count={facets && found(facets)} note="newest first">
              {answer.hits.length > 0 ? (
                <FoundHits answer={answer} visit={visit} />
              ) : (
                <Empty title="Nothing fits.">Try fewer words, the beginning of one with a star, or everything instead of one kind.</Empty>
              )}
              {answer.hits.length > 0 && (
                <Pager
                  shown={
                    <>
                      {answer.hits.length} shown, newest first · <FileLinks list="search" url={visit.url} />
                    </>
                  }
                  newer={later ? here(visit.url, { after: undefined }) : undefined}
                  older={answer.next === undefined ? undefined : here(visit.url, { after: answer.next })}
                />
              )}
            </Section>
          }
          aside={<Narrow results={results} visit={visit} note={note} />}
        />
      )}
    </>
  );
};

/** The searches that somebody keeps, with what they find now. */
async function savedSearches(visit: Visit): Promise<Results["saved"]> {
  const views = (await savedViews.list(visit.hub.engine.read, visit.session)).filter(({ place }) => place === "search");
  const { tallies } = await savedCounts.countsOf(visit, views);
  return views.map((view, index) => {
    const tally = tallies[index];
    return { text: view.name, href: savedCounts.savedHref(view), count: tally && `${tally.count}${tally.more ? "+" : ""}` };
  });
}

const EXPORT: readonly ExportColumn<SearchHit>[] = [
  ["kind", ({ kind }) => kind],
  ["id", ({ id }) => id],
  ["project", ({ project }) => project],
  ["at", ({ at }) => at],
  ["title", ({ title }) => title],
  ["from", ({ from }) => from],
  ["to", ({ to }) => to],
  ["status", ({ status }) => status],
  ["text", ({ snippet }) => snippet?.text],
];

/** What was found as a file, from this page on; texts only for those who may read them. @throws HubError invalid_search_query */
async function exportHits(visit: Visit): Promise<Response> {
  const hits: SearchHit[] = [];
  for (let after = visit.url.searchParams.get("after") ?? undefined; hits.length < EXPORT_ROWS_MAX; ) {
    const page = await search.find(visit.hub, searcherOf(visit), {
      q: queryOf(visit.url),
      limit: PAGE_ROWS_MAX,
      ...(after !== undefined && { after }),
    });
    hits.push(...page.hits);
    if (page.next === undefined) break;
    after = page.next;
  }
  return download("search", visit.params["format"]!, EXPORT, hits);
}

const results = livePage<Results>({
  path: "/search",
  id: "search",
  place: "search",
  topic: ["messages", "runs", "journal", "context", "leases", "agents"],
  load,
  title: () => "Search",
  view: (data, visit) => <ResultsView results={data} visit={visit} />,
});

export const screens: readonly Screen[] = [...results, screen({ method: "GET", path: "/search/export/:format", role: "viewer", run: exportHits })];
