// Running work again from one of its steps: what the new run goes on with, and when it may not begin there.
import { expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gates, openWorld, PASSED, script, sh, type World, workflow } from "./world.ts";

const onGate = (passed: string) => ({ passed, "implementation-failure": "$terminal" });
const CODER = script(`cat >/dev/null; echo code >>code.txt; ${PASSED}`, { tools: "workspace-writer" });
/** Fails until the file it is told of exists. */
const fixable = (env: string) =>
  script(`cat >"$OUT.$KXM_STEP_ID"; if test -f "$${env}"; then ${PASSED}; else echo '{"outcome":"failed"}'; fi`, { env: ["OUT", env] });
const FILES = {
  ".kxm/agents/coder.yaml": CODER,
  ".kxm/agents/reviewer.yaml": fixable("FIXED"),
  ".kxm/gates.yaml": gates({ check: { argv: ["/bin/sh", "-c", "echo checked >>$OUT.checks; test -f code.txt"], env: ["OUT"] } }),
  ".kxm/workflows/main.yaml": workflow([
    { id: "code", kind: "agent", agent: "coder" },
    { id: "check", kind: "gate", gate: "check", on: onGate("review") },
    { id: "review", kind: "agent", agent: "reviewer", maxAttempts: 1 },
  ]),
};

async function opened(files: Parameters<typeof openWorld>[0] = {}): Promise<World> {
  const world = await openWorld({ ...FILES, ...files });
  process.env["OUT"] = join(world.base, "out");
  process.env["FIXED"] = join(world.base, "fixed");
  return world;
}
const fix = (world: World) => writeFileSync(join(world.base, "fixed"), "");
/** Hands a run in again, and answers the run that it became. */
async function again(world: World, runId: string, stepId?: string): Promise<string> {
  const { intakeId } = world.apply("retry", stepId ? { stepId } : {}, runId);
  const { intake } = await world.call("GET", "/v1/projects/:projectKey/intake/:intakeId", { intakeId }, { query: "waitMs=10000" });
  if (!intake.runId) throw new Error(intake.reason);
  return intake.runId;
}
const entered = (world: World, runId: string) =>
  world.events(runId).flatMap(({ eventType, payload }) => (eventType === "step.entered" ? [payload.stepId] : []));

test("a run begins at the step with the commits and results of the steps before it, and leaves the first run as it is", async () => {
  await using world = await opened();
  const first = await world.start({ prompt: "Do it" });
  const failed = await world.finished(first);
  expect(failed.status).toBe("failed");
  fix(world);
  const second = await again(world, first, "review");
  const run = await world.finished(second);
  expect([run.status, run.reason]).toEqual(["completed", undefined]);
  expect(entered(world, second)).toEqual(["review"]);
  expect(run.repositories).toEqual(failed.repositories);
  expect(run.steps).toMatchObject([
    { id: "code", status: "passed", attempts: 0, changes: [{ branch: `kxm/${first}/code` }] },
    { id: "check", status: "passed", attempts: 0 },
    { id: "review", status: "passed", attempts: 1 },
  ]);
  expect(run.from).toEqual({ runId: first, stepId: "review" });
  expect(readFileSync(join(world.base, "out.checks"), "utf8")).toBe("checked\n");
  const prompt = readFileSync(join(world.base, "out.review"), "utf8");
  expect([prompt.includes("# The run\n\nDo it"), prompt.includes("- code: passed. done")]).toEqual([true, true]);
  expect(await world.view(first)).toEqual(failed);
  const created = world.outbox().find(({ runId, eventType }) => runId === second && eventType === "run.created");
  expect(created.payload).toMatchObject({ stepId: "review", suppliedRefs: [{ id: first, kind: "run" }] });
  expect(world.outbox().filter(({ problem }) => problem)).toEqual([]);
});

test("what was carried over survives the supervisor, and a run that began in the middle can be run again itself", async () => {
  await using world = await opened();
  const first = await world.start();
  await world.finished(first);
  const second = await again(world, first, "review");
  const before = await world.finished(second);
  expect(before.status).toBe("failed");
  world.vanish();
  world.reopen();
  expect(await world.view(second)).toEqual(before);
  fix(world);
  const third = await world.finished(await again(world, second, "review"));
  expect(third).toMatchObject({ status: "completed", from: { runId: second }, repositories: before.repositories });
  expect(third.steps[0]).toMatchObject({ status: "passed", changes: [{ branch: `kxm/${first}/code` }] });
});

test("of a step that was entered more than once, the last time counts: the work that was done until then, not what came after it", async () => {
  const rework = { passed: "$terminal", rework: { target: "code", maxTransitions: 2 } };
  await using world = await opened({
    ".kxm/agents/reviewer.yaml": script(
      `cat >/dev/null; if test "$(grep -c code code.txt)" = 1; then echo '{"outcome":"rework"}'; else test -f "$FIXED" && ${PASSED}; fi`,
      { env: ["FIXED"] },
    ),
    ".kxm/workflows/main.yaml": workflow(
      [
        { id: "code", kind: "agent", agent: "coder" },
        { id: "check", kind: "gate", gate: "check", on: onGate("review") },
        { id: "review", kind: "agent", agent: "reviewer", maxAttempts: 1, on: rework },
      ],
      { limits: { maxTransitions: 10 } },
    ),
  });
  const first = await world.start();
  expect((await world.finished(first)).status).toBe("failed");
  expect(entered(world, first)).toEqual(["code", "check", "review", "code", "check", "review"]);
  const fromCode = await world.finished(await again(world, first, "code"));
  expect(sh(world.root, `git show ${fromCode.repositories[0]!.head}:code.txt`)).toBe("code\ncode");
  fix(world);
  const fromCheck = await world.finished(await again(world, first, "check"));
  expect([fromCheck.status, sh(world.root, `git show ${fromCheck.repositories[0]!.head}:code.txt`)]).toEqual(["completed", "code\ncode"]);
});

test("attempts of one visit are one beginning: the step begins as it did at the first of them", async () => {
  await using world = await opened({
    ".kxm/workflows/main.yaml": workflow([
      { id: "code", kind: "agent", agent: "coder" },
      { id: "review", kind: "agent", agent: "reviewer", maxAttempts: 2 },
    ]),
    ".kxm/agents/reviewer.yaml": script(`cat >"$OUT.review"; test -f "$FIXED" && ${PASSED}`, { env: ["OUT", "FIXED"] }),
  });
  const first = await world.start();
  await world.finished(first);
  expect(entered(world, first)).toEqual(["code", "review", "review"]);
  fix(world);
  expect((await world.finished(await again(world, first, "review"))).status).toBe("completed");
  const prompt = readFileSync(join(world.base, "out.review"), "utf8");
  expect([prompt.includes("- code: passed"), prompt.includes("- review: ")]).toEqual([true, false]);
});

test("evidence that counts across attempts and the pinned plan go with it", async () => {
  await using world = await opened({
    ".kxm/agents/planner.yaml": script(`cat >/dev/null; echo '{"outcome":"passed","evidence":{"plan":"1. do it"}}'`),
    ".kxm/workflows/main.yaml": workflow(
      [
        { id: "plan", kind: "agent", agent: "planner" },
        {
          id: "review",
          kind: "agent",
          agent: "reviewer",
          maxAttempts: 1,
          requiredEvidence: [{ key: "plan", kind: "assignment-result", reusableAcrossAttempts: true }],
        },
      ],
      { planHash: { step: "plan", evidenceKey: "plan" }, requirePlanHash: ["review"] },
    ),
  });
  const first = await world.start();
  await world.finished(first);
  fix(world);
  expect(await world.finished(await again(world, first, "review"))).toMatchObject({ status: "completed" });
});

test("a run that goes on, or never came to the step, is not run again from there", async () => {
  await using world = await opened({
    ".kxm/workflows/main.yaml": workflow([
      { id: "ask", kind: "approval" },
      { id: "review", kind: "agent", agent: "reviewer" },
    ]),
  });
  const runId = await world.start();
  const { asked } = await world.until(runId, (run) => run.asked !== undefined);
  expect(() => world.apply("retry", { stepId: "ask" }, runId)).toThrow("only a run that has ended");
  world.apply("reject", { approvalId: asked!.approvalId, contentHash: asked!.contentHash }, runId);
  await world.finished(runId);
  expect(() => world.apply("retry", { stepId: "review" }, runId)).toThrow("never came to a step review; it came to ask");
  expect(() => world.apply("retry", { stepId: "nowhere" }, runId)).toThrow("never came to a step nowhere");
});

const CHECKED = [
  { id: "code", kind: "agent", agent: "coder" },
  { id: "check", kind: "gate", gate: "check", on: onGate("review") },
];
const REVIEW = { id: "review", kind: "agent", agent: "reviewer", maxAttempts: 1 };
test.each<[string, Record<string, object>, string | undefined]>([
  [
    "the gate before it checks something else now",
    { "gates.yaml": gates({ check: { argv: ["/bin/true"] } }) },
    "check comes before review, and it has changed",
  ],
  [
    "a gate has come before it since",
    {
      "workflows/main.yaml": workflow([CHECKED[0]!, { id: "lint", kind: "gate", gate: "check", on: onGate("check") }, CHECKED[1]!, REVIEW]),
    },
    "lint comes before review, and the run had not passed it",
  ],
  [
    "the step is gone",
    { "workflows/main.yaml": workflow([...CHECKED, { ...REVIEW, id: "look" }].map((one) => ("gate" in one ? { ...one, on: onGate("look") } : one))) },
    "has no step review any more",
  ],
  [
    "it needs a pinned plan now",
    {
      "workflows/main.yaml": workflow([...CHECKED, REVIEW], { planHash: { step: "code", evidenceKey: "plan" }, requirePlanHash: ["review"] }),
    },
    "review starts only once a plan is pinned",
  ],
  [
    "the step itself and its agent have changed",
    {
      "agents/reviewer.yaml": script(`cat >/dev/null; ${PASSED}`),
      "workflows/main.yaml": workflow([...CHECKED, { ...REVIEW, description: "Looks" }]),
    },
    undefined,
  ],
  [
    "a gate that comes after it has changed",
    { "workflows/main.yaml": workflow([...CHECKED, REVIEW, { id: "last", kind: "gate", gate: "check", on: onGate("$terminal") }]) },
    undefined,
  ],
])("as the project's files are now: %s", async (_, changed, refusal) => {
  await using world = await opened();
  const runId = await world.start();
  await world.finished(runId);
  fix(world);
  for (const [path, content] of Object.entries(changed)) world.put(`.kxm/${path}`, content);
  if (refusal === undefined) expect((await world.finished(await again(world, runId, "review"))).status).toBe("completed");
  else await expect(again(world, runId, "review")).rejects.toThrow(refusal);
});

test("a gate that the run passed once, and that has come before the step only since, is no proof of what the step begins with", async () => {
  const rework = { passed: "$terminal", rework: { target: "code", maxTransitions: 2 } };
  const steps = (order: object[]) => workflow(order, { limits: { maxTransitions: 10 } });
  const code = { id: "code", kind: "agent", agent: "coder" };
  const check = (passed: string) => ({ id: "check", kind: "gate", gate: "check", on: onGate(passed) });
  // First the gate came after the review: it passed what was there before the rework.
  await using world = await opened({
    ".kxm/agents/reviewer.yaml": script(`cat >/dev/null; test "$(grep -c code code.txt)" = 1 && ${PASSED}`),
    ".kxm/agents/last.yaml": script(`cat >/dev/null; echo '{"outcome":"rework"}'`),
    ".kxm/workflows/main.yaml": steps([
      code,
      { ...REVIEW, on: { passed: "check" } },
      check("last"),
      { id: "last", kind: "agent", agent: "last", on: rework },
    ]),
  });
  const runId = await world.start();
  expect((await world.finished(runId)).status).toBe("failed");
  world.put(
    ".kxm/workflows/main.yaml",
    steps([code, check("review"), { ...REVIEW, on: { passed: "last" } }, { id: "last", kind: "agent", agent: "last", on: rework }]),
  );
  await expect(again(world, runId, "review")).rejects.toThrow("check comes before review, and the run had not passed it");
});

test("a plan that other evidence pins now is not pinned yet", async () => {
  const pins = (evidenceKey: string) =>
    workflow([{ id: "plan", kind: "agent", agent: "planner" }, REVIEW], { planHash: { step: "plan", evidenceKey }, requirePlanHash: ["review"] });
  await using world = await opened({
    ".kxm/agents/planner.yaml": script(`cat >/dev/null; echo '{"outcome":"passed","evidence":{"plan":"a","other":"b"}}'`),
    ".kxm/workflows/main.yaml": pins("plan"),
  });
  const runId = await world.start();
  expect((await world.finished(runId)).status).toBe("failed");
  world.put(".kxm/workflows/main.yaml", pins("other"));
  await expect(again(world, runId, "review")).rejects.toThrow("review starts only once a plan is pinned");
});

test("a run whose commits are gone is refused before anything runs", async () => {
  await using world = await opened();
  const runId = await world.start();
  await world.finished(runId);
  sh(
    world.root,
    `git worktree list --porcelain | sed -n 's/^worktree //p' | tail -n +2 | while read tree; do git worktree remove --force "$tree"; done`,
  );
  sh(world.root, `git branch -D kxm/${runId}/code && git reflog expire --expire=now --all && git gc -q --prune=now`);
  await expect(again(world, runId, "review")).rejects.toThrow(
    /the commit [0-9a-f]{12} of the repository main is not there any more\. Run the work again/,
  );
  expect(existsSync(join(world.base, "state/attempts")) ? sh(world.base, "ls state/attempts") : "").toBe("");
});

test("from the beginning it starts at the commit that is checked out now, and says which run it repeats", async () => {
  await using world = await opened();
  const first = await world.start();
  await world.finished(first);
  world.put("later.txt", "later");
  sh(world.root, "git add -A && git commit -qm later");
  const run = await world.finished(await again(world, first));
  expect(run.repositories[0]!.base).toBe(sh(world.root, "git rev-parse HEAD"));
  expect(run.from).toBeUndefined();
  const created = world.outbox().find(({ runId, eventType }) => runId === run.runId && eventType === "run.created");
  expect(created.payload.suppliedRefs).toEqual([{ id: first, kind: "run" }]);
});

test("a run that went round a thousand times carries no more into the next one than what a step can ask for", async () => {
  await using world = await opened();
  fix(world);
  const first = await world.start();
  await world.finished(first);
  const { store } = world.project;
  const [created] = world.events(first);
  const outcome = world.events(first).find(({ eventType, payload }) => eventType === "step.outcome_recorded" && payload.stepId === "check")!;
  const { local, ...payload } = outcome.payload as any;
  const evidence = local.evidence.map((one: object) => ({ ...one, text: "x ".repeat(1500) }));
  const { plan, planHash } = store.read.runs.planOf(first)!;
  const long = store.commit((tx) => {
    const { runId, createdAt, ...run } = store.read.runs.find(first)! as any;
    const made = tx.createRun({ ...run, plan, planHash }, created!.payload.local);
    for (let round = 1; round <= 1000; round++) {
      const stepId = round % 2 ? "check" : "review";
      tx.append(made.runId, { type: "step.entered", payload: { stepId, stepAttempt: round, status: "running" }, local: { visit: round } });
      tx.append(made.runId, {
        type: "step.outcome_recorded",
        payload: { ...payload, stepId, stepAttempt: round },
        local: { ...local, evidence },
      });
    }
    tx.append(made.runId, { type: "run.status_changed", payload: { status: "failed", previousStatus: "running" } });
    return made.runId;
  });
  const second = await again(world, long, "review");
  expect((await world.finished(second)).status).toBe("completed");
  const [began] = world.events(second);
  expect((began!.payload.local as any).carried.evidence).toHaveLength(64);
  expect(JSON.stringify(began).length).toBeLessThan(65_536);
});
