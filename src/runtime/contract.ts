// What the supervisor and an engine promise each other. The supervisor owns stores, commands, sync and the local API; the engine makes runs go on.
import type { CommandKind, CommandPayload, RuntimeReport } from "../protocol/sync.ts";
import type { Clock } from "./clock.ts";
import type { HubAddress } from "./hub-agent.ts";
import type { NewId } from "./ids.ts";
import type { LocalRoute } from "./local-route.ts";
import type { Log } from "./log.ts";
import type { Machine } from "./machine.ts";
import type { Redactor } from "./redact/redactor.ts";
import type { EventStore, StoreTx } from "./store/event-store.ts";
import type { PromptStore } from "./store/prompts.ts";

/** A checkout on this machine, registered and open. */
export type Project = {
  /** 24 hex digits that name the checkout here; the id may be shared by several checkouts. */
  readonly key: string;
  readonly projectId: string;
  readonly name: string;
  /** Canonical folder of the checkout. */
  readonly root: string;
  /** The project of the hub it reports to; undefined is that of the machine's binding. */
  readonly hubProject?: string;
  readonly store: EventStore;
  readonly prompts: PromptStore;
  /** Its folder in the state root, where attempts and worktrees lie. */
  readonly folder: string;
};

/** Who asks for what: from the hub's operators or from the command line here, always through the same effects. */
export type ProjectCommand<K extends CommandKind = CommandKind> = {
  commandId: string;
  kind: K;
  runId?: string;
  payload: CommandPayload<K>;
  /** For the record, such as `operator:ana`. */
  actor: string;
  source: "hub" | "cli";
};
/**
 * What a command does, inside the transaction that also records the command and moves the hub's cursor: it may only use `tx` and the project's
 * stores, synchronously. Its result is the command's detail, at most 8 KiB of JSON, and may reach the hub.
 * @throws RuntimeRefusal to refuse; then nothing of it is written and the operator reads the sentence
 */
export type CommandEffect<K extends CommandKind> = (tx: StoreTx, command: ProjectCommand<K>, project: Project) => unknown;
export type CommandEffects = { [K in CommandKind]: CommandEffect<K> };

/** What an engine gets once, before any project. */
export type EngineParts = {
  runtimeId: string;
  version: string;
  clock: Clock;
  machine: Machine;
  newId: NewId;
  redactor: Redactor;
  /** Registers a secret before it can appear anywhere, such as an agent's key. */
  remember(secret: string, kind: string): void;
  /** Private folder of the Runtime, for files of the engine's own. */
  folder: string;
  log: Log;
  /**
   * Where the hub of a checkout (or of the machine) is and what to show it, if this machine is bound to one. Asked anew each time: the binding may
   * change, and checkouts may report to different projects of the hub.
   */
  hub(project?: Project): HubAddress | undefined;
  /** The same transaction, effect and answer as a command from the hub: for the engine's own decisions that must happen once. */
  apply(
    project: Project,
    command: ProjectCommand,
  ): { state: "applied" | "refused"; repeated: boolean; result?: unknown; reason?: string; code?: string };
};

/** An engine. The supervisor calls; nothing here is called before `opened` or after `stop`. */
export type Engine = {
  effects: CommandEffects;
  /** A project's store is open and ours: recover and go on with its runs. Called again when the store was opened anew. */
  opened(project: Project): void;
  /** The project's store is gone or lost (folder moved, disk, fence): let its processes be, write nothing more, forget it. */
  closed(project: Project): void;
  /** Routes of the local API beyond the supervisor's own. */
  routes: LocalRoute[];
  /** For the presence report. */
  report(): Pick<RuntimeReport, "slots" | "harnesses">;
  /** Ends cleanly: processes drained or left to be found again. Resolves within the time given. @param withinMs 0 or more */
  stop(withinMs: number): Promise<void>;
};
export type MakeEngine = (parts: EngineParts) => Engine;
