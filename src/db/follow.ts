// Following the log. A wake-up is a hint: what is true is read from the table, so a lost or doubled hint costs time, never an event.
import type { EventRow } from "./schema.ts";

/**
 * The cursor does not fit the log, so a follower must start over (`reset`): `too_old` when events after it were removed by retention, `from_the_future`
 * when the log does not reach it (a cursor of another store). A cursor of another generation is told apart by whoever holds it: `engine.generation`.
 */
export class LogTruncated extends Error {
  override readonly name = "LogTruncated";
  constructor(
    readonly reason: "too_old" | "from_the_future",
    message: string,
  ) {
    super(message);
  }
}

/** What following needs of the log. */
export type Log = {
  after(project: string, seq: number, limit: number): Promise<EventRow[]>;
  lastSeq(project: string): Promise<number>;
};
const PAGE_ROWS = 500;

/** Who waits for which project, in this process. */
export class Wakeups {
  #changes = new Map<string, number>();
  #sleepers = new Map<string, Set<() => void>>();
  version(project: string) {
    return this.#changes.get(project) ?? 0;
  }
  wake(project: string) {
    this.#changes.set(project, this.version(project) + 1);
    for (const rouse of this.#sleepers.get(project) ?? []) rouse();
  }
  /** Followers that sleep now, over all projects. */
  get waiting(): number {
    return this.#sleepers.values().reduce((sum, sleepers) => sum + sleepers.size, 0);
  }
  /** Returns when the project changed since `seen`, after `ms`, or on abort. Take `seen` before reading, so no wake-up falls between. */
  async changed(project: string, seen: number, ms: number, signal: AbortSignal) {
    if (signal.aborted || this.version(project) !== seen) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const sleepers = this.#sleepers.get(project) ?? new Set();
    this.#sleepers.set(project, sleepers.add(resolve));
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", resolve as () => void);
    await promise;
    clearTimeout(timer);
    signal.removeEventListener("abort", resolve as () => void);
    sleepers.delete(resolve);
    if (sleepers.size === 0) this.#sleepers.delete(project);
  }
}

/**
 * Committed events after `after`, in order, each once. `undefined` is a heartbeat: nothing new for `idleMs`.
 * @throws LogTruncated when the cursor does not fit the log
 */
export async function* follow(log: Log, wakeups: Wakeups, options: { project: string; after: number; signal: AbortSignal; idleMs: number }) {
  const { project, signal, idleMs } = options;
  let after = options.after;
  const last = await log.lastSeq(project);
  if (after > last) throw new LogTruncated("from_the_future", `${project} has ${last} events, and the cursor says ${after}`);
  while (!signal.aborted) {
    const seen = wakeups.version(project);
    const events = await log.after(project, after, PAGE_ROWS);
    for (const event of events) {
      // Retention removes the oldest and never the newest, so a cursor that fell behind always finds a row that is not its successor.
      if (event.seq !== after + 1) throw new LogTruncated("too_old", `events ${after + 1} to ${event.seq - 1} of ${project} were removed`);
      after = event.seq;
      yield event;
      if (signal.aborted) return;
    }
    if (events.length > 0) continue;
    await wakeups.changed(project, seen, idleMs, signal);
    if (wakeups.version(project) === seen && !signal.aborted) yield undefined;
  }
}
