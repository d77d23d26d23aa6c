// Deliveries that came in: what was made of each and why, from whom, and which run it started. What nobody signed is marked as claimed.
/** @jsxImportSource #jsx */
import type { ArrivalRow } from "../db/schema.ts";
import type { ArrivalCursor, ArrivalsOf } from "../db/webhook-arrivals.ts";
import * as arrivals from "../hub/webhook-arrivals.ts";
import { HubError } from "../protocol/errors.ts";
import { PAGE_ROWS_MAX, VIEW_ROWS_MAX } from "../protocol/limits.ts";
import { ARRIVAL_OUTCOMES } from "../protocol/webhook-arrivals.ts";
import { here } from "./address.ts";
import { download, type ExportColumn } from "./export.ts";
import { EXPORT_ROWS_MAX, FileLinks } from "./file-links.tsx";
import { link, workflowRunLink } from "./links.ts";
import { cursorOf, mergedPage, projectsOf } from "./listing.ts";
import { livePage } from "./live-page.tsx";
import { type Screen, screen, type Visit } from "./screen.ts";
import { Button } from "./ui/button.tsx";
import { Command, Empty } from "./ui/feedback.tsx";
import { Tabs } from "./ui/filter.tsx";
import { PageHead } from "./ui/page.tsx";
import { Quiet, Sub } from "./ui/reference.tsx";
import { Status } from "./ui/status.tsx";
import { Pager, Table } from "./ui/table.tsx";
import { Ago } from "./ui/time.tsx";
import { Line } from "./ui/untrusted.tsx";

const LINE_MAX = 80;

export const arrivalsLink = (more: Readonly<Record<string, string | undefined>> = {}) => link("/webhooks/incoming", more);

const Outcome = ({ row: { outcome, code, reason, count } }: { row: ArrivalRow }) => {
  const state = outcome === "accepted" ? "applied" : outcome === "refused" ? "refused" : outcome === "duplicate" ? "skipped" : "closed";
  if (outcome === "accepted") return <Status state={state} word={outcome} why={reason && <Line text={reason} max={160} />} />;
  return (
    <Status
      state={state}
      word={outcome}
      why={
        <>
          {outcome === "duplicate" ? "the same delivery again" : <Line text={reason ?? code ?? ""} max={160} />}
          {count > 1 && ` · ${count.toLocaleString("en")} alike in that hour`}
        </>
      }
    />
  );
};

/** Rows of the log. `named`: they say which definition they were for. */
export const Arrivals = ({ rows, visit, several }: { rows: readonly ArrivalRow[]; visit: Visit; several: boolean }) => (
  <Table
    caption="Incoming deliveries, newest first"
    rows={rows}
    id={({ id }) => `arrival-${id}`}
    columns={[
      {
        head: "Delivery",
        kind: "main",
        cell: ({ definitionId, kind, event, deliveryId, signalKey, verified, project }) => (
          <>
            <Line text={definitionId} max={LINE_MAX} />{" "}
            {kind === "signal" ? <>signal {signalKey && <Line text={signalKey} max={LINE_MAX} />}</> : event && <Line text={event} max={LINE_MAX} />}
            <Sub>
              {deliveryId === null ? "no delivery id" : <Line text={deliveryId} max={LINE_MAX} />}
              {verified === 0 && " (claimed)"}
              {several && (
                <>
                  {" · "}
                  <Line text={project} max={LINE_MAX} />
                </>
              )}
            </Sub>
          </>
        ),
      },
      { head: "Outcome", phone: "line", cell: (row) => <Outcome row={row} /> },
      {
        head: "From",
        cell: ({ sender, program }) =>
          sender === null && program === null ? (
            <Quiet>unknown</Quiet>
          ) : (
            <>
              {sender !== null && <code>{sender}</code>}
              {program !== null &&
                (sender === null ? (
                  <Line text={program} max={40} />
                ) : (
                  <Sub>
                    <Line text={program} max={40} />
                  </Sub>
                ))}
            </>
          ),
      },
      { head: "Came", kind: "num", tight: true, cell: ({ at }) => <Ago at={at} now={visit.now} /> },
      {
        head: "",
        kind: "acts",
        cell: ({ runId, outcome }) =>
          runId !== null &&
          outcome !== "refused" && (
            <Button small href={workflowRunLink(runId, { project: visit.project })}>
              Open run
            </Button>
          ),
      },
    ]}
  />
);

type ArrivalsData = {
  rows: ArrivalRow[];
  next: ArrivalCursor | undefined;
  several: boolean;
  outcome: ArrivalRow["outcome"] | undefined;
  definition: string | undefined;
};

const outcomeOf = (url: URL) => ARRIVAL_OUTCOMES.find((one) => one === url.searchParams.get("outcome"));

/** The definition of the address, for those who may see its project. @throws HubError webhook_not_found */
function definitionOf({ hub, url, session }: Visit): string | undefined {
  const id = url.searchParams.get("definition") ?? undefined;
  if (id === undefined) return undefined;
  const definition = hub.definitions.get(id);
  if (!definition || (session.project !== null && session.project !== definition.project))
    throw new HubError("webhook_not_found", "there is no such workflow definition");
  return id;
}

async function pageOf(
  visit: Visit,
  after: ArrivalCursor | undefined,
  limit: number,
): Promise<{ rows: ArrivalRow[]; next: ArrivalCursor | undefined }> {
  const { read } = visit.hub.engine;
  const definitionId = definitionOf(visit);
  if (definitionId !== undefined) return arrivals.list(read, { definitionId }, { after, limit });
  const parts: ArrivalsOf[] = projectsOf(visit).map((project) => ({ project, outcome: outcomeOf(visit.url) }));
  const { rows, next } = await mergedPage(
    parts.map((of) => (many: number) => read.webhookArrivals.page(of, many, after)),
    (a, b) => a.at > b.at || (a.at === b.at && a.id > b.id),
    limit,
  );
  return { rows, next: next && { at: next.at, id: next.id } };
}

async function load(visit: Visit): Promise<ArrivalsData> {
  const definition = definitionOf(visit);
  return {
    ...(await pageOf(visit, cursorOf(visit.url), VIEW_ROWS_MAX)),
    several: projectsOf(visit).length > 1,
    outcome: definition === undefined ? outcomeOf(visit.url) : undefined,
    definition,
  };
}

const ArrivalsView = ({ data: { rows, next, several, outcome, definition }, visit }: { data: ArrivalsData; visit: Visit }) => {
  const later = visit.url.searchParams.has("after");
  return (
    <>
      <PageHead
        title="Incoming deliveries"
        crumbs={[{ text: "Webhooks", href: link("/webhooks", { project: visit.project }) }, { text: "Incoming" }]}
        sub={[
          definition === undefined ? (
            "of every definition"
          ) : (
            <>
              to <Line text={definition} max={LINE_MAX} />
            </>
          ),
          "kept for 7 days, without bodies",
        ]}
      />
      <Tabs
        label="Outcome"
        tabs={[undefined, ...ARRIVAL_OUTCOMES].map((one) => ({
          text: one === undefined ? "All" : `${one.charAt(0).toUpperCase()}${one.slice(1)}`,
          href: here(visit.url, { outcome: one, definition: undefined, after: undefined }),
          current: definition === undefined && one === outcome,
        }))}
      />
      <h2 class="visually-hidden">{outcome ?? "All"}</h2>
      {rows.length === 0 ? (
        <>
          <Empty title="Nothing came in.">
            Every signed start and signal stands here with what was made of it. Deliveries that nobody signed rightly are counted by hour and reason.
          </Empty>
          <Command text="kxm workflow start --help" />
        </>
      ) : (
        <>
          <Arrivals rows={rows} visit={visit} several={several} />
          <Pager
            shown={
              <>
                {rows.length} shown, newest first · <FileLinks list="webhooks/incoming" url={visit.url} />
              </>
            }
            newer={later ? here(visit.url, { after: undefined }) : undefined}
            older={next && here(visit.url, { after: `${next.at}.${next.id}` })}
          />
        </>
      )}
    </>
  );
};

const EXPORT: readonly ExportColumn<ArrivalRow>[] = [
  ["at", ({ at }) => new Date(at).toISOString()],
  ["project", ({ project }) => project],
  ["definition", ({ definitionId }) => definitionId],
  ["kind", ({ kind }) => kind],
  ["outcome", ({ outcome }) => outcome],
  ["count", ({ count }) => count],
  ["verified", ({ verified }) => verified === 1],
  ["code", ({ code }) => code],
  ["reason", ({ reason }) => reason],
  ["deliveryId", ({ deliveryId }) => deliveryId],
  ["event", ({ event }) => event],
  ["signalKey", ({ signalKey }) => signalKey],
  ["sender", ({ sender }) => sender],
  ["program", ({ program }) => program],
  ["runId", ({ runId }) => runId],
];

async function exportArrivals(visit: Visit): Promise<Response> {
  const rows: ArrivalRow[] = [];
  for (let after = cursorOf(visit.url); rows.length < EXPORT_ROWS_MAX; ) {
    const page = await pageOf(visit, after, PAGE_ROWS_MAX);
    rows.push(...page.rows);
    if (!page.next) break;
    after = page.next;
  }
  return download("incoming-deliveries", visit.params["format"]!, EXPORT, rows);
}

const page = livePage<ArrivalsData>({
  path: "/webhooks/incoming",
  id: "arrivals",
  place: "webhooks",
  topic: ["webhooks", "workflows"],
  load,
  title: () => "Incoming deliveries",
  view: (data, visit) => <ArrivalsView data={data} visit={visit} />,
});

export const screens: readonly Screen[] = [
  ...page,
  screen({ method: "GET", path: "/webhooks/incoming/export/:format", role: "viewer", run: exportArrivals }),
];
