// The log of incoming deliveries. What changes something is noted in the write that it causes. What is refused or ignored changes nothing, so it waits in
// memory for a moment and is written with others; what nobody signed is only counted, by hour and reason, so that strangers cannot fill the store.
import type { ArrivalRow } from "../db/schema.ts";
import type { Stores, Tx } from "../db/tx.ts";
import type { ArrivalCursor, ArrivalsOf } from "../db/webhook-arrivals.ts";
import { HubError } from "../protocol/errors.ts";
import { ARRIVALS_WAITING_MAX, COUNT_EXACT_MAX } from "../protocol/limits.ts";
import { DAY_MS, HOUR_MS, iso } from "../protocol/time.ts";
import type { WebhookArrival } from "../protocol/webhook-arrivals.ts";
import type { Hub } from "./hub.ts";
import { short } from "./projection-section.ts";

const TEXT_MAX = 128;
const REASON_MAX = 300;
const FOLDS_MAX = 2_000; // definitions × reasons of one moment; beyond it nothing more is noted

/** What is known of a delivery before anything came of it. `verified` and `deliveryId` change once its signature was right. */
export type Arrival = {
  project: string;
  definitionId: string;
  kind: ArrivalRow["kind"];
  verified: boolean;
  deliveryId?: string | undefined;
  event?: string | undefined;
  sender?: string | undefined;
  program?: string | undefined;
  runId?: string | undefined;
  signalKey?: string | undefined;
};
/** What was made of it. */
export type Made = { outcome: ArrivalRow["outcome"]; code?: string; reason?: string; runId?: string };

const textOf = (value: string | undefined, max = TEXT_MAX): string | null => (value === undefined || value === "" ? null : short(value, max));

const rowOf = (arrival: Arrival, made: Made, { id, fold, at }: { id: string; fold: string; at: number }): ArrivalRow => ({
  id,
  fold,
  project: arrival.project,
  definitionId: arrival.definitionId,
  kind: arrival.kind,
  outcome: made.outcome,
  verified: arrival.verified ? 1 : 0,
  code: made.code ?? null,
  reason: textOf(made.reason, REASON_MAX),
  deliveryId: textOf(arrival.deliveryId),
  event: textOf(arrival.event),
  sender: textOf(arrival.sender),
  program: textOf(arrival.program),
  runId: textOf(made.runId ?? arrival.runId),
  signalKey: textOf(arrival.signalKey),
  count: 1,
  at,
});

/** Notes a delivery in the write that it caused. The event of that write tells pages of it. */
export async function record(tx: Tx, arrival: Arrival, made: Made): Promise<void> {
  const id = tx.newId("arr");
  await tx.webhookArrivals.add([rowOf(arrival, made, { id, fold: id, at: tx.now })]);
}

/** Deliveries that wait to be noted. */
export interface Arrivals {
  /** Takes note of a delivery that changed nothing. Never fails, and never takes more than a bounded place. */
  note(arrival: Arrival, made: Made): void;
  /** What waits, oldest first; nothing waits afterwards. */
  take(): ArrivalRow[];
  /** Puts back what could not be written. */
  back(rows: readonly ArrivalRow[]): void;
}

export function createArrivals({ clock, newId }: Pick<Hub, "clock" | "newId">): Arrivals {
  let waiting = new Map<string, ArrivalRow>();
  const put = (row: ArrivalRow) => {
    const known = waiting.get(row.fold);
    if (known) waiting.set(row.fold, { ...row, id: known.id, count: known.count + row.count });
    else if (waiting.size < FOLDS_MAX) waiting.set(row.fold, row);
  };
  return {
    note(arrival, made) {
      const at = clock();
      const id = newId("arr");
      const alone = arrival.verified && waiting.size < ARRIVALS_WAITING_MAX;
      const fold = alone ? id : `${arrival.definitionId} ${arrival.verified ? 1 : 0} ${made.outcome} ${made.code ?? ""} ${Math.floor(at / HOUR_MS)}`;
      put(rowOf(arrival, made, { id, fold, at }));
    },
    take() {
      const rows = [...waiting.values()];
      waiting = new Map();
      return rows;
    },
    back(rows) {
      const since = waiting;
      waiting = new Map();
      for (const row of [...rows, ...since.values()]) put(row);
    },
  };
}

/** Runs what a delivery asks for, and notes when it is refused. What it throws goes on to the caller. */
export async function watched<T>(hub: Hub, arrival: Arrival, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof HubError && error.status < 500) hub.arrivals.note(arrival, { outcome: "refused", code: error.code, reason: error.message });
    throw error;
  }
}

/** Writes what waits, project by project. @returns how many rows */
export async function flush(hub: Hub): Promise<number> {
  const rows = hub.arrivals.take();
  for (const [project, ofProject] of Map.groupBy(rows, (row) => row.project)) {
    try {
      await hub.engine.write(project, async (tx) => {
        await tx.webhookArrivals.add(ofProject);
        const count = ofProject.reduce((sum, row) => sum + row.count, 0);
        tx.append({ project, topic: "webhooks", type: "arrivals.noted", subjectId: project, actor: "hub", data: { count } });
      });
    } catch (error) {
      hub.arrivals.back(ofProject);
      throw error;
    }
  }
  return rows.length;
}

/** A page of the log, newest first. @returns one more than `limit` asked for is not; `next` when there are more */
export async function list(
  read: Stores,
  of: ArrivalsOf,
  { after, limit }: { after?: ArrivalCursor | undefined; limit: number },
): Promise<{ rows: ArrivalRow[]; next: ArrivalCursor | undefined }> {
  const found = await read.webhookArrivals.page(of, limit + 1, after);
  const rows = found.slice(0, limit);
  return { rows, next: found.length > limit ? { at: rows.at(-1)!.at, id: rows.at(-1)!.id } : undefined };
}

/** How many came to a definition in the last 24 hours, by what was made of them. @param now ms */
export const countsOf = (read: Stores, definitionId: string, now: number): Promise<Map<ArrivalRow["outcome"], number>> =>
  read.webhookArrivals.counts(definitionId, now - DAY_MS, COUNT_EXACT_MAX + 1);

export const arrivalOf = (row: ArrivalRow): WebhookArrival => ({
  id: row.id,
  project: row.project,
  definitionId: row.definitionId,
  kind: row.kind,
  outcome: row.outcome,
  verified: row.verified === 1,
  ...(row.code !== null && { code: row.code }),
  ...(row.reason !== null && { reason: row.reason }),
  ...(row.deliveryId !== null && { deliveryId: row.deliveryId }),
  ...(row.event !== null && { event: row.event }),
  ...(row.sender !== null && { sender: row.sender }),
  ...(row.program !== null && { program: row.program }),
  ...(row.runId !== null && { runId: row.runId }),
  ...(row.signalKey !== null && { signalKey: row.signalKey }),
  count: row.count,
  at: iso(row.at),
});
