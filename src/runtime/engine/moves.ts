// The moves of a run: small makers of the events that more than one step kind uses. Pure; nothing is written here.
import { canonical, taggedSha256 } from "../../protocol/canonical.ts";
import type { EffectClass, Gate } from "../../protocol/project-files.ts";
import { REPOSITORY_PATH, type SyncStatus } from "../../protocol/sync-event.ts";
import { VERSION } from "../../protocol/version.ts";
import type { Failure } from "../harness/result.ts";
import type { NewId } from "../ids.ts";
import type { PlanStep } from "../project/plan.ts";
import { AGENT_TIMEOUT_MS_DEFAULT, GATE_TIMEOUT_MS_DEFAULT } from "../project/plan.ts";
import { type Access, granted } from "../project/repositories.ts";
import type { NewEvent } from "../store/events.ts";
import type { Attempt, Execution } from "./execution.ts";
import type { ApprovalContent, ApprovalPurpose, AttemptLocal, OutcomeLocal, StatusLocal, Workspace } from "./local.ts";

/** What decisions take from outside: time, ids and where things will lie on disk. */
export type Setting = {
  /** Wall time of this decision. */
  now: number;
  /** Milliseconds the run has executed, by the monotonic clock. */
  elapsedMs: number;
  /** Wall time when the drive opened, and what passed since then by the monotonic clock: for deadlines, which do not move when the wall is set. */
  steady: number;
  /** Milliseconds an executing attempt has run, likewise. */
  ranMs: (attempt: Attempt) => number;
  newId: NewId;
  boot: string;
  attemptFolder: (attemptId: string) => string;
  workspace: (run: Execution, step: PlanStep, granted: Record<string, Access>, attemptId: string) => Workspace;
};

/** Characters of a reason or summary that is kept in an event. */
const WORDS_MAX = 1000;
export const bounded = (text: string): string => (text.length > WORDS_MAX ? `${text.slice(0, WORDS_MAX - 1)}…` : text);

/** The run's status, with a reason for people. */
export const runStatus = (run: Execution, status: SyncStatus, reason?: string, local?: StatusLocal): NewEvent => ({
  type: "run.status_changed",
  payload: { status, previousStatus: run.status, ...(reason && { reason: bounded(reason) }) },
  local: local as Record<string, unknown> | undefined,
});

/** Stops whatever runs; when all has ended the run ends as said. */
export const stopRun = (run: Execution, endAs: "failed" | "cancelled", reason: string, failureClass?: string): NewEvent => {
  const event = runStatus(run, "cancelling", reason, { endAs });
  if (failureClass) event.payload.error = { class: failureClass, component: "engine", retryable: false };
  return event;
};

/** Enters a step: anew, or for another attempt of the same visit. */
export function enterStep(run: Execution, stepId: string, again: boolean): NewEvent {
  const count = run.counts[stepId] ?? { attempts: 0, visits: 0 };
  return {
    type: "step.entered",
    payload: {
      stepId,
      stepAttempt: count.attempts + 1,
      status: "running",
      ...(run.visit && run.visit.stepId !== stepId && { fromStepId: run.visit.stepId }),
    },
    local: { visit: again ? count.visits : count.visits + 1 },
  };
}

/** Records how the current step attempt ended. What the project keeps on this machine stays beside the payload. */
export function recordOutcome(
  run: Execution,
  end: { outcome: string; summary: string; declared: boolean; failure?: Failure; status: SyncStatus } & Partial<
    Pick<OutcomeLocal, "evidence" | "changes">
  > & { progress?: string },
): NewEvent {
  const { outcome, summary, declared, failure, status, evidence = [], changes = [], progress = "" } = end;
  const evidenceHash = taggedSha256([...evidence.map(({ key, hash }) => `${key}=${hash}`).sort(), failure?.class ?? "", progress].join("\n"));
  const visit = run.visit!;
  const words = bounded(summary || outcome);
  const local: OutcomeLocal = { evidence, changes, failure, declared, evidenceHash, summary: words };
  return {
    type: "step.outcome_recorded",
    payload: {
      stepId: visit.stepId,
      stepAttempt: visit.stepAttempt,
      status,
      outcome,
      ...(run.plan.sync.results === "summary" && { summary: words }),
      ...(failure && { error: { class: failure.class, component: visit.stepId, retryable: failure.retryable }, reason: bounded(failure.sentence) }),
      ...(evidence.length > 0 && { evidenceRefs: evidence.slice(0, 64).map(({ id, kind, hash }) => ({ id, kind, hash })) }),
      ...(changes.length > 0 && {
        fileChanges: changes.map((one) => ({ repositoryId: one.repositoryId, ...pathsOf(one, run.plan.sync.fileChanges === "counts") })),
      }),
    },
    local: local as unknown as Record<string, unknown>,
  };
}

const PATHS_MAX = 1000;
function pathsOf({ added, modified, deleted }: { added: string[]; modified: string[]; deleted: string[] }, countsOnly: boolean) {
  const kept = (paths: string[]) => (countsOnly ? [] : paths.filter((path) => REPOSITORY_PATH.test(path)).slice(0, PATHS_MAX));
  const shown = { added: kept(added), modified: kept(modified), deleted: kept(deleted) };
  const cut = added.length + modified.length + deleted.length - shown.added.length - shown.modified.length - shown.deleted.length;
  return countsOnly ? { redactedPathCount: cut } : { ...shown, ...(cut > 0 && { redactedPathCount: cut }) };
}

/** The class of what a gate's command may change. */
const gateEffect = (gate: Gate): EffectClass => ("argv" in gate ? (gate.effect ?? (gate.lease ? "unknown" : "workspace-mutation")) : "read-only");

/** Class of an attempt whose effect an operator found absent or undone: the step is tried again. */
export const RESOLVED_ABSENT = "resolved_absent";

/** Class of an attempt that was ended because the Runtime was stopped in order: it says nothing about the step. */
export const RUNTIME_STOPPED = "runtime_stopped";
/** Failures that take no attempt from a step: it is tried again whatever is left. */
export const takesNoAttempt = (failure: Failure | undefined): boolean => failure?.class === RESOLVED_ABSENT || failure?.class === RUNTIME_STOPPED;

/** Whether an attempt whose end nobody saw may simply be tried again. */
export const mayRepeat = (effect: EffectClass): boolean =>
  effect === "read-only" || effect === "workspace-mutation" || effect === "external-idempotent";

/** Intends one attempt of an agent. */
export function agentAttempt(run: Execution, step: PlanStep, setting: Setting, who: { assignmentId: string; agentId: string }): NewEvent[] {
  const agent = run.plan.agents[who.agentId]!;
  const attemptId = setting.newId("att");
  const workspace = setting.workspace(run, step, granted(step.repositories, agent.repositories), attemptId);
  const local: AttemptLocal = {
    kind: "agent",
    folder: setting.attemptFolder(attemptId),
    boot: setting.boot,
    timeoutMs: Math.min(step.timeoutMs ?? Number.POSITIVE_INFINITY, agent.timeoutMs ?? AGENT_TIMEOUT_MS_DEFAULT),
    effectClass: workspace.access === "write" ? "workspace-mutation" : "read-only",
    workspace,
    conversation: crypto.randomUUID(),
  };
  const identity = { stepId: step.id, stepAttempt: run.visit!.stepAttempt, assignmentId: who.assignmentId, attemptId, agentId: who.agentId };
  const executor = { id: "local", kind: "local" as const, executorVersion: VERSION, harness: agent.harness, harnessVersion: "unknown" };
  return [
    { type: "attempt.created", payload: { ...identity, status: "created", executor }, local: local as unknown as Record<string, unknown> },
    { type: "assignment.dispatched", payload: { ...identity, status: "dispatched", ...(agent.model && { model: agent.model }) } },
  ];
}

/** Intends one attempt of a gate. An effect outside the machine gets an id now and is announced before it can happen, with its lease. */
export function gateAttempt(run: Execution, step: PlanStep, setting: Setting): NewEvent {
  const gate = run.plan.gates[step.gate!]!;
  const effectClass = gateEffect(gate);
  const attemptId = setting.newId("gat");
  const outside = effectClass !== "read-only" && effectClass !== "workspace-mutation";
  const effectId = outside ? setting.newId("eff") : undefined;
  const limit = "argv" in gate ? (gate.timeoutMs ?? GATE_TIMEOUT_MS_DEFAULT) : GATE_TIMEOUT_MS_DEFAULT;
  const local: AttemptLocal = {
    kind: "gate",
    folder: setting.attemptFolder(attemptId),
    boot: setting.boot,
    timeoutMs: Math.min(step.timeoutMs ?? Number.POSITIVE_INFINITY, limit),
    effectClass,
    workspace: setting.workspace(run, step, step.repositories, attemptId),
    lease: "argv" in gate ? gate.lease : undefined,
    effectId,
  };
  const identity = { stepId: step.id, stepAttempt: run.visit!.stepAttempt, attemptId };
  return { type: "attempt.created", payload: { ...identity, status: "created" }, local: local as unknown as Record<string, unknown> };
}

/** The effect as the hub is told of it. Only what the project declares is claimed. */
export const effectOf = (id: string, effectClass: EffectClass, attemptId: string, shared = false) => ({
  id,
  policy: {
    class: effectClass,
    sharedMutable: shared,
    ...(effectClass === "external-idempotent" && { idempotencyKey: "attempt" as const, receiptQuery: "exit-code" }),
    ...(effectClass === "receipt-queryable" && { receiptQuery: "exit-code" }),
  },
  ...(effectClass === "external-idempotent" && { idempotencyKeyHash: taggedSha256(attemptId) }),
});

/** The question with what it is about, for somebody who sees nothing else of the run. The hash covers more than this text: all of the content. */
function questionText({ question, basis }: ApprovalContent): string {
  const lines = basis.map(
    ({ stepId, outcome, summary, commits = [] }) =>
      `- ${stepId}: ${outcome}${summary ? ` – ${summary}` : ""}${commits.map((commit) => ` (commit ${commit.slice(0, 12)})`).join("")}`,
  );
  return [question, ...lines].join("\n");
}

/** Asks somebody; the step and the run wait. */
function ask(run: Execution, question: { approvalId: string; content: ApprovalContent; contentHash: string; deadline?: number }): NewEvent[] {
  const visit = run.visit!;
  const { approvalId, content, contentHash, deadline } = question;
  return [
    {
      type: "step.status_changed",
      payload: {
        stepId: visit.stepId,
        stepAttempt: visit.stepAttempt,
        status: "waiting",
        previousStatus: "running",
        summary: bounded(questionText(content)),
        reason: `approval:${content.purpose}`,
        evidenceRefs: [{ id: approvalId, kind: "approval-request", hash: contentHash, status: "waiting" }],
      },
      local: { approval: content, deadline },
    },
    ...(run.status === "running" ? [runStatus(run, "waiting", `waits for an approval: ${content.question}`)] : []),
  ];
}

/** Builds a question over the exact state of the run, with the hash that the answer must name. */
export function askAbout(
  run: Execution,
  setting: Setting,
  purpose: ApprovalPurpose,
  question: string,
  numbers?: ApprovalContent["numbers"],
  deadline?: number,
): NewEvent[] {
  const visit = run.visit!;
  const basis = Object.values(run.results).map(({ stepId, outcome, summary, evidence, changes }) => ({
    stepId,
    outcome,
    summary,
    evidence: evidence.map(({ key, hash }) => `${key}=${hash}`),
    ...(changes.length > 0 && { commits: changes.map(({ commit }) => commit) }),
  }));
  const content: ApprovalContent = { runId: run.runId, purpose, stepId: visit.stepId, stepAttempt: visit.stepAttempt, question, basis, numbers };
  return ask(run, { approvalId: setting.newId("apr"), content, contentHash: taggedSha256(canonical(content)), deadline });
}

/** Goes on after somebody was asked. */
export const goOn = (run: Execution): NewEvent[] => [
  {
    type: "step.status_changed",
    payload: { stepId: run.visit!.stepId, stepAttempt: run.visit!.stepAttempt, status: "running", previousStatus: "waiting" },
  },
  ...(run.status === "waiting" ? [runStatus(run, "running")] : []),
];
