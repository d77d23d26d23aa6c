// Plays one seed: two Runtimes, a hub, people and a minute in which everything goes wrong; then peace, in which everything must come to rest.
import { mkdtempSync, rmSync } from "node:fs";
import type { EffectClass } from "../../src/protocol/project-files.ts";
import { isOver } from "../../src/runtime/engine/execution.ts";
import type { OpenProject } from "../../src/runtime/projects.ts";
import {
  doubleStarts,
  executionOf,
  failuresSince,
  ignoranceOfHub,
  lengths,
  nothingSeen,
  openRuns,
  restless,
  runsOf,
  type Seen,
  wrongsOfHub,
  wrongsOfMachine,
} from "./checks.ts";
import { type HubBugs, simulatedHub } from "./hub.ts";
import { type SimulatedOperator, simulatedOperator } from "./operator.ts";
import type { Faults, MachineBugs } from "./programs.ts";
import { type SimulatedRuntime, type StoreBugs, simulatedRuntime, type Workplace, workplace } from "./runtimes.ts";
import { openSchedule, type Schedule } from "./schedule.ts";

export type Bugs = HubBugs & MachineBugs & StoreBugs;
const CHAOS_MS = 60_000;
/** With the faults gone what was appended is at the hub within the first time, every process runs within the next, every run rests within the last. */
const DRAIN_MS = 60_000;
const START_MS = 120_000;
const REST_MS = 300_000;
const CHECK_MS = 8_000;
const RUNTIMES = 2;

const agent = (more = {}) => ({ schema: "kxm.agent.v1", purpose: "works", harness: "command", command: ["agent"], timeoutMs: 15_000, ...more });
const workflow = (steps: object[], more = {}) => ({ schema: "kxm.workflow.v1", ...more, steps });
const SHIP = {
  ...{ id: "ship", kind: "gate", gate: "deliver", maxAttempts: 4 },
  on: { passed: "$terminal", "implementation-failure": { target: "$terminal", terminalStatus: "failed" } },
};
const FILES: Record<string, object> = {
  ".kxm/agents/writer.yaml": agent({ tools: "workspace-writer" }),
  ".kxm/agents/reader.yaml": agent(),
  ".kxm/agents/other.yaml": agent(),
  ".kxm/agents/echo.yaml": { schema: "kxm.agent.v1", purpose: "says it again", harness: "echo" },
  ".kxm/workflows/main.yaml": workflow(
    [
      { id: "build", kind: "agent", agent: "writer", repositories: { main: "write" }, on: { passed: "test" } },
      { id: "test", kind: "gate", gate: "tests", on: { passed: "ship", "implementation-failure": { target: "build", maxTransitions: 2 } } },
      SHIP,
    ],
    { limits: { maxTransitions: 12, maxRunDurationMs: 3_600_000 } },
  ),
  ".kxm/workflows/panel.yaml": workflow([
    {
      id: "review",
      kind: "moa",
      assignments: { allowedAgents: ["reader", "other"], target: 3, maximum: 4 },
      join: { strategy: "quorum", minimumPassed: 2 },
      on: { passed: "decide" },
    },
    { id: "decide", kind: "approval", on: { passed: "ship" } },
    SHIP,
  ]),
  ".kxm/workflows/signal.yaml": workflow([
    { id: "ask", kind: "agent", agent: "reader", on: { passed: "wait" } },
    { id: "wait", kind: "wait", signal: "go", timeoutMs: 600_000, on: { passed: "ship" } },
    SHIP,
  ]),
  ".kxm/workflows/race.yaml": workflow([
    {
      id: "race",
      kind: "moa",
      repositories: { main: "write" },
      assignments: { allowedAgents: ["writer"], target: 2, maximum: 3 },
      join: { strategy: "first-success", cancelRemaining: true },
      on: { passed: "ship" },
    },
    SHIP,
  ]),
  ".kxm/workflows/quick.yaml": workflow([
    { id: "one", kind: "agent", agent: "echo", on: { passed: "two" } },
    { id: "two", kind: "agent", agent: "reader" },
  ]),
};
const gatesFile = (effect: EffectClass) => ({
  schema: "kxm.gate-registry.v1",
  gates: {
    tests: { argv: ["tests"], timeoutMs: 15_000 },
    deliver: { argv: ["deliver"], timeoutMs: 45_000, lease: "branch:main", effect },
  },
});
const projectFile = (id: string, maxConcurrentRuns: number) => ({
  schema: "kxm.project.v1",
  id,
  name: "Simulated",
  defaultWorkflow: "main",
  defaultHarness: "echo",
  limits: { maxConcurrentRuns },
});
/** The name of a Runtime's agent ends in a hash of where its checkout lies: a folder with a random name. */
const AGENT_NAME = /(runtime-\d{8})-[0-9a-f]{6}/;
const PROJECTS = Array.from({ length: RUNTIMES }, (_, index) => `prj_simulated_${index + 1}`);

/**
 * What all seeds share: checkouts, and the state that Runtimes start with. Dispose of it at the end.
 * @param effect what the project says of the gate that delivers; anything but the truth is a deliberate bug
 */
export function openStage(effect: EffectClass = "external-non-idempotent") {
  const folder = mkdtempSync("/dev/shm/kxm-sim-stage-");
  const workplaces = PROJECTS.map((id, index) =>
    workplace(folder, index + 1, id, { ...FILES, ".kxm/gates.yaml": gatesFile(effect), ".kxm/project.yaml": projectFile(id, RUNTIMES - index) }),
  );
  return { workplaces, [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) };
}

type World = {
  schedule: Schedule;
  faults: Faults;
  hub: Awaited<ReturnType<typeof simulatedHub>>;
  runtimes: SimulatedRuntime[];
  operators: SimulatedOperator[];
  seen: Seen;
  wrong: string[];
};
export type Played = { seed: number; wrong: string[]; trace: string; lines: string[]; ended: number; runs: number };

/**
 * @param bugs deliberate ones, that the checks must find
 * @param look is shown every project at the end
 */
export async function play(seed: number, workplaces: Workplace[], bugs: Bugs = {}, look?: (project: OpenProject) => void): Promise<Played> {
  const schedule = openSchedule(seed);
  const faults: Faults = { on: true };
  const hub = await simulatedHub(schedule, faults, bugs);
  const runtimes = workplaces.slice(0, schedule.oneIn(3) ? 2 : 1).map((at) => simulatedRuntime({ at, schedule, faults, hub, bugs }));
  const operators = runtimes.map((runtime) => simulatedOperator(schedule, hub, runtime));
  const world: World = { schedule, faults, hub, runtimes, operators, seen: nothingSeen(), wrong: [] };
  try {
    for (const { begin } of runtimes) await begin();
    plan(world);
    await until(world, CHAOS_MS);
    await peace(world);
    const runs = runtimes.flatMap((runtime) => {
      const project = runtime.project();
      return project ? runsOf(project).map((runId) => executionOf(project, runId)) : [];
    });
    schedule.trace.push(...runtimes.flatMap(story));
    for (const run of runs) schedule.trace.push(`${run.runId} ${run.status} ${run.lastSequence} ${run.reason ?? ""}`.replace(AGENT_NAME, "$1"));
    const trace = schedule.hash();
    if (look) for (const { project } of runtimes) if (project()) look(project()!);
    return { seed, wrong: [...new Set(world.wrong)], trace, lines: schedule.trace, ended: runs.filter(isOver).length, runs: runs.length };
  } finally {
    for (const { close } of runtimes) close();
    await hub.close();
  }
}

/** Everything that will go wrong, and everything that people do meanwhile. */
function plan({ schedule, runtimes, operators, hub }: World) {
  const sometime = (label: string, work: () => unknown) => schedule.after(schedule.between(0, CHAOS_MS), label, work);
  operators.forEach((operator, index) => {
    const runtime = runtimes[index]!;
    for (let run = schedule.oneIn(8) ? 4 : schedule.between(1, 3); run > 0; run--)
      schedule.after(schedule.between(0, 30_000), "start", operator.start);
    for (let look = 8; look > 0; look--) sometime("operator", () => operator.lookAfter(true));
    if (schedule.oneIn(3)) {
      sometime("pause", operator.pause);
      schedule.after(CHAOS_MS, "resume", operator.resume);
    }
    for (let times = schedule.between(0, 3); times > 0; times--) sometime("kill", runtime.kill);
    if (schedule.oneIn(3)) sometime("freeze", () => runtime.freeze(schedule.between(1_000, 45_000)));
    if (schedule.oneIn(4)) sometime("stop in order", runtime.stopInOrder);
    if (schedule.oneIn(6)) sometime("reboot", runtime.reboot);
    if (schedule.oneIn(4)) sometime("start beside", runtime.startBeside);
    if (schedule.oneIn(4)) sometime("cut off", () => runtime.cutOff(schedule.between(5_000, 60_000)));
    if (schedule.oneIn(4)) sometime("the disk is full", () => runtime.fillDisk(schedule.between(1_000, 20_000)));
    if (schedule.oneIn(3)) sometime("clock jumps", () => runtime.jump(schedule.between(-7_200_000, 7_200_000)));
  });
  for (let times = schedule.between(0, 3); times > 0; times--) sometime("the hub is killed", () => hub.restart(schedule.between(100, 15_000)));
}

/** Plays on and looks at everything again and again. */
async function until(world: World, end: number, over: () => boolean = () => false) {
  const { schedule, wrong } = world;
  while (schedule.now < end && wrong.length === 0 && !over()) {
    await schedule.play(Math.min(end, schedule.now + CHECK_MS));
    await check(world);
  }
}

async function check({ schedule, runtimes, hub, seen, wrong }: World) {
  wrong.push(...schedule.troubles);
  for (const runtime of runtimes) wrong.push(...wrongsOfMachine(runtime, seen), ...doubleStarts(runtime), ...(await wrongsOfHub(hub, runtime, seen)));
}

/** Nothing fails any more. First everything comes to rest by itself; then people answer everything, and everything ends. */
async function peace(world: World) {
  const { schedule, faults, hub, runtimes, operators, wrong } = world;
  faults.on = false;
  for (const { settleClock } of runtimes) settleClock();
  const backlog = () => runtimes.map((runtime) => runtime.project()?.store.read.outbox.pending(0, 1)[0]?.seq);
  const drained = (before: (number | undefined)[]) =>
    backlog().every((seq, index) => seq === undefined || (before[index] !== undefined && seq > before[index]));
  const undone = () => operators.flatMap((operator) => operator.wrongs());
  // The dead start again, the frozen are replaced.
  await until(world, schedule.now + START_MS, () => runtimes.every((runtime) => runtime.project() !== undefined) && undone().length === 0);
  if (runtimes.some((runtime) => runtime.project() === undefined)) wrong.push("no process runs");
  if (wrong.length > 0) return;
  // A pause that was asked for before a resume may have come behind it.
  runtimes.forEach((runtime, index) => runtime.project()!.store.read.controls.pause() && operators[index]!.resume());
  const newest = runtimes.map((runtime) => runtime.project()?.store.read.outbox.pending(0, 100_000).at(-1)?.seq ?? 0);
  await until(world, schedule.now + DRAIN_MS, () => drained(newest));
  if (!drained(newest)) wrong.push(`rows are still pending after ${DRAIN_MS} ms without faults`);
  const calm = new Map(runtimes.flatMap((runtime) => lengths(runtime.project()!)));
  const unrest = () =>
    runtimes.flatMap((runtime) => {
      const project = runtime.project();
      return project ? restless(project) : ["no process runs"];
    });
  await until(world, schedule.now + REST_MS, () => unrest().length === 0);
  if (wrong.length === 0) wrong.push(...unrest());
  const open = () =>
    runtimes.flatMap((runtime) => {
      const project = runtime.project();
      return project ? openRuns(project) : ["none"];
    });
  for (let round = 0; round < 60 && wrong.length === 0 && open().length > 0; round++) {
    for (const { lookAfterAll } of operators) lookAfterAll();
    await until(world, schedule.now + 20_000, () => open().length === 0);
  }
  await until(world, schedule.now + DRAIN_MS, () => backlog().every((seq) => seq === undefined) && undone().length === 0);
  if (wrong.length > 0) return;
  if (open().length > 0) wrong.push(`${open().join(", ")} never ended`);
  wrong.push(...undone());
  const ignorance = async () => (await Promise.all(runtimes.map((runtime) => ignoranceOfHub(hub, runtime)))).flat();
  for (const end = schedule.now + DRAIN_MS; schedule.now < end && (await ignorance()).length > 0; ) await until(world, schedule.now + CHECK_MS);
  wrong.push(...(await ignorance()), ...runtimes.flatMap((runtime) => failuresSince(runtime.project()!, calm)));
  for (const { machine } of runtimes) wrong.push(...machine.orphans().map((attemptId) => `the program of ${attemptId} still runs`));
}

/** The events of every run, for a person who reads about a failed seed. */
function story(runtime: SimulatedRuntime): string[] {
  const project = runtime.project();
  const told = (project ? runsOf(project) : []).flatMap((runId) =>
    project!.store.read.events.after(runId, 0, 10_000).map(({ sequence, eventType, payload }) => {
      const { stepId, status, outcome, attemptId, reason, summary } = payload;
      return `${runId}/${sequence} ${eventType} ${[stepId, status, outcome, attemptId, reason, summary].filter(Boolean).join(" | ")}`;
    }),
  );
  return [...told, ...runtime.machine.effects.map((effect) => `effect ${JSON.stringify(effect)}`)];
}
