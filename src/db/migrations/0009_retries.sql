-- The run whose work a run does again: what was run again, and as which runs, is one look into an index.
alter table sync_runs add column retry_of text;
create index sync_runs_retry on sync_runs (project_id, retry_of, last_received_at) where retry_of is not null;
