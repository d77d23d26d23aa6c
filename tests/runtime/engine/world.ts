// A real project for engine tests: a Git repository, stores on disk, the engine in this process, commands applied as the supervisor applies them.
import { setDefaultTimeout } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { RuntimeRefusal } from "../../../src/protocol/runtime-errors.ts";
import { type CommandKind, commandPayloadProblem } from "../../../src/protocol/sync.ts";
import { syncEventProblem } from "../../../src/protocol/sync-event.ts";
import { type Clock, systemClock } from "../../../src/runtime/clock.ts";
import type { Engine, EngineParts, Project } from "../../../src/runtime/contract.ts";
import { engineMaker } from "../../../src/runtime/engine/engine.ts";
import type { RunView } from "../../../src/runtime/engine/view.ts";
import { waitFor } from "../../../src/runtime/harness/process.ts";
import { newId } from "../../../src/runtime/ids.ts";
import { thisMachine } from "../../../src/runtime/machine.ts";
import { knownSecrets } from "../../../src/runtime/redact/known-secrets.ts";
import { createRedactor } from "../../../src/runtime/redact/redactor.ts";
import { type EventStore, openEventStore } from "../../../src/runtime/store/event-store.ts";
import type { EventRow } from "../../../src/runtime/store/events.ts";
import { openPromptStore } from "../../../src/runtime/store/prompts.ts";

// Real processes on a machine that others use, too.
setDefaultTimeout(60_000);

export const PROJECT_ID = "prj_engine_test";
const PROJECT_FILE = `schema: kxm.project.v1\nid: ${PROJECT_ID}\nname: demo\ndefaultWorkflow: main\ndefaultHarness: echo\n`;
const RUNTIME_ID = "rtm_0123456789abcdef01234567";

/** Writes files of a project, by path below its root. Text may be an object, which is written as JSON (which is YAML). */
export type Files = Record<string, string | object>;
export type World = Awaited<ReturnType<typeof openWorld>>;

export const sh = (cwd: string, script: string): string => {
  const { stdout, stderr, exitCode } = Bun.spawnSync(["/bin/sh", "-ec", script], { cwd, stderr: "pipe" });
  if (exitCode !== 0) throw new Error(`${script}: ${stderr.toString()}`);
  return stdout.toString().trim();
};

/** Steps of the workflow `main`, or whole files. */
export async function openWorld(
  files: Files,
  options: {
    commit?: boolean;
    hub?: () => { url: string; project: string; token?: string } | undefined;
    leaseTtlMs?: number;
    leaseRenewMs?: number;
    workerWaits?: { firstMs: number; maxMs: number };
    secrets?: string[];
    /** Of the engine and its stores. */
    clock?: Clock;
    /** Puts the empty state folder on a disk of its own; answers how to take it off. */
    stateOn?: (folder: string) => () => void;
  } = {},
) {
  const base = mkdtempSync("/dev/shm/kxm-engine-");
  const root = join(base, "checkout");
  const put = (path: string, content: string | object) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), typeof content === "string" ? content : JSON.stringify(content, null, 1));
  };
  put(".kxm/project.yaml", PROJECT_FILE);
  for (const [path, content] of Object.entries(files)) put(path, content);
  sh(root, "git init -q -b main && git config user.name Test && git config user.email test@localhost");
  if (options.commit !== false) sh(root, "git add -A && git commit -qm start");

  const { clock = systemClock } = options;
  const known = knownSecrets();
  for (const secret of options.secrets ?? []) known.add(secret, "env");
  const redactor = createRedactor(known);
  const logged: { event: string; reason?: string }[] = [];
  let generation = 0;
  let project!: Project;
  let engine!: Engine;
  const apply = (kind: CommandKind, payload: object, runId?: string, commandId: string = newId("cmd")): any => {
    const outcome = project.store.commit((tx) =>
      tx.commands.once({ commandId, kind, runId, request: payload, source: "cli", actor: "tester" }, () => {
        const problem = commandPayloadProblem(kind, payload);
        if (problem) throw new RuntimeRefusal("runtime_protocol_error", problem);
        const effect = engine.effects[kind] as any;
        return effect(tx, { commandId, kind, runId, payload, actor: "tester", source: "cli" }, project) ?? null;
      }),
    );
    if (outcome.state === "refused") throw new RuntimeRefusal(outcome.code as never, outcome.reason);
    return outcome.result;
  };
  const parts: EngineParts = {
    runtimeId: RUNTIME_ID,
    version: "0.0.0",
    clock,
    machine: thisMachine,
    newId,
    redactor,
    remember: () => {},
    folder: join(base, "state"),
    log: (event, members) => void logged.push({ event, ...members }),
    hub: () => options.hub?.(),
    apply: () => ({ state: "refused", repeated: false }),
  };
  /** The commit at which this supervisor is gone, counted from 1, and whether that is just before or just after it. */
  let crash: { at: number; phase: "before" | "after" } | undefined;
  let commits = 0;
  let vanished = false;
  let takeOff: (() => void) | undefined;
  let crashed = Promise.withResolvers<void>();
  const crashing = (store: EventStore): EventStore => {
    const gone = () => {
      vanished = true;
      engine.closed(project);
      crashed.resolve();
    };
    return new Proxy(store, {
      get: (target, name) => {
        if (name !== "commit") return Reflect.get(target, name);
        return (rule: Parameters<EventStore["commit"]>[0]) => {
          commits++;
          const here = crash?.at === commits;
          if (here && crash!.phase === "before") {
            gone();
            throw new Error("the supervisor is gone");
          }
          const value = target.commit(rule);
          if (here) gone();
          return value;
        };
      },
    });
  };
  const open = () => {
    generation++;
    const folder = join(base, "state");
    if (generation === 1) {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      takeOff = options.stateOn?.(folder);
    }
    const store = openEventStore({
      path: join(folder, "run-events.db"),
      projectId: PROJECT_ID,
      runtimeId: RUNTIME_ID,
      generation,
      redactor,
      clock,
      newId,
    });
    const prompts = openPromptStore(join(folder, "prompts.db"), { redactor, clock });
    project = { key: "0".repeat(24), projectId: PROJECT_ID, name: "demo", root, store: crashing(store), prompts, folder };
    engine = engineMaker({
      ...(options.workerWaits && { workerWaits: options.workerWaits }),
      ...(options.leaseTtlMs && { ttlMs: options.leaseTtlMs }),
      ...(options.leaseRenewMs && { renewMs: options.leaseRenewMs }),
    })(parts);
    engine.opened(project);
  };
  open();
  const route = (method: string, path: string) => engine.routes.find((one) => one.method === method && one.path === path)!;
  const call = async (
    method: "GET" | "POST",
    path: string,
    params: Record<string, string> = {},
    more: { query?: string; body?: object } = {},
  ): Promise<any> =>
    route(method, path).answer({
      params: { projectKey: project.key, ...params },
      query: new URLSearchParams(more.query ?? ""),
      body: (more.body ?? {}) as any,
      signal: AbortSignal.timeout(20_000),
    });
  const view = async (runId: string): Promise<RunView> => (await call("GET", "/v1/projects/:projectKey/runs/:runId/view", { runId })).run;
  const events = (runId: string): EventRow[] => project.store.read.events.after(runId, 0, 10_000);

  /** Resolves with the run's view once `condition` holds; looks again at each commit. */
  async function until(runId: string, condition: (run: RunView) => boolean, limitMs = 15_000): Promise<RunView> {
    const deadline = performance.now() + limitMs;
    for (;;) {
      const now = await view(runId);
      if (condition(now)) return now;
      const left = deadline - performance.now();
      if (left <= 0) throw new Error(`run ${runId} stays ${now.status} (${now.reason ?? ""})\n${describe(events(runId))}\n${JSON.stringify(logged)}`);
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, Math.min(left, 200));
      const stop = project.store.onAppend(() => resolve());
      await promise;
      clearTimeout(timer);
      stop();
    }
  }

  return {
    base,
    root,
    put,
    logged,
    get project() {
      return project;
    },
    get engine() {
      return engine;
    },
    apply,
    call,
    view,
    events,
    until,
    /** Submits work and answers the run it became. */
    start: async (payload: { prompt?: string; workflowId?: string; displayTitle?: string; intakeKey?: string } = {}): Promise<string> => {
      const { intakeId } = apply("start", payload);
      const { intake } = await call("GET", "/v1/projects/:projectKey/intake/:intakeId", { intakeId }, { query: "waitMs=10000" });
      if (!intake.runId) throw new RuntimeRefusal("project_invalid", intake.reason ?? intake.state);
      return intake.runId;
    },
    finished: (runId: string, limitMs?: number) => until(runId, ({ status }) => ["completed", "failed", "cancelled"].includes(status), limitMs),
    /** As a supervisor that is gone from one moment to the next: nothing is recorded, nothing is ended. */
    vanish: () => {
      engine.closed(project);
      project.store.close();
      project.prompts.close();
    },
    reopen: open,
    /** Makes the supervisor vanish at its nth commit from now on. Resolves when it has. */
    crashAt: (at: number, phase: "before" | "after"): Promise<void> => {
      crash = { at, phase };
      commits = 0;
      crashed = Promise.withResolvers();
      return crashed.promise;
    },
    noCrash: () => {
      crash = undefined;
      return commits;
    },
    /** Resolves once the log has a line of this event. */
    loggedEvent: async (event: string) => {
      if (!(await waitFor(() => logged.some((line) => line.event === event), 20_000)))
        throw new Error(`nothing logged ${event}: ${JSON.stringify(logged)}`);
    },
    get gone() {
      return vanished;
    },
    /** Events that the hub would get; each must be valid. */
    outbox: () => {
      const rows = project.store.read.outbox.pending(0, 10_000).map(({ syncEvent }) => JSON.parse(syncEvent));
      return rows.map((row) => ({ ...row, problem: syncEventProblem(row) }));
    },
    [Symbol.asyncDispose]: async () => {
      await engine.stop(5000);
      try {
        project.store.close();
        project.prompts.close();
      } catch {}
      takeOff?.();
      rmSync(base, { recursive: true, force: true });
    },
  };
}

/** Events in short, for a failing test. */
export const describe = (events: EventRow[]): string =>
  events
    .map(
      ({ sequence, eventType, payload: { status, stepId, outcome, reason, attemptId } }) =>
        `${sequence} ${eventType} ${[stepId, status, outcome, attemptId?.slice(-6), reason].filter(Boolean).join(" ")}`,
    )
    .join("\n");

/** A workflow file of steps. */
export const workflow = (steps: object[], more: object = {}): object => ({ schema: "kxm.workflow.v1", ...more, steps });
/** An agent that runs a shell script: the prompt comes on its stdin. */
export const script = (text: string, more: object = {}): object => ({
  schema: "kxm.agent.v1",
  purpose: "a script",
  harness: "command",
  command: ["/bin/sh", "-c", text],
  ...more,
});
export const gates = (all: Record<string, object>): object => ({ schema: "kxm.gate-registry.v1", gates: all });
export const PASSED = `echo '{"outcome":"passed","summary":"done"}'`;
