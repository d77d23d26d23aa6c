// Approvals: what a run asks of a person, bound to the hash of exactly what is approved, and how far the decision got.
import { type Static, Type } from "@sinclair/typebox";
import { integer, oneOf, optionalText, text } from "./fields.ts";
import { PAGE_ROWS_DEFAULT, PAGE_ROWS_MAX, REASON_MAX } from "./limits.ts";
import { COMMAND_STATES } from "./runtimes.ts";
import { TAGGED_SHA256 } from "./sync-event.ts";

const time = Type.String({ description: "UTC time, ISO-8601 with Z." });
const optional = Type.Optional;
const id = Type.String();
export const APPROVAL_STATUSES = ["pending", "approved", "rejected", "cancelled"] as const;
export const DECISIONS = ["approve", "reject"] as const;
export type Decision = (typeof DECISIONS)[number];

/** The newest decision made here and what its Runtime says of it. After a refusal the approval is pending again and this stays. */
export const ApprovalDecision = Type.Object({
  decision: Type.Union(DECISIONS.map((word) => Type.Literal(word))),
  by: id,
  at: time,
  reason: optional(Type.String()),
  command: Type.Object({
    id,
    state: Type.Union(COMMAND_STATES.map((word) => Type.Literal(word))),
    sentAt: time,
    receivedAt: optional(time),
    finishedAt: optional(time),
    reason: optional(Type.String({ description: "Why the Runtime refused it." })),
  }),
});
export type ApprovalDecision = Static<typeof ApprovalDecision>;

export const Approval = Type.Object({
  id,
  project: id,
  projectId: id,
  runId: id,
  runtimeId: id,
  stepId: id,
  attempt: Type.Integer({ minimum: 1 }),
  title: Type.String(),
  content: Type.String({ description: "What exactly is approved, as the Runtime showed it." }),
  contentHash: id,
  status: Type.Union(APPROVAL_STATUSES.map((word) => Type.Literal(word))),
  requestedAt: time,
  decidedAt: optional(time),
  decidedBy: optional(id),
  reason: optional(Type.String()),
  decision: optional(ApprovalDecision),
  updatedAt: time,
});
export type Approval = Static<typeof Approval>;

export const ApprovalsQuery = Type.Object({
  project: optionalText(128, { description: "The hub project; a token of one project may leave it out." }),
  status: oneOf([...APPROVAL_STATUSES, "all"] as const, { default: "pending" }),
  after: optionalText(200, { description: "next of the page before." }),
  limit: integer({ default: PAGE_ROWS_DEFAULT, min: 1, max: PAGE_ROWS_MAX }),
});
export const ApprovalsAnswer = Type.Object({
  approvals: Type.Array(Approval),
  next: optional(Type.String({ description: "Send it as after for the next page; absent on the last." })),
});
export type ApprovalsAnswer = Static<typeof ApprovalsAnswer>;
export const ApprovalParams = Type.Object({ id: text(144) });
export const DecisionBody = Type.Object({
  decision: oneOf(DECISIONS),
  reason: optionalText(REASON_MAX, { description: "Why; the Runtime and the audit log keep it." }),
  contentHash: text(128, { pattern: TAGGED_SHA256, description: "The hash of what was looked at. Another content is not decided." }),
});
export const ApprovalAnswer = Type.Object({ approval: Approval });
