// All runs in one list: those of Runtimes and those of the hub's own workflows, with status, evidence, progress, machine, age and cost.
/** @jsxImportSource #jsx */
import { hasEnded } from "../hub/projection.ts";
import * as runList from "../hub/run-list.ts";
import { COUNT_EXACT_MAX, PAGE_ROWS_MAX, VIEW_ROWS_MAX } from "../protocol/limits.ts";
import type { RunSummary } from "../protocol/runs.ts";
import { here, withQuery } from "./address.ts";
import { domId } from "./dom-id.ts";
import { download, type ExportColumn } from "./export.ts";
import { EXPORT_ROWS_MAX, FileLinks } from "./file-links.tsx";
import { link, runLink, runtimeLink, workflowRunLink } from "./links.ts";
import { type Asked, askedOf, askedValue, chipsOf, cursorOf, keptBy, projectsOf, type Tallies, unknownValue } from "./listing.ts";
import { livePage } from "./live-page.tsx";
import { costOf } from "./money.ts";
import { progressOf, RunStatus, timeOf, WorkflowStatus } from "./run-status.tsx";
import { type Screen, screen, type Visit } from "./screen.ts";
import { Button } from "./ui/button.tsx";
import { Track } from "./ui/charts.tsx";
import { Command, Empty, Notice } from "./ui/feedback.tsx";
import { FilterBar, Tabs } from "./ui/filter.tsx";
import { PageHead } from "./ui/page.tsx";
import { Id, Link, Ref, Sub } from "./ui/reference.tsx";
import { BulkBar, Pager, Table } from "./ui/table.tsx";
import { Ago, Lasting } from "./ui/time.tsx";
import { Line } from "./ui/untrusted.tsx";

const QUALIFIERS = ["status", "kind", "runtime", "workflow"];
/** Over more projects than this the tabs carry no counts: they would cost more than the list. */
const PROJECTS_COUNTED_MAX = 10;
const RUNTIMES_ASKED = 500;
const BULK = "runs-bulk";
/** Pages of the list that are looked at for what can be cancelled together. */
const LOOKS_MAX = 10;

const TABS: readonly (readonly [runList.RunView, string])[] = [
  ["moving", "Moving"],
  ["waiting", "Waiting"],
  ["failed", "Failed"],
  ["completed", "Completed"],
  ["cancelled", "Cancelled"],
  ["all", "All"],
];

const KINDS = ["runtime", "workflow"];
/** Every status of either kind of run. */
const STATUSES = [
  ...new Set(Object.values(runList.RUN_VIEWS).flatMap(({ runtime, workflow }): string[] => [...(runtime ?? []), ...(workflow ?? [])])),
];

type RunsData = {
  projects: readonly string[];
  view: runList.RunView;
  asked: Asked;
  runs: runList.ListedRun[];
  next: runList.RunPlace | undefined;
  counts: ReadonlyMap<runList.RunView, number>;
};

/** The view of an address that names none: a status is looked for in all runs. */
const usualView = (asked: Asked): runList.RunView => (askedValue(asked, "status") === undefined ? "moving" : "all");
const isView = (word: string): word is runList.RunView => Object.hasOwn(runList.RUN_VIEWS, word);

/** What the address asks for. */
async function filterOf(visit: Visit, projects: readonly string[], asked: Asked): Promise<runList.RunFilter> {
  const { url } = visit;
  const chosen = url.searchParams.get("view") ?? "";
  const status = askedValue(asked, "status");
  const kind = askedValue(asked, "kind");
  const view = isView(chosen) ? chosen : usualView(asked);
  return {
    view,
    kind: kind === "runtime" || kind === "workflow" ? kind : undefined,
    status,
    runtimeId: await runtimeCalled(visit, projects, askedValue(asked, "runtime")),
    workflow: askedValue(asked, "workflow"),
    words: asked.words,
  };
}

async function load(visit: Visit): Promise<RunsData> {
  const { hub, url } = visit;
  const projects = projectsOf(visit);
  const asked = askedOf(url, QUALIFIERS);
  const filter = await filterOf(visit, projects, asked);
  const { runs, next } = await runList.list(hub, projects, filter, { after: cursorOf(url), limit: VIEW_ROWS_MAX });
  const counted = projects.length > PROJECTS_COUNTED_MAX ? [] : TABS;
  const counts = await Promise.all(counted.map(async ([name]) => [name, await runList.count(hub, projects, name)] as const));
  return { projects, view: filter.view, asked, runs, next, counts: new Map(counts) };
}

/** Runs that fit the address and have not ended, the newest change first, at most `limit`: what can be cancelled together. `more`: there may be others. */
export async function cancellable(visit: Visit, limit: number): Promise<{ runs: RunSummary[]; more: boolean }> {
  const projects = projectsOf(visit);
  const filter = { ...(await filterOf(visit, projects, askedOf(visit.url, QUALIFIERS))), kind: "runtime" as const };
  const runs: RunSummary[] = [];
  let after: runList.RunPlace | undefined;
  for (let looks = 0; looks < LOOKS_MAX; looks++) {
    const page = await runList.list(visit.hub, projects, filter, { after, limit: PAGE_ROWS_MAX });
    for (const one of page.runs) {
      if (one.kind !== "runtime" || !isPickable(one)) continue;
      if (runs.length === limit) return { runs, more: true };
      runs.push(one.run);
    }
    if (!page.next) return { runs, more: false };
    after = page.next;
  }
  return { runs, more: true };
}

/** For saved views. */
export const tally: Tallies = async (visit, limit) => {
  const projects = projectsOf(visit);
  return runList.countFitting(visit.hub, projects, await filterOf(visit, projects, askedOf(visit.url, QUALIFIERS)), limit);
};

/** The Runtime of this id, or the first whose machine is called so; otherwise the word itself, which then fits nothing. */
async function runtimeCalled({ hub }: Visit, projects: readonly string[], word: string | undefined): Promise<string | undefined> {
  if (word === undefined) return undefined;
  const rows = (await Promise.all(projects.map((project) => hub.engine.read.runtimes.ofProject(project, RUNTIMES_ASKED)))).flat();
  return (rows.find(({ runtimeId }) => runtimeId === word) ?? rows.find(({ host }) => host?.toLowerCase() === word.toLowerCase()))?.runtimeId ?? word;
}

const Title = ({ one, several, within }: { one: runList.ListedRun; several: boolean; within: string | undefined }) => {
  if (one.kind === "workflow") {
    const { id, definitionId, deliveryId, project } = one.run;
    return (
      <>
        <Ref href={workflowRunLink(id, { project: within })}>
          <Line text={definitionId} />
        </Ref>
        <Sub>
          hub workflow · delivery <Line text={deliveryId} max={24} /> · <Id value={id} />
          {several && <> · {<Line text={project} max={40} />}</>}
        </Sub>
      </>
    );
  }
  const { projectId, runId, displayTitle, workflowId, project } = one.run;
  return (
    <>
      <Ref href={runLink(projectId, runId)}>
        <Line text={displayTitle ?? runId} />
      </Ref>
      <Sub>
        {workflowId && `${workflowId} · `}
        <Id value={runId} />
        {several && <> · {<Line text={project} max={40} />}</>}
      </Sub>
    </>
  );
};

const Machine = ({ one }: { one: runList.ListedRun }) => {
  if (one.kind === "workflow") return <>hub</>;
  const { project, runtimeId } = one.run;
  return <Ref href={runtimeLink(project, runtimeId)}>{one.host ? <Line text={one.host} max={40} /> : <Id value={runtimeId} />}</Ref>;
};

const Age = ({ one, now }: { one: runList.ListedRun; now: number }) => {
  const { run } = one;
  const started = timeOf(
    one.kind === "workflow" ? one.run.createdAt : (one.run.startedAt ?? one.row.projection.createdAt ?? one.run.firstReceivedAt),
  )!;
  const ended = timeOf(one.kind === "workflow" ? one.run.completedAt : one.run.endedAt);
  return hasEnded(run.status ?? null) && ended !== undefined ? <Ago at={ended} now={now} /> : <Lasting since={started} now={now} />;
};

/** The value a picked run is sent as. */
const pickOf = ({ projectId, runId }: { projectId: string; runId: string }): string => `${projectId}/${runId}`;
const isPickable = (one: runList.ListedRun): boolean => one.kind === "runtime" && !hasEnded(one.run.status ?? null);

type RunsTableProps = { runs: readonly runList.ListedRun[]; visit: Visit; several: boolean; bulk?: string; machine?: boolean };

/** Rows of runs: the list here, the newest few elsewhere. @param props.machine false where all of them are of one machine */
export const RunsTable = ({ runs, visit, several, bulk, machine = true }: RunsTableProps) => (
  <Table
    caption="Runs, newest change first"
    rows={runs}
    id={(one) => (one.kind === "workflow" ? domId("run", one.id) : domId("run", one.run.projectId, one.id))}
    pick={
      bulk === undefined
        ? undefined
        : {
            bulk,
            value: (one) => (one.kind === "runtime" ? pickOf(one.run) : ""),
            label: ({ id }) => `run ${id}`,
            can: isPickable,
          }
    }
    columns={[
      { head: "Run", kind: "main", cell: (one) => <Title one={one} several={several} within={visit.project} /> },
      {
        head: "Status",
        phone: "line",
        cell: (one) =>
          one.kind === "workflow" ? (
            <WorkflowStatus run={one.run} now={visit.now} stack />
          ) : (
            <RunStatus run={one.run} row={one.row} host={one.host} now={visit.now} stack />
          ),
      },
      {
        head: "Progress",
        kind: "tight",
        phone: "line",
        cell: (one) => {
          const { marks, text, label } = progressOf(one);
          return (
            <>
              {marks.length > 0 && <Track marks={marks} label={label} />}
              <Sub>{text}</Sub>
            </>
          );
        },
      },
      ...(machine ? [{ head: "Machine", kind: "tight", cell: (one: runList.ListedRun) => <Machine one={one} /> } as const] : []),
      { head: "Age", kind: "num", tight: true, cell: (one) => <Age one={one} now={visit.now} /> },
      { head: "Cost", kind: "num", tight: true, cell: (one) => (one.kind === "workflow" ? "–" : (costOf(one.run.costs) ?? "–")) },
    ]}
  />
);

const Nothing = ({ data, visit }: { data: RunsData; visit: Visit }) => {
  const filtered = data.asked.words !== "" || data.asked.qualifiers.length > 0;
  if (filtered || data.view !== "moving" || visit.url.searchParams.has("after")) return <p class="section__note">No run here fits.</p>;
  if ((data.counts.get("all") ?? 0) > 0)
    return (
      <Empty title="Nothing is running." acts={<Button href={here(visit.url, { view: "all" })}>All runs</Button>}>
        Everything that was started has ended.
      </Empty>
    );
  return (
    <>
      <Empty title="No run has reported here yet.">
        Start one in a checkout. Its Runtime runs it with or without the hub and sends here what happened, in order and without secrets.
      </Empty>
      <Command text="kxm init && kxm run 'Fix the flaky test'" />
    </>
  );
};

const RunsView = ({ data, visit }: { data: RunsData; visit: Visit }) => {
  const { view, counts, runs, next, asked } = data;
  const { url, session } = visit;
  const acts = session.role !== "viewer";
  const later = url.searchParams.has("after");
  const figure = (name: runList.RunView, word: string) => {
    const count = counts.get(name);
    return count !== undefined && count > 0 && `${count > COUNT_EXACT_MAX ? "1,000+" : count.toLocaleString("en")} ${word}`;
  };
  return (
    <>
      <PageHead
        title="Runs"
        sub={[figure("moving", "moving"), figure("waiting", "of them waiting")]}
        actions={
          acts && (
            <Button kind="primary" icon="run" href={link("/runs/new", { project: visit.project })}>
              Start a run
            </Button>
          )
        }
      />
      <Tabs
        label="Views of runs"
        tabs={TABS.map(([name, text]) => {
          const count = counts.get(name);
          return {
            text,
            href: here(url, { view: name === usualView(asked) ? undefined : name, after: undefined }),
            current: name === view,
            ...(count !== undefined && { count }),
          };
        })}
      />
      <FilterBar
        action="/runs"
        placeholder="title or id, status:, workflow:, kind:, runtime:"
        keep={keptBy(url)}
        qualifiers={chipsOf(url, asked)}
        value={asked.words}
      />
      {[unknownValue(asked, "status", STATUSES), unknownValue(asked, "kind", KINDS)].map((wrong) => wrong && <Notice tone="attn" title={wrong} />)}
      {acts && runs.some(isPickable) && (
        <BulkBar id={BULK} action="/runs/cancel" csrf={visit.csrf} note="each gets its own outcome">
          <Button small kind="warn" type="submit">
            Cancel…
          </Button>
        </BulkBar>
      )}
      <h2 class="visually-hidden">{TABS.find(([name]) => name === view)![1]}</h2>
      {runs.length > 0 ? (
        <RunsTable runs={runs} visit={visit} several={data.projects.length > 1} bulk={acts && runs.some(isPickable) ? BULK : undefined} />
      ) : (
        <Nothing data={data} visit={visit} />
      )}
      {runs.length > 0 && (
        <Pager
          shown={
            <>
              {runs.length} shown, newest change first · <FileLinks list="runs" url={url} />
              {acts && runs.filter(isPickable).length > 1 && (
                <>
                  {" · "}
                  <Link href={withQuery("/runs/cancel", url, { after: undefined, matching: "1" })}>Cancel all that fit…</Link>
                </>
              )}
            </>
          }
          newer={later ? here(url, { after: undefined }) : undefined}
          older={next && here(url, { after: `${next.at}.${next.id}` })}
        />
      )}
    </>
  );
};

const iso = (at: number | null | undefined) => (at === null || at === undefined ? undefined : new Date(at).toISOString());
/** The costs of a Runtime's run; the hub's own workflows do not report any. */
const EXPORT: readonly ExportColumn<runList.ListedRun>[] = [
  ["kind", ({ kind }) => kind],
  ["project", ({ run }) => run.project],
  ["projectId", (one) => (one.kind === "runtime" ? one.run.projectId : undefined)],
  ["runId", ({ id }) => id],
  ["title", (one) => (one.kind === "runtime" ? one.run.displayTitle : undefined)],
  ["workflow", (one) => (one.kind === "runtime" ? one.run.workflowId : one.run.definitionId)],
  ["status", ({ run }) => run.status],
  ["step", (one) => (one.kind === "runtime" ? one.run.stepId : one.run.currentStage)],
  ["waitsFor", (one) => (one.kind === "runtime" ? (one.run.waiting?.reason ?? one.run.waiting?.for) : one.run.waiting?.signalKey)],
  ["runtimeId", (one) => (one.kind === "runtime" ? one.run.runtimeId : undefined)],
  ["machine", (one) => (one.kind === "runtime" ? one.host : undefined)],
  ["startedAt", (one) => (one.kind === "runtime" ? one.run.startedAt : one.run.createdAt)],
  ["endedAt", (one) => (one.kind === "runtime" ? one.run.endedAt : one.run.completedAt)],
  ["changedAt", ({ at }) => iso(at)],
  ["cost", (one) => (one.kind === "runtime" ? costOf(one.run.costs) : undefined)],
  ["tokens", (one) => (one.kind === "runtime" ? one.run.tokens : undefined)],
];

async function exportRuns(visit: Visit): Promise<Response> {
  const projects = projectsOf(visit);
  const filter = await filterOf(visit, projects, askedOf(visit.url, QUALIFIERS));
  const runs: runList.ListedRun[] = [];
  for (let after = cursorOf(visit.url); runs.length < EXPORT_ROWS_MAX; ) {
    const page = await runList.list(visit.hub, projects, filter, { after, limit: PAGE_ROWS_MAX });
    runs.push(...page.runs);
    if (!page.next) break;
    after = page.next;
  }
  return download("runs", visit.params["format"]!, EXPORT, runs);
}

const page = livePage<RunsData>({
  path: "/runs",
  id: "runs",
  place: "runs",
  qualifiers: QUALIFIERS,
  topic: ["runs", "approvals", "runtimes"],
  load,
  title: () => "Runs",
  view: (data, visit) => <RunsView data={data} visit={visit} />,
});

export const screens: readonly Screen[] = [...page, screen({ method: "GET", path: "/runs/export/:format", role: "viewer", run: exportRuns })];
