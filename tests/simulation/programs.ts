// A simulated machine: programs that answer, fail, hang and die, folders that outlive everything, effects outside that are counted, and worktrees
// that are only names. It obeys the same protocol as the real one: only the shell that makes the folder `go` starts the program.
import { sha256 } from "../../src/protocol/canonical.ts";
import { RuntimeRefusal } from "../../src/protocol/runtime-errors.ts";
import type { LaunchRequest } from "../../src/runtime/harness/launch.ts";
import type { Machine, Programs } from "../../src/runtime/machine.ts";
import { type Bundle, loadBundle } from "../../src/runtime/project/bundle.ts";
import type { Schedule } from "./schedule.ts";

/** Files of a simulated project never change, and reading them is most of the work of a run. */
const bundles = new Map<string, Bundle>();
function loadOnce(root: string): Bundle {
  const bundle = bundles.get(root) ?? loadBundle(root);
  bundles.set(root, bundle);
  return bundle;
}

type Folder = { stdin: string; go: boolean; shell?: number; exit?: number; stdout: string };
type Process = { pid: number; started: string; request: LaunchRequest; alive: boolean; folder: Folder };
/** What a gate did to the world outside. */
export type Effect = {
  runId: string;
  stepId: string;
  attemptId: string;
  fence?: number;
  undone?: boolean;
  /** Somebody else had the lease when the program said that it was done. */
  overtaken?: boolean;
};

/** How a supervisor's process reaches the machine: `point` may be its last moment, `deliver` wakes it if it can be woken. */
export type Reach = {
  point: (name: string) => void;
  mayFreeze: () => void;
  deliver: (work: () => void) => void;
  dead: () => boolean;
  /** Nothing gets through between this machine and the hub. */
  isCutOff: () => boolean;
  /** The disk has no room. */
  isFull: () => boolean;
};
export type Faults = { on: boolean };

/** Deliberate bugs, to see that the checks see them. */
export type MachineBugs = { endsNothing?: boolean; alwaysFails?: boolean };
export type SimulatedMachine = ReturnType<typeof simulatedMachine>;

/** @param newestFence of a resource, as the hub granted it */
export function simulatedMachine(schedule: Schedule, faults: Faults, newestFence: (resource: string) => number, bugs: MachineBugs = {}) {
  const folders = new Map<string, Folder>();
  const processes: Process[] = [];
  const effects: Effect[] = [];
  const starts = new Map<string, number>();
  /** The newest fence each resource outside has seen. */
  const fences = new Map<string, number>();
  const waiting = new Set<() => void>();
  let boot = 1;
  let pids = 100;
  const bootId = () => `boot-${boot}`;
  const look = () => {
    for (const check of [...waiting]) check();
  };
  const alive = (attemptId: string) => processes.filter((one) => one.alive && one.request.attemptId === attemptId);

  function end(process: Process, exit?: number, stdout = "") {
    if (!process.alive) return;
    process.alive = false;
    if (exit !== undefined) Object.assign(process.folder, { exit, stdout });
    look();
  }

  function go(process: Process) {
    if (!process.alive) return;
    if (process.folder.go) return end(process);
    process.folder.go = true;
    const { attemptId } = process.request;
    starts.set(attemptId, (starts.get(attemptId) ?? 0) + 1);
    schedule.after(schedule.between(0, 20), "shell", () => {
      if (!process.alive) return;
      process.folder.shell = process.pid;
      look();
      runProgram(process);
    });
  }

  /** A draw between ends of a program; without faults it always does its work. */
  const fate = (): number => (faults.on || bugs.alwaysFails ? schedule.random() : 1);

  function runProgram(process: Process) {
    const name = process.request.argv[0]!.split("/").at(-1)!;
    const isLong = faults.on && name === "deliver" && schedule.oneIn(6);
    const works = isLong ? schedule.between(6_000, 35_000) : schedule.between(20, 6_000);
    const fated = fate();
    if (fated < 0.05) return; // hangs until it is ended
    if (fated < 0.1) return void schedule.after(works / 2, "dies", () => end(process));
    if (fated < 0.16) return void schedule.after(works / 2, "fails", () => end(process, 1, "no such file"));
    if (name === "deliver") return void schedule.after(works, "effect", () => deliver(process));
    schedule.after(works, "answers", () => {
      if (name === "agent" && fated < 0.22) return end(process, 0, "I am done, passed!");
      const outcome = fated < 0.3 ? "failed" : "passed";
      end(
        process,
        name === "agent" || fated >= 0.3 ? 0 : 1,
        name === "agent" ? `{"outcome":"${outcome}","summary":"${outcome} in ${works} ms"}` : "",
      );
    });
  }

  /** The effect itself, guarded by its fence where it has one; then the program says so, or dies before it can. */
  function deliver(process: Process) {
    if (!process.alive) return;
    const { KXM_RUN_ID, KXM_STEP_ID, KXM_LEASE_RESOURCE, KXM_FENCING_TOKEN } = process.request.env;
    const fence = KXM_FENCING_TOKEN === undefined ? undefined : Number(KXM_FENCING_TOKEN);
    if (fence !== undefined) {
      const newest = fences.get(KXM_LEASE_RESOURCE!) ?? 0;
      if (fence < newest) return end(process, 1, "the fence is old");
      fences.set(KXM_LEASE_RESOURCE!, fence);
    }
    const effect: Effect = { runId: KXM_RUN_ID!, stepId: KXM_STEP_ID!, attemptId: process.request.attemptId, ...(fence !== undefined && { fence }) };
    effects.push(effect);
    const fated = fate();
    if (fated < 0.1) return;
    const finishes = faults.on && schedule.oneIn(6) ? schedule.between(2_000, 30_000) : schedule.between(1, 2_000);
    schedule.after(finishes, "delivered", () => {
      if (fated < 0.2) return end(process);
      if (process.alive && fence !== undefined) effect.overtaken = newestFence(KXM_LEASE_RESOURCE!) > fence;
      end(process, 0, "delivered");
    });
  }

  const folderOf = (path: string): Folder => {
    const folder = folders.get(path) ?? { stdin: "", go: false, stdout: "" };
    folders.set(path, folder);
    return folder;
  };

  /** The machine as one process sees it. */
  function seenBy(reach: Reach): Machine {
    const soon = <T>(label: string, ms: number, value: () => T): Promise<T> =>
      new Promise((resolve, reject) => {
        schedule.after(ms, label, () =>
          reach.deliver(() => {
            try {
              resolve(value());
            } catch (error) {
              reject(error as Error);
            }
          }),
        );
      });
    const over = (done: () => boolean): Promise<void> =>
      new Promise((resolve) => {
        const check = () => {
          if (!done() || !waiting.delete(check)) return;
          schedule.after(schedule.between(0, 25), "seen", () => reach.deliver(resolve));
        };
        waiting.add(check);
        check();
      });
    const ended = (path: string) => {
      const folder = folders.get(path);
      return folder === undefined || folder.exit !== undefined || !processes.some((one) => one.alive && one.folder === folder);
    };
    const programs: Programs = {
      prepareFolder: (path, stdin) => {
        reach.point("prepare");
        if (reach.isFull()) throw Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
        folderOf(path).stdin = stdin;
      },
      launch: (request) => {
        reach.point("before launch");
        const pid = pids++;
        const process = { pid, started: `${bootId()}:${pid}`, request, alive: true, folder: folderOf(request.folder) };
        processes.push(process);
        schedule.after(schedule.between(0, 60), "go", () => go(process));
        reach.point("after launch");
        return { mark: { pid, started: process.started }, ended: over(() => ended(request.folder)) };
      },
      reattach: (path) => over(() => ended(path)),
      hasStarted: (path) => folders.get(path)?.go === true,
      folderExists: (path) => folders.has(path),
      shellPid: (path) => folders.get(path)?.shell,
      exitOf: (path) => folders.get(path)?.exit,
      readOutput: (path) => {
        reach.point("read output");
        const { stdout = "", exit } = folders.get(path) ?? {};
        return { stdout, stderr: "", stdoutDropped: 0, stderrDropped: 0, exitCode: exit };
      },
      clearFolder: (path) => {
        if (!reach.dead()) folders.delete(path);
      },
      bootId,
      startedAt: (pid) => processes.find((one) => one.pid === pid && one.alive)?.started,
      isAlive: ({ pid, started }) => processes.some((one) => one.pid === pid && one.started === started && one.alive),
      markedProcesses: (attemptId) => alive(attemptId).map(({ pid }) => pid),
      endAttempt: async ({ attemptId }, drainMs) => {
        if (reach.dead()) return new Promise<never>(() => {});
        const ends = alive(attemptId);
        const inOrder = drainMs > 0 && schedule.random() < 0.5;
        if (ends.length > 0) await soon("drain", schedule.between(0, Math.max(1, drainMs)), () => undefined);
        if (!bugs.endsNothing) for (const process of alive(attemptId)) end(process, inOrder && process.folder.go ? 143 : undefined);
        return soon("ended", schedule.between(0, 25), () => true);
      },
      find: (program) => `/sim/bin/${program}`,
      version: async () => undefined,
      reports: () => [],
    };
    return { programs, worktrees: worktreesOf(reach, soon), loadBundle: loadOnce };
  }

  function worktreesOf(reach: Reach, soon: <T>(label: string, ms: number, value: () => T) => Promise<T>): Machine["worktrees"] {
    const trouble = () => {
      if (faults.on && schedule.oneIn(40)) throw new RuntimeRefusal("repository_unusable", "git worktree failed (128): simulated");
    };
    return {
      isFolder: () => true,
      pinHeads: () => soon("pin", schedule.between(1, 50), () => ({ main: { base: "a".repeat(40), dirty: false } })),
      requireCommits: () => soon("commits", schedule.between(1, 50), () => {}),
      materialize: () => {
        reach.mayFreeze(); // between what it knows and what it does
        return soon("worktree", schedule.between(1, 400), trouble);
      },
      restore: () => soon("restore", schedule.between(1, 50), () => []),
      capture: (_, { path, trees }) =>
        soon("capture", schedule.between(1, 100), () => {
          const commit = sha256(path.split("/").slice(-2).join("/")).slice(0, 40);
          const changed = { commit, added: [], modified: ["src/app.ts"], deleted: [], linesAdded: 3, linesRemoved: 1 };
          return trees.flatMap(({ id, branch }) => (branch ? [{ repositoryId: id, branch, ...changed }] : []));
        }),
    };
  }

  return {
    seenBy,
    effects,
    /** How often the program of an attempt was started. */
    starts,
    running: (attemptId: string): boolean => alive(attemptId).length > 0,
    /** Programs that still run. */
    orphans: (): string[] => processes.filter((one) => one.alive).map(({ request }) => request.attemptId),
    /** Power goes and comes back: programs are gone, files are not. */
    reboot: () => {
      boot++;
      for (const process of processes.filter((one) => one.alive)) end(process);
    },
  };
}
