// Fixed windows per bucket. A window starts with its first request and is replaced once its age reaches the window length.
import { sha256 } from "../protocol/canonical.ts";
import { HubError } from "../protocol/errors.ts";

/** Most buckets kept at once; beyond it the oldest half is dropped, so hostile ids cannot fill the memory. */
const BUCKETS_MAX = 20_000;

/** Names up to here are kept as they are: ids and addresses. What a header may hold beyond that is kept as a hash, or it would fill the memory, too. */
const NAME_MAX = 80;

/** Who asked how often. Buckets are names of callers; times are milliseconds by the clock of whoever counts. */
export interface RateLimit {
  /** Counts a request and returns the headers of its answer. @throws HubError rate_limited with retryAfterSeconds */
  count(bucket: string, now: number): { limit: number; remaining: number };
  /** Drops windows that have ended. */
  sweep(now: number): void;
}

/** @param max requests per window and bucket  @param windowMs length of a window in milliseconds  @param what what is counted, for the refusal */
export function createRateLimit({ max, windowMs, what = "requests" }: { max: number; windowMs: number; what?: string }): RateLimit {
  const windows = new Map<string, { startedAt: number; used: number }>();
  const sweep = (now: number) => {
    for (const [bucket, window] of windows) if (now - window.startedAt >= windowMs) windows.delete(bucket);
  };
  return {
    sweep,
    count(caller, now) {
      const bucket = caller.length > NAME_MAX ? sha256(caller) : caller;
      let window = windows.get(bucket);
      if (!window || now - window.startedAt >= windowMs) {
        if (windows.size >= BUCKETS_MAX) {
          sweep(now);
          for (const oldest of windows.keys()) {
            if (windows.size < BUCKETS_MAX / 2) break;
            windows.delete(oldest);
          }
        }
        windows.set(bucket, (window = { startedAt: now, used: 0 }));
      }
      window.used++;
      const remaining = Math.max(0, max - window.used);
      if (window.used > max) {
        const retryAfterSeconds = Math.max(1, Math.ceil((window.startedAt + windowMs - now) / 1000));
        throw new HubError("rate_limited", `more than ${max} ${what} in ${windowMs} ms`, { retryAfterSeconds });
      }
      return { limit: max, remaining };
    },
  };
}
