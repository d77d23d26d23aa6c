// The append-only log of each run: sequence 1, 2, 3 … without a gap. Appending writes the event, its projection and its outbox row, or none of them.
import { canonical, taggedSha256 } from "../../protocol/canonical.ts";
import { RuntimeRefusal } from "../../protocol/runtime-errors.ts";
import type { SyncEvent, SyncEventType, SyncPayload } from "../../protocol/sync-event.ts";
import type { Redactor } from "../redact/redactor.ts";
import { scrubLocal } from "../redact/scrub-local.ts";
import { createDeriver } from "../redact/sync-object.ts";
import { all, bind, columns, insertInto, one, type StoreContext, write } from "./context.ts";
import type { OutboxTable } from "./outbox.ts";
import { fold, type RunState } from "./projection.ts";
import type { RunRow, RunTables } from "./runs.ts";

const EVENT = ["runId", "sequence", "eventId", "eventType", "occurredAt", "recordedAt", "monotonicNs", "payload", "hash"] as const;

/** What the engine says happened. */
export type NewEvent = {
  type: SyncEventType;
  /** What may reach the hub, in full: texts are scrubbed and cut on the way out, never here by hand. */
  payload: SyncPayload;
  /** What stays on this machine: process ids, paths, commands. Secrets are taken out of it too. */
  local?: Record<string, unknown>;
  /** Milliseconds; when it happened, if that was before now. */
  occurredAt?: number;
};
/** An event as stored. */
export type EventRow = {
  runId: string;
  sequence: number;
  eventId: string;
  eventType: SyncEventType;
  occurredAt: number;
  recordedAt: number;
  /** For durations within one boot of the machine. */
  monotonicNs: number;
  payload: SyncPayload & { local?: Record<string, unknown> };
  /** SHA-256 over identity, type, time and payload: shows rot, and chains receipts. */
  hash: string;
};
type RawEvent = Omit<EventRow, "payload"> & { payload: string };
const readEvent = (raw: RawEvent): EventRow => ({ ...raw, payload: JSON.parse(raw.payload) });

/** The hash of an event's own content. */
export const eventHash = ({
  runId,
  sequence,
  eventId,
  eventType,
  occurredAt,
  payload,
}: Omit<EventRow, "hash" | "recordedAt" | "monotonicNs">): string =>
  taggedSha256(canonical({ runId, sequence, eventId, eventType, occurredAt, payload }));

export function eventTable(context: StoreContext, deps: { runs: RunTables; outbox: OutboxTable; redactor: Redactor }) {
  const { runs, outbox, redactor } = deps;
  const derive = createDeriver(redactor);
  const insert = write(context, insertInto("events", EVENT));
  const last = one<{ sequence: number | null }>(context, "select max(sequence) as sequence from events where run_id = $runId");
  const page = all<RawEvent>(
    context,
    `select ${columns(EVENT)} from events where run_id = $runId and sequence > $after order by sequence limit $limit`,
  );
  const unsaved = unsavedStates(runs);

  return {
    read: {
      /** Events of a run with a higher sequence than `after`, in order. @param page.limit 1..10000, default 1000 */
      after: (runId: string, after = 0, limit = 1000): EventRow[] => page({ runId, after, limit }).map(readEvent),
      /** The highest sequence of a run; 0 when it has none. */
      last: (runId: string): number => last({ runId })?.sequence ?? 0,
    },
    write: {
      /**
       * Appends one event to a run, folds it into the run's state and queues its sync object.
       * @throws RuntimeRefusal run_not_found
       */
      append: (runId: string, event: NewEvent): EventRow => {
        const run = unsaved.run(runId);
        const state = unsaved.state(runId);
        const { payload } = scrubLocal({ ...event.payload, ...(event.local && { local: event.local }) }, redactor);
        const content = {
          runId,
          sequence: (state?.lastSequence ?? 0) + 1,
          eventId: context.newId("evt"),
          eventType: event.type,
          occurredAt: event.occurredAt ?? context.now,
          payload: payload as EventRow["payload"],
        };
        const row: EventRow = { ...content, recordedAt: context.now, monotonicNs: context.clock.monotonicNs(), hash: eventHash(content) };
        insert(bind(EVENT, { ...row, payload: canonical(row.payload) }));
        unsaved.add(row, fold(state, row));
        const sync: SyncEvent = derive(run, { ...row, payload: event.payload, local: event.local });
        outbox.write.insert(runId, row.sequence, canonical(sync));
        return row;
      },
    },
    unsaved,
  };
}

/** Of the open transaction: what was appended, and the states that are not written yet. */
function unsavedStates(runs: RunTables) {
  let appended: EventRow[] = [];
  let states = new Map<string, RunState>();
  let rows = new Map<string, RunRow>();
  return {
    /** @throws RuntimeRefusal run_not_found */
    run: (runId: string): RunRow => {
      const row = rows.get(runId) ?? runs.read.find(runId);
      if (!row) throw new RuntimeRefusal("run_not_found", `there is no run ${runId} in this project`);
      rows.set(runId, row);
      return row;
    },
    /** The state of a run inside the open transaction, or as stored. */
    state: (runId: string): RunState | undefined => states.get(runId) ?? runs.read.state(runId),
    add: (event: EventRow, state: RunState) => {
      appended.push(event);
      states.set(event.runId, state);
    },
    /** Writes the states that changed. Called before COMMIT and before a savepoint. */
    flush: () => {
      for (const [runId, state] of states) runs.write.putState(runId, state);
      states = new Map();
    },
    /** Takes what was appended in the transaction that ends, and forgets what was not committed. */
    take: (): EventRow[] => {
      const taken = appended;
      [appended, states, rows] = [[], new Map(), new Map()];
      return taken;
    },
    /** For a savepoint: forgets what was appended since there were `count` events. */
    undoTo: (count: number) => {
      appended.length = count;
      [states, rows] = [new Map(), new Map()];
    },
    count: () => appended.length,
  };
}
