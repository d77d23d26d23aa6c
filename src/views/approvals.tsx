// The inbox of everything that waits on a person, over all machines; what was decided lately and how far it got; deciding one or several.
/** @jsxImportSource #jsx */
import * as approvals from "../hub/approvals.ts";
import { presenceOf } from "../hub/runtimes.ts";
import type { Approval } from "../protocol/approvals.ts";
import { HubError } from "../protocol/errors.ts";
import { COUNT_EXACT_MAX, VIEW_ROWS_MAX } from "../protocol/limits.ts";
import { here } from "./address.ts";
import { ApprovalItem, type AskedApproval } from "./approval-item.tsx";
import { machineOf } from "./commands.tsx";
import { download, type ExportColumn } from "./export.ts";
import { EXPORT_ROWS_MAX, FileLinks } from "./file-links.tsx";
import { countOver, cursorOf, mergedPage, type Page, projectsOf, type Tallies } from "./listing.ts";
import { livePage } from "./live-page.tsx";
import { type Screen, screen, type Visit } from "./screen.ts";
import { Button } from "./ui/button.tsx";
import { Empty } from "./ui/feedback.tsx";
import { Tabs } from "./ui/filter.tsx";
import { Inbox } from "./ui/inbox.tsx";
import { PageHead, Section } from "./ui/page.tsx";
import { BulkBar, Pager } from "./ui/table.tsx";
import { Ago } from "./ui/time.tsx";

const BULK = "approvals-bulk";
/** Decisions stay in sight of the inbox this long after they were made, and until their machine has answered. */
const JUST_DECIDED_MS = 10 * 60_000;
const JUST_DECIDED_SHOWN = 10;

const VIEWS = { waiting: "Waiting", decided: "Decided", cancelled: "Not asked any more" } as const;
type View = keyof typeof VIEWS;
type Row = { at: number; id: string };
type ApprovalsData = {
  view: View;
  page: Page<Row>;
  items: AskedApproval[];
  underway: AskedApproval[];
  waiting: number;
};

/** An approval with what is known of its machine. */
export async function withMachine(visit: Visit, approval: Approval): Promise<AskedApproval> {
  const { hub, now } = visit;
  const row = await hub.engine.read.runtimes.find(approval.project, approval.runtimeId);
  return {
    approval,
    where: await machineOf(visit, approval.project, approval.runtimeId),
    answers: presenceOf(row, now, hub.settings.staleMs) === "online",
    lastSeenAt: row?.heartbeatAt,
  };
}

/** An approval of this id that the session may see, if there is one. */
export async function askedApproval(visit: Visit, id: string): Promise<AskedApproval | undefined> {
  const approval = await approvals.find(visit.hub.engine.read, id, visit.session.project).catch((error) => {
    if (error instanceof HubError && error.code === "approval_not_found") return undefined;
    throw error;
  });
  return approval && withMachine(visit, approval);
}

/** The approvals of these rows in order; one that retention took meanwhile is left out. */
async function asked(visit: Visit, rows: readonly Row[]): Promise<AskedApproval[]> {
  return (await Promise.all(rows.map(({ id }) => askedApproval(visit, id)))).filter((one) => one !== undefined);
}

/** The view of the address, and one page of it. */
async function pageOf(visit: Visit, limit: number): Promise<{ view: View; page: Page<Row> }> {
  const { hub, url } = visit;
  const { read } = hub.engine;
  const projects = projectsOf(visit);
  const chosen = url.searchParams.get("view") ?? "";
  const view: View = Object.hasOwn(VIEWS, chosen) ? (chosen as View) : "waiting";
  const after = cursorOf(url);
  const sources = projects.map((project) => async (limit: number): Promise<Row[]> => {
    if (view === "waiting") return (await read.approvals.pendingPage(project, limit, after)).map(({ id, requestedAt }) => ({ id, at: requestedAt }));
    if (view === "decided") return (await read.approvals.decided(project, limit, after)).map(({ id, decidedAt }) => ({ id, at: decidedAt! }));
    return (await read.approvals.page(project, "cancelled", limit, after)).map(({ id, requestedAt }) => ({ id, at: requestedAt }));
  });
  const newestFirst = (a: Row, b: Row) => a.at > b.at || (a.at === b.at && a.id > b.id);
  return { view, page: await mergedPage(sources, view === "waiting" ? (a, b) => newestFirst(b, a) : newestFirst, limit) };
}

/** For saved views. */
export const tally: Tallies = async (visit, limit) => {
  const { page } = await pageOf(visit, limit);
  return { count: page.rows.length, more: page.next !== undefined };
};

async function load(visit: Visit): Promise<ApprovalsData> {
  const { hub, now } = visit;
  const { read } = hub.engine;
  const projects = projectsOf(visit);
  const { view, page } = await pageOf(visit, VIEW_ROWS_MAX);
  const latest = view === "waiting" ? (await Promise.all(projects.map((project) => read.approvals.decided(project, JUST_DECIDED_SHOWN)))).flat() : [];
  const underway = await asked(
    visit,
    latest
      .sort((a, b) => b.decidedAt! - a.decidedAt!)
      .slice(0, JUST_DECIDED_SHOWN)
      .map(({ id, decidedAt }) => ({ id, at: decidedAt! })),
  );
  return {
    view,
    page,
    items: await asked(visit, page.rows),
    underway: underway.filter(
      ({ approval: { decision, decidedAt } }) =>
        (decision && !decision.command.finishedAt) || (decidedAt && now - Date.parse(decidedAt) < JUST_DECIDED_MS),
    ),
    waiting: await countOver(projects, (project) => read.approvals.countPending(project, COUNT_EXACT_MAX + 1)),
  };
}

const Nothing = ({ view }: { view: View }) =>
  view === "waiting" ? (
    <Empty title="Nothing waits on you.">
      A run asks here when its workflow has a step of kind approval, when it has used most of its budget, or when it makes no progress.
    </Empty>
  ) : (
    <p class="section__note">Nothing here.</p>
  );

const ApprovalsView = ({ data, visit }: { data: ApprovalsData; visit: Visit }) => {
  const { view, items, page, underway, waiting } = data;
  const { url, now, session } = visit;
  const acts = session.role !== "viewer" && view === "waiting" && items.length > 0;
  const later = url.searchParams.has("after");
  const machines = new Set(items.map(({ approval }) => approval.runtimeId)).size;
  const [oldest] = items;
  return (
    <>
      <PageHead
        title="Approvals"
        sub={[
          `${waiting > COUNT_EXACT_MAX ? "1,000+" : waiting} ${waiting === 1 ? "waits" : "wait"}`,
          view === "waiting" && oldest && !later && (
            <>
              oldest <Ago at={Date.parse(oldest.approval.requestedAt)} now={now} plain />
            </>
          ),
          view === "waiting" && machines > 0 && `${machines} ${machines === 1 ? "machine" : "machines"}`,
        ]}
      />
      <Tabs
        label="Views of approvals"
        tabs={Object.entries(VIEWS).map(([name, text]) => ({
          text,
          href: here(url, { view: name === "waiting" ? undefined : name, after: undefined }),
          current: name === view,
          ...(name === "waiting" && { count: waiting }),
        }))}
      />
      {acts && (
        <BulkBar id={BULK} action="/approvals/decisions" csrf={visit.csrf} note="each is bound to its own hash and gets its own outcome">
          <Button kind="primary" small type="submit" name="decision" value="approve">
            Approve
          </Button>
          <Button small type="submit" name="decision" value="reject">
            Reject…
          </Button>
        </BulkBar>
      )}
      <h2 class="visually-hidden">{VIEWS[view]}</h2>
      {items.length === 0 ? (
        <Nothing view={view} />
      ) : (
        <Inbox>
          {items.map((item, index) => (
            <ApprovalItem asked={item} visit={visit} about open={view === "waiting" && index === 0 && !later} {...(acts && { bulk: BULK })} />
          ))}
        </Inbox>
      )}
      {items.length > 0 && (
        <Pager
          shown={
            <>
              {items.length} shown, {view === "waiting" ? "longest wait first" : "newest first"} · <FileLinks list="approvals" url={url} />
            </>
          }
          newer={later ? here(url, { after: undefined }) : undefined}
          older={page.next && here(url, { after: `${page.next.at}.${page.next.id}` })}
        />
      )}
      {underway.length > 0 && (
        <Section title="Just decided" note="until the machine has answered, and ten minutes longer">
          <Inbox>
            {underway.map((item) => (
              <ApprovalItem asked={item} visit={visit} about left />
            ))}
          </Inbox>
        </Section>
      )}
    </>
  );
};

const EXPORT: readonly ExportColumn<Approval>[] = [
  ["id", ({ id }) => id],
  ["project", ({ project }) => project],
  ["projectId", ({ projectId }) => projectId],
  ["runId", ({ runId }) => runId],
  ["runtimeId", ({ runtimeId }) => runtimeId],
  ["step", ({ stepId }) => stepId],
  ["attempt", ({ attempt }) => attempt],
  ["title", ({ title }) => title],
  ["content", ({ content }) => content],
  ["contentHash", ({ contentHash }) => contentHash],
  ["status", ({ status }) => status],
  ["requestedAt", ({ requestedAt }) => requestedAt],
  ["decidedAt", ({ decidedAt }) => decidedAt],
  ["decidedBy", ({ decidedBy }) => decidedBy],
  ["reason", ({ reason }) => reason],
  ["command", ({ decision }) => decision?.command.state],
];

const file = screen({
  method: "GET",
  path: "/approvals/export/:format",
  role: "viewer",
  run: async (visit) => {
    const { page } = await pageOf(visit, EXPORT_ROWS_MAX);
    const found = await asked(visit, page.rows);
    return download(
      "approvals",
      visit.params["format"]!,
      EXPORT,
      found.map(({ approval }) => approval),
    );
  },
});

const list = livePage<ApprovalsData>({
  path: "/approvals",
  id: "approvals",
  place: "approvals",
  topic: ["approvals", "runtimes"],
  load,
  title: () => "Approvals",
  view: (data, visit) => <ApprovalsView data={data} visit={visit} />,
});

export const screens: readonly Screen[] = [...list, file];
