// When messages were first written to a live stream: noted in memory, written in batches. While one batch is being stored the next one collects.
import type { Hub } from "./hub.ts";
import { describeError } from "./log.ts";
import * as messages from "./messages.ts";

export interface Pushed {
  /** Notes that a message was written to a stream just now. */
  note(message: { project: string; id: string }): void;
  /** Resolves once everything noted so far is stored or was given up. */
  settled(): Promise<void>;
}

export function createPushed({ engine, clock, log }: Pick<Hub, "engine" | "clock" | "log">): Pushed {
  let waiting = new Map<string, { project: string; at: number }>();
  let writing: Promise<void> | undefined;

  async function write() {
    while (waiting.size > 0) {
      const batch = Map.groupBy(waiting, ([, { project }]) => project);
      waiting = new Map();
      for (const [project, entries] of batch) {
        const times = entries.map(([id, { at }]) => ({ id, at }));
        // The time is a courtesy to people: without it the message is still delivered, so a failure is told and not repeated.
        await engine
          .write(project, (tx) => messages.notePushed(tx, project, times))
          .catch((error) => log({ event: "pushed_write_failed", level: "warn", project, messages: times.length, error: describeError(error) }));
      }
    }
    writing = undefined;
  }

  return {
    note({ project, id }) {
      if (!waiting.has(id)) waiting.set(id, { project, at: clock() });
      writing ??= write();
    },
    async settled() {
      await writing;
    },
  };
}
