-- The event store of one project on one machine. Forward only: once released this file never changes.

create table meta (
  key text primary key not null,
  value text not null
) strict, without rowid;

-- Who may write: the supervisor that holds this generation. Every transaction reads it before it writes.
create table fence (
  id integer primary key not null check (id = 1),
  generation integer not null,
  claimed_at integer not null
) strict;

create table runs (
  run_id text primary key not null,
  arrival integer not null unique,
  project_id text not null,
  home_runtime_id text not null,
  workflow_id text not null,
  display_title text,
  prompt_hash text,
  source text not null,
  created_by text not null,
  config_revision text not null,
  memory_revision text not null,
  executor_policy_revision text not null,
  tool_policy_revision text not null,
  sync_policy_revision text not null,
  created_at integer not null,
  detail text not null
) strict;

create table events (
  run_id text not null references runs (run_id),
  sequence integer not null,
  event_id text not null,
  event_type text not null,
  occurred_at integer not null,
  recorded_at integer not null,
  monotonic_ns integer not null,
  payload text not null,
  hash text not null,
  primary key (run_id, sequence),
  constraint events_sequence check (sequence >= 1)
) strict, without rowid;
create unique index events_id on events (event_id);
create trigger events_never_change before update on events begin select raise(abort, 'events are never changed'); end;
create trigger events_never_go before delete on events begin select raise(abort, 'events are never deleted'); end;

create table run_plans (
  run_id text primary key not null references runs (run_id),
  plan_hash text not null,
  plan text not null,
  compiled_at integer not null
) strict;

-- A projection: may be dropped and rebuilt from events at any time.
create table run_state (
  run_id text primary key not null,
  status text not null,
  step_id text,
  last_sequence integer not null,
  updated_at integer not null,
  ended_at integer,
  state text not null
) strict;
create index run_state_open on run_state (updated_at) where ended_at is null;
create index run_state_status on run_state (status, updated_at);

create table commands (
  command_id text primary key not null,
  kind text not null,
  request_hash text not null,
  run_id text,
  source text not null,
  actor text not null,
  state text not null,
  result text not null,
  reason text,
  hub text,
  hub_seq integer,
  recorded_at integer not null,
  reported_at integer,
  constraint commands_state check (state in ('applied', 'refused'))
) strict;
create index commands_unreported on commands (hub, hub_seq) where hub is not null and reported_at is null;
create index commands_run on commands (run_id, recorded_at);

create table command_cursors (
  hub text primary key not null,
  seq integer not null
) strict, without rowid;

create table attempt_capabilities (
  attempt_id text primary key not null,
  run_id text not null references runs (run_id),
  step_id text not null,
  step_attempt integer not null,
  assignment_id text not null,
  state text not null,
  token_hash text,
  pid integer,
  pid_started text,
  marker text,
  workspace text,
  record text not null,
  created_at integer not null,
  updated_at integer not null,
  ended_at integer
) strict;
create index attempt_capabilities_run on attempt_capabilities (run_id, created_at);
create index attempt_capabilities_open on attempt_capabilities (run_id) where ended_at is null;

create table gate_attempts (
  gate_attempt_id text primary key not null,
  run_id text not null references runs (run_id),
  step_id text not null,
  step_attempt integer not null,
  gate_id text not null,
  state text not null,
  pid integer,
  pid_started text,
  record text not null,
  created_at integer not null,
  updated_at integer not null,
  ended_at integer
) strict;
create index gate_attempts_run on gate_attempts (run_id, created_at);
create index gate_attempts_open on gate_attempts (run_id) where ended_at is null;

create table gate_observations (
  gate_attempt_id text not null references gate_attempts (gate_attempt_id),
  ordinal integer not null,
  kind text not null,
  record text not null,
  observed_at integer not null,
  primary key (gate_attempt_id, ordinal)
) strict, without rowid;

create table gate_evidence (
  evidence_id text primary key not null,
  run_id text not null references runs (run_id),
  step_id text not null,
  step_attempt integer not null,
  key text not null,
  kind text not null,
  producer_id text,
  hash text not null,
  record text not null,
  recorded_at integer not null
) strict;
create index gate_evidence_attempt on gate_evidence (run_id, step_id, step_attempt, key);

create table drive_receipts (
  receipt_id text primary key not null,
  run_id text not null references runs (run_id),
  drive integer not null,
  status text not null,
  last_sequence integer not null,
  events_hash text not null,
  receipt text not null,
  created_at integer not null,
  unique (run_id, drive)
) strict;

create table coordinators (
  coordinator_id text primary key not null,
  record text not null,
  created_at integer not null,
  updated_at integer not null,
  revoked_at integer
) strict;

create table intake_messages (
  seq integer primary key autoincrement,
  intake_id text not null unique,
  intake_key text not null unique,
  request_hash text not null,
  source text not null,
  submitted_by text not null,
  coordinator_id text,
  workflow_id text,
  display_title text,
  prompt_hash text,
  state text not null,
  run_id text,
  reason text,
  received_at integer not null,
  settled_at integer,
  constraint intake_messages_state check (state in ('queued', 'dispatched', 'refused', 'cancelled')),
  constraint intake_messages_settled check ((state = 'queued') = (settled_at is null))
) strict;
create index intake_messages_queued on intake_messages (seq) where state = 'queued';

-- Who paused the project, when and why; the row that is not ended is in force.
create table project_controls (
  seq integer primary key autoincrement,
  kind text not null,
  actor text not null,
  reason text,
  started_at integer not null,
  ended_at integer,
  ended_by text,
  constraint project_controls_kind check (kind in ('pause'))
) strict;
create unique index project_controls_in_force on project_controls (kind) where ended_at is null;

create table outbox (
  seq integer primary key autoincrement,
  run_id text not null,
  sequence integer not null,
  sync_event text not null,
  attempted_at integer,
  attempt_count integer not null default 0,
  acked_at integer,
  refused_code text,
  refused_at integer,
  unique (run_id, sequence),
  foreign key (run_id, sequence) references events (run_id, sequence),
  constraint outbox_one_state check (acked_at is null or refused_at is null),
  constraint outbox_refused check ((refused_at is null) = (refused_code is null))
) strict;
create index outbox_pending on outbox (seq) where acked_at is null and refused_at is null;
create index outbox_refused_rows on outbox (refused_code) where refused_at is not null;
