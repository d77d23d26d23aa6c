// Runs as the hub shows them: what the gapless events of a run come to, folded one event at a time and bounded in size.
import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { integer, optionalText } from "./fields.ts";
import { PAGE_ROWS_DEFAULT, PAGE_ROWS_MAX } from "./limits.ts";

const time = Type.String({ description: "UTC time as the Runtime reported it, ISO-8601 with Z." });
const whole = Type.Integer({ minimum: 0 });
const optional = Type.Optional;
const text = Type.String();
/** A bounded list: the newest entries, how many bytes they take and how many older ones were dropped. */
const section = <S extends TSchema>(item: S) => Type.Object({ items: Type.Array(item), bytes: whole, dropped: whole });

export const StepAttempt = Type.Object({
  attempt: Type.Integer({ minimum: 1 }),
  status: text,
  outcome: optional(text),
  startedAt: optional(time),
  endedAt: optional(time),
  durationMs: optional(whole),
});
export type StepAttempt = Static<typeof StepAttempt>;
export const RunStep = Type.Object({
  stepId: text,
  status: text,
  outcome: optional(text),
  attempts: Type.Array(StepAttempt, { description: "The newest attempts; attempt numbers say how many there were." }),
  reason: optional(text),
  files: optional(Type.Object({ added: whole, modified: whole, deleted: whole, redacted: whole })),
  updatedAt: time,
});
export type RunStep = Static<typeof RunStep>;
/** What the newest attempt of an assignment used, as last reported. */
export const AttemptUsage = Type.Object({
  inputTokens: optional(whole),
  outputTokens: optional(whole),
  cacheReadTokens: optional(whole),
  cacheWriteTokens: optional(whole),
  cost: optional(Type.Number()),
  currency: optional(text),
  costKind: optional(text),
});
export type AttemptUsage = Static<typeof AttemptUsage>;
export const RunAssignment = Type.Object({
  assignmentId: text,
  stepId: optional(text),
  agentId: optional(text),
  status: text,
  attempt: whole,
  attemptId: optional(text),
  model: optional(text),
  harness: optional(Type.String({ description: "The program that the agent runs in." })),
  outcome: optional(text),
  startedAt: optional(time),
  endedAt: optional(time),
  durationMs: optional(whole),
  usage: optional(AttemptUsage),
  error: optional(text),
});
export type RunAssignment = Static<typeof RunAssignment>;
/** Stands where a program reported a cost and named no currency: ISO 4217's own code for none. */
export const NO_CURRENCY = "XXX";
export const UsageSum = Type.Object({
  name: text,
  inputTokens: whole,
  outputTokens: whole,
  cacheReadTokens: whole,
  cacheWriteTokens: whole,
  costs: Type.Record(Type.String(), Type.Number(), { description: "Cost by currency." }),
  estimated: Type.Boolean({ description: "Some of the cost is an estimate." }),
  unknown: Type.Integer({ minimum: 0, description: "Uses whose cost is not known." }),
});
export type UsageSum = Static<typeof UsageSum>;
export const RunEvidence = Type.Object({
  id: text,
  kind: text,
  hash: optional(text),
  status: optional(text),
  producerId: optional(text),
  stepId: optional(text),
  at: time,
});
export const RunLease = Type.Object({
  id: text,
  operation: optional(text),
  fencingToken: text,
  state: Type.Union([Type.Literal("held"), Type.Literal("released"), Type.Literal("lost")]),
  acquiredAt: time,
  expiresAt: time,
});
export const RunEffect = Type.Object({
  id: text,
  class: text,
  state: Type.String({ description: "The last part of the newest event's type, such as dispatched or blocked_uncertain." }),
  stepId: optional(text),
  reason: optional(text),
  resolution: optional(text),
  at: time,
});
export const RunEdge = Type.Object({
  from: text,
  to: optional(Type.String({ description: "The step it led to; absent when it ended the run." })),
  outcome: text,
  times: Type.Integer({ minimum: 1 }),
});
export type RunEdge = Static<typeof RunEdge>;
export const RunReceipt = Type.Object({ provider: text, kind: text, id: text, at: time });
export const RunWaiting = Type.Object({
  for: Type.String({ description: "approval, uncertain, or step for anything else a step or run waits for." }),
  stepId: optional(text),
  reason: optional(text),
  approvalId: optional(text),
  since: time,
});
export const RunError = Type.Object({ class: text, component: text, retryable: Type.Boolean(), stepId: optional(text), at: time });

/** What the gapless prefix of a run says. */
export const RunProjection = Type.Object({
  createdAt: optional(time),
  retryOf: optional(
    Type.Object(
      { runId: text, stepId: optional(Type.String({ description: "The step it began at; absent when it began anew." })) },
      {
        description: "The run whose work this one does again.",
      },
    ),
  ),
  cancelRequestedAt: optional(time),
  reason: optional(text),
  waiting: optional(RunWaiting),
  error: optional(RunError),
  transitions: whole,
  degraded: Type.Integer({ minimum: 0, description: "Events whose content could not be redacted and was left out." }),
  valuesReplaced: Type.Integer({ minimum: 0, description: "Values that redaction replaced." }),
  delivery: optional(text),
  steps: section(RunStep),
  edges: section(RunEdge),
  assignments: section(RunAssignment),
  usage: UsageSum,
  models: section(UsageSum),
  agents: section(UsageSum),
  evidence: section(RunEvidence),
  leases: section(RunLease),
  effects: section(RunEffect),
  receipts: section(RunReceipt),
});
export type RunProjection = Static<typeof RunProjection>;

/** A run in a list. */
export const RunSummary = Type.Object({
  project: text,
  projectId: text,
  runId: text,
  runtimeId: text,
  status: optional(text),
  workflowId: optional(text),
  displayTitle: optional(text),
  stepId: optional(text),
  startedAt: optional(time),
  updatedAt: optional(time),
  endedAt: optional(time),
  firstReceivedAt: time,
  lastReceivedAt: time,
  lastSequence: Type.Integer({ minimum: 0, description: "Length of the gapless prefix; everything shown is folded from it." }),
  pendingGap: Type.Boolean({ description: "More events are held behind a gap." }),
  held: whole,
  presence: Type.Union([Type.Literal("online"), Type.Literal("expired"), Type.Literal("unknown")], { description: "Of its Runtime." }),
  orphaned: Type.Boolean({ description: "Its Runtime has not reported lately, or never." }),
  waiting: optional(RunWaiting),
  costs: Type.Record(Type.String(), Type.Number()),
  tokens: whole,
  stepsDone: whole,
  stepsEntered: whole,
});
export type RunSummary = Static<typeof RunSummary>;
/** A run in full. */
export const RunDetail = Type.Object({ ...RunSummary.properties, projection: RunProjection });
export type RunDetail = Static<typeof RunDetail>;

/** One stored event of a run. */
export const RunEventItem = Type.Object({
  sequence: Type.Integer({ minimum: 1 }),
  hash: text,
  receivedAt: time,
  held: Type.Boolean({ description: "Waits behind a gap." }),
  event: Type.Object({}, { description: "The kxm.sync-event.v1 object." }),
});
export type RunEventItem = Static<typeof RunEventItem>;

const project = optionalText(128, { description: "The hub project; a token of one project may leave it out." });
const limit = integer({ default: PAGE_ROWS_DEFAULT, min: 1, max: PAGE_ROWS_MAX });
const next = optional(Type.String({ description: "Send it as after for the next page; absent on the last." }));
export const RunsQuery = Type.Object({
  project,
  status: optionalText(64, { description: "Only runs of this status." }),
  runtimeId: optionalText(144, { description: "Only runs of this Runtime." }),
  after: optionalText(200, { description: "next of the page before." }),
  limit,
});
export const RunsAnswer = Type.Object({ runs: Type.Array(RunSummary), next });
export type RunsAnswer = Static<typeof RunsAnswer>;
export const RunParams = Type.Object({
  projectId: Type.String({ minLength: 1, maxLength: 144 }),
  runId: Type.String({ minLength: 1, maxLength: 144 }),
});
export const RunAnswer = Type.Object({ run: RunDetail });
export const RunEventsQuery = Type.Object({
  after: integer({ default: 0, min: 0, max: Number.MAX_SAFE_INTEGER }, { description: "Sequence of the last event of the page before." }),
  limit,
});
export const RunEventsAnswer = Type.Object({ events: Type.Array(RunEventItem), next: optional(Type.Integer()) });
export type RunEventsAnswer = Static<typeof RunEventsAnswer>;
