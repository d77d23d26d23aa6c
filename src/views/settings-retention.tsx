// What retention will delete: the next round's and a day's, by kind of record. Counted and never further than a thousand rows of a kind.
/** @jsxImportSource #jsx */
import type { Forecast } from "../hub/forecast.ts";
import { FORECAST_ROWS_MAX } from "../protocol/limits.ts";
import { sizeOf } from "./bytes.ts";
import type { Child } from "./jsx/jsx-runtime.ts";
import type { Visit } from "./screen.ts";
import { Stat, StatStrip } from "./ui/charts.tsx";
import { Section, SectionNote } from "./ui/page.tsx";
import { Quiet } from "./ui/reference.tsx";
import { Table } from "./ui/table.tsx";
import { Left, words } from "./ui/time.tsx";

const NAMES: Record<Forecast["kind"], readonly [name: string, from: string]> = {
  messages: ["Messages", "after their end"],
  leaseHolders: ["Holders of free leases", "after they lapsed; the lease stays"],
  workflowRuns: ["Workflow runs with their journal", "after their end"],
  contextItems: ["Superseded and rejected context", "after its end"],
  runtimeCommands: ["Commands to Runtimes", "after their end"],
  approvals: ["Decided approvals", "after the decision"],
  alerts: ["Acknowledged alerts", "after somebody looked"],
  syncConflicts: ["Acknowledged conflicts", "after somebody looked"],
  webhookDeliveries: ["Deliveries to receivers", "after their end"],
  webhookArrivals: ["Log of incoming deliveries", "after they came"],
  syncRuns: ["Runs of Runtimes with their events", "after their last event"],
  silentSyncRuns: ["Runs that fell silent", "after their last event"],
  runtimes: ["Runtimes", "after they were last heard of"],
  events: ["Event log", "after it happened"],
  audit: ["Audit", "after it happened"],
  costSums: ["Sums of cost", "after that day"],
  sessions: ["Sessions", "after they ended"],
};

const many = (rows: number): string => (rows > FORECAST_ROWS_MAX ? `${FORECAST_ROWS_MAX.toLocaleString("en")}+` : rows.toLocaleString("en"));

/** How many, and their size; a dash for nothing. */
const amountOf = ({ rows, bytes }: Forecast["next"]): Child =>
  rows === 0 ? (
    "–"
  ) : (
    <>
      {many(rows)} {bytes > 0 && <Quiet>{rows > FORECAST_ROWS_MAX ? `${sizeOf(bytes)}+` : sizeOf(bytes)}</Quiet>}
    </>
  );

const total = (forecasts: readonly Forecast[], of: "next" | "day") => ({
  rows: forecasts.reduce((sum, one) => sum + one[of].rows, 0),
  bytes: forecasts.reduce((sum, one) => sum + one[of].bytes, 0),
  more: forecasts.some((one) => one[of].rows > FORECAST_ROWS_MAX),
});

const Total = ({ label, sum }: { label: string; sum: ReturnType<typeof total> }) => (
  <Stat
    label={label}
    value={sum.rows === 0 ? "nothing" : `${sum.rows.toLocaleString("en")}${sum.more ? "+" : ""}`}
    unit={sum.rows === 0 ? undefined : "records"}
    note={sum.rows === 0 ? "no record is due" : `about ${sizeOf(sum.bytes)}${sum.more ? " or more" : ""}`}
  />
);

export const Retention = ({ forecasts, visit }: { forecasts: readonly Forecast[]; visit: Visit }) => {
  const first = forecasts
    .filter(({ firstAt }) => firstAt !== undefined)
    .sort((a, b) => a.firstAt! - b.firstAt!)
    .at(0);
  return (
    <>
      <StatStrip columns={3}>
        <Total label="Next round, within a minute" sum={total(forecasts, "next")} />
        <Total label="Within a day" sum={total(forecasts, "day")} />
        <Stat
          label="First to go"
          value={first === undefined ? "–" : first.firstAt! <= visit.now ? "now" : <Left until={first.firstAt!} now={visit.now} />}
          note={first && NAMES[first.kind][0]}
        />
      </StatStrip>
      <Section title="What is kept, and what goes" note="open, pending and unacknowledged things stay">
        <Table
          caption="Retention by kind of record"
          rows={forecasts}
          id={({ kind }) => `kept-${kind}`}
          columns={[
            { head: "Kind", kind: "main", slim: true, cell: ({ kind }) => NAMES[kind][0] },
            {
              head: "Kept",
              cell: ({ kind, keptMs }) => (
                <>
                  {keptMs === 0 ? "not longer" : words(keptMs)} <Quiet>{NAMES[kind][1]}</Quiet>
                </>
              ),
            },
            { head: "Next round", kind: "num", tight: true, cell: ({ next }) => amountOf(next) },
            { head: "Within a day", kind: "num", tight: true, cell: ({ day }) => amountOf(day) },
            {
              head: "First goes in",
              kind: "num",
              tight: true,
              cell: ({ firstAt }) =>
                firstAt === undefined ? "–" : firstAt <= visit.now ? <Quiet>now</Quiet> : <Left until={firstAt} now={visit.now} />,
            },
          ]}
        />
        <SectionNote>
          Sizes are of texts and records, without indexes. Space that is given back is used again; the file itself does not shrink. How long messages
          are kept is KXM_MESSAGE_RETENTION_MS; a jump of the clock deletes nothing.
        </SectionNote>
      </Section>
    </>
  );
};
