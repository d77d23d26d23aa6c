// Cost: what runs used since a time, by day, model, agent and run. Every figure says what it is summed from and what is not known.
/** @jsxImportSource #jsx */
import { type Costs, costs } from "../hub/costs.ts";
import { tokensOf } from "../hub/projection-usage.ts";
import type { UsageSum } from "../protocol/runs.ts";
import { domId } from "./dom-id.ts";
import { link, runLink } from "./links.ts";
import { projectsOf } from "./listing.ts";
import { livePage } from "./live-page.tsx";
import { amount, costOf, tokens } from "./money.ts";
import type { Screen, Visit } from "./screen.ts";
import { Bar, Bars, Legend, Stat, StatStrip } from "./ui/charts.tsx";
import { Command, Empty } from "./ui/feedback.tsx";
import { Tabs } from "./ui/filter.tsx";
import { Columns, PageHead, Section, SectionNote } from "./ui/page.tsx";
import { Quiet, Ref } from "./ui/reference.tsx";
import { Table } from "./ui/table.tsx";
import { Ago } from "./ui/time.tsx";
import { Line } from "./ui/untrusted.tsx";

const DAY_MS = 86_400_000;
const RANGES = [
  { days: 1, text: "24 h" },
  { days: 7, text: "7 d" },
  { days: 30, text: "30 d" },
] as const;
const ROWS_SHOWN = 20;
const RUNS_SHOWN = 20;

type CostData = { days: number; projects: readonly string[]; sums: Costs };

const daysOf = (url: URL): number => RANGES.find(({ days }) => String(days) === url.searchParams.get("days"))?.days ?? 7;

async function load(visit: Visit): Promise<CostData> {
  const days = daysOf(visit.url);
  const projects = projectsOf(visit);
  return { days, projects, sums: await costs(visit.hub.engine.read, projects, visit.now - days * DAY_MS) };
}

/** What a sum cost, with what is only estimated or not known at all. */
const Cost = ({ sum }: { sum: UsageSum }) => {
  const cost = costOf(sum.costs);
  if (cost === undefined) return <Quiet>{sum.unknown > 0 ? "unknown" : "–"}</Quiet>;
  return (
    <>
      {sum.estimated && "≈ "}
      {cost}
      {sum.unknown > 0 && <Quiet> + unknown</Quiet>}
    </>
  );
};

/** The currency that most of the cost is in: charts and shares are drawn in one. */
const mainCurrency = ({ costs: byCurrency }: UsageSum): string | undefined => Object.entries(byCurrency).sort(([, a], [, b]) => b - a)[0]?.[0];

const Strip = ({ data: { sums, days } }: { data: CostData }) => {
  const { total, runs } = sums;
  const perDay = Object.fromEntries(Object.entries(total.costs).map(([currency, cost]) => [currency, cost / days]));
  return (
    <StatStrip columns={4}>
      <Stat label="Cost" value={costOf(total.costs) ?? "–"} note={total.estimated ? "partly estimated" : "as reported"} />
      <Stat label="A day" value={costOf(perDay) ?? "–"} note={days === 1 ? "the last 24 h" : `over ${days} days`} />
      <Stat label="Tokens" value={tokens(tokensOf(total))} note={`${tokens(total.cacheReadTokens)} of them from caches`} />
      <Stat
        label="Runs"
        value={runs.length.toLocaleString("en")}
        note={total.unknown > 0 ? `${total.unknown} uses without a price` : "every use has a price"}
      />
    </StatStrip>
  );
};

/** Bars by day, each run on the day it last changed. */
const Days = ({ data: { sums, days }, now }: { data: CostData; now: number }) => {
  const currency = mainCurrency(sums.total);
  if (currency === undefined || days === 1) return null;
  const today = Math.floor(now / DAY_MS);
  const series = Array.from({ length: days }, (_, index) => {
    const day = today - (days - 1 - index);
    const own = sums.runs.filter(({ at }) => Math.floor(at / DAY_MS) === day);
    const cost = (estimated: boolean) => own.reduce((sum, { usage }) => sum + (usage.estimated === estimated ? (usage.costs[currency] ?? 0) : 0), 0);
    return { name: new Date(day * DAY_MS).toUTCString().slice(5, 11), value: cost(false), also: cost(true) };
  });
  return (
    <Section
      title="By day"
      note="each run on the day it last changed"
      more={<Legend items={[{ text: "reported" }, { text: "partly estimated", alt: true }]} />}
    >
      <Bars
        series={series}
        label={`Cost by day over ${days} days, in ${currency}`}
        unit={amount(0, currency).startsWith("$") ? "$" : ""}
        heads={["Day", "Reported", "Partly estimated"]}
      />
    </Section>
  );
};

type SharesProps = { title: string; head: string; rows: Costs["models"]; total: UsageSum };

/** Who or what the cost came from, with its share. */
const Shares = ({ title, head, rows, total }: SharesProps) => {
  const currency = mainCurrency(total) ?? "";
  const whole = total.costs[currency] ?? 0;
  return (
    <Section title={title} count={rows.length}>
      <Table
        caption={`Cost by ${head.toLowerCase()}`}
        rows={rows.slice(0, ROWS_SHOWN)}
        id={({ name }) => domId("cost", head, name)}
        columns={[
          { head, kind: "main", slim: true, cell: ({ name }) => <Line text={name} /> },
          { head: "Share", cell: (sum) => (whole > 0 ? <Bar percent={(100 * (sum.costs[currency] ?? 0)) / whole} /> : "–") },
          { head: "Runs", kind: "num", tight: true, cell: ({ runs }) => runs },
          { head: "Tokens", kind: "num", tight: true, cell: (sum) => tokens(tokensOf(sum)) },
          { head: "Cost", kind: "num", tight: true, cell: (sum) => <Cost sum={sum} /> },
        ]}
      />
    </Section>
  );
};

const dearest = (runs: Costs["runs"], currency: string) =>
  runs.toSorted((a, b) => (b.usage.costs[currency] ?? 0) - (a.usage.costs[currency] ?? 0) || b.at - a.at).slice(0, RUNS_SHOWN);

const Runs = ({ data: { sums, projects }, visit }: { data: CostData; visit: Visit }) => (
  <Section title="Dearest runs" note={sums.runs.length > RUNS_SHOWN ? `${RUNS_SHOWN} of ${sums.runs.length.toLocaleString("en")}` : undefined}>
    <Table
      caption="The dearest runs"
      rows={dearest(sums.runs, mainCurrency(sums.total) ?? "")}
      id={({ projectId, runId }) => domId("run", projectId, runId)}
      columns={[
        {
          head: "Run",
          kind: "main",
          cell: ({ projectId, runId, title }) => (
            <Ref href={runLink(projectId, runId, { project: visit.project })}>
              <Line text={title} />
            </Ref>
          ),
        },
        ...(projects.length > 1 ? [{ head: "Project", cell: ({ project }: Costs["runs"][number]) => <Line text={project} /> }] : []),
        { head: "Tokens", kind: "num" as const, tight: true, cell: ({ usage }) => tokens(tokensOf(usage)) },
        { head: "Cost", kind: "num" as const, tight: true, cell: ({ usage }) => <Cost sum={usage} /> },
        { head: "Changed", kind: "num" as const, tight: true, cell: ({ at }) => <Ago at={at} now={visit.now} /> },
      ]}
    />
  </Section>
);

const CostView = ({ data, visit }: { data: CostData; visit: Visit }) => {
  const { sums, days } = data;
  const empty = sums.runs.length === 0;
  return (
    <>
      <PageHead title="Cost" sub={[days === 1 ? "the last 24 hours" : `the last ${days} days`, "as agents’ programs report it"]} />
      <Tabs
        label="Range"
        tabs={RANGES.map((range) => ({
          text: range.text,
          href: link("/cost", { project: visit.project, days: range.days }),
          current: range.days === days,
        }))}
      />
      {empty && (
        <>
          <Empty title="No run changed in this time.">A Runtime tells the hub what its runs use once it runs one.</Empty>
          <Command text="kxm run 'Say hello'" />
        </>
      )}
      {!empty && (
        <>
          <Strip data={data} />
          <Days data={data} now={visit.now} />
          <Columns
            even
            below
            main={<Shares title="By model" head="Model" rows={sums.models} total={sums.total} />}
            aside={<Shares title="By agent" head="Agent" rows={sums.agents} total={sums.total} />}
          />
          <Runs data={data} visit={visit} />
          <SectionNote>
            {sums.capped
              ? `Summed from the newest ${sums.runs.length.toLocaleString("en")} runs of this time; older ones are not in these figures.`
              : "Summed from every run that changed in this time, each with all it used."}
          </SectionNote>
        </>
      )}
    </>
  );
};

export const screens: readonly Screen[] = livePage<CostData>({
  path: "/cost",
  id: "cost",
  place: "cost",
  topic: "sync",
  load,
  title: () => "Cost",
  view: (data, visit) => <CostView data={data} visit={visit} />,
});
