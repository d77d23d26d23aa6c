// The journal of workflow runs: what was planned, decided, found and learned, newest first; its signals; and the decision on candidates.
/** @jsxImportSource #jsx */
import type { JournalRow } from "../db/schema.ts";
import type { Stores } from "../db/tx.ts";
import { improvements } from "../hub/improvements.ts";
import * as journal from "../hub/journal.ts";
import { HubError } from "../protocol/errors.ts";
import { CATEGORIES, type Category, type Improvements, type JournalEntry, PROMOTABLE } from "../protocol/journal.ts";
import { REASON_MAX } from "../protocol/limits.ts";
import { act, fieldOf } from "./acts.tsx";
import { here } from "./address.ts";
import { FileLinks } from "./file-links.tsx";
import { agentLink, journalLink, link, workflowRunLink } from "./links.ts";
import { mergedPage, projectsOf, type Tallies } from "./listing.ts";
import { livePage } from "./live-page.tsx";
import { AskedHere, type Question } from "./question.tsx";
import { type Screen, screen, type Visit } from "./screen.ts";
import { Button } from "./ui/button.tsx";
import { Command, Empty, Notice } from "./ui/feedback.tsx";
import { Tabs } from "./ui/filter.tsx";
import { Check, Choices, TextAreaField, TextField } from "./ui/form.tsx";
import { Columns, PageHead, Row, Section } from "./ui/page.tsx";
import { Quiet, Ref, Sub, shortId } from "./ui/reference.tsx";
import { Facets } from "./ui/search.tsx";
import { Status, stateOf } from "./ui/status.tsx";
import { Card, CardList, Pager, Table } from "./ui/table.tsx";
import { Ago } from "./ui/time.tsx";
import { Line, Name, Untrusted } from "./ui/untrusted.tsx";

const END = "journal_~"; // sorts after every id
const EVIDENCE_MAX = 4_000;
const DECISIONS = ["approved", "rejected", "quarantined"] as const;

type JournalData = {
  projects: readonly string[];
  rows: JournalRow[];
  next: string | undefined;
  /** The one entry that the address names. */
  only: JournalRow | undefined;
  signals: Improvements | undefined;
  names: ReadonlyMap<string, string>;
};

export const categoryOf = (url: URL): Category | undefined => CATEGORIES.find((category) => category === url.searchParams.get("category"));
/** The entry before which a page begins. */
export const placeOf = (url: URL): string => /^journal_\w{1,60}$/.exec(url.searchParams.get("after") ?? "")?.[0] ?? END;
const showsSignals = (url: URL): boolean => url.searchParams.get("show") === "signals";

/** The entry that an address or a form names, for those who may see its project. @throws HubError journal_not_found */
async function entryFor({ hub, session }: Visit, id: string): Promise<JournalRow> {
  const row = await hub.engine.read.journal.find(id);
  if (!row || (session.project !== null && session.project !== row.project))
    throw new HubError("journal_not_found", "there is no such journal entry");
  return row;
}

async function load(visit: Visit): Promise<JournalData> {
  const { hub, url } = visit;
  const { read } = hub.engine;
  const projects = projectsOf(visit);
  const named = url.searchParams.get("entry");
  const only = named === null ? undefined : await entryFor(visit, named);
  const category = categoryOf(url);
  const after = placeOf(url);
  const signals = showsSignals(url) && projects.length === 1 ? await improvements(read, projects[0]!) : undefined;
  const page = only || showsSignals(url) ? { rows: only ? [only] : [], next: undefined } : await entriesBefore(read, projects, category, after);
  const ids = [...new Set(page.rows.map(({ agentId }) => agentId))];
  const found = await Promise.all(ids.map(async (id) => [id, (await read.agents.find(id))?.name] as const));
  const names = new Map(found.flatMap(([id, name]) => (name === undefined ? [] : [[id, name] as const])));
  return { projects, rows: page.rows, next: page.next?.id, only, signals, names };
}

/** For saved views: entries of a category. */
export const tally: Tallies = async ({ hub, url, project, projects }, limit) => {
  if (showsSignals(url) || url.searchParams.has("entry")) return undefined;
  const { rows, next } = await entriesBefore(hub.engine.read, projectsOf({ project, projects }), categoryOf(url), END, limit);
  return { count: rows.length, more: next !== undefined };
};

/** Entries before a place, newest first, of a category if one is asked for. */
export const entriesBefore = (read: Stores, projects: readonly string[], category: Category | undefined, before: string, limit?: number) =>
  mergedPage<JournalRow>(
    projects.map(
      (project) => (rows: number) =>
        category ? read.journal.ofCategory(project, category, before, rows) : read.journal.ofProject(project, before, rows),
    ),
    (a, b) => a.id > b.id,
    limit,
  );

/** What came of a candidate, or that it waits. */
const Decided = ({ entry: { category, promotion } }: { entry: JournalEntry }) => {
  const last = promotion?.at(-1);
  if (last) return <Status state={stateOf(last.to)} why={<Line text={last.reason} />} />;
  return PROMOTABLE.includes(category) ? <Status state="proposed" why="waits for an admin" /> : null;
};

const mayDecide = ({ category, promotion }: JournalEntry, visit: Visit): boolean =>
  visit.session.role === "admin" && PROMOTABLE.includes(category) && (promotion ?? []).length === 0;

const Entry = ({ row, data, visit }: { row: JournalRow; data: JournalData; visit: Visit }) => {
  const entry = journal.entryOf(row);
  const { id, runId, agentId, category, area, severity, stageId, details, evidence } = entry;
  const name = data.names.get(agentId) ?? agentId;
  const said = [details ?? "", ...evidence.map((line) => `evidence: ${line}`)].filter(Boolean).join("\n");
  return (
    <Card
      id={`entry-${id}`}
      title={
        <Ref href={journalLink(row.project, id)}>
          <Line text={entry.summary} max={300} />
        </Ref>
      }
      when={<Ago at={row.createdAt} now={visit.now} />}
      meta={[
        severity === "info" ? category : <Status state={severity === "error" ? "error" : "warning"} word={category} />,
        `area ${area}`,
        <Ref href={agentLink(agentId, { project: visit.project })}>
          <Name text={name} />
        </Ref>,
        <Ref href={workflowRunLink(runId, { project: visit.project })}>{shortId(runId)}</Ref>,
        ...(stageId ? [<Line text={`stage ${stageId}`} />] : []),
        ...(data.projects.length > 1 ? [<Line text={row.project} />] : []),
        <Decided entry={entry} />,
      ]}
    >
      {said !== "" && <Untrusted by={name} text={said} note={category} />}
      {mayDecide(entry, visit) && !data.only && (
        <Row>
          <Button small href={link("/journal", { project: row.project, entry: id, act: "decide" })}>
            Decide…
          </Button>
        </Row>
      )}
    </Card>
  );
};

/** The question of a decision: what becomes of the candidate, on which evidence, and why. */
const questionOf = (row: JournalRow): Question => ({
  name: "decide",
  button: "Decide…",
  title: `Decide on ${shortId(row.id)}`,
  action: "/journal/promote",
  confirm: "Decide",
  cancel: "Leave it",
  confirmKind: "primary",
  fields: (id) => (
    <>
      <p>It is decided once, and the decision stays beside the entry.</p>
      <input type="hidden" name="entry" value={row.id} />
      <Choices legend="What becomes of it">
        <Check kind="radio" name="to" value="approved" label="Approve" note="it may be used from now on" checked />
        <Check kind="radio" name="to" value="rejected" label="Reject" note="it is not used" />
        <Check kind="radio" name="to" value="quarantined" label="Quarantine" note="it is kept apart until somebody looks closer" />
      </Choices>
      <TextAreaField
        id={`${id}-evidence`}
        name="evidence"
        label="Evidence"
        hint="one reference a line, at least one"
        required
        maxlength={EVIDENCE_MAX}
        rows={3}
      />
      <TextField id={`${id}-reason`} name="reason" label="Reason" hint="kept in the audit" required maxlength={REASON_MAX} />
    </>
  ),
});

const promote = screen({
  method: "POST",
  path: "/journal/promote",
  role: "admin",
  run: async (visit) => {
    const { project, id } = await entryFor(visit, visit.form.get("entry") ?? "");
    return act(visit, journalLink(project, id), async () => {
      const to = DECISIONS.find((word) => word === visit.form.get("to"));
      if (!to) throw new HubError("invalid_journal_promotion", "choose what becomes of the entry");
      const reason = fieldOf(visit.form, "reason", REASON_MAX);
      const evidenceRefs = fieldOf(visit.form, "evidence", EVIDENCE_MAX)
        .split("\n")
        .map((line) => line.trim())
        .filter(Boolean);
      await visit.hub.engine.write(project, (tx) => journal.promote(tx, id, { to, evidenceRefs, reason }, visit.by));
      return { tone: "ok", text: `The entry is ${to}.` };
    });
  },
});

const Signals = ({ data: { signals }, visit }: { data: JournalData; visit: Visit }) => {
  if (!signals) return <Notice tone="mute" title="Choose one project: signals are counted within it." />;
  if (signals.signals.length === 0)
    return <Empty title="The journal teaches nothing yet.">Errors, contradictions, lessons and skill candidates of runs are counted here.</Empty>;
  return (
    <Section title="Signals, strongest first" count={signals.signals.length} note={`from ${signals.entries.toLocaleString("en")} entries`}>
      <Table
        caption="Improvement signals, strongest first"
        rows={signals.signals}
        id={({ entryIds }) => `signal-${entryIds[0]}`}
        columns={[
          {
            head: "Signal",
            kind: "main",
            cell: ({ summary, entryIds, category, basis }) => (
              <>
                <Ref href={journalLink(visit.project ?? visit.projects[0]!, entryIds[0]!)}>
                  <Line text={summary} />
                </Ref>
                <Sub>
                  {category}, by {basis}
                </Sub>
              </>
            ),
          },
          { head: "Area", cell: ({ area }) => area },
          {
            head: "Severity",
            cell: ({ severity }) => (severity === "info" ? <Quiet>info</Quiet> : <Status state={severity === "error" ? "error" : "warning"} />),
          },
          { head: "Runs", kind: "num", tight: true, cell: ({ frequency }) => frequency },
          { head: "Priority", kind: "num", tight: true, cell: ({ priority }) => priority },
        ]}
      />
    </Section>
  );
};

const Entries = ({ data, visit }: { data: JournalData; visit: Visit }) => {
  const { rows, next, only } = data;
  const later = visit.url.searchParams.has("after");
  if (rows.length === 0)
    return categoryOf(visit.url) ? (
      <p class="section__note">No entry of this category.</p>
    ) : (
      <>
        <Empty title="Nothing is written down yet.">Coordinators of workflow runs record plans, decisions, errors and lessons here.</Empty>
        <Command text="kxm workflow --help" />
      </>
    );
  return (
    <Section
      title={only ? "Entry" : "Entries"}
      note={only ? undefined : "newest first"}
      more={only && <Ref href={link("/journal", { project: visit.project })}>All entries</Ref>}
    >
      <CardList ruled>
        {rows.map((row) => (
          <Entry row={row} data={data} visit={visit} />
        ))}
      </CardList>
      {!only && (
        <Pager
          shown={
            <>
              {rows.length} shown, newest first · <FileLinks list="journal" url={visit.url} />
            </>
          }
          newer={later ? here(visit.url, { after: undefined }) : undefined}
          older={next === undefined ? undefined : here(visit.url, { after: next })}
        />
      )}
    </Section>
  );
};

const Categories = ({ url }: { url: URL }) => {
  const now = categoryOf(url);
  const href = (category?: Category) => here(url, { category, after: undefined, entry: undefined, act: undefined });
  return (
    <Facets
      groups={[
        {
          title: "Category",
          facets: [
            { text: "Everything", href: href(), current: now === undefined },
            ...CATEGORIES.map((category) => ({ text: category, href: href(category), current: now === category })),
          ],
        },
      ]}
    />
  );
};

const JournalView = ({ data, visit }: { data: JournalData; visit: Visit }) => {
  const signals = showsSignals(visit.url);
  const { only } = data;
  return (
    <>
      <PageHead title="Journal" sub={["what runs planned, decided, found and learned"]} />
      <Tabs
        label="Journal"
        tabs={[
          { text: "Entries", href: link("/journal", { project: visit.project }), current: !signals },
          { text: "Signals", href: link("/journal", { project: visit.project, show: "signals" }), current: signals },
        ]}
      />
      {only && mayDecide(journal.entryOf(only), visit) && (
        <>
          <AskedHere questions={[questionOf(only)]} visit={visit} />
          {visit.url.searchParams.get("act") !== "decide" && (
            <Row>
              <Button href={here(visit.url, { act: "decide" })}>Decide…</Button>
            </Row>
          )}
        </>
      )}
      {signals ? (
        <Signals data={data} visit={visit} />
      ) : (
        <Columns below main={<Entries data={data} visit={visit} />} aside={<Categories url={visit.url} />} />
      )}
    </>
  );
};

const page = livePage<JournalData>({
  path: "/journal",
  id: "journal",
  place: "journal",
  topic: "journal",
  load,
  title: () => "Journal",
  view: (data, visit) => <JournalView data={data} visit={visit} />,
});

export const screens: readonly Screen[] = [...page, promote];
