// Work that waits to become a run, who may submit it, and whether the project takes any: idempotent by key, dispatched in order of arrival.
import { canonical, sha256 } from "../../protocol/canonical.ts";
import { RuntimeRefusal } from "../../protocol/runtime-errors.ts";
import { all, bind, columns, insertInto, one, type StoreContext, write } from "./context.ts";

const INTAKE = [
  ...["intakeId", "intakeKey", "requestHash", "source", "submittedBy", "coordinatorId", "workflowId", "displayTitle", "promptHash", "state"],
  ...["runId", "reason", "receivedAt", "settledAt", "retryOf", "retryStepId"],
] as const;

export type NewIntake = {
  /** The same key with the same content is the same message. */
  intakeKey: string;
  source: string;
  submittedBy: string;
  coordinatorId?: string;
  workflowId?: string;
  displayTitle?: string;
  /** Hash of the prompt in prompts.db, written before. */
  promptHash?: string;
  /** The run that this is another go of, and the step of it to begin at. */
  retryOf?: string;
  retryStepId?: string;
};
export type IntakeRow = NewIntake & {
  seq: number;
  intakeId: string;
  state: "queued" | "dispatched" | "refused" | "cancelled";
  runId?: string;
  reason?: string;
  receivedAt: number;
  settledAt?: number;
};
export type Coordinator = { coordinatorId: string; record: Record<string, unknown>; createdAt: number; updatedAt: number; revokedAt?: number };
export type Pause = { actor: string; reason?: string; startedAt: number };

const withoutNulls = <R>(raw: object): R => Object.fromEntries(Object.entries(raw).filter(([, value]) => value !== null)) as R;

export function intakeTable(context: StoreContext) {
  const ROW = `seq, ${columns(INTAKE)}`;
  const insert = write(context, insertInto("intake_messages", INTAKE));
  const byKey = one<any>(context, `select ${ROW} from intake_messages where intake_key = $intakeKey`);
  const find = one<any>(context, `select ${ROW} from intake_messages where intake_id = $intakeId`);
  const next = one<any>(context, `select ${ROW} from intake_messages where state = 'queued' order by seq limit 1`);
  const queued = all<any>(context, `select ${ROW} from intake_messages where state = 'queued' order by seq limit $limit`);
  const latest = all<any>(context, `select ${ROW} from intake_messages where seq < $before order by seq desc limit $limit`);
  const settle = write(
    context,
    "update intake_messages set state = $state, run_id = $runId, reason = $reason, settled_at = $at where intake_id = $intakeId and state = 'queued'",
  );
  return {
    read: {
      find: (intakeId: string): IntakeRow | undefined => {
        const raw = find({ intakeId });
        return raw && withoutNulls<IntakeRow>(raw);
      },
      /** The message that has waited longest. */
      next: (): IntakeRow | undefined => {
        const raw = next();
        return raw && withoutNulls<IntakeRow>(raw);
      },
      queued: (limit = 1000): IntakeRow[] => queued({ limit }).map(withoutNulls<IntakeRow>),
      /** All messages, newest first. */
      list: ({ before = Number.MAX_SAFE_INTEGER, limit = 50 } = {}): IntakeRow[] => latest({ before, limit }).map(withoutNulls<IntakeRow>),
    },
    write: {
      /** Takes a message in; the same key again answers the first one. @throws RuntimeRefusal command_conflict for the same key with other content */
      submit: (intake: NewIntake): { intake: IntakeRow; repeated: boolean } => {
        const requestHash = sha256(canonical({ ...intake, submittedBy: undefined, source: undefined }));
        const first = byKey({ intakeKey: intake.intakeKey });
        if (first && first.requestHash !== requestHash)
          throw new RuntimeRefusal("command_conflict", `intake key ${intake.intakeKey} was used for other work before`);
        if (!first) {
          const intakeId = context.newId("int");
          insert(bind(INTAKE, { ...intake, intakeId, requestHash, state: "queued", receivedAt: context.now }));
        }
        return { intake: withoutNulls<IntakeRow>(byKey({ intakeKey: intake.intakeKey })), repeated: first !== undefined };
      },
      /** Ends the wait of a message. @throws RuntimeRefusal run_not_accepting when it had ended already */
      settle: (intakeId: string, end: { state: "dispatched" | "refused" | "cancelled"; runId?: string; reason?: string }) => {
        const { state, runId = null, reason = null } = end;
        if (settle({ intakeId, state, runId, reason, at: context.now }) === 0)
          throw new RuntimeRefusal("run_not_accepting", `intake message ${intakeId} does not wait any more`);
      },
    },
  };
}

export function coordinatorTable(context: StoreContext) {
  const save = write(
    context,
    `insert into coordinators (coordinator_id, record, created_at, updated_at, revoked_at) values ($coordinatorId, $record, $at, $at, null)
     on conflict (coordinator_id) do update set record = $record, updated_at = $at, revoked_at = null`,
  );
  const revoke = write(context, "update coordinators set revoked_at = $at, updated_at = $at where coordinator_id = $coordinatorId");
  const list = all<any>(
    context,
    `select ${columns(["coordinatorId", "record", "createdAt", "updatedAt", "revokedAt"])} from coordinators order by coordinator_id`,
  );
  return {
    read: {
      list: (): Coordinator[] => list().map((raw) => ({ ...withoutNulls<Coordinator>(raw), record: JSON.parse(raw.record) })),
    },
    write: {
      save: (coordinatorId: string, record: Record<string, unknown>) => save({ coordinatorId, record: JSON.stringify(record), at: context.now }),
      revoke: (coordinatorId: string) => revoke({ coordinatorId, at: context.now }),
    },
  };
}

export function controlTable(context: StoreContext) {
  const inForce = one<any>(context, "select actor, reason, started_at as startedAt from project_controls where kind = 'pause' and ended_at is null");
  const start = write(context, "insert into project_controls (kind, actor, reason, started_at) values ('pause', $actor, $reason, $at)");
  const end = write(context, "update project_controls set ended_at = $at, ended_by = $actor where kind = 'pause' and ended_at is null");
  return {
    read: {
      /** The pause in force, if the project is paused. */
      pause: (): Pause | undefined => {
        const raw = inForce();
        return raw && withoutNulls<Pause>(raw);
      },
    },
    write: {
      /** Pauses the project. Answers false when it was paused already. */
      pause: (actor: string, reason?: string): boolean => {
        if (inForce()) return false;
        start({ actor, reason: reason ?? null, at: context.now });
        return true;
      },
      /** Ends the pause. Answers false when there was none. */
      resume: (actor: string): boolean => end({ actor, at: context.now }) > 0,
    },
  };
}
