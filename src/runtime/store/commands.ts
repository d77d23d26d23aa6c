// Every operation on a run goes through here once: a command id that was seen before gets the first result, whatever happened since.
// A command from the hub, its effect and the cursor are one transaction.
import { canonical, sha256 } from "../../protocol/canonical.ts";
import { RuntimeRefusal } from "../../protocol/runtime-errors.ts";
import { all, bind, columns, insertInto, one, type StoreContext, write } from "./context.ts";

const COMMAND = [
  ...["commandId", "kind", "requestHash", "runId", "source", "actor", "state", "result", "reason", "hub", "hubSeq", "recordedAt", "reportedAt"],
] as const;

export type NewCommand = {
  commandId: string;
  /** What is asked, such as `cancel`. */
  kind: string;
  /** Everything that makes it this command and not another; hashed, not stored. */
  request: unknown;
  runId?: string;
  /** `cli`, `hub`, `engine` … */
  source: string;
  actor: string;
  /** For commands of the hub: which hub and project they came from, and their number there. */
  hub?: { name: string; seq: number };
};
/** What came of a command. `repeated` tells that this is the answer of the first time. */
export type CommandOutcome<T> =
  | { state: "applied"; result: T; repeated: boolean }
  | { state: "refused"; code: string; reason: string; repeated: boolean };
export type CommandRow = {
  commandId: string;
  kind: string;
  runId: string | null;
  source: string;
  actor: string;
  state: "applied" | "refused";
  result: unknown;
  reason: string | null;
  hub: string | null;
  hubSeq: number | null;
  recordedAt: number;
  reportedAt: number | null;
};
type RawCommand = { [K in (typeof COMMAND)[number]]: any };

const readCommand = (raw: RawCommand): CommandRow => ({ ...raw, result: JSON.parse(raw.result) }) as unknown as CommandRow;

/** Runs `work` so that a throw undoes everything it did, and nothing before it. */
export type Savepoint = <T>(work: () => T) => T;

export function commandTable(context: StoreContext, savepoint: Savepoint) {
  const { record, find, latest, unreported, reported, cursor, advance } = commandStatements(context);

  /** The first result of a command that was recorded before. */
  function recall<T>(command: NewCommand, requestHash: string): CommandOutcome<T> | undefined {
    const first = find({ commandId: command.commandId });
    if (!first) return undefined;
    if (first.kind !== command.kind || first.requestHash !== requestHash)
      throw new RuntimeRefusal("command_conflict", `command ${command.commandId} was used for something else before`);
    const result = JSON.parse(first.result);
    return first.state === "applied"
      ? { state: "applied", result, repeated: true }
      : { state: "refused", code: result?.code ?? "command_refused", reason: first.reason, repeated: true };
  }

  return {
    read: {
      find: (commandId: string): CommandRow | undefined => {
        const raw = find({ commandId });
        return raw && readCommand(raw);
      },
      /** Commands, newest first. */
      list: (limit = 100): CommandRow[] => latest({ limit }).map(readCommand),
      /** Commands of a hub whose result it does not know yet, oldest first, at most 100. */
      unreported: (hub: string): CommandRow[] => unreported({ hub }).map(readCommand),
      /** The highest number of that hub's commands that was recorded here; 0 when none was. */
      cursor: (hub: string): number => cursor({ hub })?.seq ?? 0,
    },
    write: {
      /**
       * Does `effect` once per command id and remembers what came of it. A RuntimeRefusal that it throws undoes what it wrote and is itself the
       * remembered outcome; any other throw undoes the whole transaction and nothing is remembered.
       * @throws RuntimeRefusal command_conflict when the id was used for something else
       */
      once: <T>(command: NewCommand, effect: () => T): CommandOutcome<T> => {
        const requestHash = sha256(canonical({ kind: command.kind, runId: command.runId, request: command.request }));
        const first = recall<T>(command, requestHash);
        if (first) {
          if (command.hub) advance({ hub: command.hub.name, seq: command.hub.seq });
          return first;
        }
        try {
          const result = savepoint(effect);
          record(command, requestHash, { state: "applied", result });
          return { state: "applied", result, repeated: false };
        } catch (error) {
          if (!(error instanceof RuntimeRefusal)) throw error;
          record(command, requestHash, { state: "refused", result: { code: error.code }, reason: error.message });
          return { state: "refused", code: error.code, reason: error.message, repeated: false };
        }
      },
      /** The hub has the result. */
      reported: (commandId: string) => reported({ commandId, at: context.now }),
    },
  };
}

function commandStatements(context: StoreContext) {
  const insert = write(context, insertInto("commands", COMMAND));
  const find = one<RawCommand>(context, `select ${columns(COMMAND)} from commands where command_id = $commandId`);
  const latest = all<RawCommand>(context, `select ${columns(COMMAND)} from commands order by recorded_at desc, command_id desc limit $limit`);
  const unreported = all<RawCommand>(
    context,
    `select ${columns(COMMAND)} from commands where hub = $hub and reported_at is null order by hub_seq limit 100`,
  );
  const reported = write(context, "update commands set reported_at = $at where command_id = $commandId and reported_at is null");
  const cursor = one<{ seq: number }>(context, "select seq from command_cursors where hub = $hub");
  const advance = write(context, "insert into command_cursors (hub, seq) values ($hub, $seq) on conflict (hub) do update set seq = max(seq, $seq)");
  function record(command: NewCommand, requestHash: string, outcome: { state: string; result: unknown; reason?: string }) {
    const { hub, ...rest } = command;
    insert(
      bind(COMMAND, {
        ...rest,
        requestHash,
        state: outcome.state,
        reason: outcome.reason,
        result: JSON.stringify(outcome.result ?? null),
        hub: hub?.name,
        hubSeq: hub?.seq,
        recordedAt: context.now,
      }),
    );
    if (hub) advance({ hub: hub.name, seq: hub.seq });
  }

  return { record, find, latest, unreported, reported, cursor, advance };
}
