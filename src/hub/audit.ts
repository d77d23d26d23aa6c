// Reading the audit: who did what, from where, when. Entries are written with the event of the action, in the same transaction.
// Codes: protocol_error.
import type { AuditFilter, AuditPlace } from "../db/audit.ts";
import type { AuditRow } from "../db/schema.ts";
import type { Stores } from "../db/tx.ts";
import { HubError } from "../protocol/errors.ts";

/** One page of entries, newest first, and the cursor of the next. `after` is the cursor of the page before. */
export async function list(read: Stores, filter: AuditFilter, page: { after: string | undefined; limit: number }) {
  const { after, limit } = page;
  const rows: AuditRow[] = await read.audit.page(filter, after === undefined ? undefined : readPlace(after), limit + 1);
  const entries = rows.slice(0, limit);
  const last = entries.at(-1);
  return { entries, next: rows.length > limit && last ? writePlace(last) : undefined };
}

const writePlace = ({ at, project, seq }: AuditPlace): string =>
  new TextEncoder().encode(JSON.stringify([at, seq, project])).toBase64({ alphabet: "base64url", omitPadding: true });

function readPlace(text: string): AuditPlace {
  try {
    const place = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.fromBase64(text, { alphabet: "base64url" }))) as unknown[];
    const [at, seq, project] = place;
    if (Number.isSafeInteger(at) && Number.isSafeInteger(seq) && typeof project === "string" && project.length <= 200)
      return { at: at as number, seq: seq as number, project };
  } catch {
    // not one of ours: said below
  }
  throw new HubError("protocol_error", "after is not the cursor of a page");
}
