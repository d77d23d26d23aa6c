// R18: however a run's events arrive (doubled, out of order, in overlapping batches, with gaps, forged or broken), the hub ends with exactly the
// source's events, says the truth about each, and raises one alert per forged payload.
import { describe, expect, test } from "bun:test";
import { type Hub, openHub } from "../../src/hub/hub.ts";
import { silent } from "../../src/hub/log.ts";
import { fold } from "../../src/hub/projection.ts";
import { defaultSettings } from "../../src/hub/settings.ts";
import * as sync from "../../src/hub/sync.ts";
import { canonical, taggedSha256 } from "../../src/protocol/canonical.ts";
import type { SyncAnswer, SyncResult } from "../../src/protocol/sync.ts";
import type { SyncEvent } from "../../src/protocol/sync-event.ts";
import { range, sqliteWorld, WORLDS, type World } from "../support/engines.ts";
import { syncRunRow } from "../support/rows.ts";
import { OTHER_RUNTIME, RUNTIME, syncEvent, type Told } from "../support/sync-events.ts";
import { randomFrom } from "./lease-history.ts";
import { FULL } from "./store-client.ts";

const EVENTS = 200;
const PERMUTATIONS = FULL ? 10_000 : 60;
const SEED = 7331;

/** Whatever takes a batch; mutants stand in between. */
type Push = (events: unknown[]) => Promise<SyncAnswer>;
type Sent = { event: unknown; forged?: boolean };
const hashOf = (event: unknown) => taggedSha256(canonical(event));

/** A run as a Runtime would record it: a life of steps, attempts and use. */
function sourceOf(runId: string): SyncEvent[] {
  const told = { projectId: `prj_${runId.slice(4)}`, runId };
  const kinds: ((sequence: number) => Told)[] = [
    (n) => ({ type: "step.entered", payload: { stepId: `s${n % 9}`, status: "running" } }),
    () => ({}), // an attempt with its use
    (n) => ({ type: "step.outcome_recorded", payload: { stepId: `s${n % 9}`, outcome: "passed", summary: `step ${n}` } }),
    (n) => ({ type: "step.transitioned", payload: { fromStepId: `s${n % 9}`, toStepId: `s${(n + 1) % 9}` } }),
  ];
  return range(EVENTS).map((index) => {
    const sequence = index + 1;
    if (sequence === 1) return syncEvent(1, { ...told, type: "run.created", payload: { status: "running", displayTitle: runId } });
    if (sequence === EVENTS) return syncEvent(EVENTS, { ...told, type: "run.status_changed", payload: { status: "completed" } });
    return syncEvent(sequence, { ...told, ...kinds[index % kinds.length]!(sequence) });
  });
}

/** The source in some other order, with everything that may happen to it on the way. Forged events come after the true one was sent. */
function deliveries(source: SyncEvent[], random: () => number): Sent[][] {
  const reach = [1, 5, 50, EVENTS][Math.floor(random() * 4)]!; // how far events stray
  const order = source
    .flatMap((event, index) => range(random() < 0.2 ? 2 : 1).map(() => ({ event, at: index + random() * reach })))
    .sort((a, b) => a.at - b.at);
  const items: Sent[] = [];
  const sent: SyncEvent[] = [];
  for (const { event } of order) {
    items.push({ event });
    sent.push(event);
    const known = sent[Math.floor(random() * sent.length)]!;
    const dice = random();
    if (dice < 0.05) items.push({ event: { ...known, payload: { summary: `forged ${Math.floor(random() * 3)}` } }, forged: true });
    else if (dice < 0.07) items.push({ event: { ...known, sequence: -known.sequence } });
    else if (dice < 0.09) items.push({ event: { ...known, homeRuntimeId: OTHER_RUNTIME } });
    else if (dice < 0.12) items.push({ event: known }); // again, perhaps long ago
  }
  const batches: Sent[][] = [];
  for (let at = 0; at < items.length; ) {
    const size = 1 + Math.floor(random() * (random() < 0.3 ? 100 : 10));
    batches.push(items.slice(at, at + size));
    at += size;
    if (random() < 0.2) batches.push(batches[Math.floor(random() * batches.length)]!); // a whole batch once more: its answer was lost
  }
  return batches;
}

/** What must come of each event, by the simplest means. */
function model() {
  const stored = new Map<number, string>();
  const forged = new Set<string>();
  const judge = (event: any): Pick<SyncResult, "outcome" | "code" | "existingHash"> => {
    if (!(event.sequence >= 1)) return { outcome: "rejected", code: "sync_event_invalid" };
    if (event.homeRuntimeId !== RUNTIME) return { outcome: "rejected", code: "sync_runtime_mismatch" };
    const [hash, existingHash] = [hashOf(event), stored.get(event.sequence)];
    if (existingHash === hash) return { outcome: "duplicate" };
    if (existingHash !== undefined) {
      forged.add(`${event.sequence} ${hash}`);
      return { outcome: "conflict", code: "sync_sequence_reused", existingHash };
    }
    stored.set(event.sequence, hash);
    return { outcome: "accepted" };
  };
  return {
    forged,
    answer(events: any[]): SyncAnswer {
      const results = events.map((event) => ({ projectId: event.projectId, runId: event.runId, sequence: event.sequence, ...judge(event) }));
      let cursor = 0;
      while (stored.has(cursor + 1)) cursor++;
      const got = results.find(({ outcome }) => outcome === "accepted" || outcome === "duplicate");
      return { results, cursors: got ? [{ projectId: got.projectId, runId: got.runId, cursor }] : [] };
    },
  };
}

/** One permutation from beginning to end. @throws (expect) at the first thing that is not as it must be */
async function deliver(hub: Hub, n: number, wrap: (push: Push, source: SyncEvent[]) => Push = (push) => push): Promise<void> {
  const random = randomFrom(SEED + n);
  const runId = `run_${n.toString(16).padStart(12, "0")}`;
  const source = sourceOf(runId);
  const { projectId } = source[0]!;
  const push = wrap((events) => sync.ingest(hub, { project: "p", runtimeId: RUNTIME, events }), source);
  const expected = model();
  const { read } = hub.engine;
  for (const batch of deliveries(source, random)) {
    const events = batch.map(({ event }) => event);
    expect({ n, ...(await push(events)) }).toEqual({ n, ...expected.answer(events) });
  }
  expect((await read.sync.eventsAfter(projectId, runId, 0, 2 * EVENTS)).map(({ record }) => record)).toEqual(source.map(canonical));
  const scratch = syncRunRow(projectId, runId);
  for (const event of source) fold(scratch, event);
  const run = (await read.sync.findRun(projectId, runId))!;
  expect([run.cursor, run.held, run.heldBytes, run.status, run.endedAt]).toEqual([EVENTS, 0, 0, "completed", scratch.endedAt]);
  expect(run.projection).toEqual(JSON.parse(JSON.stringify(scratch.projection)));
  const alerts = (await read.alerts.page("p", "~", EVENTS)).filter(({ kind, data }) => kind === "sync_conflict" && data["runId"] === runId);
  expect(alerts.map(({ data, count }) => `${data["sequence"]} ${data["hash"]} ${count}`).sort()).toEqual(
    [...expected.forged].map((key) => `${key} 1`).sort(),
  );
}

const hubOn = (world: World) =>
  openHub({ engine: world.engine, clock: () => world.clock.now, settings: defaultSettings(), log: silent, stopping: new AbortController().signal });

describe("R18: a run arrives in any order", () => {
  test.each(WORLDS)(
    `%s: ${PERMUTATIONS} permutations of ${EVENTS} events`,
    async (kind, open) => {
      await using world = await open();
      const hub = hubOn(world);
      for (const n of range(kind === "sqlite" ? PERMUTATIONS : Math.ceil(PERMUTATIONS / 10))) await deliver(hub, n);
    },
    FULL ? 3_600_000 : 120_000,
  );

  const MUTANTS: Record<string, (push: Push, source: SyncEvent[]) => Push> = {
    "takes any event under a known sequence for a duplicate": (push, source) => (events) =>
      push(events.map((event: any) => (event.homeRuntimeId === RUNTIME ? (source[event.sequence - 1] ?? event) : event))),
    "stores only the first half of a batch that holds a bad event": (push) => async (events: any[]) => {
      const bad = events.findIndex(({ sequence }) => sequence < 1);
      if (bad === -1) return push(events);
      const [first, rest] = [await push(events.slice(0, bad + 1)), events.slice(bad + 1)];
      const lost = rest.map(({ projectId, runId, sequence }) => ({ projectId, runId, sequence, outcome: "accepted" as const }));
      return { results: [...first.results, ...lost], cursors: first.cursors };
    },
    "counts its cursor by events instead of by the gapless prefix": (push) => {
      let stored = 0;
      return async (events) => {
        const answer = await push(events);
        stored += answer.results.filter(({ outcome }) => outcome === "accepted").length;
        return { ...answer, cursors: answer.cursors.map((cursor) => ({ ...cursor, cursor: stored })) };
      };
    },
    "loses one push": (push) => {
      let pushes = 0;
      return async (events) => (++pushes === 3 ? push([]).then(() => ({ results: [], cursors: [] })) : push(events));
    },
  };
  test.each(Object.entries(MUTANTS))("the check finds out a hub that %s", async (_, mutant) => {
    await using world = await sqliteWorld();
    const hub = hubOn(world);
    let caught = 0;
    for (const n of range(10)) await deliver(hub, n, mutant).catch(() => caught++);
    expect(caught).toBeGreaterThanOrEqual(5); // a quarter of the permutations are nearly in order and break no cursor
  });
});
