// Settings: who is signed in and as what, the tokens, the sessions, and the workflow definitions in force.
/** @jsxImportSource #jsx */
import type { SessionRow, TokenRow } from "../db/schema.ts";
import type { Hub } from "../hub/hub.ts";
import * as sessions from "../hub/sessions.ts";
import { definitionHash } from "../hub/workflows/definitions.ts";
import { HubError } from "../protocol/errors.ts";
import { VERSION } from "../protocol/version.ts";
import type { WorkflowDefinition } from "../protocol/workflows.ts";
import { act } from "./acts.tsx";
import { link } from "./links.ts";
import { livePage } from "./live-page.tsx";
import { type Screen, screen, type Visit } from "./screen.ts";
import { Tokens } from "./tokens.tsx";
import { Act, Button } from "./ui/button.tsx";
import { Command, Empty } from "./ui/feedback.tsx";
import { Columns, Facts, PageHead, Section } from "./ui/page.tsx";
import { Id, Sub, shortId } from "./ui/reference.tsx";
import { Table } from "./ui/table.tsx";
import { Ago, Left } from "./ui/time.tsx";
import { Line } from "./ui/untrusted.tsx";

const LIST_MAX = 1_000;
const SESSIONS_SHOWN = 200;

type SettingsData = { tokens: TokenRow[]; sessions: SessionRow[]; definitions: WorkflowDefinition[] };

/** Sessions that still count, as this process saw them. */
async function liveSessions(hub: Hub, now: number): Promise<SessionRow[]> {
  const open = await hub.engine.read.sessions.open(now, LIST_MAX);
  return open
    .map((row) => ({ ...row, lastSeenAt: hub.seenSessions.lastSeen(row.id, row.lastSeenAt) }))
    .filter((row) => sessions.isLive(row, row.lastSeenAt, now));
}

/** Tokens and other people's sessions are for admins; everybody sees their own session. */
async function load({ hub, session, now }: Visit): Promise<SettingsData> {
  const mine = ({ project }: { project: string | null }) => session.project === null || session.project === project;
  const admin = session.role === "admin";
  const live = await liveSessions(hub, now);
  return {
    tokens: admin ? (await hub.engine.read.tokens.list(LIST_MAX)).filter(mine) : [],
    sessions: live.filter((row) => row.id === session.id || (admin && mine(row))).slice(0, SESSIONS_SHOWN),
    definitions: [...hub.definitions.values()].filter(mine),
  };
}

const Sessions = ({ data, visit }: { data: SettingsData; visit: Visit }) => (
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
              {id === visit.session.id && " this browser"}
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

const Definitions = ({ data: { definitions }, visit }: { data: SettingsData; visit: Visit }) => (
  <Section
    title="Workflow definitions"
    count={definitions.length}
    more={
      visit.session.role === "admin" && (
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

const SettingsView = ({ data, visit }: { data: SettingsData; visit: Visit }) => {
  const { session, now, hub } = visit;
  return (
    <>
      <PageHead title="Settings" sub={[`KXM ${VERSION}`, `signed in as ${session.role}`]} />
      <Columns
        main={
          <>
            {session.role === "admin" && <Tokens tokens={data.tokens} visit={visit} />}
            <Sessions data={data} visit={visit} />
            <Definitions data={data} visit={visit} />
          </>
        }
        aside={
          <>
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
            <Section title="About">
              <Facts
                rows={[
                  ["Version", VERSION],
                  ["Store", <Id value={hub.engine.generation} />],
                ]}
              />
            </Section>
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
      const count = visit.hub.reloadDefinitions();
      return { tone: "ok", text: count === 1 ? "One definition is in force." : `${count} definitions are in force.` };
    }),
});

export const screens: readonly Screen[] = [...page, endSession, reload];
