// Stories of charts, machines, budgets and leases.
/** @jsxImportSource #jsx */
import { Button } from "../ui/button.tsx";
import { Bar, Bars, Legend, Spark, Stat, StatStrip, Track } from "../ui/charts.tsx";
import { BudgetRow, MachineRow, PipLegend } from "../ui/fleet.tsx";
import { LeaseRow } from "../ui/lease.tsx";
import { Row } from "../ui/page.tsx";
import { Ref, Who } from "../ui/reference.tsx";
import { Status } from "../ui/status.tsx";
import { Ago, Lasting } from "../ui/time.tsx";
import { LONG_NAME, type Story, seconds, Variant } from "./story.tsx";

const charts: Story = {
  id: "charts",
  title: "Charts",
  shows: ".strip .stat .spark .bars .bar .track",
  render: () => (
    <>
      <StatStrip columns={3}>
        <Stat
          label="Messages, 24 h"
          value="1,433"
          spark={<Spark values={[2, 3, 8, 6, 9, 11, 7]} label="Messages per hour, peak 11" />}
          note="p99 9 s"
        />
        <Stat label="Sync lag" value="0.4" unit="s" note="worst 3 min" />
        <Stat label="Uncertain" value="0" note="none since 28 Nov" />
      </StatStrip>
      <Bars
        label="Cost by day of this week, from 5 to 45 dollars"
        series={["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"].map((name, i) => ({
          name,
          value: [22, 31, 36, 28, 33, 4, 6][i]!,
          also: [4, 6, 9, 5, 7, 1, 1][i]!,
        }))}
        limit={40}
        unit="$"
        heads={["Day", "Reported", "Estimated"]}
      />
      <Legend items={[{ text: "reported" }, { text: "estimated", alt: true }]} />
      <Variant name="shares and steps">
        <Bar percent={46} />
        <Bar percent={82} tone="attn" />
        <Bar percent={100} tone="bad" />
        <Bar percent={69} tone="ok" label="69 percent drained" />
        <Row>
          <Track marks={["ok", "ok", "run", "todo", "todo"]} text="bisect, 3 of 5" />
          <Track marks={["ok", "bad", "todo"]} />
          <Track marks={["ok", "attn", "todo"]} />
          <Track marks={["busy", "busy", "todo"]} label="2 of 3 slots busy" />
          <Track marks={["wait", "todo"]} />
        </Row>
      </Variant>
    </>
  ),
};

const fleet: Story = {
  id: "fleet",
  padded: true,
  title: "Machines and budgets",
  shows: ".machine .pips .budget",
  render: (now) => (
    <>
      <PipLegend />
      <MachineRow
        id="machine-build-01"
        name="build-01"
        href="#fleet"
        status={
          <Status
            state="online"
            why={
              <>
                heartbeat <Ago at={now - seconds(2)} now={now} plain />
              </>
            }
          />
        }
        pipsHref="#fleet"
        pips={[
          { state: "run", label: "implementer on build-01: working" },
          { state: "attn", label: "reviewer on build-01: needs you" },
          { state: "idle", label: "planner on build-01: idle" },
          { state: "bad", label: "tester on build-01: failed" },
          { state: "lost", label: `${LONG_NAME} on build-01: lost contact` },
        ]}
        note="3 queued runs wait for a slot here"
        side={[
          "slots 3 of 3 busy",
          <>
            synced <Ago at={now - seconds(1)} now={now} plain />
          </>,
        ]}
      />
      <BudgetRow name="atlas-payments, day" percent={46} figures="$18.42 / $40" note={<Status state="within" word="holds" why="$21.58 left" />} />
      <BudgetRow
        name={LONG_NAME}
        percent={82}
        figures="$8.20 / $10"
        note={<Status state="near" word="nearly used" why="$1.80 left · 2 uses without a price" />}
      />
      <BudgetRow
        name="All projects, month"
        percent={104}
        figures="$936.00 / $900"
        note={<Status state="over" word="used up" why="$36.00 over it" />}
        acts={<Button small>Change…</Button>}
      />
      <BudgetRow name="Without a note" percent={12} figures="unknown / $5" />
    </>
  ),
};

const lease: Story = {
  id: "lease",
  title: "Lease",
  shows: ".lease .ring .waiters",
  render: (now) => (
    <>
      <LeaseRow
        id="lease-branch-main"
        resource={<Ref href="#lease">branch:main</Ref>}
        token={41}
        note={
          <>
            held for <Lasting since={now - seconds(731)} now={now} />
          </>
        }
        holder={<Who name="implementer" harness="claude" />}
        holderNote="renews in time"
        expiresAt={now + seconds(186)}
        ttl={seconds(300)}
        now={now}
        acts={<Button small>Force release…</Button>}
        waiters={[
          { name: "flake-hunter", since: now - seconds(95) },
          { name: LONG_NAME, since: now - seconds(20) },
        ]}
      />
      <LeaseRow
        id="lease-db"
        resource="file:services/payments/internal/ledger/generated/schema.snapshot.json"
        token={17}
        holder={<Who name="migration-runner" harness="command" />}
        expiresAt={now + seconds(36)}
        ttl={seconds(300)}
        now={now}
      />
      <LeaseRow
        id="lease-gone"
        resource="deploy:canary"
        token={6}
        holder={<Who name={LONG_NAME} harness="gemini" />}
        expiresAt={now - 1}
        ttl={seconds(300)}
        now={now}
      />
    </>
  ),
};

export const FIGURE_STORIES: readonly Story[] = [charts, fleet, lease];
