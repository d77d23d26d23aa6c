// One project at a glance, on the wire: what the terminal view and monitors poll. No message bodies anywhere.
import { type Static, Type } from "@sinclair/typebox";
import { Agent } from "./agents.ts";
import { text } from "./fields.ts";
import { RUNTIME_PRESENCE } from "./runtimes.ts";

const optional = Type.Optional;
const time = Type.String();
const count = Type.Integer({ minimum: 0 });

/** Query of both routes. */
export const OpsQuery = Type.Object({ project: text(128, { description: "The project to look at." }) });

const OpenMessage = Type.Object({
  id: Type.String(),
  status: Type.String(),
  fromName: Type.String(),
  toName: Type.String(),
  delivery: Type.String(),
  createdAt: time,
  correlationId: optional(Type.String()),
});
const OpsStage = Type.Object({ id: Type.String(), label: Type.String(), status: Type.String(), attempts: optional(count) });
const OpsRun = Type.Object({
  id: Type.String(),
  status: Type.String(),
  definitionId: Type.String(),
  project: Type.String(),
  currentStage: optional(Type.String()),
  targetAgentName: optional(Type.String()),
  updatedAt: optional(time),
  progress: optional(Type.Object({ done: count, total: count })),
  stages: optional(Type.Array(OpsStage)),
});
const OpsHomeRun = Type.Object({
  projectId: Type.String(),
  runId: Type.String(),
  workflowId: optional(Type.String()),
  displayTitle: optional(Type.String()),
  status: optional(Type.String()),
  lastSequence: count,
  pendingGap: Type.Boolean(),
  updatedAt: optional(time),
  orphaned: Type.Boolean(),
});
const OpsHomeRuntime = Type.Object({
  runtimeId: Type.String(),
  host: optional(Type.String()),
  heartbeatAt: optional(time),
  leaseExpiresAt: optional(time),
  presence: Type.Union(RUNTIME_PRESENCE.map((word) => Type.Literal(word))),
  orphaned: Type.Boolean(),
  runs: Type.Array(OpsHomeRun),
  runTotal: count,
});
const OpsPlan = Type.Object({
  id: Type.String(),
  runId: Type.String(),
  summary: Type.String({ description: "One line of at most 120 characters." }),
  createdAt: time,
  stageId: optional(Type.String()),
  severity: optional(Type.String()),
});

/** Answer of GET /v1/ops/snapshot. */
export const OpsSnapshot = Type.Object({
  project: Type.String(),
  fetchedAt: time,
  agents: Type.Array(Agent, { description: "Online first, then by name." }),
  openMessages: Type.Array(OpenMessage, { description: "At most 16, newest first." }),
  openMessageTotal: Type.Integer({ minimum: 0, description: "Exact up to 10,000." }),
  runs: Type.Array(OpsRun, { description: "At most 8 hub workflow runs, newest update first." }),
  runTotal: Type.Integer({ minimum: 0, description: "Exact up to 10,000." }),
  homeRuntimes: Type.Array(OpsHomeRuntime, { description: "Every Runtime with presence or runs in the project." }),
  plans: Type.Array(OpsPlan, { description: "At most 16 plans from the journal, newest first." }),
});
export type OpsSnapshot = Static<typeof OpsSnapshot>;

/** What a frame of GET /v1/ops/events says changed. */
export const OPS_TOPICS = ["agents", "messages", "workflows"] as const;
export type OpsTopic = (typeof OPS_TOPICS)[number];
