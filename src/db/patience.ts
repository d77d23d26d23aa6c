// How long the store waits, in monotonic time. Nothing stored depends on it, and no rule sees it.

/** Milliseconds that only rise, whatever happens to the machine's clock. */
export const monotonic = (): number => performance.now();

/** Tries `attempt` at once and then every `everyMs` until it gives something or `ms` have passed. @returns undefined when it never did */
export async function retryFor<T>(ms: number, everyMs: number, attempt: () => T | undefined): Promise<T | undefined> {
  for (const until = monotonic() + ms; ; ) {
    const result = attempt();
    if (result !== undefined || monotonic() > until) return result;
    await Bun.sleep(everyMs);
  }
}

/** The promise's outcome, or a rejection with `late()` when it takes longer than `ms`. */
export async function within<T>(ms: number, promise: Promise<T>, late: () => Error): Promise<T> {
  const { promise: expired, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(late()), ms);
  try {
    return await Promise.race([promise, expired]);
  } finally {
    clearTimeout(timer);
  }
}

/** Calls `tick` every `everyMs` until the promise is settled. @returns its outcome */
export async function meanwhile<T>(everyMs: number, tick: () => void, promise: Promise<T>): Promise<T> {
  const timer = setInterval(tick, everyMs);
  try {
    return await promise;
  } finally {
    clearInterval(timer);
  }
}
