-- Work that is run again: of which run, and from which of its steps (none: from the beginning).
alter table intake_messages add column retry_of text;
alter table intake_messages add column retry_step_id text;
