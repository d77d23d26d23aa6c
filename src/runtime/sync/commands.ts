// Commands of the hub's operators: fetched by a long poll that this side opens, done once in one local transaction with the cursor, and answered.
import { backoffMs } from "../../client/backoff.ts";
import { HubRefusal } from "../../client/http.ts";
import type { CommandResult, RuntimeClient } from "../../client/runtime-client.ts";
import { RuntimeRefusal } from "../../protocol/runtime-errors.ts";
import type { RuntimeCommand } from "../../protocol/sync.ts";
import type { Project } from "../contract.ts";
import type { Log } from "../log.ts";
import type { Registry } from "../registry.ts";

const POLL_WAIT_MS = 25_000;
/** After a failure an operator should not wait minutes for the hub that is back. */
const POLL_BACKOFF = { firstMs: 500, maxMs: 30_000 };
const DETAIL_CHARS_MAX = 8_192;

/** What came of a command, as the hub hears it. */
export type Applied =
  | { state: "applied"; result: unknown; repeated: boolean }
  | { state: "refused"; code: string; reason: string; repeated: boolean };
export type CommandSource = {
  /** Names the hub and its project: numbers of another one mean nothing here. */
  hub: string;
  registry: Registry;
  /** Open projects. */
  projects(): Project[];
  /** Does a command in a project's store. @throws RuntimeRefusal store_… when the store cannot take it now */
  apply(project: Project, command: RuntimeCommand, hub: { name: string; seq: number }): Applied;
  /** Where a command belongs, or why nowhere. @throws RuntimeRefusal */
  target(command: RuntimeCommand): Project;
  /** Makes a text fit to leave the machine. */
  leaving(text: string): string;
  log: Log;
};

export type CommandPoll = ReturnType<typeof commandPoll>;

/** The poll of one hub project. `once` is one round; the caller repeats it. */
export function commandPoll(source: CommandSource, options: { random?: () => number } = {}) {
  const { hub, registry, log } = source;
  let failures = 0;
  /** After a start or a failure the hub is asked for everything unfinished: what was done before is only answered again. */
  let fromStart = true;

  const { reportOpen, received } = reporter(source);
  const { performAll, refuse } = performer(source);

  return {
    /**
     * Reports what is open, waits for commands, does each and reports it.
     * @returns milliseconds to wait before the next round: 0 after a good one
     */
    once: async (client: RuntimeClient, waitMs = POLL_WAIT_MS): Promise<number> => {
      try {
        await reportOpen(client);
        const cursors = source.projects().map(({ store }) => store.read.commands.cursor(hub));
        const after = fromStart ? 0 : Math.max(0, registry.refusedCursor(hub), ...cursors);
        const { known, unknown } = await client.commands(after, fromStart ? 0 : waitMs);
        for (const command of known) await received(client, command.id);
        const trouble = performAll(known);
        for (const command of unknown) refuse(command, "command_refused", `this Runtime's version does not know ${command.kind}`);
        await reportOpen(client);
        if (trouble) throw trouble; // what is left is asked for again, from the start
        fromStart = false;
        failures = 0;
        return 0;
      } catch (error) {
        fromStart = true;
        failures++;
        const wait = error instanceof HubRefusal ? error.retryAfterSeconds : undefined;
        if (failures === 1) log("command_poll_failed", { level: "warn", reason: (error as Error).message });
        return backoffMs(failures, wait, { ...POLL_BACKOFF, random: options.random });
      }
    },
  };
}

/** Tells the hub what became of commands. */
function reporter(source: CommandSource) {
  const { hub, registry } = source;
  async function report(client: RuntimeClient, commandId: string, result: CommandResult) {
    try {
      await client.result(commandId, result);
    } catch (error) {
      if (!isFinal(error)) throw error;
      // The hub ended the command already, or does not know it, or does not like the detail: without it there is one more try, and then nobody to tell.
      if (result.detail === undefined || error.code === "command_finished" || error.code === "command_not_found") return;
      await report(client, commandId, { ...result, detail: undefined });
    }
  }

  /** Tells what an earlier round, or an earlier process, could not tell. */
  async function reportOpen(client: RuntimeClient) {
    for (const { store } of source.projects())
      for (const row of store.read.commands.unreported(hub)) {
        await report(client, row.commandId, resultOf(row, source.leaving));
        store.commit((tx) => tx.commands.reported(row.commandId));
      }
    for (const { commandId, reason } of registry.unreportedRefusals(hub)) {
      await report(client, commandId, { state: "refused", reason });
      registry.refusalReported(commandId);
    }
  }
  return { reportOpen, received: (client: RuntimeClient, id: string) => report(client, id, { state: "received" }) };
}

/** Does commands, once each, or refuses them. */
function performer(source: CommandSource) {
  const { hub, registry, log } = source;
  const refuse = ({ id, seq }: { id: string; seq: number }, code: string, reason: string) =>
    registry.refuseCommand({ commandId: id, hub, hubSeq: seq, code, reason });

  /**
   * Does all of them, in order. A project whose store cannot take one now gets none of the later ones either; the others go on.
   * @returns why some were left, if any were
   */
  function performAll(commands: RuntimeCommand[]): unknown {
    const stuck = new Set<string>();
    let trouble: unknown;
    for (const command of commands)
      try {
        perform(command, stuck);
      } catch (error) {
        trouble ??= error;
      }
    return trouble;
  }

  /** @param stuck keys of projects that take none now */
  function perform(command: RuntimeCommand, stuck: Set<string>) {
    const name = { commandId: command.id, kind: command.kind, runId: command.runId };
    let project: Project;
    try {
      project = source.target(command);
    } catch (error) {
      if (!(error instanceof RuntimeRefusal)) throw error;
      refuse(command, error.code, error.message); // nothing here can take it: the operator is told rather than left waiting
      return log("command_refused", { ...name, code: error.code, reason: error.message });
    }
    if (stuck.has(project.key)) return;
    try {
      const applied = source.apply(project, command, { name: hub, seq: command.seq });
      log("command_done", { ...name, state: applied.state, ...(applied.state === "refused" && { code: applied.code, reason: applied.reason }) });
    } catch (error) {
      if (!(error instanceof RuntimeRefusal) || isPassing(error)) {
        stuck.add(project.key);
        throw error;
      }
      refuse(command, error.code, error.message);
      log("command_refused", { ...name, code: error.code, reason: error.message });
    }
  }
  return { performAll, refuse };
}

/** A refusal that the same report would get again. Credentials and the hub's own trouble pass. */
const isFinal = (error: unknown): error is HubRefusal => error instanceof HubRefusal && [400, 404, 409, 413].includes(error.status);

/** A store that cannot write now may write later: the command stays at the hub. */
const isPassing = (error: RuntimeRefusal) => error.code === "store_unavailable" || error.code === "store_fenced";

function resultOf(row: { state: "applied" | "refused"; result: unknown; reason: string | null }, leaving: (text: string) => string): CommandResult {
  if (row.state === "refused") return { state: "refused", reason: leaving(row.reason ?? "refused").slice(0, 1000) };
  if (row.result === null || row.result === undefined) return { state: "applied" };
  const detail = leaving(JSON.stringify(row.result));
  try {
    return { state: "applied", detail: detail.length > DETAIL_CHARS_MAX ? { truncated: true } : JSON.parse(detail) };
  } catch {
    return { state: "applied", detail: { omitted: true } }; // what was taken out broke the JSON: say nothing rather than half
  }
}
