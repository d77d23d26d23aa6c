-- Prompts and transcripts of one project. Never synced. Forward only: once released this file never changes.

create table prompts (
  hash text primary key not null,
  text text not null,
  created_at integer not null
) strict, without rowid;

create table transcripts (
  attempt_id text not null,
  ordinal integer not null,
  run_id text not null,
  stream text not null,
  text text not null,
  recorded_at integer not null,
  primary key (attempt_id, ordinal)
) strict, without rowid;
create index transcripts_run on transcripts (run_id, attempt_id, ordinal);
