// Drive receipts: a small object that closes a drive and states the run's final status, its last sequence and a hash over all its events. Anybody who
// has the events can check it.
import { canonical, taggedSha256 } from "../../protocol/canonical.ts";
import { isTerminal } from "../../protocol/workflow-file.ts";
import type { EventStore, StoreTx } from "../store/event-store.ts";
import type { Execution } from "./execution.ts";

const PAGE = 1000;

/** `kxm.drive-receipt.v1` */
export type DriveReceipt = {
  schema: "kxm.drive-receipt.v1";
  runId: string;
  projectId: string;
  workflowId: string;
  drive: number;
  status: string;
  planHash: string;
  lastSequence: number;
  eventsHash: string;
  /** The commit it began at and the one it left, by repository. */
  commits: Record<string, { base: string; head: string }>;
  transitions: number;
  agentMs: number;
  cost: number;
  costKnown: boolean;
  reason?: string;
};

/** The hash over the hashes of a run's events, in order. @param upTo the last of them; by default all */
export function eventsHash(
  read: { events: { after: (runId: string, after: number, limit: number) => { sequence: number; hash: string }[] } },
  runId: string,
  upTo = Number.POSITIVE_INFINITY,
): { hash: string; last: number } {
  const hasher = new Bun.CryptoHasher("sha256");
  let last = 0;
  for (;;) {
    const page = read.events.after(runId, last, PAGE);
    for (const { hash, sequence } of page) {
      if (sequence > upTo) break;
      hasher.update(`${hash}\n`);
      last = sequence;
    }
    if (page.length < PAGE || page.at(-1)!.sequence >= upTo) return { hash: `sha256:${hasher.digest("hex")}`, last };
  }
}

/** Writes the receipt of the drive that ends now, inside the transaction of the run's last events. */
export function receiptOf(tx: StoreTx, run: Execution): void {
  if (run.drives === 0 || tx.receipts.last(run.runId)?.drive === run.drives) return;
  const { hash, last } = eventsHash(tx, run.runId);
  const receipt: DriveReceipt = {
    schema: "kxm.drive-receipt.v1",
    runId: run.runId,
    projectId: run.plan.projectId,
    workflowId: run.plan.workflowId,
    drive: run.drives,
    status: run.status,
    planHash: run.planHash,
    lastSequence: last,
    eventsHash: hash,
    commits: Object.fromEntries(Object.entries(run.repositories).map(([id, { base, head }]) => [id, { base, head }])),
    transitions: run.transitions,
    agentMs: run.agentMs,
    cost: run.cost,
    costKnown: !run.costUnknown,
    ...(run.reason && { reason: run.reason.slice(0, 1000) }),
  };
  tx.receipts.save({ runId: run.runId, drive: run.drives, status: run.status, lastSequence: last, eventsHash: hash, receipt });
}

/** What a check of a run's receipts found. `content` is the hash of the receipt itself, for whoever keeps a copy. */
export type Verified = { receipt: DriveReceipt; content: string; holds: boolean; why?: string };

/** Recomputes the last receipt of a run from its events. */
export function verify(store: EventStore, runId: string): Verified | undefined {
  const row = store.read.receipts.last(runId);
  if (!row) return undefined;
  const receipt = row.receipt as DriveReceipt;
  // A drive that ended before its run: the events after it are the next drive's.
  const { hash, last } = eventsHash(store.read, runId, isTerminal(receipt.status) ? undefined : receipt.lastSequence);
  const holds = hash === receipt.eventsHash && last === receipt.lastSequence;
  const why = holds
    ? undefined
    : last === receipt.lastSequence
      ? "the events are not those of the receipt"
      : `the run has ${last} events, the receipt states ${receipt.lastSequence}`;
  return { receipt, content: taggedSha256(canonical(receipt)), holds, ...(why && { why }) };
}
