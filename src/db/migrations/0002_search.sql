-- What is searchable, and its full-text index. The index holds no copy of the texts and follows every change of them in the same transaction.
create table search_documents (
  doc_id integer primary key not null,
  kind text not null,
  subject_id text not null,
  project text not null,
  at integer not null,
  sender text,
  recipient text,
  status text,
  title text not null,
  body text not null,
  scope text not null,
  through integer not null
) strict;
create unique index search_documents_subject on search_documents (kind, subject_id);
create table search_cursors (
  project text primary key not null,
  seq integer not null
) strict, without rowid;

create virtual table search_index using fts5 (scope, title, body, content = 'search_documents', content_rowid = 'doc_id', tokenize = 'unicode61', prefix = '2 3');
create trigger search_documents_added after insert on search_documents begin
  insert into search_index (rowid, scope, title, body) values (new.doc_id, new.scope, new.title, new.body);
end;
create trigger search_documents_removed after delete on search_documents begin
  insert into search_index (search_index, rowid, scope, title, body) values ('delete', old.doc_id, old.scope, old.title, old.body);
end;
create trigger search_documents_changed after update of scope, title, body on search_documents begin
  insert into search_index (search_index, rowid, scope, title, body) values ('delete', old.doc_id, old.scope, old.title, old.body);
  insert into search_index (rowid, scope, title, body) values (new.doc_id, new.scope, new.title, new.body);
end;
