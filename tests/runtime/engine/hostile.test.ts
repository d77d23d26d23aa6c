import { expect, test } from "bun:test";
import { chmodSync, existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { adviceOn } from "../../../src/protocol/failures.ts";
import { markedProcesses } from "../../../src/runtime/harness/process.ts";
import { HARNESS_TABLE } from "../../../src/runtime/harness/table.ts";
import { gates, openWorld, PASSED, script, sh, workflow } from "./world.ts";

const once = { id: "work", kind: "agent", agent: "a", maxAttempts: 1 };
const runOf = async (agent: object, more: Record<string, string | object> = {}, step: object = once) => {
  await using world = await openWorld({ ".kxm/agents/a.yaml": agent, ".kxm/workflows/main.yaml": workflow([step]), ...more });
  const runId = await world.start({ prompt: "do it" });
  const run = await world.finished(runId);
  const attempts = world.events(runId).flatMap(({ eventType, payload }) => (eventType === "attempt.created" ? [payload.attemptId!] : []));
  expect(attempts.flatMap(markedProcesses)).toEqual([]);
  expect(world.outbox().filter(({ problem }) => problem)).toEqual([]);
  expect(existsSync(join(world.base, "state/attempts")) ? readdirSync(join(world.base, "state/attempts")) : []).toEqual([]);
  if (run.status === "failed") expect(adviceOn(run.reason), run.reason).toBeString();
  return { reason: run.reason ?? run.status, events: world.events(runId), run };
};

test("an agent program that is missing is not tried again, and the reason says so", async () => {
  const { reason, events } = await runOf(script("", { command: ["no-such-program-here"] }), {}, { ...once, maxAttempts: 5 });
  expect(reason).toBe("harness_missing: the program no-such-program-here is not installed on this machine (step work)");
  expect(events.filter(({ eventType }) => eventType === "attempt.created")).toHaveLength(1);
});

test("a program outside the workspace cannot be named by a relative path", async () => {
  const { reason } = await runOf(script("", { command: ["../../../../../../../../bin/sh", "-c", "true"] }));
  expect(reason).toContain("harness_missing");
});

for (const [what, agent, expected] of [
  ["hangs", script("sleep 60", { timeoutMs: 300 }), "timeout: the agent did not end within 0.3 s (step work)"],
  [
    "hangs and ignores SIGTERM",
    script("trap '' TERM; while :; do sleep 0.05; done", { timeoutMs: 300 }),
    "timeout: the agent did not end within 0.3 s (step work)",
  ],
  ["exits 0 with nothing", script("cat >/dev/null"), "outcome_unknown: no outcome was declared: the reply is empty (step work)"],
  [
    "prints garbage",
    script("head -c 3000 /dev/urandom"),
    "outcome_unknown: no outcome was declared: the reply does not end with a JSON object (step work)",
  ],
  ["declares success and fails", script(`${PASSED}; exit 3`), "program_failed: the program ended with 3 (step work)"],
  [
    "prints far too much",
    script("head -c 30000000 /dev/zero | tr '\\0' x"),
    "output_too_large: the program printed more than is kept, its result is lost (step work)",
  ],
  [
    "declares an outcome the step does not have",
    script(`echo '{"outcome":"shipped"}'`),
    "outcome_unknown: no outcome was declared: shipped is not one of passed, failed (step work)",
  ],
  [
    "forks children that stay",
    script(
      `(setsid sh -c 'while :; do sleep 0.05; done' >/dev/null 2>&1 &) ; (while :; do sleep 0.05; done >/dev/null 2>&1 &) ; cat >/dev/null; ${PASSED}`,
    ),
    "completed",
  ],
  ["is killed", script("kill -9 $$"), "program_failed: the program ended with 137 (step work)"],
  ["kills its whole group", script("kill -9 0"), "interrupted: the agent's program was ended from outside (step work)"],
] as const)
  test(`an agent program that ${what} has its outcome: ${expected.slice(0, 40)}`, async () => expect((await runOf(agent)).reason).toBe(expected));

test("the prompt reaches the program with its task and how to answer; what it printed is kept", async () => {
  await using world = await openWorld({
    ".kxm/agents/a.yaml": script(`cat; ${PASSED}`, { instructions: "Be brief." }),
    ".kxm/workflows/main.yaml": workflow([{ ...once, instructions: "Fix: {{prompt}}" }]),
  });
  const runId = await world.start({ prompt: "the $& `bug`" });
  await world.finished(runId);
  const { attempts } = await world.call("GET", "/v1/projects/:projectKey/runs/:runId/logs", { runId });
  const [prompt, stdout] = attempts[0].pieces;
  expect(prompt.stream).toBe("prompt");
  expect(prompt.text).toContain("Fix: the $& `bug`");
  expect(prompt.text).toContain("Be brief.");
  expect(prompt.text).toContain("outcome is one of: passed, failed");
  expect(stdout.text).toStartWith(prompt.text);
});

test("a gate that cannot start, that hangs and that is not a program has a name for it", async () => {
  const on = { passed: "$terminal", "implementation-failure": "$terminal" };
  const step = { id: "check", kind: "gate", gate: "g", on, maxAttempts: 1 };
  const gateRun = async (gate: object) => {
    await using world = await openWorld({ ".kxm/gates.yaml": gates({ g: gate }), ".kxm/workflows/main.yaml": workflow([step]), "data.txt": "x" });
    return (await world.finished(await world.start())).reason;
  };
  expect(await gateRun({ argv: ["no-such-gate"] })).toBe("gate_missing: the program no-such-gate of the gate g is not installed (step check)");
  expect(await gateRun({ argv: ["./data.txt"] })).toContain("gate_missing");
  expect(await gateRun({ argv: ["/bin/sleep", "60"], timeoutMs: 200 })).toBe("gate_timeout: the gate did not end within 0.2 s (step check)");
  expect(await gateRun({ argv: ["/bin/false"] })).toBe("check ended with implementation-failure: g failed");
  expect(await gateRun({ argv: ["/bin/true"], cwd: "nowhere" })).toContain("gate_cwd_missing");
  expect(await gateRun({ kind: "artifacts-exist", paths: ["data.txt", "none.txt"] })).toContain("check ended with implementation-failure");
});

test("a dirty checkout is not part of the run, and that is said", async () => {
  await using world = await openWorld({
    "a.txt": "old",
    ".kxm/agents/a.yaml": script(`cat >/dev/null; test "$(cat a.txt)" = old && ${PASSED}`),
    ".kxm/workflows/main.yaml": workflow([once]),
  });
  world.put("a.txt", "not committed");
  const runId = await world.start();
  expect(await world.finished(runId)).toMatchObject({ status: "completed", repositories: [{ dirty: true }] });
  expect(readFileSync(join(world.root, "a.txt"), "utf8")).toBe("not committed");
});

test("a repository that git cannot use refuses the work with git's own words", async () => {
  await using world = await openWorld({ ".kxm/agents/a.yaml": script(PASSED), ".kxm/workflows/main.yaml": workflow([once]) });
  sh(world.root, "rm -rf .git");
  await expect(world.start()).rejects.toThrow("is not in a Git repository");
});

test("a worktree folder that cannot be made is a failed attempt that says why", async () => {
  await using world = await openWorld({ ".kxm/agents/a.yaml": script(PASSED), ".kxm/workflows/main.yaml": workflow([{ ...once, maxAttempts: 2 }]) });
  world.put("../state/worktrees", "a file where the folder should be");
  const run = await world.finished(await world.start());
  expect(run.reason).toStartWith("budget_step_attempts");
  expect(run.reason).toContain("worktree_unusable");
});

test("secrets of the environment reach a program only by name, and KXM's own never", async () => {
  process.env["KXM_TEST_SECRET_TOKEN"] = "planted-kxm-value";
  process.env["OTHER_SECRET"] = "planted-other-value";
  process.env["WANTED_KEY"] = "planted-wanted-value";
  try {
    await using world = await openWorld({
      ".kxm/agents/a.yaml": script(`env >$OUT; ${PASSED}`, { env: ["WANTED_KEY", "OUT", "KXM_TEST_SECRET_TOKEN"] }),
      ".kxm/workflows/main.yaml": workflow([once]),
    });
    process.env["OUT"] = join(world.base, "env.txt");
    await world.finished(await world.start());
    const seen = readFileSync(process.env["OUT"], "utf8");
    expect(seen).toContain("planted-wanted-value");
    expect(seen).not.toContain("planted-other-value");
    expect(seen).not.toContain("planted-kxm-value");
    expect(seen).toContain("KXM_RUN_ID=run_");
  } finally {
    for (const name of ["KXM_TEST_SECRET_TOKEN", "OTHER_SECRET", "WANTED_KEY", "OUT"]) delete process.env[name];
  }
});

test("hooks of the repository do not run in worktrees", async () => {
  await using world = await openWorld({
    ".kxm/agents/a.yaml": script(`cat >/dev/null; echo x >x.txt; ${PASSED}`, { tools: "workspace-writer" }),
    ".kxm/workflows/main.yaml": workflow([once]),
  });
  for (const hook of ["pre-commit", "post-commit", "post-checkout", "commit-msg"]) {
    world.put(`.git/hooks/${hook}`, `#!/bin/sh\ntouch ${world.base}/hooked\n`);
    chmodSync(join(world.root, ".git/hooks", hook), 0o755);
  }
  expect((await world.finished(await world.start())).status).toBe("completed");
  expect(existsSync(join(world.base, "hooked"))).toBe(false);
});

test("a gate whose program cannot be executed has shown nothing, also where a failure is expected", async () => {
  const step = { id: "check", kind: "gate", gate: "g", expect: "fail", on: { passed: "$terminal", "repro-missing": "$terminal" }, maxAttempts: 1 };
  const gateRun = async (text: string) => {
    await using world = await openWorld({ ".kxm/gates.yaml": gates({ g: { argv: ["./check"] } }), ".kxm/workflows/main.yaml": workflow([step]) });
    world.put("check", text);
    sh(world.root, "chmod +x check && git add -A && git commit -qm check");
    return await world.finished(await world.start());
  };
  const { reason, status } = await gateRun("#!/no/such/interpreter\n");
  expect(status).toBe("failed");
  expect(reason).toStartWith("gate_missing: the program ./check of the gate g cannot be executed (");
  expect(reason).not.toContain("worktrees");
  expect(reason).toContain("): is the interpreter in its first line installed? (step check)");
  expect(adviceOn(reason)).toBeString();
  // What a program itself says with the same code is its answer.
  expect(await gateRun("#!/bin/sh\nexit 127\n")).toMatchObject({ status: "completed" });
  expect(await gateRun("#!/bin/sh\nno-such-program-here\n")).toMatchObject({ status: "completed" });
});

test("the time limit of an agent is the one its file says, also beyond the usual one of its harness", async () => {
  const row = HARNESS_TABLE.command;
  const usual = row.timeoutMs;
  row.timeoutMs = 100;
  try {
    const { reason } = await runOf(script(`cat >/dev/null; sleep 0.4; ${PASSED}`, { timeoutMs: 30_000 }));
    expect(reason).toBe("completed");
  } finally {
    row.timeoutMs = usual;
  }
});

test("a failed agent shows its last words with the run, and they stay on this machine", async () => {
  for (const [text, words] of [
    ["cat >/dev/null; echo half; echo 'no licence found' >&2; exit 9", "no licence found"],
    ["cat >/dev/null; echo 'I am done here.'", "I am done here."],
  ]) {
    await using world = await openWorld({ ".kxm/agents/a.yaml": script(text!), ".kxm/workflows/main.yaml": workflow([once]) });
    expect((await world.finished(await world.start())).lastWords).toEqual({ stepId: "work", text: words! });
    expect(JSON.stringify(world.outbox())).not.toContain(words!);
  }
});
