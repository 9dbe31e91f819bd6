-- Version 4 of a SQLite store. Never edited once released: a change is a migration of its own.

-- Closed instances that are kept only until some time.
CREATE TABLE expiry (
  ref INTEGER PRIMARY KEY,
  until INTEGER NOT NULL
) STRICT;
CREATE INDEX expiry_until ON expiry (until, ref);

-- The entries that say which instances were removed, by what they were called. The bytes of their
-- other entries are empty; the hashes stay.
CREATE TABLE removed (
  tenant TEXT NOT NULL,
  key TEXT NOT NULL,
  entry INTEGER NOT NULL,
  PRIMARY KEY (tenant, key, entry)
) STRICT, WITHOUT ROWID;

-- What lies beside the turns of a cell, and who else mentions a large payload.
CREATE INDEX entry_beside ON entry (ref, id) WHERE number = 0;
CREATE INDEX cell_blob_addr ON cell_blob (addr);
