// The hub's clock: real time at the start, then counted by the monotonic clock, so that a jump of the machine's clock ends no lease and stretches none.

/** Milliseconds since 1970 that never run backwards. @param notBefore newest time the store knows of */
export function createClock(notBefore = 0): () => number {
  const start = Math.max(Date.now(), notBefore);
  const from = performance.now();
  return () => Math.floor(start + (performance.now() - from));
}
