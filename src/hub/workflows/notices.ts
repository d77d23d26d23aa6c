// What a run sends to its coordinator: ordinary messages whose sender is the run.
import type { Tx } from "../../db/tx.ts";
import { MESSAGE_TTL_MS_DEFAULT } from "../../protocol/limits.ts";
import type { WorkflowRun } from "../../protocol/workflows.ts";
import * as messages from "../messages.ts";

/** Sends to the coordinator, online or not. @param notice who it says it is from, and the text. @returns the message's id */
export async function tell(tx: Tx, run: WorkflowRun, notice: { fromName: string; content: string; idempotencyKey?: string }): Promise<string> {
  const { fromName, content, idempotencyKey } = notice;
  const sender = { id: `workflow:${run.id}`, name: fromName, project: run.project };
  const request = {
    target: run.targetAgentId,
    content,
    delivery: run.delivery,
    hops: 0,
    maxHops: 5,
    correlationId: run.id,
    allowOffline: true,
    idempotencyKey,
  };
  const { message } = await messages.sendAs(tx, sender, request, { ttlMs: run.ttlMs ?? MESSAGE_TTL_MS_DEFAULT, workflowRunId: run.id });
  return message.id;
}
