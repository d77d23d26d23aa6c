// Pushes one project's outbox: small steps, each of which leaves every row pending, acked or refused, whatever the hub answers or fails to.
import { backoffMs } from "../../client/backoff.ts";
import { HubRefusal, HubTimeout, HubUnreachable } from "../../client/http.ts";
import type { RuntimeClient } from "../../client/runtime-client.ts";
import type { OutboxReport, SyncState } from "../../protocol/sync.ts";
import { iso } from "../../protocol/time.ts";
import { type Clock, elapsed } from "../clock.ts";
import type { EventStore } from "../store/event-store.ts";
import type { OutboxRow } from "../store/outbox.ts";
import { BACKLOG_ROWS, BATCH_BACKLOG, BATCH_STEADY, type BatchLimits, readResults, takeBatch } from "./batch.ts";

/** A hub that is away is soon back. */
const BACKOFF_AWAY = { firstMs: 1_000, maxMs: 300_000 };
/** One that refuses has many callers, who must not come back within the same second: wide from the start, and growing slowly, so that they stay spread. */
const BACKOFF_REFUSED = { firstMs: 10_000, maxMs: 300_000, factor: 1.4 };
const PAGE_ROWS = 100;

/** What a step did: `moved` rows left pending; `waiting` nothing more to do now; `failed` try again later. */
export type PushStep = "moved" | "waiting" | "failed";

export type Pusher = ReturnType<typeof pusher>;
export type PusherOptions = {
  store: EventStore;
  projectId: string;
  clock: Clock;
  random?: () => number;
};

/** The push of one project. It keeps no row in memory between steps. */
export function pusher({ store, projectId, clock, random }: PusherOptions) {
  let failures = 0;
  let notBefore = 0; // by the monotonic clock: the wall may be set back by hours
  let lastError: { code: string; reason: string } | undefined;
  let blocked: "no_hub" | "blocked" | undefined;
  let shrunk: number | undefined; // rows a request may have after a 413
  const resent = new Set<string>();
  const waitMs = () => Math.max(0, notBefore - elapsed(clock));
  const failed = (error: unknown): PushStep => {
    const known = describe(error);
    // A hub that was away for long and now refuses once has not refused for long.
    failures = known.state === blocked ? failures + 1 : 1;
    lastError = { code: known.code, reason: known.reason };
    blocked = known.state;
    const backoff = known.state === "no_hub" ? BACKOFF_AWAY : BACKOFF_REFUSED;
    notBefore = elapsed(clock) + backoffMs(failures, known.retryAfterSeconds, { ...backoff, random });
    return "failed";
  };
  const succeeded = () => {
    failures = 0;
    notBefore = 0;
    lastError = blocked = undefined;
  };

  return {
    /** One request, or nothing when it is not time or nothing is pending. @throws RuntimeRefusal of the store */
    step: async (client: RuntimeClient): Promise<PushStep> => {
      if (waitMs() > 0) return "failed";
      const rows = store.read.outbox.pending(0, PAGE_ROWS);
      if (rows.length === 0) return "waiting";
      const { batch, tooLarge } = takeBatch(rows, limitsFor(store, rows, shrunk));
      if (tooLarge) {
        store.commit((tx) => tx.outbox.refuse(tooLarge.seq, "sync_row_too_large"));
        return "moved";
      }
      const sent = clock.now();
      try {
        const answer = await client.push(batch.map(({ syncEvent }) => syncEvent));
        const settled = settle(store, { batch, answer, projectId, sent, resent });
        if (settled === 0) return failed(new HubUnreachable("the hub", "its answer does not describe what was sent"));
        if (shrunk !== undefined) shrunk = shrunk * 2 >= PAGE_ROWS ? undefined : shrunk * 2;
        succeeded();
        return "moved";
      } catch (error) {
        if (!isTooLarge(error)) return failed(error);
        if (batch.length > 1) shrunk = Math.floor(batch.length / 2);
        else store.commit((tx) => tx.outbox.refuse(batch[0]!.seq, "sync_row_too_large"));
        return "moved";
      }
    },
    /** How it goes, for people. */
    report: (): Omit<OutboxReport, "name" | "projectId"> => {
      const counts = store.read.outbox.counts();
      const refusing = Object.keys(counts.refused).length > 0;
      const state: SyncState = blocked ?? (refusing ? "refusing" : "ok");
      const wait = waitMs();
      return {
        state,
        ...counts,
        ...(lastError && { lastError: `${lastError.code}: ${lastError.reason}`.slice(0, 300) }),
        ...(wait > 0 && { nextAttemptAt: iso(Math.round(clock.now() + wait)) }),
      };
    },
    /** The hub answered somebody else of this machine: one that was only away is tried again now. A refusal keeps its time. */
    hubAnswers: () => {
      if (blocked === "no_hub") notBefore = 0;
    },
    /** Forgets the wait: the cause was dealt with, or the hub is another one. */
    retryNow: () => void (failures = notBefore = 0),
    /** Milliseconds since 1970, as the clock is set now, before which no step does anything. */
    get nextAttemptAt() {
      return clock.now() + waitMs();
    },
  };
}

function limitsFor(store: EventStore, rows: OutboxRow[], shrunk: number | undefined): BatchLimits {
  const backlog =
    rows.length === PAGE_ROWS && store.read.outbox.pending(rows.at(-1)!.seq, BACKLOG_ROWS - PAGE_ROWS).length === BACKLOG_ROWS - PAGE_ROWS;
  const limits = backlog ? BATCH_BACKLOG : BATCH_STEADY;
  return shrunk === undefined ? limits : { ...limits, rows: Math.min(limits.rows, shrunk) };
}

type Answered = { batch: OutboxRow[]; answer: Awaited<ReturnType<RuntimeClient["push"]>>; projectId: string; sent: number; resent: Set<string> };

/** Marks the rows of a batch in one transaction. Answers how many left pending. */
function settle(store: EventStore, { batch, answer, projectId, sent, resent }: Answered): number {
  const verdicts = readResults(batch, answer.results, projectId);
  return store.commit((tx) => {
    let settled = 0;
    for (const verdict of verdicts) {
      if (verdict.is === "acked") settled += tx.outbox.ack(verdict.row.seq);
      else if (verdict.is === "refused") settled += tx.outbox.refuse(verdict.row.seq, verdict.code);
      else tx.outbox.attempt(verdict.row.seq);
    }
    for (const { projectId: project, runId, cursor } of answer.cursors) {
      // The hub's gapless prefix ends before a row that it had acknowledged in an earlier request: it was restored from an older copy.
      const once = `${runId} ${cursor}`;
      if (project !== projectId || resent.has(once) || !tx.outbox.ackedBefore(runId, cursor + 1, sent)) continue;
      tx.outbox.resend(runId, cursor, sent);
      resent.add(once); // a hub that always says so must not keep us sending
    }
    return settled;
  });
}

const isTooLarge = (error: unknown) => error instanceof HubRefusal && error.status === 413;

/** A failure in the words of the status. */
function describe(error: unknown): { state: "no_hub" | "blocked"; code: string; reason: string; retryAfterSeconds?: number } {
  if (error instanceof HubRefusal) return { state: "blocked", code: error.code, reason: error.message, retryAfterSeconds: error.retryAfterSeconds };
  if (error instanceof HubTimeout) return { state: "no_hub", code: "hub_timeout", reason: error.message };
  if (error instanceof HubUnreachable) {
    const answered = /not a KXM hub|shape|describe|longer/.test(error.message);
    return { state: answered ? "blocked" : "no_hub", code: answered ? "hub_answer_invalid" : "hub_unreachable", reason: error.message };
  }
  throw error;
}
