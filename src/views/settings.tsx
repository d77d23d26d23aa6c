// Settings: who is signed in and as what, the tokens, the sessions and the workflow definitions; what retention deletes; backups and checks of the store.
/** @jsxImportSource #jsx */
import type { Health } from "../db/engine.ts";
import type { SessionRow, TokenRow } from "../db/schema.ts";
import { type Forecast, forecast } from "../hub/forecast.ts";
import type { Hub } from "../hub/hub.ts";
import * as sessions from "../hub/sessions.ts";
import * as tokens from "../hub/tokens.ts";
import { definitionHash } from "../hub/workflows/definitions.ts";
import { HubError } from "../protocol/errors.ts";
import { VERSION } from "../protocol/version.ts";
import type { WorkflowDefinition } from "../protocol/workflows.ts";
import { act } from "./acts.tsx";
import { link } from "./links.ts";
import { livePage } from "./live-page.tsx";
import { type Screen, screen, type Visit } from "./screen.ts";
import { Retention } from "./settings-retention.tsx";
import { Store, type StoreData, storeData } from "./settings-store.tsx";
import { Tokens } from "./tokens.tsx";
import { Act, Button } from "./ui/button.tsx";
import { Command, Empty } from "./ui/feedback.tsx";
import { Tabs } from "./ui/filter.tsx";
import { Columns, Facts, PageHead, Section } from "./ui/page.tsx";
import { Id, Link, Sub, shortId } from "./ui/reference.tsx";
import { Status } from "./ui/status.tsx";
import { Table } from "./ui/table.tsx";
import { Ago, Left } from "./ui/time.tsx";
import { Line } from "./ui/untrusted.tsx";

const LIST_MAX = 1_000;
const SESSIONS_SHOWN = 200;

const TABS = { access: "Access", retention: "Retention", store: "Store" } as const;
type Tab = keyof typeof TABS;

type AccessData = { tokens: TokenRow[]; closed: string[]; sessions: SessionRow[]; definitions: WorkflowDefinition[] };
type SettingsData = { tab: Tab; health: Health; access?: AccessData; retention?: Forecast[]; store?: StoreData };

/** Sessions that still count, as this process saw them. */
async function liveSessions(hub: Hub, now: number): Promise<SessionRow[]> {
  const open = await hub.engine.read.sessions.open(now, LIST_MAX);
  return open
    .map((row) => ({ ...row, lastSeenAt: hub.seenSessions.lastSeen(row.id, row.lastSeenAt) }))
    .filter((row) => sessions.isLive(row, row.lastSeenAt, now));
}

/** What concerns all projects is for those who see all of them. */
const tabOf = ({ url, session }: Visit): Tab => {
  const asked = url.searchParams.get("tab") ?? "";
  return session.project === null && Object.hasOwn(TABS, asked) ? (asked as Tab) : "access";
};

async function load(visit: Visit): Promise<SettingsData> {
  const tab = tabOf(visit);
  const health = await visit.hub.engine.health();
  if (tab === "retention") return { tab, health, retention: await forecast(visit.hub, visit.now) };
  if (tab === "store") return { tab, health, store: await storeData(visit) };
  return { tab, health, access: await accessData(visit) };
}

/** Tokens and other people's sessions are for admins; everybody sees their own session. */
async function accessData({ hub, session, now }: Visit): Promise<AccessData> {
  const mine = ({ project }: { project: string | null }) => session.project === null || session.project === project;
  const admin = session.role === "admin";
  const live = await liveSessions(hub, now);
  const rows = admin ? (await hub.engine.read.tokens.list(LIST_MAX)).filter(mine) : [];
  const owners = [...new Set(rows.flatMap(({ scope, project }) => (scope === "project" && project !== null ? [project] : [])))];
  const closed = await Promise.all(owners.map(async (project) => ((await tokens.isClosed(hub, project)) ? [project] : [])));
  return {
    tokens: rows,
    closed: closed.flat(),
    sessions: live.filter((row) => row.id === session.id || (admin && mine(row))).slice(0, SESSIONS_SHOWN),
    definitions: [...hub.definitions.values()].filter(mine),
  };
}

const Sessions = ({ data, visit }: { data: AccessData; visit: Visit }) => (
  <Section title="Sessions" count={data.sessions.length} note="who is signed in here">
    <Table
      caption="Sessions"
      rows={data.sessions}
      id={({ id }) => `session-${id}`}
      columns={[
        {
          head: "Session",
          kind: "main",
          slim: true,
          cell: ({ id, tokenId }) => (
            <>
              <Id value={id} />
              {id === visit.session.id && <Sub>this browser</Sub>}
              {tokenId !== null && <Sub>with {shortId(tokenId)}</Sub>}
            </>
          ),
        },
        { head: "Role", cell: ({ role }) => role },
        { head: "Project", cell: ({ project }) => (project === null ? "all" : <Line text={project} />) },
        { head: "Last seen", kind: "tight", cell: ({ lastSeenAt }) => <Ago at={lastSeenAt} now={visit.now} /> },
        { head: "Ends in", kind: "tight", cell: ({ expiresAt }) => <Left until={expiresAt} now={visit.now} /> },
        {
          head: "",
          kind: "acts",
          cell: ({ id }) =>
            id !== visit.session.id && (
              <Act action="/settings/sessions/end" csrf={visit.csrf} fields={{ id }}>
                <Button small kind="warn" type="submit">
                  End
                </Button>
              </Act>
            ),
        },
      ]}
    />
  </Section>
);

const Definitions = ({ data: { definitions }, visit }: { data: AccessData; visit: Visit }) => (
  <Section
    title="Workflow definitions"
    count={definitions.length}
    more={
      visit.session.role === "admin" &&
      visit.session.project === null && (
        <Act action="/settings/definitions/reload" csrf={visit.csrf}>
          <Button small icon="retry" type="submit">
            Read the file again
          </Button>
        </Act>
      )
    }
  >
    {definitions.length === 0 ? (
      <>
        <Empty title="No definition is in force.">The hub reads them from its definitions’ file; a file with problems keeps the old set.</Empty>
        <Command text="kxm workflow --help" />
      </>
    ) : (
      <Table
        caption="Workflow definitions"
        rows={definitions}
        id={({ id }) => `definition-${id}`}
        columns={[
          {
            head: "Definition",
            kind: "main",
            cell: (one) => (
              <>
                <Line text={one.id} />
                <Sub>
                  <Id value={definitionHash(one)} />
                </Sub>
              </>
            ),
          },
          { head: "Project", cell: ({ project }) => <Line text={project} /> },
          { head: "Target", cell: ({ target }) => <Line text={target} /> },
          { head: "Stages", kind: "num", cell: ({ stages }) => stages.length },
        ]}
      />
    )}
  </Section>
);

const Access = ({ data, visit }: { data: AccessData; visit: Visit }) => (
  <>
    {visit.session.role === "admin" && <Tokens tokens={data.tokens} closed={data.closed} visit={visit} />}
    <Sessions data={data} visit={visit} />
    <Definitions data={data} visit={visit} />
  </>
);

const You = ({ visit: { session, now } }: { visit: Visit }) => (
  <Section title="You">
    <Facts
      rows={[
        ["Role", session.role],
        ["Project", session.project === null ? "all" : <Line text={session.project} />],
        ["Session", <Id value={session.id} />],
        ["With", session.tokenId === null ? "the admin’s link" : <Id value={session.tokenId} />],
        ["Since", <Ago at={session.createdAt} now={now} />],
        ["Ends in", <Left until={session.expiresAt} now={now} />],
      ]}
    />
  </Section>
);

const About = ({ health: { ok, queued }, visit: { hub } }: { health: Health; visit: Visit }) => (
  <Section title="About">
    <Facts
      rows={[
        ["Version", VERSION],
        ["Store", hub.engine.kind === "sqlite" ? "SQLite, a file of its own" : "PostgreSQL"],
        ["Made as", <Id value={hub.engine.generation} />],
        ["Writes", ok ? (queued > 0 ? `${queued.toLocaleString("en")} wait` : "get through") : "fail"],
        ["Reference", <Link href="/docs">of the API</Link>],
      ]}
    />
  </Section>
);

const Healthy = ({ health: { ok, message } }: { health: Health }) =>
  ok ? <Status state="active" word="healthy" why="writes are durable" /> : <Status state="failed" word="writes fail" why={message} />;

const SettingsView = ({ data, visit }: { data: SettingsData; visit: Visit }) => {
  const { session } = visit;
  const { tab, health, access, retention, store } = data;
  return (
    <>
      <PageHead title="Settings" sub={[`KXM ${VERSION}`, `signed in as ${session.role}`, <Healthy health={health} />]} />
      {session.project === null && (
        <Tabs
          label="Settings"
          tabs={(Object.keys(TABS) as Tab[]).map((name) => ({
            text: TABS[name],
            href: link("/settings", { project: visit.project, tab: name === "access" ? undefined : name }),
            current: name === tab,
          }))}
        />
      )}
      <Columns
        main={
          <>
            {access && <Access data={access} visit={visit} />}
            {retention && <Retention forecasts={retention} visit={visit} />}
            {store && <Store data={store} visit={visit} />}
          </>
        }
        aside={
          <>
            <You visit={visit} />
            <About health={health} visit={visit} />
          </>
        }
      />
    </>
  );
};

const page = livePage<SettingsData>({
  path: "/settings",
  id: "settings",
  place: "settings",
  topic: "settings",
  load,
  title: () => "Settings",
  view: (data, visit) => <SettingsView data={data} visit={visit} />,
});

const endSession = screen({
  method: "POST",
  path: "/settings/sessions/end",
  role: "admin",
  run: async (visit) => {
    const row = await visit.hub.engine.read.sessions.find(visit.form.get("id") ?? "");
    if (!row || (visit.session.project !== null && visit.session.project !== row.project))
      throw new HubError("protocol_error", "there is no such session");
    return act(visit, link("/settings", { project: visit.project }), async () => {
      await visit.hub.engine.write(row.project ?? "", (tx) => sessions.end(tx, visit.by, row.id));
      return { tone: "ok", text: `Session ${shortId(row.id)} has ended.` };
    });
  },
});

const reload = screen({
  method: "POST",
  path: "/settings/definitions/reload",
  role: "admin",
  run: (visit) =>
    act(visit, link("/settings", { project: visit.project }), async () => {
      // The file holds the definitions of every project.
      if (visit.session.project !== null) throw new HubError("role_forbidden", "only an admin of all projects reads the definitions again");
      const count = visit.hub.reloadDefinitions();
      return { tone: "ok", text: count === 1 ? "One definition is in force." : `${count} definitions are in force.` };
    }),
});

export const screens: readonly Screen[] = [...page, endSession, reload];
