// Every limit of the product, once. ARCHITECTURE.md holds the same table and a test compares them.

/** Bytes of a request body that are read, at most. */
export const BODY_BYTES_MAX = 262_144;
/** Nesting of a JSON body. */
export const JSON_DEPTH_MAX = 32;
/** Members and items of a JSON body in all. */
export const JSON_MEMBERS_MAX = 10_000;
/** Characters of a message or a reply. */
export const MESSAGE_CONTENT_MAX = 32_000;
/** Characters of the prompt that a run is started with. */
export const PROMPT_MAX = 32_000;
/** How long a message waits for its reply unless its sender says otherwise. */
export const MESSAGE_TTL_MS_DEFAULT = 86_400_000;
export const MESSAGE_TTL_MS_MIN = 1_000;
export const MESSAGE_TTL_MS_MAX = 604_800_000;
/** How long ended messages are kept by default. */
export const MESSAGE_RETENTION_MS_DEFAULT = 604_800_000;
export const LEASE_TTL_MS_DEFAULT = 300_000;
export const LEASE_TTL_MS_MIN = 5_000;
export const LEASE_TTL_MS_MAX = 600_000;
/** How long an acquire may wait in line. */
export const LEASE_WAIT_MS_MAX = 30_000;
/** Agents waiting for one resource. */
export const LEASE_WAITERS_MAX = 100;
/** Paths that may be reserved in a project at a time: each new pattern is compared with all of them. */
export const RESERVATIONS_MAX = 200;
/** How long a free lease's history of holders is kept; its fence is kept for ever. */
export const LEASE_RETENTION_MS = 604_800_000;
/** How long a get may wait for the reply. */
export const MESSAGE_WAIT_MS_MAX = 60_000;
/** How long a Runtime's command poll may wait. */
export const COMMAND_WAIT_MS_MAX = 30_000;
/** Entries a filtered list looks at for one page; a rare filter gives short pages, not slow ones. */
export const LIST_SCAN_ROWS_MAX = 1_000;
/** Events of one sync request. */
export const SYNC_BATCH_MAX = 100;
/** Events and bytes of a run that may wait behind a gap in its sequence. */
export const SYNC_HELD_EVENTS_MAX = 10_000;
export const SYNC_HELD_BYTES_MAX = 16_777_216;
/** Bytes of what the hub keeps folded per run, as JSON. */
export const RUN_PROJECTION_BYTES_MAX = 65_536;
/** Bytes of events in one page. */
export const EVENTS_PAGE_BYTES_MAX = 1_048_576;
/** How long a command waits for its Runtime to say that it has it. */
export const COMMAND_TTL_MS = 7 * 86_400_000;
/** Bytes of a command's payload and of what a Runtime tells of its result or itself, as JSON. */
export const COMMAND_PAYLOAD_BYTES_MAX = 65_536;
export const COMMAND_DETAIL_BYTES_MAX = 8_192;
export const RUNTIME_REPORT_BYTES_MAX = 65_536;
/** Without a sign of life for this long an agent or Runtime is stale. */
export const STALE_MS_DEFAULT = 30_000;
/** Signs of life are kept in memory and written this often. */
export const PRESENCE_FLUSH_MS = 5_000;
/** Requests a bucket may make per window. */
export const RATE_LIMIT_MAX_DEFAULT = 600;
export const RATE_LIMIT_WINDOW_MS_DEFAULT = 60_000;
/** Failed authentications a minute per claimed identity before it is refused with 429. */
export const AUTH_FAILURES_PER_MINUTE_MAX = 20;
/** Write calls that may wait for the lane. */
export const WRITE_QUEUE_MAX = 10_000;
/** Calls of one SQLite transaction, and how long it may collect them. */
export const WRITE_BATCH_MAX = 256;
export const WRITE_BATCH_MS_MAX = 8;
/** Calls of one PostgreSQL transaction: it keeps 64 subtransactions at hand. */
export const WRITE_BATCH_POSTGRES_MAX = 60;
/** Bytes that may wait for one SSE client before it is dropped; it resumes by its cursor. */
export const SSE_BACKLOG_BYTES_MAX = 1_048_576;
/** Silence on a stream is broken by a comment this often. */
export const SSE_HEARTBEAT_MS = 10_000;
/** Streams of one agent or token, and of one dashboard session. */
export const STREAMS_PER_TOKEN_MAX = 20;
export const STREAMS_PER_SESSION_MAX = 6;
/** Events a returning stream may be behind; beyond it the stream gets `reset`. */
export const RESUME_EVENTS_MAX = 100_000;
/** How long the event log and audit entries are kept. */
export const EVENT_RETENTION_MS = 30 * 86_400_000;
export const AUDIT_RETENTION_MS = 365 * 86_400_000;
/** How long ended hub workflow runs and ended context items are kept. */
export const RUN_RETENTION_MS = 7 * 86_400_000;
/** How long decided approvals, acknowledged alerts and conflicts, and finished Runtime commands are kept. */
export const DECIDED_RETENTION_MS = 30 * 86_400_000;
/** Incoming deliveries that wait to be noted; beyond them they are only counted by hour and reason. */
export const ARRIVALS_WAITING_MAX = 200;
/** How long finished webhook deliveries, and the log of incoming ones, are kept. */
export const DELIVERY_RETENTION_MS = 7 * 86_400_000;
/** How long a synced run is kept after it ended, and one that just fell silent. */
export const SYNC_RETENTION_MS = 30 * 86_400_000;
export const SYNC_SILENT_RETENTION_MS = 90 * 86_400_000;
/** How long a Runtime that does not report any more is remembered. */
export const RUNTIME_RETENTION_MS = 90 * 86_400_000;
/** How long sums of cost are kept. */
export const COST_RETENTION_MS = 400 * 86_400_000;
/** Names of agents, models, programs or machines that one project's sums tell apart on one day; what comes later is summed as "others". */
export const COST_NAMES_MAX = 200;
/** What one report of usage may add to the sums: tokens of a kind, and millionths of a currency's unit. */
export const COST_TOKENS_MAX = 1_000_000_000_000;
export const COST_AMOUNT_MAX = 1_000_000_000_000;
/** Budgets of a hub. */
export const BUDGETS_MAX = 100;
/** How often budgets are compared with what was spent. */
export const BUDGET_INTERVAL_MS = 5_000;
/** How often a backup or a check says how far it is, and for how long it may say nothing before it counts as ended. */
export const UPKEEP_TELL_MS = 1_000;
export const UPKEEP_SILENT_MS = 60_000;
/** Ended backups and checks that are remembered. */
export const UPKEEP_KEPT_MAX = 50;
/** Rows of a kind that a forecast of retention counts. */
export const FORECAST_ROWS_MAX = 1_000;
/** How often retention looks for what is old. */
export const RETENTION_INTERVAL_MS = 60_000;
/** Steps of one kind of row in one round of retention: the next round goes on. */
export const RETENTION_STEPS_MAX = 40;
/** How often events are counted for the charts. */
export const ACTIVITY_INTERVAL_MS = 5_000;
/** How often the hub looks for what is due. */
export const SWEEP_INTERVAL_MS = 1_000;
/** Write-ahead log size that raises an alert. */
export const WAL_BYTES_MAX = 67_108_864;
/** Rows of an API page by default and at most, and of a dashboard page. */
export const PAGE_ROWS_DEFAULT = 50;
export const PAGE_ROWS_MAX = 200;
export const VIEW_ROWS_MAX = 50;
/** Messages or runs that one confirmed act on everything that fits a filter takes. */
export const BULK_ROWS_MAX = 500;
/** Characters of the reason that a person gives for an act. */
export const REASON_MAX = 1_000;
/** Lists that one person may keep under a name, and characters of the name and of the filters. */
export const SAVED_VIEWS_MAX = 20;
export const SAVED_VIEW_NAME_MAX = 60;
export const SAVED_VIEW_QUERY_MAX = 1_000;
/** Counts are exact up to here and shown as "1,000+" beyond. */
export const COUNT_EXACT_MAX = 1_000;
/** Rows a retention step deletes in one write. */
export const RETENTION_BATCH_MAX = 500;
/** A sign-in link works once and this long. */
export const SIGNIN_LINK_MS = 60_000;
/** A dashboard session ends after this much silence, and at this age. */
export const SESSION_IDLE_MS = 12 * 3_600_000;
export const SESSION_AGE_MS = 7 * 86_400_000;
