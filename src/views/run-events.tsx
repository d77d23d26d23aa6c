// The events of a run as rows of evidence: the newest page, windowed, whatever their number; and one of them in full.
/** @jsxImportSource #jsx */
import type { SyncEventRow } from "../db/schema.ts";
import * as runs from "../hub/runs.ts";
import { VIEW_ROWS_MAX } from "../protocol/limits.ts";
import { NO_CURRENCY } from "../protocol/runs.ts";
import type { SyncEvent } from "../protocol/sync-event.ts";
import { here, pagePath, withQuery } from "./address.ts";
import { download, type ExportColumn } from "./export.ts";
import { EXPORT_ROWS_MAX } from "./file-links.tsx";
import type { Child } from "./jsx/jsx-runtime.ts";
import { amount, tokens } from "./money.ts";
import { type Screen, screen, type Visit } from "./screen.ts";
import { EventList, type EventRow } from "./ui/feed.tsx";
import { Tabs } from "./ui/filter.tsx";
import { Facts, Section } from "./ui/page.tsx";
import { Chip, Id, Link, shortId } from "./ui/reference.tsx";
import { Badge } from "./ui/status.tsx";
import { Pager } from "./ui/table.tsx";
import { absolute, took, words } from "./ui/time.tsx";
import { Line, Untrusted } from "./ui/untrusted.tsx";

/** Silence between two events that is worth a row of its own. */
const SILENCE_MS = 10 * 60_000;
const TEXT_SHOWN = 160;

const eventOf = ({ record }: SyncEventRow): SyncEvent => JSON.parse(record) as SyncEvent;

/** Events that one page looks at for a filter, and how many of them at once. */
const LOOKED_AT = 5_000;
const LOOK_ROWS = 500;
/** Events that a file looks at, at most. */
const FILE_LOOKED_AT = 50_000;

/** What a page of events can be narrowed to: by the kind of event, or to what went wrong. */
const FILTERS = {
  run: { text: "Run", kinds: ["run"] },
  steps: { text: "Steps", kinds: ["step"] },
  work: { text: "Agents at work", kinds: ["assignment", "attempt", "model", "session", "routing"] },
  effects: { text: "Effects", kinds: ["effect", "lease", "delivery", "workspace", "candidate"] },
  approvals: { text: "Approvals", kinds: ["approval"] },
  trouble: { text: "Trouble", kinds: [] },
} as const satisfies Record<string, { text: string; kinds: readonly string[] }>;
type Filter = keyof typeof FILTERS;
const filterOf = (url: URL): Filter | undefined => {
  const asked = url.searchParams.get("events") ?? "";
  return Object.hasOwn(FILTERS, asked) ? (asked as Filter) : undefined;
};

const TROUBLE = new Set(["failed", "blocked_uncertain", "connection_lost", "retry_pending", "reattaching", "rejected", "expired"]);
const isTrouble = ({ eventType, payload: { status, outcome, error } }: SyncEvent): boolean =>
  error !== undefined ||
  TROUBLE.has(status ?? "") ||
  TROUBLE.has(outcome ?? "") ||
  eventType === "lease.lost" ||
  eventType.endsWith("connection_lost");

/** Whether an event passes. Its text is looked at first: a quote inside of any text stands behind a backslash there, so this cannot be forged. */
function keeperOf(filter: Filter): (row: SyncEventRow) => boolean {
  if (filter === "trouble") return (row) => isTrouble(eventOf(row));
  const marks = FILTERS[filter].kinds.map((kind) => `"eventType":"${kind}.`);
  return ({ record }) => marks.some((mark) => record.includes(mark));
}

/** A page of events, newest first, and one that was asked for in full. */
export type EventsData = {
  rows: SyncEventRow[];
  /** The sequence behind which the next page begins. */
  further: number | undefined;
  chosen: SyncEventRow | undefined;
  /** How many events were looked at, when a filter stopped looking before the page was full. */
  lookedAt: number | undefined;
};

/** Whether the oldest event stands first. */
const isForward = (url: URL): boolean => url.searchParams.get("order") === "oldest";
/** The sequence behind which a page begins, in its order; the first page begins before all. */
function placeOf(url: URL): number {
  const asked = Number(url.searchParams.get(isForward(url) ? "after" : "before"));
  return Number.isSafeInteger(asked) && asked > 0 ? asked : isForward(url) ? 0 : Number.MAX_SAFE_INTEGER;
}

/** A reader of some events behind a sequence, in the order of an address. */
const readerOf = ({ hub, url }: Visit, projectId: string, runId: string) => {
  const { eventsAfter, eventsBefore } = hub.engine.read.sync;
  return (from: number, limit: number) => (isForward(url) ? eventsAfter : eventsBefore)(projectId, runId, from, limit);
};

/** Reads one page: events behind the place of the address that pass its filter. A rare kind gives a short page, not a slow one. */
export async function loadEvents(visit: Visit, projectId: string, runId: string): Promise<EventsData> {
  const { hub, url } = visit;
  const sequence = Number(url.searchParams.get("event"));
  const chosen = Number.isSafeInteger(sequence) && sequence > 0 ? await hub.engine.read.sync.findEvent(projectId, runId, sequence) : undefined;
  const filter = filterOf(url);
  const keeps = filter === undefined ? () => true : keeperOf(filter);
  const size = filter === undefined ? VIEW_ROWS_MAX + 1 : LOOK_ROWS;
  const next = readerOf(visit, projectId, runId);
  const rows: SyncEventRow[] = [];
  for (let [from, looked] = [placeOf(url), 0]; ; ) {
    const found = await next(from, size);
    for (const row of found) {
      if (keeps(row) && rows.push(row) > VIEW_ROWS_MAX) {
        rows.pop();
        return { rows, further: rows.at(-1)!.sequence, chosen, lookedAt: undefined };
      }
    }
    looked += found.length;
    if (found.length < size) return { rows, further: undefined, chosen, lookedAt: undefined };
    from = found.at(-1)!.sequence;
    if (looked >= LOOKED_AT) return { rows, further: from, chosen, lookedAt: looked };
  }
}

const FILE: readonly ExportColumn<SyncEvent>[] = [
  ["sequence", ({ sequence }) => sequence],
  ["occurredAt", ({ occurredAt }) => occurredAt],
  ["type", ({ eventType }) => eventType],
  ["stepId", ({ payload }) => payload.stepId],
  ["attempt", ({ payload }) => payload.stepAttempt],
  ["agentId", ({ payload }) => payload.agentId],
  ["status", ({ payload }) => payload.status],
  ["outcome", ({ payload }) => payload.outcome],
  ["summary", ({ payload }) => payload.summary ?? payload.reason],
  ["payload", ({ payload }) => JSON.stringify(payload)],
];

/** The events of a run that pass the filter of the address, from its place on, as a file. @throws HubError run_not_found */
async function eventsFile(visit: Visit): Promise<Response> {
  const { hub, params, session, url } = visit;
  const { projectId, runId } = await runs.findRow(hub.engine.read, session.project, params["projectId"]!, params["runId"]!);
  const filter = filterOf(url);
  const keeps = filter === undefined ? () => true : keeperOf(filter);
  const next = readerOf(visit, projectId, runId);
  const events: SyncEvent[] = [];
  for (let from = placeOf(url), looked = 0; events.length < EXPORT_ROWS_MAX && looked < FILE_LOOKED_AT; ) {
    const found = await next(from, LOOK_ROWS);
    events.push(...found.filter(keeps).map(eventOf));
    looked += found.length;
    if (found.length < LOOK_ROWS) break;
    from = found.at(-1)!.sequence;
  }
  return download("events", params["format"]!, FILE, events.slice(0, EXPORT_ROWS_MAX));
}

export const screens: readonly Screen[] = [
  screen({ method: "GET", path: "/runs/:projectId/:runId/export/:format", role: "viewer", run: eventsFile }),
];

/** What an event says, in the order people ask: where, who, what came of it, in whose words. */
function said({ eventType, payload, redaction }: SyncEvent): Child {
  const {
    stepId,
    fromStepId,
    toStepId,
    stepAttempt,
    agentId,
    status,
    outcome,
    summary,
    reason,
    usage,
    model,
    timing,
    effect,
    lease,
    error,
    fileChanges,
  } = payload;
  const files = fileChanges?.reduce((sum, { added = [], modified = [], deleted = [] }) => sum + added.length + modified.length + deleted.length, 0);
  const parts: Child[] = [
    fromStepId
      ? `${fromStepId} → ${toStepId ?? (eventType === "step.entered" ? stepId : "the end")}`
      : stepId && `${stepId}${stepAttempt && stepAttempt > 1 ? `, attempt ${stepAttempt}` : ""}`,
    agentId,
    outcome ?? status,
    model && <Line text={`${model.provider}/${model.model}`} max={60} />,
    effect && `effect ${effect.policy.class}`,
    lease && (
      <>
        lease <Line text={lease.id} max={40} />, token <Line text={lease.fencingToken} max={20} />
      </>
    ),
    error && `${error.class}${error.retryable ? ", may be tried again" : ""}`,
    files ? `${files} ${files === 1 ? "path" : "paths"} changed` : undefined,
    timing && took(timing.durationMs),
    usage && `${tokens((usage.inputTokens ?? 0) + (usage.outputTokens ?? 0) + (usage.cacheReadTokens ?? 0) + (usage.cacheWriteTokens ?? 0))} tokens`,
    usage?.cost !== undefined && amount(usage.cost, usage.currency ?? NO_CURRENCY),
    (summary ?? reason) && <Line text={(summary ?? reason)!} max={TEXT_SHOWN} />,
    redaction.valuesReplaced > 0 && `${redaction.valuesReplaced} redacted`,
  ];
  return parts.filter(Boolean).flatMap((part, index) => (index === 0 ? [part] : [" · ", part]));
}

/** Rows with what is silent between them. */
function rowsOf(rows: readonly SyncEventRow[], cursor: number, url: URL): EventRow[] {
  const filtered = filterOf(url) !== undefined; // then what lies between two rows is not silence
  const out: EventRow[] = [];
  let last: { at: number; sequence: number } | undefined;
  for (const row of rows) {
    const event = eventOf(row);
    const at = Date.parse(event.occurredAt);
    if (last && !filtered) {
      const [low, high] = [Math.min(last.sequence, row.sequence), Math.max(last.sequence, row.sequence)];
      const silence = Math.abs(last.at - at);
      if (high - low > 1) out.push({ gap: `${high - low - 1} events are missing between ${low} and ${high}` });
      else if (silence >= SILENCE_MS) out.push({ gap: `${words(silence)} without an event` });
    }
    const held = row.sequence > cursor;
    out.push({
      seq: row.sequence,
      at,
      type: event.eventType,
      href: here(url, { event: String(row.sequence) }),
      text: (
        <>
          {said(event)}
          {held && (
            <>
              {" "}
              <Badge state="gap" text="waits behind a gap" />
            </>
          )}
        </>
      ),
    });
    last = { at, sequence: row.sequence };
  }
  return out;
}

/** The page of events, with ways to newer and older ones. */
export const Events = ({ data, cursor, total, visit }: { data: EventsData; cursor: number; total: number; visit: Visit }) => {
  const { url } = visit;
  const forward = isForward(url);
  const [place, other] = forward ? ["after", "before"] : ["before", "after"];
  const to = (changes: Record<string, string | undefined>) => `${here(url, { event: undefined, ...changes })}#events`;
  const filter = filterOf(url);
  const file = (format: string) => withQuery(`${pagePath(url)}/export/${format}`, url);
  const shown =
    data.lookedAt !== undefined
      ? `${data.rows.length} among the ${data.lookedAt.toLocaleString("en")} that were looked at`
      : filter === undefined
        ? `${data.rows.length} of ${total.toLocaleString("en")}`
        : `${data.rows.length} shown`;
  return (
    <Section
      title="Events"
      count={total.toLocaleString("en")}
      id="events"
      note={forward ? "oldest first" : "newest first"}
      more={
        <Chip icon="sort" href={to({ order: forward ? undefined : "oldest", [place!]: undefined, [other!]: undefined })}>
          {forward ? "Newest first" : "Oldest first"}
        </Chip>
      }
    >
      <Tabs
        label="Kinds of events"
        tabs={[
          { text: "All", href: to({ events: undefined, [place!]: undefined }), current: filter === undefined },
          ...Object.entries(FILTERS).map(([name, { text }]) => ({ text, href: to({ events: name, [place!]: undefined }), current: filter === name })),
        ]}
      />
      {data.rows.length === 0 ? (
        <p class="section__note">{filter === undefined ? "None here." : "No such event here."}</p>
      ) : (
        <EventList rows={rowsOf(data.rows, cursor, url)} />
      )}
      <Pager
        shown={
          <>
            {shown} · as <Link href={file("csv")}>CSV</Link> or <Link href={file("json")}>JSON</Link>
          </>
        }
        newer={url.searchParams.has(place!) ? to({ [place!]: undefined }) : undefined}
        older={data.further === undefined ? undefined : to({ [place!]: String(data.further) })}
        words={forward ? ["First", "Later"] : undefined}
      />
    </Section>
  );
};

/** One event in full, as the Runtime sent it. */
export const ChosenEvent = ({ row, where, visit }: { row: SyncEventRow; where: string; visit: Visit }) => {
  const event = eventOf(row);
  return (
    <Section title={`Event ${row.sequence}`} note={event.eventType} more={<Link href={here(visit.url, { event: undefined })}>Close</Link>} padded>
      <Facts
        rows={[
          ["Happened", absolute(Date.parse(event.occurredAt))],
          ["Received", absolute(row.receivedAt)],
          ["Id", shortId(event.sourceEventId)],
          ["Hash", <Id value={row.hash} whole />],
        ]}
      />
      <Untrusted by={where} note="sync event, redacted before it left the machine" text={JSON.stringify(event, undefined, 2)} />
    </Section>
  );
};
