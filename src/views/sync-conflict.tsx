// One refused event with what is stored in its place, line by line, and one alert in full; and saying what was found.
/** @jsxImportSource #jsx */
import type { AlertRow, SyncEventRow, SyncRunRow } from "../db/schema.ts";
import * as alerts from "../hub/alerts.ts";
import * as conflicts from "../hub/conflicts.ts";
import type { SyncConflictDetail } from "../protocol/alerts.ts";
import { REASON_MAX } from "../protocol/limits.ts";
import type { SyncEvent } from "../protocol/sync-event.ts";
import { act, fieldOf } from "./acts.tsx";
import { shortHash } from "./approval-item.tsx";
import { machineOf } from "./commands.tsx";
import { download, type ExportColumn } from "./export.ts";
import { alertLink, conflictLink, link, runLink, runtimeLink } from "./links.ts";
import { livePage } from "./live-page.tsx";
import { Ask, AskedHere, type Question } from "./question.tsx";
import { type Screen, screen, type Visit } from "./screen.ts";
import { CONFLICT_TITLES, Looked } from "./sync.tsx";
import { Button } from "./ui/button.tsx";
import { PayloadDiff } from "./ui/diff.tsx";
import { TextField } from "./ui/form.tsx";
import { diffLines } from "./ui/line-diff.ts";
import { Columns, Facts, PageHead, Section, SectionNote } from "./ui/page.tsx";
import { Id, Ref, shortId } from "./ui/reference.tsx";
import { Status } from "./ui/status.tsx";
import { Table } from "./ui/table.tsx";
import { Ago, absolute, Clock } from "./ui/time.tsx";
import { Line, Untrusted } from "./ui/untrusted.tsx";

const AROUND = 3;

type ConflictData = {
  kind: "conflict";
  conflict: SyncConflictDetail & { project: string };
  /** Who pushed what was refused, and whose run it is, in words. */
  pushedBy: string;
  home: string | undefined;
  run: SyncRunRow | undefined;
  stored: SyncEventRow | undefined;
  around: SyncEventRow[];
};
type AlertData = { kind: "alert"; alert: AlertRow };
type Data = ConflictData | AlertData;

async function load(visit: Visit): Promise<Data> {
  const { hub, params, session } = visit;
  const { read } = hub.engine;
  const id = params["id"]!;
  if (id.startsWith("alt_")) return { kind: "alert", alert: await alerts.find(read, id, session.project) };
  const conflict = await conflicts.find(read, id, session.project);
  const { project, projectId, runId, sequence, runtimeId } = conflict;
  const found = await read.sync.findRun(projectId, runId);
  const run = found?.project === project ? found : undefined; // another hub project's run is not shown here
  return {
    kind: "conflict",
    conflict,
    pushedBy: await machineOf(visit, project, runtimeId),
    home: run && (await machineOf(visit, project, run.homeRuntimeId)),
    run,
    stored: conflict.existing && (await read.sync.findEvent(projectId, runId, sequence)),
    around: run ? await read.sync.eventsAfter(projectId, runId, Math.max(0, sequence - AROUND - 1), 2 * AROUND + 1) : [],
  };
}

/** Saying what was found. The same for conflicts and alerts. */
function acknowledgeQuestion(id: string, isAlert: boolean): Question {
  return {
    name: "acknowledge",
    button: "Acknowledge…",
    kind: "primary",
    title: `Acknowledge ${shortId(id)}?`,
    action: `${isAlert ? alertLink(id) : conflictLink(id)}/acknowledgement`,
    confirm: "Acknowledge",
    cancel: "Leave it open",
    confirmKind: "primary",
    fields: (field) => (
      <>
        <p>
          {isAlert
            ? "It stops asking for attention. The same cause is counted on, and some causes open it again."
            : "It stops asking for attention. Both payloads stay here; what is stored stays stored. Its alert is acknowledged with it."}
        </p>
        <TextField id={`${field}-reason`} name="reason" autofocus label="What you found" hint="kept in the audit" required maxlength={REASON_MAX} />
      </>
    ),
  };
}

const pretty = (value: unknown): string => JSON.stringify(value, undefined, 2);

/** What happened, in whole sentences, and what it usually means. */
const Story = ({ data: { conflict, pushedBy, home, stored } }: { data: ConflictData }) => {
  const first = (
    <>
      At <Clock at={Date.parse(conflict.firstAt)} /> <strong>{pushedBy}</strong> sent
    </>
  );
  if (conflict.code === "sync_sequence_reused" && stored)
    return (
      <p>
        The hub stored this event from <strong>{home}</strong> at <Clock at={stored.receivedAt} />. {first} other bytes for the same place. The stored
        one stands; the other was refused and kept here. A Runtime never writes a place twice, so this means a copied state folder, a restored backup,
        or somebody pretending.
      </p>
    );
  if (conflict.code === "sync_home_runtime_mismatch")
    return (
      <p>
        {first} an event of a run that lives on <strong>{home ?? "another Runtime"}</strong>. It was refused and kept here. A run belongs to the first
        Runtime that wrote it, so this means a copied state folder or somebody pretending.
      </p>
    );
  return (
    <p>
      {first} an event of a project that another project of this hub owns. It was refused and kept here; nothing of the other project is shown. It
      means that a machine reports to the wrong project, or that a token leaked.
    </p>
  );
};

const Payloads = ({ data: { conflict, pushedBy, home } }: { data: ConflictData }) => {
  const { existing, refused, existingHash, hash } = conflict;
  if (!existing)
    return (
      <Section title="The refused payload" note="nothing of this project is stored in its place" padded>
        <Untrusted by={pushedBy} note="sync event" text={pretty(refused)} />
      </Section>
    );
  const rows = diffLines(pretty(existing), pretty(refused));
  const changed = rows.filter(({ kind }) => kind === "changed").length;
  return (
    <Section title="Both payloads" note={`${changed} ${changed === 1 ? "line differs" : "lines differ"}`} padded>
      <PayloadDiff
        heads={[
          <>
            <strong>Stored</strong> · {home} · {existingHash ? shortHash(existingHash) : ""}
          </>,
          <>
            <strong>Refused</strong> · {pushedBy} · {shortHash(hash)}
          </>,
        ]}
        rows={rows}
      />
    </Section>
  );
};

const Around = ({ data: { conflict, around } }: { data: ConflictData }) => {
  if (around.length === 0) return null;
  return (
    <Section title="Around it" note="what is stored of this run">
      <Table
        caption="Stored events around the refused one"
        rows={around}
        id={({ sequence }) => `around-${sequence}`}
        columns={[
          { head: "Sequence", kind: "main", slim: true, cell: ({ sequence }) => String(sequence) },
          {
            head: "Verdict",
            phone: "line",
            cell: ({ sequence }) =>
              sequence === conflict.sequence ? <Status state="conflict" why="other bytes came for it" /> : <Status state="synced" />,
          },
          { head: "Type", phone: "line", cell: ({ record }) => <code>{(JSON.parse(record) as SyncEvent).eventType}</code> },
          { head: "Received", kind: "num", tight: true, cell: ({ receivedAt }) => <Clock at={receivedAt} /> },
        ]}
      />
    </Section>
  );
};

const ConflictFacts = ({ data: { conflict, pushedBy }, now }: { data: ConflictData; now: number }) => {
  const { id, project, runId, runtimeId, code, hash, existingHash, firstAt, lastAt, count } = conflict;
  return (
    <Section title="Facts">
      <Facts
        rows={[
          ["Conflict", <Id value={id} whole />],
          ["Code", <code>{code}</code>],
          ["Project", <Line text={project} />],
          ["Run", <Id value={runId} whole />],
          ["Pushed by", <Ref href={runtimeLink(project, runtimeId)}>{pushedBy}</Ref>],
          ["Stored hash", existingHash ? shortHash(existingHash) : "–"],
          ["Refused hash", shortHash(hash)],
          ["First", absolute(Date.parse(firstAt))],
          ["Last", <Ago at={Date.parse(lastAt)} now={now} plain />],
          ["Times", count.toLocaleString("en")],
        ]}
      />
    </Section>
  );
};

const ConflictView = ({ data, visit }: { data: ConflictData; visit: Visit }) => {
  const { conflict, run } = data;
  const { id, projectId, runId, sequence, code, count, acknowledgedAt, acknowledgedBy, reason } = conflict;
  const { now, session } = visit;
  const question = session.role !== "viewer" && acknowledgedAt === undefined ? acknowledgeQuestion(id, false) : undefined;
  const looked = {
    acknowledgedAt: acknowledgedAt ? Date.parse(acknowledgedAt) : null,
    acknowledgedBy: acknowledgedBy ?? null,
    reason: reason ?? null,
    count,
  };
  return (
    <>
      <PageHead
        title={CONFLICT_TITLES[code] ?? code}
        crumbs={[
          { text: "Sync", href: link("/sync", { project: visit.project }) },
          { text: "Conflicts" },
          { text: `${shortId(runId)}, ${sequence}` },
        ]}
        sub={[
          <Looked row={looked} now={now} />,
          run && (
            <>
              run{" "}
              <Ref href={runLink(projectId, runId, { project: visit.project, event: sequence })}>
                <Line text={run.displayTitle ?? runId} max={80} />
              </Ref>
            </>
          ),
          `sequence ${sequence}`,
        ]}
        actions={
          <>
            <Button icon="down" href={`${conflictLink(id)}/export/json`}>
              Export both
            </Button>
            {question && <Ask question={question} visit={visit} />}
          </>
        }
      />
      <AskedHere questions={question ? [question] : []} visit={visit} />
      <Story data={data} />
      <Payloads data={data} />
      <Columns below main={<Around data={data} />} aside={<ConflictFacts data={data} now={now} />} />
    </>
  );
};

/** Where an alert points, if that is a page of ours. */
function subjectLink({ subject, data, project }: AlertRow): string | undefined {
  if (subject === null) return undefined;
  if (subject.startsWith("cfl_")) return conflictLink(subject);
  if (subject.startsWith("rtm_")) return runtimeLink(project, subject);
  const projectId = data["projectId"];
  return subject.startsWith("run_") && typeof projectId === "string" ? runLink(projectId, subject) : undefined;
}

const AlertView = ({ alert, visit }: { alert: AlertRow; visit: Visit }) => {
  const { id, kind, severity, summary, subject, data, raisedAt, lastAt, count, project, acknowledgedAt } = alert;
  const question = visit.session.role !== "viewer" && acknowledgedAt === null ? acknowledgeQuestion(id, true) : undefined;
  const to = subjectLink(alert);
  return (
    <>
      <PageHead
        title={<Line text={`${summary.charAt(0).toUpperCase()}${summary.slice(1)}`} />}
        crumbs={[
          { text: "Sync", href: link("/sync", { project: visit.project }) },
          { text: "Alerts", href: link("/sync", { project: visit.project, tab: "alerts" }) },
          { text: shortId(id) },
        ]}
        sub={[<Looked row={alert} now={visit.now} />, severity, <code>{kind}</code>]}
        actions={question && <Ask question={question} visit={visit} />}
      />
      <AskedHere questions={question ? [question] : []} visit={visit} />
      <Columns
        main={
          <Section title="What the hub noted" padded>
            {Object.keys(data).length === 0 ? (
              <SectionNote>Nothing more.</SectionNote>
            ) : (
              <Untrusted by="the one who caused it" note="as noted by the hub" text={pretty(data)} />
            )}
          </Section>
        }
        aside={
          <Section title="Facts">
            <Facts
              rows={[
                ["Alert", <Id value={id} whole />],
                ["Project", <Line text={project || "the hub itself"} />],
                ["About", subject === null ? "–" : to ? <Ref href={to}>{shortId(subject)}</Ref> : <Line text={subject} max={80} />],
                ["First", absolute(raisedAt)],
                ["Last", <Ago at={lastAt} now={visit.now} plain />],
                ["Times", count.toLocaleString("en")],
              ]}
            />
          </Section>
        }
      />
    </>
  );
};

const page = livePage<Data>({
  path: "/sync/:id",
  id: "sync-item",
  place: "sync",
  topic: ["sync", "alerts"],
  load,
  title: (data) => (data.kind === "alert" ? `Alert ${shortId(data.alert.id)}` : `Conflict ${shortId(data.conflict.id)}`),
  view: (data, visit) => (data.kind === "alert" ? <AlertView alert={data.alert} visit={visit} /> : <ConflictView data={data} visit={visit} />),
});

const acknowledge = screen({
  method: "POST",
  path: "/sync/:id/acknowledgement",
  role: "operator",
  run: async (visit) => {
    const { hub, params, session, form, by } = visit;
    const { read, write } = hub.engine;
    const id = params["id"]!;
    if (id.startsWith("alt_")) {
      const { project } = await alerts.find(read, id, session.project);
      return act(visit, alertLink(id), async () => {
        const reason = fieldOf(form, "reason", REASON_MAX);
        await write(project, (tx) => alerts.acknowledge(tx, by, id, reason));
        return { tone: "ok", text: `Acknowledged ${shortId(id)}.` };
      });
    }
    const { project } = await conflicts.find(read, id, session.project);
    return act(visit, conflictLink(id), async () => {
      const reason = fieldOf(form, "reason", REASON_MAX);
      await write(project, async (tx) => {
        const noted = await conflicts.acknowledge(tx, by, id, reason);
        const alert = await conflicts.alertOf(tx, noted);
        if (alert) await alerts.acknowledge(tx, by, alert.id, reason);
      });
      return { tone: "ok", text: `Acknowledged ${shortId(id)}.`, hint: "Its alert as well." };
    });
  },
});

/** Both payloads as they were sent, for somebody who looks into it elsewhere. */
const file = screen({
  method: "GET",
  path: "/sync/:id/export/:format",
  role: "viewer",
  run: async (visit) => {
    const conflict = await conflicts.find(visit.hub.engine.read, visit.params["id"]!, visit.session.project);
    return download("conflict", visit.params["format"]!, EXPORT, [conflict]);
  },
});
const EXPORT: readonly ExportColumn<ConflictData["conflict"]>[] = [
  ["id", ({ id }) => id],
  ["project", ({ project }) => project],
  ["code", ({ code }) => code],
  ["projectId", ({ projectId }) => projectId],
  ["runId", ({ runId }) => runId],
  ["sequence", ({ sequence }) => sequence],
  ["runtimeId", ({ runtimeId }) => runtimeId],
  ["firstAt", ({ firstAt }) => firstAt],
  ["lastAt", ({ lastAt }) => lastAt],
  ["count", ({ count }) => count],
  ["storedHash", ({ existingHash }) => existingHash],
  ["refusedHash", ({ hash }) => hash],
  ["stored", ({ existing }) => existing && JSON.stringify(existing)],
  ["refused", ({ refused }) => JSON.stringify(refused)],
];

export const screens: readonly Screen[] = [...page, file, acknowledge];
