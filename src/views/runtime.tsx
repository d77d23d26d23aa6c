// The page of one Runtime: its projects and their outboxes, what was refused and what to do about it, its harnesses, commands and runs; holding new work.
/** @jsxImportSource #jsx */
import * as commands from "../hub/commands.ts";
import * as runList from "../hub/run-list.ts";
import { ERRORS, HubError } from "../protocol/errors.ts";
import { act, fieldOf, optionalFieldOf } from "./acts.tsx";
import { domId } from "./dom-id.ts";
import { link, runtimeLink } from "./links.ts";
import { livePage } from "./live-page.tsx";
import { Ask, AskedHere, type Question } from "./question.tsx";
import { CommandItem } from "./receipts.tsx";
import { askOf, holdQuestion, OF_PROJECT, payloadOf, pushAgainQuestion, sentWords } from "./run-acts.tsx";
import { RunsTable } from "./runs.tsx";
import { machineName, outboxState, type RuntimeEntry, RuntimePresence, refusedIn, Slots } from "./runtime-parts.tsx";
import { runtimeEntry } from "./runtimes.tsx";
import { type Screen, screen, type Visit } from "./screen.ts";
import { Command } from "./ui/feedback.tsx";
import { Inbox } from "./ui/inbox.tsx";
import { Columns, Facts, PageHead, Section, SectionNote } from "./ui/page.tsx";
import { Id, Link, Quiet, Sub } from "./ui/reference.tsx";
import { Status, stateOf } from "./ui/status.tsx";
import { Table } from "./ui/table.tsx";
import { Ago, Left } from "./ui/time.tsx";
import { Line } from "./ui/untrusted.tsx";

const COMMANDS_SHOWN = 20;
const RUNS_SHOWN = 10;

type RuntimeData = RuntimeEntry & { runs: runList.ListedRun[] };

async function load(visit: Visit): Promise<RuntimeData> {
  const { params, projects, hub } = visit;
  const runtimeId = params["runtimeId"]!;
  const project = visit.project ?? (projects.length === 1 ? projects[0] : undefined);
  if (project === undefined) throw new HubError("runtime_not_found", "the address does not say of which project the Runtime is");
  visit.requireProject(project);
  const entry = await runtimeEntry(visit, project, runtimeId, COMMANDS_SHOWN);
  const { runs } = await runList.list(hub, [project], { view: "all", runtimeId }, { after: undefined, limit: RUNS_SHOWN });
  return { ...entry, runs };
}

/** Holding and taking new work, one question per project of the machine. */
const questionsOf = ({ runtime: { project, runtimeId, report } }: RuntimeData, visit: Visit): ReadonlyMap<string, Question> =>
  new Map(
    visit.session.role === "viewer"
      ? []
      : (report?.outbox ?? []).map(({ projectId, paused }) => [
          projectId,
          holdQuestion(
            {
              action: `/runtimes/${encodeURIComponent(runtimeId)}/commands`,
              projectId,
              paused: paused === true,
              name: `hold-${projectId}`,
              project,
            },
            visit,
          ),
        ]),
  );

const Projects = ({ data, visit }: { data: RuntimeData; visit: Visit }) => {
  const { report, presence } = data.runtime;
  const questions = questionsOf(data, visit);
  const silent = presence !== "online";
  return (
    <Section title="Projects" count={report?.outbox?.length ?? 0} note={silent ? "as of its last report" : undefined}>
      {(report?.outbox ?? []).length === 0 && <SectionNote>It has told of no project.</SectionNote>}
      <Table
        caption="Projects of this Runtime and their outboxes"
        rows={report?.outbox ?? []}
        id={({ projectId }) => domId("outbox", projectId)}
        columns={[
          {
            head: "Project",
            kind: "main",
            slim: true,
            cell: ({ projectId, name }) => (
              <>
                {name ? <Line text={name} max={60} /> : <Id value={projectId} />}
                <Sub>
                  <Id value={projectId} />
                </Sub>
              </>
            ),
          },
          {
            head: "Sync",
            phone: "line",
            cell: (outbox) => (
              <Status
                {...outboxState(outbox)}
                stale={silent}
                stack={!!outbox.lastError}
                why={outbox.lastError && <Line text={outbox.lastError} max={160} />}
              />
            ),
          },
          { head: "Pending", kind: "num", tight: true, cell: ({ pending }) => pending.toLocaleString("en") },
          { head: "Acked", kind: "num", tight: true, cell: ({ acked }) => acked.toLocaleString("en") },
          { head: "Refused", kind: "num", tight: true, cell: (outbox) => refusedIn(outbox).toLocaleString("en") },
          {
            head: "Tries again",
            kind: "num",
            tight: true,
            cell: ({ nextAttemptAt }) => (nextAttemptAt ? <Left until={Date.parse(nextAttemptAt)} now={visit.now} /> : "–"),
          },
          {
            head: "New work",
            phone: "line",
            cell: ({ paused }) => <Status state={paused ? "paused" : "active"} word={paused ? "held" : "taken"} />,
          },
          {
            head: "",
            kind: "acts",
            cell: ({ projectId }) => {
              const question = questions.get(projectId);
              return question && <Ask question={question} visit={visit} />;
            },
          },
        ]}
      />
    </Section>
  );
};

/** What to do about rows of this code; a code that this hub does not know says so. */
function hintFor(code: string): string {
  if (Object.hasOwn(ERRORS, code)) return ERRORS[code as keyof typeof ERRORS].hint;
  if (code === "sync_row_too_large") return "The event alone is larger than a request may be; a newer Runtime may cut it shorter.";
  return "This hub does not know this code.";
}

type RefusedRows = { projectId: string; project: string; code: string; count: number; id: string; question: Question | undefined };

/** What the hub refused, by project and code, each with the question whether to push it again. */
function refusedRows({ runtime: { project, runtimeId, report } }: RuntimeData, visit: Visit): RefusedRows[] {
  const action = `/runtimes/${encodeURIComponent(runtimeId)}/commands`;
  return (report?.outbox ?? []).flatMap(({ projectId, name: known, refused }) =>
    Object.entries(refused).map(([code, count]) => {
      const id = domId("refused", projectId, code);
      const question =
        visit.session.role === "viewer" ? undefined : pushAgainQuestion({ action, projectId, project, code, rows: count, name: `push-${id}` }, visit);
      return { projectId, project: known ?? projectId, code, count, id, question };
    }),
  );
}

const Refused = ({ rows, visit }: { rows: readonly RefusedRows[]; visit: Visit }) => {
  if (rows.length === 0) return null;
  return (
    <Section
      title="Refused, by code"
      count={rows.reduce((sum, { count }) => sum + count, 0)}
      note="parked on the machine, in order, until somebody looks"
    >
      <Table
        caption="What the hub refused, by code"
        rows={rows}
        id={({ id }) => id}
        columns={[
          { head: "Code", kind: "main", slim: true, cell: ({ code }) => <code>{<Line text={code} max={64} />}</code> },
          { head: "What to do", phone: "line", cell: ({ code }) => hintFor(code) },
          { head: "Project", cell: ({ project }) => <Line text={project} max={60} /> },
          { head: "Rows", kind: "num", tight: true, cell: ({ count }) => count.toLocaleString("en") },
          { head: "", kind: "acts", cell: ({ question }) => question && <Ask question={question} visit={visit} /> },
        ]}
      />
      <SectionNote>Push them again once the cause is fixed. The same from a terminal on that machine:</SectionNote>
      <Command text="kxm runtime sync-retry" />
    </Section>
  );
};

const Harnesses = ({ data: { runtime } }: { data: RuntimeData }) => {
  const harnesses = runtime.report?.harnesses ?? [];
  if (harnesses.length === 0) return null;
  const states: Record<string, "online" | "offline" | "needs you" | "unknown"> = { ready: "online", missing: "offline", signed_out: "needs you" };
  return (
    <Section title="Harnesses" count={harnesses.length}>
      <Facts
        rows={harnesses.map(({ id, version, state }) => [
          <Line text={id} max={32} />,
          <>
            <Status state={states[state] ?? "unknown"} word={stateOf(state) === "unknown" ? state.replaceAll("_", " ") : stateOf(state)} />{" "}
            {version && (
              <Quiet>
                <Line text={version} max={40} />
              </Quiet>
            )}
          </>,
        ])}
      />
    </Section>
  );
};

const InFlight = ({ data: { runtime, inFlight }, now }: { data: RuntimeData; now: number }) => (
  <Section title="Commands in flight" count={runtime.commandsInFlight}>
    {inFlight.length === 0 ? (
      <SectionNote>Nothing waits for this machine.</SectionNote>
    ) : (
      <Inbox>
        {inFlight.map((command) => (
          <CommandItem command={command} where={machineName(runtime)} now={now} about />
        ))}
      </Inbox>
    )}
  </Section>
);

const RuntimeView = ({ data, visit }: { data: RuntimeData; visit: Visit }) => {
  const { runtime, runs } = data;
  const { now, hub } = visit;
  const { project, runtimeId, version, registeredAt, report } = runtime;
  const refused = refusedRows(data, visit);
  return (
    <>
      <PageHead
        title={machineName(runtime)}
        crumbs={[{ text: "Runtimes", href: link("/runtimes", { project: visit.project }) }, { text: <Line text={project} max={60} /> }]}
        sub={[
          <RuntimePresence runtime={runtime} bound={hub.settings.staleMs} now={now} />,
          version && <Line text={`version ${version}`} max={40} />,
          report?.startedAt && (
            <>
              started <Ago at={Date.parse(report.startedAt)} now={now} plain />
            </>
          ),
        ]}
      />
      <AskedHere questions={[...questionsOf(data, visit).values(), ...refused.flatMap(({ question }) => question ?? [])]} visit={visit} />
      <Projects data={data} visit={visit} />
      <Refused rows={refused} visit={visit} />
      <Columns
        below
        main={
          <>
            <InFlight data={data} now={now} />
            <Section
              title="Runs"
              count={runtime.runTotal}
              more={
                runtime.runTotal > runs.length && <Link href={link("/runs", { project, view: "all", q: `runtime:${runtimeId}` })}>All of them</Link>
              }
            >
              {runs.length === 0 ? (
                <SectionNote>None has reached the hub.</SectionNote>
              ) : (
                <RunsTable runs={runs} visit={visit} several={false} machine={false} />
              )}
            </Section>
          </>
        }
        aside={
          <>
            <Section title="Facts">
              <Facts
                rows={[
                  ["Runtime", <Id value={runtimeId} whole />],
                  ["Project", <Line text={project} />],
                  ["First seen", registeredAt ? <Ago at={Date.parse(registeredAt)} now={now} plain /> : "never"],
                  ["Slots", <Slots runtime={runtime} />],
                ]}
              />
            </Section>
            <Harnesses data={data} />
            <Section title="Same from a terminal" note="on that machine" padded>
              <Command text="kxm runtime status" />
              <Command text="kxm project pause --reason 'why'" />
            </Section>
          </>
        }
      />
    </>
  );
};

const page = livePage<RuntimeData>({
  path: "/runtimes/:runtimeId",
  id: "runtime",
  place: "runtimes",
  topic: ["runtimes", "runs"],
  load,
  title: ({ runtime }) => machineName(runtime),
  view: (data, visit) => <RuntimeView data={data} visit={visit} />,
});

const send = screen({
  method: "POST",
  path: "/runtimes/:runtimeId/commands",
  role: "operator",
  run: async (visit) => {
    const { hub, form, params } = visit;
    const runtimeId = params["runtimeId"]!;
    const project = form.get("project") ?? "";
    visit.requireProject(project);
    return act(visit, runtimeLink(project, runtimeId), async () => {
      const kind = askOf(form);
      if (!OF_PROJECT.includes(kind)) throw new HubError("protocol_error", `${kind} is asked of a run`);
      const idempotencyKey = optionalFieldOf(form, "key", 64);
      const projectId = fieldOf(form, "projectId", 144);
      await commands.send(hub, visit.by, { project, kind, runtimeId, projectId, payload: payloadOf(kind, form), idempotencyKey });
      return { tone: "ok", text: sentWords(kind), hint: "Below it says when the machine has received and applied it." };
    });
  },
});

export const screens: readonly Screen[] = [...page, send];
