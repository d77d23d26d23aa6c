// How long to wait before trying again: full jitter, so that many callers that failed together do not come back together.

/** First and longest ceiling of a series of waits, in milliseconds, and by how much it grows each time (2). */
export type BackoffOptions = { firstMs: number; maxMs: number; factor?: number; random?: () => number };

/**
 * Milliseconds to wait after the `failures`-th failure in a row (from 1): anything between 0 and a ceiling that grows up to `maxMs`.
 * When the other side named a time, at least that, and then spread over as much again as the ceiling, so that its patience is not used up at once.
 * @param retryAfterSeconds what the answer's Retry-After said, if anything
 */
export function backoffMs(failures: number, retryAfterSeconds: number | undefined, options: BackoffOptions): number {
  const { firstMs, maxMs, factor = 2, random = Math.random } = options;
  const ceiling = Math.min(maxMs, firstMs * factor ** Math.min(failures - 1, 100));
  const asked = (retryAfterSeconds ?? 0) * 1000;
  return Math.ceil(asked + random() * ceiling);
}

/** Resolves after a time, or as soon as the signal ends. Never rejects. */
export function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener("abort", end, { once: true });
  });
}
