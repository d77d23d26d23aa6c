-- The registry of one user on one machine: who supervises, and which checkouts are known. Forward only: once released this file never changes.

create table supervisor (
  id integer primary key not null check (id = 1),
  runtime_id text not null,
  generation integer not null,
  pid integer,
  pid_started text,
  port integer,
  token_hash text,
  version text,
  started_at integer,
  heartbeat_at integer,
  state text not null,
  constraint supervisor_state check (state in ('running', 'stopped'))
) strict;

create table projects (
  project_key text primary key not null,
  project_id text not null,
  name text not null,
  project_root text not null unique,
  home_runtime_id text not null,
  config_revision text,
  hub_project text,
  registered_at integer not null,
  used_at integer not null
) strict;
create index projects_id on projects (project_id, used_at);

-- Commands of a hub that no store could take: refused once, and said so once.
create table refused_commands (
  command_id text primary key not null,
  hub text not null,
  hub_seq integer not null,
  code text not null,
  reason text not null,
  recorded_at integer not null,
  reported_at integer
) strict;
create index refused_commands_hub on refused_commands (hub, hub_seq);
