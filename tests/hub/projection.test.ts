// Folding a run's events: what an operator sees of a run, bounded whatever the events hold, and the same however they were batched.
import { expect, test } from "bun:test";
import { Value } from "@sinclair/typebox/value";
import fc from "fast-check";
import type { SyncRunRow } from "../../src/db/schema.ts";
import { type Consequence, fold } from "../../src/hub/projection.ts";
import { emptySection, short, upsert } from "../../src/hub/projection-section.ts";
import { RUN_PROJECTION_BYTES_MAX } from "../../src/protocol/limits.ts";
import { RunProjection } from "../../src/protocol/runs.ts";
import {
  SYNC_EVENT_TYPES,
  SYNC_STATUSES,
  type SyncEvent,
  type SyncEventType,
  type SyncPayload,
  syncEventProblem,
} from "../../src/protocol/sync-event.ts";
import { syncRunRow } from "../support/rows.ts";
import { EPOCH, HASH, syncEvent } from "../support/sync-events.ts";

const TIME = (sequence: number) => new Date(EPOCH + sequence * 1_000).toISOString();
const APPROVAL = "apr_0123456789abcdef";

/** A run after these events, and what they meant beyond it. */
function folded(...told: [SyncEventType, SyncPayload][]): { run: SyncRunRow; consequences: Consequence[] } {
  const run = syncRunRow("prj_0123456789", "run_0123456789");
  const consequences = told.flatMap(([type, payload], index) => {
    const event = syncEvent(index + 1, { type, payload });
    expect(syncEventProblem(event)).toBeUndefined();
    return fold(run, event);
  });
  expect(Value.Errors(RunProjection, JSON.parse(JSON.stringify(run.projection))).First()).toBeUndefined();
  return { run, consequences };
}

test("status, title, workflow and times come from the run's own events", () => {
  const { run } = folded(
    ["run.created", { status: "created", displayTitle: "Fix it", workflowId: "default" }],
    ["run.status_changed", { status: "preparing" }],
    ["run.status_changed", { status: "running" }],
    ["step.status_changed", { stepId: "build", status: "failed" }],
    ["run.status_changed", { status: "completed", displayTitle: "Fixed it" }],
  );
  expect(run).toMatchObject({
    status: "completed",
    displayTitle: "Fixed it",
    workflowId: "default",
    startedAt: EPOCH + 2_000,
    updatedAt: EPOCH + 5_000,
    endedAt: EPOCH + 5_000,
  });
  expect(run.projection.createdAt).toBe(TIME(1));
});

test("a run whose work another one did before names it, and the step it begins at", () => {
  const again = (more: SyncPayload) => folded(["run.created", { status: "created", suppliedRefs: [{ id: "run_before0001", kind: "run" }], ...more }]);
  expect(again({}).run.projection.retryOf).toEqual({ runId: "run_before0001" });
  expect(again({ stepId: "review" }).run.projection.retryOf).toEqual({ runId: "run_before0001", stepId: "review" });
  const elsewhere = folded([
    "approval.recorded",
    { actor: { kind: "human", id: "ana" }, outcome: "approved", suppliedRefs: [{ id: "run_before0001", kind: "run" }] },
  ]);
  expect(elsewhere.run.projection.retryOf).toBeUndefined();
});

test("the ways that were taken between steps are kept once each, with how often, and the way to the end has no step", () => {
  const { run } = folded(
    ["step.transitioned", { fromStepId: "fix", toStepId: "check", outcome: "passed" }],
    ["step.transitioned", { fromStepId: "check", toStepId: "fix", outcome: "failed" }],
    ["step.transitioned", { fromStepId: "fix", toStepId: "check", outcome: "passed" }],
    ["step.transitioned", { fromStepId: "check", outcome: "passed" }],
  );
  expect(run.projection.edges.items).toEqual([
    { from: "fix", to: "check", outcome: "passed", times: 2 },
    { from: "check", to: "fix", outcome: "failed", times: 1 },
    { from: "check", outcome: "passed", times: 1 },
  ]);
});

test("a step keeps its attempts with outcome and duration, and re-entry starts anew", () => {
  const { run } = folded(
    ["step.entered", { stepId: "build", stepAttempt: 1, status: "running" }],
    ["step.outcome_recorded", { stepId: "build", stepAttempt: 1, status: "failed", outcome: "failed", reason: "tests fail" }],
    ["step.transitioned", { fromStepId: "build", toStepId: "build", outcome: "failed" }],
    ["step.entered", { stepId: "build", stepAttempt: 2 }],
    [
      "step.outcome_recorded",
      {
        stepId: "build",
        stepAttempt: 2,
        outcome: "passed",
        timing: { durationMs: 1_234, startedAt: TIME(4), finishedAt: TIME(5) },
        fileChanges: [{ repositoryId: "main", added: ["a"], modified: ["b", "c"], redactedPathCount: 2 }],
      },
    ],
    ["step.transitioned", { fromStepId: "build", toStepId: "verify", outcome: "passed" }],
  );
  expect(run.stepId).toBe("verify");
  expect(run.projection.transitions).toBe(2);
  expect(run.projection.steps.items).toEqual([
    {
      stepId: "build",
      status: "completed",
      outcome: "passed",
      attempts: [
        { attempt: 1, status: "failed", outcome: "failed", startedAt: TIME(1), endedAt: TIME(2), durationMs: 1_000 },
        { attempt: 2, status: "completed", outcome: "passed", startedAt: TIME(4), endedAt: TIME(5), durationMs: 1_234 },
      ],
      files: { added: 1, modified: 2, deleted: 0, redacted: 2 },
      updatedAt: TIME(6),
    },
  ]);
});

test("use is counted once per attempt as it grows, in all, per model and per agent", () => {
  const identity = { stepId: "plan", assignmentId: "asg_0123456789", attemptId: "att_0123456789", agentId: "planner" };
  const usage = (inputTokens: number, cost?: number) => ({ inputTokens, outputTokens: 10, ...(cost !== undefined && { cost, currency: "USD" }) });
  const { run } = folded(
    ["assignment.dispatched", { ...identity, status: "dispatched", model: { provider: "anthropic", model: "claude-x" } }],
    ["attempt.status_changed", { ...identity, status: "running", usage: usage(100, 0.1) }],
    ["attempt.status_changed", { ...identity, status: "running", usage: usage(200, 0.2) }],
    ["assignment.result_recorded", { ...identity, status: "result_recorded", outcome: "passed", usage: usage(300, 0.3) }],
    ["assignment.retry_pending", { ...identity, attemptId: "att_second000", status: "retry_pending" }],
    [
      "assignment.result_recorded",
      { ...identity, attemptId: "att_second000", status: "result_recorded", usage: { inputTokens: 50, costKind: "unknown" } },
    ],
    ["routing.attempt.recorded", { usage: { inputTokens: 1, cost: 0.5, currency: "EUR", costKind: "estimated" } }],
  );
  const { projection } = run;
  expect(projection.usage).toMatchObject({ inputTokens: 351, outputTokens: 10, costs: { USD: 0.3, EUR: 0.5 }, estimated: true, unknown: 1 });
  expect(projection.models.items).toMatchObject([{ name: "anthropic/claude-x", inputTokens: 350, costs: { USD: 0.3 }, estimated: false }]);
  expect(projection.agents.items).toMatchObject([{ name: "planner", inputTokens: 350, unknown: 1 }]);
  expect(projection.assignments.items).toMatchObject([{ attempt: 2, attemptId: "att_second000", status: "result_recorded", outcome: "passed" }]);
});

test("a step that waits says for what; an approval is asked for over its hash, and the wait ends with the step's", () => {
  const asks: [SyncEventType, SyncPayload] = [
    "step.status_changed",
    {
      stepId: "deliver",
      stepAttempt: 1,
      status: "waiting",
      summary: "Push 3 commits?",
      reason: "approval:step",
      evidenceRefs: [{ id: APPROVAL, kind: "approval-request", hash: HASH, status: "waiting" }],
    },
  ];
  const { run, consequences } = folded(asks, ["run.status_changed", { status: "waiting", reason: "waits for an approval" }]);
  expect(run.projection.waiting).toEqual({ for: "approval", stepId: "deliver", reason: "Push 3 commits?", approvalId: APPROVAL, since: TIME(1) });
  expect(consequences).toEqual([{ kind: "approval_requested", id: APPROVAL, hash: HASH, stepId: "deliver", attempt: 1, content: "Push 3 commits?" }]);
  const ended = folded(asks, ["step.status_changed", { stepId: "deliver", status: "failed" }]);
  expect(ended.run.projection.waiting).toBeUndefined();
  expect(ended.consequences.at(-1)).toEqual({ kind: "approval_moot", id: APPROVAL });
  const decided = folded(
    asks,
    [
      "approval.recorded",
      {
        actor: { kind: "human", id: "ana" },
        outcome: "approved",
        reason: "fine",
        suppliedRefs: [
          { id: APPROVAL, kind: "approval-request" },
          { id: "sig_0123456789", kind: "signal" },
        ],
      },
    ],
    ["step.status_changed", { stepId: "deliver", status: "running" }],
  );
  expect(decided.run.projection.waiting).toBeUndefined();
  expect(decided.consequences.slice(1)).toEqual([
    { kind: "approval_recorded", ids: [APPROVAL], outcome: "approved", actor: "human:ana", reason: "fine" },
  ]);
});

test("an approval request without a hash is no approval: nobody could say what was approved", () => {
  const { consequences } = folded([
    "step.status_changed",
    { stepId: "deliver", status: "waiting", summary: "?", evidenceRefs: [{ id: APPROVAL, kind: "approval-request" }] },
  ]);
  expect(consequences).toEqual([]);
});

test("an uncertain run says so until it is resolved; leases, effects, evidence, receipts and errors are kept", () => {
  const effect = { id: "eff_0123456789", policy: { class: "external-non-idempotent" as const, sharedMutable: true } };
  const lease = { id: "lse_0123456789", fencingToken: "41", acquiredAt: TIME(0), expiresAt: TIME(600), operation: "push" };
  const told: [SyncEventType, SyncPayload][] = [
    ["lease.acquired", { lease }],
    ["effect.intent_recorded", { effect, lease, stepId: "deliver" }],
    ["effect.blocked_uncertain", { effect, stepId: "deliver", reason: "power was lost" }],
    ["run.status_changed", { status: "blocked_uncertain", stepId: "deliver", reason: "power was lost" }],
    ["attempt.status_changed", { stepId: "deliver", error: { class: "lost", component: "gate", retryable: false } }],
    [
      "step.outcome_recorded",
      {
        stepId: "deliver",
        evidenceRefs: [{ id: "evd_0123456789", kind: "gate", hash: HASH }],
        receipts: [{ provider: "git", kind: "push", id: "3d90c7a" }],
      },
    ],
    ["lease.lost", { lease }],
  ];
  const { run } = folded(...told);
  expect(run.projection).toMatchObject({
    waiting: { for: "uncertain", reason: "power was lost" },
    leases: { items: [{ id: lease.id, fencingToken: "41", operation: "push", state: "lost" }] },
    effects: { items: [{ id: effect.id, class: "external-non-idempotent", state: "blocked_uncertain", stepId: "deliver" }] },
    evidence: { items: [{ id: "evd_0123456789", kind: "gate", hash: HASH, stepId: "deliver" }] },
    receipts: { items: [{ provider: "git", kind: "push", id: "3d90c7a" }] },
    error: { class: "lost", component: "gate", retryable: false },
  });
  const resolved = folded(
    ...told,
    [
      "effect.uncertainty_resolved",
      {
        effect,
        resolvedBy: { kind: "human", id: "ana" },
        resolutionAction: "mark-completed",
        reason: "seen",
        suppliedRefs: [{ id: "ref_0123456789", kind: "note" }],
      },
    ],
    ["run.status_changed", { status: "running" }],
  ).run.projection;
  expect([resolved.waiting, resolved.effects.items[0]!.resolution]).toEqual([undefined, "mark-completed"]);
});

test("degraded events and replaced values are counted", () => {
  const run = syncRunRow("prj_0123456789", "run_0123456789");
  for (const sequence of [1, 2]) {
    fold(run, { ...syncEvent(sequence, { payload: { degraded: true } }), redaction: { version: "kxm-1", fieldsOmitted: [], valuesReplaced: 7 } });
  }
  expect([run.projection.degraded, run.projection.valuesReplaced]).toEqual([2, 14]);
});

test("a day that does not exist is no time, and hurts nothing", () => {
  const run = syncRunRow("prj_0123456789", "run_0123456789");
  fold(run, { ...syncEvent(1, { type: "run.created", payload: { status: "running" } }), occurredAt: "2026-02-31T00:00:00Z" });
  expect(run.status).toBe("running");
  expect(run.updatedAt === null || Number.isSafeInteger(run.updatedAt)).toBe(true);
});

test("a list keeps the newest entries within its budget and counts what it dropped", () => {
  const section = emptySection<{ id: number; text: string }>();
  for (let id = 0; id < 100; id++) {
    const entry = { id, text: "ü".repeat(50) };
    upsert(
      section,
      1_000,
      (known) => known.id === id,
      () => entry,
      () => {},
    );
  }
  expect(Buffer.byteLength(JSON.stringify(section.items))).toBeLessThanOrEqual(1_000 + 2);
  expect(section.items.length + section.dropped).toBe(100);
  expect(section.items.at(-1)!.id).toBe(99);
  expect(section.bytes).toBe(section.items.reduce((sum, item) => sum + Buffer.byteLength(JSON.stringify(item)) + 1, 0));
});

test("short text has no control characters, no half characters and a bounded length", () => {
  expect(short("a\u0000b\u001bc\u009bd\ne", 20)).toBe("a b c d e");
  expect(short("😀".repeat(10), 4).isWellFormed()).toBe(true);
  expect(short("x".repeat(300), 10)).toBe(`${"x".repeat(9)}…`);
});

const id = fc.stringMatching(/^[a-z]{3}_[A-Za-z0-9]{6,130}$/);
const identifier = fc.stringMatching(/^[a-z][a-z0-9]{0,30}$/);
const text = fc.string({ unit: "binary", minLength: 1, maxLength: 1_000 }).map((value) => value.toWellFormed().replaceAll("\0", "x"));
const whole = fc.nat(2 ** 40);
const anyPayload: fc.Arbitrary<SyncPayload> = fc.record(
  {
    stepId: identifier,
    stepAttempt: fc.integer({ min: 1, max: 50 }),
    assignmentId: id,
    attemptId: id,
    agentId: identifier,
    status: fc.constantFrom(...SYNC_STATUSES),
    outcome: identifier,
    summary: text,
    reason: text,
    displayTitle: text.map((value) => value.slice(0, 200).toWellFormed()),
    model: fc.record({ provider: identifier, model: text.map((value) => value.slice(0, 200).toWellFormed()) }),
    usage: fc.record({
      inputTokens: whole,
      outputTokens: whole,
      cost: fc.double({ min: 0, max: 1e6, noNaN: true }),
      currency: fc.stringMatching(/^[A-Z]{3}$/),
    }),
    evidenceRefs: fc.array(fc.record({ id, kind: identifier, hash: fc.constant(HASH), producerId: id }), { maxLength: 64 }),
    receipts: fc.array(fc.record({ provider: identifier, kind: identifier, id: text.map((value) => value.slice(0, 512).toWellFormed()) }), {
      maxLength: 64,
    }),
    error: fc.record({ class: identifier, component: text.map((value) => value.slice(0, 128).toWellFormed()), retryable: fc.boolean() }),
    effect: fc.record({ id, policy: fc.constant({ class: "unknown" as const, sharedMutable: true }) }),
    lease: fc.record({
      id,
      fencingToken: text.map((value) => value.slice(0, 256).toWellFormed()),
      acquiredAt: fc.constant(TIME(1)),
      expiresAt: fc.constant(TIME(2)),
    }),
    actor: fc.constant({ kind: "human" as const, id: "ana" }),
    suppliedRefs: fc.array(fc.record({ id, kind: identifier }), { maxLength: 4 }),
    resolvedBy: fc.constant({ kind: "human" as const, id: "ana" }),
    resolutionAction: fc.constant("cancel" as const),
  },
  { requiredKeys: [] },
);
const needed = (type: SyncEventType, payload: SyncPayload): SyncPayload => ({
  ...payload,
  ...(type.startsWith("effect.") && { effect: payload.effect ?? { id: "eff_0123456789", policy: { class: "unknown", sharedMutable: true } } }),
  ...(type.startsWith("lease.") && { lease: payload.lease ?? { id: "lse_0123456789", fencingToken: "1", acquiredAt: TIME(1), expiresAt: TIME(2) } }),
});
const anyEvents = fc.array(fc.tuple(fc.constantFrom(...SYNC_EVENT_TYPES), anyPayload), { minLength: 1, maxLength: 60 });

test("whatever events say, the projection stays valid JSON of its schema and within its bound", () => {
  fc.assert(
    fc.property(fc.array(anyEvents, { minLength: 1, maxLength: 4 }), (parts) => {
      const run = syncRunRow("prj_0123456789", "run_0123456789");
      for (const [index, [type, payload]] of parts.flat().entries()) fold(run, syncEvent(index + 1, { type, payload: needed(type, payload) }));
      const json = JSON.stringify(run.projection);
      expect(Buffer.byteLength(json)).toBeLessThanOrEqual(RUN_PROJECTION_BYTES_MAX);
      expect(Value.Check(RunProjection, JSON.parse(json))).toBe(true);
    }),
    { numRuns: 40, seed: 7331 },
  );
}, 30_000);

test("storing the row between any two events changes nothing", () => {
  const foldAll = (events: SyncEvent[], storedBefore: (index: number) => boolean) => {
    let run = syncRunRow("prj_0123456789", "run_0123456789");
    events.forEach((event, index) => {
      if (storedBefore(index)) run = JSON.parse(JSON.stringify(run));
      fold(run, event);
    });
    return JSON.parse(JSON.stringify(run));
  };
  fc.assert(
    fc.property(anyEvents, fc.array(fc.boolean(), { minLength: 60, maxLength: 60 }), (told, cuts) => {
      const events = told.map(([type, payload], index) => syncEvent(index + 1, { type, payload: needed(type, payload) }));
      expect(foldAll(events, (index) => cuts[index]!)).toEqual(foldAll(events, () => false));
    }),
    { numRuns: 40, seed: 7331 },
  );
}, 30_000);

test("a run that fills every list to its budget stays within the bound, and says what it dropped", () => {
  const run = syncRunRow("prj_0123456789", "run_0123456789");
  const long = (kind: string, n: number) => `${kind}_${n.toString().padStart(100, "x")}`;
  const wide = "\u2603".repeat(200);
  for (let n = 1; n <= 600; n++) {
    const effect = { id: long("eff", n), policy: { class: "unknown" as const, sharedMutable: true } };
    const lease = { id: long("lse", n), fencingToken: "☃".repeat(256), acquiredAt: TIME(1), expiresAt: TIME(2), operation: "a".repeat(64) };
    const payloads: [SyncEventType, SyncPayload][] = [
      ["step.outcome_recorded", { stepId: `s${n}${"a".repeat(50)}`, outcome: "b".repeat(64), reason: wide }],
      [
        "assignment.result_recorded",
        {
          assignmentId: long("asg", n),
          attemptId: long("att", n),
          agentId: `a${n}${"b".repeat(50)}`,
          model: { provider: "c".repeat(60), model: `${n}${wide}`.slice(0, 200) },
          usage: { inputTokens: 2 ** 50, cost: 1e6, currency: String.fromCharCode(65 + (n % 26)).repeat(3) },
        },
      ],
      ["effect.blocked_uncertain", { effect, stepId: "d".repeat(64), reason: wide }],
      ["lease.acquired", { lease }],
      ["delivery.status_changed", { status: "delivered", receipts: [{ provider: "e".repeat(64), kind: "f".repeat(64), id: `${n}${wide}` }] }],
      [
        "run.status_changed",
        {
          status: "blocked_uncertain",
          reason: wide,
          stepId: "g".repeat(64),
          evidenceRefs: [{ id: long("evd", n), kind: "h".repeat(64), hash: HASH, producerId: long("prd", n) }],
        },
      ],
      ["attempt.status_changed", { stepId: "d".repeat(64), error: { class: "i".repeat(64), component: "☃".repeat(128), retryable: false } }],
    ];
    for (const [type, payload] of payloads) fold(run, syncEvent(n, { type, payload }));
  }
  const bytes = Buffer.byteLength(JSON.stringify(run.projection));
  expect(bytes).toBeWithin(50_000, RUN_PROJECTION_BYTES_MAX + 1);
  const { steps, assignments, models, agents, evidence, leases, effects, receipts } = run.projection;
  for (const { items, dropped } of [steps, assignments, models, agents, evidence, leases, effects, receipts])
    expect(items.length + dropped).toBe(600);
});
