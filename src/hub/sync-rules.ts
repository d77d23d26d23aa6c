// The rule that ingests a Runtime's events: compares, stores, folds. It costs the same per event however long the run is.
// The refusal of one event never stops the others.
import type { SyncEventRow, SyncRunRow } from "../db/schema.ts";
import type { Tx } from "../db/tx.ts";
import type { ErrorCode } from "../protocol/errors.ts";
import { SYNC_HELD_BYTES_MAX, SYNC_HELD_EVENTS_MAX } from "../protocol/limits.ts";
import type { SyncEvent } from "../protocol/sync-event.ts";
import * as alerts from "./alerts.ts";
import * as approvals from "./approval-rules.ts";
import * as conflicts from "./conflicts.ts";
import * as costs from "./costs.ts";
import { type Consequence, emptyProjection, fold } from "./projection.ts";

/** Rows that one write takes over from behind a closed gap. The lane serves others in between. */
const ABSORB_ROWS = 500;
/** A range of sequences is read whole when it holds at most this many times the events that are looked for. */
const RANGE_FACTOR = 4;

/** An event that passed the schema, with its canonical bytes and their hash. */
export type Received = { event: SyncEvent; hash: string; record: string; bytes: number };
/** What became of one event. `existingHash` is that of what is stored under its sequence, for a caller that may know it. */
export type Verdict = { outcome: "accepted" | "duplicate" | "conflict" | "rejected"; code?: ErrorCode; existingHash?: string };
/** Events whose home is the Runtime that pushed them, and one of those that have another home. */
export type Batch = { project: string; runtimeId: string; events: Received[]; mismatched?: SyncEvent | undefined };
/** `unfinished`: events that followed a gap are still to be taken over; call `absorb` until they are. */
export type RunCursor = { projectId: string; runId: string; cursor: number; unfinished: boolean };

type RunState = {
  run: SyncRunRow | undefined;
  isNew: boolean;
  owner: string | undefined;
  /** Hashes under sequences of this batch, stored before or accepted in it. */
  hashes: Map<number, string>;
  accepted: Received[];
  refused: { received: Received; verdict: Verdict }[];
  answered: boolean;
  /** Where the gapless prefix would end if the events so far were stored, and what waits behind it. */
  reached: number;
  held: number;
  heldBytes: number;
  unfinished: boolean;
};

/** Judges and stores a batch. @returns a verdict per event in order, and the cursor of each run that has some of them now */
export async function ingest(tx: Tx, batch: Batch): Promise<{ verdicts: Verdict[]; cursors: RunCursor[] }> {
  if (batch.mismatched) await alertMismatch(tx, batch, batch.mismatched);
  const runs = await lockRuns(tx, batch);
  const verdicts = batch.events.map((received) => {
    const state = runs.get(keyOf(received.event))!;
    const verdict = judge(state, batch, received);
    if (verdict.outcome === "conflict") state.refused.push({ received, verdict });
    return verdict;
  });
  const states = [...runs.keys()].sort().map((key) => runs.get(key)!);
  const unowned = new Set(
    states.filter(({ owner, accepted }) => owner === undefined && accepted.length > 0).map(({ accepted }) => accepted[0]!.event.projectId),
  );
  // Refused by the table's key if another hub project was faster: then this call runs again and sees it.
  for (const projectId of unowned) await tx.sync.claim({ projectId, project: batch.project, claimedAt: tx.now });
  for (const state of states) await store(tx, batch, state);
  const cursors = [...runs.values()].filter(({ answered }) => answered).map(({ run, unfinished }) => cursorOf(run!, unfinished));
  return { verdicts, cursors };
}

/** Goes on taking over what waited behind a gap that has closed. @returns where the run's cursor is now */
export async function absorb(tx: Tx, projectId: string, runId: string): Promise<RunCursor> {
  const run = (await tx.sync.lockRun(projectId, runId))!;
  const before = { cursor: run.cursor, status: run.status };
  const { unfinished, consequences } = await absorbHeld(tx, run);
  if (run.cursor > before.cursor) {
    await tx.sync.updateRun(run);
    await follow(tx, run, consequences);
    record(tx, run, before.status, {});
  }
  return cursorOf(run, unfinished);
}

const keyOf = ({ projectId, runId }: SyncEvent) => `${projectId} ${runId}`;
const cursorOf = ({ projectId, runId, cursor }: SyncRunRow, unfinished: boolean): RunCursor => ({ projectId, runId, cursor, unfinished });

/** Everything the batch needs to know. Runs are locked in key order, so two batches cannot wait for each other. */
async function lockRuns(tx: Tx, { events, project }: Batch): Promise<Map<string, RunState>> {
  const byRun = Map.groupBy(events, ({ event }) => keyOf(event));
  const runs = new Map([...byRun.keys()].map((key) => [key, undefined as unknown as RunState])); // in order of first appearance
  const owners = new Map<string, string | undefined>();
  for (const key of [...byRun.keys()].sort()) {
    const received = byRun.get(key)!;
    const { projectId, runId } = received[0]!.event;
    if (!owners.has(projectId)) owners.set(projectId, (await tx.sync.owner(projectId))?.project);
    const claimed = owners.get(projectId);
    // Another hub project's row is only looked at: its lane is not ours to hold up.
    const run = await (claimed === undefined || claimed === project ? tx.sync.lockRun : tx.sync.findRun)(projectId, runId);
    const owner = run?.project ?? claimed; // the row knows also what was committed between the two reads
    const hashes = await storedHashes(tx, run, received);
    const { cursor: reached = 0, held = 0, heldBytes = 0 } = run ?? {};
    const bounds = { reached, held, heldBytes };
    runs.set(key, { run, isNew: !run, owner, hashes, accepted: [], refused: [], answered: false, unfinished: false, ...bounds });
  }
  return runs;
}

/** Hashes that are stored under the batch's sequences. Beyond the cursor of a run that holds nothing there are none, so the usual push asks nothing. */
async function storedHashes(tx: Tx, run: SyncRunRow | undefined, received: Received[]): Promise<Map<number, string>> {
  if (!run) return new Map();
  const wanted = received.map(({ event }) => event.sequence).filter((sequence) => sequence <= run.cursor || run.held > 0);
  if (wanted.length === 0) return new Map();
  const [first, last] = [Math.min(...wanted), Math.max(...wanted)];
  const { projectId, runId } = run;
  const rows = await (last - first < RANGE_FACTOR * wanted.length
    ? tx.sync.hashesBetween(projectId, runId, first, last)
    : tx.sync.hashesOf(projectId, runId, [...new Set(wanted)]));
  return new Map(rows.map(({ sequence, hash }) => [sequence, hash]));
}

function judge(state: RunState, { project, runtimeId }: Batch, received: Received): Verdict {
  const { event, hash, bytes } = received;
  const { sequence } = event;
  const existing = state.hashes.get(sequence);
  const isOurs = (state.owner ?? project) === project;
  if (existing !== undefined) {
    if (existing === hash && isOurs) {
      state.answered = true;
      return { outcome: "duplicate" };
    }
    return { outcome: "conflict", code: "sync_sequence_reused", ...(isOurs && { existingHash: existing }) };
  }
  if (!isOurs) return { outcome: "conflict", code: "sync_project_mismatch" };
  if (state.run && state.run.homeRuntimeId !== runtimeId) return { outcome: "conflict", code: "sync_home_runtime_mismatch" };
  if (sequence === state.reached + 1) state.reached++;
  else {
    if (state.held >= SYNC_HELD_EVENTS_MAX || state.heldBytes + bytes > SYNC_HELD_BYTES_MAX) return { outcome: "rejected", code: "sync_held_limit" };
    state.held++;
    state.heldBytes += bytes;
  }
  state.hashes.set(sequence, hash);
  state.accepted.push(received);
  state.answered = true;
  return { outcome: "accepted" };
}

async function store(tx: Tx, batch: Batch, state: RunState): Promise<void> {
  const { accepted, refused } = state;
  for (const { received, verdict } of refused) await conflicts.keep(tx, conflictOf(batch, received, verdict));
  if (accepted.length === 0) {
    if (refused.length > 0) recordRefusal(tx, batch, state);
    if (state.answered && state.run!.held > 0) state.unfinished = await isGapClosed(tx, state.run!);
    return;
  }
  const run = (state.run ??= newRun(accepted[0]!.event, batch.project, tx.now));
  const statusBefore = run.status;
  run.lastReceivedAt = tx.now;
  await tx.sync.insertEvents(accepted.map((received) => rowOf(received, tx.now)));
  const consequences = advance(run, accepted);
  if (run.held > 0) {
    const absorbed = await absorbHeld(tx, run);
    state.unfinished = absorbed.unfinished;
    consequences.push(...absorbed.consequences);
  }
  await (state.isNew ? tx.sync.insertRun(run) : tx.sync.updateRun(run));
  await follow(tx, run, consequences);
  record(tx, run, statusBefore, { accepted: accepted.length, ...(refused.length > 0 && { refused: refused.length }) });
}

/** Carries out what folded events mean beyond their run: for approvals and for what everything costs. */
async function follow(tx: Tx, run: SyncRunRow, consequences: readonly Consequence[]): Promise<void> {
  for (const consequence of consequences) if (consequence.kind !== "used") await approvals.follow(tx, run, consequence);
  await costs.record(
    tx,
    run,
    consequences.filter((consequence) => consequence.kind === "used"),
  );
}

/** Folds what follows the cursor without a gap; the rest waits. */
function advance(run: SyncRunRow, accepted: Received[]): Consequence[] {
  const consequences: Consequence[] = [];
  for (const { event, bytes } of inOrder(accepted)) {
    if (event.sequence === run.cursor + 1) {
      consequences.push(...fold(run, event));
      run.cursor++;
    } else {
      run.held++;
      run.heldBytes += bytes;
    }
  }
  return consequences;
}

const inOrder = (accepted: Received[]) => accepted.toSorted((a, b) => a.event.sequence - b.event.sequence);

const isGapClosed = async (tx: Tx, { projectId, runId, cursor }: SyncRunRow) => (await tx.sync.nextSequence(projectId, runId, cursor)) === cursor + 1;

/** Moves the cursor over events that waited for a gap. Each one is passed once, so the cost per event stays constant. */
async function absorbHeld(tx: Tx, run: SyncRunRow): Promise<{ consequences: Consequence[]; unfinished: boolean }> {
  const consequences: Consequence[] = [];
  if (!(await isGapClosed(tx, run))) return { consequences, unfinished: false };
  const rows = await tx.sync.eventsAfter(run.projectId, run.runId, run.cursor, ABSORB_ROWS);
  for (const { sequence, record } of rows) {
    if (sequence !== run.cursor + 1) return { consequences, unfinished: false };
    consequences.push(...fold(run, JSON.parse(record)));
    run.cursor++;
    run.held--;
    run.heldBytes -= Buffer.byteLength(record);
  }
  return { consequences, unfinished: rows.length === ABSORB_ROWS && run.held > 0 };
}

const rowOf = ({ event, hash, record }: Received, receivedAt: number): SyncEventRow => ({
  projectId: event.projectId,
  runId: event.runId,
  sequence: event.sequence,
  hash,
  receivedAt,
  record,
});

const newRun = ({ projectId, runId, homeRuntimeId }: SyncEvent, project: string, now: number): SyncRunRow => ({
  projectId,
  runId,
  project,
  homeRuntimeId,
  cursor: 0,
  held: 0,
  heldBytes: 0,
  firstReceivedAt: now,
  lastReceivedAt: now,
  workflowId: null,
  displayTitle: null,
  status: null,
  stepId: null,
  startedAt: null,
  updatedAt: null,
  endedAt: null,
  retryOf: null,
  projection: emptyProjection(),
});

const conflictOf = ({ project, runtimeId }: Batch, { event, hash, record }: Received, { code, existingHash }: Verdict) => ({
  project,
  projectId: event.projectId,
  runId: event.runId,
  sequence: event.sequence,
  code: code!,
  runtimeId,
  existingHash: existingHash ?? null,
  hash,
  record,
});

/** One entry of the log per run and batch: per event it would double every write. */
function record(tx: Tx, run: SyncRunRow, statusBefore: string | null, counts: { accepted?: number; refused?: number }) {
  const { project, projectId, runId, homeRuntimeId, cursor, held, status, workflowId } = run;
  const data = { projectId, cursor, held, status, workflowId, ...(status !== statusBefore && { previousStatus: statusBefore }), ...counts };
  tx.append({ project, topic: "sync", type: "events_accepted", subjectId: runId, actor: homeRuntimeId, data });
}

function recordRefusal(tx: Tx, { project, runtimeId }: Batch, { refused }: RunState) {
  const { projectId, runId } = refused[0]!.received.event;
  tx.append({ project, topic: "sync", type: "events_refused", subjectId: runId, actor: runtimeId, data: { projectId, refused: refused.length } });
}

/** A Runtime pushes what is another's. One alert per Runtime that does, whatever it claims. */
async function alertMismatch(tx: Tx, { project, runtimeId }: Batch, { projectId, runId, homeRuntimeId }: SyncEvent): Promise<void> {
  await alerts.raise(tx, {
    project,
    kind: "sync_runtime_mismatch",
    dedupeKey: runtimeId,
    severity: "security",
    summary: "a Runtime pushed events whose home is another Runtime",
    subject: runtimeId,
    data: { projectId, runId, runtimeId, homeRuntimeId },
  });
}
