// Backups and checks of the store that are started from a page: at most one at a time, its progress in the store so that every page and hub sees it, its
// outcome kept. The work itself knows files and processes, so it is given to the hub from outside. Codes: upkeep_busy, upkeep_unsupported.
import { StoreRefused } from "../db/refused.ts";
import type { UpkeepRow } from "../db/schema.ts";
import type { Tx } from "../db/tx.ts";
import { HubError } from "../protocol/errors.ts";
import { UPKEEP_KEPT_MAX, UPKEEP_SILENT_MS, UPKEEP_TELL_MS } from "../protocol/limits.ts";
import type { BackupMade, CheckMade, UpkeepOutcome } from "../protocol/upkeep.ts";
import type { By } from "./alerts.ts";
import type { Hub } from "./hub.ts";
import { describeError } from "./log.ts";

/** @param step what is being done; `total` is 0 when it cannot be known */
export type OnProgress = (step: string, done: number, total: number) => void;
/** What can be done to the store of this hub. What is missing cannot be done from here; `instead` says what to do. */
export type StoreWork = {
  backUp?: (onProgress: OnProgress) => Promise<BackupMade>;
  verify?: (onProgress: OnProgress) => Promise<CheckMade>;
  /** What to do where a backup cannot be made from here. */
  instead: { says: string; commands: readonly string[] };
  /** Where backups go; undefined when none are made. */
  folder: string | undefined;
  /** Bytes of the store and of the disk it lies on, as far as they can be known. */
  sizes(): { data?: number; wal?: number; free?: number };
};
export type UpkeepKind = UpkeepRow["kind"];

/**
 * Starts a backup or a check. Returns once it is noted; the work goes on by itself, and `settled` resolves when it has ended.
 * @throws HubError upkeep_unsupported, upkeep_busy
 */
export async function start(hub: Hub, by: By, kind: UpkeepKind): Promise<{ job: UpkeepRow; settled: Promise<void> }> {
  const work = kind === "backup" ? hub.storeWork.backUp : hub.storeWork.verify;
  if (!work) throw new HubError("upkeep_unsupported", `this store is not ${kind === "backup" ? "backed up" : "verified"} from here`);
  const job = await hub.engine.write("", (tx) => begin(tx, by, kind));
  return { job, settled: carryOut(hub, job, work) };
}

async function begin(tx: Tx, by: By, kind: UpkeepKind): Promise<UpkeepRow> {
  const running = await tx.upkeep.running();
  if (running) throw new HubError("upkeep_busy", `a ${running.kind === "backup" ? "backup" : "check"} is running already`);
  const ended = await tx.upkeep.newest(2 * UPKEEP_KEPT_MAX);
  if (ended.length >= UPKEEP_KEPT_MAX) await tx.upkeep.forget(ended.slice(UPKEEP_KEPT_MAX - 1).map(({ id }) => id));
  const job: UpkeepRow = {
    id: tx.newId("job"),
    kind,
    state: "running",
    step: "begins",
    done: 0,
    total: 0,
    startedAt: tx.now,
    startedBy: by.actor,
    updatedAt: tx.now,
    finishedAt: null,
    outcome: null,
  };
  await tx.upkeep.insert(job);
  const audit = { role: by.role, origin: by.origin };
  tx.append({ project: "", topic: "settings", type: `${kind}.started`, subjectId: job.id, actor: by.actor, data: {}, audit });
  return job;
}

/** Never rejects. */
async function carryOut(hub: Hub, { id, kind }: UpkeepRow, work: (onProgress: OnProgress) => Promise<BackupMade | CheckMade>): Promise<void> {
  const tell = teller(hub, id);
  let outcome: UpkeepOutcome;
  try {
    const made = await work(tell.progress);
    outcome = "file" in made ? { backup: made } : { check: made };
  } catch (error) {
    hub.log({ event: "upkeep_failed", level: "error", job: id, error: describeError(error) });
    outcome =
      error instanceof StoreRefused
        ? { failure: error.message, hint: error.hint }
        : { failure: "it failed for a reason that nobody expected", hint: "The hub’s log says which." };
  }
  await tell.settled();
  try {
    await hub.engine.write("", (tx) => end(tx, id, outcome));
  } catch (error) {
    hub.log({ event: "upkeep_lost", level: "error", job: id, kind, error: describeError(error) }); // `sweep` ends it
  }
}

/** Writes how far the work is, one write at a time and at most every UPKEEP_TELL_MS; a new step is told at once. */
function teller(hub: Hub, id: string) {
  let told = { step: "", at: Number.NEGATIVE_INFINITY };
  let writing: Promise<unknown> = Promise.resolve();
  let busy = false;
  return {
    progress(step: string, done: number, total: number) {
      const at = hub.clock();
      if (busy || (step === told.step && at - told.at < UPKEEP_TELL_MS)) return;
      told = { step, at };
      busy = true;
      writing = hub.engine
        .write("", (tx) => advance(tx, id, { step, done: Math.floor(done), total: Math.floor(total) }))
        .catch(() => undefined) // a store that cannot be written is told of elsewhere; the work goes on
        .finally(() => {
          busy = false;
        });
    },
    settled: () => writing,
  };
}

async function advance(tx: Tx, id: string, progress: { step: string; done: number; total: number }): Promise<void> {
  const job = await tx.upkeep.lock(id);
  if (job?.state !== "running") return;
  await tx.upkeep.update({ ...job, ...progress, updatedAt: tx.now });
  tx.append({ project: "", topic: "settings", type: `${job.kind}.progress`, subjectId: id, actor: "hub", data: progress });
}

async function end(tx: Tx, id: string, outcome: UpkeepOutcome): Promise<boolean> {
  const job = await tx.upkeep.lock(id);
  if (job?.state !== "running") return false;
  const state = "failure" in outcome ? "failed" : "done";
  await tx.upkeep.update({ ...job, state, updatedAt: tx.now, finishedAt: tx.now, outcome });
  tx.append({ project: "", topic: "settings", type: `${job.kind}.${state}`, subjectId: id, actor: "hub", data: {} });
  return true;
}

/** Ends a job whose hub is gone: it has said nothing for UPKEEP_SILENT_MS. @returns how many */
export async function sweep(hub: Hub): Promise<number> {
  const job = await hub.engine.read.upkeep.running();
  if (!job || hub.clock() - job.updatedAt < UPKEEP_SILENT_MS) return 0;
  const ended = await hub.engine.write("", (tx) => end(tx, job.id, { failure: "the hub stopped before it was done", hint: "Start it again." }));
  return ended ? 1 : 0;
}
