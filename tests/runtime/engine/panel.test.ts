import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { markedProcesses } from "../../../src/runtime/harness/process.ts";
import { openWorld, PASSED, script, sh, workflow } from "./world.ts";

const answers = (outcome: string, more = "") => script(`cat >/dev/null; ${more} echo '{"outcome":"${outcome}","summary":"${outcome}"}'`);
const panel = (agents: string[], join: object, more: object = {}, on?: object) =>
  workflow([{ id: "panel", kind: "moa", assignments: { allowedAgents: agents, ...more }, join, ...(on && { on }) }]);
const files = (agents: Record<string, object>, flow: object) => ({
  ...Object.fromEntries(Object.entries(agents).map(([id, agent]) => [`.kxm/agents/${id}.yaml`, agent])),
  ".kxm/workflows/main.yaml": flow,
});
const outcomeOf = async (agents: Record<string, object>, flow: object) => {
  await using world = await openWorld(files(agents, flow));
  const runId = await world.start();
  const run = await world.finished(runId);
  const invalid = world.outbox().filter(({ problem }) => problem !== undefined);
  expect(invalid).toEqual([]);
  return {
    run,
    step: run.steps[0]!,
    events: world.events(runId),
    left: world.events(runId).flatMap(({ payload }) => (payload.attemptId ? markedProcesses(payload.attemptId) : [])),
  };
};

test("all passes when every member passed, and fails with the first that did not", async () => {
  expect((await outcomeOf({ a: answers("passed"), b: answers("passed") }, panel(["a", "b"], { strategy: "all" }))).run.status).toBe("completed");
  const { run, step, left } = await outcomeOf({ a: answers("failed"), b: answers("passed", "sleep 30;") }, panel(["a", "b"], { strategy: "all" }));
  expect(run).toMatchObject({ status: "failed" });
  expect(step.outcome).toBe("failed");
  expect(left).toEqual([]);
});

test("all-settled waits for everybody and counts", async () => {
  const agents = { a: answers("passed"), b: answers("failed"), c: answers("passed", "sleep 0.1;") };
  const two = await outcomeOf(agents, panel(["a", "b", "c"], { strategy: "all-settled", minimumPassed: 2 }));
  expect(two.run.status).toBe("completed");
  expect(
    two.events
      .filter(({ eventType }) => eventType === "assignment.terminal")
      .map(({ payload }) => payload.outcome)
      .toSorted(),
  ).toEqual(["failed", "passed", "passed"]);
  const three = await outcomeOf(agents, panel(["a", "b", "c"], { strategy: "all-settled", minimumPassed: 3 }));
  expect(three.step.outcome).toBe("failed");
});

test("quorum ends as soon as it is reached, stops the rest, and says when it cannot be", async () => {
  const started = performance.now();
  const agents = { a: answers("passed"), b: answers("passed"), c: answers("passed", "sleep 30;") };
  const reached = await outcomeOf(agents, panel(["a", "b", "c"], { strategy: "quorum", minimumPassed: 2 }));
  expect(reached.run.status).toBe("completed");
  expect(reached.events.filter(({ payload }) => payload.status === "cancelled").length).toBeGreaterThan(0);
  expect(reached.left).toEqual([]);
  expect(performance.now() - started).toBeLessThan(10_000);
  const missed = await outcomeOf(
    { a: answers("failed"), b: answers("failed"), c: answers("passed") },
    panel(["a", "b", "c"], { strategy: "quorum", minimumPassed: 2 }),
  );
  expect(missed.step).toMatchObject({ outcome: "quorum-not-met" });
  expect(missed.run.status).toBe("failed");
});

test("the first success of a writing panel is what the run goes on with", async () => {
  const slow = script(`cat >/dev/null; echo slow >slow.txt; sleep 30; ${PASSED}`, { tools: "workspace-writer" });
  const quick = script(`cat >/dev/null; echo quick >quick.txt; ${PASSED}`, { tools: "workspace-writer" });
  const flow = workflow([
    {
      id: "race",
      kind: "moa",
      assignments: { allowedAgents: ["slow", "quick"] },
      join: { strategy: "first-success" },
      repositories: { main: "write" },
    },
    { id: "look", kind: "agent", agent: "look" },
  ]);
  await using world = await openWorld(
    files({ slow, quick, look: script(`cat >/dev/null; test -f quick.txt && test ! -f slow.txt && ${PASSED}`) }, flow),
  );
  const run = await world.finished(await world.start());
  expect(run.status).toBe("completed");
  expect(sh(world.root, `git show --stat --format= ${run.repositories[0]!.head}`)).toContain("quick.txt");
  expect(readdirSync(world.root)).not.toContain("quick.txt");
});

test("a member without a result is replaced up to the maximum, and tries as often as it may", async () => {
  const broken = script("cat >/dev/null; echo nothing");
  const { run, events } = await outcomeOf(
    { broken, fine: answers("passed") },
    panel(["broken", "fine"], { strategy: "all-settled", minimumPassed: 1 }, { target: 1, maximum: 2, maxAttemptsPerAssignment: 2 }),
  );
  expect(run.status).toBe("completed");
  const attempts = events.filter(({ eventType }) => eventType === "attempt.created").map(({ payload }) => payload.agentId);
  expect(attempts).toEqual(["broken", "broken", "fine"]);
});

test("no more members work at a time than maxParallel says", async () => {
  const agents = Object.fromEntries(["a", "b", "c", "d"].map((id) => [id, answers("passed", "sleep 0.05;")]));
  const { events } = await outcomeOf(agents, panel(Object.keys(agents), { strategy: "all" }, { maxParallel: 2 }));
  let [now, most] = [0, 0];
  for (const { eventType, payload } of events) {
    if (eventType === "attempt.status_changed") now += payload.status === "executing" ? 1 : -1;
    most = Math.max(most, now);
  }
  expect(most).toBe(2);
});

test("of several declared outcomes the most severe one counts: failed, then what is listed last", async () => {
  const on = { passed: "$terminal", "needs-work": "$terminal", "must-stop": "$terminal" };
  const join = { strategy: "all-settled", minimumPassed: 3 };
  const agents = { a: answers("passed"), b: answers("needs-work"), c: answers("must-stop") };
  expect((await outcomeOf(agents, panel(["a", "b", "c"], join, {}, on))).step.outcome).toBe("must-stop");
  expect((await outcomeOf({ ...agents, a: answers("failed") }, panel(["a", "b", "c"], join, {}, on))).step.outcome).toBe("failed");
});

test("a member that was stopped does not change what the others declared", async () => {
  const revise = script(`cat >/dev/null; echo '{"outcome":"revise","summary":"revise"}'`);
  const on = { passed: "$terminal", revise: { target: "$terminal", terminalStatus: "completed" } };
  const flow = panel(["a", "b", "c"], { strategy: "all" }, { maxParallel: 2 }, on);
  const { run, step } = await outcomeOf({ a: revise, b: answers("passed", "sleep 30;"), c: answers("passed") }, flow);
  expect([step.outcome, run.status]).toEqual(["revise", "completed"]);
});

test("a member that was stopped has worked and perhaps cost something: its time counts, and the cost is not known", async () => {
  const quorum = panel(["a", "b"], { strategy: "quorum", minimumPassed: 1 });
  const { run, events } = await outcomeOf({ a: answers("passed", "sleep 0.5;"), b: script("cat >/dev/null; sleep 30") }, quorum);
  expect(run.used.agentMs).toBeGreaterThan(900);
  expect(run.used.costKnown).toBe(false);
  const results = events.filter(({ eventType }) => eventType === "assignment.result_recorded").map(({ payload }) => payload);
  expect(results).toMatchObject([{ outcome: "passed" }, { outcome: "cancelled", usage: { costKind: "unknown" } }]);
});
