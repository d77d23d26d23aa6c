// The tables, written once over a kit of columns and evaluated once per dialect (schema-kit.ts). Read this file first.
// Constraints live here and in the migrations; drift.test.ts holds schema and databases against each other.
import { sql } from "drizzle-orm";
import type { RunProjection } from "../protocol/runs.ts";
import type { UpkeepOutcome } from "../protocol/upkeep.ts";
import type { Kit } from "./schema-kit.ts";

export type Tables = ReturnType<typeof defineTables>;
export type AgentRow = Tables["agents"]["$inferSelect"];
export type MessageRow = Tables["messages"]["$inferSelect"];
export type LeaseRow = Tables["leases"]["$inferSelect"];
export type LeaseWaiterRow = Tables["leaseWaiters"]["$inferSelect"];
export type SyncRunRow = Tables["syncRuns"]["$inferSelect"];
export type SyncEventRow = Tables["syncEvents"]["$inferSelect"];
export type SyncConflictRow = Tables["syncConflicts"]["$inferSelect"];
export type RuntimeRow = Tables["runtimePresence"]["$inferSelect"];
export type CommandRow = Tables["runtimeCommands"]["$inferSelect"];
export type ApprovalRow = Tables["approvals"]["$inferSelect"];
export type AlertRow = Tables["alerts"]["$inferSelect"];
export type EventRow = Tables["events"]["$inferSelect"];
export type AuditRow = Tables["audit"]["$inferSelect"];
export type TokenRow = Tables["tokens"]["$inferSelect"];
export type SigninLinkRow = Tables["signinLinks"]["$inferSelect"];
export type SavedViewRow = Tables["savedViews"]["$inferSelect"];
export type SessionRow = Tables["sessions"]["$inferSelect"];
export type WorkflowRunRow = Tables["workflowRuns"]["$inferSelect"];
export type JournalRow = Tables["workflowJournal"]["$inferSelect"];
export type ContextItemRow = Tables["contextItems"]["$inferSelect"];
export type SearchRow = Tables["searchDocuments"]["$inferSelect"];
export type WebhookRow = Tables["webhooksOut"]["$inferSelect"];
export type DeliveryRow = Tables["webhookDeliveries"]["$inferSelect"];
export type CostRow = Tables["costSums"]["$inferSelect"];
export type BudgetRow = Tables["budgets"]["$inferSelect"];
export type ArrivalRow = Tables["webhookArrivals"]["$inferSelect"];
export type UpkeepRow = Tables["upkeepJobs"]["$inferSelect"];

/** Topics of the event log; the dashboard's signals carry the same words. */
export type Topic =
  | "agents"
  | "messages"
  | "leases"
  | "sync"
  | "runtimes"
  | "approvals"
  | "workflows"
  | "journal"
  | "context"
  | "webhooks"
  | "alerts"
  | "settings";

export const defineTables = ({ table, text, integer, json, index, uniqueIndex, primaryKey, check }: Kit) => ({
  // --- agents ---------------------------------------------------------------------------------------------------------------------------------
  agents: table(
    "agents",
    {
      id: text().primaryKey(),
      project: text().notNull(),
      name: text().notNull(),
      nameFolded: text().notNull(), // lower case by JavaScript, so both engines agree on what "the same name" is
      purpose: text().notNull(),
      model: text(),
      host: text(),
      keyHash: text().notNull(),
      online: integer().notNull(),
      registeredAt: integer().notNull(),
      connectedAt: integer().notNull(),
      lastSeenAt: integer().notNull(),
      retiredAt: integer(), // by a person; registering again under the name takes it back
    },
    (t) => [
      uniqueIndex("agents_name").on(t.project, t.nameFolded),
      index("agents_project_online").on(t.project, t.nameFolded).where(sql`online = 1`),
      index("agents_project_retired").on(t.project, t.nameFolded).where(sql`retired_at is not null`),
      index("agents_online").on(t.lastSeenAt).where(sql`online = 1`),
      check("agents_online_flag", sql`online in (0, 1)`),
    ],
  ),

  // --- messages -------------------------------------------------------------------------------------------------------------------------------
  messages: table(
    "messages",
    {
      id: text().primaryKey(),
      project: text().notNull(),
      senderId: text().notNull(), // an agent, `operator:<token or session>` or `workflow:<run>`
      senderName: text().notNull(),
      recipientId: text().notNull(),
      recipientName: text().notNull(),
      recipientSeq: integer().notNull(),
      status: text().$type<"queued" | "delivered" | "replied" | "cancelled" | "expired">().notNull(),
      isOpen: integer().notNull(), // 1 while queued or delivered: the part of an index that open mailboxes share
      delivery: text().$type<"steer" | "followUp" | "nextTurn">().notNull(),
      hops: integer().notNull(),
      maxHops: integer().notNull(),
      content: text().notNull(),
      contentHash: text().notNull(),
      idempotencyKey: text(),
      correlationId: text(),
      replyTo: text(),
      workflowRunId: text(),
      workflowContext: json<Record<string, unknown>>(),
      createdAt: integer().notNull(),
      expiresAt: integer().notNull(),
      pushedAt: integer(), // first written to a live stream
      deliveredAt: integer(), // acknowledged
      turnStartedAt: integer(),
      repliedAt: integer(),
      cancelledAt: integer(),
      endedAt: integer(), // when it became terminal: what retention counts from
      replyContent: text(),
      replyHash: text(),
      error: text(),
      dismissedAt: integer(), // expired, and a person sent it again or put it aside: no dead letter any more
    },
    (t) => [
      // Each index that a message enters costs every send, and one that is spread over senders or recipients costs a page: there are few.
      uniqueIndex("messages_box").on(t.recipientId, t.isOpen, t.recipientSeq),
      uniqueIndex("messages_idempotency").on(t.senderId, t.idempotencyKey).where(sql`idempotency_key is not null`),
      index("messages_project").on(t.project, t.isOpen, t.id),
      index("messages_sent").on(t.senderId, t.id),
      index("messages_turns").on(t.project, t.recipientId).where(sql`status = 'delivered' and turn_started_at is not null`),
      index("messages_unanswered").on(t.project, t.status, t.id).where(sql`status in ('cancelled', 'expired')`),
      index("messages_dead").on(t.project, t.id).where(sql`status = 'expired' and dismissed_at is null`),
      index("messages_due").on(t.expiresAt).where(sql`is_open = 1`),
      index("messages_correlation").on(t.project, t.correlationId, t.id).where(sql`correlation_id is not null`),
      index("messages_ended").on(t.endedAt).where(sql`ended_at is not null`),
      check("messages_status", sql`status in ('queued', 'delivered', 'replied', 'cancelled', 'expired')`),
      check("messages_replied", sql`(status = 'replied') = (replied_at is not null)`),
      check("messages_ended_state", sql`(status in ('queued', 'delivered')) = (ended_at is null)`),
      check("messages_is_open", sql`is_open in (0, 1) and (is_open = 1) = (ended_at is null)`),
    ],
  ),

  recipientCounters: table("recipient_counters", { recipientId: text().primaryKey(), lastSeq: integer().notNull() }),

  // --- leases ---------------------------------------------------------------------------------------------------------------------------------
  // One row per resource for ever: a free lease keeps its row, hence its fence. Held = freed_at is null; a lapsed lease still names its last holder.
  leases: table(
    "leases",
    {
      resource: text().primaryKey(),
      project: text().notNull(),
      name: text().notNull(),
      fence: integer().notNull(),
      holderId: text(),
      holderName: text(),
      ttlMs: integer().notNull(),
      acquiredAt: integer().notNull(),
      renewedAt: integer().notNull(),
      expiresAt: integer().notNull(),
      freedAt: integer(), // when it was released (then nobody is named) or lapsed
      lastWaiter: integer().notNull(), // ticket counter of lease_waiters
    },
    (t) => [
      index("leases_project").on(t.project, t.name),
      index("leases_held").on(t.expiresAt).where(sql`freed_at is null`),
      index("leases_project_held").on(t.project, t.name).where(sql`freed_at is null`),
      index("leases_holder").on(t.holderId, t.name).where(sql`freed_at is null`),
      index("leases_project_freed").on(t.project, t.freedAt, t.name).where(sql`freed_at is not null`),
      index("leases_lapsed").on(t.freedAt).where(sql`holder_id is not null and freed_at is not null`),
      check("leases_fence", sql`fence >= 1`),
      check("leases_free", sql`holder_id is not null or freed_at is not null`),
    ],
  ),

  leaseWaiters: table(
    "lease_waiters",
    {
      resource: text().notNull(),
      ticket: integer().notNull(),
      agentId: text().notNull(),
      agentName: text().notNull(),
      ttlMs: integer().notNull(),
      askedAt: integer().notNull(),
      deadlineAt: integer().notNull(), // a waiter past its deadline is never granted
    },
    (t) => [primaryKey({ columns: [t.resource, t.ticket] }), index("lease_waiters_deadline").on(t.deadlineAt)],
  ),

  // --- Runtime sync ---------------------------------------------------------------------------------------------------------------------------
  syncProjects: table("sync_projects", { projectId: text().primaryKey(), project: text().notNull(), claimedAt: integer().notNull() }),

  syncRuns: table(
    "sync_runs",
    {
      projectId: text().notNull(),
      runId: text().notNull(),
      project: text().notNull(), // the hub project that owns projectId
      homeRuntimeId: text().notNull(),
      cursor: integer().notNull(), // length of the gapless prefix
      held: integer().notNull(), // events stored beyond it, waiting for the gap to fill
      heldBytes: integer().notNull(),
      firstReceivedAt: integer().notNull(),
      lastReceivedAt: integer().notNull(),
      // Folded from the gapless prefix, one event at a time.
      workflowId: text(),
      displayTitle: text(),
      status: text(),
      stepId: text(),
      startedAt: integer(),
      updatedAt: integer(), // occurredAt of the newest folded event
      endedAt: integer(),
      projection: json<RunProjection>().notNull(), // steps, attempts, usage, blockers
      retryOf: text(), // the run whose work it does again
    },
    (t) => [
      primaryKey({ columns: [t.projectId, t.runId] }),
      index("sync_runs_project").on(t.project, t.lastReceivedAt, t.runId),
      index("sync_runs_runtime").on(t.project, t.homeRuntimeId, t.lastReceivedAt, t.runId),
      index("sync_runs_status").on(t.project, t.status, t.lastReceivedAt, t.runId),
      index("sync_runs_held").on(t.project, t.lastReceivedAt, t.runId).where(sql`held > 0`),
      index("sync_runs_received").on(t.lastReceivedAt),
      index("sync_runs_retry").on(t.projectId, t.retryOf, t.lastReceivedAt).where(sql`retry_of is not null`),
      index("sync_runs_ended").on(t.project, t.endedAt, t.status).where(sql`ended_at is not null`),
      check("sync_runs_held", sql`held >= 0`),
    ],
  ),

  syncEvents: table(
    "sync_events",
    {
      projectId: text().notNull(),
      runId: text().notNull(),
      sequence: integer().notNull(),
      hash: text().notNull(),
      receivedAt: integer().notNull(),
      record: text().notNull(), // the canonical bytes the hash was taken of
    },
    (t) => [primaryKey({ columns: [t.projectId, t.runId, t.sequence] })],
  ),

  syncConflicts: table(
    "sync_conflicts",
    {
      id: text().primaryKey(),
      project: text().notNull(), // the hub project of the request that was refused
      projectId: text().notNull(),
      runId: text().notNull(),
      sequence: integer().notNull(),
      code: text().notNull(),
      runtimeId: text().notNull(),
      existingHash: text(),
      hash: text().notNull(),
      record: text().notNull(), // the refused payload, so that an operator can compare both
      firstAt: integer().notNull(),
      lastAt: integer().notNull(),
      count: integer().notNull(),
      acknowledgedAt: integer(),
      acknowledgedBy: text(),
      reason: text(),
    },
    (t) => [
      uniqueIndex("sync_conflicts_key").on(t.projectId, t.runId, t.sequence, t.hash, t.code, t.project),
      index("sync_conflicts_project").on(t.project, t.id),
      index("sync_conflicts_open").on(t.project, t.id).where(sql`acknowledged_at is null`),
      index("sync_conflicts_acknowledged").on(t.acknowledgedAt).where(sql`acknowledged_at is not null`),
    ],
  ),

  runtimePresence: table(
    "runtime_presence",
    {
      project: text().notNull(),
      runtimeId: text().notNull(),
      host: text(),
      version: text(),
      registeredAt: integer().notNull(),
      heartbeatAt: integer().notNull(),
      report: json<Record<string, unknown>>(), // what the Runtime says of itself: outbox counts, last error, projects, slots
    },
    (t) => [primaryKey({ columns: [t.project, t.runtimeId] }), index("runtime_presence_heartbeat").on(t.heartbeatAt)],
  ),

  runtimeCounters: table(
    "runtime_counters",
    {
      project: text().notNull(),
      runtimeId: text().notNull(),
      lastSeq: integer().notNull(),
    },
    (t) => [primaryKey({ columns: [t.project, t.runtimeId] })],
  ),

  runtimeCommands: table(
    "runtime_commands",
    {
      id: text().primaryKey(),
      project: text().notNull(),
      runtimeId: text().notNull(),
      seq: integer().notNull(),
      kind: text().notNull(),
      projectId: text(),
      runId: text(),
      payload: json<Record<string, unknown>>().notNull(),
      idempotencyKey: text(),
      actor: text().notNull(),
      state: text().$type<"sent" | "received" | "applied" | "refused" | "expired">().notNull(),
      result: json<Record<string, unknown>>(),
      createdAt: integer().notNull(),
      receivedAt: integer(),
      finishedAt: integer(),
      expiresAt: integer().notNull(),
    },
    (t) => [
      uniqueIndex("runtime_commands_seq").on(t.project, t.runtimeId, t.seq),
      uniqueIndex("runtime_commands_key").on(t.project, t.actor, t.idempotencyKey).where(sql`idempotency_key is not null`),
      index("runtime_commands_open").on(t.project, t.runtimeId, t.seq).where(sql`finished_at is null`),
      index("runtime_commands_due").on(t.expiresAt).where(sql`state = 'sent'`),
      index("runtime_commands_run").on(t.projectId, t.runId, t.seq),
      index("runtime_commands_finished").on(t.finishedAt).where(sql`finished_at is not null`),
      check("runtime_commands_state", sql`state in ('sent', 'received', 'applied', 'refused', 'expired')`),
      check("runtime_commands_finished", sql`(state in ('applied', 'refused', 'expired')) = (finished_at is not null)`),
    ],
  ),

  approvals: table(
    "approvals",
    {
      id: text().primaryKey(),
      project: text().notNull(),
      projectId: text().notNull(),
      runId: text().notNull(),
      runtimeId: text().notNull(),
      stepId: text().notNull(),
      attempt: integer().notNull(),
      title: text().notNull(),
      content: text().notNull(), // what exactly is approved, as the Runtime showed it (redacted)
      contentHash: text().notNull(),
      status: text().$type<"pending" | "approved" | "rejected" | "cancelled">().notNull(),
      requestedAt: integer().notNull(),
      decidedAt: integer(),
      decidedBy: text(),
      reason: text(),
      commandId: text(), // carries the decision to the Runtime; its state is the receipt
      updatedAt: integer().notNull(),
    },
    (t) => [
      index("approvals_project").on(t.project, t.requestedAt, t.id),
      index("approvals_status").on(t.project, t.status, t.requestedAt, t.id),
      index("approvals_run").on(t.projectId, t.runId, t.requestedAt),
      index("approvals_project_decided").on(t.project, t.decidedAt, t.id).where(sql`decided_at is not null`),
      index("approvals_decided").on(t.decidedAt).where(sql`decided_at is not null`),
      check("approvals_status", sql`status in ('pending', 'approved', 'rejected', 'cancelled')`),
    ],
  ),

  alerts: table(
    "alerts",
    {
      id: text().primaryKey(),
      project: text().notNull(),
      kind: text().notNull(),
      dedupeKey: text().notNull(),
      severity: text().$type<"info" | "warning" | "security">().notNull(),
      summary: text().notNull(),
      subject: text(), // where it points: an id of ours
      data: json<Record<string, unknown>>().notNull(),
      raisedAt: integer().notNull(),
      lastAt: integer().notNull(),
      count: integer().notNull(),
      acknowledgedAt: integer(),
      acknowledgedBy: text(),
      reason: text(),
    },
    (t) => [
      uniqueIndex("alerts_key").on(t.project, t.kind, t.dedupeKey),
      index("alerts_project").on(t.project, t.id),
      index("alerts_open").on(t.project, t.lastAt).where(sql`acknowledged_at is null`),
      index("alerts_acknowledged").on(t.acknowledgedAt).where(sql`acknowledged_at is not null`),
    ],
  ),

  // --- cost ------------------------------------------------------------------------------------------------------------------------------------
  // What runs used, summed by hour or by day (UTC) in the transaction of the events that report it. Amounts are millionths; what has no price has none.
  costSums: table(
    "cost_sums",
    {
      project: text().notNull(),
      dimension: text().$type<"hour" | "day" | "machine" | "agent" | "harness" | "model" | "run">().notNull(),
      at: integer().notNull(), // when the hour or the day begins
      name: text().notNull(), // of the machine, agent, …; empty for what is not named, and for all there is
      currency: text().notNull(), // empty for uses without a price
      amount: integer().notNull(),
      estimated: integer().notNull(), // the part of it that is an estimate
      inputTokens: integer().notNull(),
      outputTokens: integer().notNull(),
      cacheReadTokens: integer().notNull(),
      cacheWriteTokens: integer().notNull(),
      uses: integer().notNull(), // attempts that reported
      unknown: integer().notNull(), // those of them without a price
    },
    (t) => [
      primaryKey({ columns: [t.project, t.dimension, t.at, t.name, t.currency] }),
      index("cost_sums_dearest").on(t.at, t.amount).where(sql`dimension = 'run'`),
      index("cost_sums_project_dearest").on(t.project, t.at, t.amount).where(sql`dimension = 'run'`),
      check("cost_sums_dimension", sql`dimension in ('hour', 'day', 'machine', 'agent', 'harness', 'model', 'run')`),
    ],
  ),

  budgets: table(
    "budgets",
    {
      id: text().primaryKey(),
      project: text().notNull(), // empty: all projects together
      period: text().$type<"day" | "month">().notNull(),
      currency: text().notNull(),
      amount: integer().notNull(), // millionths
      level: text().$type<"within" | "near" | "over">().notNull(), // as last told
      levelSince: integer(), // when the period that the level is about began
      createdAt: integer().notNull(),
      updatedAt: integer().notNull(),
      updatedBy: text().notNull(),
    },
    (t) => [
      uniqueIndex("budgets_key").on(t.project, t.period, t.currency),
      check("budgets_period", sql`period in ('day', 'month')`),
      check("budgets_level", sql`level in ('within', 'near', 'over')`),
      check("budgets_amount", sql`amount > 0`),
    ],
  ),

  // --- event log ------------------------------------------------------------------------------------------------------------------------------
  eventCounters: table("event_counters", { project: text().primaryKey(), lastSeq: integer().notNull() }),

  events: table(
    "events",
    {
      project: text().notNull(),
      seq: integer().notNull(),
      at: integer().notNull(),
      topic: text().$type<Topic>().notNull(),
      type: text().notNull(),
      subjectId: text().notNull(),
      actor: text().notNull(), // an agent id, a token or session id, a Runtime id, or `hub`
      data: json<Record<string, unknown>>().notNull(),
    },
    (t) => [
      primaryKey({ columns: [t.project, t.seq] }),
      // The history of one thing. Messages are left out: theirs is in their row, and they are most of the log.
      index("events_subject").on(t.subjectId, t.seq).where(sql`topic <> 'messages'`),
      // What an agent did, for its page. Messages tell that themselves, and what Runtimes send is too much to index.
      index("events_opened").on(t.subjectId, t.seq).where(sql`type = 'opened'`), // who read a message's text
      index("events_deeds").on(t.actor, t.seq).where(sql`topic <> 'agents' and topic <> 'messages' and topic <> 'sync'`),
    ],
  ),

  // How much happened, by hour: counted from the log in the background, so that a chart of a day costs the same on a busy hub.
  activityHours: table(
    "activity_hours",
    {
      project: text().notNull(),
      topic: text().$type<Topic>().notNull(),
      type: text().notNull(),
      hour: integer().notNull(), // hours since 1970
      count: integer().notNull(),
    },
    (t) => [primaryKey({ columns: [t.project, t.topic, t.type, t.hour] }), index("activity_hours_hour").on(t.hour)],
  ),
  activityCursors: table("activity_cursors", { project: text().primaryKey(), seq: integer().notNull() }), // counted up to this event

  // What operators and admins did, kept longer than the event log.
  audit: table(
    "audit",
    {
      project: text().notNull(),
      seq: integer().notNull(), // that of the event
      at: integer().notNull(),
      actor: text().notNull(),
      role: text().notNull(),
      action: text().notNull(),
      subjectId: text().notNull(),
      reason: text(),
      origin: text(), // where the request came from: cli, dashboard, api
      data: json<Record<string, unknown>>().notNull(),
    },
    (t) => [primaryKey({ columns: [t.project, t.seq] }), index("audit_at").on(t.at)],
  ),

  // --- who may do what ------------------------------------------------------------------------------------------------------------------------
  tokens: table(
    "tokens",
    {
      id: text().primaryKey(),
      name: text().notNull(),
      scope: text().$type<"project" | "viewer" | "operator" | "admin">().notNull(),
      project: text(), // null = all projects (not for scope project)
      agentName: text(), // the one agent it speaks for; null = any of its project
      tokenHash: text().notNull(),
      prefix: text().notNull(), // first characters, so that people can tell tokens apart
      createdAt: integer().notNull(),
      createdBy: text().notNull(),
      lastUsedAt: integer(),
      expiresAt: integer(),
      revokedAt: integer(),
      revokedBy: text(),
    },
    (t) => [
      uniqueIndex("tokens_hash").on(t.tokenHash),
      index("tokens_project").on(t.project).where(sql`revoked_at is null`),
      check("tokens_scope", sql`scope in ('project', 'viewer', 'operator', 'admin')`),
      check("tokens_project", sql`scope <> 'project' or project is not null`),
      check("tokens_agent", sql`agent_name is null or scope = 'project'`),
    ],
  ),

  signinLinks: table("signin_links", {
    tokenHash: text().primaryKey(),
    role: text().$type<"viewer" | "operator" | "admin">().notNull(),
    project: text(),
    tokenId: text(), // the token that made the link, if one did: revoking it ends its sessions
    createdAt: integer().notNull(),
    expiresAt: integer().notNull(),
  }),

  sessions: table(
    "sessions",
    {
      id: text().primaryKey(),
      tokenHash: text().notNull(),
      csrfHash: text().notNull(),
      role: text().$type<"viewer" | "operator" | "admin">().notNull(),
      project: text(),
      tokenId: text(),
      createdAt: integer().notNull(),
      lastSeenAt: integer().notNull(),
      expiresAt: integer().notNull(),
      endedAt: integer(),
    },
    (t) => [uniqueIndex("sessions_hash").on(t.tokenHash), index("sessions_expiry").on(t.expiresAt)],
  ),

  savedViews: table(
    "saved_views",
    {
      id: text().primaryKey(),
      owner: text().notNull(), // who may see it: credential, role and project of the session that saved it
      tokenId: text(), // of that session: what a revoked token saved goes with it
      place: text().notNull(),
      query: text().notNull(), // of the list's address, without "?" and without a place in the list
      name: text().notNull(),
      nameFolded: text().notNull(),
      createdAt: integer().notNull(),
    },
    (t) => [uniqueIndex("saved_views_name").on(t.owner, t.nameFolded), index("saved_views_token").on(t.tokenId).where(sql`token_id is not null`)],
  ),

  // --- hub workflows, journal, context --------------------------------------------------------------------------------------------------------
  workflowRuns: table(
    "workflow_runs",
    {
      id: text().primaryKey(),
      project: text().notNull(),
      definitionId: text().notNull(),
      deliveryId: text().notNull(),
      payloadHash: text().notNull(),
      source: text().notNull(),
      status: text().$type<"running" | "waiting" | "completed" | "failed">().notNull(),
      targetAgentId: text().notNull(),
      targetAgentName: text().notNull(),
      messageId: text().notNull(), // the newest prompt
      currentStage: text(),
      waitingUntil: integer(),
      createdAt: integer().notNull(),
      updatedAt: integer().notNull(),
      completedAt: integer(),
      record: json<Record<string, unknown>>().notNull(), // the run as the wire contract shows it
    },
    (t) => [
      uniqueIndex("workflow_runs_delivery").on(t.definitionId, t.deliveryId),
      index("workflow_runs_payload").on(t.definitionId, t.payloadHash),
      index("workflow_runs_project").on(t.project, t.updatedAt, t.id),
      index("workflow_runs_status").on(t.project, t.status, t.updatedAt, t.id),
      index("workflow_runs_coordinator").on(t.targetAgentId, t.updatedAt),
      index("workflow_runs_message").on(t.messageId),
      index("workflow_runs_due").on(t.waitingUntil).where(sql`status = 'waiting'`),
      index("workflow_runs_ended").on(t.completedAt).where(sql`completed_at is not null`),
      check("workflow_runs_status", sql`status in ('running', 'waiting', 'completed', 'failed')`),
    ],
  ),

  workflowJournal: table(
    "workflow_journal",
    {
      id: text().primaryKey(),
      project: text().notNull(),
      runId: text().notNull(),
      agentId: text().notNull(),
      category: text().notNull(),
      area: text().notNull(),
      severity: text().$type<"info" | "warning" | "error">().notNull(),
      summary: text().notNull(),
      stageId: text(),
      createdAt: integer().notNull(),
      promotedTo: text().$type<"approved" | "rejected" | "quarantined">(),
      hash: text().notNull(),
      revision: integer().notNull(), // from context_counters: what changed since a pool was last brought up to date
      record: json<Record<string, unknown>>().notNull(),
    },
    (t) => [
      index("workflow_journal_revision").on(t.project, t.revision),
      index("workflow_journal_run").on(t.runId, t.id),
      index("workflow_journal_project").on(t.project, t.id),
      index("workflow_journal_category").on(t.project, t.category, t.id),
    ],
  ),

  contextItems: table(
    "context_items",
    {
      id: text().primaryKey(),
      project: text().notNull(),
      kind: text().$type<"evidence" | "state" | "episode" | "knowledge" | "skill">().notNull(),
      stateKey: text(),
      status: text().$type<"current" | "superseded" | "proposed" | "rejected">(),
      summary: text().notNull(),
      authority: text().notNull(),
      confidence: text().notNull(),
      sourceType: text().notNull(),
      observedAt: integer(),
      validFrom: integer(),
      validUntil: integer(),
      createdAt: integer().notNull(),
      revision: integer().notNull(),
      record: json<Record<string, unknown>>().notNull(),
    },
    (t) => [
      index("context_items_revision").on(t.project, t.revision),
      index("context_items_project").on(t.project, t.id),
      index("context_items_state").on(t.project, t.stateKey, t.validFrom).where(sql`state_key is not null`),
      index("context_items_current").on(t.project, t.stateKey, t.id).where(sql`kind = 'state' and status = 'current'`),
      index("context_items_proposed").on(t.project, t.id).where(sql`kind = 'state' and status = 'proposed'`),
      index("context_items_ended").on(t.validUntil).where(sql`valid_until is not null`),
    ],
  ),

  // Revisions of context items and journal entries, and how often something was deleted (then pools start over).
  contextCounters: table("context_counters", { project: text().primaryKey(), lastRevision: integer().notNull(), purges: integer().notNull() }),

  // --- incoming webhooks ----------------------------------------------------------------------------------------------------------------------
  webhookArrivals: table(
    "webhook_arrivals",
    {
      id: text().primaryKey(),
      fold: text().notNull(), // its id; for what nobody signed: definition, reason and hour, so that it is one row
      project: text().notNull(),
      definitionId: text().notNull(),
      kind: text().$type<"start" | "signal">().notNull(),
      outcome: text().$type<"accepted" | "duplicate" | "ignored" | "refused">().notNull(),
      verified: integer().notNull(), // 0: everything else in the row is only claimed
      code: text(),
      reason: text(),
      deliveryId: text(),
      event: text(),
      sender: text(), // the address it came from, as the hub saw it
      program: text(), // what the sender calls itself
      runId: text(),
      signalKey: text(),
      count: integer().notNull(),
      at: integer().notNull(), // of the newest
    },
    (t) => [
      uniqueIndex("webhook_arrivals_fold").on(t.fold),
      index("webhook_arrivals_project").on(t.project, t.at, t.id),
      index("webhook_arrivals_of_outcome").on(t.project, t.outcome, t.at, t.id),
      index("webhook_arrivals_definition").on(t.definitionId, t.at, t.id),
      index("webhook_arrivals_at").on(t.at),
      check("webhook_arrivals_kind", sql`kind in ('start', 'signal')`),
      check("webhook_arrivals_outcome", sql`outcome in ('accepted', 'duplicate', 'ignored', 'refused')`),
      check("webhook_arrivals_verified", sql`verified in (0, 1)`),
      check("webhook_arrivals_count", sql`count >= 1`),
    ],
  ),

  // --- outgoing webhooks ----------------------------------------------------------------------------------------------------------------------
  webhooksOut: table(
    "webhooks_out",
    {
      id: text().primaryKey(),
      project: text().notNull(),
      url: text().notNull(),
      eventTypes: json<string[]>().notNull(),
      secrets: json<{ value: string; createdAt: number; retiresAt?: number; key?: string }[]>().notNull(), // must be readable to sign; files are 0600
      allowBodies: integer().notNull(),
      allowPrivate: integer().notNull(), // this exact host and port may be on this machine or network
      lastSeq: integer().notNull(), // the event log is delivered up to here
      createdAt: integer().notNull(),
      createdBy: text().notNull(),
      disabledAt: integer(),
      disabledReason: text(),
    },
    (t) => [index("webhooks_out_project").on(t.project, t.id)],
  ),

  webhookDeliveries: table(
    "webhook_deliveries",
    {
      id: text().primaryKey(),
      webhookId: text().notNull(),
      project: text().notNull(),
      eventSeq: integer().notNull(),
      eventType: text().notNull(),
      state: text().$type<"pending" | "delivered" | "failed">().notNull(),
      attempts: json<{ at: number; status?: number; error?: string; ms: number }[]>().notNull(),
      body: text().notNull(),
      nextAt: integer(),
      createdAt: integer().notNull(),
      finishedAt: integer(),
    },
    (t) => [
      index("webhook_deliveries_webhook").on(t.webhookId, t.id),
      index("webhook_deliveries_due").on(t.nextAt).where(sql`state = 'pending'`),
      index("webhook_deliveries_finished").on(t.finishedAt).where(sql`finished_at is not null`),
    ],
  ),

  // --- search ---------------------------------------------------------------------------------------------------------------------------------
  // What is searchable, made from the event log. A full-text index over it is kept by the database itself (migrations/0002_search.sql).
  searchDocuments: table(
    "search_documents",
    {
      docId: integer().primaryKey(), // milliseconds × 4096 + a part of the event's number: newer things have larger ones
      kind: text().notNull(),
      subjectId: text().notNull(),
      project: text().notNull(),
      at: integer().notNull(),
      sender: text(),
      recipient: text(),
      status: text(),
      title: text().notNull(),
      body: text().notNull(),
      scope: text().notNull(), // project, kind, sender and recipient as words of the index
      through: integer().notNull(), // runs: the last sequence whose texts are in
    },
    (t) => [uniqueIndex("search_documents_subject").on(t.kind, t.subjectId)],
  ),

  searchCursors: table("search_cursors", { project: text().primaryKey(), seq: integer().notNull() }),

  // --- the store itself -----------------------------------------------------------------------------------------------------------------------
  // Backups and checks that were started from a page; at most one runs.
  upkeepJobs: table(
    "upkeep_jobs",
    {
      id: text().primaryKey(),
      kind: text().$type<"backup" | "verify">().notNull(),
      state: text().$type<"running" | "done" | "failed">().notNull(),
      step: text().notNull(),
      done: integer().notNull(),
      total: integer().notNull(), // 0: nobody can tell
      startedAt: integer().notNull(),
      startedBy: text().notNull(),
      updatedAt: integer().notNull(),
      finishedAt: integer(),
      outcome: json<UpkeepOutcome>(),
    },
    (t) => [
      uniqueIndex("upkeep_jobs_running").on(t.state).where(sql`state = 'running'`),
      check("upkeep_jobs_kind", sql`kind in ('backup', 'verify')`),
      check("upkeep_jobs_state", sql`state in ('running', 'done', 'failed')`),
      check("upkeep_jobs_finished", sql`(state = 'running') = (finished_at is null)`),
    ],
  ),

  meta: table("meta", { key: text().primaryKey(), value: text().notNull() }),
});
