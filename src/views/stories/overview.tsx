// A whole page put together from the components and plain data: how an overview is composed.
/** @jsxImportSource #jsx */
import type { Html } from "../jsx/jsx-runtime.ts";
import { Spark, Stat, StatStrip, Track } from "../ui/charts.tsx";
import { Feed, type FeedItem } from "../ui/feed.tsx";
import { BudgetRow, MachineRow, type Pip, PipLegend, type PipState } from "../ui/fleet.tsx";
import { Blockers } from "../ui/inbox.tsx";
import { Columns, Lede, LedeLink, Section } from "../ui/page.tsx";
import { Id, Link, Ref, Sub } from "../ui/reference.tsx";
import { Status } from "../ui/status.tsx";
import { Table } from "../ui/table.tsx";
import { Ago, Lasting } from "../ui/time.tsx";
import { NeedsYou } from "./needs-you.tsx";
import { seconds } from "./story.tsx";

const MESSAGES = [12, 9, 6, 4, 3, 3, 8, 22, 61, 88, 94, 71, 66, 102, 97, 83, 90, 110, 76, 52, 48, 61, 84, 93];
const RUNS = [1, 0, 0, 1, 0, 0, 2, 3, 6, 8, 7, 5, 4, 9, 8, 6, 7, 9, 5, 3, 2, 4, 6, 7];
const COST = [0.1, 0.05, 0.02, 0.04, 0, 0.01, 0.3, 0.6, 1.1, 1.4, 1.2, 0.8, 0.7, 1.6, 1.5, 1.1, 1.2, 1.9, 0.9, 0.6, 0.4, 0.7, 1.1, 1.3];
const LAG = [1, 1, 1, 1, 1, 1, 2, 1, 1, 3, 1, 1, 9, 4, 1, 1, 1, 2, 1, 1, 1, 1, 6, 3];

const Strip = () => (
  <StatStrip late>
    <Stat
      label="Messages, 24 h"
      value="1,433"
      spark={<Spark values={MESSAGES} label="Messages per hour, last 24 hours, peak 110" />}
      note="post to turn started: p50 1.4 s, p99 9 s"
    />
    <Stat
      label="Runs finished, 24 h"
      value="103"
      spark={<Spark values={RUNS} label="Runs per hour, peak 9" />}
      note="94 completed, 6 failed, 3 cancelled"
    />
    <Stat
      label="Cost, 24 h"
      value="$19.62"
      spark={<Spark values={COST} label="Cost per hour, peak $1.90" />}
      note="now $1.31 / h · budget $40 a day"
    />
    <Stat
      label="Sync lag"
      value="0.4 s"
      spark={<Spark values={LAG} label="Sync lag per hour, peak 9 s" />}
      note="worst: laptop-m3, 3 min, 214 pending"
    />
  </StatStrip>
);

const pips = (machine: string, ...counts: [PipState, number][]): Pip[] =>
  counts.flatMap(([state, n]) => Array.from({ length: n }, (_, i) => ({ state, label: `agent ${i + 1} on ${machine}: ${state}` })));

const Fleet = ({ now }: { now: number }) => {
  const beat = (s: number) => (
    <Status
      state="online"
      why={
        <>
          heartbeat <Ago at={now - seconds(s)} now={now} plain />
        </>
      }
    />
  );
  const synced = (s: number) => (
    <>
      synced <Ago at={now - seconds(s)} now={now} plain />
    </>
  );
  return (
    <Section title="Fleet" count="4 machines" more={<PipLegend />}>
      <MachineRow
        id="fleet-build"
        name="build-01"
        href="/runtimes"
        status={beat(2)}
        pipsHref="/agents"
        pips={pips("build-01", ["run", 9], ["attn", 2], ["idle", 9])}
        note="3 queued runs wait for a slot here"
        side={["slots 3 of 3 busy", synced(1)]}
      />
      <MachineRow
        id="fleet-studio"
        name="studio"
        href="/runtimes"
        status={beat(4)}
        pipsHref="/agents"
        pips={pips("studio", ["run", 6], ["attn", 1], ["idle", 7])}
        side={["slots 2 of 4 busy", synced(3)]}
      />
      <MachineRow
        id="fleet-laptop"
        name="laptop-m3"
        href="/runtimes"
        status={
          <Status
            state="lost contact"
            why={
              <>
                last seen <Ago at={now - seconds(184)} now={now} plain />
              </>
            }
          />
        }
        pipsHref="/agents"
        pips={pips("laptop-m3", ["lost", 3])}
        note="Runs go on without the hub. Nothing is lost; the backlog drains when it is back."
        side={[
          "214 events not yet here",
          <>
            oldest <Ago at={now - seconds(191)} now={now} plain />
          </>,
        ]}
      />
    </Section>
  );
};

const RUNNING = [
  {
    id: "run_5b1ec07d",
    title: "Settle refunds in the ledger",
    flow: "implement-and-review",
    marks: ["ok", "ok", "ok", "ok", "attn", "todo"],
    step: "deliver: approval pending since 13:50",
    since: 5040,
    cost: "$2.18",
  },
  {
    id: "run_77aa02f4",
    title: "Upgrade OpenSSL bindings across services",
    flow: "panel-fix",
    marks: ["ok", "run", "todo", "todo"],
    step: "panel: 2 of 3 assignments settled",
    since: 412,
    cost: "$0.94",
  },
  {
    id: "run_a3f19b0c",
    title: "Document the webhook retry schedule",
    flow: "docs",
    marks: ["wait", "todo", "todo"],
    step: null,
    since: 95,
    cost: "–",
  },
] as const;

const Running = ({ now }: { now: number }) => (
  <Section title="Running" count={12} more={<Link href="/runs">All runs</Link>}>
    <Table
      caption="Running and queued runs"
      rows={RUNNING}
      id={({ id }) => `running-${id}`}
      columns={[
        {
          head: "Run",
          kind: "main",
          cell: ({ id, title, flow }) => (
            <>
              <Ref href={`/runs/${id}`}>{title}</Ref>
              <Sub>
                {flow} · <Id value={id} />
              </Sub>
            </>
          ),
        },
        {
          head: "Step",
          phone: "line",
          cell: ({ marks, step }) => (
            <>
              <Track marks={marks} />
              <Sub>
                {step ?? <Blockers inline items={[{ text: "build-01: 3 of 3 slots busy" }, { text: "lease branch:docs held by docs-writer" }]} />}
              </Sub>
            </>
          ),
        },
        { head: "Machine", kind: "tight", cell: () => "build-01" },
        { head: "For", kind: "num", tight: true, cell: ({ since }) => <Lasting since={now - seconds(since)} now={now} /> },
        { head: "Cost", kind: "num", cell: ({ cost }) => cost },
      ]}
    />
  </Section>
);

const JUST_NOW: readonly [FeedItem["icon"], FeedItem["tone"], string, number][] = [
  ["ok", "ok", "Trim audit export completed", 6],
  ["messages", "mute", "reviewer replied to implementer", 14],
  ["leases", "mute", "migration-runner renewed db:migrations", 122],
  ["lost", "bad", "laptop-m3 lost contact", 184],
  ["run", "run", "Upgrade OpenSSL bindings started", 412],
  ["cost", "attn", "Soft limit on run_91aa…", 540],
  ["person", "attn", "Approval asked: push to main", 724],
  ["attn", "bad", "Sync conflict at sequence 118", 1290],
];

/** The sample overview: goes into the Layout. */
export const SampleOverview = ({ now }: { now: number }): Html => (
  <>
    <h1 class="visually-hidden">Overview</h1>
    <Lede>
      <LedeLink href="/approvals" tone="attn">
        8 things need you
      </LedeLink>
      , the oldest for 52 min.{" "}
      <LedeLink href="/sync" tone="bad">
        One sync conflict
      </LedeLink>{" "}
      is open. <LedeLink href="/agents">41 of 44 agents</LedeLink> answer, <LedeLink href="/runs">12 runs</LedeLink> are moving,{" "}
      <LedeLink href="/cost">$18.42</LedeLink> spent since midnight.
    </Lede>
    <Strip />
    <Columns
      main={
        <>
          <NeedsYou now={now} />
          <Fleet now={now} />
          <Running now={now} />
        </>
      }
      aside={
        <>
          <Section title="Just now" more={<Link href="/audit">Audit</Link>}>
            <Feed
              items={JUST_NOW.map(([icon, tone, text, ago], i) => ({
                id: `just-${i}`,
                icon,
                tone,
                text,
                when: <Ago at={now - seconds(ago)} now={now} />,
              }))}
            />
          </Section>
          <Section title="Budgets today">
            <BudgetRow name="atlas-payments" percent={46} figures="$18.42 / $40" />
            <BudgetRow name="implementer" percent={82} figures="$8.20 / $10" />
            <BudgetRow name="claude, week" percent={63} figures="resets in 2 d" />
          </Section>
        </>
      }
    />
  </>
);
