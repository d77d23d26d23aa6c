-- What holds now and what waits for a decision, by index: neither may walk through everything a project ever knew.
create index context_items_current on context_items (project, state_key, id) where kind = 'state' and status = 'current';
create index context_items_proposed on context_items (project, id) where kind = 'state' and status = 'proposed';
