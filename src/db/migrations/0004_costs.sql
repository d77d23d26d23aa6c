-- What runs cost, summed as their usage comes in, and the limits people set. Amounts are millionths of a currency's unit.
create table cost_sums (
  project text not null,
  dimension text not null,
  at integer not null,
  name text not null,
  currency text not null,
  amount integer not null,
  estimated integer not null,
  input_tokens integer not null,
  output_tokens integer not null,
  cache_read_tokens integer not null,
  cache_write_tokens integer not null,
  uses integer not null,
  unknown integer not null,
  primary key (project, dimension, at, name, currency),
  constraint cost_sums_dimension check (dimension in ('hour', 'day', 'machine', 'agent', 'harness', 'model', 'run'))
) strict, without rowid;
create index cost_sums_dearest on cost_sums (at, amount) where dimension = 'run';
create index cost_sums_project_dearest on cost_sums (project, at, amount) where dimension = 'run';

create table budgets (
  id text primary key not null,
  project text not null,
  period text not null,
  currency text not null,
  amount integer not null,
  level text not null,
  level_since integer,
  created_at integer not null,
  updated_at integer not null,
  updated_by text not null,
  constraint budgets_period check (period in ('day', 'month')),
  constraint budgets_level check (level in ('within', 'near', 'over')),
  constraint budgets_amount check (amount > 0)
) strict;
create unique index budgets_key on budgets (project, period, currency);
