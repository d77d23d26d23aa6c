// What the engine of one project works with: its store, its folders, its clock, and the outside it may reach. Given once, by the supervisor.
import type { Clock } from "../clock.ts";
import type { NewId } from "../ids.ts";
import type { Log } from "../log.ts";
import type { Machine } from "../machine.ts";
import type { Redactor } from "../redact/redactor.ts";
import type { EventStore } from "../store/event-store.ts";
import type { PromptStore } from "../store/prompts.ts";

/** A lease held at the hub for a gate. */
export type HeldLease = {
  resource: string;
  fence: number;
  acquiredAt: string;
  expiresAt: string;
  /** Resolves when the hub no longer grants it. */
  lost: Promise<string>;
  /** Why it counts no more by this machine's clock, although nobody could say so yet: the process slept, say. */
  overdue: () => string | undefined;
  release: () => Promise<void>;
  /** Stops renewing without giving it back: another supervisor may keep it. */
  leave: () => void;
};
export type LeaseWait = { unwanted?: AbortSignal; confirm?: () => void };
/** Leases of the hub this machine is bound to. */
export type LeasePort = {
  /**
   * @param wait.unwanted ends the wait for it
   * @param wait.confirm throws when another supervisor has taken over. Asked before every request: to the hub that one is the same holder
   * @throws Error with a sentence when the lease is not granted
   */
  acquire: (resource: string, wait?: LeaseWait) => Promise<HeldLease>;
  /** @throws Error when it ran out or somebody else had it since */
  keep: (resource: string, fence: number) => Promise<HeldLease>;
};

export type EngineContext = {
  store: EventStore;
  prompts: PromptStore;
  /** The project's root. */
  root: string;
  /** The project's folder in the state root, for attempts and worktrees. */
  folder: string;
  env: Record<string, string | undefined>;
  clock: Clock;
  machine: Machine;
  newId: NewId;
  leases: LeasePort;
  redactor: Redactor;
  log: Log;
};
