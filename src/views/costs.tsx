// Cost: what is being spent now, what runs used since a day by what it went to, and the budgets. Every figure says what is estimated and what is not known.
/** @jsxImportSource #jsx */
import * as budgets from "../hub/budgets.ts";
import * as costs from "../hub/costs.ts";
import * as runList from "../hub/run-list.ts";
import * as runtimes from "../hub/runtimes.ts";
import { DAY_MS, HOUR_MS } from "../protocol/time.ts";
import { here } from "./address.ts";
import { Budgets, budgetQuestions } from "./budgets.tsx";
import { ByTime, Dearest, Parts, Strip } from "./cost-parts.tsx";
import { download, type ExportColumn } from "./export.ts";
import { FileLinks } from "./file-links.tsx";
import { projectsOf } from "./listing.ts";
import { livePage } from "./live-page.tsx";
import { Ask, AskedHere } from "./question.tsx";
import { type Screen, screen, type Visit } from "./screen.ts";
import { Command, Empty } from "./ui/feedback.tsx";
import { Tabs } from "./ui/filter.tsx";
import { Columns, PageHead, SectionNote } from "./ui/page.tsx";

const RANGES = [
  { days: 1, text: "Today" },
  { days: 7, text: "7 days" },
  { days: 30, text: "30 days" },
] as const;
/** What the cost can be told by, as the address and people call it. */
export const PARTS = [
  ["agent", "Agent"],
  ["model", "Model"],
  ["harness", "Program"],
  ["machine", "Machine"],
  ["project", "Project"],
] as const;
export type Part = (typeof PARTS)[number][0];

export type CostData = {
  days: number;
  /** When the first day of the range began. */
  since: number;
  projects: readonly string[];
  /** Days of the range; for one day its hours. */
  range: costs.CostTimes;
  /** The last 24 hours, for what is spent now. */
  hours: costs.CostTimes;
  today: costs.CostSum;
  month: costs.CostSum;
  moving: number;
  part: Part;
  parts: costs.CostSum[];
  /** Hosts of machines by the id of their Runtime. */
  hosts: ReadonlyMap<string, string>;
  runs: (costs.RunCost & { title: string | undefined })[];
  budgets: budgets.BudgetUse[];
};

const daysOf = (url: URL): number => RANGES.find(({ days }) => String(days) === url.searchParams.get("days"))?.days ?? 7;
const partOf = (url: URL): Part => PARTS.find(([name]) => name === url.searchParams.get("by"))?.[0] ?? "agent";

async function load(visit: Visit): Promise<CostData> {
  const { hub, url, now, session, project } = visit;
  const { read } = hub.engine;
  const days = daysOf(url);
  const part = partOf(url);
  const since = costs.dayOf(now) - (days - 1) * DAY_MS;
  const projects = projectsOf(visit);
  const [range, hours, month, parts, runs, found, moving] = await Promise.all([
    days === 1 ? costs.byTime(read, projects, "hour", since) : costs.byTime(read, projects, "day", since),
    costs.byTime(read, projects, "hour", now - (now % HOUR_MS) - 23 * HOUR_MS),
    costs.byTime(read, projects, "day", costs.monthOf(now)),
    costs.byPart(read, projects, part, since),
    costs.dearestRuns(read, project, since, now),
    budgets.uses(read, projects, session.project === null ? visit.projects : undefined, now),
    runList.count(hub, projects, "moving"),
  ]);
  return {
    days,
    since,
    projects,
    range,
    hours,
    today: month.slots.get(costs.dayOf(now)) ?? costs.emptySum(),
    month: month.total,
    moving,
    part,
    parts,
    hosts: part === "machine" ? await hostsOf(visit, projects) : new Map(),
    runs: await Promise.all(runs.map(async (run) => ({ ...run, title: await titleOf(visit, run) }))),
    budgets: found,
  };
}

async function titleOf({ hub }: Visit, { projectId, runId }: costs.RunCost): Promise<string | undefined> {
  const run = await hub.engine.read.sync.findRun(projectId, runId);
  return run?.displayTitle ?? run?.workflowId ?? undefined;
}

async function hostsOf({ hub }: Visit, projects: readonly string[]): Promise<Map<string, string>> {
  const known = await Promise.all(projects.map((project) => runtimes.known(hub.engine.read, project)));
  return new Map(known.flat().flatMap(({ runtimeId, row }) => (row?.host ? [[runtimeId, row.host] as const] : [])));
}

const CostView = ({ data, visit }: { data: CostData; visit: Visit }) => {
  const { days, range, budgets: set } = data;
  const empty = range.total.uses === 0;
  const questions = budgetQuestions(visit, set);
  return (
    <>
      <PageHead
        title="Cost"
        sub={[days === 1 ? "today, UTC" : `the last ${days} days, UTC`, "as agents’ programs report it"]}
        actions={questions[0] && <Ask question={questions[0]} visit={visit} />}
      />
      <Tabs
        label="Range"
        tabs={RANGES.map((one) => ({
          text: one.text,
          href: here(visit.url, { days: String(one.days), act: undefined }),
          current: one.days === days,
        }))}
      />
      <AskedHere questions={questions} visit={visit} />
      {!empty && <Strip data={data} visit={visit} />}
      {!empty && <ByTime data={data} visit={visit} />}
      {empty && (
        <>
          <Empty title={days === 1 ? "Nothing was spent today." : "Nothing was spent in this time."}>
            A Runtime tells the hub what its runs use once it runs one. What has no price is shown as unknown.
          </Empty>
          <Command text="kxm run 'Say hello'" />
        </>
      )}
      <Columns even below main={!empty && <Parts data={data} visit={visit} />} aside={<Budgets uses={set} questions={questions} visit={visit} />} />
      {!empty && <Dearest data={data} visit={visit} />}
      {!empty && (
        <SectionNote>
          Summed from every report of usage, on the day the work was done. Where it goes, <FileLinks list="cost" url={visit.url} />.
        </SectionNote>
      )}
    </>
  );
};

/** A line of the file: a sum in one currency. What has no price has a line of its own, which says so. */
type Line = { sum: costs.CostSum; currency: string | undefined };
const EXPORT: readonly ExportColumn<Line>[] = [
  ["name", ({ sum }) => sum.name],
  ["currency", ({ currency }) => currency],
  ["cost", ({ sum, currency }) => (currency === undefined ? "unknown" : sum.costs[currency])],
  ["estimated", ({ sum, currency }) => (currency === undefined ? undefined : sum.estimated[currency])],
  ["uses", ({ sum }) => sum.uses],
  ["usesWithoutPrice", ({ sum }) => sum.unknown],
  ["tokens", ({ sum }) => sum.tokens],
  ["cacheReadTokens", ({ sum }) => sum.cacheReadTokens],
];

async function exportCosts(visit: Visit): Promise<Response> {
  const since = costs.dayOf(visit.now) - (daysOf(visit.url) - 1) * DAY_MS;
  const sums = await costs.byPart(visit.hub.engine.read, projectsOf(visit), partOf(visit.url), since);
  const lines = sums.flatMap((sum): Line[] => {
    const currencies = Object.keys(sum.costs);
    return currencies.length === 0 ? [{ sum, currency: undefined }] : currencies.map((currency) => ({ sum, currency }));
  });
  return download(`cost-by-${partOf(visit.url)}`, visit.params["format"]!, EXPORT, lines);
}

const page = livePage<CostData>({
  path: "/cost",
  id: "cost",
  place: "cost",
  topic: ["sync", "settings"],
  load,
  title: () => "Cost",
  view: (data, visit) => <CostView data={data} visit={visit} />,
});

export const screens: readonly Screen[] = [...page, screen({ method: "GET", path: "/cost/export/:format", role: "viewer", run: exportCosts })];
