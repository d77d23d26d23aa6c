// What runs cost, summed as their usage comes in: once, in the write that takes it, within bounds, and never nothing for what is unknown. Both engines.
import { describe, expect, test } from "bun:test";
import * as costs from "../../src/hub/costs.ts";
import { keptFor, sweepOld } from "../../src/hub/retention.ts";
import * as sync from "../../src/hub/sync.ts";
import { COST_NAMES_MAX, COST_TOKENS_MAX, RETENTION_INTERVAL_MS } from "../../src/protocol/limits.ts";
import type { SyncPayload } from "../../src/protocol/sync-event.ts";
import { DAY_MS, HOUR_MS } from "../../src/protocol/time.ts";
import { range, WORLDS } from "../support/engines.ts";
import { type Fleet, openFleet } from "../support/fleet.ts";
import { OTHER_RUNTIME, RUNTIME, syncEvent } from "../support/sync-events.ts";

type Report = {
  agent?: string;
  attempt?: number;
  usage: NonNullable<SyncPayload["usage"]>;
  at?: number;
  runtimeId?: string;
  runId?: string;
  sequence: number;
};

/** Pushes reports of one run: attempt n of an agent that runs in claude. */
async function push(fleet: Fleet, reports: readonly Report[]): Promise<void> {
  const { runtimeId = RUNTIME, runId = "run_0123456789abcdef" } = reports[0]!;
  const events = reports.map(({ agent = "implementer", attempt = 1, usage, at = fleet.clock.now, sequence }) =>
    syncEvent(sequence, {
      at,
      runId,
      homeRuntimeId: runtimeId,
      type: "attempt.created",
      payload: {
        stepId: "build",
        assignmentId: `asg_${agent.padStart(16, "0")}`,
        attemptId: `att_${String(attempt).padStart(16, "0")}`,
        agentId: agent,
        status: "created",
        model: { provider: "anthropic", model: "opus" },
        executor: { id: "local", kind: "local", executorVersion: "1", harness: "claude", harnessVersion: "2" },
        usage,
      },
    }),
  );
  const answer = await sync.ingest(fleet.hub, { project: "p", runtimeId, events });
  expect(answer.results.filter(({ outcome }) => outcome === "rejected" || outcome === "conflict")).toEqual([]);
}
const dollars = (cost: number, costKind: "reported" | "estimated" = "reported") => ({ inputTokens: 100, cost, currency: "USD", costKind });
const today = (fleet: Fleet) => costs.dayOf(fleet.clock.now);
const total = async (fleet: Fleet, since = today(fleet)) => (await costs.byTime(fleet.world.engine.read, ["p"], "day", since)).total;

describe.each(WORLDS)("costs on %s", (_, open) => {
  test("a report replaces what its attempt had reported before, also on another day, and a new attempt adds to it", async () => {
    await using fleet = await openFleet(open);
    await push(fleet, [
      { sequence: 1, usage: dollars(0.25) },
      { sequence: 2, usage: dollars(1.5) },
    ]);
    expect(await total(fleet)).toMatchObject({ costs: { USD: 1.5 }, tokens: 100, uses: 1, unknown: 0 });
    const first = today(fleet);
    fleet.clock.now += DAY_MS;
    await push(fleet, [{ sequence: 3, usage: dollars(2) }]);
    await push(fleet, [{ sequence: 4, attempt: 2, usage: dollars(0.1) }]);
    expect(await total(fleet)).toMatchObject({ costs: { USD: 0.6 }, tokens: 100, uses: 1 });
    expect(await total(fleet, first)).toMatchObject({ costs: { USD: 2.1 }, tokens: 200, uses: 2 });
  });

  test("the same push again, and an event behind a gap, are counted once and when their turn comes", async () => {
    await using fleet = await openFleet(open);
    await push(fleet, [{ sequence: 2, attempt: 2, usage: dollars(1) }]);
    expect(await total(fleet)).toMatchObject({ costs: {}, uses: 0 });
    await push(fleet, [{ sequence: 1, usage: dollars(0.5) }]);
    await push(fleet, [
      { sequence: 1, usage: dollars(0.5) },
      { sequence: 2, attempt: 2, usage: dollars(1) },
    ]);
    expect(await total(fleet)).toMatchObject({ costs: { USD: 1.5 }, uses: 2 });
  });

  test("cost is told by agent, model, program, machine and run, the dearest first", async () => {
    await using fleet = await openFleet(open);
    await push(fleet, [
      { sequence: 1, agent: "planner", usage: dollars(0.2) },
      { sequence: 2, agent: "implementer", usage: dollars(0.9, "estimated") },
    ]);
    await push(fleet, [{ sequence: 1, agent: "implementer", usage: dollars(3), runtimeId: OTHER_RUNTIME, runId: "run_other00000001" }]);
    const { read } = fleet.world.engine;
    const by = async (part: costs.CostPart | "project") =>
      (await costs.byPart(read, ["p"], part, today(fleet))).map(({ name, costs: money }) => [name, money["USD"]]);
    expect(await by("agent")).toEqual([
      ["implementer", 3.9],
      ["planner", 0.2],
    ]);
    expect(await by("model")).toEqual([["anthropic/opus", 4.1]]);
    expect(await by("harness")).toEqual([["claude", 4.1]]);
    expect(await by("machine")).toEqual([
      [OTHER_RUNTIME, 3],
      [RUNTIME, 1.1],
    ]);
    expect(await by("project")).toEqual([["p", 4.1]]);
    for (const project of ["p", undefined])
      expect((await costs.dearestRuns(read, project, today(fleet), fleet.clock.now)).map(({ runId, costs: money }) => [runId, money["USD"]])).toEqual(
        [
          ["run_other00000001", 3],
          ["run_0123456789abcdef", 1.1],
        ],
      );
    expect(await costs.dearestRuns(read, "q", today(fleet), fleet.clock.now)).toEqual([]);
    expect((await total(fleet)).estimated).toEqual({ USD: 0.9 });
  });

  test("what has no price is unknown, and is known once a later report says it", async () => {
    await using fleet = await openFleet(open);
    await push(fleet, [{ sequence: 1, usage: { inputTokens: 7 } }]);
    expect(await total(fleet)).toMatchObject({ costs: {}, tokens: 7, uses: 1, unknown: 1 });
    await push(fleet, [{ sequence: 2, attempt: 2, usage: { cost: 4, currency: "USD", costKind: "unknown" } }]);
    expect(await total(fleet)).toMatchObject({ costs: {}, uses: 2, unknown: 2 });
    fleet.clock.now += DAY_MS;
    await push(fleet, [{ sequence: 3, attempt: 2, usage: { cost: 4, currency: "EUR", costKind: "reported" } }]);
    expect(await total(fleet)).toMatchObject({ costs: { EUR: 4 }, uses: 0, unknown: 0 }); // not below nothing, on the later day alone
    expect(await total(fleet, today(fleet) - DAY_MS)).toMatchObject({ costs: { EUR: 4 }, uses: 2, unknown: 1 });
  });

  test("work is counted on the day it was done: not in the future, and not before what is looked at", async () => {
    await using fleet = await openFleet(open);
    const { now } = fleet.clock;
    await push(fleet, [
      { sequence: 1, agent: "a", at: now + 40 * DAY_MS, usage: dollars(1) },
      { sequence: 2, agent: "b", at: now - 2 * DAY_MS, usage: dollars(2) },
      { sequence: 3, agent: "c", at: 1, usage: dollars(4) },
    ]);
    const { slots } = await costs.byTime(fleet.world.engine.read, ["p"], "day", 0);
    const day = today(fleet);
    expect([...slots].map(([at, sum]) => [(at - day) / DAY_MS, sum.costs["USD"]]).sort(([a], [b]) => a! - b!)).toEqual([
      [-35, 4],
      [-2, 2],
      [0, 1],
    ]);
    expect((await costs.byTime(fleet.world.engine.read, ["p"], "hour", now - (now % HOUR_MS))).total.costs).toEqual({ USD: 1 });
  });

  test("a day tells a bounded number of agents apart; the rest are one", async () => {
    await using fleet = await openFleet(open);
    const agents = range(COST_NAMES_MAX + 5);
    for (const part of [agents.slice(0, 100), agents.slice(100, 200), agents.slice(200)])
      await push(
        fleet,
        part.map((n) => ({ sequence: n + 1, agent: `agent-${String(n).padStart(3, "0")}`, usage: dollars(1) })),
      );
    const sums = await costs.byPart(fleet.world.engine.read, ["p"], "agent", today(fleet));
    expect(sums).toHaveLength(COST_NAMES_MAX + 1);
    expect(sums.find(({ name }) => name === costs.OTHERS)).toMatchObject({ costs: { USD: 5 }, uses: 5 });
    expect(await total(fleet)).toMatchObject({ costs: { USD: COST_NAMES_MAX + 5 } });
  });

  test("numbers that no run uses do not break the sums", async () => {
    await using fleet = await openFleet(open);
    const usage = { inputTokens: Number.MAX_SAFE_INTEGER, outputTokens: Number.MAX_SAFE_INTEGER, cost: 1e300, currency: "USD" };
    for (const n of range(20)) await push(fleet, [{ sequence: n + 1, attempt: n + 1, usage }]);
    const sum = await total(fleet);
    expect([sum.tokens, sum.uses]).toEqual([40 * COST_TOKENS_MAX, 20]);
  });

  test("sums are kept for longer than what they are made of, and then go", async () => {
    await using fleet = await openFleet(open);
    await push(fleet, [{ sequence: 1, usage: dollars(1) }]);
    const sweep = async () => {
      const clock = { lastAt: undefined };
      await sweepOld(fleet.hub, clock);
      fleet.clock.now += RETENTION_INTERVAL_MS;
      await sweepOld(fleet.hub, clock);
    };
    fleet.clock.now += keptFor(fleet.hub).costSums - DAY_MS;
    await sweep();
    expect((await total(fleet, 0)).uses).toBe(1);
    fleet.clock.now += 2 * DAY_MS;
    await sweep();
    expect((await total(fleet, 0)).uses).toBe(0);
  });
});
