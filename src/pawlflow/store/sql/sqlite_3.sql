-- Version 3 of a SQLite store. Never edited once released: a change is a migration of its own.

-- Instances of a kind by age: places in the journals are only near to that.
DROP INDEX cell_listed;
CREATE INDEX cell_listed ON cell (tenant, workflow, state, created_at, ref)
WHERE substr(workflow, 1, 1) <> '$';

-- Those that are over, by when; and the few that had to wait before they began. Only instances
-- have such times.
CREATE INDEX cell_closed ON cell (tenant, closed_at, created_at, ref)
WHERE closed_at IS NOT NULL;
CREATE INDEX cell_delayed ON cell (tenant, started_at, created_at, ref)
WHERE started_at > created_at;

-- What an instance may be found by: all of it together, and one row of an index for each.
-- Kinds are 0 null, 1 truth, 2 number, 3 text; `at` is when the instance was created.
CREATE TABLE attributes (
  ref INTEGER PRIMARY KEY,
  data BLOB NOT NULL
) STRICT;
CREATE TABLE search (
  tenant TEXT NOT NULL,
  name TEXT NOT NULL,
  kind INTEGER NOT NULL,
  value ANY NOT NULL,
  at INTEGER NOT NULL,
  ref INTEGER NOT NULL,
  PRIMARY KEY (tenant, name, kind, value, at, ref)
) STRICT, WITHOUT ROWID;
