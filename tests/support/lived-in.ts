// A hub with a day's work in it, made the way real callers make it: agents register and lease, a Runtime reports, pushes and answers commands.
import type { DashboardWorld } from "./dashboard.ts";
import { RUNTIME, syncEvent, type Told } from "./sync-events.ts";
import type { Workflows } from "./workflows.ts";

export type Registered = { id: string; name: string; headers: Record<string, string> };
const MINUTE = 60_000;

/** Registers an agent through the API. */
export async function register(world: DashboardWorld, name: string, project = "shop"): Promise<Registered> {
  const { body, status } = await world.call("POST", "/v1/agents/register", { body: { name, purpose: "test", project } });
  if (status >= 300) throw new Error(`${name} was not registered: ${JSON.stringify(body)}`);
  return { id: body.agent.id, name, headers: { "x-kxm-agent-id": body.agent.id, "x-kxm-agent-key": body.agentKey } };
}

/** Takes a lease as an agent. */
export async function take(world: DashboardWorld, agent: Registered, name: string, ttlMs = 5 * MINUTE): Promise<{ fencingToken: number }> {
  const { body, status } = await world.call("POST", `/v1/leases/${encodeURIComponent(name)}/acquire`, { body: { ttlMs }, headers: agent.headers });
  if (status !== 200) throw new Error(`${name} was not leased: ${JSON.stringify(body)}`);
  return body.lease;
}

/** Stands in line for a lease; the answer comes when it is granted or the hub stops. Resolves once the agent is in line. */
export async function standInLine(world: DashboardWorld, agent: Registered, name: string, project = "shop"): Promise<void> {
  const resource = `${project}/${name}`;
  const before = await world.hub.engine.read.leases.countWaiters(resource, world.clock.now);
  void world
    .call("POST", `/v1/leases/${encodeURIComponent(name)}/acquire`, { body: { ttlMs: 5 * MINUTE, waitMs: 30_000 }, headers: agent.headers })
    .catch(() => undefined);
  while ((await world.hub.engine.read.leases.countWaiters(resource, world.clock.now)) === before) await new Promise((turn) => setImmediate(turn));
}

/** What a Runtime says of itself. */
export async function beat(world: DashboardWorld, more: Record<string, unknown> = {}): Promise<void> {
  const { status, body } = await world.call("POST", "/v1/runtime/presence", {
    body: { project: "shop", runtimeId: RUNTIME, host: "build-01", version: "1.0.0", ...more },
  });
  if (status >= 300) throw new Error(JSON.stringify(body));
}

/** A run as a Runtime writes it: each entry becomes the next event. */
export async function pushRun(
  world: DashboardWorld,
  runId: string,
  entries: readonly Told[],
  { from = 1, runtimeId = RUNTIME, project = "shop" } = {},
): Promise<void> {
  const events = entries.map((told, index) => syncEvent(from + index, { runId, homeRuntimeId: runtimeId, ...told }));
  for (let at = 0; at < events.length; at += 100) {
    const { status, body } = await world.call("POST", "/v1/sync/events", { body: { project, runtimeId, events: events.slice(at, at + 100) } });
    const bad = body.results?.find((result: { outcome: string }) => result.outcome !== "accepted");
    if (status !== 200 || bad) throw new Error(JSON.stringify(bad ?? body));
  }
}

const model = { provider: "anthropic", model: "claude-opus-4" };
const other = { provider: "openai", model: "gpt-5-codex" };
export const APPROVAL = "apr_77c0aa12bb34cc56dd78ee90ff12ab34";
export const CONTENT_HASH = `sha256:${"9f2c41ab77d01e05".repeat(4)}`;

/** An agent's attempt at a step: assigned, executing, done with its use. */
function attempt(
  step: string,
  n: number,
  told: { asg: string; agent: string; from: number; to: number; passed: boolean; cost: number; by?: typeof model },
): Told[] {
  const { asg, agent, from, to, passed, cost, by = model } = told;
  const identity = {
    stepId: step,
    stepAttempt: n,
    assignmentId: `asg_${asg.padStart(16, "0")}`,
    attemptId: `att_${asg.padStart(14, "0")}0${n}`,
    agentId: agent,
  };
  const usage = {
    inputTokens: Math.round(cost * 60_000),
    outputTokens: Math.round(cost * 4_000),
    cacheReadTokens: 12_000,
    cost,
    currency: "USD",
    costKind: "reported" as const,
  };
  return [
    { at: from, type: "assignment.created", payload: { ...identity, status: "created" } },
    { at: from, type: "assignment.dispatched", payload: { ...identity, status: "dispatched", model: by } },
    { at: from + 1_000, type: "assignment.executing", payload: { ...identity, status: "executing" } },
    {
      at: to,
      type: "assignment.result_recorded",
      payload: {
        ...identity,
        status: "result_recorded",
        outcome: passed ? "passed" : "failed",
        usage,
        timing: { durationMs: to - from },
        ...(!passed && { error: { class: "outcome-unknown", component: "agent", retryable: true } }),
      },
    },
  ];
}

const entered = (stepId: string, stepAttempt: number, at: number): Told => ({
  at,
  type: "step.entered",
  payload: { stepId, stepAttempt, status: "running" },
});
const outcome = (stepId: string, stepAttempt: number, at: number, passed: boolean, summary: string): Told => ({
  at,
  type: "step.outcome_recorded",
  payload: {
    stepId,
    stepAttempt,
    status: passed ? "passed" : "failed",
    outcome: passed ? "passed" : "implementation-failure",
    summary,
    ...(passed && { evidenceRefs: [{ id: `evd_${stepId}0000${stepAttempt}`, kind: "gate-result", hash: CONTENT_HASH }] }),
  },
});
const moved = (fromStepId: string, toStepId: string | undefined, at: number, said = "passed"): Told => ({
  at,
  type: "step.transitioned",
  payload: { fromStepId, outcome: said, ...(toStepId && { toStepId }) },
});

/** A run that is nearly done: two attempts, 44 idle minutes, a panel, and now somebody must allow the push. 84 minutes long, ending at `now`. */
export function refunds(now: number): Told[] {
  const ago = (minutes: number) => now - minutes * MINUTE;
  return [
    {
      at: ago(84),
      type: "run.created",
      payload: { workflowId: "implement-and-review", displayTitle: "Settle refunds in the ledger", status: "created" },
    },
    { at: ago(84), type: "run.status_changed", payload: { status: "running", previousStatus: "created" } },
    entered("plan", 1, ago(84)),
    ...attempt("plan", 1, { asg: "a1", agent: "planner", from: ago(84), to: ago(82), passed: true, cost: 0.21 }),
    outcome("plan", 1, ago(82), true, "Plan with 6 steps"),
    moved("plan", "implement", ago(82)),
    entered("implement", 1, ago(82)),
    ...attempt("implement", 1, { asg: "a2", agent: "implementer", from: ago(82), to: ago(77), passed: false, cost: 0.44 }),
    outcome("implement", 1, ago(77), false, "the program ended without saying what came of it"),
    entered("implement", 2, ago(77)),
    ...attempt("implement", 2, { asg: "a3", agent: "implementer", from: ago(77), to: ago(68), passed: true, cost: 0.91 }),
    {
      ...outcome("implement", 2, ago(68), true, "14 paths changed"),
      payload: {
        ...outcome("implement", 2, ago(68), true, "14 paths changed").payload,
        fileChanges: [{ repositoryId: "main", added: ["ledger/entry.ts"], modified: ["ledger/settle.ts", "ledger/fx.ts"] }],
      },
    },
    moved("implement", "unit", ago(68)),
    entered("unit", 1, ago(68)),
    outcome("unit", 1, ago(66.8), false, "2 of 1,204 tests failed: settle.posts_two_entries, fx.rounds_half_even"),
    entered("unit", 2, ago(22.8)),
    outcome("unit", 2, ago(21), true, "1,204 tests passed"),
    moved("unit", "review", ago(21)),
    entered("review", 1, ago(21)),
    ...attempt("review", 1, { asg: "a4", agent: "reviewer", from: ago(20), to: ago(17), passed: true, cost: 0.38 }),
    ...attempt("review", 1, { asg: "a5", agent: "security-review", from: ago(20), to: ago(15), passed: true, cost: 0.24, by: other }),
    outcome("review", 1, ago(15), true, "2 of 2, distinct by provider"),
    moved("review", "deliver", ago(15)),
    entered("deliver", 1, ago(14)),
    {
      at: ago(13),
      type: "lease.acquired",
      payload: {
        stepId: "deliver",
        lease: {
          id: "lse_branchmain",
          operation: "push",
          fencingToken: "41",
          acquiredAt: new Date(ago(13)).toISOString(),
          expiresAt: new Date(ago(-10)).toISOString(),
        },
      },
    },
    asks(
      APPROVAL,
      CONTENT_HASH,
      "Push 3 commits to payments-api main?\ngit push --force-with-lease=refs/heads/main:8b1f04e origin 3d90c7a:refs/heads/main",
      ago(12),
    ),
    {
      at: ago(12),
      type: "run.status_changed",
      payload: { status: "waiting", previousStatus: "running", reason: "waits for an approval: Push 3 commits to payments-api main?" },
    },
  ];
}

/** A step asks a person. */
export const asks = (id: string, hash: string, question: string, at: number, stepId = "deliver"): Told => ({
  at,
  type: "step.status_changed",
  payload: {
    stepId,
    stepAttempt: 1,
    status: "waiting",
    previousStatus: "running",
    summary: question,
    reason: "approval:step",
    evidenceRefs: [{ id, kind: "approval-request", hash, status: "waiting" }],
  },
});

const started = (title: string, workflowId: string, at: number): Told[] => [
  { at, type: "run.created", payload: { workflowId, displayTitle: title, status: "created" } },
  { at: at + 500, type: "run.status_changed", payload: { status: "running", previousStatus: "created" } },
];

/** A run whose effect nobody can prove. */
export function uncertain(now: number): Told[] {
  const at = now - 52 * MINUTE;
  const effect = { id: "eff_rotatekeys0001", policy: { class: "external-non-idempotent" as const, sharedMutable: false } };
  return [
    ...started("Rotate signing keys", "ops-change", now - 151 * MINUTE),
    entered("apply", 1, at - MINUTE),
    { at, type: "effect.intent_recorded", payload: { stepId: "apply", effect } },
    { at, type: "effect.dispatched", payload: { stepId: "apply", effect, status: "dispatched" } },
    {
      at: at + 1_000,
      type: "effect.blocked_uncertain",
      payload: { stepId: "apply", effect, status: "blocked_uncertain", reason: "the machine lost power after dispatch" },
    },
    {
      at: at + 1_000,
      type: "run.status_changed",
      payload: { status: "blocked_uncertain", previousStatus: "running", reason: "apply: 1 of 2 effects has a receipt", stepId: "apply" },
    },
  ];
}

/** A run that moves. */
export const moving = (now: number, title = "Upgrade OpenSSL bindings across services"): Told[] => [
  ...started(title, "panel-fix", now - 7 * MINUTE),
  entered("plan", 1, now - 7 * MINUTE),
  outcome("plan", 1, now - 6 * MINUTE, true, "planned"),
  moved("plan", "panel", now - 6 * MINUTE),
  entered("panel", 1, now - 6 * MINUTE),
  ...attempt("panel", 1, { asg: "b1", agent: "fixer", from: now - 6 * MINUTE, to: now - 4_000, passed: true, cost: 0.94 }),
];

/** A run that ended, well or not. */
export const ended = (now: number, title: string, status: "completed" | "failed" | "cancelled", minutes = 4): Told[] => [
  ...started(title, "quick-fix", now - minutes * MINUTE),
  entered("fix", 1, now - minutes * MINUTE),
  ...attempt("fix", 1, { asg: "c1", agent: "fixer", from: now - minutes * MINUTE, to: now - 20_000, passed: status === "completed", cost: 0.09 }),
  outcome("fix", 1, now - 15_000, status === "completed", status === "completed" ? "done" : "gate unit: 3 attempts, same 2 tests"),
  moved("fix", undefined, now - 10_000, status === "completed" ? "passed" : "implementation-failure"),
  {
    at: now - 10_000,
    type: "run.status_changed",
    payload: {
      status,
      previousStatus: "running",
      ...(status !== "completed" && { reason: "fix ended with implementation-failure: gate unit: 3 attempts, same 2 tests" }),
    },
  },
];

/** A run that waits for a place. */
export const queued = (now: number): Told[] => [
  { at: now - MINUTE, type: "run.created", payload: { workflowId: "docs", displayTitle: "Document the webhook retry schedule", status: "created" } },
  { at: now - MINUTE, type: "run.status_changed", payload: { status: "queued", previousStatus: "created", reason: "waits for one of 3 places" } },
];

/** A definition with a reproduction, a plan, a quorum, a wait and a way back. */
export const JIRA_FIX = {
  id: "jira-fix",
  source: "jira",
  maxTransitions: 6,
  reproOracle: { stageId: "reproduce", evidenceKey: "failing test" },
  stages: [
    { id: "reproduce", label: "Reproduce the bug", instructions: "Show it", requiredEvidence: ["failing test"], area: "gates" },
    { id: "fix", instructions: "Fix it", requiredEvidence: ["diff stat"], area: "implementation" },
    {
      id: "verify",
      instructions: "Have it verified",
      requiredEvidence: ["test report", "independent review"],
      area: "gates",
      on: { rework: { target: "fix", maxTransitions: 2 } },
      evidencePolicies: {
        "independent review": { kind: "peer-reply", minProducers: 2, eligibleAgents: ["ann", "bob", "cid"], degradation: { minProducers: 1 } },
      },
    },
    { id: "report", instructions: "Report it", requiredEvidence: [] },
  ],
};

/** Works a run of JIRA_FIX up to its last stage but one: once back, one of two reviews in, one asked, waiting for a signal. @returns its id */
export async function fixing(it: DashboardWorld & Workflows): Promise<string> {
  const ok = async (answer: Promise<{ status: number; body: any }>) => {
    const { status, body } = await answer;
    if (status >= 300) throw new Error(JSON.stringify(body));
    return body;
  };
  const runId = (await ok(it.start({ issue: { key: "PAY-4411" } }, { definitionId: "jira-fix", deliveryId: "d-88213" }))).runId as string;
  const checkpoint = (stageId: string, more: Record<string, unknown>) =>
    ok(it.as("lead", "POST", `/v1/workflows/${runId}/checkpoints`, { stageId, status: "passed", summary: `${stageId} is done`, ...more }));
  const ask = async (peer: "ann" | "bob") =>
    (
      await ok(
        it.as("lead", "POST", "/v1/messages", {
          target: peer,
          content: "please review",
          allowOffline: true,
          workflowContext: { runId, stageId: "verify", requirementKey: "independent review", attempt: 2 },
        }),
      )
    ).message.id as string;
  const record = (entry: Record<string, unknown>) => ok(it.as("lead", "POST", `/v1/workflows/${runId}/journal`, entry));
  it.clock.now += 18 * MINUTE;
  await checkpoint("reproduce", { evidence: { "failing test": "settle.posts_two_entries" } });
  await record({
    category: "lesson",
    area: "implementation",
    summary: "Root cause: settle() returned before the second insert",
    details: "Retry path re-used the idempotency key of the first entry.",
    evidence: ["settle.ts:118"],
  });
  it.clock.now += 40 * MINUTE;
  await checkpoint("fix", { evidence: { "diff stat": "3 files, +41 -7" } });
  it.clock.now += 10 * MINUTE;
  await checkpoint("verify", { status: "failed", outcome: "rework", summary: "The review found a second path" });
  await record({ category: "skill-candidate", area: "gates", summary: "Check both paths of a retry before the fix", evidence: ["run notes"] });
  it.clock.now += 30 * MINUTE;
  await checkpoint("fix", { evidence: { "diff stat": "5 files, +58 -9" } });
  const [proof] = [await ask("ann"), await ask("bob")];
  await ok(it.as("ann", "POST", `/v1/messages/${proof}/reply`, { content: "fine" }));
  it.clock.now += 5 * MINUTE;
  await ok(
    it.as("lead", "POST", `/v1/workflows/${runId}/waits`, {
      stageId: "verify",
      signalKey: "ci.result",
      summary: "CI runs the whole suite",
      evidence: { "test report": "report-1187.json, 1,204 passed" },
      evidenceRefs: { "independent review": { messageIds: [proof] } },
      timeoutMs: 14 * 3_600_000,
    }),
  );
  it.clock.now += 41_000;
  return runId;
}
