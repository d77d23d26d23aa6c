// What the hub has yet to hear: one row per event, written with it, holding only the redacted sync object. A row is pending, acked or refused.
import { all, one, type StoreContext, write } from "./context.ts";

export type OutboxRow = { seq: number; runId: string; sequence: number; syncEvent: string; attemptCount: number };
/** A row with what became of it. */
export type SentRow = { sequence: number; syncEvent: string; attemptCount: number; ackedAt: number | null; refusedCode: string | null };
export type OutboxCounts = { pending: number; acked: number; refused: Record<string, number> };
export type OutboxTable = ReturnType<typeof outboxTable>;

const PENDING = "acked_at is null and refused_at is null";

export function outboxTable(context: StoreContext) {
  const insert = write(context, "insert into outbox (run_id, sequence, sync_event) values ($runId, $sequence, $syncEvent)");
  const pending = all<OutboxRow>(
    context,
    `select seq, run_id as runId, sequence, sync_event as syncEvent, attempt_count as attemptCount
     from outbox indexed by outbox_pending where ${PENDING} and seq > $after order by seq limit $limit`,
  );
  const ofRun = all<SentRow>(
    context,
    `select sequence, sync_event as syncEvent, attempt_count as attemptCount, acked_at as ackedAt, refused_code as refusedCode
     from outbox where run_id = $runId and sequence > $after order by sequence limit $limit`,
  );
  const ack = write(
    context,
    `update outbox set acked_at = $at, attempted_at = $at, attempt_count = attempt_count + 1 where seq = $seq and ${PENDING}`,
  );
  const refuse = write(
    context,
    `update outbox set refused_at = $at, refused_code = $code, attempted_at = $at, attempt_count = attempt_count + 1 where seq = $seq and ${PENDING}`,
  );
  const attempt = write(context, "update outbox set attempted_at = $at, attempt_count = attempt_count + 1 where seq = $seq");
  const { requeue, requeueCode, requeueRun, requeueAcked } = requeueStatements(context);
  const ackedBefore = one<{ n: number }>(
    context,
    "select 1 as n from outbox where run_id = $runId and sequence = $sequence and acked_at is not null and acked_at < $before",
  );
  const hub = one<{ value: string }>(context, "select value from meta where key = 'synced_hub'");
  const setHub = write(context, "insert into meta (key, value) values ('synced_hub', $identity) on conflict (key) do update set value = $identity");
  const countPending = one<{ n: number }>(context, `select count(*) as n from outbox indexed by outbox_pending where ${PENDING}`);
  const refusedByCode = all<{ code: string; n: number }>(
    context,
    "select refused_code as code, count(*) as n from outbox indexed by outbox_refused_rows where refused_at is not null group by refused_code",
  );
  const total = one<{ n: number | null }>(context, "select max(seq) as n from outbox");
  const sum = (counts: Record<string, number>) => Object.values(counts).reduce((all, n) => all + n, 0);
  return {
    read: {
      /** Pending rows in outbox order with a higher seq than `after`. */
      pending: (after: number, limit: number): OutboxRow[] => pending({ after, limit }),
      /** What left, or will leave, of a run, in order: exactly what the hub sees. */
      ofRun: (runId: string, after = 0, limit = 1000): SentRow[] => ofRun({ runId, after, limit }),
      /** Whether the hub acknowledged this event before a moment. */
      ackedBefore: (runId: string, sequence: number, before: number): boolean => ackedBefore({ runId, sequence, before }) !== undefined,
      /** Which hub the acknowledgements are of; undefined before the first. */
      hub: (): string | undefined => hub()?.value,
      /** How many rows are in which state. Rows are never deleted and seq has no gaps but those of undone calls, which `sqlite_sequence` undoes too. */
      counts: (): OutboxCounts => {
        const refused = Object.fromEntries(refusedByCode().map(({ code, n }) => [code, n]));
        const waiting = countPending()!.n;
        return { pending: waiting, refused, acked: (total()?.n ?? 0) - waiting - sum(refused) };
      },
    },
    write: {
      insert: (runId: string, sequence: number, syncEvent: string) => insert({ runId, sequence, syncEvent }),
      /** The hub has it. */
      ack: (seq: number) => ack({ seq, at: context.now }),
      /** The hub will not take it: parked under its code until somebody asks to try again. */
      refuse: (seq: number, code: string) => refuse({ seq, code, at: context.now }),
      /** It was sent and nobody knows what became of it. */
      attempt: (seq: number) => attempt({ seq, at: context.now }),
      /** Parked rows back to pending, all or those of one code. Answers how many. */
      retry: (code?: string): number => (code === undefined ? requeue() : requeueCode({ code })),
      /** The hub lost what it had acknowledged of this run (a restore): acked rows above its cursor, acked before `before`, are sent again, with the same bytes. */
      resend: (runId: string, after: number, before: number): number => requeueRun({ runId, after, before }),
      /** From now on the hub is this one. What another one acknowledged is sent again, with the same bytes. Answers how many rows. */
      useHub: (identity: string): number => {
        const before = hub()?.value;
        setHub({ identity });
        return before === undefined || before === identity ? 0 : requeueAcked();
      },
    },
  };
}

/** Back to pending: what was parked, and what a hub lost. */
function requeueStatements(context: StoreContext) {
  const parked = "update outbox set refused_at = null, refused_code = null where refused_at is not null";
  const acked = "update outbox set acked_at = null where acked_at is not null";
  return {
    requeue: write(context, parked),
    requeueCode: write(context, `${parked} and refused_code = $code`),
    requeueRun: write(context, `${acked} and run_id = $runId and sequence > $after and acked_at < $before`),
    requeueAcked: write(context, acked),
  };
}
