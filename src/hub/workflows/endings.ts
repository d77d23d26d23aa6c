// What ends a run from outside: an early reply, an expired prompt, a wait that ran out.
import type { MessageRow } from "../../db/schema.ts";
import type { Tx } from "../../db/tx.ts";
import { iso } from "../../protocol/time.ts";
import type { Area, WorkflowRun } from "../../protocol/workflows.ts";
import * as journal from "../journal.ts";
import { tell } from "./notices.ts";
import { timeoutFor } from "./prompts.ts";
import { lockRun, saveRun } from "./runs.ts";

/** A reply to the run's current prompt while it is running fails the run: the coordinator gave up before the work was done. */
export const afterReply = (tx: Tx, message: MessageRow) =>
  failByMessage(tx, message, "workflow", "The coordinator replied before the workflow was complete");

/** An expired prompt fails a running run: nobody works on it. */
export const afterExpiry = (tx: Tx, message: MessageRow) =>
  failByMessage(tx, message, "harness", "The prompt expired before the workflow was complete");

async function failByMessage(tx: Tx, message: MessageRow, area: Area, summary: string): Promise<void> {
  if (message.workflowRunId === null || message.senderId !== `workflow:${message.workflowRunId}`) return;
  const row = await tx.workflows.findByMessage(message.id);
  if (row?.status !== "running") return;
  const run = await lockRun(tx, row.id);
  if (run.status !== "running" || run.messageId !== message.id) return;
  await fail(tx, run, area, summary, message.recipientId);
}

async function fail(tx: Tx, run: WorkflowRun, area: Area, summary: string, actor: string): Promise<void> {
  const stage = run.stages.find(({ id }) => id === run.currentStage);
  if (stage) {
    stage.status = "failed";
    stage.completedAt = iso(tx.now);
    stage.updatedAt = stage.completedAt;
  }
  run.status = "failed";
  delete run.waiting;
  await journal.append(tx, run.project, {
    runId: run.id,
    agentId: run.targetAgentId,
    category: "error",
    area,
    severity: "error",
    summary,
    evidence: [],
    relatedEntryIds: [],
    ...(stage && { stageId: stage.id, attempt: stage.attempts + 1 }),
  });
  await saveRun(tx, run, "failed", actor, { reason: summary });
}

/** Fails a run whose wait ran out and tells its coordinator. @returns whether it was overdue */
export async function failOverdue(tx: Tx, run: WorkflowRun): Promise<boolean> {
  const { waiting } = run;
  if (run.status !== "waiting" || !waiting || Date.parse(waiting.expiresAt) > tx.now) return false;
  run.messageId = await tell(tx, run, { fromName: `timeout:${run.definitionId}`, content: timeoutFor(run, waiting) });
  await fail(tx, run, "workflow", `The wait for ${waiting.signalKey} timed out after ${waiting.expiresAt}`, "hub");
  return true;
}
