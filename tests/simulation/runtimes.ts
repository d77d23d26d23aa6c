// A Runtime of a simulation: state files that outlive everything, and one process after another over them, each of which may be killed at any commit and
// any touch of the machine, stopped and continued, or ended in order. Everything inside is the product's own code.
import { Database } from "bun:sqlite";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { RuntimeRefusal } from "../../src/protocol/runtime-errors.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import { applyCommand } from "../../src/runtime/command-effects.ts";
import type { ProjectCommand } from "../../src/runtime/contract.ts";
import { engineMaker } from "../../src/runtime/engine/engine.ts";
import type { RuntimeIdPrefix } from "../../src/runtime/ids.ts";
import { canonicalRoot, prepareStateRoot, privateFolder, projectKey } from "../../src/runtime/paths.ts";
import type { OpenProject } from "../../src/runtime/projects.ts";
import { knownSecrets } from "../../src/runtime/redact/known-secrets.ts";
import { createRedactor } from "../../src/runtime/redact/redactor.ts";
import { openRegistry, type Registry } from "../../src/runtime/registry.ts";
import { type EventStore, openEventStore, type StoreOptions, type StoreTx } from "../../src/runtime/store/event-store.ts";
import { openPromptStore } from "../../src/runtime/store/prompts.ts";
import { heartbeats, type Wired, wire } from "../../src/runtime/wiring.ts";
import { HUB_URL, type SimulatedHub, STARTED } from "./hub.ts";
import { type Faults, type MachineBugs, type Reach, simulatedMachine } from "./programs.ts";
import type { Schedule } from "./schedule.ts";

const HEARTBEAT_MS = 5_000;
const STALE_MS = 15_000;
/** What people may set, and what only tests may: every process draws its own. */
const SYNC_MS = [4_000, 10_000, 10_000, 60_000];
const LEASE_TIMING = [
  { ttlMs: 60_000, renewMs: 15_000 },
  { ttlMs: 40_000, renewMs: 10_000 },
];
const STOP_MS = 5_000;
/** One touch in so many is a process's last. */
const LAST_TOUCH = 250;
/** Around the start of a program there is most to lose. */
const LAST_LAUNCH = 80;
const COMMIT_TROUBLE = 60;
/** One worktree in so many is where a process falls asleep. */
const LONG_SLEEP = 40;

/** What of a process's log a person wants to see who reads what happened in a seed. */
const TOLD = new Set(["engine_failed", "attempt_failed", "command_refused", "store_unavailable"]);

/** Thrown into a process that has just been killed; nobody outlives it to see it. */
class Killed extends Error {}

/** Deliberate bugs, to see that the checks see them. */
export type StoreBugs = { dropsOutboxRows?: boolean; forgetsIntents?: boolean; staysOn?: boolean; overlooksOthers?: boolean };
export type SimulatedRuntime = ReturnType<typeof simulatedRuntime>;
type Process = {
  pid: number;
  state: "running" | "stopped" | "dead";
  held: (() => void)[];
  /** When it went on the last time after it had been stopped. */
  woke: number;
  wired?: Wired;
  close: (() => void)[];
  stores: EventStore[];
};

/** A checkout with the files of a project; nothing writes in it. */
function checkout(folder: string, projectId: string, files: Record<string, object>): string {
  const root = join(folder, projectId);
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), JSON.stringify(content));
  }
  return root;
}

/** Where a Runtime of every seed works, and the state it starts with: a folder of empty stores, made once, since most of opening one is to make it. */
export type Workplace = { number: number; projectId: string; root: string; fresh: string };

/** @param folder for the checkout and the state; whoever made it removes it */
export function workplace(folder: string, number: number, projectId: string, files: Record<string, object>): Workplace {
  const root = checkout(folder, projectId, files);
  const fresh = join(folder, `fresh-${number}`);
  const paths = prepareStateRoot(fresh);
  const runtimeId = idOf(number);
  nameRuntime(paths.registry, runtimeId);
  const { folder: own, events, prompts } = paths.project(projectKey(canonicalRoot(root)));
  privateFolder(own);
  const options = { redactor: createRedactor(knownSecrets()), clock: NEVER, newId: () => "", projectId, runtimeId, generation: 0 };
  openEventStore({ path: events, ...options }).close();
  openPromptStore(prompts, options).close();
  return { number, projectId, root, fresh };
}
const idOf = (number: number) => `rtm_${String(number).repeat(24)}`;
const NEVER: Clock = { now: () => STARTED, monotonicNs: () => 0, after: () => () => {} };

export type RuntimeSetup = {
  at: Workplace;
  schedule: Schedule;
  faults: Faults;
  hub: SimulatedHub;
  bugs: MachineBugs & StoreBugs;
};

export function simulatedRuntime({ at: { number, root, projectId, fresh }, schedule, faults, hub, bugs }: RuntimeSetup) {
  const folder = mkdtempSync("/dev/shm/kxm-sim-");
  cpSync(fresh, join(folder, "state"), { recursive: true });
  const paths = prepareStateRoot(join(folder, "state"));
  const machine = simulatedMachine(schedule, faults, hub.newestFence, bugs);
  const runtimeId = idOf(number);
  const processes: Process[] = [];
  let skew = 0;
  let ids = 0;
  let diskUntil = 0;
  let cutUntil = 0;
  const newId = (prefix: RuntimeIdPrefix) => `${prefix}_${number}${"0".repeat(15)}${String(++ids).padStart(16, "0")}`;
  const current = (): Process | undefined => (processes.at(-1)?.state === "running" ? processes.at(-1) : undefined);

  function kill(process: Process, why: string) {
    if (process.state === "dead") return;
    schedule.trace.push(`${schedule.now} ${number} is killed ${why}`);
    process.state = "dead";
    process.held = [];
    const away = faults.on && schedule.oneIn(8) ? schedule.between(8_000, 45_000) : schedule.between(500, 8_000);
    schedule.after(away, `${number} starts`, begin);
  }

  function freeze(process: Process, ms: number) {
    schedule.trace.push(`${schedule.now} ${number} freezes`);
    process.state = "stopped";
    schedule.after(STALE_MS + HEARTBEAT_MS, `${number} starts beside`, begin);
    schedule.after(ms, `${number} continues`, () => {
      if (process.state !== "stopped") return;
      process.state = "running";
      process.woke = schedule.now;
      process.held.splice(0).forEach((work, index) => schedule.after(index, "late", () => reachOf(process).deliver(work)));
    });
  }

  const reachOf = (process: Process): Reach => ({
    dead: () => process.state === "dead",
    point: (name) => {
      if (process.state === "dead") throw new Killed();
      if (!faults.on || !schedule.oneIn(name.endsWith("launch") ? LAST_LAUNCH : LAST_TOUCH)) return;
      kill(process, name);
      throw new Killed();
    },
    mayFreeze: () => {
      if (process.state === "running" && faults.on && schedule.oneIn(LONG_SLEEP)) freeze(process, schedule.between(1_000, 45_000));
    },
    deliver: (work) => {
      if (process.state === "stopped") process.held.push(work);
      else if (process.state === "running") work();
    },
    isCutOff: () => faults.on && schedule.now < cutUntil,
    isFull: () => faults.on && schedule.now < diskUntil,
  });

  function clockOf(reach: Reach): Clock {
    return {
      now: () => Math.floor(STARTED + schedule.now + skew),
      monotonicNs: () => schedule.now * 1e6,
      after: (ms, work) => schedule.after(ms, `${number} timer`, () => reach.deliver(work)),
    };
  }

  /** The real store; a commit may be a process's last act, fail, or fail and have happened all the same. */
  function openStore(process: Process, options: StoreOptions): EventStore {
    const store = openEventStore(bugs.staysOn ? { ...options, generation: 1 } : options);
    process.stores.push(store);
    const trouble = (why: string) => new RuntimeRefusal("store_unavailable", `the disk: ${why}`);
    const commit: EventStore["commit"] = (rule) => {
      if (process.state === "dead") throw new Killed();
      const fate = faults.on ? schedule.between(0, COMMIT_TROUBLE * 4) : -1;
      if (fate === 0 || fate === 1) {
        kill(process, fate === 0 ? "before a commit" : "after a commit");
        if (fate === 1) store.commit(rule);
        throw new Killed();
      }
      if (fate === 2) diskUntil = Math.max(diskUntil, schedule.now + schedule.between(100, 5_000));
      if (faults.on && schedule.now < diskUntil) throw trouble("no room");
      const value = bugs.forgetsIntents ? forgettingIntents(store, rule) : store.commit(rule);
      if (bugs.dropsOutboxRows && fate > 0 && fate < 20) dropRow(options.path);
      if (fate === 4) throw trouble("written, and nobody can tell");
      return value;
    };
    return new Proxy(store, { get: (target, name) => (name === "commit" ? commit : Reflect.get(target, name)) });
  }

  async function begin(): Promise<void> {
    if (processes.at(-1)?.state !== "running") start();
  }

  /** @param silent what the record said when this start looked first, and found the one before it silent */
  function start(silent?: { generation: number; heartbeatAt: number | null }): void {
    const before = processes.at(-1);
    const process: Process = { pid: processes.length + 1, state: "running", held: [], woke: 0, close: [], stores: [] };
    const reach = reachOf(process);
    const clock = clockOf(reach);
    const isSame = (pid: number) => !bugs.overlooksOthers && processes[pid - 1]?.state !== "dead";
    const registry = openRegistry(paths.registry, { clock, staleMs: STALE_MS, isSame });
    const later = (ms: number, work: () => unknown) => {
      registry.close();
      schedule.after(ms, `${number} tries to start again`, work);
    };
    if (!silent && registry.liveness() === "silent") {
      const { generation, heartbeatAt } = registry.supervisor();
      later(2 * HEARTBEAT_MS, () => start({ generation, heartbeatAt })); // it may only have been asleep
      return;
    }
    const generation = take(registry, process.pid, silent);
    if (generation === undefined) {
      later(5_000, begin);
      return;
    }
    if (before?.state === "running" && schedule.now - before.woke > HEARTBEAT_MS)
      schedule.troubles.push(`${number}: a second supervisor took the place of one that runs`);
    processes.push(process);
    process.close.push(() => registry.close());
    try {
      open(process, { registry, generation, clock, reach });
    } catch (error) {
      if (!(error instanceof Killed)) throw error;
    }
  }

  function open(process: Process, of: { registry: Registry; generation: number; clock: Clock; reach: Reach }) {
    const { registry, generation, clock, reach } = of;
    const known = knownSecrets();
    const wired = wire({
      version: "1.0.0",
      makeEngine: engineMaker(schedule.pick(LEASE_TIMING)),
      paths,
      registry,
      generation,
      known,
      redactor: createRedactor(known),
      binding: { read: () => BINDING } as never,
      clock,
      machine: machine.seenBy(reach),
      newId,
      random: schedule.random,
      log: (event, members) => {
        if (TOLD.has(event)) schedule.trace.push(`${schedule.now} ${number} ${event} ${members?.reason ?? ""}`);
      },
      syncIntervalMs: schedule.pick(SYNC_MS),
      fetch: hub.fetchFor(reach),
      openStore: (options) => openStore(process, options),
    });
    process.wired = wired;
    wired.projects.refresh();
    if (registry.projectsForRuntime(registry.runtimeId).length === 0)
      wired.projects.register({ root: canonicalRoot(root), projectId, name: `Project ${number}` });
    const stopBeating = heartbeats({ registry, generation, clock, log: () => {} }, HEARTBEAT_MS, () => !bugs.staysOn && leave(process));
    process.close.push(stopBeating);
    wired.sync.start();
  }

  /** As the supervisor does when it hears that another one took over. */
  function leave({ wired, state }: Process) {
    if (state === "dead" || !wired) return;
    void wired.sync.stop();
    wired.projects.closeAll();
    void wired.engine.stop(0);
  }

  async function stopInOrder() {
    const process = current();
    if (!process?.wired) return;
    const { sync, engine, projects } = process.wired;
    void sync.stop();
    await engine.stop(STOP_MS);
    if (process.state === "dead") return;
    projects.closeAll();
    process.state = "dead";
    schedule.after(schedule.between(500, 5_000), `${number} starts`, begin);
  }

  return {
    number,
    runtimeId,
    projectId,
    machine,
    begin,
    /** Kills the process between two steps of its own. */
    kill: () => {
      const process = current();
      if (process) kill(process, "between two steps");
    },
    stopInOrder,
    /** Stops the process as SIGSTOP does; it goes on after so long, perhaps behind another one's back. */
    freeze: (ms: number) => {
      const process = current();
      if (process) freeze(process, ms);
    },
    /** Somebody starts a second one while it runs. */
    startBeside: () => start(),
    /** Nothing gets through to the hub and back for so long. */
    cutOff: (ms: number) => {
      cutUntil = Math.max(cutUntil, schedule.now + ms);
    },
    /** The disk has no room for so long. */
    fillDisk: (ms: number) => {
      diskUntil = Math.max(diskUntil, schedule.now + ms);
    },
    reboot: () => {
      machine.reboot();
      for (const process of processes) if (process.state !== "dead") kill(process, "by a power cut");
    },
    jump: (ms: number) => {
      skew += ms;
    },
    /** Its clock is right again. */
    settleClock: () => {
      skew = 0;
    },
    /** The project as the process that runs now has it open; undefined while none does. */
    project: (): OpenProject | undefined => {
      const open = current()?.wired?.projects.open()[0];
      return open;
    },
    /** A command from the command line here, tried until the store takes it. */
    apply: (command: ProjectCommand): boolean => {
      const process = current();
      const [project] = process?.wired?.projects.open() ?? [];
      if (!process?.wired || !project) return false;
      try {
        applyCommand(process.wired.engine.effects, project, command);
        return true;
      } catch (error) {
        if (error instanceof Killed || (error instanceof RuntimeRefusal && error.code.startsWith("store_"))) return false;
        throw error;
      }
    },
    close: () => {
      for (const process of processes) {
        process.state = "dead";
        void process.wired?.sync.stop();
        for (const part of [...process.stores, ...process.close.map((close) => ({ close }))])
          try {
            part.close();
          } catch {} // closed already
      }
      rmSync(folder, { recursive: true, force: true });
    },
  };

  /** The record, or undefined while another process has it. */
  function take(registry: Registry, pid: number, silent?: { generation: number; heartbeatAt: number | null }): number | undefined {
    try {
      return registry.acquire({ pid, pidStarted: "then", tokenHash: "none", version: "1.0.0" }, silent);
    } catch (error) {
      if (error instanceof RuntimeRefusal && error.code === "runtime_supervisor_conflict") return undefined;
      throw error;
    }
  }
}

/** Ids of Runtimes are random; a simulation has its own. */
function nameRuntime(path: string, runtimeId: string) {
  openRegistry(path, { clock: NEVER }).close();
  const db = new Database(path);
  db.query("update supervisor set runtime_id = ?").run(runtimeId);
  db.close();
}

/** Deliberate bug: the row of the last event is not there, as if it had been written in a transaction of its own. */
function dropRow(path: string) {
  const db = new Database(path);
  db.run("delete from outbox where seq = (select max(seq) from outbox where acked_at is null)");
  db.close();
}

/** Deliberate bug: an intent counts as written before it is, so the act comes first. */
function forgettingIntents<T>(store: EventStore, rule: (tx: StoreTx) => T): T {
  let value: T;
  try {
    return store.commit((tx) => {
      let intends = false;
      const append: StoreTx["append"] = (runId, event) => {
        intends ||= event.type === "effect.intent_recorded";
        return tx.append(runId, event);
      };
      value = rule({ ...tx, append });
      if (intends) throw new Killed();
      return value;
    });
  } catch (error) {
    if (!(error instanceof Killed)) throw error;
    return value!;
  }
}

const BINDING = { url: HUB_URL, project: "demo" };
