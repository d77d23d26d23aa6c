-- Retired agents by name: a list of their own, which must not walk through all that ever registered.
create index agents_project_retired on agents (project, name_folded) where retired_at is not null;
