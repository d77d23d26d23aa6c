// Ingest of a Runtime's events. Everything that can be done before the write is: schema, canonical bytes, hashes. The rule only compares and stores.
// Codes: invalid_sync_batch, sync_batch_too_large; per event sync_event_invalid, sync_runtime_mismatch and those of sync-rules.ts.
import { canonical, taggedSha256 } from "../protocol/canonical.ts";
import { HubError } from "../protocol/errors.ts";
import { SYNC_BATCH_MAX } from "../protocol/limits.ts";
import type { SyncAnswer, SyncResult } from "../protocol/sync.ts";
import { isSyncEvent, type SyncEvent } from "../protocol/sync-event.ts";
import type { Hub } from "./hub.ts";
import * as rules from "./sync-rules.ts";

const ECHO_CHARS = 144;
const INVALID: rules.Verdict = { outcome: "rejected", code: "sync_event_invalid" };
const MISMATCH: rules.Verdict = { outcome: "rejected", code: "sync_runtime_mismatch" };

/**
 * Stores what a Runtime pushes and says of each event what became of it.
 * @param events the request's `events` member, unchecked
 * @throws HubError invalid_sync_batch, sync_batch_too_large; a bad event is a result, not an error
 */
export async function ingest(hub: Hub, { project, runtimeId, events }: { project: string; runtimeId: string; events: unknown }): Promise<SyncAnswer> {
  if (!Array.isArray(events)) throw new HubError("invalid_sync_batch", "events must be an array");
  if (events.length > SYNC_BATCH_MAX) throw new HubError("sync_batch_too_large", `a batch holds at most ${SYNC_BATCH_MAX} events`);
  const verdicts: (rules.Verdict | undefined)[] = [];
  const batch: rules.Batch = { project, runtimeId, events: [] };
  for (const event of events) {
    if (!isSyncEvent(event)) verdicts.push(INVALID);
    else if (event.homeRuntimeId !== runtimeId) {
      batch.mismatched ??= event;
      verdicts.push(MISMATCH);
    } else {
      batch.events.push(receive(event));
      verdicts.push(undefined);
    }
  }
  const stored =
    batch.events.length > 0 || batch.mismatched ? await hub.engine.write(project, (tx) => rules.ingest(tx, batch)) : { verdicts: [], cursors: [] };
  const cursors = [];
  for (const { projectId, runId, ...at } of stored.cursors) {
    let { cursor, unfinished } = at;
    while (unfinished) ({ cursor, unfinished } = await hub.engine.write(project, (tx) => rules.absorb(tx, projectId, runId)));
    cursors.push({ projectId, runId, cursor });
  }
  let next = 0;
  const results = events.map((event, index): SyncResult => ({ ...identityOf(event), ...(verdicts[index] ?? stored.verdicts[next++]!) }));
  count(hub, results);
  warn(hub, { project, runtimeId }, results);
  return { results, cursors };
}

function receive(event: SyncEvent): rules.Received {
  const record = canonical(event);
  return { event, record, hash: taggedSha256(record), bytes: Buffer.byteLength(record) };
}

/** As much of an event's identity as is usable, also of one that is not an event at all. */
function identityOf(event: unknown): Pick<SyncResult, "projectId" | "runId" | "sequence"> {
  if (typeof event !== "object" || event === null) return {};
  const { projectId, runId, sequence } = event as Record<string, unknown>;
  return {
    ...(typeof projectId === "string" && { projectId: projectId.slice(0, ECHO_CHARS) }),
    ...(typeof runId === "string" && { runId: runId.slice(0, ECHO_CHARS) }),
    ...(Number.isSafeInteger(sequence) && { sequence: sequence as number }),
  };
}

function count(hub: Hub, results: SyncResult[]) {
  const of = (...outcomes: SyncResult["outcome"][]) => results.filter(({ outcome }) => outcomes.includes(outcome)).length;
  hub.metrics.add("sync_events_accepted", of("accepted"));
  hub.metrics.add("sync_events_duplicate", of("duplicate"));
  hub.metrics.add("sync_events_refused", of("rejected", "conflict"));
  hub.metrics.add("sync_conflicts", of("conflict"));
}

/** What looks like somebody pushing what is not theirs, one line per run and code. */
function warn(hub: Hub, { project, runtimeId }: { project: string; runtimeId: string }, results: SyncResult[]) {
  const alarming = results.filter(({ outcome, code }) => outcome === "conflict" || code === "sync_runtime_mismatch");
  const byCause = Map.groupBy(alarming, ({ code, projectId, runId }) => JSON.stringify([code, projectId, runId]));
  for (const [{ code, projectId, runId, sequence }, ...more] of byCause.values() as Iterable<[SyncResult, ...SyncResult[]]>) {
    const line = { event: "security_alert", level: "warn", project, runtimeId } as const;
    hub.log({ ...line, code, projectId, runId, sequence, events: 1 + more.length });
  }
}
