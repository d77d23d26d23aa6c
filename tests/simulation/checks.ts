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
  for (const runId of runsOf(project)) {
    const after = atHub.get(runId) ?? 0;
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

/** Runs that have not ended. */
export const openRuns = ({ store }: OpenProject): string[] => store.read.runs.open().map(({ runId }) => runId);
