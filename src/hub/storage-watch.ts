// Watches whether the store can be written and stays within its bounds, and says so to operators once per trouble, not once per request.
// While nothing can be written the log of the process says it; the alert follows when the store takes it.
import { WAL_BYTES_MAX } from "../protocol/limits.ts";
import { HOUR_MS, iso } from "../protocol/time.ts";
import { raise } from "./alerts.ts";
import type { Hub } from "./hub.ts";

/** What is remembered between two looks. */
export type StorageTrouble = { since: number; reason: string } | undefined;

/** One look. @param trouble what the look before found @returns what this one found, and how many alerts were raised */
export async function watchStorage(hub: Hub, trouble: StorageTrouble): Promise<{ trouble: StorageTrouble; raised: number }> {
  const { ok, reason = "unknown", degradedSince, walBytes } = await hub.engine.health();
  if (!ok) return { trouble: trouble ?? { since: degradedSince ?? hub.clock(), reason }, raised: 0 };
  let raised = 0;
  if (trouble) {
    const { since } = trouble;
    const summary = `Writes failed from ${iso(since)} to ${iso(hub.clock())} (${trouble.reason}); what was refused then can be sent again`;
    raised += await alert(hub, { kind: "storage_degraded", dedupeKey: iso(since), summary, data: { reason: trouble.reason, since: iso(since) } });
  }
  if (walBytes !== undefined && walBytes > WAL_BYTES_MAX) {
    const summary = `The write-ahead log is ${Math.round(walBytes / 1_048_576)} MiB: some program keeps reading an old state of the data file`;
    raised += await alert(hub, { kind: "wal_large", dedupeKey: iso(Math.floor(hub.clock() / HOUR_MS) * HOUR_MS), summary, data: { walBytes } });
  }
  return { trouble: undefined, raised };
}

async function alert(hub: Hub, cause: { kind: string; dedupeKey: string; summary: string; data: Record<string, unknown> }): Promise<number> {
  return (await hub.engine.write("", (tx) => raise(tx, { project: "", severity: "warning", ...cause }))) ? 1 : 0;
}
