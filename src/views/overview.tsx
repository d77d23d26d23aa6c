// The front page, in the order an operator asks: what needs me, what is broken, what is running, what just happened. A healthy fleet is a calm sentence.
/** @jsxImportSource #jsx */
import { link } from "./links.ts";
import { livePage } from "./live-page.tsx";
import { amount, costOf, tokens } from "./money.ts";
import { load, type OverviewData, type Spent, type Strip, sum } from "./overview-data.ts";
import { Fleet, type Machine } from "./overview-fleet.tsx";
import { NeedsYou, needed } from "./overview-needs.tsx";
import { RunsTable } from "./runs.tsx";
import { type Screen, screen, type Visit } from "./screen.ts";
import { Start } from "./start.tsx";
import { Spark, Stat, StatStrip } from "./ui/charts.tsx";
import { Feed } from "./ui/feed.tsx";
import { Command, Empty } from "./ui/feedback.tsx";
import { Columns, Lede, LedeLink, Section } from "./ui/page.tsx";
import { counted, Link } from "./ui/reference.tsx";
import { Lasting, took } from "./ui/time.tsx";
import { Line } from "./ui/untrusted.tsx";

const OverviewView = ({ data, visit }: { data: OverviewData; visit: Visit }) => {
  if (data.isNew) return <Start visit={visit} />;
  const { project } = visit;
  return (
    <>
      <h1 class="visually-hidden">Overview</h1>
      <Sentence data={data} visit={visit} />
      <Figures strip={data.strip} spent={data.spent} machines={data.machines} />
      <Columns
        main={
          <>
            <NeedsYou needs={data.needs} visit={visit} />
            <Fleet machines={data.machines} visit={visit} total={data.agents.total} />
            <Running data={data} visit={visit} />
          </>
        }
        aside={
          <Section title="Just now" more={<Link href={link("/audit", { project })}>Audit</Link>}>
            {data.feed.length > 0 ? <Feed items={data.feed} /> : <p class="section__note">Nothing has happened yet.</p>}
          </Section>
        }
      />
    </>
  );
};

/** One honest sentence; each figure leads to what it counts. */
const Sentence = ({ data, visit }: { data: OverviewData; visit: Visit }) => {
  const { needs, agents, moving, spent } = data;
  const { project, now } = visit;
  const today = costOf(spent.today.costs);
  const total = needed(needs);
  const { conflicts } = needs.counts;
  return (
    <Lede>
      {total > 0 ? (
        <>
          <LedeLink href="#needs" tone="attn">
            {counted(total)} {total === 1 ? "thing needs" : "things need"} you
          </LedeLink>
          {needs.oldestAt !== undefined && (
            <>
              , the oldest for <Lasting since={needs.oldestAt} now={now} />
            </>
          )}
          .{" "}
        </>
      ) : (
        "Nothing needs you. "
      )}
      {conflicts > 0 && (
        <>
          <LedeLink href={link("/sync", { project })} tone="bad">
            {conflicts === 1 ? "One sync conflict" : `${counted(conflicts)} sync conflicts`}
          </LedeLink>{" "}
          {conflicts === 1 ? "is" : "are"} open.{" "}
        </>
      )}
      <LedeLink href={link("/agents", { project })}>
        {agents.answering === agents.total
          ? `${agents.total === 1 ? "The agent" : `All ${counted(agents.total)} agents`}`
          : `${counted(agents.answering)} of ${counted(agents.total)} agents`}
      </LedeLink>{" "}
      {agents.answering === 1 ? "answers" : "answer"}
      {agents.unknown > 0 && ` (${counted(agents.unknown)} could not be heard yet: this hub has just come back)`},{" "}
      <LedeLink href={link("/runs", { project })}>{moving === 0 ? "no run" : `${counted(moving)} ${moving === 1 ? "run" : "runs"}`}</LedeLink>{" "}
      {moving <= 1 ? "is" : "are"} moving
      {today !== undefined && (
        <>
          , <LedeLink href={link("/cost", { project })}>{today}</LedeLink> spent since midnight UTC
        </>
      )}
      .
    </Lede>
  );
};

const peak = (values: readonly number[]): number => Math.max(0, ...values);

/** Money where any was spent; otherwise how many requests were answered. */
const SpentOrReplies = ({ strip: { replies, expired }, spent: { day, currency, hours } }: { strip: Strip; spent: Spent }) => {
  const total = costOf(day.costs);
  if (total === undefined)
    return (
      <Stat
        label="Replies, 24 h"
        value={sum(replies).toLocaleString("en")}
        spark={<Spark values={replies} label={`Replies per hour, last 24 hours, peak ${peak(replies)}`} />}
        note={`${expired.toLocaleString("en")} expired unanswered`}
      />
    );
  return (
    <Stat
      label="Cost, 24 h"
      value={total}
      spark={<Spark values={hours} label={`Cost per hour, last 24 hours, peak ${amount(peak(hours), currency)}`} />}
      note={day.unknown > 0 ? `${day.unknown.toLocaleString("en")} uses without a price` : `${tokens(day.tokens)} tokens`}
    />
  );
};

const Figures = ({ strip, spent, machines }: { strip: Strip; spent: Spent; machines: readonly Machine[] }) => {
  const { messages, replies, expired, runs, toTurn } = strip;
  const showsReplies = costOf(spent.day.costs) !== undefined; // the place of their own goes to the cost then
  const lag = lagOf(machines);
  return (
    <StatStrip late>
      <Stat
        label="Messages, 24 h"
        value={sum(messages).toLocaleString("en")}
        spark={<Spark values={messages} label={`Messages per hour, last 24 hours, peak ${peak(messages)}`} />}
        note={
          showsReplies
            ? `${sum(replies).toLocaleString("en")} replied, ${expired.toLocaleString("en")} expired${toTurn ? `, p50 ${took(toTurn.p50)}` : ""}`
            : toTurn
              ? `until a turn starts: p50 ${took(toTurn.p50)}, p99 ${took(toTurn.p99)}`
              : "no turn was started yet"
        }
      />
      <SpentOrReplies strip={strip} spent={spent} />
      <Stat
        label="Runs finished, 24 h"
        value={sum(runs.values).toLocaleString("en")}
        spark={<Spark values={runs.values} label={`Runs finished per hour, last 24 hours, peak ${peak(runs.values)}`} />}
        note={`${runs.completed} completed, ${runs.failed} failed, ${runs.cancelled} cancelled`}
      />
      <Stat
        label="Not yet here"
        value={lag.pending.toLocaleString("en")}
        unit="events"
        note={
          lag.worst ? (
            <>
              worst: <Line text={lag.worst} max={30} />
            </>
          ) : (
            "every machine is in sync, as it last said"
          )
        }
      />
    </StatStrip>
  );
};

/** What machines say they have not sent yet. */
function lagOf(machines: readonly Machine[]): { pending: number; worst: string | undefined } {
  const each = machines.map(({ host, runtime }) => ({
    host,
    pending: (runtime?.report.outbox ?? []).reduce((total, one) => total + one.pending, 0),
  }));
  const worst = each.reduce<(typeof each)[number] | undefined>((most, one) => (one.pending > (most?.pending ?? 0) ? one : most), undefined);
  return { pending: sum(each.map(({ pending }) => pending)), worst: worst?.host };
}

const Running = ({ data: { running, moving }, visit }: { data: OverviewData; visit: Visit }) => (
  <Section title="Running" count={moving} more={<Link href={link("/runs", { project: visit.project })}>All runs</Link>}>
    {running.length > 0 ? (
      <RunsTable runs={running} visit={visit} several={visit.project === undefined && visit.projects.length > 1} />
    ) : (
      <Empty title="Nothing is running." acts={<Command text="kxm run 'Fix the flaky test'" />}>
        A run is started in a checkout; its Runtime runs it with or without the hub.
      </Empty>
    )}
  </Section>
);

/** The front page, its fragment, and the first steps at any time. */
export const screens: readonly Screen[] = [
  ...livePage({
    path: "/",
    id: "overview",
    place: "overview",
    topic: ["approvals", "sync", "runs", "alerts", "messages", "leases", "agents", "runtimes"],
    load,
    title: () => "Overview",
    view: (data, visit) => <OverviewView data={data} visit={visit} />,
  }),
  screen({
    method: "GET",
    path: "/start",
    role: "viewer",
    run: (visit) => visit.page({ title: "First steps", place: "overview", children: <Start visit={visit} /> }),
  }),
];
