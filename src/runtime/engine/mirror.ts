// Keeps the store's tables of attempts, gates and evidence beside the events, for whoever looks without folding a run. The events are the truth: these
// rows are written in the same transaction, from what was stored.

import type { StoreTx } from "../store/event-store.ts";
import type { EventRow } from "../store/events.ts";
import type { Execution } from "./execution.ts";
import { stepOf } from "./execution.ts";
import type { AttemptLocal, EndedLocal, OutcomeLocal, ProcessLocal } from "./local.ts";

const ENDED = ["passed", "failed", "cancelled"];

/** Follows one stored event. */
export function mirror(tx: StoreTx, run: Execution, row: EventRow): void {
  if (row.eventType === "attempt.created") created(tx, run, row);
  else if (row.eventType === "attempt.status_changed") changed(tx, row);
  else if (row.eventType === "step.outcome_recorded") decided(tx, row);
}

function created(tx: StoreTx, run: Execution, { runId, payload }: EventRow): void {
  const { attemptId = "", stepId = "", stepAttempt = 1, assignmentId } = payload;
  const { workspace, effectClass, timeoutMs, lease, kind } = payload.local as unknown as AttemptLocal;
  const common = { runId, stepId, stepAttempt, state: "created" };
  if (kind === "gate")
    tx.gates.save({
      ...common,
      gateAttemptId: attemptId,
      gateId: stepOf(run, stepId).gate!,
      record: { effectClass, timeoutMs, ...(lease && { lease }) },
    });
  else
    tx.attempts.save({
      ...common,
      attemptId,
      assignmentId: assignmentId ?? "",
      marker: attemptId,
      workspace: workspace.path,
      record: { effectClass, timeoutMs, workspace },
    });
}

function changed(tx: StoreTx, { payload, occurredAt }: EventRow): void {
  const { attemptId = "", status = "executing" } = payload;
  const local = (payload.local ?? {}) as Partial<ProcessLocal & EndedLocal>;
  const process = local.process && { pid: local.process.pid, pidStarted: local.process.started };
  const change = { state: status, ...process, ...(ENDED.includes(status) && { endedAt: occurredAt }) };
  const attempt = tx.attempts.find(attemptId);
  if (attempt) tx.attempts.save({ ...attempt, ...change });
  const gate = attempt ? undefined : tx.gates.find(attemptId);
  if (!gate) return;
  tx.gates.save({ ...gate, ...change });
  const { exitCode, passed, failure } = local;
  tx.gates.observe(attemptId, status, {
    ...(exitCode !== undefined && { exitCode }),
    ...(passed !== undefined && { passed }),
    ...(failure && { failure: failure.class }),
  });
}

function decided(tx: StoreTx, { runId, payload }: EventRow): void {
  const { stepId = "", stepAttempt = 1 } = payload;
  for (const { id, key, kind, producer, hash, text } of (payload.local as unknown as OutcomeLocal).evidence ?? [])
    tx.gates.addEvidence({ evidenceId: id, runId, stepId, stepAttempt, key, kind, producerId: producer, hash, record: { text } });
}
