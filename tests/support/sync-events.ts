// Events as a Runtime pushes them: valid, realistic in size, and short to write.
import type { SyncEvent, SyncPayload } from "../../src/protocol/sync-event.ts";

export const RUNTIME = "rtm_0123456789abcdef01234567";
export const OTHER_RUNTIME = "rtm_89abcdef0123456701234567";
export const PROJECT_ID = "prj_0123456789abcdef";
export const HASH = `sha256:${"0123456789abcdef".repeat(4)}`;
export const EPOCH = Date.UTC(2026, 0, 2, 3, 4, 5);

/** What may be said about an event beside its place; `projectId` and so on have defaults. */
export type Told = { type?: SyncEvent["eventType"]; payload?: SyncPayload; at?: number } & Partial<
  Pick<SyncEvent, "projectId" | "runId" | "homeRuntimeId">
>;

/** Event `sequence` of a run, one second after the one before. */
export const syncEvent = (sequence: number, told: Told = {}): SyncEvent => ({
  schema: "kxm.sync-event.v1",
  sourceEventId: `evt_${sequence.toString(16).padStart(16, "0")}`,
  eventType: told.type ?? "attempt.status_changed",
  projectId: told.projectId ?? PROJECT_ID,
  runId: told.runId ?? "run_0123456789abcdef",
  homeRuntimeId: told.homeRuntimeId ?? RUNTIME,
  sequence,
  occurredAt: new Date(told.at ?? EPOCH + sequence * 1_000).toISOString(),
  configRevision: HASH,
  memoryRevision: "mem_0123456789abcdef",
  executorPolicyRevision: HASH,
  toolPolicyRevision: HASH,
  syncPolicyRevision: HASH,
  redaction: { version: "kxm-1", fieldsOmitted: [], valuesReplaced: 0 },
  payload: told.payload ?? attemptPayload(sequence),
});

const attemptPayload = (sequence: number): SyncPayload => ({
  stepId: `step-${sequence % 7}`,
  stepAttempt: 1,
  assignmentId: `asg_${(sequence % 40).toString(16).padStart(16, "0")}`,
  attemptId: `att_${(sequence % 80).toString(16).padStart(16, "0")}`,
  agentId: "implementer",
  status: "running",
  previousStatus: "starting",
  usage: { inputTokens: 1_000 + sequence, outputTokens: 50, cost: 0.01, currency: "USD", costKind: "reported" },
});

/** Events first..last of one run. */
export const syncEvents = (first: number, last: number, told: Told = {}): SyncEvent[] =>
  Array.from({ length: last - first + 1 }, (_, index) => syncEvent(first + index, told));
