// Attempts of assignments and of gates: what was started, as which process, and what was observed of it. The engine's memory for recovery.
import { all, assignments, bind, columns, insertInto, one, type StoreContext, write } from "./context.ts";

const ATTEMPT = [
  ...["attemptId", "runId", "stepId", "stepAttempt", "assignmentId", "state", "tokenHash", "pid", "pidStarted", "marker", "workspace", "record"],
  ...["createdAt", "updatedAt", "endedAt"],
] as const;
const GATE = [
  ...["gateAttemptId", "runId", "stepId", "stepAttempt", "gateId", "state", "pid", "pidStarted", "record", "createdAt", "updatedAt", "endedAt"],
] as const;
const OBSERVATION = ["gateAttemptId", "ordinal", "kind", "record", "observedAt"] as const;
const EVIDENCE = ["evidenceId", "runId", "stepId", "stepAttempt", "key", "kind", "producerId", "hash", "record", "recordedAt"] as const;

/** One try of an assignment, with the process that runs it and what that process may do. */
export type AttemptRow = {
  attemptId: string;
  runId: string;
  stepId: string;
  stepAttempt: number;
  assignmentId: string;
  /** The engine's word, such as `starting`, `executing`, `settling`, `terminal`. */
  state: string;
  /** SHA-256 of the key this attempt's process may use, never the key. */
  tokenHash?: string;
  pid?: number;
  /** When the process started, as the system tells it: a pid alone may be somebody else's. */
  pidStarted?: string;
  /** Value of the marker in the process's environment. */
  marker?: string;
  /** Folder it works in. */
  workspace?: string;
  record: Record<string, unknown>;
  createdAt: number;
  updatedAt: number;
  endedAt?: number;
};
/** One try of a gate. */
export type GateAttemptRow = Omit<AttemptRow, "attemptId" | "assignmentId" | "tokenHash" | "marker" | "workspace"> & {
  gateAttemptId: string;
  gateId: string;
};
/** One thing seen while a gate ran, such as its start, its output or its exit. */
export type GateObservation = { gateAttemptId: string; ordinal: number; kind: string; record: Record<string, unknown>; observedAt: number };
/** Evidence, bound to the attempt of the step that produced it. */
export type EvidenceRow = {
  evidenceId: string;
  runId: string;
  stepId: string;
  stepAttempt: number;
  key: string;
  /** `assignment-result`, `gate`, `receipt`, `approval` or `artifact`. */
  kind: string;
  producerId?: string;
  /** `sha256:` of the content it stands for. */
  hash: string;
  record: Record<string, unknown>;
  recordedAt: number;
};

/** A row as the store gives it: JSON read, nulls left out. */
function read<R>(raw: Record<string, unknown>): R {
  const row = Object.fromEntries(Object.entries(raw).filter(([, value]) => value !== null));
  row["record"] = JSON.parse(raw["record"] as string);
  return row as R;
}
const stored = <R extends { record: Record<string, unknown> }>(row: R) => ({ ...row, record: JSON.stringify(row.record) });
/** What a save gives: times are the transaction's. */
type Save<R> = Omit<R, "createdAt" | "updatedAt">;

export function attemptTable(context: StoreContext) {
  const upsert = write(
    context,
    `${insertInto("attempt_capabilities", ATTEMPT)} on conflict (attempt_id) do update set ${assignments(ATTEMPT.filter((name) => name !== "attemptId" && name !== "createdAt"))}`,
  );
  const find = one<any>(context, `select ${columns(ATTEMPT)} from attempt_capabilities where attempt_id = $attemptId`);
  const ofRun = all<any>(context, `select ${columns(ATTEMPT)} from attempt_capabilities where run_id = $runId order by created_at, attempt_id`);
  const open = all<any>(context, `select ${columns(ATTEMPT)} from attempt_capabilities where ended_at is null order by created_at, attempt_id`);
  return {
    read: {
      find: (attemptId: string): AttemptRow | undefined => {
        const raw = find({ attemptId });
        return raw && read(raw);
      },
      ofRun: (runId: string): AttemptRow[] => ofRun({ runId }).map(read<AttemptRow>),
      /** Attempts of all runs that have not ended: what recovery looks at. */
      open: (): AttemptRow[] => open().map(read<AttemptRow>),
    },
    write: {
      /** Inserts or replaces an attempt. `endedAt` set once closes it. */
      save: (row: Save<AttemptRow>) => upsert(bind(ATTEMPT, stored({ ...row, createdAt: context.now, updatedAt: context.now }))),
    },
  };
}

export function gateTable(context: StoreContext) {
  const upsert = write(
    context,
    `${insertInto("gate_attempts", GATE)} on conflict (gate_attempt_id) do update set ${assignments(GATE.filter((name) => name !== "gateAttemptId" && name !== "createdAt"))}`,
  );
  const find = one<any>(context, `select ${columns(GATE)} from gate_attempts where gate_attempt_id = $gateAttemptId`);
  const ofRun = all<any>(context, `select ${columns(GATE)} from gate_attempts where run_id = $runId order by created_at, gate_attempt_id`);
  const open = all<any>(context, `select ${columns(GATE)} from gate_attempts where ended_at is null order by created_at, gate_attempt_id`);
  const observe = write(
    context,
    `insert into gate_observations (gate_attempt_id, ordinal, kind, record, observed_at)
     select $gateAttemptId, coalesce(max(ordinal), 0) + 1, $kind, $record, $observedAt from gate_observations where gate_attempt_id = $gateAttemptId`,
  );
  const observations = all<any>(
    context,
    `select ${columns(OBSERVATION)} from gate_observations where gate_attempt_id = $gateAttemptId order by ordinal`,
  );
  const insertEvidence = write(context, insertInto("gate_evidence", EVIDENCE));
  const evidence = all<any>(context, `select ${columns(EVIDENCE)} from gate_evidence where run_id = $runId order by recorded_at, evidence_id`);
  const evidenceOf = all<any>(
    context,
    `select ${columns(EVIDENCE)} from gate_evidence where run_id = $runId and step_id = $stepId and step_attempt = $stepAttempt order by key, recorded_at, evidence_id`,
  );
  return {
    read: {
      find: (gateAttemptId: string): GateAttemptRow | undefined => {
        const raw = find({ gateAttemptId });
        return raw && read(raw);
      },
      ofRun: (runId: string): GateAttemptRow[] => ofRun({ runId }).map(read<GateAttemptRow>),
      open: (): GateAttemptRow[] => open().map(read<GateAttemptRow>),
      observations: (gateAttemptId: string): GateObservation[] => observations({ gateAttemptId }).map(read<GateObservation>),
      /** Evidence of a run, or of one attempt of one of its steps. */
      evidence: (runId: string, of?: { stepId: string; stepAttempt: number }): EvidenceRow[] =>
        (of ? evidenceOf({ runId, ...of }) : evidence({ runId })).map(read<EvidenceRow>),
    },
    write: {
      save: (row: Save<GateAttemptRow>) => upsert(bind(GATE, stored({ ...row, createdAt: context.now, updatedAt: context.now }))),
      /** Adds one observation to a gate's attempt; they are numbered from 1. */
      observe: (gateAttemptId: string, kind: string, record: Record<string, unknown>) =>
        observe({ gateAttemptId, kind, record: JSON.stringify(record), observedAt: context.now }),
      /** Records evidence and answers its id. */
      addEvidence: (row: Omit<EvidenceRow, "evidenceId" | "recordedAt"> & { evidenceId?: string }): string => {
        const evidenceId = row.evidenceId ?? context.newId("evd");
        insertEvidence(bind(EVIDENCE, stored({ ...row, evidenceId, recordedAt: context.now })));
        return evidenceId;
      },
    },
  };
}
