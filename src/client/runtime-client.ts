// What a Runtime asks of the hub: presence, sync and commands. Typed from the protocol; each call is one request, and retrying is the caller's decision.
import { SYNC_BATCH_MAX } from "../protocol/limits.ts";
import type { PresenceAnswer, RuntimeCommand, RuntimeReport, SyncAnswer } from "../protocol/sync.ts";
import { isCommandsAnswer, isRuntimeCommand, isSyncAnswer } from "../protocol/sync-guards.ts";
import { ask, type Connection, HubUnreachable } from "./http.ts";

/** Which Runtime speaks, and for which project of the hub. */
export type RuntimeIdentity = { project: string; runtimeId: string; host?: string; version?: string };
/** What became of a command. */
export type CommandResult = { state: "received" | "applied" | "refused"; reason?: string; detail?: unknown };

const PRESENCE_TIMEOUT_MS = 10_000;
const PUSH_TIMEOUT_MS = 30_000;
/** A poll may take as long as it was asked to wait, and then a little. */
const POLL_GRACE_MS = 10_000;

/** Above everything a hub has to say to a Runtime at once: a hundred commands of 64 KiB. */
const ANSWER_BYTES_MAX = 8_388_608;

export type RuntimeClient = ReturnType<typeof runtimeClient>;

/** @throws (each call) HubRefusal, HubUnreachable (also for an answer of another shape than agreed), HubTimeout */
export function runtimeClient(to: Connection, identity: RuntimeIdentity, options: { signal?: AbortSignal } = {}) {
  const { project, runtimeId, host, version } = identity;
  const { signal } = options;
  const maxBytes = ANSWER_BYTES_MAX;
  // A Runtime has a bucket of its own at the hub's rate limit, so that its backlog does not use up that of the agents on this machine.
  const headers = { "x-kxm-agent-id": runtimeId };
  const shaped = <T>(value: unknown, is: (value: unknown) => value is T): T => {
    if (is(value)) return value;
    throw new HubUnreachable(to.url, "its answer has another shape than agreed");
  };
  return {
    /** Says that this Runtime lives, and how it goes. */
    presence: async (report?: RuntimeReport): Promise<PresenceAnswer> => {
      const body = { project, runtimeId, host, version, report };
      const answer = await ask<PresenceAnswer>(to, "POST", "/v1/runtime/presence", {
        body,
        headers,
        timeoutMs: PRESENCE_TIMEOUT_MS,
        signal,
        maxBytes,
      });
      return answer.body;
    },
    /** Pushes sync events, at most 100, given as the exact JSON that is kept. */
    push: async (events: string[]): Promise<SyncAnswer> => {
      if (events.length > SYNC_BATCH_MAX) throw new RangeError(`at most ${SYNC_BATCH_MAX} events a request`);
      const json = `{"project":${JSON.stringify(project)},"runtimeId":${JSON.stringify(runtimeId)},"events":[${events.join(",")}]}`;
      const answer = await ask<unknown>(to, "POST", "/v1/sync/events", { json, headers, timeoutMs: PUSH_TIMEOUT_MS, signal, maxBytes });
      return shaped(answer.body, isSyncAnswer);
    },
    /**
     * Waits for commands with a higher number than `after`. Items that this version does not understand come back apart, so that they can be refused.
     * @param waitMs 0..30000
     */
    commands: async (after: number, waitMs: number): Promise<{ known: RuntimeCommand[]; unknown: { id: string; seq: number; kind: string }[] }> => {
      const query = { project, runtimeId, after, waitMs };
      const answer = await ask<unknown>(to, "GET", "/v1/runtime/commands", { query, headers, timeoutMs: waitMs + POLL_GRACE_MS, signal, maxBytes });
      const { commands } = shaped(answer.body, isCommandsAnswer);
      const known = commands.filter(isRuntimeCommand);
      const others = commands.filter((item): item is { id: string; seq: number; kind?: unknown } => !isRuntimeCommand(item) && isNumbered(item));
      return { known, unknown: others.map(({ id, seq, kind }) => ({ id, seq, kind: String(kind) })) };
    },
    /** Tells what became of a command. */
    result: async (commandId: string, result: CommandResult): Promise<void> => {
      const body = { project, runtimeId, ...result };
      const path = `/v1/runtime/commands/${encodeURIComponent(commandId)}/result`;
      await ask(to, "POST", path, { body, headers, timeoutMs: PRESENCE_TIMEOUT_MS, signal, maxBytes });
    },
  };
}

const isNumbered = (item: unknown): item is { id: string; seq: number } => {
  const { id, seq } = (item ?? {}) as { id?: unknown; seq?: unknown };
  return typeof id === "string" && Number.isSafeInteger(seq);
};
