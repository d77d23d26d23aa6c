// Following the log. A wake-up is a hint: what is true is read from the table, so a lost or doubled hint costs time, never an event.
import type { EventRow } from "./schema.ts";

export class LogTruncated extends Error {} // the cursor is older than the retained log: the follower must start over (`reset`)
export type Page = (project: string, after: number, limit: number) => Promise<EventRow[]>;
const PAGE_ROWS = 500;

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

/** Committed events after `after`, in order, each once. `undefined` is a heartbeat: nothing new for `idleMs`. */
export async function* follow(page: Page, wakeups: Wakeups, options: { project: string; after: number; signal: AbortSignal; idleMs: number }) {
  const { project, signal, idleMs } = options;
  let after = options.after;
  while (!signal.aborted) {
    const seen = wakeups.version(project);
    const events = await page(project, after, PAGE_ROWS);
    for (const event of events) {
      if (event.seq !== after + 1) throw new LogTruncated(`events ${after + 1} to ${event.seq - 1} of ${project} are gone`);
      after = event.seq;
      yield event;
      if (signal.aborted) return;
    }
    if (events.length > 0) continue;
    await wakeups.changed(project, seen, idleMs, signal);
    if (wakeups.version(project) === seen && !signal.aborted) yield undefined;
  }
}
