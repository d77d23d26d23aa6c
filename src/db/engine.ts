// What the hub sees of a database. Both engines pass the same contract suite.

import type { IdPrefix } from "../protocol/ids.ts";
import { WRITE_QUEUE_MAX } from "../protocol/limits.ts";
import type { follow } from "./follow.ts";
import type { Outcome, Rule, Stores } from "./tx.ts";

export interface Engine {
  /** Runs a rule in a transaction; resolves once it is durable. Calls of one project happen one after another, on every engine and over every hub. */
  write<T>(project: string, rule: Rule<T>): Promise<T>;
  /** Committed state, never a half-done transaction. Each query sees the newest commit. */
  readonly read: Stores;
  follow(project: string, after: number, signal: AbortSignal): ReturnType<typeof follow>;
  close(): Promise<void>;
}

export type EngineOptions = { clock: () => number; newId: (prefix: IdPrefix) => string; queueMax?: number; idleMs?: number };
export type Call = { rule: Rule<unknown>; settle: (outcome: Outcome<unknown>) => void };
export const QUEUE_MAX = WRITE_QUEUE_MAX;
export const IDLE_MS = 1_000; // followers also look without a wake-up, this often
