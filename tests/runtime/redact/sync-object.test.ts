// The object that leaves: only members of the list, every text scrubbed and cut, and a degraded object instead of a raw or missing one.
import { expect, test } from "bun:test";
import { canonical } from "../../../src/protocol/canonical.ts";
import { SYNC_EVENT_TYPES, type SyncPayload, syncEventProblem } from "../../../src/protocol/sync-event.ts";
import { knownSecrets } from "../../../src/runtime/redact/known-secrets.ts";
import { createRedactor, type Redactor } from "../../../src/runtime/redact/redactor.ts";
import { createDeriver, type RawEvent } from "../../../src/runtime/redact/sync-object.ts";
import { HASH, PROJECT_ID, RUNTIME_ID } from "../support.ts";
import { corpus, leaks, seeded } from "./corpus.ts";

const run = {
  runId: "run_0123456789",
  projectId: PROJECT_ID,
  homeRuntimeId: RUNTIME_ID,
  configRevision: HASH,
  memoryRevision: "mem_0123456789",
  executorPolicyRevision: HASH,
  toolPolicyRevision: HASH,
  syncPolicyRevision: HASH,
};
const event = (payload: unknown, change: Partial<RawEvent> = {}): RawEvent => ({
  eventId: "evt_0123456789",
  eventType: "step.status_changed",
  sequence: 3,
  occurredAt: Date.UTC(2026, 0, 2),
  payload: payload as SyncPayload,
  ...change,
});
const derive = (payload: unknown, change: Partial<RawEvent> = {}, redactor: Redactor = createRedactor(knownSecrets())) =>
  createDeriver(redactor)(run, event(payload, change));

test("members that are not listed are dropped and named, at every level", () => {
  const made = derive(
    {
      status: "running",
      argv: ["rm", "-rf"],
      model: { provider: "openai", model: "gpt", apiBase: "http://internal" },
      receipts: [{ provider: "github", kind: "push", id: "1", url: "https://host/x" }],
      environment: [{ name: "API_BASE", scope: "process", status: "resolved", source: "host", value: "http://internal" }],
    },
    { local: { pid: 1, workspace: "/home/x" } },
  );
  expect(made.payload).toEqual({
    status: "running",
    model: { provider: "openai", model: "gpt" },
    receipts: [{ provider: "github", kind: "push", id: "1" }],
    environment: [{ name: "API_BASE", scope: "process", status: "resolved", source: "host" }],
  });
  expect(made.redaction.fieldsOmitted.sort()).toEqual(
    ["local.pid", "local.workspace", "payload.argv", "payload.environment[].value", "payload.model.apiBase", "payload.receipts[].url"].sort(),
  );
  expect(syncEventProblem(made)).toBeUndefined();
});

test("a secret leaves in no member, whatever member it was put in", () => {
  for (const { shape, text, core } of corpus(seeded(21)).filter(({ text }) => !text.includes("\n"))) {
    const word = text === core && /^[\w-]+$/.test(text) ? text : "plain"; // what could pass for an id
    const made = derive({
      status: "failed",
      displayTitle: text,
      summary: `it printed ${text}`,
      reason: text,
      stepId: word,
      agentId: word,
      outcome: word,
      assignmentId: word,
      model: { provider: word, model: text, thinking: text.slice(0, 64) },
      executor: { id: "local", kind: "local", executorVersion: text, harness: "codex", harnessVersion: "1" },
      artifacts: [{ id: word, kind: "log", hash: HASH, size: 1, availability: "local" }],
      receipts: [{ provider: "github", kind: "push", id: text }],
      fileChanges: [{ repositoryId: "main", added: [`src/${word}.ts`, "src/good.ts"] }],
      counts: { [word]: 1 },
      [word]: 1,
    });
    const out = canonical(made);
    expect([shape, leaks(out, core, 12)]).toEqual([shape, false]);
    expect(syncEventProblem(made)).toBeUndefined();
    expect(out).toContain("src/good.ts");
  }
});

test("texts are cut at their bounds, between characters, and counts tell what was replaced", () => {
  const made = derive({ displayTitle: "x".repeat(500), summary: `${"word ".repeat(198)}😀😀😀😀😀😀😀😀`, reason: "\u001b[31m\u0000 " });
  expect(made.payload.displayTitle!.length).toBe(200);
  expect(made.payload.summary!.length).toBeLessThanOrEqual(1000);
  expect(made.payload.summary!.isWellFormed()).toBeTrue();
  expect(made.payload.reason).toBeUndefined();
  const lone = derive({ summary: "half \ud83d" });
  expect(lone.payload.summary!.isWellFormed()).toBeTrue();
  expect(derive({ summary: "at /home/ana/x and /home/ana/y" }).redaction.valuesReplaced).toBe(2);
});

test("a long text costs little, and a secret at the cut does not leave in part", () => {
  const [sample] = corpus(seeded(22)).filter(({ shape }) => shape === "google-oauth");
  const long = derive({ summary: `${"a b ".repeat(240)}${sample!.text} ${"c d ".repeat(500_000)}` });
  expect(leaks(canonical(long), sample!.core)).toBeFalse();
  const shrunk = derive({ summary: Array.from({ length: 700 }, () => `password=${sample!.text.slice(0, 90)} `).join("") });
  expect(leaks(canonical(shrunk), sample!.core)).toBeFalse();
});

test("a secret cut over two events of a run leaves in neither", () => {
  const [sample] = corpus(seeded(23)).filter(({ shape }) => shape === "github-ghp");
  for (let cut = 1; cut < sample!.text.length; cut++) {
    const deriver = createDeriver(createRedactor(knownSecrets()));
    const first = deriver(run, event({ summary: `it is ${sample!.text.slice(0, cut)}` }));
    const second = deriver(run, event({ summary: `${sample!.text.slice(cut)} it said` }, { sequence: 4 }));
    expect([cut, leaks(canonical([first, second]), sample!.core.slice(4))]).toEqual([cut, false]);
  }
});

const failing = (how: () => never): Redactor => ({ ...createRedactor(knownSecrets()), leaving: how, secrets: how });
test.each(SYNC_EVENT_TYPES.map((type) => [type] as const))(
  "when the redactor fails, %s still has a valid, degraded object without its texts",
  (eventType) => {
    const payload = {
      status: "waiting",
      stepId: "build",
      summary: "raw text",
      reason: "raw text",
      outcome: "passed",
      actor: { kind: "human", id: "raw text" },
      effect: { id: "eff_0123456789", policy: { class: "unknown", sharedMutable: true } },
      lease: { id: "lse_0123456789", fencingToken: "7", acquiredAt: "2026-01-02T03:04:05Z", expiresAt: "2026-01-02T03:04:06Z" },
    };
    const made = derive(
      payload,
      { eventType, local: { secret: "raw text" } },
      failing(() => {
        throw new Error("broken");
      }),
    );
    expect(syncEventProblem(made)).toBeUndefined();
    expect(made.payload.degraded).toBeTrue();
    expect(made).toMatchObject({ sequence: 3, eventType, runId: run.runId });
    expect(canonical(made)).not.toContain("raw text");
  },
);

test("a payload that cannot be made valid is degraded, keeping what can be followed", () => {
  const made = derive({ status: "running", stepId: "build", stepAttempt: 0, summary: "x" });
  expect(made.payload).toEqual({ degraded: true, status: "running", stepId: "build" });
  expect(made.redaction.fieldsOmitted).toContain("payload");
  const lease = derive({ summary: "x" }, { eventType: "lease.lost" });
  expect(lease.payload).toMatchObject({ degraded: true, lease: { fencingToken: "[redaction failed]" } });
  expect(syncEventProblem(lease)).toBeUndefined();
  expect(derive({}).payload).toEqual({ degraded: true });
});

test("the same event gives the same bytes", () => {
  const payload = { status: "running", summary: "at /home/ana/x", counts: { b: 1, a: 2 } };
  expect(canonical(derive(payload))).toBe(canonical(derive(payload)));
});
