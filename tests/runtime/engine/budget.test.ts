import { expect, test } from "bun:test";
import { systemClock } from "../../../src/runtime/clock.ts";
import { gates, openWorld, PASSED, script, workflow } from "./world.ts";

const ECHO = { schema: "kxm.agent.v1", purpose: "echoes" };
const NO = gates({ no: { argv: ["/bin/false"] }, yes: { argv: ["/bin/true"] } });
const work = { id: "work", kind: "agent", agent: "a" };
const check = (maxTransitions: number) => ({
  id: "check",
  kind: "gate",
  gate: "no",
  on: { passed: "$terminal", "implementation-failure": { target: "work", maxTransitions } },
});
const reasonOf = async (files: Record<string, string | object>) => {
  await using world = await openWorld(files);
  const run = await world.finished(await world.start());
  expect(run.status).toBe("failed");
  return run.reason;
};

test("an edge that is used up ends the run and says the numbers", async () => {
  const flow = workflow([work, check(2)], { limits: { maxTransitions: 50 } });
  expect(await reasonOf({ ".kxm/agents/a.yaml": ECHO, ".kxm/gates.yaml": NO, ".kxm/workflows/main.yaml": flow })).toBe(
    "budget_edge: check → work by implementation-failure was taken 2 times, 2 are allowed",
  );
});

test("transitions of the run are counted over all edges", async () => {
  const flow = workflow([work, check(2)], { limits: { maxTransitions: 2 } });
  expect(await reasonOf({ ".kxm/agents/a.yaml": ECHO, ".kxm/gates.yaml": NO, ".kxm/workflows/main.yaml": flow })).toBe(
    "budget_transitions: the run entered another step 2 times, 2 are allowed",
  );
});

test("attempts of a step are counted each time it is entered", async () => {
  const flow = workflow([{ ...work, maxAttempts: 2 }]);
  const reason = await reasonOf({ ".kxm/agents/a.yaml": script("cat >/dev/null; echo no object"), ".kxm/workflows/main.yaml": flow });
  expect(reason).toBe(
    "budget_step_attempts: step work used its 2 attempts; the last: outcome_unknown: no outcome was declared: the reply does not end with a JSON object",
  );
});

test("the run's duration ends it while an agent works, and the agent with it", async () => {
  const flow = workflow([work], { limits: { maxRunDurationMs: 1000 } });
  expect(await reasonOf({ ".kxm/agents/a.yaml": script("sleep 60"), ".kxm/workflows/main.yaml": flow })).toMatch(
    /^budget_run_duration: the run took \d+(\.\d)? s, 1 s are allowed$/,
  );
});

test("agents' time is added up over steps and ends the run in the middle of one", async () => {
  const flow = workflow([work, { ...work, id: "again" }], { limits: { maxAgentTimeMs: 1000 } });
  const started = performance.now();
  expect(await reasonOf({ ".kxm/agents/a.yaml": script(`sleep 0.6; ${PASSED}`), ".kxm/workflows/main.yaml": flow })).toMatch(
    /^budget_agent_time: agents worked 1(\.\d)? s, 1 s are allowed$/,
  );
  expect(performance.now() - started).toBeLessThan(8000);
});

/** Answers like Claude Code, with a cost. */
const costs = (usd: number) =>
  script(
    `cat >/dev/null; echo '{"type":"result","subtype":"success","is_error":false,"result":"{\\"outcome\\":\\"passed\\"}","total_cost_usd":${usd},"usage":{"input_tokens":10,"output_tokens":5},"session_id":"s"}'`,
  );
const paid = (usd: number) => ({ agent: costs(usd) });

test("at 80 % of its money a run asks; approved it goes on, and stops hard at the limit", async () => {
  const claude = { ...(paid(0.45).agent as any), harness: "claude" };
  delete claude.command;
  const steps = ["a", "b", "c"].map((id) => ({ id, kind: "agent", agent: "payer" }));
  await using world = await openWorld({
    ".kxm/agents/payer.yaml": claude,
    ".kxm/workflows/main.yaml": workflow(steps, { limits: { maxModelCost: 1, currency: "USD" } }),
  });
  world.put("bin/claude", `#!/bin/sh\n${(paid(0.45).agent as any).command[2]}\n`);
  Bun.spawnSync(["chmod", "+x", `${world.root}/bin/claude`]);
  const path = process.env["PATH"];
  process.env["PATH"] = `${world.root}/bin:${path}`;
  try {
    const runId = await world.start();
    const asks = await world.until(runId, ({ asked }) => asked !== undefined);
    expect(asks).toMatchObject({
      status: "waiting",
      asked: { content: { purpose: "cost", stepId: "c", numbers: { spent: 0.9, limit: 1, currency: "USD" } } },
    });
    world.apply("approve", { approvalId: asks.asked!.approvalId, contentHash: asks.asked!.contentHash }, runId);
    const run = await world.finished(runId);
    expect(run).toMatchObject({ status: "failed", reason: "budget_model_cost: models cost 1.3500 USD, 1 are allowed", used: { costKnown: true } });
    expect(world.outbox().filter(({ problem }) => problem)).toEqual([]);
  } finally {
    process.env["PATH"] = path;
  }
});

test("the same outcome with the same evidence three times pauses the run; rejected, it ends", async () => {
  const flow = workflow([work, check(9)], { limits: { maxTransitions: 50 } });
  await using world = await openWorld({ ".kxm/agents/a.yaml": ECHO, ".kxm/gates.yaml": NO, ".kxm/workflows/main.yaml": flow });
  const runId = await world.start();
  const asks = await world.until(runId, ({ asked }) => asked !== undefined);
  expect(asks.asked!.content).toMatchObject({ purpose: "no-progress", stepId: "check", numbers: { times: 3, outcome: "implementation-failure" } });
  world.apply("approve", { approvalId: asks.asked!.approvalId, contentHash: asks.asked!.contentHash }, runId);
  const again = await world.until(runId, ({ asked }) => asked !== undefined && asked.approvalId !== asks.asked!.approvalId);
  expect(again.asked!.content).toMatchObject({ numbers: { times: 6 } });
  world.apply("reject", { approvalId: again.asked!.approvalId, contentHash: again.asked!.contentHash, reason: "stuck" }, runId);
  expect(await world.finished(runId)).toMatchObject({ status: "failed", reason: "no_progress: tester decided not to go on" });
});

test("only so many runs execute at once; the rest queue in order with a place and what is before them", async () => {
  const files = {
    ".kxm/agents/a.yaml": script(`while [ ! -f $KXM_GO ]; do sleep 0.02; done; ${PASSED}`, { env: ["KXM_GO", "GO"] }),
    ".kxm/workflows/main.yaml": workflow([work]),
  };
  await using world = await openWorld({
    ...files,
    ".kxm/agents/a.yaml": script(`while [ ! -f "$GO" ]; do sleep 0.02; done; ${PASSED}`, { env: ["GO"] }),
  });
  process.env["GO"] = `${world.base}/go`;
  world.put(
    ".kxm/project.yaml",
    "schema: kxm.project.v1\nid: prj_engine_test\nname: demo\ndefaultWorkflow: main\ndefaultHarness: echo\nlimits: {maxConcurrentRuns: 2}\n",
  );
  const runs: string[] = [];
  for (let i = 0; i < 4; i++) runs.push(await world.start({ displayTitle: `r${i}` }));
  const [first, second, third, fourth] = runs as [string, string, string, string];
  expect((await world.view(third)).queue).toEqual({ position: 1, blockers: [first, second] });
  expect(await world.view(fourth)).toMatchObject({
    status: "queued",
    reason: "waits for one of 2 places",
    queue: { position: 2, blockers: [first, second, third] },
  });
  expect(world.engine.report().slots).toEqual({ running: 2, queued: 2, total: 2 });
  world.apply("cancel", { reason: "not needed" }, third);
  expect(await world.finished(third)).toMatchObject({ status: "cancelled" });
  world.put("../go", "");
  for (const runId of [first, second, fourth]) expect((await world.finished(runId)).status).toBe("completed");
});

test("a run that waits for somebody leaves its place to the next one", async () => {
  await using world = await openWorld({
    ".kxm/workflows/main.yaml": workflow([{ id: "decide", kind: "approval", on: { passed: "$terminal" } }]),
    ".kxm/project.yaml":
      "schema: kxm.project.v1\nid: prj_engine_test\nname: demo\ndefaultWorkflow: main\ndefaultHarness: echo\nlimits: {maxConcurrentRuns: 1}\n",
  });
  // Handed in together: the second is made while the first is still preparing, or waits already.
  const runs = await Promise.all([
    world.start({ displayTitle: "one" }),
    world.start({ displayTitle: "two" }),
    world.start({ displayTitle: "three" }),
  ]);
  for (const runId of runs) await world.until(runId, ({ status }) => status === "waiting");
});

test("after a restart no more runs execute at once than the project says", async () => {
  await using world = await openWorld({
    ".kxm/agents/a.yaml": script(`while [ ! -f "$GO" ]; do sleep 0.02; done; ${PASSED}`, { env: ["GO"] }),
    ".kxm/workflows/main.yaml": workflow([work]),
    ".kxm/project.yaml":
      "schema: kxm.project.v1\nid: prj_engine_test\nname: demo\ndefaultWorkflow: main\ndefaultHarness: echo\nlimits: {maxConcurrentRuns: 1}\n",
  });
  process.env["GO"] = `${world.base}/go`;
  const runs = [await world.start(), await world.start(), await world.start()];
  world.vanish();
  world.reopen();
  await world.until(runs[0]!, ({ current }) => current?.attempts[0]?.status === "executing");
  expect(world.engine.report().slots).toEqual({ running: 1, queued: 2, total: 1 });
  expect((await world.view(runs[2]!)).queue).toEqual({ position: 2, blockers: [runs[0]!, runs[1]!] });
  world.put("../go", "");
  for (const runId of runs) expect((await world.finished(runId)).status).toBe("completed");
});

/** The time of this machine, with a wall that somebody sets. */
function setWall() {
  let off = 0;
  return { clock: { ...systemClock, now: () => systemClock.now() + off }, set: (ms: number) => void (off = ms) };
}
const HOUR_MS = 3_600_000;

test("a wall clock that is set forward costs a run none of its budgets", async () => {
  const { clock, set } = setWall();
  const flow = workflow([work, { ...work, id: "again" }], { limits: { maxAgentTimeMs: 600_000, maxRunDurationMs: 900_000 } });
  const agent = script(`while [ ! -f "$GO" ]; do sleep 0.02; done; ${PASSED}`, { env: ["GO"], timeoutMs: 60_000 });
  await using world = await openWorld({ ".kxm/agents/a.yaml": agent, ".kxm/workflows/main.yaml": flow }, { clock });
  process.env["GO"] = `${world.base}/go`;
  const runId = await world.start();
  await world.until(runId, ({ current }) => current?.attempts[0]?.status === "executing");
  set(HOUR_MS);
  expect((await world.view(runId)).used.agentMs).toBeLessThan(60_000);
  world.put("../go", "");
  const run = await world.finished(runId);
  expect(run).toMatchObject({ status: "completed" });
  expect(run.used.agentMs).toBeLessThan(60_000);
});

test("a wall clock that is set leaves the time that somebody has to decide as it was", async () => {
  for (const by of [HOUR_MS, -HOUR_MS]) {
    const { clock, set } = setWall();
    const ask = { id: "ask", kind: "approval", timeoutMs: 800, on: { passed: "$terminal", cancelled: "$terminal" } };
    await using world = await openWorld({ ".kxm/workflows/main.yaml": workflow([ask]) }, { clock });
    const began = performance.now();
    const runId = await world.start();
    const { asked } = await world.until(runId, (run) => run.asked !== undefined);
    set(by);
    expect(() => world.apply("signal", { signal: "none" }, runId)).toThrow("cannot be signalled");
    expect((await world.view(runId)).asked?.approvalId).toBe(asked!.approvalId);
    expect((await world.finished(runId, 10_000)).status).toBe("cancelled");
    expect(performance.now() - began).toBeGreaterThan(750);
  }
});

test("what a program reports in another currency is not held against the money of the run, and the cost is not known", async () => {
  const { command: _, ...claude } = { ...(costs(0.95) as any), harness: "claude" };
  const flow = workflow([{ id: "a", kind: "agent", agent: "payer" }], { limits: { maxModelCost: 1, currency: "EUR" } });
  await using world = await openWorld({ ".kxm/agents/payer.yaml": claude, ".kxm/workflows/main.yaml": flow });
  world.put("bin/claude", `#!/bin/sh\n${(costs(0.95) as any).command[2]}\n`);
  Bun.spawnSync(["chmod", "+x", `${world.root}/bin/claude`]);
  const path = process.env["PATH"];
  process.env["PATH"] = `${world.root}/bin:${path}`;
  try {
    const run = await world.finished(await world.start());
    expect(run).toMatchObject({ status: "completed", used: { cost: 0, costKnown: false, currency: "EUR", tokens: 15 } });
  } finally {
    process.env["PATH"] = path;
  }
});
