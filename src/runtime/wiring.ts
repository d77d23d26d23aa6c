// Puts the parts of a Runtime together: engine, open projects and sync over one registry. The supervisor does so with the machine it runs on; the
// simulation with clocks, a network, stores and a machine of its own.
import type { StatePaths } from "../client/state-paths.ts";
import { RuntimeRefusal } from "../protocol/runtime-errors.ts";
import type { RuntimeCommand } from "../protocol/sync.ts";
import type { Clock } from "./clock.ts";
import { applyCommand } from "./command-effects.ts";
import type { Engine, EngineParts, MakeEngine, Project } from "./contract.ts";
import type { NewId } from "./ids.ts";
import type { Log } from "./log.ts";
import type { Machine } from "./machine.ts";
import { openProjects, type Projects } from "./projects.ts";
import type { KnownSecrets } from "./redact/known-secrets.ts";
import type { Redactor } from "./redact/redactor.ts";
import type { Registry } from "./registry.ts";
import type { openEventStore } from "./store/event-store.ts";
import { type BindingSource, tokenFor } from "./sync/binding.ts";
import { createSync, type Sync } from "./sync/loop.ts";

/** Everything a Runtime is made of that can be another thing in a test. */
export type RuntimeParts = {
  version: string;
  makeEngine: MakeEngine;
  paths: StatePaths;
  registry: Registry;
  /** The place this process holds in the registry. */
  generation: number;
  known: KnownSecrets;
  redactor: Redactor;
  binding: BindingSource;
  clock: Clock;
  machine: Machine;
  newId: NewId;
  random?: () => number;
  log: Log;
  syncIntervalMs: number;
  /** Replaces fetch towards the hub. */
  fetch?: (request: Request) => Promise<Response>;
  openStore?: typeof openEventStore;
};
export type Wired = { engine: Engine; projects: Projects; sync: Sync };

/** Starts nothing: `projects.refresh` opens what is registered, `sync.start` begins to talk. */
export function wire(parts: RuntimeParts): Wired {
  const { makeEngine, paths, registry, generation, redactor, newId, binding, openStore, fetch, version, syncIntervalMs } = parts;
  const { clock, random, log } = parts;
  const engine: Engine = makeEngine(engineParts(parts, () => engine));
  const startedAt = new Date(clock.now()).toISOString();
  const projects = openProjects({
    ...{ clock, random, log, registry, generation, newId, redactor, openStore },
    paths: paths.project,
    onOpen: (project) => {
      project.store.onAppend(() => sync.wake());
      engine.opened(project);
    },
    onClose: (project) => engine.closed(project),
  });
  const commands = {
    registry,
    apply: (project: Project, { id, kind, runId, payload, actor }: RuntimeCommand, hub: { name: string; seq: number }) => {
      const applied = applyCommand(engine.effects, project, { commandId: id, kind, runId, payload, actor, source: "hub" }, hub);
      if (kind === "sync-retry") sync.retryNow(); // what was parked waits for no event of its own
      return applied;
    },
    leaving: (text: string) => redactor.leaving(text).text,
  };
  const report = () => ({ startedAt, ...engine.report() });
  const sync = createSync({
    ...{ clock, random, log, runtimeId: registry.runtimeId, version, projects, binding, commands, report, fetch },
    intervalMs: syncIntervalMs,
  });
  return { engine, projects, sync };
}

function engineParts(parts: RuntimeParts, engine: () => Engine): EngineParts {
  const { registry, version, clock, machine, newId, redactor, known, paths, log, binding, fetch } = parts;
  return {
    ...{ runtimeId: registry.runtimeId, version, clock, machine, newId, redactor, log },
    remember: (secret, kind) => known.add(secret, kind),
    folder: paths.runtime,
    hub: (project) => {
      const bound = binding.read();
      if (!bound) return undefined;
      const name = project?.hubProject ?? bound.project;
      return { url: bound.url, project: name, token: tokenFor(bound, name), fetch };
    },
    apply: (project, command) => applyCommand(engine().effects, project, command),
  };
}

/**
 * Beats until the record is somebody else's. A beat that cannot be written is told once: the process is still the owner.
 * @returns how to end it
 */
export function heartbeats(
  { registry, generation, log, clock }: Pick<RuntimeParts, "registry" | "generation" | "log" | "clock">,
  everyMs: number,
  lost: (error: RuntimeRefusal) => void,
): () => void {
  let failing = false;
  let callOff = () => {};
  const beat = () => {
    callOff = clock.after(everyMs, beat);
    try {
      registry.beat(generation);
      failing = false;
    } catch (error) {
      if (error instanceof RuntimeRefusal && error.code === "runtime_superseded") {
        callOff();
        return lost(error);
      }
      if (!failing) log("heartbeat_failed", { level: "warn", reason: String((error as Error).message) });
      failing = true;
    }
  };
  callOff = clock.after(everyMs, beat);
  return () => callOff();
}
