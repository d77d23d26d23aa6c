// The Runtime's two clocks: the wall for dates, the monotonic one for durations. Given to everything, so that tests and the simulator own time.

export type Clock = {
  /** Milliseconds since 1970; may jump. */
  now(): number;
  /** Nanoseconds since some fixed moment of this boot; never goes back. Below 2^53 for the first 104 days, then rounded. */
  monotonicNs(): number;
};

export const systemClock: Clock = { now: () => Date.now(), monotonicNs: () => Number(process.hrtime.bigint()) };
