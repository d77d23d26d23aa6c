// Commands for Runtimes: operators ask, the Runtime that owns the run fetches by long poll and says what came of it. The hub never calls out.
// Codes: protocol_error, run_not_found, runtime_not_found, run_not_accepting, idempotency_conflict, command_not_found, command_finished.
import type { CommandRow, EventRow, SyncRunRow } from "../db/schema.ts";
import type { Stores, Tx } from "../db/tx.ts";
import { HubError } from "../protocol/errors.ts";
import { COMMAND_DETAIL_BYTES_MAX, COMMAND_PAYLOAD_BYTES_MAX } from "../protocol/limits.ts";
import type { Command, RunCommandsAnswer } from "../protocol/runtimes.ts";
import { type CommandKind, commandPayloadProblem, type RuntimeCommand } from "../protocol/sync.ts";
import { iso, isoOrNone } from "../protocol/time.ts";
import type { By } from "./alerts.ts";
import * as approvals from "./approval-rules.ts";
import * as rules from "./command-rules.ts";
import type { Hub } from "./hub.ts";
import { type Wait, watchLog } from "./log-watch.ts";
import { hasEnded } from "./projection.ts";
import * as runtimes from "./runtimes.ts";

/** Kinds that are about one run; the others are for the Runtime or one of its projects. */
const OF_RUN: ReadonlySet<CommandKind> = new Set(["approve", "reject", "signal", "retry", "cancel", "resolve"]);
/** Kinds that a run which has ended cannot take. */
const OF_LIVE_RUN: ReadonlySet<CommandKind> = new Set(["signal", "cancel", "resolve"]);
const POLL_ROWS = 100;
const SWEEP_ROWS = 500;

/** What an operator asks. A run names its Runtime; without a run the Runtime is named. */
export type CommandRequest = {
  project: string;
  kind: CommandKind;
  runtimeId?: string | undefined;
  projectId?: string | undefined;
  runId?: string | undefined;
  payload?: unknown;
  idempotencyKey?: string | undefined;
};

/** Sends a command; the same key and request give the first one. */
export async function send(hub: Hub, by: By, request: CommandRequest): Promise<{ command: Command; created: boolean }> {
  const payload = checkPayload(request.kind, request.payload ?? {});
  const { command, created } = await hub.engine.write(request.project, async (tx) => {
    const target = await findTarget(tx, request);
    const { project, kind, idempotencyKey = null } = request;
    const reason = typeof payload["reason"] === "string" ? payload["reason"] : undefined;
    const audit = { role: by.role, reason, origin: by.origin };
    return rules.create(tx, { project, kind, ...target, payload, actor: by.actor, idempotencyKey, audit });
  });
  return { command: commandOf(command), created };
}

/**
 * Unfinished commands of a Runtime behind `after`, oldest first. With `wait` it answers as soon as there is one, or empty at the end of the wait.
 * Reading marks nothing: the Runtime says itself that it has a command.
 */
export async function poll(
  hub: Hub,
  { project, runtimeId, after, limit = POLL_ROWS }: { project: string; runtimeId: string; after: number; limit?: number | undefined },
  wait?: Wait,
): Promise<RuntimeCommand[]> {
  const look = async () => (await hub.engine.read.commands.open(project, runtimeId, after, limit)).map(wireOf);
  if (!wait) return look();
  const ended = AbortSignal.any([wait.until, wait.gone]);
  for (;;) {
    const watch = await watchLog(hub, project, ({ topic, type, data }: EventRow) =>
      topic === "runtimes" && type === "command_sent" && data["runtimeId"] === runtimeId ? true : undefined,
    );
    try {
      const found = await look();
      if (found.length > 0 || !(await watch.first(ended))) return found;
    } finally {
      watch.leave();
    }
  }
}

/** Takes down what a Runtime says of a command. A repeat changes nothing. @throws HubError command_not_found, command_finished, protocol_error */
export async function report(hub: Hub, by: { project: string; runtimeId: string }, id: string, result: rules.CommandResult): Promise<Command> {
  if (result.detail !== undefined && Buffer.byteLength(JSON.stringify(result.detail)) > COMMAND_DETAIL_BYTES_MAX)
    throw new HubError("protocol_error", `detail exceeds ${COMMAND_DETAIL_BYTES_MAX} bytes`);
  const settled = await hub.engine.write(by.project, async (tx) => {
    const command = await rules.settle(tx, by, id, result);
    if (command.state === "refused") await approvals.undecide(tx, command);
    return command;
  });
  return commandOf(settled);
}

/** Ends commands that no Runtime has claimed in time. The loop calls it. @returns how many */
export async function expireUnclaimed(hub: Hub): Promise<number> {
  const due = await hub.engine.read.commands.due(hub.clock(), SWEEP_ROWS);
  const ended = await Promise.all(
    due.map(({ id, project }) =>
      hub.engine.write(project, async (tx) => {
        const expired = await rules.expire(tx, id);
        if (expired) await approvals.undecide(tx, expired);
        return expired;
      }),
    ),
  );
  return ended.filter(Boolean).length;
}

/** One command with its state. @throws HubError command_not_found */
export async function find(read: Stores, id: string): Promise<Command> {
  const command = await read.commands.find(id);
  if (!command) throw new HubError("command_not_found", `there is no command ${id}`);
  return commandOf(command);
}

/** Commands of a run, newest first. */
export async function ofRun(read: Stores, run: SyncRunRow, { after, limit }: { after: number; limit: number }): Promise<RunCommandsAnswer> {
  const rows = await read.commands.ofRun(run.projectId, run.runId, after, limit + 1);
  const shown = rows.slice(0, limit);
  return { commands: shown.map(commandOf), ...(rows.length > limit && { next: shown.at(-1)!.seq }) };
}

/** A command with its state, for people. A prompt is a body: only its length is shown. */
export function commandOf(row: CommandRow): Command {
  const { prompt, ...payload } = row.payload;
  return {
    ...wireOf(row),
    payload: typeof prompt === "string" ? { ...payload, promptCharacters: prompt.length } : payload,
    project: row.project,
    runtimeId: row.runtimeId,
    state: row.state,
    reason: row.result?.["reason"] as string | undefined,
    detail: row.result?.["detail"],
    receivedAt: isoOrNone(row.receivedAt),
    finishedAt: isoOrNone(row.finishedAt),
    expiresAt: iso(row.expiresAt),
  };
}

const wireOf = ({ id, seq, kind, projectId, runId, payload, actor, createdAt }: CommandRow): RuntimeCommand => ({
  id,
  seq,
  kind: kind as CommandKind,
  ...(projectId !== null && { projectId }),
  ...(runId !== null && { runId }),
  payload,
  actor,
  createdAt: iso(createdAt),
});

function checkPayload(kind: CommandKind, payload: unknown): Record<string, unknown> {
  const problem = commandPayloadProblem(kind, payload);
  if (problem !== undefined) throw new HubError("protocol_error", `payload${problem === "/" ? "" : problem} does not fit the kind ${kind}`);
  if (Buffer.byteLength(JSON.stringify(payload)) > COMMAND_PAYLOAD_BYTES_MAX)
    throw new HubError("protocol_error", `payload exceeds ${COMMAND_PAYLOAD_BYTES_MAX} bytes`);
  return payload as Record<string, unknown>;
}

/** Who gets it. @throws HubError protocol_error, run_not_found, run_not_accepting, runtime_not_found */
async function findTarget(tx: Tx, { project, kind, runtimeId, projectId, runId }: CommandRequest) {
  if (runId !== undefined) {
    const run = projectId === undefined ? undefined : await tx.sync.findRun(projectId, runId);
    if (run?.project !== project) throw new HubError("run_not_found", `this project has no run ${runId}`);
    if (runtimeId !== undefined && runtimeId !== run.homeRuntimeId) throw new HubError("protocol_error", "the run lives on another Runtime");
    if (OF_LIVE_RUN.has(kind) && hasEnded(run.status)) throw new HubError("run_not_accepting", `the run is ${run.status}`);
    return { runtimeId: run.homeRuntimeId, projectId: run.projectId, runId };
  }
  if (OF_RUN.has(kind)) throw new HubError("protocol_error", `${kind} needs projectId and runId`);
  if (runtimeId === undefined) throw new HubError("protocol_error", "runtimeId is required");
  if (!(await runtimes.isKnown(tx, project, runtimeId))) throw new HubError("runtime_not_found", `no Runtime ${runtimeId} is known to this project`);
  return { runtimeId, projectId: projectId ?? null, runId: null };
}
