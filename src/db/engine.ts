// What the hub sees of a database. Both engines pass the same contract suite.

import type { IdPrefix } from "../protocol/ids.ts";
import { WRITE_QUEUE_MAX } from "../protocol/limits.ts";
import type { follow } from "./follow.ts";
import type { AppendedEvent, Outcome, Rule, Stores, Unavailability } from "./tx.ts";

export interface Engine {
  readonly kind: "sqlite" | "postgres";
  /** `gen_…`, made with the store and anew by every restore. A cursor of another generation means nothing here. */
  readonly generation: string;
  /**
   * Runs a rule in a transaction; resolves once it is durable. Calls of one project happen one after another, on every engine and over every hub.
   * @param project whose lane the call takes; "" for what belongs to no project
   * @throws StorageUnavailable when the outcome is unknown or nothing was tried; whatever the rule throws, then nothing has changed
   */
  write<T>(project: string, rule: Rule<T>): Promise<T>;
  /** Committed state, never a half-done transaction. Each query sees the newest commit. */
  readonly read: Stores;
  /** Committed events after a cursor; `undefined` is a heartbeat. Ends on abort; throws LogTruncated when the cursor does not fit the log. */
  follow(project: string, after: number, signal: AbortSignal): ReturnType<typeof follow>;
  /**
   * Calls `listener` with each event this process commits, before the write's promise resolves: what memory knows can be dropped in time. Also with
   * those of a failed COMMIT, because they may be there all the same. Says nothing of what other hubs on the same database commit.
   */
  onCommitted(listener: (event: AppendedEvent) => void): void;
  /** Whether a write would be durable now. Proves it with a write of its own unless one has just succeeded; answers within about a second. */
  health(): Promise<Health>;
  /** Tells where this hub listens, so that a second process on the same data file can be told. */
  announce(address: string): void;
  /** Finishes what was accepted, then closes. Later calls are refused. */
  close(): Promise<void>;
}

/** The state of the writer, for /ready, the dashboard and alerts. */
export type Health = {
  ok: boolean;
  /** Write calls that wait. */
  queued: number;
  /** Since when writes fail, in ms, and why; absent while they succeed. */
  degradedSince?: number;
  reason?: Unavailability;
  /** One sentence for the operator. */
  message?: string;
  /** SQLite: size of the write-ahead log; over WAL_BYTES_MAX a reader keeps it from being reset. */
  walBytes?: number;
};

/** Something an operator should see in the log: `what` happened, with flat details. Never holds bodies or secrets. */
export type StoreLog = (what: string, details: Record<string, string | number | boolean>) => void;

export type EngineOptions = {
  /** Hub time in ms. */
  clock: () => number;
  newId: (prefix: IdPrefix) => string;
  log?: StoreLog;
  /** Write calls that may wait. */
  queueMax?: number;
  /** How often a follower looks without being woken, ms. */
  idleMs?: number;
};
/** A write call in a queue. */
export type Call = { rule: Rule<unknown>; settle: (outcome: Outcome<unknown>) => void };
export const QUEUE_MAX = WRITE_QUEUE_MAX;
export const IDLE_MS = 1_000;
/** How long a call waits for a lock or connection that does not come. */
export const WRITE_WAIT_MS_MAX = 2_000;
/** A commit this young proves the writer. */
export const PROOF_MS = 1_000;
export const PROBE_KEY = "probed_at";
