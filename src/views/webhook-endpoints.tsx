// Webhooks: which deliveries from outside start a workflow, who is told of a project's events, and what came of the newest deliveries.
/** @jsxImportSource #jsx */
import type { ArrivalRow, DeliveryRow, WebhookRow } from "../db/schema.ts";
import * as arrivals from "../hub/webhook-arrivals.ts";
import { COUNT_EXACT_MAX } from "../protocol/limits.ts";
import { DAY_MS } from "../protocol/time.ts";
import { ENDPOINTS_MAX } from "../protocol/webhook-endpoints.ts";
import type { WorkflowDefinition } from "../protocol/workflows.ts";
import { link, webhookLink } from "./links.ts";
import { mergedPage, projectsOf } from "./listing.ts";
import { livePage } from "./live-page.tsx";
import type { Screen, Visit } from "./screen.ts";
import { Act, Button } from "./ui/button.tsx";
import { Command, Empty, Notice } from "./ui/feedback.tsx";
import { Columns, PageHead, Section } from "./ui/page.tsx";
import { Link, Quiet, Ref, Sub } from "./ui/reference.tsx";
import { Status } from "./ui/status.tsx";
import { Table } from "./ui/table.tsx";
import { Ago, Left } from "./ui/time.tsx";
import { Line } from "./ui/untrusted.tsx";
import { Arrivals, arrivalsLink } from "./webhook-arrivals.tsx";
import { Deliveries, NEWEST } from "./webhook-deliveries.tsx";

const NEWEST_SHOWN = 10;
const NOTICES_MAX = 2;

const NEVER: ReadonlyMap<string, number> = new Map();

/** `day`: how many in the last 24 hours, by what was made of them. */
type Incoming = { definition: WorkflowDefinition; day: ReadonlyMap<string, number> };
type Outgoing = { endpoint: WebhookRow; newest: DeliveryRow[]; day?: ReadonlyMap<string, number> };
type WebhooksData = { projects: readonly string[]; incoming: Incoming[]; outgoing: Outgoing[]; arrived: ArrivalRow[] };

async function load(visit: Visit): Promise<WebhooksData> {
  const { read } = visit.hub.engine;
  const projects = projectsOf(visit);
  const rows = (await Promise.all(projects.map((project) => read.webhookEndpoints.ofProject(project, ENDPOINTS_MAX)))).flat();
  const definitions = [...visit.hub.definitions.values()].filter(({ project }) => projects.includes(project));
  const { rows: arrived } = await mergedPage(
    projects.map((project) => (limit: number) => read.webhookArrivals.page({ project }, limit)),
    (a, b) => a.at > b.at || (a.at === b.at && a.id > b.id),
    NEWEST_SHOWN,
  );
  return {
    projects,
    incoming: await Promise.all(
      definitions.map(async (definition) => ({ definition, day: await arrivals.countsOf(read, definition.id, visit.now) })),
    ),
    outgoing: await Promise.all(
      rows.slice(0, ENDPOINTS_MAX).map(async (endpoint) => ({
        endpoint,
        newest: await read.webhookEndpoints.log(endpoint.id, NEWEST, NEWEST_SHOWN),
        day: await read.webhookEndpoints.counts(endpoint.id, visit.now - DAY_MS, COUNT_EXACT_MAX + 1),
      })),
    ),
    arrived,
  };
}

/** How many in a day, and how many of them went wrong. Counts stop at a thousand. */
const Day = ({ counts, bad, word }: { counts: ReadonlyMap<string, number>; bad: string; word: string }) => {
  const all = [...counts.values()].reduce((sum, one) => sum + one, 0);
  const wrong = counts.get(bad) ?? 0;
  if (all === 0) return <Quiet>0</Quiet>;
  return (
    <>
      {all > COUNT_EXACT_MAX ? `${COUNT_EXACT_MAX.toLocaleString("en")}+` : all.toLocaleString("en")}
      {wrong > 0 && (
        <Sub>
          {wrong.toLocaleString("en")} {word}
        </Sub>
      )}
    </>
  );
};

/** How many of the newest deliveries failed in a row, without counting what was not tried yet. */
function failuresInARow(newest: readonly DeliveryRow[]): number {
  const tried = newest.filter(({ attempts }) => attempts.length > 0);
  const good = tried.findIndex(({ state }) => state === "delivered");
  return good === -1 ? tried.length : good;
}

/** Whether a receiver is told, and how that goes. */
export const EndpointStatus = ({ endpoint, newest, now }: Outgoing & { now: number }) => {
  if (endpoint.disabledAt !== null)
    return (
      <Status
        state="paused"
        word="disabled"
        why={
          <>
            <Ago at={endpoint.disabledAt} now={now} plain />: <Line text={endpoint.disabledReason ?? ""} />
          </>
        }
      />
    );
  const failures = failuresInARow(newest);
  const last = newest.find(({ attempts }) => attempts.length > 0)?.attempts.at(-1);
  if (failures > 0) return <Status state="failed" word="failing" why={`${failures}${failures === NEWEST_SHOWN ? " or more" : ""} in a row`} />;
  return (
    <Status
      state="active"
      why={
        last ? (
          <>
            {last.status} <Ago at={last.at} now={now} plain />
          </>
        ) : (
          "nothing sent yet"
        )
      }
    />
  );
};

const ComingIn = ({ data: { incoming, projects }, visit }: { data: WebhooksData; visit: Visit }) => (
  <Section title="Coming in" count={incoming.length} note="signed deliveries that start a workflow">
    {incoming.length === 0 ? (
      <>
        <Empty title="No definition waits for a delivery.">A definition says which signed delivery starts which workflow.</Empty>
        <Command text="kxm workflow --help" />
      </>
    ) : (
      <Table
        caption="Definitions of workflows that a delivery starts"
        rows={incoming}
        id={({ definition: { id } }) => `incoming-${id}`}
        columns={[
          {
            head: "Definition",
            kind: "main",
            cell: ({ definition: { id, project, source } }) => (
              <>
                <Ref href={arrivalsLink({ project: visit.project, definition: id })}>
                  <Line text={id} />
                </Ref>
                <Sub>
                  POST /v1/webhooks/
                  <Line text={id} />
                  {source !== "generic" && ` · ${source}`}
                  {projects.length > 1 && (
                    <>
                      {" · "}
                      <Line text={project} />
                    </>
                  )}
                </Sub>
              </>
            ),
          },
          {
            head: "Starts",
            cell: ({ definition: { target, stages } }) => (
              <>
                <Line text={target} /> · {stages.length} {stages.length === 1 ? "stage" : "stages"}
              </>
            ),
          },
          { head: "24 h", kind: "num", tight: true, cell: ({ day }) => <Day counts={day} bad="refused" word="refused" /> },
        ]}
      />
    )}
  </Section>
);

const GoingOut = ({ data: { outgoing, projects }, visit }: { data: WebhooksData; visit: Visit }) => (
  <Section title="Going out" count={outgoing.length} note="who is told of events">
    {outgoing.length === 0 ? (
      <Empty
        title="Nobody is told of events."
        acts={
          visit.session.role === "admin" && (
            <Button icon="plus" href={link("/webhooks/new", { project: visit.project })}>
              Add an endpoint
            </Button>
          )
        }
      >
        An endpoint gets a signed POST for each event it asks for{visit.session.role === "admin" ? "." : "; an admin adds one."}
      </Empty>
    ) : (
      <Table
        caption="Receivers of events"
        rows={outgoing}
        id={({ endpoint }) => `endpoint-${endpoint.id}`}
        columns={[
          {
            head: "Endpoint",
            kind: "main",
            cell: ({ endpoint: { id, url, eventTypes, project } }) => (
              <>
                <Ref href={webhookLink(id, { project: visit.project })}>
                  <Line text={url} max={80} />
                </Ref>
                <Sub>
                  <Line text={eventTypes.join(", ")} />
                  {projects.length > 1 && (
                    <>
                      {" · "}
                      <Line text={project} />
                    </>
                  )}
                </Sub>
              </>
            ),
          },
          { head: "State", phone: "line", cell: (one) => <EndpointStatus {...one} now={visit.now} /> },
          { head: "24 h", kind: "num", tight: true, cell: ({ day = NEVER }) => <Day counts={day} bad="failed" word="failed" /> },
        ]}
      />
    )}
  </Section>
);

/** A receiver that did not take the last deliveries: since how many, and what happens next. */
const Failing = ({ endpoint, newest, visit }: Outgoing & { visit: Visit }) => {
  const failures = failuresInARow(newest);
  const next = newest.flatMap(({ nextAt }) => (nextAt === null ? [] : [nextAt])).sort((a, b) => a - b)[0];
  return (
    <Notice
      tone="bad"
      title={
        <>
          <Line text={endpoint.url} max={80} /> did not take {failures === 1 ? "the last delivery" : `${failures} deliveries in a row`}.
        </>
      }
      acts={
        visit.session.role === "admin" && (
          <Act action={`/webhooks/${endpoint.id}/test`} csrf={visit.csrf}>
            <Button small type="submit">
              Test now
            </Button>
          </Act>
        )
      }
    >
      {next !== undefined && next > visit.now ? (
        <>
          Next try in <Left until={next} now={visit.now} />.{" "}
        </>
      ) : null}
      Nothing is lost: deliveries stay in its log for 7 days and can be replayed.
    </Notice>
  );
};

const WebhooksView = ({ data, visit }: { data: WebhooksData; visit: Visit }) => {
  const { incoming, outgoing } = data;
  const failing = outgoing.filter(({ endpoint, newest }) => endpoint.disabledAt === null && failuresInARow(newest) > 0);
  const newest = outgoing
    .flatMap((one) => one.newest)
    .sort((a, b) => (a.id < b.id ? 1 : -1))
    .slice(0, NEWEST_SHOWN);
  return (
    <>
      <PageHead
        title="Webhooks"
        sub={[
          `${incoming.length} in`,
          `${outgoing.length} out`,
          failing.length > 0 && `${failing.length} ${failing.length === 1 ? "endpoint fails" : "endpoints fail"}`,
        ]}
        actions={
          visit.session.role === "admin" &&
          outgoing.length > 0 && (
            <Button kind="primary" icon="plus" href={link("/webhooks/new", { project: visit.project })}>
              Add an endpoint
            </Button>
          )
        }
      />
      {failing.slice(0, NOTICES_MAX).map((one) => (
        <Failing {...one} visit={visit} />
      ))}
      <Columns even main={<ComingIn data={data} visit={visit} />} aside={<GoingOut data={data} visit={visit} />} />
      {data.arrived.length > 0 && (
        <Section title="Newest arrivals" more={<Link href={arrivalsLink({ project: visit.project })}>The whole log</Link>}>
          <Arrivals rows={data.arrived} visit={visit} several={data.projects.length > 1} />
        </Section>
      )}
      {newest.length > 0 && (
        <Section title="Newest deliveries out" note="each endpoint has its whole log">
          <Deliveries rows={newest} endpoints={new Map(outgoing.map(({ endpoint }) => [endpoint.id, endpoint]))} visit={visit} named />
        </Section>
      )}
    </>
  );
};

const list = livePage<WebhooksData>({
  path: "/webhooks",
  id: "webhooks",
  place: "webhooks",
  topic: ["webhooks", "workflows"],
  load,
  title: () => "Webhooks",
  view: (data, visit) => <WebhooksView data={data} visit={visit} />,
});

export const screens: readonly Screen[] = list;
