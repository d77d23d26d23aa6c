// The page of one resource: who holds it now, who waits, and everything its log still says about it.
/** @jsxImportSource #jsx */
import type { LeaseRow as Lease } from "../db/schema.ts";
import { resourceOf } from "../hub/lease-rules.ts";
import * as leases from "../hub/leases.ts";
import { HubError } from "../protocol/errors.ts";
import { VIEW_ROWS_MAX } from "../protocol/limits.ts";
import { here } from "./address.ts";
import { type HeldLease, HeldRow, heldLease, TakeAwayFields } from "./lease-row.tsx";
import { agentLink, link } from "./links.ts";
import { livePage } from "./live-page.tsx";
import type { Screen, Visit } from "./screen.ts";
import { command } from "./shell.ts";
import { Button, Csrf } from "./ui/button.tsx";
import { Command, Notice } from "./ui/feedback.tsx";
import { Columns, Facts, PageHead, Row, Section } from "./ui/page.tsx";
import { Id, Ref, shortId } from "./ui/reference.tsx";
import { type State, Status } from "./ui/status.tsx";
import { Pager, Table } from "./ui/table.tsx";
import { Ago, Lasting, took } from "./ui/time.tsx";
import { Line, Name, visible } from "./ui/untrusted.tsx";

type HistoryData = {
  project: string;
  name: string;
  lease: Lease | undefined;
  held: HeldLease | undefined;
  moments: Shown[];
  next: number | undefined;
};
/** A moment, or renewals that followed one another, as one row. */
type Shown = leases.LeaseMoment & { times: number; since: number };

async function load(visit: Visit): Promise<HistoryData> {
  const { hub, url, params, projects } = visit;
  const { read } = hub.engine;
  const name = url.searchParams.get("name") ?? params["name"]!;
  const project = visit.project ?? (projects.length === 1 ? projects[0]! : undefined);
  if (project === undefined) throw new HubError("lease_not_found", "the address does not say of which project the resource is");
  visit.requireProject(project);
  const lease = await read.leases.find(resourceOf(project, name));
  const before = Number(url.searchParams.get("after")) || undefined;
  const { moments, next } = await leases.history(read, project, name, { before, limit: VIEW_ROWS_MAX });
  if (!lease && moments.length === 0) throw new HubError("lease_not_found", "nobody ever held this resource here");
  const isHeld = lease?.freedAt === null;
  return { project, name, lease, held: isHeld ? await heldLease(visit, lease) : undefined, moments: folded(moments), next };
}

/** Renewals say one thing together: that the holder was alive. */
function folded(moments: readonly leases.LeaseMoment[]): Shown[] {
  const rows: Shown[] = [];
  for (const moment of moments) {
    const last = rows.at(-1);
    if (last && moment.type === "renewed" && last.type === "renewed" && last.data["fence"] === moment.data["fence"]) {
      last.times++;
      last.since = moment.at;
    } else rows.push({ ...moment, times: 1, since: moment.at });
  }
  return rows;
}

/** How each kind of moment is drawn and said. */
const WORDS: Record<string, readonly [State, string]> = {
  acquired: ["held", "taken"],
  renewed: ["held", "renewed"],
  released: ["free", "given back"],
  force_released: ["refused", "taken away"],
  lapsed: ["lapsed", "ran out"],
  waiting: ["waiting", "in line"],
  wait_ended: ["expired", "left the line"],
  forgotten: ["free", "holder forgotten"],
};

const What = ({ moment: { type, times, since, at, data, reason } }: { moment: Shown }) => {
  const [state, word] = WORDS[type] ?? ["unknown", type];
  const heldForMs = data["heldForMs"];
  const why =
    times > 1 ? (
      <>
        {times} times in {took(at - since)}
      </>
    ) : reason ? (
      <Line text={reason} />
    ) : typeof heldForMs === "number" ? (
      <>after {took(heldForMs)}</>
    ) : data["ticket"] !== undefined && type === "acquired" ? (
      "after waiting"
    ) : undefined;
  return <Status state={state} word={word} why={why} />;
};

/** Who a moment is about; an operator is named by the id of the session or token. */
const Whom = ({ moment: { type, actor, data } }: { moment: Shown }) => {
  const name = data["holderName"] ?? data["agentName"];
  const id = data["holderId"] ?? (type === "waiting" || type === "wait_ended" ? actor : undefined);
  if (typeof name !== "string") return null;
  return (
    <>
      {typeof id === "string" ? (
        <Ref href={agentLink(id)}>
          <Name text={name} />
        </Ref>
      ) : (
        <Name text={name} />
      )}
      {type === "force_released" && <span class="sub">by {shortId(actor)}</span>}
    </>
  );
};

const History = ({ data, visit }: { data: HistoryData; visit: Visit }) => {
  const later = visit.url.searchParams.has("after");
  return (
    <Section title="History" note="as far back as the event log is kept">
      <Table
        caption="What happened to this resource, newest first"
        rows={data.moments}
        id={({ seq }) => `moment-${seq}`}
        columns={[
          { head: "What", kind: "main", slim: true, cell: (moment) => <What moment={moment} /> },
          { head: "Who", phone: "line", cell: (moment) => <Whom moment={moment} /> },
          {
            head: "Token",
            kind: "num",
            tight: true,
            cell: ({ data: { fence } }) => (typeof fence === "number" ? <code>{fence}</code> : "–"),
          },
          { head: "When", kind: "num", tight: true, cell: ({ at }) => <Ago at={at} now={visit.now} /> },
        ]}
      />
      {(data.next !== undefined || later) && (
        <Pager
          shown={`${data.moments.length} shown, newest first`}
          newer={later ? here(visit.url, { after: undefined }) : undefined}
          older={data.next === undefined ? undefined : here(visit.url, { after: String(data.next) })}
        />
      )}
    </Section>
  );
};

const Now = ({ data: { lease, held }, visit }: { data: HistoryData; visit: Visit }) => {
  if (held) return <HeldRow held={held} visit={visit} several={false} />;
  return (
    <p class="section__note">
      {lease ? (
        <>
          Free since <Ago at={lease.freedAt!} now={visit.now} plain />. The next holder gets token {lease.fence + 1} or higher.
        </>
      ) : (
        "Free."
      )}
    </p>
  );
};

/** The question of "Force release…" as a part of the page, for those without script. */
const TakeAwayHere = ({ lease, visit }: { lease: Lease; visit: Visit }) => (
  <Section title={`Force release token ${lease.fence}?`} padded>
    <form class="form" method="post" action="/leases/force-release">
      <Csrf token={visit.csrf} />
      <TakeAwayFields lease={lease} id="take-here" />
      <Row>
        <Button kind="danger" type="submit">
          Force release
        </Button>
        <Button href={here(visit.url, { act: undefined })}>Leave it</Button>
      </Row>
    </form>
  </Section>
);

const HistoryView = ({ data, visit }: { data: HistoryData; visit: Visit }) => {
  const { lease, held, project, name } = data;
  const asks = visit.url.searchParams.get("act") === "force-release" && visit.session.role !== "viewer";
  const terminal = command`kxm lease list ${name} --project ${project}`;
  return (
    <>
      <PageHead
        title={<Line text={name} />}
        crumbs={[{ text: "Leases", href: link("/leases", { project }) }, { text: <Line text={project} /> }]}
        sub={[
          held ? (
            <Status
              state="held"
              why={
                <>
                  for <Lasting since={held.lease.acquiredAt} now={visit.now} />
                </>
              }
            />
          ) : (
            <Status state={lease?.holderId ? "lapsed" : "free"} />
          ),
          lease && `token ${lease.fence}`,
          "only the hub’s clock counts",
        ]}
      />
      {asks && held && <TakeAwayHere lease={held.lease} visit={visit} />}
      {asks && !held && <Notice tone="mute" title="Nobody holds it any more." />}
      <Section title="Now">
        <Now data={data} visit={visit} />
      </Section>
      <Columns
        below
        main={<History data={data} visit={visit} />}
        aside={
          <>
            <Section title="Facts">
              <Facts
                rows={[
                  ["Project", <Line text={project} />],
                  ["Token", lease ? <code>{lease.fence}</code> : "–"],
                  ["Granted for", held ? took(held.lease.ttlMs) : "–"],
                  ["Holder", held ? <Id value={held.lease.holderId!} /> : "nobody"],
                ]}
              />
            </Section>
            {terminal && (
              <Section title="Same from a terminal" padded>
                <Command text={terminal} />
              </Section>
            )}
          </>
        }
      />
    </>
  );
};

export const screens: readonly Screen[] = livePage<HistoryData>({
  path: "/leases/:name",
  id: "lease",
  place: "leases",
  topic: ["leases", "agents"],
  load,
  title: ({ name }) => visible(name),
  view: (data, visit) => <HistoryView data={data} visit={visit} />,
});
