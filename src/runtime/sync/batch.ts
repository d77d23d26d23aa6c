// Which rows go into one request, and what each answer says about its row. Pure: an answer that does not describe its row is no answer.
import { BODY_BYTES_MAX, SYNC_BATCH_MAX } from "../../protocol/limits.ts";
import type { SyncResult } from "../../protocol/sync.ts";
import type { OutboxRow } from "../store/outbox.ts";

/** How much goes into one request. */
export type BatchLimits = { rows: number; bytes: number };
/** In step with the runs: small requests, so that the hub's other callers do not wait behind one. */
export const BATCH_STEADY: BatchLimits = { rows: 32, bytes: 200_000 };
/** For a backlog: as much as the hub takes in one request, since a drain pays per request. */
export const BATCH_BACKLOG: BatchLimits = { rows: SYNC_BATCH_MAX, bytes: 250_000 };
/** From this many pending rows on it is a backlog. */
export const BACKLOG_ROWS = 256;
/** What a request holds besides its events. */
const ENVELOPE_BYTES = 1_024;
/** A row larger than this cannot be sent at all. */
export const ROW_BYTES_MAX = BODY_BYTES_MAX - ENVELOPE_BYTES;

/** The first rows that fit. One that is too large for any request comes back alone as `tooLarge`. */
export function takeBatch(rows: OutboxRow[], limits: BatchLimits): { batch: OutboxRow[]; tooLarge?: OutboxRow } {
  const batch: OutboxRow[] = [];
  let bytes = 0;
  for (const row of rows.slice(0, limits.rows)) {
    const size = Buffer.byteLength(row.syncEvent) + 1;
    if (size > ROW_BYTES_MAX) return batch.length === 0 ? { batch, tooLarge: row } : { batch };
    if (batch.length > 0 && bytes + size > limits.bytes) break;
    batch.push(row);
    bytes += size;
  }
  return { batch };
}

/** What becomes of a row: taken, refused under a code, or unknown. */
export type Verdict = { row: OutboxRow; is: "acked" } | { row: OutboxRow; is: "refused"; code: string } | { row: OutboxRow; is: "unanswered" };

/** Reads the results of a batch by index and echoed identity. Results of another number answer nothing. */
export function readResults(batch: OutboxRow[], results: SyncResult[], projectId: string): Verdict[] {
  return batch.map((row, index) => {
    const result = results.length === batch.length ? results[index]! : undefined;
    const describes = result?.runId === row.runId && result.sequence === row.sequence && result.projectId === projectId;
    if (!result || !describes) return { row, is: "unanswered" };
    if (result.outcome === "accepted" || result.outcome === "duplicate") return { row, is: "acked" };
    return { row, is: "refused", code: codeOf(result) };
  });
}

/** The hub's code, or the outcome when the hub gave none. Kept short: it becomes a name in counts. */
const codeOf = ({ code, outcome }: SyncResult): string => (code && /^[a-z][a-z0-9_]{0,63}$/.test(code) ? code : `sync_${outcome}`);
