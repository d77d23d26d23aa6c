-- Long work on the store that somebody started from a page: how far it is, and what came of it.
create table upkeep_jobs (
  id text primary key not null,
  kind text not null,
  state text not null,
  step text not null,
  done integer not null,
  total integer not null,
  started_at integer not null,
  started_by text not null,
  updated_at integer not null,
  finished_at integer,
  outcome text,
  constraint upkeep_jobs_kind check (kind in ('backup', 'verify')),
  constraint upkeep_jobs_state check (state in ('running', 'done', 'failed')),
  constraint upkeep_jobs_finished check ((state = 'running') = (finished_at is null))
) strict;
create unique index upkeep_jobs_running on upkeep_jobs (state) where state = 'running';
