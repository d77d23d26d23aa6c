-- The hub's tables. Forward only: once released this file never changes.

create table agents (
  id text primary key not null,
  project text not null,
  name text not null,
  name_folded text not null,
  purpose text not null,
  model text,
  host text,
  key_hash text not null,
  online integer not null,
  registered_at integer not null,
  connected_at integer not null,
  last_seen_at integer not null,
  retired_at integer,
  constraint agents_online_flag check (online in (0, 1))
) strict;
create unique index agents_name on agents (project, name_folded);
create index agents_project_online on agents (project, name_folded) where online = 1;
create index agents_online on agents (last_seen_at) where online = 1;

create table messages (
  id text primary key not null,
  project text not null,
  sender_id text not null,
  sender_name text not null,
  recipient_id text not null,
  recipient_name text not null,
  recipient_seq integer not null,
  status text not null,
  is_open integer not null,
  delivery text not null,
  hops integer not null,
  max_hops integer not null,
  content text not null,
  content_hash text not null,
  idempotency_key text,
  correlation_id text,
  reply_to text,
  workflow_run_id text,
  workflow_context text,
  created_at integer not null,
  expires_at integer not null,
  pushed_at integer,
  delivered_at integer,
  turn_started_at integer,
  replied_at integer,
  cancelled_at integer,
  ended_at integer,
  reply_content text,
  reply_hash text,
  error text,
  dismissed_at integer,
  constraint messages_status check (status in ('queued', 'delivered', 'replied', 'cancelled', 'expired')),
  constraint messages_replied check ((status = 'replied') = (replied_at is not null)),
  constraint messages_ended_state check ((status in ('queued', 'delivered')) = (ended_at is null)),
  constraint messages_is_open check (is_open in (0, 1) and (is_open = 1) = (ended_at is null))
) strict;
create unique index messages_box on messages (recipient_id, is_open, recipient_seq);
create unique index messages_idempotency on messages (sender_id, idempotency_key) where idempotency_key is not null;
create index messages_project on messages (project, is_open, id);
create index messages_sent on messages (sender_id, id);
create index messages_turns on messages (project, recipient_id) where status = 'delivered' and turn_started_at is not null;
create index messages_unanswered on messages (project, status, id) where status in ('cancelled', 'expired');
create index messages_dead on messages (project, id) where status = 'expired' and dismissed_at is null;
create index messages_due on messages (expires_at) where is_open = 1;
create index messages_correlation on messages (project, correlation_id, id) where correlation_id is not null;
create index messages_ended on messages (ended_at) where ended_at is not null;

create table recipient_counters (
  recipient_id text primary key not null,
  last_seq integer not null
) strict, without rowid;

create table leases (
  resource text primary key not null,
  project text not null,
  name text not null,
  fence integer not null,
  holder_id text,
  holder_name text,
  ttl_ms integer not null,
  acquired_at integer not null,
  renewed_at integer not null,
  expires_at integer not null,
  freed_at integer,
  last_waiter integer not null,
  constraint leases_fence check (fence >= 1),
  constraint leases_free check (holder_id is not null or freed_at is not null)
) strict;
create index leases_project on leases (project, name);
create index leases_held on leases (expires_at) where freed_at is null;
create index leases_project_held on leases (project, name) where freed_at is null;
create index leases_holder on leases (holder_id, name) where freed_at is null;
create index leases_project_freed on leases (project, freed_at, name) where freed_at is not null;
create index leases_lapsed on leases (freed_at) where holder_id is not null and freed_at is not null;

create table lease_waiters (
  resource text not null,
  ticket integer not null,
  agent_id text not null,
  agent_name text not null,
  ttl_ms integer not null,
  asked_at integer not null,
  deadline_at integer not null,
  primary key (resource, ticket)
) strict, without rowid;
create index lease_waiters_deadline on lease_waiters (deadline_at);

create table sync_projects (
  project_id text primary key not null,
  project text not null,
  claimed_at integer not null
) strict;

create table sync_runs (
  project_id text not null,
  run_id text not null,
  project text not null,
  home_runtime_id text not null,
  cursor integer not null,
  held integer not null,
  held_bytes integer not null,
  first_received_at integer not null,
  last_received_at integer not null,
  workflow_id text,
  display_title text,
  status text,
  step_id text,
  started_at integer,
  updated_at integer,
  ended_at integer,
  projection text not null,
  primary key (project_id, run_id),
  constraint sync_runs_held check (held >= 0)
) strict;
create index sync_runs_project on sync_runs (project, last_received_at, run_id);
create index sync_runs_runtime on sync_runs (project, home_runtime_id, last_received_at, run_id);
create index sync_runs_status on sync_runs (project, status, last_received_at, run_id);
create index sync_runs_held on sync_runs (project, last_received_at, run_id) where held > 0;
create index sync_runs_received on sync_runs (last_received_at);
create index sync_runs_ended on sync_runs (project, ended_at, status) where ended_at is not null;

create table sync_events (
  project_id text not null,
  run_id text not null,
  sequence integer not null,
  hash text not null,
  received_at integer not null,
  record text not null,
  primary key (project_id, run_id, sequence)
) strict;

create table sync_conflicts (
  id text primary key not null,
  project text not null,
  project_id text not null,
  run_id text not null,
  sequence integer not null,
  code text not null,
  runtime_id text not null,
  existing_hash text,
  hash text not null,
  record text not null,
  first_at integer not null,
  last_at integer not null,
  count integer not null,
  acknowledged_at integer,
  acknowledged_by text,
  reason text
) strict;
create unique index sync_conflicts_key on sync_conflicts (project_id, run_id, sequence, hash, code, project);
create index sync_conflicts_project on sync_conflicts (project, id);
create index sync_conflicts_open on sync_conflicts (project, id) where acknowledged_at is null;
create index sync_conflicts_acknowledged on sync_conflicts (acknowledged_at) where acknowledged_at is not null;

create table runtime_presence (
  project text not null,
  runtime_id text not null,
  host text,
  version text,
  registered_at integer not null,
  heartbeat_at integer not null,
  report text,
  primary key (project, runtime_id)
) strict;
create index runtime_presence_heartbeat on runtime_presence (heartbeat_at);

create table runtime_counters (
  project text not null,
  runtime_id text not null,
  last_seq integer not null,
  primary key (project, runtime_id)
) strict, without rowid;

create table runtime_commands (
  id text primary key not null,
  project text not null,
  runtime_id text not null,
  seq integer not null,
  kind text not null,
  project_id text,
  run_id text,
  payload text not null,
  idempotency_key text,
  actor text not null,
  state text not null,
  result text,
  created_at integer not null,
  received_at integer,
  finished_at integer,
  expires_at integer not null,
  constraint runtime_commands_state check (state in ('sent', 'received', 'applied', 'refused', 'expired')),
  constraint runtime_commands_finished check ((state in ('applied', 'refused', 'expired')) = (finished_at is not null))
) strict;
create unique index runtime_commands_seq on runtime_commands (project, runtime_id, seq);
create unique index runtime_commands_key on runtime_commands (project, actor, idempotency_key) where idempotency_key is not null;
create index runtime_commands_open on runtime_commands (project, runtime_id, seq) where finished_at is null;
create index runtime_commands_due on runtime_commands (expires_at) where state = 'sent';
create index runtime_commands_run on runtime_commands (project_id, run_id, seq);
create index runtime_commands_finished on runtime_commands (finished_at) where finished_at is not null;

create table approvals (
  id text primary key not null,
  project text not null,
  project_id text not null,
  run_id text not null,
  runtime_id text not null,
  step_id text not null,
  attempt integer not null,
  title text not null,
  content text not null,
  content_hash text not null,
  status text not null,
  requested_at integer not null,
  decided_at integer,
  decided_by text,
  reason text,
  command_id text,
  updated_at integer not null,
  constraint approvals_status check (status in ('pending', 'approved', 'rejected', 'cancelled'))
) strict;
create index approvals_project on approvals (project, requested_at, id);
create index approvals_status on approvals (project, status, requested_at, id);
create index approvals_run on approvals (project_id, run_id, requested_at);
create index approvals_project_decided on approvals (project, decided_at, id) where decided_at is not null;
create index approvals_decided on approvals (decided_at) where decided_at is not null;

create table alerts (
  id text primary key not null,
  project text not null,
  kind text not null,
  dedupe_key text not null,
  severity text not null,
  summary text not null,
  subject text,
  data text not null,
  raised_at integer not null,
  last_at integer not null,
  count integer not null,
  acknowledged_at integer,
  acknowledged_by text,
  reason text
) strict;
create unique index alerts_key on alerts (project, kind, dedupe_key);
create index alerts_project on alerts (project, id);
create index alerts_open on alerts (project, last_at) where acknowledged_at is null;
create index alerts_acknowledged on alerts (acknowledged_at) where acknowledged_at is not null;

create table event_counters (
  project text primary key not null,
  last_seq integer not null
) strict, without rowid;

create table events (
  project text not null,
  seq integer not null,
  at integer not null,
  topic text not null,
  type text not null,
  subject_id text not null,
  actor text not null,
  data text not null,
  primary key (project, seq)
) strict, without rowid;
create index events_subject on events (subject_id, seq) where topic <> 'messages';
create index events_opened on events (subject_id, seq) where type = 'opened';
create index events_deeds on events (actor, seq) where topic <> 'agents' and topic <> 'messages' and topic <> 'sync';

create table activity_hours (
  project text not null,
  topic text not null,
  type text not null,
  hour integer not null,
  count integer not null,
  primary key (project, topic, type, hour)
) strict, without rowid;
create index activity_hours_hour on activity_hours (hour);

create table activity_cursors (
  project text primary key not null,
  seq integer not null
) strict, without rowid;

create table audit (
  project text not null,
  seq integer not null,
  at integer not null,
  actor text not null,
  role text not null,
  action text not null,
  subject_id text not null,
  reason text,
  origin text,
  data text not null,
  primary key (project, seq)
) strict, without rowid;
create index audit_at on audit (at);

create table tokens (
  id text primary key not null,
  name text not null,
  scope text not null,
  project text,
  agent_name text,
  token_hash text not null,
  prefix text not null,
  created_at integer not null,
  created_by text not null,
  last_used_at integer,
  expires_at integer,
  revoked_at integer,
  revoked_by text,
  constraint tokens_scope check (scope in ('project', 'viewer', 'operator', 'admin')),
  constraint tokens_project check (scope <> 'project' or project is not null),
  constraint tokens_agent check (agent_name is null or scope = 'project')
) strict;
create unique index tokens_hash on tokens (token_hash);
create index tokens_project on tokens (project) where revoked_at is null;

create table signin_links (
  token_hash text primary key not null,
  role text not null,
  project text,
  token_id text,
  created_at integer not null,
  expires_at integer not null
) strict;

create table sessions (
  id text primary key not null,
  token_hash text not null,
  csrf_hash text not null,
  role text not null,
  project text,
  token_id text,
  created_at integer not null,
  last_seen_at integer not null,
  expires_at integer not null,
  ended_at integer
) strict;
create unique index sessions_hash on sessions (token_hash);
create index sessions_expiry on sessions (expires_at);

create table workflow_runs (
  id text primary key not null,
  project text not null,
  definition_id text not null,
  delivery_id text not null,
  payload_hash text not null,
  source text not null,
  status text not null,
  target_agent_id text not null,
  target_agent_name text not null,
  message_id text not null,
  current_stage text,
  waiting_until integer,
  created_at integer not null,
  updated_at integer not null,
  completed_at integer,
  record text not null,
  constraint workflow_runs_status check (status in ('running', 'waiting', 'completed', 'failed'))
) strict;
create unique index workflow_runs_delivery on workflow_runs (definition_id, delivery_id);
create index workflow_runs_payload on workflow_runs (definition_id, payload_hash);
create index workflow_runs_project on workflow_runs (project, updated_at, id);
create index workflow_runs_status on workflow_runs (project, status, updated_at, id);
create index workflow_runs_coordinator on workflow_runs (target_agent_id, updated_at);
create index workflow_runs_message on workflow_runs (message_id);
create index workflow_runs_due on workflow_runs (waiting_until) where status = 'waiting';
create index workflow_runs_ended on workflow_runs (completed_at) where completed_at is not null;

create table workflow_journal (
  id text primary key not null,
  project text not null,
  run_id text not null,
  agent_id text not null,
  category text not null,
  area text not null,
  severity text not null,
  summary text not null,
  stage_id text,
  created_at integer not null,
  promoted_to text,
  hash text not null,
  revision integer not null,
  record text not null
) strict;
create index workflow_journal_revision on workflow_journal (project, revision);
create index workflow_journal_run on workflow_journal (run_id, id);
create index workflow_journal_project on workflow_journal (project, id);
create index workflow_journal_category on workflow_journal (project, category, id);

create table context_items (
  id text primary key not null,
  project text not null,
  kind text not null,
  state_key text,
  status text,
  summary text not null,
  authority text not null,
  confidence text not null,
  source_type text not null,
  observed_at integer,
  valid_from integer,
  valid_until integer,
  created_at integer not null,
  revision integer not null,
  record text not null
) strict;
create index context_items_revision on context_items (project, revision);
create index context_items_project on context_items (project, id);
create index context_items_state on context_items (project, state_key, valid_from) where state_key is not null;
create index context_items_ended on context_items (valid_until) where valid_until is not null;

create table context_counters (
  project text primary key not null,
  last_revision integer not null,
  purges integer not null
) strict, without rowid;

create table webhooks_out (
  id text primary key not null,
  project text not null,
  url text not null,
  event_types text not null,
  secrets text not null,
  allow_bodies integer not null,
  allow_private integer not null,
  last_seq integer not null,
  created_at integer not null,
  created_by text not null,
  disabled_at integer,
  disabled_reason text
) strict;
create index webhooks_out_project on webhooks_out (project, id);

create table webhook_deliveries (
  id text primary key not null,
  webhook_id text not null,
  project text not null,
  event_seq integer not null,
  event_type text not null,
  state text not null,
  attempts text not null,
  body text not null,
  next_at integer,
  created_at integer not null,
  finished_at integer
) strict;
create index webhook_deliveries_webhook on webhook_deliveries (webhook_id, id);
create index webhook_deliveries_due on webhook_deliveries (next_at) where state = 'pending';
create index webhook_deliveries_finished on webhook_deliveries (finished_at) where finished_at is not null;

create table meta (
  key text primary key not null,
  value text not null
) strict, without rowid;
