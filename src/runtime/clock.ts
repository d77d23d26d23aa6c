// The Runtime's clocks and its alarm: the wall for dates, the monotonic one for durations. Given to everything, so that tests and the simulation own time.

export type Clock = {
  /** Milliseconds since 1970; may jump. */
  now(): number;
  /** Nanoseconds since some fixed moment of this boot; never goes back. Below 2^53 for the first 104 days, then rounded. */
  monotonicNs(): number;
  /**
   * Calls `work` once, later; answers how to call it off.
   * @param ms 0 or more of monotonic time; what is longer than 24.8 days comes then
   */
  after(ms: number, work: () => void): () => void;
};

/** Longest a timer can be set for. */
const TIMER_MS_MAX = 2_147_483_647;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicNs: () => Number(process.hrtime.bigint()),
  after: (ms, work) => {
    const timer = setTimeout(work, Math.min(ms, TIMER_MS_MAX));
    return () => clearTimeout(timer);
  },
};

/** Monotonic milliseconds, for durations. */
export const elapsed = ({ monotonicNs }: Clock): number => monotonicNs() / 1e6;
