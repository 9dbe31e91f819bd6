-- Version 1 of a SQLite store. Never edited once released: a change is a migration of its own.
-- Numbers that grow with time are the keys, so that tables grow at their end: keys in random
-- order cost a page write each.

-- Facts about the store itself: the number of shards it was created with.
CREATE TABLE meta (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Where each shard's journal ends, and who may write there.
CREATE TABLE shard (
  id INTEGER PRIMARY KEY,
  epoch INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  hash BLOB NOT NULL,
  batch BLOB NOT NULL,
  now INTEGER NOT NULL
) STRICT;

-- Frames, at the position of their first entry. The entries lie one after the other from `at` on.
CREATE TABLE frame (
  pos INTEGER PRIMARY KEY,
  last INTEGER NOT NULL,
  at INTEGER NOT NULL,
  prev BLOB NOT NULL,
  root BLOB NOT NULL,
  hash BLOB NOT NULL,
  epoch INTEGER NOT NULL,
  now INTEGER NOT NULL
) STRICT;

-- Turns and, with number 0, dispositions, in the order they were committed. `prev` is the turn
-- before of the same cell: an index over (ref, number) would dirty 190 pages in a batch of 500.
-- Only a disposition says where it stands and whose it is: its cell may not exist.
CREATE TABLE entry (
  id INTEGER PRIMARY KEY,
  prev INTEGER NOT NULL,
  ref INTEGER NOT NULL,
  number INTEGER NOT NULL,
  data BLOB NOT NULL,
  hash BLOB NOT NULL,
  beside BLOB NOT NULL,
  pos INTEGER,
  tenant TEXT
) STRICT;
CREATE INDEX entry_disposition ON entry (tenant, id) WHERE number = 0;

-- What may be asked about a cell without reading its turns, as far as it seldom changes.
CREATE TABLE cell (
  ref INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  workflow TEXT NOT NULL,
  key TEXT NOT NULL,
  shard INTEGER NOT NULL,
  definition BLOB NOT NULL,
  version INTEGER NOT NULL,
  state TEXT NOT NULL,
  rollback TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  closed_at INTEGER,
  quarantined INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX cell_address ON cell (tenant, key);
CREATE INDEX cell_listed ON cell (tenant, workflow, state, ref) WHERE substr(workflow, 1, 1) <> '$';

-- What changes with every turn of a cell: few bytes, so that many lie on one page.
CREATE TABLE pulse (
  ref INTEGER PRIMARY KEY,
  last INTEGER NOT NULL,
  due_at INTEGER,
  calls INTEGER NOT NULL
) STRICT;
CREATE INDEX pulse_due ON pulse (due_at, ref) WHERE due_at IS NOT NULL;
CREATE INDEX pulse_calls ON pulse (ref) WHERE calls > 0;

-- Both together. A missing pulse or turn shows as null, so that damage is not taken for absence.
CREATE VIEW head AS
SELECT cell.ref, cell.tenant, cell.workflow, cell.key, cell.shard, entry.number AS turn, entry.hash,
  cell.definition, cell.version, cell.state, cell.rollback, cell.created_at, cell.started_at,
  cell.closed_at, pulse.due_at, pulse.calls, cell.quarantined
FROM cell LEFT JOIN pulse ON pulse.ref = cell.ref LEFT JOIN entry ON entry.id = pulse.last;

-- Decisions that wait for a human.
CREATE TABLE review (
  ref INTEGER NOT NULL,
  step TEXT NOT NULL,
  tenant TEXT NOT NULL,
  workflow TEXT NOT NULL,
  key TEXT NOT NULL,
  kind TEXT NOT NULL,
  role TEXT,
  since INTEGER NOT NULL,
  due_at INTEGER,
  show BLOB,
  PRIMARY KEY (ref, step)
) STRICT, WITHOUT ROWID;
CREATE INDEX review_open ON review (tenant, since, ref, step);

-- Definitions by hash, and under their names.
CREATE TABLE definition (
  hash BLOB PRIMARY KEY,
  data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE published (
  tenant TEXT NOT NULL,
  name TEXT NOT NULL,
  version INTEGER NOT NULL,
  definition BLOB NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (tenant, name, version)
) STRICT, WITHOUT ROWID;

-- Large payloads, each once, and the cells that mention them.
CREATE TABLE blob (
  id INTEGER PRIMARY KEY,
  addr BLOB NOT NULL UNIQUE,
  data BLOB NOT NULL
) STRICT;
CREATE TABLE cell_blob (
  ref INTEGER NOT NULL,
  addr BLOB NOT NULL,
  PRIMARY KEY (ref, addr)
) STRICT, WITHOUT ROWID;

-- States after a turn: a cache.
CREATE TABLE snapshot (
  ref INTEGER PRIMARY KEY,
  turn INTEGER NOT NULL,
  hash BLOB NOT NULL,
  data BLOB NOT NULL,
  beside BLOB NOT NULL
) STRICT;

-- Inputs for cells of some shard. AUTOINCREMENT: an id is never given twice.
CREATE TABLE mailbox (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  shard INTEGER NOT NULL,
  tenant TEXT NOT NULL,
  workflow TEXT NOT NULL,
  key TEXT NOT NULL,
  input BLOB NOT NULL,
  beside BLOB NOT NULL,
  dedupe TEXT
) STRICT;
CREATE UNIQUE INDEX mailbox_dedupe ON mailbox (tenant, dedupe) WHERE dedupe IS NOT NULL;

-- What senders of refused mail are told, in the order it was taken.
CREATE TABLE refusal (
  id INTEGER PRIMARY KEY,
  mail INTEGER NOT NULL UNIQUE,
  code TEXT NOT NULL,
  detail TEXT NOT NULL
) STRICT;
