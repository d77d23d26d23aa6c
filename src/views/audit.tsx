// The audit: who did what, from where, when and why; narrowed by what is typed, and as a file.
/** @jsxImportSource #jsx */
import type { AuditFilter } from "../db/audit.ts";
import type { AuditRow } from "../db/schema.ts";
import * as audit from "../hub/audit.ts";
import { AUDIT_RETENTION_MS, VIEW_ROWS_MAX } from "../protocol/limits.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../protocol/time.ts";
import { here } from "./address.ts";
import { domId } from "./dom-id.ts";
import { download, type ExportColumn } from "./export.ts";
import type { Child } from "./jsx/jsx-runtime.ts";
import { agentLink, approvalLink, conflictLink, journalLink, link, messageLink, webhookLink, workflowRunLink } from "./links.ts";
import { type Asked, askedOf, askedValue, chipsOf, keptBy, type Tallies } from "./listing.ts";
import { livePage } from "./live-page.tsx";
import { type Screen, screen, type Visit } from "./screen.ts";
import { Button } from "./ui/button.tsx";
import { Command, Empty, Notice } from "./ui/feedback.tsx";
import { FilterBar } from "./ui/filter.tsx";
import { PageHead, Row } from "./ui/page.tsx";
import { Id, Quiet, Ref, Sub, shortId } from "./ui/reference.tsx";
import { Pager, Table } from "./ui/table.tsx";
import { Ago } from "./ui/time.tsx";
import { Line } from "./ui/untrusted.tsx";

const QUALIFIERS = ["who", "action", "object", "since", "until"];
const EXPORT_ROWS_MAX = 5_000;
const EXPORT_PAGE = 500;
const SPANS: Record<string, number> = { m: MINUTE_MS, h: HOUR_MS, d: DAY_MS, w: 7 * DAY_MS };

type AuditData = {
  asked: Asked;
  /** What of the filter cannot be read, in a sentence. */
  wrong: string | undefined;
  entries: AuditRow[];
  next: string | undefined;
  /** Names of the tokens that acted. */
  tokens: ReadonlyMap<string, string>;
};

/** A time as it is typed: a date, a UTC time, or a span before now. */
function timeOf(typed: string | undefined, now: number): number | undefined {
  const [, count, unit] = /^(\d{1,5})([mhdw])$/.exec(typed ?? "") ?? [];
  if (count !== undefined) return now - Number(count) * SPANS[unit!]!;
  return typed !== undefined && /^\d{4}-\d\d-\d\d/.test(typed) ? Date.parse(typed) : typed === undefined ? undefined : Number.NaN;
}

function filterOf(visit: Visit, asked: Asked): { filter: AuditFilter; wrong: string | undefined } {
  const since = timeOf(askedValue(asked, "since"), visit.now);
  const until = timeOf(askedValue(asked, "until"), visit.now);
  const wrong =
    Number.isNaN(since) || Number.isNaN(until) ? "since: and until: are a date such as 2026-01-31, or a span such as 7d, 12h, 30m" : undefined;
  const words = asked.words === "" ? undefined : asked.words;
  return {
    wrong,
    filter: {
      project: visit.project,
      actor: askedValue(asked, "who"),
      action: askedValue(asked, "action"),
      subject: askedValue(asked, "object") ?? words,
      since: wrong ? undefined : since,
      until: wrong ? undefined : until,
    },
  };
}

async function load(visit: Visit): Promise<AuditData> {
  const { read } = visit.hub.engine;
  const asked = askedOf(visit.url, QUALIFIERS);
  const { filter, wrong } = filterOf(visit, asked);
  const { entries, next } = await audit.list(read, filter, { after: visit.url.searchParams.get("after") ?? undefined, limit: VIEW_ROWS_MAX });
  const ids = [...new Set(entries.map(({ actor }) => actor).filter((actor) => actor.startsWith("tok_")))];
  const named = await Promise.all(ids.map(async (id) => [id, (await read.tokens.find(id))?.name] as const));
  return { asked, wrong, entries, next, tokens: new Map(named.flatMap(([id, name]) => (name === undefined ? [] : [[id, name] as const]))) };
}

/** For saved views. */
export const tally: Tallies = async (visit, limit) => {
  const { entries, next } = await audit.list(visit.hub.engine.read, filterOf(visit, askedOf(visit.url, QUALIFIERS)).filter, {
    after: undefined,
    limit,
  });
  return { count: entries.length, more: next !== undefined };
};

/** What people do, as they say it. Other actions are shown by the words of their event. */
const WORDS: Record<string, string> = {
  opened: "opened a message’s text",
  force_released: "took a lease away",
  dismissed: "put a dead letter aside",
  "token.created": "created a token",
  "token.revoked": "revoked a token",
  "project.opened": "let a project's agents in without a token",
  "admin_token.changed": "was started with another admin token",
  "session.started": "signed in",
  "session.ended": "signed out",
  "signin_link.created": "made a sign-in link",
  "endpoint.created": "added a webhook endpoint",
  "endpoint.rotated": "made a new webhook secret",
  "endpoint.enabled": "enabled a webhook endpoint",
  "endpoint.disabled": "disabled a webhook endpoint",
  "endpoint.removed": "removed a webhook endpoint",
  "endpoint.tested": "tested a webhook endpoint",
  "delivery.replayed": "sent a delivery again",
  "state.promoted": "promoted a state",
  "state.rejected": "rejected a state",
  "state.kept": "settled a contradiction",
  "state.split": "gave a value its own key",
  "promoted.approved": "approved a journal entry",
  "promoted.rejected": "rejected a journal entry",
  "promoted.quarantined": "quarantined a journal entry",
};
const wordsOf = (action: string): string => (Object.hasOwn(WORDS, action) ? WORDS[action]! : action.replaceAll(/[._]/g, " "));

const PAGES: readonly (readonly [prefix: string, link: (id: string, project: string) => string])[] = [
  ["msg_", (id) => messageLink(id)],
  ["agt_", (id) => agentLink(id)],
  ["apr_", (id) => approvalLink(id)],
  ["whk_", (id) => webhookLink(id)],
  ["cfl_", (id) => conflictLink(id)],
  ["journal_", (id, project) => journalLink(project, id)],
];

/** What it was done to: a link where it has a page of its own. */
const Subject = ({ entry: { project, subjectId, action, data, reason } }: { entry: AuditRow }) => {
  const page = PAGES.find(([prefix]) => subjectId.startsWith(prefix))?.[1];
  const href = action === "degraded" ? workflowRunLink(subjectId, { project }) : page?.(subjectId, project);
  const ours = /^[a-z]{2,8}_[A-Za-z0-9]+$/.test(subjectId);
  const shown: Child = ours ? <Id value={subjectId} /> : <Line text={subjectId} />;
  const name = data["name"] ?? data["key"];
  return (
    <>
      {href === undefined ? shown : <Ref href={href}>{shown}</Ref>}
      {ours && typeof name === "string" && (
        <>
          {" "}
          <Line text={name} />
        </>
      )}
      {reason !== null && (
        <Sub>
          “<Line text={reason} />”
        </Sub>
      )}
    </>
  );
};

const Actor = ({ entry: { actor, role }, name }: { entry: AuditRow; name: string | undefined }) => (
  <>
    {name === undefined ? (
      <span title={actor}>{actor.startsWith("ses_") ? `session ${shortId(actor)}` : <Line text={actor} />}</span>
    ) : (
      <>
        token <Line text={name} />
      </>
    )}
    <Sub>
      <Line text={role} />
    </Sub>
  </>
);

const Entries = ({ data: { entries, tokens }, visit }: { data: AuditData; visit: Visit }) => (
  <Table
    caption="Audit entries, newest first"
    rows={entries}
    id={({ project, seq }) => domId("audit", project, String(seq))}
    columns={[
      { head: "What", kind: "main", slim: true, cell: ({ action }) => <span title={action}>{wordsOf(action)}</span> },
      { head: "Who", phone: "line", cell: (entry) => <Actor entry={entry} name={tokens.get(entry.actor)} /> },
      { head: "Object", phone: "line", cell: (entry) => <Subject entry={entry} /> },
      ...(visit.project === undefined
        ? [{ head: "Project", cell: ({ project }: AuditRow) => (project === "" ? <Quiet>the hub</Quiet> : <Line text={project} />) }]
        : []),
      { head: "From", kind: "tight" as const, cell: ({ origin }) => origin ?? "–" },
      { head: "When", kind: "num" as const, tight: true, cell: ({ at }) => <Ago at={at} now={visit.now} /> },
    ]}
  />
);

const AuditView = ({ data, visit }: { data: AuditData; visit: Visit }) => {
  const { asked, entries, next, wrong } = data;
  const filtered = asked.words !== "" || asked.qualifiers.length > 0;
  const later = visit.url.searchParams.has("after");
  const file = (format: string) => link(`/audit/export/${format}`, Object.fromEntries(visit.url.searchParams));
  return (
    <>
      <PageHead
        title="Audit"
        sub={["what operators and admins did", "append-only", `kept ${Math.round(AUDIT_RETENTION_MS / DAY_MS)} days`]}
        actions={
          entries.length > 0 && (
            <Row>
              <Button icon="download" href={file("csv")}>
                CSV
              </Button>
              <Button icon="download" href={file("json")}>
                JSON
              </Button>
            </Row>
          )
        }
      />
      <FilterBar
        action="/audit"
        placeholder="an id, who: action: object: since: until:"
        keep={keptBy(visit.url)}
        qualifiers={chipsOf(visit.url, asked)}
        value={asked.words}
      />
      {wrong && <Notice tone="attn" title={wrong} />}
      {entries.length > 0 && <Entries data={data} visit={visit} />}
      {entries.length === 0 && filtered && <p class="section__note">No entry fits.</p>}
      {entries.length === 0 && !filtered && (
        <>
          <Empty title="Nobody did anything yet.">Each act of an operator or admin, here or from a terminal, is written down with its change.</Empty>
          <Command text={`${visit.hub.settings.commandName} open`} />
        </>
      )}
      {(next !== undefined || later) && (
        <Pager
          shown={`${entries.length} shown, newest first`}
          newer={later ? here(visit.url, { after: undefined }) : undefined}
          older={next === undefined ? undefined : here(visit.url, { after: next })}
        />
      )}
    </>
  );
};

const EXPORT: readonly ExportColumn<AuditRow>[] = [
  ["at", ({ at }) => new Date(at).toISOString()],
  ["project", ({ project }) => project],
  ["seq", ({ seq }) => seq],
  ["actor", ({ actor }) => actor],
  ["role", ({ role }) => role],
  ["action", ({ action }) => action],
  ["subject", ({ subjectId }) => subjectId],
  ["reason", ({ reason }) => reason],
  ["origin", ({ origin }) => origin],
];

/** The entries that fit, newest first, the first five thousand. */
async function exported(visit: Visit): Promise<Response> {
  const { filter } = filterOf(visit, askedOf(visit.url, QUALIFIERS));
  const rows: AuditRow[] = [];
  for (let after: string | undefined; rows.length < EXPORT_ROWS_MAX; ) {
    const page = await audit.list(visit.hub.engine.read, filter, { after, limit: EXPORT_PAGE });
    rows.push(...page.entries);
    after = page.next;
    if (after === undefined) break;
  }
  return download("audit", visit.params["format"]!, EXPORT, rows);
}

export const screens: readonly Screen[] = [
  ...livePage<AuditData>({
    path: "/audit",
    id: "audit",
    place: "audit",
    qualifiers: QUALIFIERS,
    topic: ["settings", "webhooks", "leases", "approvals", "context", "journal", "messages"],
    load,
    title: () => "Audit",
    view: (data, visit) => <AuditView data={data} visit={visit} />,
  }),
  screen({ method: "GET", path: "/audit/export/:format", role: "viewer", run: exported }),
];
