// Drive receipts: one closes each drive of a run and states what its log looked like then. The engine builds them; here they are kept.
import { all, bind, columns, insertInto, one, type StoreContext, write } from "./context.ts";

const RECEIPT = ["receiptId", "runId", "drive", "status", "lastSequence", "eventsHash", "receipt", "createdAt"] as const;

export type ReceiptRow = {
  receiptId: string;
  runId: string;
  /** Which drive of the run it closes, from 1. */
  drive: number;
  status: string;
  lastSequence: number;
  /** Hash over the hashes of events 1 to lastSequence. */
  eventsHash: string;
  /** The `kxm.drive-receipt.v1` object. */
  receipt: Record<string, unknown>;
  createdAt: number;
};
const read = (raw: any): ReceiptRow => ({ ...raw, receipt: JSON.parse(raw.receipt) });

export function receiptTable(context: StoreContext) {
  const insert = write(context, insertInto("drive_receipts", RECEIPT));
  const ofRun = all<any>(context, `select ${columns(RECEIPT)} from drive_receipts where run_id = $runId order by drive`);
  const last = one<any>(context, `select ${columns(RECEIPT)} from drive_receipts where run_id = $runId order by drive desc limit 1`);
  return {
    read: {
      ofRun: (runId: string): ReceiptRow[] => ofRun({ runId }).map(read),
      last: (runId: string): ReceiptRow | undefined => {
        const raw = last({ runId });
        return raw && read(raw);
      },
    },
    write: {
      save: (row: Omit<ReceiptRow, "receiptId" | "createdAt">): string => {
        const receiptId = context.newId("rcp");
        insert(bind(RECEIPT, { ...row, receiptId, receipt: JSON.stringify(row.receipt), createdAt: context.now }));
        return receiptId;
      },
    },
  };
}
