// Simulated time: one list of what happens when. Everything that waits in a simulation waits here, so a seed decides the order of all of it.
import { sha256 } from "../../src/protocol/canonical.ts";
import { seeded } from "../runtime/redact/corpus.ts";

export type Schedule = ReturnType<typeof openSchedule>;
type Entry = { at: number; order: number; label: string; work: () => unknown };

/** @param seed decides everything that is drawn */
export function openSchedule(seed: number) {
  const random = seeded(seed);
  const entries: Entry[] = [];
  const trace: string[] = [];
  const troubles: string[] = [];
  let now = 0;
  let order = 0;
  let busy = 0;

  const before = (a: Entry, b: Entry) => a.at < b.at || (a.at === b.at && a.order < b.order);
  function add(entry: Entry) {
    let low = 0;
    let high = entries.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (before(entries[middle]!, entry)) low = middle + 1;
      else high = middle;
    }
    entries.splice(low, 0, entry);
  }
  const turn = () => new Promise<void>((resume) => setImmediate(resume));

  return {
    random,
    trace,
    /** What the simulation itself saw go wrong. */
    troubles,
    get now() {
      return now;
    },
    /** Does `work` after so many milliseconds of simulated time; answers how to call it off. */
    after: (ms: number, label: string, work: () => unknown): (() => void) => {
      const entry = { at: now + Math.max(0, ms), order: order++, label, work };
      add(entry);
      return () => {
        const at = entries.indexOf(entry);
        if (at !== -1) entries.splice(at, 1);
      };
    },
    /** Something outside of simulated time, such as a request inside the hub: time stands still until it is over. */
    busy: async <T>(work: () => Promise<T>): Promise<T> => {
      busy++;
      try {
        return await work();
      } finally {
        busy--;
      }
    },
    /** Plays what is due until `end`, or until `over` says so. Nothing is left half done between two entries. */
    play: async (end: number, over: () => boolean = () => false): Promise<void> => {
      while (entries.length > 0 && entries[0]!.at <= end && !over()) {
        const entry = entries.shift()!;
        now = Math.max(now, entry.at);
        trace.push(`${now} ${entry.label}`);
        entry.work();
        do await turn();
        while (busy > 0);
        await turn();
      }
      if (!over()) now = Math.max(now, end);
    },
    /** True once in so many. */
    oneIn: (times: number): boolean => random() * times < 1,
    between: (low: number, high: number): number => Math.floor(low + random() * (high - low)),
    pick: <T>(of: readonly T[]): T => of[Math.floor(random() * of.length)]!,
    hash: (): string => sha256(trace.join("\n")),
  };
}
