-- Deliveries that came in: what was made of each, without its body. What nobody signed is counted by hour and reason, so that it cannot fill the table.
create table webhook_arrivals (
  id text primary key not null,
  fold text not null,
  project text not null,
  definition_id text not null,
  kind text not null,
  outcome text not null,
  verified integer not null,
  code text,
  reason text,
  delivery_id text,
  event text,
  sender text,
  program text,
  run_id text,
  signal_key text,
  count integer not null,
  at integer not null,
  constraint webhook_arrivals_kind check (kind in ('start', 'signal')),
  constraint webhook_arrivals_outcome check (outcome in ('accepted', 'duplicate', 'ignored', 'refused')),
  constraint webhook_arrivals_verified check (verified in (0, 1)),
  constraint webhook_arrivals_count check (count >= 1)
) strict;
create unique index webhook_arrivals_fold on webhook_arrivals (fold);
create index webhook_arrivals_project on webhook_arrivals (project, at, id);
create index webhook_arrivals_of_outcome on webhook_arrivals (project, outcome, at, id);
create index webhook_arrivals_definition on webhook_arrivals (definition_id, at, id);
create index webhook_arrivals_at on webhook_arrivals (at);
