// What becomes of messages by time alone: open ones expire, ended ones are deleted after the retention time. In bounded steps, project by project.
import { RETENTION_BATCH_MAX } from "../protocol/limits.ts";
import type { Hub } from "./hub.ts";
import * as messages from "./messages.ts";

/** Expires every open message whose time is over. Run it with each sweep. @returns how many */
export async function expireMessages(hub: Hub): Promise<number> {
  const { engine, metrics } = hub;
  const count = await inSteps(
    () => engine.read.messages.due(hub.clock(), RETENTION_BATCH_MAX),
    (project, ids) => engine.write(project, (tx) => messages.expireDue(tx, ids)),
  );
  metrics.add("messages_expired", count);
  return count;
}

/** Deletes messages that ended before a time (milliseconds by the hub's clock). Open ones are never deleted. @returns how many */
export async function purgeMessages(hub: Hub, endedBefore: number): Promise<number> {
  const { engine, metrics } = hub;
  const count = await inSteps(
    () => engine.read.messages.ended(endedBefore, RETENTION_BATCH_MAX),
    (project, ids) => engine.write(project, (tx) => messages.purgeEnded(tx, project, ids, endedBefore)),
  );
  metrics.add("messages_purged", count);
  return count;
}

/** Finds a batch, changes it project by project, and goes on while full batches are found and something changed. */
async function inSteps(find: () => Promise<{ id: string; project: string }[]>, change: (project: string, ids: string[]) => Promise<number>) {
  let total = 0;
  for (;;) {
    const found = await find();
    let changed = 0;
    for (const [project, rows] of Map.groupBy(found, (row) => row.project)) {
      changed += await change(
        project,
        rows.map(({ id }) => id),
      );
    }
    total += changed;
    if (found.length < RETENTION_BATCH_MAX || changed === 0) return total;
  }
}
