// The supervisor: the one owner of this user's runs on this machine. It holds the registry's record by a generation, keeps every store open, serves the
// local API, syncs, and stops itself at once when somebody else took over.
import { homedir } from "node:os";
import { proofOf } from "../client/local-runtime.ts";
import { type StatePaths, stateRoot } from "../client/state-paths.ts";
import { sha256 } from "../protocol/canonical.ts";
import type { RuntimeRefusal } from "../protocol/runtime-errors.ts";
import { type Clock, systemClock } from "./clock.ts";
import { applyCommand } from "./command-effects.ts";
import type { Engine, EngineParts, MakeEngine, Project } from "./contract.ts";
import { type NewId, newId } from "./ids.ts";
import { serveLocalApi } from "./local-api.ts";
import { supervisorRoutes } from "./local-routes.ts";
import { openLog } from "./log.ts";
import { type Machine, thisMachine } from "./machine.ts";
import { createPrivate, prepareStateRoot, readPrivate, writePrivate } from "./paths.ts";
import { startOf } from "./process-identity.ts";
import type { Projects } from "./projects.ts";
import { knownSecrets } from "./redact/known-secrets.ts";
import { createRedactor } from "./redact/redactor.ts";
import { scanFiles } from "./redact/scan.ts";
import { HEARTBEAT_MS, openRegistry, type Registry, SUPERVISOR_STALE_MS } from "./registry.ts";
import { type BindingSource, bindingSource } from "./sync/binding.ts";
import { type Sync, syncInterval } from "./sync/loop.ts";
import { heartbeats, type RuntimeParts, wire } from "./wiring.ts";

/** A clean stop takes at most this long. */
const STOP_MS = 5_000;

export type SupervisorOptions = {
  env: Record<string, string | undefined>;
  version: string;
  makeEngine: MakeEngine;
  /** State root; by default that of the environment. */
  root?: string;
  clock?: Clock;
  machine?: Machine;
  newId?: NewId;
  random?: () => number;
  staleMs?: number;
  heartbeatMs?: number;
};
/** Why a supervisor ended. */
export type Ended = { reason: "asked" | "superseded"; error?: RuntimeRefusal };
export type Supervisor = {
  runtimeId: string;
  generation: number;
  port: number;
  token: string;
  paths: StatePaths;
  projects: Projects;
  sync: Sync;
  /** Resolves when it has ended, by `stop`, by the local API, or because another one took over. */
  ended: Promise<Ended>;
  stop(): Promise<void>;
};

/**
 * Starts the supervisor of a state root and returns when it serves.
 * @throws RuntimeRefusal runtime_supervisor_conflict, state_root_unsafe, store_unavailable (the registry), state_file_invalid
 */
export async function startSupervisor(options: SupervisorOptions): Promise<Supervisor> {
  const { env, version, clock = systemClock, heartbeatMs = HEARTBEAT_MS, staleMs = SUPERVISOR_STALE_MS } = options;
  const paths = prepareStateRoot(options.root ?? stateRoot(env));
  const known = knownSecrets();
  known.addEnvironment(env); // before anything can be written
  const token = await supervisorToken(paths);
  known.add(token, "runtime-token");
  const redactor = createRedactor(known, { folders: [homedir(), paths.root] });
  const registry = openRegistry(paths.registry, { clock, staleMs });
  let generation: number;
  try {
    generation = await take(registry, { heartbeatMs, tokenHash: sha256(token), version });
  } catch (error) {
    registry.close();
    throw error;
  }
  const { log, close: closeLog } = openLog(paths.log, { clock, redactor });
  const parts: RuntimeParts = {
    ...{ version, makeEngine: options.makeEngine, paths, registry, generation, known, redactor, clock, log, random: options.random },
    binding: bindingSource(paths, env, known),
    machine: options.machine ?? thisMachine,
    newId: options.newId ?? newId,
    syncIntervalMs: syncInterval(env["KXM_RUNTIME_SYNC_INTERVAL_MS"]),
  };
  return await serve({ parts, token, heartbeatMs }, closeLog).catch((error) => {
    log("start_failed", { level: "error", reason: String(error?.message ?? error) });
    registry.release(generation);
    registry.close();
    throw error;
  });
}

/** Takes the record. A supervisor that is there but silent is watched for two heartbeats first: it may only have been asleep. */
async function take(
  registry: Registry,
  { heartbeatMs, tokenHash, version }: { heartbeatMs: number; tokenHash: string; version: string },
): Promise<number> {
  const candidate = { pid: process.pid, pidStarted: startOf(process.pid), tokenHash, version };
  if (registry.liveness() !== "silent") return registry.acquire(candidate);
  const { generation, heartbeatAt } = registry.supervisor();
  await Bun.sleep(2 * heartbeatMs);
  return registry.acquire(candidate, { generation, heartbeatAt });
}

/** What a serving supervisor has beyond its parts. */
type Held = { parts: RuntimeParts; token: string; heartbeatMs: number };

async function serve({ parts, token, heartbeatMs }: Held, closeLog: () => void): Promise<Supervisor> {
  const { paths, registry, generation, log, binding, version } = parts;
  const ending = Promise.withResolvers<Ended>();
  const { engine, projects, sync } = wire(parts);
  learnTokens(binding);
  let stopping: Promise<void> | undefined;
  const stop = (end: Ended): Promise<void> => {
    stopping ??= (async () => {
      stopBeating();
      await sync.stop();
      if (end.reason === "superseded") projects.closeAll(); // the runs' processes are the new owner's
      await engine.stop(end.reason === "asked" ? STOP_MS : 0);
      projects.closeAll();
      await api.stop();
      registry.release(generation);
      log("runtime_stopped", { generation, state: end.reason, ...(end.error && { reason: end.error.message }) });
      registry.close();
      closeLog();
      ending.resolve(end);
    })();
    return stopping;
  };
  const asked = () => stop({ reason: "asked" });
  const routes = supervisorRoutes({
    registry,
    projects,
    sync,
    binding,
    engine,
    version,
    stop: asked,
    generation,
    apply: applier(engine),
    scan: (signal) =>
      scanFiles(
        [...projects.entries().flatMap(({ row }) => filesOf(paths, row.projectKey)), paths.registry, paths.log, `${paths.log}.1`],
        parts.redactor,
        signal,
      ),
  });
  const api = serveLocalApi({ routes: [...routes, ...engine.routes], token, log, proof: (nonce) => proofOf(token, nonce) });
  registry.listening(generation, api.port);
  projects.refresh();
  const stopBeating = heartbeats(parts, heartbeatMs, (error) => void stop({ reason: "superseded", error }));
  log("runtime_started", { generation, port: api.port, version });
  sync.start();
  return { runtimeId: registry.runtimeId, generation, port: api.port, token, paths, projects, sync, ended: ending.promise, stop: asked };
}

const filesOf = (paths: StatePaths, key: string): string[] => {
  const { events, prompts } = paths.project(key);
  return [events, prompts];
};

/** The saved tokens are secrets before the first event can be written. A broken file is told by the status, and has no token to know. */
function learnTokens(binding: BindingSource) {
  try {
    binding.read();
  } catch {} // sync reads it again and says why it cannot
}

const applier = (engine: Engine) => (project: Project, command: Parameters<EngineParts["apply"]>[1]) =>
  applyCommand(engine.effects, project, command);

const TOKEN = /^kxr_[A-Za-z0-9_-]{43}$/;
const TOKEN_WAIT_MS = 1_000;

/**
 * The token of this state root: made once, by whichever of several Runtimes that start at the same time comes first, and the same for all of them,
 * so that one that loses the race cannot change it under the one that won.
 */
async function supervisorToken(paths: StatePaths): Promise<string> {
  const made = `kxr_${crypto.getRandomValues(new Uint8Array(32)).toBase64({ alphabet: "base64url", omitPadding: true })}`;
  if (createPrivate(paths.token, `${made}\n`)) return made;
  for (const began = performance.now(); performance.now() - began < TOKEN_WAIT_MS; await Bun.sleep(20)) {
    const kept = readPrivate(paths.token)?.trim();
    if (kept && TOKEN.test(kept)) return kept; // empty while the one that makes it is writing
  }
  writePrivate(paths.token, `${made}\n`); // it died while writing
  return made;
}
