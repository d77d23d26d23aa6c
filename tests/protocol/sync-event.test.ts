// The closed sync event: what it takes, and that each rule of the contract refuses something.
import { expect, test } from "bun:test";
import {
  RESOLUTION_ACTIONS,
  requiredOf,
  SYNC_EVENT_TYPES,
  SYNC_STATUSES,
  type SyncEvent,
  type SyncEventType,
  syncEventProblem,
} from "../../src/protocol/sync-event.ts";

const HASH = `sha256:${"a".repeat(64)}`;
const TIME = "2026-01-02T03:04:05.678Z";
const event = (change: Record<string, unknown> = {}, payload: Record<string, unknown> = { status: "running" }) => ({
  schema: "kxm.sync-event.v1",
  sourceEventId: "evt_0123456789ab",
  eventType: "run.status_changed",
  projectId: "prj_0123456789",
  runId: "run_0123456789",
  homeRuntimeId: "rtm_0123456789abcdef01234567",
  sequence: 1,
  occurredAt: TIME,
  configRevision: HASH,
  memoryRevision: "mem_0123456789",
  executorPolicyRevision: HASH,
  toolPolicyRevision: HASH,
  syncPolicyRevision: HASH,
  redaction: { version: "kxm-1", fieldsOmitted: [], valuesReplaced: 0 },
  payload,
  ...change,
});
const withPayload = (payload: Record<string, unknown>, eventType = "run.status_changed") => event({ eventType }, payload);
const lease = { id: "lse_0123456789", fencingToken: "7", acquiredAt: TIME, expiresAt: TIME };
const effect = (policy: Record<string, unknown>, more: Record<string, unknown> = {}) => ({ id: "eff_0123456789", policy, ...more });

test("the lists of types and statuses are closed unions, not plain strings", () => {
  const known: SyncEventType = "routing.route_switched";
  // @ts-expect-error an unknown type must not compile
  const unknown: SyncEventType = "run.nonsense";
  expect(SYNC_EVENT_TYPES).toContain(known);
  expect(SYNC_EVENT_TYPES as readonly string[]).not.toContain(unknown);
  expect(SYNC_EVENT_TYPES.length).toBe(38);
  expect(new Set<string>(SYNC_STATUSES).size).toBe(41);
  expect(RESOLUTION_ACTIONS.length).toBe(5);
});

test("a valid event passes, also with every payload member at once", () => {
  expect(syncEventProblem(event())).toBeUndefined();
  const full: SyncEvent["payload"] = {
    workflowId: "default",
    outcome: "passed",
    stepId: "verify",
    fromStepId: "build",
    toStepId: "verify",
    agentId: "reviewer",
    displayTitle: "Fix it",
    summary: "done",
    reason: "because",
    promptHash: HASH,
    status: "passed",
    previousStatus: "running",
    stepAttempt: 1,
    scopeEpoch: 1,
    instanceNo: 64,
    assignmentId: "asg_0123456789",
    attemptId: "att_0123456789",
    executor: { id: "local", kind: "local", executorVersion: "1", harness: "codex", harnessVersion: "0.1" },
    model: { provider: "openai", model: "gpt", tags: ["a", "b"] },
    timing: { durationMs: 31_536_000_000, startedAt: "2026-01-02T03:04:05Z", finishedAt: "2026-01-02T03:04:05.123456789Z" },
    usage: { inputTokens: 0, cost: 0.25, currency: "USD", costKind: "estimated" },
    fileChanges: [{ repositoryId: "main", added: ["src/a.ts"], modified: ["b c.ts", ".gitignore"], redactedPathCount: 2 }],
    evidenceRefs: [{ id: "apr_0123456789", kind: "approval-request", hash: HASH, status: "pending" }],
    artifacts: [{ id: "art_0123456789", kind: "log", hash: HASH, size: 2 ** 40, availability: "local", classification: "secret" }],
    receipts: [{ provider: "github", kind: "push", id: "x", observedAt: TIME }],
    environment: [{ name: "PATH", scope: "process", status: "resolved", source: "host" }],
    error: { class: "timeout", component: "harness", retryable: true },
    effect: effect(
      { class: "external-idempotent", sharedMutable: true, idempotencyKey: "run", receiptQuery: "query" },
      { idempotencyKeyHash: HASH },
    ) as any,
    lease,
    actor: { kind: "human", id: "operator" },
    counts: { "files-changed": 3 },
    degraded: false,
  };
  expect(syncEventProblem(withPayload(full))).toBeUndefined();
});

test.each([
  ["an unknown member", event({ extra: 1 })],
  ["an unknown payload member", withPayload({ status: "running", url: "https://x" })],
  ["an empty payload", withPayload({})],
  ["sequence 0", event({ sequence: 0 })],
  ["a fractional sequence", event({ sequence: 1.5 })],
  ["a sequence beyond 2^53 - 1", event({ sequence: 2 ** 53 })],
  ["an id without a prefix", event({ runId: "0123456789" })],
  ["an unknown type", event({ eventType: "run.nonsense" })],
  ["a type whose dot is another character", event({ eventType: "runxcreated" })],
  ["a time without Z", event({ occurredAt: "2026-01-02T03:04:05" })],
  ["a time with ten fraction digits", event({ occurredAt: "2026-01-02T03:04:05.1234567890Z" })],
  ["an upper-case hash", event({ configRevision: HASH.toUpperCase() })],
  ["an omitted field twice", event({ redaction: { version: "kxm-1", fieldsOmitted: ["a", "a"], valuesReplaced: 0 } })],
  ["an unknown redaction member", event({ redaction: { version: "kxm-1", fieldsOmitted: [], valuesReplaced: 0, x: 1 } })],
  ["a summary of 1001 characters", withPayload({ summary: "a".repeat(1001) })],
  ["an empty summary", withPayload({ summary: "" })],
  ["an unknown status", withPayload({ status: "happy" })],
  ["instance 65", withPayload({ instanceNo: 65 })],
  ["a duration of over a year", withPayload({ timing: { durationMs: 31_536_000_001 } })],
  ["a model tag twice", withPayload({ model: { provider: "x", model: "y", tags: ["a", "a"] } })],
  ["a path twice", withPayload({ fileChanges: [{ repositoryId: "main", added: ["a", "a"] }] })],
  ["a receipt with a url", withPayload({ receipts: [{ provider: "x", kind: "y", id: "1", url: "https://x" }] })],
  ["a count below 0", withPayload({ counts: { files: -1 } })],
  ["33 counts", withPayload({ counts: Object.fromEntries(Array.from({ length: 33 }, (_, i) => [`n${i}`, 1])) })],
  ["a count with a strange name", withPayload({ counts: { "Not An Id": 1 } })],
  ["a cost of NaN", withPayload({ usage: { cost: Number.NaN } })],
  ["an array", []],
  ["null", null],
])("%s is refused", (_, value) => {
  expect(syncEventProblem(value)).toBeString();
});

test.each([
  "/etc/passwd",
  "../x",
  "a/../b",
  "./a",
  "a//b",
  "a/",
  "a\\b",
  "C:x",
  "a?b",
  "x\u0001",
  "dot.",
  "space ",
  "a/NUL",
  "com1.txt",
  "lpt\u00b9",
  "a".repeat(1025),
])("the path %p is refused", (path) => {
  expect(syncEventProblem(withPayload({ fileChanges: [{ repositoryId: "main", added: [path] }] }))).toStartWith("/payload/fileChanges");
});

test.each(["a", ".env", "..a", "src/con-text.ts", "console/a", "nul-able.ts", "a b/c.d"])("the path %p is taken", (path) => {
  expect(syncEventProblem(withPayload({ fileChanges: [{ repositoryId: "main", added: [path] }] }))).toBeUndefined();
});

test("a path of dots and spaces costs no time", () => {
  const started = performance.now();
  for (const path of ["a/".repeat(512), `${".".repeat(1023)}/`, " ".repeat(1024), "con".repeat(341)])
    syncEventProblem(withPayload({ fileChanges: [{ repositoryId: "main", added: [path] }] }));
  expect(performance.now() - started).toBeLessThan(50);
});

test("every effect type needs the effect, and a dispatched shared effect its lease", () => {
  const shared = effect({ class: "unknown", sharedMutable: true });
  for (const type of SYNC_EVENT_TYPES.filter((name) => name.startsWith("effect."))) {
    expect(syncEventProblem(withPayload({ summary: "x" }, type))).toBe("/payload/effect");
    const needed = requiredOf(type, { effect: shared as any });
    for (const member of needed) {
      const all = {
        effect: shared,
        lease,
        resolvedBy: { kind: "human", id: "op" },
        resolutionAction: "cancel",
        reason: "why",
        suppliedRefs: [],
      } as Record<string, unknown>;
      expect(syncEventProblem(withPayload(all, type))).toBeUndefined();
      delete all[member];
      expect(syncEventProblem(withPayload(all, type))).toBe(`/payload/${member}`);
    }
  }
  expect(syncEventProblem(withPayload({ effect: shared }, "effect.dispatched"))).toBe("/payload/lease");
  expect(syncEventProblem(withPayload({ effect: effect({ class: "unknown", sharedMutable: false }) }, "effect.dispatched"))).toBeUndefined();
  expect(syncEventProblem(withPayload({ summary: "x" }, "lease.lost"))).toBe("/payload/lease");
  expect(syncEventProblem(withPayload({ actor: { kind: "human", id: "op" }, outcome: "passed" }, "approval.recorded"))).toBe("/payload/suppliedRefs");
});

test.each([
  [{ class: "read-only", sharedMutable: true }, false],
  [{ class: "read-only", sharedMutable: false }, true],
  [{ class: "workspace-mutation", sharedMutable: true }, false],
  [{ class: "external-idempotent", sharedMutable: true, idempotencyKey: "run" }, false],
  [{ class: "external-idempotent", sharedMutable: true, idempotencyKey: "run", receiptQuery: "q" }, true],
  [{ class: "receipt-queryable", sharedMutable: true }, false],
  [{ class: "receipt-queryable", sharedMutable: true, receiptQuery: "q" }, true],
  [{ class: "external-non-idempotent", sharedMutable: true, receiptQuery: "q" }, false],
  [{ class: "unknown", sharedMutable: false, idempotencyKey: "run" }, false],
  [{ class: "unknown", sharedMutable: false }, true],
])("an effect policy %j is taken: %p", (policy, taken) => {
  const value = withPayload({ effect: effect(policy, { idempotencyKeyHash: HASH }), lease }, "effect.observed");
  expect(syncEventProblem(value)).toBe(taken ? undefined : "/payload/effect");
});

test("an external-idempotent effect needs the hash of its key", () => {
  const policy = { class: "external-idempotent", sharedMutable: true, idempotencyKey: "run", receiptQuery: "q" };
  expect(syncEventProblem(withPayload({ effect: effect(policy) }, "effect.observed"))).toBe("/payload/effect");
});
