// Leases: who holds what under which token for how long still, who waits, what was freed lately; and the way to take one away.
/** @jsxImportSource #jsx */
import type { EventRow, LeaseRow as Lease } from "../db/schema.ts";
import type { Stores } from "../db/tx.ts";
import * as leases from "../hub/leases.ts";
import { COUNT_EXACT_MAX, LIST_SCAN_ROWS_MAX, REASON_MAX, VIEW_ROWS_MAX } from "../protocol/limits.ts";
import { act, fieldOf } from "./acts.tsx";
import { here } from "./address.ts";
import { domId } from "./dom-id.ts";
import { download, type ExportColumn } from "./export.ts";
import { EXPORT_ROWS_MAX, FileLinks } from "./file-links.tsx";
import { type HeldLease, HeldRow, heldLease } from "./lease-row.tsx";
import { leaseLink } from "./links.ts";
import { type Asked, askedOf, askedValue, chipsOf, countOver, keptBy, projectsOf, type Tallies } from "./listing.ts";
import { livePage } from "./live-page.tsx";
import { type Screen, screen, type Visit } from "./screen.ts";
import { Command, Empty } from "./ui/feedback.tsx";
import { FilterBar } from "./ui/filter.tsx";
import { PageHead, Section } from "./ui/page.tsx";
import { Ref } from "./ui/reference.tsx";
import { Status } from "./ui/status.tsx";
import { Pager, Table } from "./ui/table.tsx";
import { Ago } from "./ui/time.tsx";
import { Line, Name, visible } from "./ui/untrusted.tsx";

const FREED_SHOWN = 10;
const QUALIFIERS = ["holder"];

/** A free resource and the last thing its log says. */
type FreedLease = { lease: Lease; last: EventRow | undefined };
type Place = { project: string; name: string };
type LeasesData = {
  projects: readonly string[];
  asked: Asked;
  held: HeldLease[];
  next: Place | undefined;
  /** Held leases that were looked at for a filter, when there were more. */
  lookedAt: number | undefined;
  total: number;
  freed: FreedLease[];
};

async function load(visit: Visit): Promise<LeasesData> {
  const { hub, url } = visit;
  const { read } = hub.engine;
  const projects = projectsOf(visit);
  const asked = askedOf(url, QUALIFIERS);
  const page = await heldPage(read, projects, { from: placeOf(url), keep: keeps(asked), limit: VIEW_ROWS_MAX });
  const freed = (await Promise.all(projects.map((project) => read.leases.freed(project, FREED_SHOWN)))).flat();
  const newest = freed.sort((a, b) => b.freedAt! - a.freedAt!).slice(0, FREED_SHOWN);
  return {
    projects,
    asked,
    held: await Promise.all(page.rows.map((lease) => heldLease(visit, lease))),
    next: page.next,
    lookedAt: page.lookedAt,
    total: await countOver(projects, (project) => read.leases.countHeld(project, COUNT_EXACT_MAX + 1)),
    freed: await Promise.all(
      newest.map(async (lease) => ({ lease, last: (await read.events.about(lease.project, lease.resource, Number.MAX_SAFE_INTEGER, 1))[0] })),
    ),
  };
}

/** For saved views. */
export const tally: Tallies = async (visit, limit) => {
  const keep = keeps(askedOf(visit.url, QUALIFIERS));
  const { rows, next } = await heldPage(visit.hub.engine.read, projectsOf(visit), { from: undefined, keep, limit });
  return { count: rows.length, more: next !== undefined };
};

/** The place behind which a page begins: `project/name`, the project encoded. */
function placeOf(url: URL): Place | undefined {
  const [, project, name] = /^([^/]*)\/([\s\S]+)$/.exec(url.searchParams.get("after") ?? "") ?? [];
  if (project === undefined || name === undefined) return undefined;
  try {
    return { project: decodeURIComponent(project), name };
  } catch {
    return undefined;
  }
}
const writePlace = ({ project, name }: Place): string => `${encodeURIComponent(project)}/${name}`;

function keeps(asked: Asked): ((lease: Lease) => boolean) | undefined {
  const holder = askedValue(asked, "holder")?.toLowerCase();
  const words = asked.words.toLowerCase();
  if (holder === undefined && words === "") return undefined;
  return ({ name, holderName }) => name.toLowerCase().includes(words) && (holder === undefined || holderName!.toLowerCase().includes(holder));
}

/** Held leases by project and name. A filter looks at a bounded number of them: a rare word gives a short page, not a slow one. */
async function heldPage(
  read: Stores,
  projects: readonly string[],
  { from, keep = () => true, limit }: { from: Place | undefined; keep: ((lease: Lease) => boolean) | undefined; limit: number },
) {
  const rows: Lease[] = [];
  let [looked, last] = [0, from];
  for (const project of projects.slice(Math.max(0, from ? projects.indexOf(from.project) : 0))) {
    for (let after = from?.project === project ? from.name : ""; ; ) {
      const found = await read.leases.held(project, after, VIEW_ROWS_MAX + 1);
      for (const lease of found) {
        if (rows.length === limit) return { rows, next: last, lookedAt: undefined };
        if (looked++ === Math.max(limit, LIST_SCAN_ROWS_MAX)) return { rows, next: last, lookedAt: LIST_SCAN_ROWS_MAX };
        last = { project, name: lease.name };
        after = lease.name;
        if (keep(lease)) rows.push(lease);
      }
      if (found.length <= VIEW_ROWS_MAX) break;
    }
  }
  return { rows, next: undefined, lookedAt: undefined };
}

/** How a resource is called: with its project where several are shown. */
const resourceName = ({ project, name }: Place, several: boolean): string => (several ? `${project} ${name}` : name);

const forceRelease = screen({
  method: "POST",
  path: "/leases/force-release",
  role: "operator",
  run: (visit) => {
    const project = visit.form.get("project") ?? "";
    const name = visit.form.get("name") ?? "";
    visit.requireProject(project);
    return act(visit, leaseLink(project, name), async () => {
      const reason = fieldOf(visit.form, "reason", REASON_MAX);
      const fence = Number(fieldOf(visit.form, "fence", 16));
      await leases.forceRelease(visit.hub, visit.by, { project, name, reason, fence });
      return { tone: "ok", text: `${visible(name)} was taken away, token ${fence}.`, hint: "Whoever is first in line has it now." };
    });
  },
});

const FREED_WORDS: Record<string, string> = { released: "given back", force_released: "taken away by an operator", lapsed: "ran out" };

const Freed = ({ data, visit }: { data: LeasesData; visit: Visit }) => (
  <Section title="Recently freed" note="the next holder gets a higher token">
    <Table
      caption="Resources that were freed last"
      rows={data.freed}
      id={({ lease }) => domId("freed", lease.project, lease.name)}
      columns={[
        {
          head: "Resource",
          kind: "main",
          cell: ({ lease: { project, name } }) => (
            <Ref href={leaseLink(project, name)}>
              <code>
                <Line text={resourceName({ project, name }, data.projects.length > 1)} />
              </code>
            </Ref>
          ),
        },
        {
          head: "How",
          phone: "line",
          cell: ({ lease, last }) =>
            lease.holderId === null ? (
              <Status state="free" word={FREED_WORDS[last?.type ?? ""] ?? "free"} />
            ) : (
              <Status state="lapsed" word="ran out" why="nobody renewed it" />
            ),
        },
        {
          head: "Last holder",
          cell: ({ lease, last }) => {
            const name = lease.holderName ?? last?.data["holderName"];
            return typeof name === "string" ? <Name text={name} /> : "–";
          },
        },
        { head: "Token", kind: "num", tight: true, cell: ({ lease }) => <code>{lease.fence}</code> },
        { head: "Freed", kind: "num", tight: true, cell: ({ lease }) => <Ago at={lease.freedAt!} now={visit.now} /> },
      ]}
    />
  </Section>
);

const Held = ({ data, visit }: { data: LeasesData; visit: Visit }) => {
  const { held, next, lookedAt, asked, total } = data;
  const filtered = asked.words !== "" || asked.qualifiers.length > 0;
  const later = visit.url.searchParams.has("after");
  return (
    <Section title="Held" count={filtered ? held.length : total}>
      {held.map((one) => (
        <HeldRow held={one} visit={visit} several={data.projects.length > 1} />
      ))}
      {held.length === 0 && filtered && <p class="section__note">No held lease fits.</p>}
      {held.length === 0 && !filtered && (
        <Empty title="Nothing is held.">
          An agent takes a lease before it touches what others must not, and shows its token to whatever it guards.
        </Empty>
      )}
      {held.length === 0 && !filtered && <Command text="kxm lease acquire branch:main --ttl 10m" />}
      {held.length > 0 && (
        <Pager
          shown={
            <>
              {held.length} shown{lookedAt === undefined ? ", by name" : ` of the next ${lookedAt.toLocaleString("en")}`} ·{" "}
              <FileLinks list="leases" url={visit.url} />
            </>
          }
          newer={later ? here(visit.url, { after: undefined }) : undefined}
          older={next && here(visit.url, { after: writePlace(next) })}
        />
      )}
    </Section>
  );
};

const LeasesView = ({ data, visit }: { data: LeasesData; visit: Visit }) => {
  const waiting = data.held.reduce((sum, { line }) => sum + line, 0);
  return (
    <>
      <PageHead
        title="Leases"
        sub={[
          `${data.total > COUNT_EXACT_MAX ? "1,000+" : data.total} held`,
          waiting > 0 && `${waiting} ${waiting === 1 ? "waiter" : "waiters"}`,
          "only the hub’s clock counts",
        ]}
      />
      <FilterBar
        action="/leases"
        placeholder="part of a name, holder:"
        keep={keptBy(visit.url)}
        qualifiers={chipsOf(visit.url, data.asked)}
        value={data.asked.words}
      />
      <Held data={data} visit={visit} />
      {data.freed.length > 0 && <Freed data={data} visit={visit} />}
    </>
  );
};

const list = livePage<LeasesData>({
  path: "/leases",
  id: "leases",
  place: "leases",
  qualifiers: QUALIFIERS,
  topic: ["leases", "agents"],
  load,
  title: () => "Leases",
  view: (data, visit) => <LeasesView data={data} visit={visit} />,
});

const iso = (at: number) => new Date(at).toISOString();
const EXPORT: readonly ExportColumn<Lease>[] = [
  ["project", ({ project }) => project],
  ["name", ({ name }) => name],
  ["holderId", ({ holderId }) => holderId],
  ["holderName", ({ holderName }) => holderName],
  ["token", ({ fence }) => fence],
  ["acquiredAt", ({ acquiredAt }) => iso(acquiredAt)],
  ["renewedAt", ({ renewedAt }) => iso(renewedAt)],
  ["expiresAt", ({ expiresAt }) => iso(expiresAt)],
  ["ttlMs", ({ ttlMs }) => ttlMs],
];

const file = screen({
  method: "GET",
  path: "/leases/export/:format",
  role: "viewer",
  run: async (visit) => {
    const filter = { from: placeOf(visit.url), keep: keeps(askedOf(visit.url, QUALIFIERS)), limit: EXPORT_ROWS_MAX };
    const { rows } = await heldPage(visit.hub.engine.read, projectsOf(visit), filter);
    return download("leases", visit.params["format"]!, EXPORT, rows);
  },
});

export const screens: readonly Screen[] = [...list, file, forceRelease];
