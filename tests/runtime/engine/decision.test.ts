import { expect, test } from "bun:test";
import { markedProcesses, waitFor } from "../../../src/runtime/harness/process.ts";
import { gates, openWorld, PASSED, script, sh, workflow } from "./world.ts";

const ECHO = { schema: "kxm.agent.v1", purpose: "echoes" };
const code = (work: () => unknown) => {
  try {
    work();
  } catch (error) {
    return (error as { code?: string }).code;
  }
  return undefined;
};
const work = { id: "work", kind: "agent", agent: "a", requiredEvidence: [{ key: "plan", kind: "assignment-result" }] };
const release = { id: "release", kind: "approval", instructions: "May it be released?" };

test("an approval shows what was done, takes one decision on exactly that, and goes on", async () => {
  await using world = await openWorld({ ".kxm/agents/a.yaml": ECHO, ".kxm/workflows/main.yaml": workflow([work, release]) });
  const runId = await world.start();
  const { asked, status } = await world.until(runId, (run) => run.asked !== undefined);
  expect(status).toBe("waiting");
  expect(asked!.content).toMatchObject({
    purpose: "step",
    stepId: "release",
    question: "May it be released?",
    basis: [{ stepId: "work", outcome: "passed", evidence: [expect.stringMatching(/^plan=sha256:/)] }],
  });
  const good = { approvalId: asked!.approvalId, contentHash: asked!.contentHash };
  expect(code(() => world.apply("approve", { ...good, contentHash: `sha256:${"0".repeat(64)}` }, runId))).toBe("approval_content_changed");
  expect(code(() => world.apply("approve", { ...good, approvalId: "apr_0000000000000000" }, runId))).toBe("approval_not_found");
  expect(code(() => world.apply("approve", good, "run_00000000000000"))).toBe("run_not_found");
  world.apply("approve", { ...good, reason: "looks right" }, runId, "cmd_once_1");
  world.apply("approve", { ...good, reason: "looks right" }, runId, "cmd_once_1"); // the same command again changes nothing
  const run = await world.finished(runId);
  expect(run).toMatchObject({ status: "completed", steps: [{}, { outcome: "passed", summary: "approved by tester: looks right" }] });
  expect(world.events(runId).filter(({ eventType }) => eventType === "approval.recorded")).toHaveLength(1);
  expect(code(() => world.apply("reject", good, runId))).toBe("approval_not_found");
  expect(world.outbox().filter(({ problem }) => problem)).toEqual([]);
});

test("a rejected approval ends the run unless it leads somewhere", async () => {
  await using world = await openWorld({
    ".kxm/agents/a.yaml": ECHO,
    ".kxm/workflows/main.yaml": workflow([work, { ...release, on: { rejected: { target: "work", maxTransitions: 1 } } }], {
      limits: { maxTransitions: 5 },
    }),
  });
  const runId = await world.start();
  const first = await world.until(runId, (run) => run.asked !== undefined);
  world.apply("reject", { approvalId: first.asked!.approvalId, contentHash: first.asked!.contentHash, reason: "not yet" }, runId);
  const second = await world.until(runId, (run) => run.asked !== undefined && run.asked.approvalId !== first.asked!.approvalId);
  expect(second.steps[0]).toMatchObject({ attempts: 2 });
  expect(second.asked!.contentHash).not.toBe(first.asked!.contentHash);
  world.apply("reject", { approvalId: second.asked!.approvalId, contentHash: second.asked!.contentHash }, runId);
  expect(await world.finished(runId)).toMatchObject({ status: "failed", reason: expect.stringContaining("budget_edge: release → work") });
});

test("an approval that nobody gives in time is cancelled", async () => {
  await using world = await openWorld({ ".kxm/agents/a.yaml": ECHO, ".kxm/workflows/main.yaml": workflow([{ ...release, timeoutMs: 100 }]) });
  expect(await world.finished(await world.start())).toMatchObject({ status: "cancelled", reason: expect.stringContaining("nobody decided in time") });
});

const wait = { id: "ci", kind: "wait", signal: "checks", on: { passed: "$terminal", red: { target: "work", maxTransitions: 1 } } };
test("a wait takes only its own signal, whose status is the outcome", async () => {
  await using world = await openWorld({
    ".kxm/agents/a.yaml": ECHO,
    ".kxm/workflows/main.yaml": workflow([work, wait], { limits: { maxTransitions: 9 } }),
  });
  const runId = await world.start();
  expect(await world.until(runId, ({ status }) => status === "waiting")).toMatchObject({ waitsFor: "checks", reason: "waits for the signal checks" });
  expect(code(() => world.apply("signal", { signal: "other" }, runId))).toBe("run_not_accepting");
  world.apply("signal", { signal: "checks", status: "red", summary: "2 jobs failed" }, runId);
  await world.until(runId, (run) => run.steps[0]!.attempts === 2 && run.status === "waiting");
  world.apply("signal", { signal: "checks" }, runId);
  expect(await world.finished(runId)).toMatchObject({ status: "completed", steps: [{ attempts: 2 }, { attempts: 2, outcome: "passed" }] });
  expect(code(() => world.apply("signal", { signal: "checks" }, runId))).toBe("run_not_accepting");
});

test("a wait ends when its time is over, and a status the step does not know fails it", async () => {
  await using world = await openWorld({
    ".kxm/workflows/main.yaml": workflow([{ id: "ci", kind: "wait", signal: "checks", timeoutMs: 100 }]),
    ".kxm/workflows/long.yaml": workflow([{ id: "ci", kind: "wait", signal: "checks" }]),
  });
  expect(await world.finished(await world.start())).toMatchObject({
    status: "failed",
    reason: expect.stringContaining("wait_timeout: the signal checks did not come in time"),
  });
  const runId = await world.start({ workflowId: "long" });
  await world.until(runId, ({ status }) => status === "waiting");
  world.apply("signal", { signal: "checks", status: "purple" }, runId);
  expect(await world.finished(runId)).toMatchObject({ status: "failed", reason: expect.stringContaining("signal_unknown") });
});

test("cancel is an event first, then everything is ended, also what ignores SIGTERM; no process is left", async () => {
  const stubborn = script("trap '' TERM; (trap '' TERM; while :; do sleep 0.05; done) & while :; do sleep 0.05; done");
  await using world = await openWorld({
    ".kxm/agents/a.yaml": stubborn,
    ".kxm/workflows/main.yaml": workflow([{ id: "work", kind: "agent", agent: "a" }]),
  });
  const runId = await world.start();
  const { current } = await world.until(runId, (run) => run.current?.attempts[0]?.status === "executing");
  const { attemptId } = current!.attempts[0]!;
  expect(await waitFor(() => markedProcesses(attemptId).length > 4, 5000)).toBe(true);
  world.apply("cancel", { reason: "enough" }, runId);
  expect(code(() => world.apply("cancel", {}, runId))).toBe("run_not_accepting");
  await world.until(runId, ({ status }) => status !== "running");
  expect(await world.finished(runId)).toMatchObject({ status: "cancelled", reason: "enough" });
  const statuses = world.events(runId).flatMap(({ eventType, payload }) => (eventType === "run.status_changed" ? [payload.status] : []));
  expect(statuses.slice(-2)).toEqual(["cancelling", "cancelled"]);
  expect(markedProcesses(attemptId)).toEqual([]);
  expect(code(() => world.apply("cancel", {}, runId))).toBe("run_not_accepting");
});

test("a run that waits or queues can be cancelled, too", async () => {
  await using world = await openWorld({ ".kxm/workflows/main.yaml": workflow([release]) });
  const runId = await world.start();
  await world.until(runId, (run) => run.asked !== undefined);
  world.apply("cancel", {}, runId);
  expect(await world.finished(runId)).toMatchObject({ status: "cancelled", asked: undefined });
});

test("retry runs the work of an ended run once more, with the same prompt", async () => {
  await using world = await openWorld({ ".kxm/agents/a.yaml": ECHO, ".kxm/workflows/main.yaml": workflow([work]) });
  const runId = await world.start({ prompt: "Do it\nplease" });
  await world.finished(runId);
  const { intakeId, retryOf } = world.apply("retry", {}, runId);
  expect(retryOf).toBe(runId);
  const { intake } = await world.call("GET", "/v1/projects/:projectKey/intake/:intakeId", { intakeId }, { query: "waitMs=5000" });
  expect(await world.finished(intake.runId)).toMatchObject({ status: "completed", title: "Do it" });
});

test("what the hub refused is queued again by its code", async () => {
  await using world = await openWorld({ ".kxm/agents/a.yaml": ECHO, ".kxm/workflows/main.yaml": workflow([work]) });
  await world.finished(await world.start());
  const { store } = world.project;
  const [first, second] = store.read.outbox.pending(0, 2);
  store.commit((tx) => {
    tx.outbox.refuse(first!.seq, "sync_sequence_reused");
    tx.outbox.refuse(second!.seq, "sync_row_too_large");
  });
  expect(world.apply("sync-retry", { code: "sync_row_too_large" })).toEqual({ requeued: 1 });
  expect(store.read.outbox.counts().refused).toEqual({ sync_sequence_reused: 1 });
  expect(world.apply("sync-retry", {})).toEqual({ requeued: 1 });
});

test("a workflow that is edited while it runs changes nothing in the run", async () => {
  await using world = await openWorld({
    ".kxm/agents/a.yaml": ECHO,
    ".kxm/workflows/main.yaml": workflow([work, release, { id: "last", kind: "agent", agent: "a" }]),
  });
  const runId = await world.start();
  const { asked, planHash } = await world.until(runId, (run) => run.asked !== undefined);
  world.put(".kxm/workflows/main.yaml", "schema: nonsense");
  world.apply("approve", { approvalId: asked!.approvalId, contentHash: asked!.contentHash }, runId);
  expect(await world.finished(runId)).toMatchObject({ status: "completed", planHash, steps: [{}, {}, { id: "last", outcome: "passed" }] });
  await expect(world.start()).rejects.toThrow("schema_unknown");
});

test("a gate that expects failure proves a reproduction; its oracle may not be weakened later", async () => {
  const fix = script(`cat >/dev/null; echo 'exit 0' >fixed.sh; if [ -n "$WEAKEN" ]; then echo 'exit 1 # weaker' >repro.sh; fi; ${PASSED}`, {
    tools: "workspace-writer",
    env: ["WEAKEN"],
  });
  const flow = workflow(
    [
      { id: "repro", kind: "gate", gate: "repro", expect: "fail", on: { passed: "oracle", "repro-missing": "$terminal" } },
      { id: "oracle", kind: "gate", gate: "file", on: { passed: "fix", "implementation-failure": "$terminal" } },
      { id: "fix", kind: "agent", agent: "fix" },
      { id: "proof", kind: "gate", gate: "file", on: { passed: "check", "implementation-failure": "$terminal" } },
      { id: "check", kind: "gate", gate: "fixed", on: { passed: "$terminal", "implementation-failure": "$terminal" } },
    ],
    { reproOracle: { step: "oracle", evidenceKey: "file" } },
  );
  const files = {
    "repro.sh": "exit 1\n",
    "fixed.sh": "exit 1\n",
    ".kxm/agents/fix.yaml": fix,
    ".kxm/gates.yaml": gates({
      repro: { argv: ["/bin/sh", "repro.sh"] },
      fixed: { argv: ["/bin/sh", "fixed.sh"] },
      file: { kind: "artifacts-exist", paths: ["repro.sh"] },
    }),
    ".kxm/workflows/main.yaml": flow,
  };
  {
    await using world = await openWorld(files);
    expect(await world.finished(await world.start())).toMatchObject({
      status: "completed",
      steps: [{ outcome: "passed" }, {}, {}, {}, { outcome: "passed" }],
    });
  }
  process.env["WEAKEN"] = "1";
  try {
    await using world = await openWorld(files);
    expect(await world.finished(await world.start())).toMatchObject({ status: "failed", reason: expect.stringContaining("weakened_reproduction") });
  } finally {
    delete process.env["WEAKEN"];
  }
  await using world = await openWorld({ ...files, "repro.sh": "exit 0\n" });
  expect(await world.finished(await world.start())).toMatchObject({ status: "failed", steps: [{ outcome: "repro-missing" }, {}, {}, {}, {}] });
});

test("a step that needs a pinned plan does not start without one", async () => {
  const planner = (evidence: string) => script(`cat >/dev/null; echo '{"outcome":"passed"${evidence}}'`);
  const flow = (order: string[]) =>
    workflow(
      order.map((id) => ({ id, kind: "agent", agent: id, maxAttempts: 1 })),
      { planHash: { step: "plan", evidenceKey: "plan" }, requirePlanHash: ["build"] },
    );
  const files = {
    ".kxm/agents/plan.yaml": planner(',"evidence":{"plan":"1. do it"}'),
    ".kxm/agents/build.yaml": ECHO,
    ".kxm/agents/first.yaml": ECHO,
    ".kxm/workflows/main.yaml": flow(["plan", "build"]),
    ".kxm/workflows/early.yaml": flow(["first", "build", "plan"]),
  };
  await using world = await openWorld(files);
  expect((await world.finished(await world.start())).status).toBe("completed");
  expect(await world.finished(await world.start({ workflowId: "early" }))).toMatchObject({
    status: "failed",
    reason: "plan_hash_required: build starts only once a plan is pinned",
  });
  world.put(".kxm/agents/plan.yaml", planner(""));
  expect(await world.finished(await world.start())).toMatchObject({
    status: "failed",
    reason: expect.stringContaining("evidence_missing: the step must show plan"),
  });
});

test("required evidence is held to its kind, number and producers", async () => {
  const says = (text: string) => script(`cat >/dev/null; echo made >made.txt; echo '${text}'`, { tools: "workspace-writer" });
  const step = (requiredEvidence: object[]) => workflow([{ id: "work", kind: "agent", agent: "a", maxAttempts: 1, requiredEvidence }]);
  const cases: [string, object[], string][] = [
    ['{"outcome":"passed","evidence":{"out":"made.txt"}}', [{ key: "out", kind: "artifact" }], "completed"],
    ['{"outcome":"passed","evidence":{"out":"gone.txt"}}', [{ key: "out", kind: "artifact" }], "gone.txt does not exist"],
    ['{"outcome":"passed","evidence":{"out":"../../../../etc/passwd"}}', [{ key: "out", kind: "artifact" }], "is not a path inside the repository"],
    ['{"outcome":"passed","evidence":{"tests":"green"}}', [{ key: "tests", kind: "gate" }], "tests (gate): 0 of 1"],
    ['{"outcome":"passed","evidence":{"note":"a"}}', [{ key: "note", kind: "assignment-result", minimum: 2 }], "note (assignment-result): 1 of 2"],
    ['{"outcome":"passed"}', [{ key: "note", kind: "approval" }], "note (approval): 0 of 1"],
  ];
  for (const [reply, required, expected] of cases) {
    await using world = await openWorld({ ".kxm/agents/a.yaml": says(reply), ".kxm/workflows/main.yaml": step(required) });
    const run = await world.finished(await world.start());
    expect(`${run.status} ${run.reason ?? ""}`).toContain(expected);
  }
});

test("evidence of an earlier gate counts only where it may be reused", async () => {
  const flow = (reusableAcrossAttempts: boolean) =>
    workflow([
      { id: "check", kind: "gate", gate: "yes", on: { passed: "work", "implementation-failure": "$terminal" } },
      { id: "work", kind: "agent", agent: "a", maxAttempts: 1, requiredEvidence: [{ key: "yes", kind: "gate", reusableAcrossAttempts }] },
    ]);
  await using world = await openWorld({
    ".kxm/agents/a.yaml": ECHO,
    ".kxm/gates.yaml": gates({ yes: { argv: ["/bin/true"] } }),
    ".kxm/workflows/main.yaml": flow(true),
    ".kxm/workflows/strict.yaml": flow(false),
  });
  expect((await world.finished(await world.start())).status).toBe("completed");
  expect(await world.finished(await world.start({ workflowId: "strict" }))).toMatchObject({
    status: "failed",
    reason: expect.stringContaining("yes (gate): 0 of 1"),
  });
});

test("a write step's work is on a branch of its own with its paths; later steps start from it; the checkout is untouched", async () => {
  const coder = script(`cat >/dev/null; mkdir -p src; echo new >src/new.txt; echo changed >old.txt; rm gone.txt; ${PASSED}`, {
    tools: "workspace-writer",
  });
  const reader = script(`cat >/dev/null; test "$(cat old.txt)" = changed && test ! -f gone.txt && echo junk >junk.txt && ${PASSED}`);
  await using world = await openWorld({
    "old.txt": "old\n",
    "gone.txt": "gone\n",
    ".kxm/agents/coder.yaml": coder,
    ".kxm/agents/reader.yaml": reader,
    ".kxm/workflows/main.yaml": workflow([
      { id: "code", kind: "agent", agent: "coder" },
      { id: "read", kind: "agent", agent: "reader" },
      { id: "twice", kind: "agent", agent: "reader" },
    ]),
  });
  const runId = await world.start();
  const run = await world.finished(runId);
  expect(run).toMatchObject({
    status: "completed",
    steps: [{ changes: [{ repositoryId: "main", branch: `kxm/${runId}/code` }] }, { changes: [] }, {}],
  });
  const recorded = world.events(runId).find(({ eventType, payload }) => eventType === "step.outcome_recorded" && payload.stepId === "code")!;
  expect(recorded.payload.fileChanges).toEqual([{ repositoryId: "main", added: ["src/new.txt"], modified: ["old.txt"], deleted: ["gone.txt"] }]);
  expect(recorded.payload.local).toMatchObject({ changes: [{ linesAdded: 2, linesRemoved: 2, commit: run.repositories[0]!.head }] });
  expect(sh(world.root, "git status --porcelain; cat old.txt")).toBe("old");
  expect(sh(world.root, `git rev-parse kxm/${runId}/code`)).toBe(run.repositories[0]!.head);
});

test("attempts, gates and evidence stand in their tables as the events say", async () => {
  await using world = await openWorld({
    ".kxm/agents/a.yaml": script(`cat >/dev/null; echo '{"outcome":"passed","evidence":{"plan":"do it"}}'`),
    ".kxm/gates.yaml": gates({ yes: { argv: ["/bin/true"] } }),
    ".kxm/workflows/main.yaml": workflow([
      work,
      { id: "check", kind: "gate", gate: "yes", on: { passed: "$terminal", "implementation-failure": "$terminal" } },
    ]),
  });
  const runId = await world.start();
  await world.finished(runId);
  const { attempts, gates: tables } = world.project.store.read;
  expect(attempts.ofRun(runId)).toMatchObject([{ stepId: "work", state: "passed", pid: expect.any(Number), endedAt: expect.any(Number) }]);
  expect(tables.ofRun(runId)).toMatchObject([{ stepId: "check", gateId: "yes", state: "passed" }]);
  expect(tables.observations(tables.ofRun(runId)[0]!.gateAttemptId).map(({ kind, record }) => [kind, record["exitCode"]])).toEqual([
    ["executing", undefined],
    ["passed", 0],
  ]);
  expect(tables.evidence(runId).map(({ key, kind, stepId }) => `${stepId} ${key} ${kind}`)).toEqual([
    "work plan assignment-result",
    "check yes gate",
  ]);
  expect([attempts.open(), tables.open()]).toEqual([[], []]);
});
