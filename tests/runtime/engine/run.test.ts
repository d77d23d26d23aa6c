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

test("what a project keeps on its machine does not leave it, and odd file names leave as a number", async () => {
  const coder = script(`cat >/dev/null; echo x >'odd "name".txt'; echo y >plain.txt; echo '{"outcome":"passed","summary":"the hidden summary"}'`, {
    tools: "workspace-writer",
  });
  const files = { ".kxm/agents/coder.yaml": coder, ".kxm/workflows/main.yaml": workflow([{ id: "code", kind: "agent", agent: "coder" }]) };
  const outcome = async (sync?: object) => {
    await using world = await openWorld(files);
    if (sync)
      world.put(".kxm/project.yaml", {
        schema: "kxm.project.v1",
        id: "prj_engine_test",
        name: "demo",
        defaultWorkflow: "main",
        defaultHarness: "echo",
        sync,
      });
    const runId = await world.start();
    const run = await world.finished(runId);
    expect(run.steps[0]!.summary).toBe("the hidden summary");
    const rows = world.outbox();
    expect(rows.filter(({ problem, payload }) => problem || payload.degraded)).toEqual([]);
    return { sent: JSON.stringify(rows), changes: rows.find(({ eventType }) => eventType === "step.outcome_recorded").payload.fileChanges };
  };
  const open = await outcome();
  expect(open.changes).toEqual([{ repositoryId: "main", added: ["plain.txt"], modified: [], deleted: [], redactedPathCount: 1 }]);
  expect(open.sent).toContain("the hidden summary");
  const closed = await outcome({ results: "none", fileChanges: "counts" });
  expect(closed.changes).toEqual([{ repositoryId: "main", redactedPathCount: 2 }]);
  expect(closed.sent).not.toContain("hidden");
  expect(closed.sent).not.toContain("plain.txt");
});

test("what the engine knows is what its events say: the same after reading them again", async () => {
  await using world = await openWorld({
    ".kxm/agents/a.yaml": ECHO,
    ".kxm/agents/b.yaml": script(
      `cat >/dev/null; echo x >x.txt; echo '{"outcome":"passed","evidence":{"api-key-rotation-plan":"token: 12345678"}}'`,
      { tools: "workspace-writer" },
    ),
    ".kxm/workflows/main.yaml": workflow([
      { id: "rotate-api-key", kind: "agent", agent: "b" },
      { id: "session-token", kind: "moa", assignments: { allowedAgents: ["a", "b"] }, join: { strategy: "all" } },
      { id: "ask", kind: "approval" },
    ]),
  });
  const runId = await world.start({ prompt: "x" });
  await world.until(runId, ({ asked }) => asked !== undefined);
  const known = await world.view(runId);
  world.vanish();
  world.reopen();
  const { lastSequence, ...again } = await world.view(runId);
  const { lastSequence: before, ...first } = known;
  expect(again).toEqual(first);
  expect(lastSequence).toBe(before + 1); // the new drive
});

test("braces of other languages in the instructions do not keep the run's prompt from the agent", async () => {
  const agent = script(`grep -q 'Fix the login' && grep -c . >/dev/null; echo '{"outcome":"passed"}'`);
  const step = { id: "work", kind: "agent", agent: "a", instructions: "Templates look like {{ value }} here." };
  await using world = await openWorld({ ".kxm/agents/a.yaml": agent, ".kxm/workflows/main.yaml": workflow([step]) });
  const runId = await world.start({ prompt: "Fix the login" });
  await world.finished(runId);
  const { attempts } = await world.call("GET", "/v1/projects/:projectKey/runs/:runId/logs", { runId });
  expect(attempts[0].pieces[0].text).toContain("Fix the login");
});

test("a failed gate shows its last words with the run", async () => {
  const step = { id: "check", kind: "gate", gate: "g", on: { passed: "$terminal", "implementation-failure": "$terminal" } };
  const g = { argv: ["/bin/sh", "-c", "echo one; echo 'expected 3, got 4' >&2; exit 1"] };
  await using world = await openWorld({ ".kxm/gates.yaml": gates({ g }), ".kxm/workflows/main.yaml": workflow([step]) });
  const runId = await world.start();
  const run = await world.finished(runId);
  expect(run.lastWords).toEqual({ stepId: "check", text: "one\n\nexpected 3, got 4" });
  // They stay on this machine.
  expect(JSON.stringify(world.outbox())).not.toContain("expected 3");
});

test("a drive that ends before its run does leaves a receipt, too, which holds however the run goes on", async () => {
  const step = { id: "ask", kind: "approval", on: { passed: "$terminal" } };
  await using world = await openWorld({ ".kxm/workflows/main.yaml": workflow([step]) });
  const runId = await world.start();
  await world.until(runId, ({ asked }) => asked !== undefined);
  await world.engine.stop(5000);
  const last = world.events(runId).length;
  expect(world.project.store.read.receipts.ofRun(runId)).toMatchObject([{ drive: 1, status: "waiting", lastSequence: last }]);
  world.engine.opened(world.project);
  const { asked } = await world.until(runId, (run) => run.asked !== undefined);
  const receipt = () => world.call("GET", "/v1/projects/:projectKey/runs/:runId/receipt", { runId });
  expect(await receipt()).toMatchObject({ holds: true, receipt: { drive: 1, lastSequence: last } });
  world.apply("approve", { approvalId: asked!.approvalId, contentHash: asked!.contentHash }, runId);
  await world.finished(runId);
  expect(await receipt()).toMatchObject({ holds: true, receipt: { drive: 2, status: "completed" } });
  expect(world.project.store.read.receipts.ofRun(runId)).toHaveLength(2);
});
