// The machine takes the supervisor and its programs at once: what cannot be proven is never done again by itself.
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { endAttempt, isAlive, markedProcesses, waitFor } from "../../../src/runtime/harness/process.ts";
import { gates, openWorld, PASSED, script, sh, type World, workflow } from "./world.ts";

const slow = (effect: string, lease?: string) =>
  gates({ ship: { argv: ["/bin/sh", "-c", 'echo shipped >>"$LEDGER"; sleep 30'], env: ["LEDGER"], effect, ...(lease && { lease }) } });
const ship = { id: "ship", kind: "gate", gate: "ship", on: { passed: "$terminal", "implementation-failure": "$terminal" }, maxAttempts: 3 };

/** A run whose gate was running when everything ended at once. */
async function struck(world: World, { killPrograms = true } = {}): Promise<{ runId: string; attemptId: string }> {
  process.env["LEDGER"] = join(world.base, "ledger");
  const runId = await world.start();
  const { current } = await world.until(runId, (run) => run.current?.attempts[0]?.status === "executing");
  const { attemptId } = current!.attempts[0]!;
  await waitFor(() => Bun.file(process.env["LEDGER"]!).size > 0, 5000);
  world.vanish();
  if (killPrograms) await endAttempt({ attemptId }, 0);
  world.reopen();
  return { runId, attemptId };
}
const ledger = () => readFileSync(process.env["LEDGER"]!, "utf8").trim().split("\n");

for (const effect of ["external-non-idempotent", "receipt-queryable", "unknown"])
  test(`a lost gate of the class ${effect} stops the run and says what may be done`, async () => {
    await using world = await openWorld({ ".kxm/gates.yaml": slow(effect), ".kxm/workflows/main.yaml": workflow([ship]) });
    const { runId } = await struck(world);
    const run = await world.until(runId, ({ status }) => status === "blocked_uncertain");
    expect(run.uncertain).toMatchObject([
      { stepId: "ship", resolutions: ["mark-completed", "confirm-absent-and-retry", "compensate-and-retry", "mark-failed", "cancel"] },
    ]);
    expect(run.reason).toContain("its program is gone and left no exit code");
    expect(ledger()).toEqual(["shipped"]);
    // Another restart changes nothing: it waits for somebody who knows.
    world.vanish();
    world.reopen();
    expect((await world.view(runId)).status).toBe("blocked_uncertain");
    expect(ledger()).toEqual(["shipped"]);
    expect(world.outbox().filter(({ problem }) => problem)).toEqual([]);
  });

for (const [action, status, times] of [
  ["mark-completed", "completed", 1],
  ["mark-failed", "failed", 1],
  ["cancel", "cancelled", 1],
  ["confirm-absent-and-retry", "running", 2],
  ["compensate-and-retry", "running", 2],
] as const)
  test(`resolved by ${action} the run is ${status}, and who said so is recorded`, async () => {
    await using world = await openWorld({ ".kxm/gates.yaml": slow("external-non-idempotent"), ".kxm/workflows/main.yaml": workflow([ship]) });
    const { runId } = await struck(world);
    const { uncertain } = await world.until(runId, (run) => run.status === "blocked_uncertain");
    world.apply(
      "resolve",
      { action, reason: "looked at the server", effectId: uncertain[0]!.effectId, refs: ["https://example.com/log/1", "msg_0123456789"] },
      runId,
    );
    await world.until(runId, (run) => run.status === status && ledger().length === times);
    const resolved = world.events(runId).find(({ eventType }) => eventType === "effect.uncertainty_resolved")!;
    expect(resolved.payload).toMatchObject({
      resolvedBy: { kind: "human", id: "tester" },
      resolutionAction: action,
      reason: "looked at the server",
      suppliedRefs: [{ kind: "reference" }, { id: "msg_0123456789" }],
    });
    expect(world.outbox().filter(({ problem }) => problem)).toEqual([]);
    expect(() => world.apply("resolve", { action, reason: "again" }, runId)).toThrow("0 uncertain effects");
  });

test("a command that runs is watched again even while git does not work", async () => {
  await using world = await openWorld({
    ".kxm/gates.yaml": gates({ ship: { argv: ["/bin/sh", "-c", 'echo shipped >>"$LEDGER"; sleep 1'], env: ["LEDGER"], effect: "unknown" } }),
    ".kxm/workflows/main.yaml": workflow([ship]),
  });
  process.env["LEDGER"] = join(world.base, "ledger");
  const runId = await world.start();
  await world.until(runId, (run) => run.current?.attempts[0]?.status === "executing");
  world.vanish();
  sh(world.root, "mv .git .git-away");
  world.reopen();
  expect(await world.finished(runId)).toMatchObject({ status: "completed" });
  expect(ledger()).toEqual(["shipped"]);
});

test("a lost gate that may be repeated, and a lost agent, are tried again as new attempts", async () => {
  await using world = await openWorld({
    ".kxm/agents/a.yaml": script(`cat >/dev/null; echo a >>"$LEDGER"; if [ $(wc -l <"$LEDGER") -lt 2 ]; then sleep 30; fi; ${PASSED}`, {
      env: ["LEDGER"],
    }),
    ".kxm/workflows/main.yaml": workflow([{ id: "work", kind: "agent", agent: "a" }]),
  });
  const { runId, attemptId } = await struck(world);
  const run = await world.finished(runId);
  expect(run).toMatchObject({ status: "completed", steps: [{ attempts: 2 }] });
  const ended = world.events(runId).find(({ payload }) => payload.attemptId === attemptId && payload.status === "failed")!;
  expect(ended.payload.error).toMatchObject({ class: "interrupted", retryable: true });
});

test("a program that outlives its supervisor is taken up again, not started twice", async () => {
  await using world = await openWorld({
    ".kxm/agents/a.yaml": script(`cat >/dev/null; echo a >>"$LEDGER"; while [ ! -f "$LEDGER.go" ]; do sleep 0.02; done; ${PASSED}`, {
      env: ["LEDGER"],
    }),
    ".kxm/workflows/main.yaml": workflow([{ id: "work", kind: "agent", agent: "a" }]),
  });
  const { runId, attemptId } = await struck(world, { killPrograms: false });
  await world.until(runId, () => world.events(runId).some(({ eventType }) => eventType === "assignment.reattaching"));
  expect(markedProcesses(attemptId).length).toBeGreaterThan(0);
  world.put("../ledger.go", "");
  expect(await world.finished(runId)).toMatchObject({ status: "completed", steps: [{ attempts: 1 }] });
  expect(ledger()).toEqual(["a"]);
});

test("what ended while nobody looked is read from its folder", async () => {
  await using world = await openWorld({
    ".kxm/agents/a.yaml": script(`cat >/dev/null; echo a >>"$LEDGER"; sleep 0.3; ${PASSED}`, { env: ["LEDGER"] }),
    ".kxm/workflows/main.yaml": workflow([{ id: "work", kind: "agent", agent: "a" }]),
  });
  process.env["LEDGER"] = join(world.base, "ledger");
  const runId = await world.start();
  const { current } = await world.until(runId, (run) => run.current?.attempts[0]?.status === "executing");
  world.vanish();
  await waitFor(() => markedProcesses(current!.attempts[0]!.attemptId).length === 0, 5000);
  world.reopen();
  expect(await world.finished(runId)).toMatchObject({ status: "completed", steps: [{ attempts: 1, summary: "done" }] });
});

test("a clean stop ends every program and the run goes on after the next start", async () => {
  await using world = await openWorld({
    ".kxm/agents/a.yaml": script(`trap '' TERM; cat >/dev/null; echo a >>"$LEDGER"; while [ ! -f "$LEDGER.go" ]; do sleep 0.02; done; ${PASSED}`, {
      env: ["LEDGER"],
    }),
    ".kxm/workflows/main.yaml": workflow([{ id: "work", kind: "agent", agent: "a" }]),
  });
  process.env["LEDGER"] = join(world.base, "ledger");
  const runId = await world.start();
  const { current } = await world.until(runId, (run) => run.current?.attempts[0]?.status === "executing");
  await waitFor(() => Bun.file(process.env["LEDGER"]!).size > 0, 5000);
  await world.engine.stop(5000);
  expect(markedProcesses(current!.attempts[0]!.attemptId)).toEqual([]);
  world.project.store.close();
  world.project.prompts.close();
  world.put("../ledger.go", "");
  world.reopen();
  expect(await world.finished(runId)).toMatchObject({ status: "completed", steps: [{ attempts: 2 }] });
});

test("cancelling a run with an uncertain effect waits for its resolution", async () => {
  await using world = await openWorld({ ".kxm/gates.yaml": slow("unknown"), ".kxm/workflows/main.yaml": workflow([ship]) });
  const { runId } = await struck(world);
  await world.until(runId, (run) => run.status === "blocked_uncertain");
  world.apply("cancel", { reason: "stop it" }, runId);
  expect((await world.view(runId)).status).toBe("blocked_uncertain");
  world.apply("resolve", { action: "mark-completed", reason: "seen on the server" }, runId);
  expect(await world.finished(runId)).toMatchObject({ status: "cancelled", reason: "stop it" });
});

test("a gate that is cancelled while its effect may have happened is uncertain, not cancelled", async () => {
  await using world = await openWorld({ ".kxm/gates.yaml": slow("external-non-idempotent"), ".kxm/workflows/main.yaml": workflow([ship]) });
  process.env["LEDGER"] = join(world.base, "ledger");
  const runId = await world.start();
  const { current } = await world.until(runId, (run) => run.current?.attempts[0]?.status === "executing");
  await waitFor(() => Bun.file(process.env["LEDGER"]!).size > 0, 5000); // a signal that came before it is kept from it by its shell
  world.apply("cancel", {}, runId);
  expect(await world.until(runId, (run) => run.status === "blocked_uncertain")).toMatchObject({
    uncertain: [{ reason: "the command was ended before it said how it went" }],
  });
  expect(markedProcesses(current!.attempts[0]!.attemptId)).toEqual([]);
});

test("a checkout that moves away leaves its programs alone, and the run goes on when it is back", async () => {
  await using world = await openWorld({
    ".kxm/agents/a.yaml": script(`cat >/dev/null; echo a >>"$LEDGER"; while [ ! -f "$LEDGER.go" ]; do sleep 0.02; done; ${PASSED}`, {
      env: ["LEDGER"],
    }),
    ".kxm/workflows/main.yaml": workflow([
      { id: "work", kind: "agent", agent: "a" },
      { id: "again", kind: "agent", agent: "a" },
    ]),
  });
  process.env["LEDGER"] = join(world.base, "ledger");
  const runId = await world.start();
  const { current } = await world.until(runId, (run) => run.current?.attempts[0]?.status === "executing");
  await waitFor(() => Bun.file(process.env["LEDGER"]!).size > 0, 5000);
  world.engine.closed(world.project);
  sh(world.base, "mv checkout elsewhere");
  const alive = markedProcesses(current!.attempts[0]!.attemptId);
  expect(alive.length).toBeGreaterThan(0);
  expect(isAlive({ pid: alive[0]!, started: "other" })).toBe(false);
  sh(world.base, "mv elsewhere checkout");
  world.engine.opened(world.project);
  world.put("../ledger.go", "");
  expect(await world.finished(runId)).toMatchObject({ status: "completed", steps: [{ attempts: 1 }, { attempts: 1 }] });
});

test("what an operator says has happened is not done again for the evidence that nobody saw", async () => {
  const asked = { ...ship, requiredEvidence: [{ key: "ship", kind: "gate" }] };
  await using world = await openWorld({ ".kxm/gates.yaml": slow("unknown"), ".kxm/workflows/main.yaml": workflow([asked]) });
  const { runId } = await struck(world);
  await world.until(runId, (run) => run.status === "blocked_uncertain");
  world.apply("resolve", { action: "mark-completed", reason: "seen on the server" }, runId);
  expect(await world.finished(runId)).toMatchObject({ status: "completed", steps: [{ attempts: 1 }] });
  expect(ledger()).toEqual(["shipped"]);
  expect(world.project.store.read.gates.evidence(runId)).toMatchObject([{ key: "ship", kind: "gate", producerId: "tester" }]);
});

test("a receipt that the step asks for must be named by whoever says that it happened", async () => {
  const asked = { ...ship, requiredEvidence: [{ key: "ship", kind: "receipt" }] };
  await using world = await openWorld({ ".kxm/gates.yaml": slow("unknown"), ".kxm/workflows/main.yaml": workflow([asked]) });
  const { runId } = await struck(world);
  await world.until(runId, (run) => run.status === "blocked_uncertain");
  expect(() => world.apply("resolve", { action: "mark-completed", reason: "seen" }, runId)).toThrow("name it with --ref");
  expect((await world.view(runId)).status).toBe("blocked_uncertain");
  world.apply("resolve", { action: "mark-completed", reason: "seen", refs: ["release 17"] }, runId);
  expect(await world.finished(runId)).toMatchObject({ status: "completed", steps: [{ attempts: 1 }] });
  expect(ledger()).toEqual(["shipped"]);
});

test("an operator who says to try again is heard also when the step's attempts are used up", async () => {
  await using world = await openWorld({
    ".kxm/gates.yaml": slow("unknown"),
    ".kxm/workflows/main.yaml": workflow([{ ...ship, maxAttempts: 1 }]),
  });
  const { runId } = await struck(world);
  await world.until(runId, (run) => run.status === "blocked_uncertain");
  world.apply("resolve", { action: "confirm-absent-and-retry", reason: "nothing on the server" }, runId);
  await world.until(runId, (run) => run.current?.attempts[0]?.status === "executing" && ledger().length === 2);
});

test("stopping the Runtime in order takes no attempt from a step: agents, panels and gates go on where one is all they have", async () => {
  const waits = `cat >/dev/null; echo a >>"$LEDGER"; while [ ! -f "$LEDGER.go" ]; do sleep 0.02; done; ${PASSED}`;
  const on = { passed: "$terminal", "implementation-failure": "$terminal" };
  const steps: Record<string, object> = {
    agent: { id: "work", kind: "agent", agent: "a", maxAttempts: 1 },
    moa: { id: "work", kind: "moa", maxAttempts: 1, assignments: { allowedAgents: ["a"], maxAttemptsPerAssignment: 1 }, join: { strategy: "all" } },
    gate: { id: "work", kind: "gate", gate: "g", maxAttempts: 1, on },
  };
  for (const [kind, step] of Object.entries(steps)) {
    await using world = await openWorld({
      ".kxm/agents/a.yaml": script(waits, { env: ["LEDGER"] }),
      ".kxm/gates.yaml": gates({ g: { argv: ["/bin/sh", "-c", waits.replace("cat >/dev/null;", "")], env: ["LEDGER"] } }),
      ".kxm/workflows/main.yaml": workflow([step]),
    });
    process.env["LEDGER"] = join(world.base, "ledger");
    const runId = await world.start();
    // As often as anybody likes: it is no lack of progress either.
    for (let starts = 1; starts <= 4; starts++) {
      await waitFor(() => existsSync(process.env["LEDGER"]!) && ledger().length === starts, 5000);
      await world.engine.stop(5000);
      world.project.store.close();
      world.project.prompts.close();
      if (starts === 4) world.put("../ledger.go", "");
      world.reopen();
    }
    const { status, reason } = await world.finished(runId);
    expect([kind, status, reason]).toEqual([kind, "completed", undefined]);
  }
});
