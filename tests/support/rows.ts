// Rows for tests of the store itself: complete, valid and short to write. Tests of rules make theirs through the rules.
import type { AgentRow, LeaseRow, MessageRow, SyncEventRow, SyncRunRow } from "../../src/db/schema.ts";
import type { NewEvent } from "../../src/db/tx.ts";
import { emptyProjection } from "../../src/hub/projection.ts";
import { sha256 } from "../../src/protocol/canonical.ts";

/** A held lease. */
export const leaseRow = (resource: string, over: Partial<LeaseRow> = {}): LeaseRow => ({
  resource,
  project: "p",
  name: resource,
  fence: 1,
  holderId: "agt_a",
  holderName: "Ada",
  ttlMs: 60_000,
  acquiredAt: 1,
  renewedAt: 1,
  expiresAt: 60_001,
  freedAt: null,
  lastWaiter: 0,
  ...over,
});

/** An event of the log that says nothing in particular. */
export const testedEvent = (project: string, n = 0): NewEvent => ({
  project,
  topic: "agents",
  type: "tested",
  subjectId: `s${n}`,
  actor: "test",
  data: { n, text: "a 'quoted' ☃ {}" },
});

/** An agent that is online. */
export const agentRow = (id: string, project: string, name: string): AgentRow => ({
  id,
  project,
  name,
  nameFolded: name.toLowerCase(),
  purpose: "test",
  model: null,
  host: null,
  keyHash: sha256(id),
  online: 1,
  registeredAt: 1,
  connectedAt: 1,
  lastSeenAt: 1,
  retiredAt: null,
});

/** A queued message with honest hashes. */
export const messageRow = (id: string, recipientSeq: number, over: Partial<MessageRow> = {}): MessageRow => {
  const content = over.content ?? `message ${id}`;
  return {
    id,
    project: "p",
    senderId: "agt_a",
    senderName: "Ada",
    recipientId: "agt_b",
    recipientName: "Bob",
    recipientSeq,
    status: "queued",
    isOpen: over.endedAt == null ? 1 : 0,
    delivery: "followUp",
    hops: 0,
    maxHops: 4,
    content,
    contentHash: sha256(content),
    idempotencyKey: null,
    correlationId: null,
    replyTo: null,
    workflowRunId: null,
    workflowContext: null,
    createdAt: 1,
    expiresAt: 86_400_001,
    pushedAt: null,
    deliveredAt: null,
    turnStartedAt: null,
    repliedAt: null,
    cancelledAt: null,
    endedAt: null,
    replyContent: null,
    replyHash: null,
    error: null,
    dismissedAt: null,
    ...over,
  };
};

/** A run without events. */
export const syncRunRow = (projectId: string, runId: string, over: Partial<SyncRunRow> = {}): SyncRunRow => ({
  projectId,
  runId,
  project: "p",
  homeRuntimeId: "rtm_one",
  cursor: 0,
  held: 0,
  heldBytes: 0,
  firstReceivedAt: 1,
  lastReceivedAt: 1,
  workflowId: null,
  displayTitle: null,
  status: null,
  stepId: null,
  startedAt: null,
  updatedAt: null,
  endedAt: null,
  retryOf: null,
  projection: emptyProjection(),
  ...over,
});

/** A stored event of a run whose hash fits its bytes. */
export const syncEventRow = (projectId: string, runId: string, sequence: number, text = ""): SyncEventRow => {
  const record = JSON.stringify({ n: sequence, text });
  return { projectId, runId, sequence, hash: `sha256:${sha256(record)}`, receivedAt: 1, record };
};
