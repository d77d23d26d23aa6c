-- What is searchable, and its full-text index: an expression index, which PostgreSQL keeps by itself.
create table search_documents (
  doc_id bigint primary key not null,
  kind text collate "C" not null,
  subject_id text collate "C" not null,
  project text collate "C" not null,
  at bigint not null,
  sender text collate "C",
  recipient text collate "C",
  status text collate "C",
  title text collate "C" not null,
  body text collate "C" not null,
  scope text collate "C" not null,
  through bigint not null
);
create unique index search_documents_subject on search_documents (kind, subject_id);
create index search_documents_text on search_documents using gin (to_tsvector('simple', scope || ' ' || title || ' ' || body));
create table search_cursors (
  project text collate "C" primary key not null,
  seq bigint not null
);
