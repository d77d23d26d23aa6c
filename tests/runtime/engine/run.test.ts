import { expect, test } from "bun:test";
import { gates, describe as inShort, openWorld, PASSED, script, workflow } from "./world.ts";

const ECHO = { schema: "kxm.agent.v1", purpose: "echoes" };

test("a run of an echo step completes in a repository without a commit", async () => {
  await using world = await openWorld(
    { ".kxm/agents/a.yaml": ECHO, ".kxm/workflows/main.yaml": workflow([{ id: "work", kind: "agent", agent: "a" }]) },
    { commit: false },
  );
  const runId = await world.start({ prompt: "Say hello" });
  const run = await world.finished(runId);
  expect(
    inShort(world.events(runId))
      .split("\n")
      .map((line) => line.split(" ")[1]),
  ).toEqual([
    "run.created",
    "workspace.snapshot_pinned",
    "run.status_changed",
    "run.drive_opened",
    "run.status_changed",
    "step.entered",
    "assignment.created",
    "assignment.accepted",
    "attempt.created",
    "assignment.dispatched",
    "attempt.status_changed",
    "assignment.executing",
    "attempt.status_changed",
    "assignment.result_recorded",
    "assignment.terminal",
    "step.outcome_recorded",
    "step.transitioned",
    "run.status_changed",
  ]);
  expect(run).toMatchObject({ status: "completed", title: "Say hello", steps: [{ id: "work", status: "passed", outcome: "passed" }] });
  expect(world.outbox().map(({ sequence, problem }) => [sequence, problem])).toEqual(Array.from({ length: 18 }, (_, i) => [i + 1, undefined]));
  expect(world.logged).toEqual([]);
});

test("agents that are commands, gates and a back-edge run to the end", async () => {
  await using world = await openWorld({
    ".kxm/agents/coder.yaml": script(`cat >/dev/null; echo x >>made.txt; ${PASSED}`, { tools: "workspace-writer" }),
    ".kxm/gates.yaml": gates({ twice: { argv: ["/bin/sh", "-c", "test $(wc -l <made.txt) -eq 2"] } }),
    ".kxm/workflows/main.yaml": workflow(
      [
        { id: "code", kind: "agent", agent: "coder" },
        { id: "check", kind: "gate", gate: "twice", on: { passed: "$terminal", "implementation-failure": { target: "code", maxTransitions: 2 } } },
      ],
      { limits: { maxTransitions: 9 } },
    ),
  });
  const run = await world.finished(await world.start());
  expect(run).toMatchObject({
    status: "completed",
    steps: [
      { id: "code", attempts: 2 },
      { id: "check", attempts: 2, status: "passed" },
    ],
  });
  expect(world.outbox().filter(({ problem }) => problem !== undefined)).toEqual([]);
});
