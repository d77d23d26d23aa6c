// Context: what a project holds to be true, what is proposed to be, the history of a key, and the decision on a proposal.
/** @jsxImportSource #jsx */
import type { ContextItemRow } from "../db/schema.ts";
import type { Stores } from "../db/tx.ts";
import * as state from "../hub/context/state.ts";
import type { ContextItem } from "../protocol/context.ts";
import { VIEW_ROWS_MAX } from "../protocol/limits.ts";
import { here } from "./address.ts";
import { Compare, type Contradiction, Contradictions, contradictionOf, contradictionsOf, questionsOf as decisionsOf } from "./context-compare.tsx";
import { promoteQuestion, rejectQuestion } from "./context-decision.tsx";
import { type Names, namesOf, Origin } from "./context-value.tsx";
import { domId } from "./dom-id.ts";
import { FileLinks } from "./file-links.tsx";
import { link, stateLink } from "./links.ts";
import { projectsOf } from "./listing.ts";
import { livePage } from "./live-page.tsx";
import { AskedHere, type Question } from "./question.tsx";
import type { Screen, Visit } from "./screen.ts";
import { Button } from "./ui/button.tsx";
import { Command, Empty, Notice } from "./ui/feedback.tsx";
import { PageHead, Row, Section } from "./ui/page.tsx";
import { Ref } from "./ui/reference.tsx";
import { Status, stateOf } from "./ui/status.tsx";
import { Card, CardList, Pager, Table } from "./ui/table.tsx";
import { Ago } from "./ui/time.tsx";
import { Line, Untrusted } from "./ui/untrusted.tsx";

type Place = { project: string; key: string };
type ContextData = {
  projects: readonly string[];
  current: ContextItem[];
  next: Place | undefined;
  proposals: ContextItem[];
  /** The key that the address names, and everything it ever said. */
  key: { name: string; history: ContextItem[]; contradiction: Contradiction | undefined } | undefined;
  /** Of the list: keys that say two things. */
  contradictions: Contradiction[];
  /** Of the agents that said what is shown. */
  names: Names;
};

async function load(visit: Visit): Promise<ContextData> {
  const { read } = visit.hub.engine;
  const projects = projectsOf(visit);
  const name = visit.url.searchParams.get("key") ?? undefined;
  const proposals = (await Promise.all(projects.map((project) => read.context.proposals(project, VIEW_ROWS_MAX)))).flat().map(state.itemOf);
  const key = name !== undefined && projects.length === 1 ? await keyOf(visit, projects[0]!, name, proposals) : undefined;
  const page = key ? { rows: [], next: undefined } : await currentPage(read, projects, placeOf(visit.url));
  const waiting = key ? proposals.filter(({ stateKey }) => stateKey === key.name) : proposals.slice(0, VIEW_ROWS_MAX);
  return {
    projects,
    current: page.rows.map(state.itemOf),
    next: page.next,
    proposals: waiting,
    names: await namesOf(read, [...waiting, ...(key?.history ?? [])]),
    key,
    contradictions: key || visit.url.searchParams.has("after") ? [] : await contradictionsOf(visit, projects, proposals),
  };
}

/** A key with everything it ever said, and what about it needs a decision. @param open proposals of the project */
async function keyOf({ hub, now }: Visit, project: string, name: string, open: readonly ContextItem[]) {
  const { read } = hub.engine;
  const history = await state.history(read, project, name, VIEW_ROWS_MAX);
  const proposals = open.filter(({ stateKey }) => stateKey === name);
  return { name, history, contradiction: await contradictionOf(read, { project, key: name, proposals, now }) };
}

/** Where a page begins: behind this key of this project. */
function placeOf(url: URL): Place | undefined {
  const [project, key] = [url.searchParams.get("of"), url.searchParams.get("after")];
  return project === null || key === null ? undefined : { project, key };
}

/** Current values by project and key. */
async function currentPage(read: Stores, projects: readonly string[], from: Place | undefined) {
  const rows: ContextItemRow[] = [];
  for (const project of projects.slice(Math.max(0, from ? projects.indexOf(from.project) : 0))) {
    const after = from?.project === project ? from.key : "";
    rows.push(...(await read.context.currentAfter(project, after, VIEW_ROWS_MAX + 1 - rows.length)));
    if (rows.length > VIEW_ROWS_MAX) break;
  }
  const shown = rows.slice(0, VIEW_ROWS_MAX);
  const last = shown.at(-1);
  return { rows: shown, next: rows.length > shown.length && last ? { project: last.project, key: last.stateKey! } : undefined };
}

const STATUS_WORDS = { current: "active", superseded: "superseded", proposed: "proposed", rejected: "rejected" } as const;

/** One value of a key: what it says and on which evidence. */
type ValueProps = { item: ContextItem; names: Names; visit: Visit; several: boolean; decides: boolean };
const Value = ({ item, names, visit, several, decides }: ValueProps) => {
  const { id, project, stateKey = "", summary, authority, confidence, evidenceRefs = [], status = "proposed", observedAt } = item;
  const to = (name: string) => link(stateLink(project, stateKey), { act: name, proposal: id });
  return (
    <Card
      id={`state-${id}`}
      title={
        <Ref href={stateLink(project, stateKey)}>
          <code>
            <Line text={stateKey} />
          </code>
        </Ref>
      }
      when={observedAt && <Ago at={Date.parse(observedAt)} now={visit.now} />}
      meta={[
        <Status state={stateOf(STATUS_WORDS[status])} word={status} />,
        <Origin item={item} names={names} />,
        `${authority}, ${confidence}`,
        ...(several ? [<Line text={project} />] : []),
      ]}
    >
      <Untrusted by={item.provenance.sourceType} text={[summary, ...evidenceRefs.map((ref) => `evidence: ${ref}`)].join("\n")} note="value" />
      {decides && status === "proposed" && (
        <Row>
          <Button small href={to("promote")}>
            Promote…
          </Button>
          <Button small href={to("reject")}>
            Reject…
          </Button>
        </Row>
      )}
    </Card>
  );
};

/** Both decisions on a proposal. */
const questionsOf = (of: ContextItem): Question[] => [
  promoteQuestion(of, { name: "promote", button: "Promote…" }),
  rejectQuestion(of, { name: "reject", button: "Reject…" }),
];

const Current = ({ data: { current, next, projects }, visit }: { data: ContextData; visit: Visit }) => {
  const later = visit.url.searchParams.has("after");
  return (
    <Section title="State" note="one value a key, with its history">
      <Table
        caption="Current values by key"
        rows={current}
        id={({ project, stateKey = "" }) => domId("key", project, stateKey)}
        columns={[
          {
            head: "Key",
            kind: "main",
            slim: true,
            cell: ({ project, stateKey = "" }) => (
              <Ref href={stateLink(project, stateKey)}>
                <code>
                  <Line text={stateKey} />
                </code>
              </Ref>
            ),
          },
          { head: "Value", phone: "line", cell: ({ summary }) => <Line text={summary} /> },
          ...(projects.length > 1 ? [{ head: "Project", cell: ({ project }: ContextItem) => <Line text={project} /> }] : []),
          { head: "Confidence", cell: ({ authority, confidence }) => `${authority}, ${confidence}` },
          {
            head: "Since",
            kind: "num",
            tight: true,
            cell: ({ validFrom }) => (validFrom === undefined ? "–" : <Ago at={Date.parse(validFrom)} now={visit.now} />),
          },
        ]}
      />
      {current.length > 0 && (
        <Pager
          shown={
            <>
              {current.length} shown, by key · <FileLinks list="context" url={visit.url} />
            </>
          }
          newer={later ? here(visit.url, { after: undefined, of: undefined }) : undefined}
          older={next && here(visit.url, { after: next.key, of: next.project })}
        />
      )}
    </Section>
  );
};

const ContextView = ({ data, visit }: { data: ContextData; visit: Visit }) => {
  const { key, proposals, current, projects, contradictions } = data;
  const contradiction = key?.contradiction;
  const admin = visit.session.role === "admin";
  const asked = proposals.find(({ id }) => id === visit.url.searchParams.get("proposal"));
  const values = key?.history.filter(({ status }) => status !== "proposed") ?? [];
  const nothing = !key && current.length === 0 && contradictions.length === 0 && proposals.length === 0 && !visit.url.searchParams.has("after");
  return (
    <>
      <PageHead
        title={key ? <Line text={key.name} /> : "Context"}
        crumbs={key && [{ text: "Context", href: link("/context", { project: visit.project }) }, { text: <Line text={projects[0]!} /> }]}
        sub={[
          contradictions.length > 0 && `${contradictions.length} ${contradictions.length === 1 ? "contradiction" : "contradictions"}`,
          proposals.length > 0 && `${proposals.length} proposed`,
          "nothing is served before somebody promotes it",
        ]}
        actions={admin && !key && projects.length === 1 && <Button href={link("/context/pool", { project: projects[0] })}>Look into the pool</Button>}
      />
      {contradiction && contradiction.current.length > 1 && (
        <Notice tone="bad" title="Two values are current: sources disagree.">
          An agent that asks for this key is refused until one of them is kept, or each has its own key.
        </Notice>
      )}
      {admin && contradiction && <AskedHere questions={decisionsOf(contradiction, visit.url)} visit={visit} />}
      {admin && asked && <AskedHere questions={questionsOf(asked)} visit={visit} />}
      {contradiction && <Compare of={contradiction} names={data.names} visit={visit} />}
      {contradictions.length > 0 && <Contradictions of={contradictions} several={projects.length > 1} />}
      {proposals.length > 0 && (
        <Section title="Proposed" count={proposals.length}>
          <CardList ruled>
            {proposals.map((item) => (
              <Value item={item} names={data.names} visit={visit} several={projects.length > 1} decides={admin} />
            ))}
          </CardList>
        </Section>
      )}
      {key && values.length === 0 && proposals.length === 0 && <Empty title="Nobody ever said anything about this key here." />}
      {values.length > 0 && (
        <Section title="History" count={values.length} note="newest first">
          <CardList ruled>
            {values.map((item) => (
              <Value item={item} names={data.names} visit={visit} several={false} decides={false} />
            ))}
          </CardList>
        </Section>
      )}
      {!key && !nothing && <Current data={data} visit={visit} />}
      {nothing && (
        <>
          <Empty title="Nothing is known here yet.">
            Agents propose what they found, with evidence; an admin promotes it to what the project holds true.
          </Empty>
          <Command text="kxm context --help" />
        </>
      )}
    </>
  );
};

const page = livePage<ContextData>({
  path: "/context",
  id: "context",
  place: "context",
  topic: "context",
  load,
  title: () => "Context",
  view: (data, visit) => <ContextView data={data} visit={visit} />,
});

export const screens: readonly Screen[] = page;
