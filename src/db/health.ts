// Whether the writer works: kept from what the lane sees, proven by a write of its own when the lane is quiet.
import { type Engine, type Health, PROBE_KEY, PROOF_MS, type StoreLog } from "./engine.ts";
import { monotonic, within } from "./patience.ts";
import { StorageUnavailable, type Unavailability } from "./tx.ts";

const HINTS: Partial<Record<Unavailability, string>> = {
  disk_full: "The disk is full: make room; writes go on by themselves.",
  io_error: "The disk reports errors: look at the system's log; a backup on another disk is wise.",
  file_gone: "The data file was moved or removed while the hub ran: stop the hub, put the file back or restore a backup, start again.",
  damaged: "The data file is damaged: stop the hub and restore a backup; `kxm verify` shows what is affected.",
  unreachable: "The database does not answer: look at the server and the network; writes go on by themselves.",
  busy: "Another program holds a write lock on the data file: end it.",
};

/** @param clock hub time; proofs use monotonic time */
export function watchHealth({ clock, log }: { clock: () => number; log: StoreLog }) {
  let committedAt = Number.NEGATIVE_INFINITY;
  let failure: { reason: Unavailability; since: number } | undefined;
  let probe: Promise<unknown> | undefined;

  async function proven(write: Engine["write"]) {
    probe ??= write("", (tx) => tx.meta.put(PROBE_KEY, String(tx.now))).finally(() => {
      probe = undefined;
    });
    await within(PROOF_MS, probe, () => new StorageUnavailable("busy"));
  }

  function committed() {
    committedAt = monotonic();
    if (failure) log("store_recovered", { reason: failure.reason, degraded_ms: clock() - failure.since });
    failure = undefined;
  }

  return {
    /** A change is durable. */
    committed,
    failed(reason: Unavailability, message: string) {
      if (failure?.reason !== reason) log("store_degraded", { reason, message });
      failure = { reason, since: failure?.since ?? clock() };
    },
    /** Never rejects. */
    async check(write: Engine["write"]): Promise<Omit<Health, "queued">> {
      if (!failure && monotonic() - committedAt < PROOF_MS) return { ok: true };
      try {
        await proven(write);
        committed();
        return { ok: true };
      } catch (error) {
        const reason = failure?.reason ?? (error instanceof StorageUnavailable ? error.reason : "commit_failed");
        const message = HINTS[reason] ?? "Writes do not get through.";
        return { ok: false, reason, message, degradedSince: failure?.since ?? clock() };
      }
    },
  };
}
