// The rules of Runtime commands, each inside one write: numbered without gap per Runtime, applied or refused once, never silently lost.
import type { CommandRow } from "../db/schema.ts";
import type { AuditNote, Tx } from "../db/tx.ts";
import { canonical } from "../protocol/canonical.ts";
import { HubError } from "../protocol/errors.ts";
import { COMMAND_TTL_MS } from "../protocol/limits.ts";
import type { CommandKind } from "../protocol/sync.ts";

/** What is asked of which Runtime, and by whom. */
export type NewCommand = {
  project: string;
  runtimeId: string;
  kind: CommandKind;
  projectId: string | null;
  runId: string | null;
  payload: Record<string, unknown>;
  actor: string;
  idempotencyKey: string | null;
  audit?: AuditNote;
};
/** What a Runtime says of a command. */
export type CommandResult = { state: "received" | "applied" | "refused"; reason?: string | undefined; detail?: unknown };

const sameRequest = (command: CommandRow, request: NewCommand) =>
  command.kind === request.kind &&
  command.runtimeId === request.runtimeId &&
  command.projectId === request.projectId &&
  command.runId === request.runId &&
  canonical(command.payload) === canonical(request.payload);

/** Sends a command; the same key and request give the first one. @throws HubError idempotency_conflict */
export async function create(tx: Tx, request: NewCommand): Promise<{ command: CommandRow; created: boolean }> {
  const { audit, ...what } = request;
  const known = request.idempotencyKey && (await tx.commands.findByKey(request.project, request.actor, request.idempotencyKey));
  if (known) {
    if (!sameRequest(known, request)) throw new HubError("idempotency_conflict", "this idempotency key was used for another command");
    return { command: known, created: false };
  }
  const command: CommandRow = {
    ...what,
    id: tx.newId("cmd"),
    seq: await tx.commands.takeSeq(request.project, request.runtimeId),
    state: "sent",
    result: null,
    createdAt: tx.now,
    receivedAt: null,
    finishedAt: null,
    expiresAt: tx.now + COMMAND_TTL_MS,
  };
  await tx.commands.insert(command);
  record(tx, command, request.actor, audit);
  return { command, created: true };
}

/**
 * Takes down what the Runtime says. A repeat changes nothing. A command that expired here may still have been applied there: then that is the truth.
 * @throws HubError command_not_found, command_finished when it has another final result
 */
export async function settle(tx: Tx, by: { project: string; runtimeId: string }, id: string, result: CommandResult): Promise<CommandRow> {
  const command = await tx.commands.lock(id);
  if (command?.project !== by.project || command.runtimeId !== by.runtimeId) throw new HubError("command_not_found", `there is no command ${id}`);
  const { state, reason, detail } = result;
  const final = command.state === "applied" || command.state === "refused";
  if (command.state === state || (final && state === "received")) return command;
  if (final) throw new HubError("command_finished", `the command was ${command.state}`, { command: { id, state: command.state } });
  const settled: CommandRow = {
    ...command,
    state,
    receivedAt: command.receivedAt ?? tx.now,
    finishedAt: state === "received" ? null : tx.now,
    result: state === "received" ? command.result : { ...(reason !== undefined && { reason }), ...(detail !== undefined && { detail }) },
  };
  await tx.commands.settle(settled);
  record(tx, settled, by.runtimeId);
  return settled;
}

/** Ends a command that nobody has claimed in time. @returns undefined when it is not due any more */
export async function expire(tx: Tx, id: string): Promise<CommandRow | undefined> {
  const command = await tx.commands.lock(id);
  if (command?.state !== "sent" || command.expiresAt > tx.now) return undefined;
  const expired: CommandRow = { ...command, state: "expired", finishedAt: tx.now };
  await tx.commands.settle(expired);
  record(tx, expired, "hub");
  return expired;
}

function record(tx: Tx, command: CommandRow, actor: string, audit?: AuditNote) {
  const { project, id, runtimeId, seq, kind, projectId, runId, state, payload } = command;
  const approvalId = payload["approvalId"];
  const data = { runtimeId, seq, kind, projectId, runId, ...(approvalId !== undefined && { approvalId }) };
  tx.append({ project, topic: "runtimes", type: `command_${state}`, subjectId: id, actor, data, ...(audit && { audit }) });
}
