// What sync refused and what is missing: conflicts with both payloads kept, security alerts, and runs whose events wait behind a gap.
/** @jsxImportSource #jsx */
import type { AlertRow, SyncConflictRow, SyncRunRow } from "../db/schema.ts";
import { COUNT_EXACT_MAX } from "../protocol/limits.ts";
import { here } from "./address.ts";
import { machineOf } from "./commands.tsx";
import { domId } from "./dom-id.ts";
import { FileLinks } from "./file-links.tsx";
import { alertLink, conflictLink, runLink, runtimeLink } from "./links.ts";
import { countOver, cursorOf, mergedPage, projectsOf, type Tallies, withHubItself } from "./listing.ts";
import { livePage } from "./live-page.tsx";
import type { Screen, Visit } from "./screen.ts";
import { Button } from "./ui/button.tsx";
import { Empty } from "./ui/feedback.tsx";
import { Tabs } from "./ui/filter.tsx";
import { PageHead } from "./ui/page.tsx";
import { Chip, Id, Ref, Sub, shortId } from "./ui/reference.tsx";
import { Status } from "./ui/status.tsx";
import { Pager, Table } from "./ui/table.tsx";
import { Ago } from "./ui/time.tsx";
import { Line } from "./ui/untrusted.tsx";

const TABS = { conflicts: "Conflicts", alerts: "Alerts", gaps: "Gaps" } as const;
type Tab = keyof typeof TABS;
/** Above every id. */
const TOP = "~";

/** What each code means, as a title. */
export const CONFLICT_TITLES: Record<string, string> = {
  sync_sequence_reused: "Same event, different bytes",
  sync_project_mismatch: "A project that another hub project owns",
  sync_home_runtime_mismatch: "A run that lives on another Runtime",
};

type SyncData = {
  tab: Tab;
  all: boolean;
  several: boolean;
  conflicts: { row: SyncConflictRow; where: string }[];
  alerts: AlertRow[];
  gaps: { row: SyncRunRow; where: string; heldFrom: number | undefined }[];
  next: string | undefined;
  counts: Record<Tab, number>;
};

/** The tab of an address, and whether it also shows what was looked at. */
export function tabOf(url: URL): Tab {
  const chosen = url.searchParams.get("tab") ?? "";
  return Object.hasOwn(TABS, chosen) ? (chosen as Tab) : "conflicts";
}
export const showsAll = (url: URL): boolean => url.searchParams.get("state") === "all";

async function load(visit: Visit): Promise<SyncData> {
  const { hub, url } = visit;
  const { read } = hub.engine;
  const projects = projectsOf(visit);
  const [tab, all] = [tabOf(url), showsAll(url)];
  const after = url.searchParams.get("after") ?? TOP;
  const place = cursorOf(url);
  const limit = COUNT_EXACT_MAX + 1;
  const newestId = (a: { id: string }, b: { id: string }) => a.id > b.id;
  const alarmed = withHubItself(visit, projects);
  const each = <Row,>(wanted: Tab, page: (project: string, limit: number) => Promise<Row[]>) =>
    tab === wanted ? (wanted === "alerts" ? alarmed : projects).map((project) => (rows: number) => page(project, rows)) : [];
  const conflicts = await mergedPage(
    each("conflicts", (project, rows) => (all ? read.conflicts.page : read.conflicts.openPage)(project, after, rows)),
    newestId,
  );
  const alerts = await mergedPage(
    each("alerts", (project, rows) => (all ? read.alerts.page : read.alerts.openPage)(project, after, rows)),
    newestId,
  );
  const gaps = await mergedPage(
    each("gaps", (project, rows) => read.sync.gaps(project, rows, place && { at: place.at, runId: place.id })),
    (a, b) => a.lastReceivedAt > b.lastReceivedAt || (a.lastReceivedAt === b.lastReceivedAt && a.runId > b.runId),
  );
  return {
    tab,
    all,
    several: projects.length > 1,
    conflicts: await Promise.all(conflicts.rows.map(async (row) => ({ row, where: await machineOf(visit, row.project, row.runtimeId) }))),
    alerts: alerts.rows,
    gaps: await Promise.all(
      gaps.rows.map(async (row) => ({
        row,
        where: await machineOf(visit, row.project, row.homeRuntimeId),
        heldFrom: await read.sync.nextSequence(row.projectId, row.runId, row.cursor),
      })),
    ),
    next: conflicts.next?.id ?? alerts.next?.id ?? (gaps.next && `${gaps.next.lastReceivedAt}.${gaps.next.runId}`),
    counts: {
      conflicts: await countOver(projects, (project) => read.conflicts.countOpen(project, limit)),
      alerts: await countOver(alarmed, (project) => read.alerts.countOpen(project, limit)),
      gaps: await countOver(projects, (project) => read.sync.countGaps(project, limit)),
    },
  };
}

/** For saved views: what is open. The list of everything is not counted. */
export const tally: Tallies = async (visit, limit) => {
  const { read } = visit.hub.engine;
  const tab = tabOf(visit.url);
  if (tab !== "gaps" && showsAll(visit.url)) return undefined;
  const counts = { conflicts: read.conflicts.countOpen, alerts: read.alerts.countOpen, gaps: read.sync.countGaps };
  const count = await countOver(projectsOf(visit), (project) => counts[tab](project, limit + 1));
  return { count: Math.min(count, limit), more: count > limit };
};

/** Open, or who looked at it and what was found. */
export const Looked = ({ row, now }: { row: Pick<SyncConflictRow, "acknowledgedAt" | "acknowledgedBy" | "reason" | "count">; now: number }) => {
  const { acknowledgedAt, acknowledgedBy, reason, count } = row;
  if (acknowledgedAt === null) return <Status state="conflict" word="open" why={count > 1 ? `${count.toLocaleString("en")} times` : undefined} />;
  return (
    <Status
      state="acknowledged"
      stack
      why={
        <>
          {shortId(acknowledgedBy ?? "")} <Ago at={acknowledgedAt} now={now} plain />
          {reason && (
            <>
              : <Line text={reason} max={120} />
            </>
          )}
        </>
      }
    />
  );
};

const Conflicts = ({ data, now }: { data: SyncData; now: number }) => (
  <Table
    caption="Events that sync refused, newest first"
    rows={data.conflicts}
    id={({ row }) => row.id}
    columns={[
      {
        head: "What",
        kind: "main",
        cell: ({ row }) => (
          <>
            <Ref href={conflictLink(row.id)}>{CONFLICT_TITLES[row.code] ?? row.code}</Ref>
            <Sub>
              <code>{row.code}</code> · {shortId(row.id)}
              {data.several && (
                <>
                  {" · "}
                  <Line text={row.project} max={40} />
                </>
              )}
            </Sub>
          </>
        ),
      },
      { head: "State", phone: "line", cell: ({ row }) => <Looked row={row} now={now} /> },
      {
        head: "Event",
        cell: ({ row }) => (
          <>
            <Id value={row.runId} /> {row.sequence}
          </>
        ),
      },
      { head: "Pushed by", cell: ({ row, where }) => <Ref href={runtimeLink(row.project, row.runtimeId)}>{where}</Ref> },
      { head: "First", kind: "num", tight: true, cell: ({ row }) => <Ago at={row.firstAt} now={now} /> },
      { head: "Last", kind: "num", tight: true, cell: ({ row }) => <Ago at={row.lastAt} now={now} /> },
    ]}
  />
);

const SEVERITIES: Record<AlertRow["severity"], "conflict" | "warning" | "idle"> = { security: "conflict", warning: "warning", info: "idle" };

const Alerts = ({ data, now }: { data: SyncData; now: number }) => (
  <Table
    caption="Alerts, newest first"
    rows={data.alerts}
    id={({ id }) => id}
    columns={[
      {
        head: "What",
        kind: "main",
        cell: (row) => (
          <>
            <Ref href={alertLink(row.id)}>
              <Line text={row.summary} max={120} />
            </Ref>
            <Sub>
              <code>{row.kind}</code> · {shortId(row.id)}
              {data.several && (
                <>
                  {" · "}
                  <Line text={row.project} max={40} />
                </>
              )}
            </Sub>
          </>
        ),
      },
      { head: "Severity", phone: "line", cell: ({ severity }) => <Status state={SEVERITIES[severity]} word={severity} /> },
      { head: "State", phone: "line", cell: (row) => <Looked row={row} now={now} /> },
      { head: "First", kind: "num", tight: true, cell: ({ raisedAt }) => <Ago at={raisedAt} now={now} /> },
      { head: "Last", kind: "num", tight: true, cell: ({ lastAt }) => <Ago at={lastAt} now={now} /> },
    ]}
  />
);

const Gaps = ({ data, visit }: { data: SyncData; visit: Visit }) => (
  <Table
    caption="Runs with events that wait for a missing one, newest change first"
    rows={data.gaps}
    id={({ row }) => domId("gap", row.projectId, row.runId)}
    columns={[
      {
        head: "Run",
        kind: "main",
        cell: ({ row }) => (
          <>
            <Ref href={runLink(row.projectId, row.runId, { project: visit.project })}>
              <Line text={row.displayTitle ?? row.runId} max={120} />
            </Ref>
            <Sub>
              <Id value={row.runId} />
              {data.several && (
                <>
                  {" · "}
                  <Line text={row.project} max={40} />
                </>
              )}
            </Sub>
          </>
        ),
      },
      { head: "Waits for", phone: "line", cell: ({ row }) => <Status state="gap" word={`sequence ${row.cursor + 1}`} /> },
      {
        head: "Held",
        phone: "line",
        cell: ({ row, heldFrom }) =>
          `${row.held.toLocaleString("en")} ${row.held === 1 ? "event" : "events"}${heldFrom ? `, from ${heldFrom} on` : ""}`,
      },
      { head: "Runtime", cell: ({ row, where }) => <Ref href={runtimeLink(row.project, row.homeRuntimeId)}>{where}</Ref> },
      { head: "Last received", kind: "num", tight: true, cell: ({ row }) => <Ago at={row.lastReceivedAt} now={visit.now} /> },
    ]}
  />
);

const NOTHING: Record<Tab, readonly [string, string]> = {
  conflicts: [
    "No conflict is open.",
    "Each event of a run has one place and one content. Whatever claims a place that is taken is refused, kept here with both payloads, and waits for you.",
  ],
  alerts: ["No alert is open.", "What looks like a mistake or like somebody pretending is raised here once per cause, and then counted."],
  gaps: ["No run has a gap.", "Events are shown only as far as they are complete. What comes early is held until the missing one is here."],
};

const SyncView = ({ data, visit }: { data: SyncData; visit: Visit }) => {
  const { tab, counts, all, next } = data;
  const { url, now } = visit;
  const later = url.searchParams.has("after");
  const rows = { conflicts: data.conflicts.length, alerts: data.alerts.length, gaps: data.gaps.length }[tab];
  const [title, words] = NOTHING[tab];
  return (
    <>
      <PageHead
        title="Sync"
        sub={[
          `${counts.conflicts} ${counts.conflicts === 1 ? "conflict" : "conflicts"} open`,
          `${counts.alerts} ${counts.alerts === 1 ? "alert" : "alerts"} open`,
          `${counts.gaps} ${counts.gaps === 1 ? "run" : "runs"} with a gap`,
        ]}
        actions={
          tab !== "gaps" && (
            <Chip icon="list" href={here(url, { state: all ? undefined : "all", after: undefined })}>
              {all ? "Only what is open" : "Also what was looked at"}
            </Chip>
          )
        }
      />
      <Tabs
        label="What sync tells"
        tabs={Object.entries(TABS).map(([name, text]) => ({
          text,
          href: here(url, { tab: name === "conflicts" ? undefined : name, after: undefined, state: undefined }),
          current: name === tab,
          count: counts[name as Tab],
        }))}
      />
      {rows === 0 && <h2 class="visually-hidden">{TABS[tab]}</h2>}
      {rows === 0 ? (
        <Empty
          title={title}
          acts={tab !== "gaps" && !all && <Button href={here(url, { state: "all", after: undefined })}>What was looked at</Button>}
        >
          {words}
        </Empty>
      ) : tab === "conflicts" ? (
        <Conflicts data={data} now={now} />
      ) : tab === "alerts" ? (
        <Alerts data={data} now={now} />
      ) : (
        <Gaps data={data} visit={visit} />
      )}
      {rows > 0 && (
        <Pager
          shown={
            <>
              {rows} shown, newest first · <FileLinks list="sync" url={url} />
            </>
          }
          newer={later ? here(url, { after: undefined }) : undefined}
          older={next && here(url, { after: next })}
        />
      )}
    </>
  );
};

export const screens: readonly Screen[] = livePage<SyncData>({
  path: "/sync",
  id: "sync",
  place: "sync",
  topic: ["sync", "alerts", "runtimes"],
  load,
  title: () => "Sync",
  view: (data, visit) => <SyncView data={data} visit={visit} />,
});
