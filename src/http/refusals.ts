// Refused credentials of one hub, counted per claimed identity and in all, so that guessing gets 429 while right credentials still pass.
import { AUTH_FAILURES_PER_MINUTE_MAX } from "../protocol/limits.ts";
import { MINUTE_MS } from "../protocol/time.ts";
import { createRateLimit } from "./rate-limit.ts";

const ALL_MAX = 10 * AUTH_FAILURES_PER_MINUTE_MAX;

/** Counts what was refused, over everything that one hub serves. */
export interface Refusals {
  /**
   * Notes that somebody showed wrong credentials.
   * @param claimed whom they claimed to be, such as `agent:agt_…`
   * @throws HubError rate_limited when that happened too often within a minute
   */
  count(claimed: string): void;
  /** Drops minutes that have ended. */
  sweep(now: number): void;
}

/** @param clock milliseconds  @param counted told of each, for the metrics */
export function createRefusals(clock: () => number, counted: () => void): Refusals {
  const what = "refused credentials";
  const each = createRateLimit({ max: AUTH_FAILURES_PER_MINUTE_MAX, windowMs: MINUTE_MS, what });
  const all = createRateLimit({ max: ALL_MAX, windowMs: MINUTE_MS, what });
  return {
    sweep: each.sweep,
    count(claimed) {
      counted();
      each.count(claimed, clock());
      all.count("all", clock());
    },
  };
}
