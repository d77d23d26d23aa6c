-- Lists that somebody keeps under a name, each with its filters. Nobody but its owner sees it.
create table saved_views (
  id text primary key not null,
  owner text not null,
  token_id text,
  place text not null,
  query text not null,
  name text not null,
  name_folded text not null,
  created_at integer not null
) strict;
create unique index saved_views_name on saved_views (owner, name_folded);
create index saved_views_token on saved_views (token_id) where token_id is not null;
