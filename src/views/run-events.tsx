// The events of a run as rows of evidence: the newest page, windowed, whatever their number; and one of them in full.
/** @jsxImportSource #jsx */
import type { SyncEventRow } from "../db/schema.ts";
import { VIEW_ROWS_MAX } from "../protocol/limits.ts";
import type { SyncEvent } from "../protocol/sync-event.ts";
import { here } from "./address.ts";
import type { Child } from "./jsx/jsx-runtime.ts";
import { amount, tokens } from "./money.ts";
import type { Visit } from "./screen.ts";
import { EventList, type EventRow } from "./ui/feed.tsx";
import { Facts, Section } from "./ui/page.tsx";
import { Id, Link, shortId } from "./ui/reference.tsx";
import { Badge } from "./ui/status.tsx";
import { Pager } from "./ui/table.tsx";
import { absolute, took, words } from "./ui/time.tsx";
import { Line, Untrusted } from "./ui/untrusted.tsx";

/** Silence between two events that is worth a row of its own. */
const SILENCE_MS = 10 * 60_000;
const TEXT_SHOWN = 160;

/** A page of events, newest first, and one that was asked for in full. */
export type EventsData = { rows: SyncEventRow[]; older: number | undefined; chosen: SyncEventRow | undefined };

/** Reads one page: events before the `before` of the address, newest first. */
export async function loadEvents({ hub, url }: Visit, projectId: string, runId: string): Promise<EventsData> {
  const { read } = hub.engine;
  const before = Number(url.searchParams.get("before")) || Number.MAX_SAFE_INTEGER;
  const sequence = Number(url.searchParams.get("event"));
  const found = await read.sync.eventsBefore(projectId, runId, before, VIEW_ROWS_MAX + 1);
  const rows = found.slice(0, VIEW_ROWS_MAX);
  return {
    rows,
    older: found.length > VIEW_ROWS_MAX ? rows.at(-1)!.sequence : undefined,
    chosen: Number.isSafeInteger(sequence) && sequence > 0 ? await read.sync.findEvent(projectId, runId, sequence) : undefined,
  };
}

const eventOf = ({ record }: SyncEventRow): SyncEvent => JSON.parse(record) as SyncEvent;

/** What an event says, in the order people ask: where, who, what came of it, in whose words. */
function said({ payload, redaction }: SyncEvent): Child {
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
      ? `${fromStepId} → ${toStepId ?? "the end"}`
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
    usage?.cost !== undefined && amount(usage.cost, usage.currency ?? "XXX"),
    (summary ?? reason) && <Line text={(summary ?? reason)!} max={TEXT_SHOWN} />,
    redaction.valuesReplaced > 0 && `${redaction.valuesReplaced} redacted`,
  ];
  return parts.filter(Boolean).flatMap((part, index) => (index === 0 ? [part] : [" · ", part]));
}

/** Rows with what is silent between them. */
function rowsOf(rows: readonly SyncEventRow[], cursor: number, url: URL): EventRow[] {
  const out: EventRow[] = [];
  let newer: { at: number; sequence: number } | undefined;
  for (const row of rows) {
    const event = eventOf(row);
    const at = Date.parse(event.occurredAt);
    if (newer && newer.sequence - row.sequence > 1)
      out.push({ gap: `${newer.sequence - row.sequence - 1} events are missing between ${row.sequence} and ${newer.sequence}` });
    else if (newer && newer.at - at >= SILENCE_MS) out.push({ gap: `${words(newer.at - at)} without an event` });
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
    newer = { at, sequence: row.sequence };
  }
  return out;
}

/** The page of events, with ways to newer and older ones. */
export const Events = ({ data, cursor, total, visit }: { data: EventsData; cursor: number; total: number; visit: Visit }) => {
  const later = visit.url.searchParams.has("before");
  return (
    <Section title="Events" count={total.toLocaleString("en")} id="events" note="newest first">
      {data.rows.length === 0 ? <p class="section__note">None here.</p> : <EventList rows={rowsOf(data.rows, cursor, visit.url)} />}
      {(data.older !== undefined || later) && (
        <Pager
          shown={`${data.rows.length} of ${total.toLocaleString("en")}`}
          newer={later ? `${here(visit.url, { before: undefined, event: undefined })}#events` : undefined}
          older={data.older === undefined ? undefined : `${here(visit.url, { before: String(data.older), event: undefined })}#events`}
        />
      )}
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
