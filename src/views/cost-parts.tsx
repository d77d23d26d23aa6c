// The parts of the page of cost: the figures, the bars, what it went to, the dearest runs. Pure functions of the page's data.
/** @jsxImportSource #jsx */
import { type CostSum, dayOf, OTHERS } from "../hub/costs.ts";
import { DAY_MS, HOUR_MS } from "../protocol/time.ts";
import { here } from "./address.ts";
import { type CostData, PARTS } from "./costs.tsx";
import { domId } from "./dom-id.ts";
import { runLink, runtimeLink } from "./links.ts";
import { amount, costOf, tokens } from "./money.ts";
import type { Visit } from "./screen.ts";
import { Bar, Bars, Legend, Spark, Stat, StatStrip } from "./ui/charts.tsx";
import { Tabs } from "./ui/filter.tsx";
import { Section, SectionNote } from "./ui/page.tsx";
import { Id, Quiet, Ref, Sub, shortId } from "./ui/reference.tsx";
import { Table } from "./ui/table.tsx";
import { Line } from "./ui/untrusted.tsx";

const ROWS_SHOWN = 20;

/** What a sum cost, with what is only estimated or not known at all. Never nothing for what is unknown. */
export const Cost = ({ sum }: { sum: CostSum }) => {
  const cost = costOf(sum.costs);
  if (cost === undefined) return <Quiet>{sum.unknown > 0 ? "unknown" : "–"}</Quiet>;
  return (
    <>
      {Object.values(sum.estimated).some((part) => part > 0) && "≈ "}
      {cost}
      {sum.unknown > 0 && <Quiet> + unknown</Quiet>}
    </>
  );
};

/** The currency that most of a cost is in: charts, shares and rates are drawn in one. */
const mainCurrency = ({ costs }: CostSum): string | undefined => Object.entries(costs).sort(([, a], [, b]) => b - a)[0]?.[0];

const inUnit = (currency: string): string => (amount(0, currency).startsWith("$") ? "$" : "");
const plural = (count: number, one: string, many: string): string => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

/** What is spent per hour now: over the hour that is going on and the one before. */
function rateOf({ hours }: CostData, currency: string, now: number): number {
  const hour = now - (now % HOUR_MS);
  const spent = [hour, hour - HOUR_MS].reduce((sum, at) => sum + (hours.slots.get(at)?.costs[currency] ?? 0), 0);
  return spent / ((now - hour + HOUR_MS) / HOUR_MS);
}

function Now({ data, now }: { data: CostData; now: number }) {
  const currency = mainCurrency(data.hours.total);
  const first = now - (now % HOUR_MS) - 23 * HOUR_MS;
  const values = Array.from({ length: 24 }, (_, index) => data.hours.slots.get(first + index * HOUR_MS)?.costs[currency ?? ""] ?? 0);
  return (
    <Stat
      label="Now"
      value={currency === undefined ? <Quiet>{data.hours.total.unknown > 0 ? "unknown" : "–"}</Quiet> : amount(rateOf(data, currency, now), currency)}
      unit={currency === undefined ? undefined : "/ h"}
      note={data.moving === 0 ? "no run is moving" : `${plural(data.moving, "run is", "runs are")} moving`}
      spark={currency !== undefined && <Spark values={values} label={`Cost by hour over the last 24 hours, in ${currency}`} />}
    />
  );
}

/** What a day will have come to at this pace; before its second hour nobody can tell. */
function paceOf(today: CostSum, now: number): string | undefined {
  const gone = now - dayOf(now);
  const currency = mainCurrency(today);
  if (currency === undefined || gone < HOUR_MS) return undefined;
  return `at this pace ${amount((today.costs[currency]! * DAY_MS) / gone, currency)} by midnight UTC`;
}

const withoutPrice = ({ unknown }: CostSum): string | undefined => (unknown > 0 ? `${plural(unknown, "use", "uses")} without a price` : undefined);

/** The least that a sum came to: `≥` when something in it has no price, `≈` when a part is estimated. */
function leastOf(sum: CostSum): string | undefined {
  const cost = costOf(sum.costs);
  if (cost === undefined) return undefined;
  return `${sum.unknown > 0 ? "≥ " : Object.values(sum.estimated).some((part) => part > 0) ? "≈ " : ""}${cost}`;
}

const SumStat = ({ label, sum, note, limit }: { label: string; sum: CostSum; note: string | undefined; limit: number | undefined }) => {
  const currency = mainCurrency(sum);
  return (
    <Stat
      label={label}
      value={leastOf(sum) ?? <Quiet>{sum.unknown > 0 ? "unknown" : "–"}</Quiet>}
      unit={limit === undefined || currency === undefined ? undefined : `of ${amount(limit, currency)}`}
      note={note}
    />
  );
};

/** The budget that the page is about: of the chosen project, or over all of them. */
const limitOf = ({ budgets }: CostData, { project }: Visit, period: "day" | "month", currency: string | undefined): number | undefined =>
  budgets.find(({ budget }) => budget.project === (project ?? "") && budget.period === period && budget.currency === currency)?.limit;

const ofWhole = (part: number, whole: number): number => (whole > 0 ? (100 * part) / whole : 0);

/** How much of the money that is counted is only estimated, never rounded down to nothing. */
const estimatedPart = (percent: number): string => (percent === 0 ? "none of the cost estimated" : `${Math.ceil(percent)}% of the cost estimated`);

export const Strip = ({ data, visit }: { data: CostData; visit: Visit }) => {
  const { today, month, range } = data;
  const { uses } = range.total;
  const currency = mainCurrency(range.total);
  const estimated = currency === undefined ? 0 : ofWhole(range.total.estimated[currency] ?? 0, range.total.costs[currency]!);
  const monthName = new Date(visit.now).toLocaleString("en", { month: "long", timeZone: "UTC" });
  return (
    <StatStrip columns={4}>
      <Now data={data} now={visit.now} />
      <SumStat
        label="Today"
        sum={today}
        note={paceOf(today, visit.now) ?? withoutPrice(today)}
        limit={limitOf(data, visit, "day", mainCurrency(today))}
      />
      <SumStat
        label={monthName}
        sum={month}
        note={withoutPrice(month) ?? `${tokens(month.tokens)} tokens, ${tokens(month.cacheReadTokens)} from caches`}
        limit={limitOf(data, visit, "month", mainCurrency(month))}
      />
      <Stat
        label="Uses with a price"
        value={uses === 0 ? <Quiet>–</Quiet> : `${Math.floor(ofWhole(uses - range.total.unknown, uses))}%`}
        note={[withoutPrice(range.total), currency !== undefined && estimatedPart(estimated)].filter(Boolean).join(", ")}
      />
    </StatStrip>
  );
};

/** Bars by day, or by hour of today. */
export const ByTime = ({ data, visit }: { data: CostData; visit: Visit }) => {
  const { range, days, since } = data;
  const currency = mainCurrency(range.total);
  if (currency === undefined) return null;
  const [step, count] = days === 1 ? [HOUR_MS, 24] : [DAY_MS, days];
  const series = Array.from({ length: count }, (_, index) => {
    const at = since + index * step;
    const sum = range.slots.get(at);
    const estimated = sum?.estimated[currency] ?? 0;
    const date = new Date(at);
    const name = days === 1 ? date.toISOString().slice(11, 16) : date.toUTCString().slice(5, 11).replace(/^0/, "");
    return { name, value: Math.max(0, (sum?.costs[currency] ?? 0) - estimated), also: estimated };
  });
  const others = Object.keys(range.total.costs).filter((one) => one !== currency);
  return (
    <Section
      title={days === 1 ? "By hour" : "By day"}
      note={others.length > 0 ? `in ${currency}; also spent in ${others.join(", ")}` : undefined}
      more={<Legend items={[{ text: "reported" }, { text: "estimated", alt: true }]} />}
    >
      <Bars
        series={series}
        label={days === 1 ? `Cost by hour of today, in ${currency}` : `Cost by day over ${days} days, in ${currency}`}
        unit={inUnit(currency)}
        limit={days === 1 ? undefined : limitOf(data, visit, "day", currency)}
        heads={[days === 1 ? "Hour" : "Day", "Reported", "Estimated"]}
      />
    </Section>
  );
};

const PartName = ({ name, data: { part, hosts, projects } }: { name: string; data: CostData }) => {
  if (name === OTHERS) return <Quiet>others</Quiet>;
  if (name === "") return <Quiet>not named</Quiet>;
  if (part !== "machine") return <Line text={name} />;
  const host = hosts.get(name);
  const what = host === undefined ? <Id value={name} /> : <Line text={host} />;
  return (
    <>
      {projects.length === 1 ? <Ref href={runtimeLink(projects[0]!, name)}>{what}</Ref> : what}
      {host !== undefined && <Sub>{shortId(name)}</Sub>}
    </>
  );
};

/** Who or what the cost went to, with its share. */
export const Parts = ({ data, visit }: { data: CostData; visit: Visit }) => {
  const { part, parts, range } = data;
  const currency = mainCurrency(range.total) ?? "";
  const whole = range.total.costs[currency] ?? 0;
  const head = PARTS.find(([name]) => name === part)![1];
  return (
    <Section title="Where it goes" count={parts.length}>
      <Tabs
        label="By what"
        tabs={PARTS.map(([name, text]) => ({ text, href: here(visit.url, { by: name, act: undefined }), current: name === part }))}
      />
      <Table
        caption={`Cost by ${head.toLowerCase()}`}
        rows={parts.slice(0, ROWS_SHOWN)}
        id={({ name }) => domId("cost", part, name)}
        columns={[
          { head, kind: "main", slim: true, cell: ({ name }) => <PartName name={name} data={data} /> },
          { head: "Share", cell: (sum) => (whole > 0 ? <Bar percent={ofWhole(sum.costs[currency] ?? 0, whole)} /> : "–") },
          { head: "Uses", kind: "num", tight: true, cell: ({ uses }) => uses.toLocaleString("en") },
          { head: "Tokens", kind: "num", tight: true, cell: (sum) => tokens(sum.tokens) },
          { head: "Cost", kind: "num", tight: true, cell: (sum) => <Cost sum={sum} /> },
        ]}
      />
      {parts.length > ROWS_SHOWN && <SectionNote>{`The first ${ROWS_SHOWN} of ${parts.length}; all of them are in the files below.`}</SectionNote>}
    </Section>
  );
};

export const Dearest = ({ data: { runs, projects }, visit }: { data: CostData; visit: Visit }) => (
  <Section title="Dearest runs" note="what each cost in this time">
    <Table
      caption="The dearest runs"
      rows={runs}
      id={({ projectId, runId }) => domId("run", projectId, runId)}
      columns={[
        {
          head: "Run",
          kind: "main",
          cell: ({ projectId, runId, title }) => (
            <Ref href={runLink(projectId, runId, { project: visit.project })}>
              {title === undefined ? <Id value={runId} /> : <Line text={title} />}
            </Ref>
          ),
        },
        ...(projects.length > 1 ? [{ head: "Project", cell: ({ project }: CostData["runs"][number]) => <Line text={project} /> }] : []),
        { head: "Uses", kind: "num" as const, tight: true, cell: ({ uses }) => uses.toLocaleString("en") },
        { head: "Tokens", kind: "num" as const, tight: true, cell: (run) => tokens(run.tokens) },
        { head: "Cost", kind: "num" as const, tight: true, cell: (run) => <Cost sum={run} /> },
      ]}
    />
  </Section>
);
