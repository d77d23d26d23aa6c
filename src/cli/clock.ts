// The hub's clock: real time at the start, then counted by a clock that nobody sets, so that a jump of the machine's time ends no lease and stretches
// none. Sleep of the machine counts. Small differences to the machine's time are made up slowly.
import { readFileSync } from "node:fs";

/** What the clock is made from; tests give their own. All in milliseconds. */
export interface TimeSources {
  /** The machine's time since 1970, which people and programs set. */
  wall(): number;
  /** Time since some moment, which nobody sets. Stands still while the machine sleeps. */
  steady(): number;
  /** The same, going on while the machine sleeps; undefined where the system does not tell. */
  withSleep(): number | undefined;
}

/** A clock and what the program owes it. */
export interface HubClock {
  /** Milliseconds since 1970; never less than before. */
  now(): number;
  /** The newest time the store knows of: where the machine's time is behind it, the clock goes on from there. @returns by how much it had to */
  notBefore(time: number): number;
  /** To be called about once a second: adds sleep, and makes up a small difference to the machine's time. */
  look(): void;
}

/** Share of the passed time by which a difference is made up: a lease of ten minutes is off by at most half a second. */
const SLEW = 0.0008;
/** A larger difference is a clock that somebody set: it is followed at the next start, not before. */
const FOLLOWED_MS_MAX = 30_000;
/** Less than this is how exactly two clocks can be read, not sleep. */
const SLEEP_MS_MIN = 100;

/** A clock for one hub, which never goes back. @param sources replaced by tests */
export function createClock(sources: TimeSources = system): HubClock {
  let base = sources.wall() - sources.steady();
  let asleep = sleepOf(sources);
  let lookedAt = sources.steady();
  let last = 0;
  const exact = () => base + sources.steady();
  const sleptSince = () => {
    // Without a clock that counts sleep, a large step forward is taken for sleep: machines sleep every day and are set once a year.
    if (asleep === undefined) return sources.wall() - exact() > FOLLOWED_MS_MAX ? sources.wall() - exact() : 0;
    const now = sleepOf(sources) ?? asleep;
    const slept = now - asleep;
    if (slept > SLEEP_MS_MIN) asleep = now;
    return slept > SLEEP_MS_MIN ? slept : 0;
  };
  return {
    now: () => (last = Math.max(last, Math.floor(exact()))),
    notBefore(time) {
      const behind = Math.max(0, time - exact());
      base += behind;
      return behind;
    },
    look() {
      const slept = sleptSince();
      base += slept;
      const passed = Math.max(0, sources.steady() - lookedAt) + slept;
      lookedAt = sources.steady();
      const difference = sources.wall() - exact();
      if (Math.abs(difference) <= FOLLOWED_MS_MAX) base += Math.sign(difference) * Math.min(Math.abs(difference), passed * SLEW);
    },
  };
}

/** How long the machine has slept so far, counted from some moment; undefined where the system does not tell. */
const sleepOf = (sources: TimeSources): number | undefined => {
  const withSleep = sources.withSleep();
  return withSleep === undefined ? undefined : withSleep - sources.steady();
};

const system: TimeSources = {
  wall: Date.now,
  steady: () => performance.now(),
  withSleep() {
    try {
      return Number(readFileSync("/proc/uptime", "utf8").split(" ")[0]) * 1_000; // Linux counts sleep in it
    } catch {
      return undefined;
    }
  },
};
