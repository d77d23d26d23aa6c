// Approvals for people: what waits for a decision on all machines, and deciding it over the hash that was shown.
// Codes: approval_not_found, approval_content_changed, approval_decided, run_not_accepting.
import type { ApprovalCursor } from "../db/approvals.ts";
import type { ApprovalRow, CommandRow } from "../db/schema.ts";
import type { Stores } from "../db/tx.ts";
import type { Approval, ApprovalDecision, ApprovalsAnswer, Decision } from "../protocol/approvals.ts";
import { HubError } from "../protocol/errors.ts";
import { iso, isoOrNone } from "../protocol/time.ts";
import type { By } from "./alerts.ts";
import * as rules from "./approval-rules.ts";
import type { Hub } from "./hub.ts";

/** What a person decides, over the hash of the content that was shown. */
export type DecisionRequest = { decision: Decision; reason?: string | undefined; contentHash: string };

/** Decides and sends the decision to the Runtime. @param project the caller's only project, or null for every one */
export async function decide(hub: Hub, by: By, project: string | null, id: string, request: DecisionRequest): Promise<Approval> {
  const { read, write } = hub.engine;
  const known = await findRow(read, id, project);
  try {
    const { approval, command } = await write(known.project, (tx) => rules.decide(tx, by, id, request));
    return approvalOf(approval, command);
  } catch (error) {
    if (!(error instanceof HubError) || error.code === "approval_not_found" || error.status >= 500) throw error;
    throw new HubError(error.code, error.message, { ...error.extras, approval: await find(read, id, project) }); // so that the next decision can be a right one
  }
}

/** One approval with how far its decision got. @throws HubError approval_not_found */
export async function find(read: Stores, id: string, project: string | null): Promise<Approval> {
  return withCommand(read, await findRow(read, id, project));
}

/** A page of a project's approvals: pending ones longest first, others newest first. */
export async function list(
  read: Stores,
  project: string,
  { status, after, limit }: { status: ApprovalRow["status"] | "all"; after?: string | undefined; limit: number },
): Promise<ApprovalsAnswer> {
  const cursor = after === undefined ? undefined : readCursor(after);
  const rows =
    status === "pending"
      ? await read.approvals.pendingPage(project, limit + 1, cursor)
      : await read.approvals.page(project, status === "all" ? undefined : status, limit + 1, cursor);
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  return {
    approvals: await Promise.all(shown.map((row) => withCommand(read, row))),
    ...(rows.length > limit && last && { next: `${last.requestedAt}.${last.id}` }),
  };
}

/** Approvals of one run, newest first, at most 50. */
export const ofRun = async (read: Stores, run: { projectId: string; runId: string }): Promise<Approval[]> =>
  Promise.all((await read.approvals.ofRun(run.projectId, run.runId, 50)).map((row) => withCommand(read, row)));

function readCursor(text: string): ApprovalCursor {
  const [, at, id] = /^(\d{1,16})\.(.+)$/.exec(text) ?? [];
  if (at === undefined || id === undefined) throw new HubError("protocol_error", "after is not a cursor of this list");
  return { at: Number(at), id };
}

async function findRow(read: Stores, id: string, project: string | null): Promise<ApprovalRow> {
  const row = await read.approvals.find(id);
  if (!row || (project !== null && row.project !== project)) throw new HubError("approval_not_found", `there is no approval ${id}`);
  return row;
}

const withCommand = async (read: Stores, row: ApprovalRow): Promise<Approval> =>
  approvalOf(row, row.commandId === null ? undefined : await read.commands.find(row.commandId));

function approvalOf(row: ApprovalRow, command: CommandRow | undefined): Approval {
  const { id, project, projectId, runId, runtimeId, stepId, attempt, title, content, contentHash, status } = row;
  return {
    ...{ id, project, projectId, runId, runtimeId, stepId, attempt, title, content, contentHash, status },
    requestedAt: iso(row.requestedAt),
    decidedAt: isoOrNone(row.decidedAt),
    decidedBy: row.decidedBy ?? undefined,
    reason: row.reason ?? undefined,
    decision: command && decisionOf(command),
    updatedAt: iso(row.updatedAt),
  };
}

const decisionOf = (command: CommandRow): ApprovalDecision => ({
  decision: command.kind as Decision,
  by: command.actor,
  at: iso(command.createdAt),
  reason: command.payload["reason"] as string | undefined,
  command: {
    id: command.id,
    state: command.state,
    sentAt: iso(command.createdAt),
    receivedAt: isoOrNone(command.receivedAt),
    finishedAt: isoOrNone(command.finishedAt),
    reason: command.result?.["reason"] as string | undefined,
  },
});
