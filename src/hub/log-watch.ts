// Waiting for something to appear in a project's event log, without missing what happens between two looks.
import type { EventRow } from "../db/schema.ts";
import type { Hub } from "./hub.ts";

const PAGE_ROWS = 500;

/** How a wait may end before its event comes: `until` at its deadline or when the hub stops, `gone` when the client hung up. */
export type Wait = { until: AbortSignal; gone: AbortSignal };

/** Looks out for one thing from the moment it was made. */
export interface LogWatch<T> {
  /** What `match` made of the first fitting event, as soon as it is committed; undefined once `signal` ends or the log cannot be followed. */
  first(signal: AbortSignal): Promise<T | undefined>;
  /** The same over what is committed by now. */
  passed(): Promise<T | undefined>;
  /** To be called once nothing is waited for any more. */
  leave(): void;
}

/**
 * Starts to look out. Do it before the write whose consequences are waited for.
 * @param match what an event comes to; undefined when it is not the one
 * @param subjectId only events about this one thing
 */
export async function watchLog<T>(
  { feeds, engine }: Pick<Hub, "feeds" | "engine">,
  project: string,
  match: (event: EventRow) => T | undefined,
  subjectId?: string,
): Promise<LogWatch<T>> {
  const found = Promise.withResolvers<T | undefined>();
  const event = (row: EventRow) => {
    const matched = match(row);
    if (matched !== undefined) found.resolve(matched);
  };
  const { position, leave } = await feeds.join(project, { event, lost: () => found.resolve(undefined) }, subjectId);
  return {
    leave,
    async first(signal) {
      if (signal.aborted) return undefined;
      const ended = Promise.withResolvers<undefined>();
      const end = () => ended.resolve(undefined);
      signal.addEventListener("abort", end, { once: true });
      try {
        return await Promise.race([found.promise, ended.promise]);
      } finally {
        signal.removeEventListener("abort", end);
      }
    },
    async passed() {
      for (let after = position; ; ) {
        const rows = await engine.read.events.after(project, after, PAGE_ROWS);
        for (const row of rows) {
          const matched = subjectId === undefined || row.subjectId === subjectId ? match(row) : undefined;
          if (matched !== undefined) return matched;
        }
        if (rows.length < PAGE_ROWS) return undefined;
        after = rows.at(-1)!.seq;
      }
    },
  };
}
