// Waiting for something to appear in a project's event log, without missing what happens between two looks.
import type { Engine } from "../db/engine.ts";
import type { EventRow } from "../db/schema.ts";

const PAGE_ROWS = 500;

/** How a wait may end before its event comes: `until` at its deadline or when the hub stops, `gone` when the client hung up. */
export type Wait = { until: AbortSignal; gone: AbortSignal };

/** A place in the log that only moves on. */
export interface LogCursor {
  /** The first event from here that `match` makes something of, as soon as it is committed; undefined once `signal` ends. */
  first<T>(match: (event: EventRow) => T | undefined, signal: AbortSignal): Promise<T | undefined>;
  /** The same over what is committed already. */
  passed<T>(match: (event: EventRow) => T | undefined): Promise<T | undefined>;
}

/** Takes its place before the write whose consequences it waits for. */
export async function logCursor(engine: Pick<Engine, "read" | "follow">, project: string): Promise<LogCursor> {
  let after = await engine.read.events.lastSeq(project);
  return {
    async first(match, signal) {
      for await (const event of engine.follow(project, after, signal)) {
        if (!event) continue;
        after = event.seq;
        const found = match(event);
        if (found !== undefined) return found;
      }
      return undefined;
    },
    async passed(match) {
      for (;;) {
        const events = await engine.read.events.after(project, after, PAGE_ROWS);
        for (const event of events) {
          after = event.seq;
          const found = match(event);
          if (found !== undefined) return found;
        }
        if (events.length < PAGE_ROWS) return undefined;
      }
    },
  };
}
