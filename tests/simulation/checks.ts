// What must hold in a simulation at every moment, and at its end. Reads the stores as they are on disk, never what a process believes.
import { canonical } from "../../src/protocol/canonical.ts";
import { isTerminal } from "../../src/protocol/workflow-file.ts";
import type { Execution } from "../../src/runtime/engine/execution.ts";
import { load } from "../../src/runtime/engine/load.ts";
import type { OpenProject } from "../../src/runtime/projects.ts";
import type { EventRow } from "../../src/runtime/store/events.ts";
import { fold, type RunState } from "../../src/runtime/store/projection.ts";
import type { SimulatedHub } from "./hub.ts";
import type { Effect } from "./programs.ts";
import type { SimulatedRuntime } from "./runtimes.ts";

const ALL = 100_000;

/** What was seen before: the hash of every event by run, how far each run had come, and up to where the hub was compared. */
export type Seen = { hashes: Map<string, string[]>; runs: Map<string, string>; atHub: Map<string, number> };
export const nothingSeen = (): Seen => ({ hashes: new Map(), runs: new Map(), atHub: new Map() });

export const runsOf = ({ store }: OpenProject): string[] => store.read.runs.list({ limit: 1000 }).map(({ runId }) => runId);
export const executionOf = ({ store }: OpenProject, runId: string): Execution => load({ store }, runId);

/** Everything that is wrong with a machine now. Runs to which nothing has happened since the last look are left out. */
export function wrongsOfMachine(runtime: SimulatedRuntime, seen: Seen): string[] {
  const project = runtime.project();
  if (!project) return [];
  return project.store.read.runs.list({ limit: 1000 }).flatMap(({ runId, state }) => {
    const effects = runtime.machine.effects.filter((effect) => effect.runId === runId && !effect.undone);
    const now = `${state.lastSequence} ${effects.length}`;
    if (seen.runs.get(runId) === now) return [];
    seen.runs.set(runId, now);
    const events = project.store.read.events.after(runId, 0, ALL);
    return [
      ...wrongsOfLog(project, runId, events, seen),
      ...wrongsOfProjection(project, runId, events),
      ...wrongsOfEffects(effects, events, executionOf(project, runId)),
    ];
  });
}

function wrongsOfLog({ store }: OpenProject, runId: string, events: EventRow[], { hashes }: Seen): string[] {
  const wrong: string[] = [];
  const rows = new Set(store.read.outbox.ofRun(runId, 0, ALL).map(({ sequence }) => sequence));
  const before = hashes.get(runId) ?? [];
  let ended: number | undefined;
  events.forEach(({ sequence, hash, eventType, payload: { status = "" } }, index) => {
    const at = `${runId}/${sequence}`;
    if (sequence !== index + 1) wrong.push(`${at} follows ${index}`);
    if (!rows.has(sequence)) wrong.push(`${at} has no outbox row`);
    if ((before[index] ?? hash) !== hash) wrong.push(`${at} changed after it was written`);
    if (eventType !== "run.status_changed") return;
    if (ended !== undefined) wrong.push(`${at} says ${status} after the run had ended at ${ended}`);
    if (isTerminal(status)) ended ??= sequence;
  });
  if (before.length > events.length) wrong.push(`${runId} lost ${before.length - events.length} events`);
  hashes.set(
    runId,
    events.map(({ hash }) => hash),
  );
  return wrong;
}

function wrongsOfProjection({ store }: OpenProject, runId: string, events: EventRow[]): string[] {
  let state: RunState | undefined;
  for (const event of events) state = fold(state, event);
  const same = canonical(JSON.parse(JSON.stringify(state ?? null))) === canonical(store.read.runs.state(runId) ?? null);
  return same ? [] : [`${runId}: the projection is not what its events say`];
}

/** No effect twice, none that was not announced before, and none claimed that never happened. */
function wrongsOfEffects(effects: Effect[], events: EventRow[], run: Execution): string[] {
  const wrong: string[] = [];
  for (const [stepId, done] of Map.groupBy(effects, ({ stepId }) => stepId))
    if (done.length > 1) wrong.push(`${run.runId}: the effect of ${stepId} happened ${done.length} times`);
  for (const { stepId, attemptId } of effects)
    if (!events.some(({ eventType, payload }) => eventType === "effect.intent_recorded" && payload.attemptId === attemptId))
      wrong.push(`${run.runId}: the effect of ${stepId} happened before it was announced`);
  for (const { stepId, attemptId, overtaken } of effects) {
    const resolved = events.some(({ eventType, payload }) => eventType === "effect.uncertainty_resolved" && payload.attemptId === attemptId);
    if (overtaken && !resolved && run.results[stepId]?.outcome === "passed")
      wrong.push(`${run.runId}: ${stepId} passed although somebody else had its lease before it ended`);
  }
  for (const { id, gate } of run.plan.steps)
    if (gate === "deliver" && run.results[id]?.outcome === "passed" && !effects.some(({ stepId }) => stepId === id))
      wrong.push(`${run.runId}: ${id} passed and its effect never happened`);
  return wrong;
}

/** No attempt's program was started twice. */
export const doubleStarts = ({ machine }: SimulatedRuntime): string[] =>
  [...machine.starts].filter(([, times]) => times > 1).map(([attemptId, times]) => `the program of ${attemptId} was started ${times} times`);

/** The hub has only what was appended, byte for byte, in order, and everything that was acknowledged. Goes on behind the last look. */
export async function wrongsOfHub(hub: SimulatedHub, runtime: SimulatedRuntime, { atHub }: Seen): Promise<string[]> {
  const project = runtime.project();
  const { engine } = hub.hub ?? {};
  if (!project || !engine) return [];
  const wrong: string[] = [];
  for (const { runId, state } of project.store.read.runs.list({ limit: 1000 })) {
    const after = atHub.get(runId) ?? 0;
    if (after === state.lastSequence) continue; // all of it was compared
    const records = await engine.read.sync.eventsAfter(runtime.projectId, runId, after, ALL);
    const stored = new Map(records.map((row) => [row.sequence, row.record]));
    if (stored.size !== records.length) wrong.push(`${runId} has events twice at the hub`);
    let gapless = after;
    for (const { sequence, syncEvent, ackedAt, refusedCode } of project.store.read.outbox.ofRun(runId, after, ALL)) {
      const record = stored.get(sequence);
      if (ackedAt !== null && record === undefined) wrong.push(`${runId}/${sequence} is acknowledged and not at the hub`);
      if (record !== undefined && record !== syncEvent) wrong.push(`${runId}/${sequence} differs at the hub`);
      if (refusedCode !== null) wrong.push(`${runId}/${sequence} was refused: ${refusedCode}`);
      if (record !== undefined && ackedAt !== null && sequence === gapless + 1) gapless = sequence;
      stored.delete(sequence);
    }
    if (stored.size > 0) wrong.push(`${runId} has ${stored.size} events at the hub that were never appended`);
    atHub.set(runId, gapless);
  }
  return wrong;
}

/** States in which a run may rest, each with its reason. */
export function restless({ store }: OpenProject): string[] {
  const work = store.read.intake.next();
  const runs = store.read.runs.open().flatMap(({ runId, state: { status, reason } }) => {
    const rests = status === "waiting" || status === "blocked_uncertain";
    return rests && reason ? [] : [`${runId} is ${status}${rests ? " without a reason" : ""}`];
  });
  return work ? [...runs, `${work.intakeId} waits to become a run`] : runs;
}

/** How many events each run has. */
export const lengths = ({ store }: OpenProject): [runId: string, length: number][] =>
  store.read.runs.list({ limit: 1000 }).map(({ runId, state }) => [runId, state.lastSequence]);

/** Attempts that began when nothing failed any more, and failed all the same. @param before how many events each run had until then */
export function failuresSince({ store }: OpenProject, before: Map<string, number>): string[] {
  return store.read.runs.list({ limit: 1000 }).flatMap(({ runId }) => {
    const begun = new Set<string>();
    return store.read.events.after(runId, 0, ALL).flatMap(({ eventType, sequence, payload: { attemptId = "", status, reason } }) => {
      if (eventType === "attempt.created" && sequence > (before.get(runId) ?? 0)) begun.add(attemptId);
      const failed = (eventType === "attempt.status_changed" && status === "failed") || eventType === "effect.blocked_uncertain";
      return failed && begun.has(attemptId) ? [`${runId}: ${attemptId} went wrong although nothing failed any more: ${reason}`] : [];
    });
  });
}

/** What the hub does not know although everything has ended and arrived: how a run ended, or what became of a command. */
export async function ignoranceOfHub(hub: SimulatedHub, { project, projectId, runtimeId }: SimulatedRuntime): Promise<string[]> {
  const { store } = project() ?? {};
  const read = hub.hub?.engine.read;
  if (!store || !read) return ["there is nobody to ask"];
  const open = await read.commands.open("demo", runtimeId, 0, ALL);
  const runs = store.read.runs.list({ limit: 1000 }).map(async ({ runId, state }) => {
    const { status, cursor } = (await read.sync.findRun(projectId, runId)) ?? {};
    const same = status === state.status && cursor === state.lastSequence;
    return same ? [] : [`${runId} is ${state.status} after ${state.lastSequence} events, and the hub says ${status} after ${cursor}`];
  });
  return [
    ...open.map(({ id, kind, state }) => `the hub has heard nothing of its command ${id} (${kind}): it is ${state}`),
    ...(await Promise.all(runs)).flat(),
  ];
}

/** What happened in a project, in few words: to see what a simulation comes to at all. */
export function reached(project: OpenProject): string[] {
  const { read } = project.store;
  const runs = read.runs.list({ limit: 1000 }).flatMap(({ runId, state }) => {
    const { plan, counts, ...run } = executionOf(project, runId);
    const steps = plan.steps.filter(({ id }) => counts[id]).map(({ kind, panel }) => `step ${kind}${panel ? ` ${panel.strategy}` : ""}`);
    const events = read.events
      .after(runId, 0, ALL)
      .flatMap(({ eventType, payload: { resolutionAction } }) => [eventType, ...(resolutionAction ? [resolutionAction] : [])]);
    return [...steps, ...events, `run ${state.status}`, ...Object.values(run.results).map(({ failure }) => `failure ${failure?.class}`)];
  });
  return [...new Set([...runs, ...read.commands.list(ALL).map(({ source, kind, state }) => `${source} ${kind} ${state}`)])];
}

/** Runs that have not ended. */
export const openRuns = ({ store }: OpenProject): string[] => store.read.runs.open().map(({ runId }) => runId);
