// The machines: which answer and how the hub knows, how busy they are, how their sync goes, and what was asked of them.
/** @jsxImportSource #jsx */
import type { RuntimeRow } from "../db/schema.ts";
import * as commands from "../hub/commands.ts";
import * as runtimes from "../hub/runtimes.ts";
import { COUNT_EXACT_MAX, VIEW_ROWS_MAX } from "../protocol/limits.ts";
import { VERSION } from "../protocol/version.ts";
import { here } from "./address.ts";
import { domId } from "./dom-id.ts";
import { FileLinks } from "./file-links.tsx";
import { runtimeLink } from "./links.ts";
import { projectsOf } from "./listing.ts";
import { livePage } from "./live-page.tsx";
import { InFlight, machineName, Outbox, type RuntimeEntry, RuntimePresence, Slots } from "./runtime-parts.tsx";
import type { Screen, Visit } from "./screen.ts";
import { Command, Empty, Notice } from "./ui/feedback.tsx";
import { PageHead, Section } from "./ui/page.tsx";
import { Id, Ref, Sub } from "./ui/reference.tsx";
import { Badge } from "./ui/status.tsx";
import { Pager, Table } from "./ui/table.tsx";
import { Line } from "./ui/untrusted.tsx";

const IN_FLIGHT_SHOWN = 3;

type RuntimesData = { entries: RuntimeEntry[]; total: number; online: number; page: number; several: boolean };
type Known = { project: string; runtimeId: string; row: RuntimeRow | undefined };

/** One Runtime with what is not done yet. */
export async function runtimeEntry({ hub }: Pick<Visit, "hub">, project: string, runtimeId: string, limit: number): Promise<RuntimeEntry> {
  return {
    runtime: await runtimes.find(hub, project, runtimeId),
    inFlight: (await hub.engine.read.commands.open(project, runtimeId, 0, limit)).map(commands.commandOf),
  };
}

async function load(visit: Visit): Promise<RuntimesData> {
  const { hub, url, now } = visit;
  const projects = projectsOf(visit);
  const found = await Promise.all(
    projects.map(async (project) => (await runtimes.known(hub.engine.read, project)).map((one): Known => ({ project, ...one }))),
  );
  const isOnline = ({ row }: Known) => runtimes.presenceOf(row, now, hub.settings.staleMs) === "online";
  // What does not answer comes first; then by name, which stays in place.
  const all = found.flat().sort((a, b) => Number(isOnline(a)) - Number(isOnline(b)) || (nameOf(a) < nameOf(b) ? -1 : 1));
  const page = Math.max(1, Math.min(Number(url.searchParams.get("page")) || 1, Math.ceil(all.length / VIEW_ROWS_MAX) || 1));
  const shown = all.slice((page - 1) * VIEW_ROWS_MAX, page * VIEW_ROWS_MAX);
  return {
    entries: await Promise.all(shown.map(({ project, runtimeId }) => runtimeEntry(visit, project, runtimeId, IN_FLIGHT_SHOWN))),
    total: all.length,
    online: all.filter(isOnline).length,
    page,
    several: projects.length > 1,
  };
}
const nameOf = ({ row, runtimeId, project }: Known): string => `${row?.host ?? runtimeId} ${runtimeId} ${project}`;

const pendingOf = ({ runtime }: RuntimeEntry): number => (runtime.report?.outbox ?? []).reduce((sum, { pending }) => sum + pending, 0);

/** Machines that have events the hub has not seen, and do not answer. */
const Behind = ({ entries }: { entries: readonly RuntimeEntry[] }) => (
  <>
    {entries
      .filter((entry) => entry.runtime.presence === "expired" && pendingOf(entry) > 0)
      .slice(0, 3)
      .map((entry) => (
        <Notice
          tone="attn"
          title={
            <>
              {machineName(entry.runtime)} has {pendingOf(entry).toLocaleString("en")} events this hub has not seen.
            </>
          }
        >
          Its runs go on without us, and nothing is lost: the backlog drains in order when it is back.
        </Notice>
      ))}
  </>
);

const RuntimesTable = ({ data, visit }: { data: RuntimesData; visit: Visit }) => {
  const { now, hub } = visit;
  return (
    <Table
      caption="Runtimes, those that do not answer first"
      rows={data.entries}
      id={({ runtime: { project, runtimeId } }) => domId("runtime", project, runtimeId)}
      columns={[
        {
          head: "Machine",
          kind: "main",
          cell: ({ runtime }) => (
            <>
              <Ref href={runtimeLink(runtime.project, runtime.runtimeId)}>{machineName(runtime)}</Ref>
              <Sub>
                <Id value={runtime.runtimeId} />
                {runtime.version && (
                  <>
                    {" · "}
                    <Line text={runtime.version} max={32} />
                  </>
                )}
                {" · "}
                {runtime.runTotal >= COUNT_EXACT_MAX ? "1,000+" : runtime.runTotal.toLocaleString("en")} {runtime.runTotal === 1 ? "run" : "runs"}
                {data.several && (
                  <>
                    {" · "}
                    <Line text={runtime.project} max={40} />
                  </>
                )}
              </Sub>
              {runtime.version && runtime.version !== VERSION && <Badge state="warning" text="other version" />}
            </>
          ),
        },
        {
          head: "Presence",
          phone: "line",
          cell: ({ runtime }) => <RuntimePresence runtime={runtime} bound={hub.settings.staleMs} now={now} stack />,
        },
        { head: "Slots", cell: ({ runtime }) => <Slots runtime={runtime} /> },
        {
          head: "Outbox",
          phone: "line",
          cell: ({ runtime }) => {
            const outboxes = runtime.report?.outbox ?? [];
            if (outboxes.length === 0) return "not reported";
            if (outboxes.length === 1) return <Outbox outbox={outboxes[0]!} silent={runtime.presence !== "online"} now={now} />;
            const all = {
              ...outboxes[0]!,
              state: outboxes.find(({ state }) => state !== "ok")?.state ?? "ok",
              pending: outboxes.reduce((sum, { pending }) => sum + pending, 0),
              acked: outboxes.reduce((sum, { acked }) => sum + acked, 0),
              refused: Object.fromEntries(
                outboxes.flatMap(({ refused, projectId }) => Object.entries(refused).map(([code, n]) => [`${projectId} ${code}`, n])),
              ),
            };
            return (
              <>
                <Outbox outbox={all} silent={runtime.presence !== "online"} now={now} />
                <Sub>{outboxes.length} projects</Sub>
              </>
            );
          },
        },
        { head: "Commands in flight", cell: (entry) => <InFlight entry={entry} now={now} /> },
      ]}
    />
  );
};

const RuntimesView = ({ data, visit }: { data: RuntimesData; visit: Visit }) => {
  const { total, online, page, entries } = data;
  const pending = entries.reduce((sum, entry) => sum + pendingOf(entry), 0);
  return (
    <>
      <PageHead
        title="Runtimes"
        sub={[
          `${total} ${total === 1 ? "machine" : "machines"}`,
          total > 0 && `${online} online`,
          pending > 0 && `${pending.toLocaleString("en")} events still out there`,
        ]}
      />
      <Behind entries={entries} />
      {total === 0 ? (
        <Section title="No machine yet" padded>
          <Empty title="No Runtime has reported here yet.">
            A Runtime runs workflows on the machine where the code is, with or without a hub, and reports here once it knows the address.
          </Empty>
          <Command text="kxm runtime bind" />
          <Command text="kxm init && kxm run 'Say hello'" />
        </Section>
      ) : (
        <RuntimesTable data={data} visit={visit} />
      )}
      {total > 0 && (
        <Pager
          shown={
            <>
              {entries.length} of {total} · <FileLinks list="runtimes" url={visit.url} />
            </>
          }
          newer={page > 1 ? here(visit.url, { page: page === 2 ? undefined : String(page - 1) }) : undefined}
          older={page * VIEW_ROWS_MAX < total ? here(visit.url, { page: String(page + 1) }) : undefined}
        />
      )}
    </>
  );
};

export const screens: readonly Screen[] = livePage<RuntimesData>({
  path: "/runtimes",
  id: "runtimes",
  place: "runtimes",
  topic: ["runtimes", "runs"],
  load,
  title: () => "Runtimes",
  view: (data, visit) => <RuntimesView data={data} visit={visit} />,
});
