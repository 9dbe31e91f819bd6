-- Read models in a SQLite store, format 1. They follow from the journal: another format is made by
-- dropping all of this and reading the journal again. Times are text by RFC 3339, in UTC with
-- milliseconds, so that they are in order as text and SQLite's functions take them.

CREATE TABLE read_mark (
  shard INTEGER PRIMARY KEY,
  generation INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  hash BLOB NOT NULL,
  at INTEGER NOT NULL,
  swept INTEGER NOT NULL,
  format INTEGER NOT NULL
) STRICT;

CREATE TABLE read_instance (
  shard INTEGER NOT NULL,
  ref INTEGER PRIMARY KEY,
  generation INTEGER NOT NULL,
  turn INTEGER NOT NULL,
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  uuid TEXT NOT NULL,
  workflow TEXT NOT NULL,
  version INTEGER NOT NULL,
  definition TEXT NOT NULL,
  state TEXT NOT NULL,
  status TEXT NOT NULL,
  rollback TEXT NOT NULL,
  paused INTEGER NOT NULL,
  current_step_index INTEGER NOT NULL DEFAULT 0,
  step_count INTEGER NOT NULL DEFAULT 0,
  request_json TEXT NOT NULL,
  result_json TEXT NOT NULL,
  error_step TEXT NOT NULL,
  error_class TEXT NOT NULL,
  error_code TEXT NOT NULL,
  error_message TEXT NOT NULL,
  started_by TEXT NOT NULL,
  parent_id TEXT NOT NULL,
  parent_step TEXT NOT NULL,
  created_at TEXT,
  started_at TEXT,
  closed_at TEXT,
  last_event_at TEXT
) STRICT;
CREATE INDEX read_instance_id ON read_instance (id, tenant);
CREATE INDEX read_instance_state ON read_instance (state, workflow);
CREATE INDEX read_instance_workflow ON read_instance (workflow, created_at);
CREATE INDEX read_instance_last ON read_instance (last_event_at);
CREATE INDEX read_instance_built ON read_instance (shard, generation);

CREATE TABLE read_step (
  shard INTEGER NOT NULL,
  ref INTEGER NOT NULL,
  place INTEGER NOT NULL,
  direction TEXT NOT NULL,
  generation INTEGER NOT NULL,
  key TEXT NOT NULL,
  called INTEGER NOT NULL,
  name TEXT NOT NULL,
  step TEXT NOT NULL,
  item INTEGER,
  step_index INTEGER NOT NULL,
  kind TEXT NOT NULL,
  state TEXT NOT NULL,
  status TEXT NOT NULL,
  superseded INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  round INTEGER NOT NULL,
  role TEXT NOT NULL,
  waits_for TEXT NOT NULL,
  command_subject TEXT NOT NULL DEFAULT '',
  command_json TEXT NOT NULL DEFAULT '',
  command_published_at TEXT,
  response_json TEXT NOT NULL,
  compensation_subject TEXT NOT NULL DEFAULT '',
  compensation_json TEXT NOT NULL DEFAULT '',
  failure_class TEXT NOT NULL,
  failure_code TEXT NOT NULL,
  error_message TEXT NOT NULL,
  ready_at TEXT,
  started_at TEXT,
  completed_at TEXT,
  last_event_at TEXT,
  PRIMARY KEY (ref, place, direction)
) STRICT;
CREATE INDEX read_step_key ON read_step (key);
CREATE INDEX read_step_built ON read_step (shard, generation);
CREATE INDEX read_step_open ON read_step (state, last_event_at)
WHERE state IN ('pending', 'in_progress');

CREATE VIEW workflow_instance AS
SELECT tenant AS tenant_id, id, uuid, workflow, version, definition AS definition_hash,
  state, status, rollback, paused, current_step_index, step_count, request_json, result_json,
  error_step, error_class, error_code, error_message, started_by, parent_id, parent_step,
  created_at, started_at, closed_at, last_event_at, turn AS turns, shard
FROM read_instance;

-- What no event touched since it was sent back ends with its instance.
CREATE VIEW workflow_step AS
SELECT i.tenant AS tenant_id, i.id AS workflow_instance_id, i.workflow, s.key AS id,
  s.step_index, s.name, s.step, s.item, s.direction, s.kind, s.state,
  CASE WHEN s.status = 'pending' AND s.direction = 'do' AND i.closed_at IS NOT NULL
    THEN 'cancelled' ELSE s.status END AS status,
  s.superseded, s.attempt, s.round, s.role, s.waits_for,
  s.command_json AS request_json, s.response_json, s.command_subject, s.command_json,
  s.command_published_at, CASE WHEN s.called THEN s.key ELSE '' END AS idempotency_key,
  s.compensation_subject, s.compensation_json, s.failure_class, s.failure_code, s.error_message,
  s.ready_at, s.started_at, s.completed_at, s.last_event_at
FROM read_step AS s JOIN read_instance AS i ON i.ref = s.ref;

-- How far the rows are: `behind` entries of a shard's journal are not in them yet.
CREATE VIEW workflow_watermark AS
SELECT m.shard, m.seq AS position, s.seq AS journal_position, s.seq - m.seq AS behind,
  strftime('%Y-%m-%dT%H:%M:%fZ', m.at / 1000.0, 'unixepoch') AS as_of,
  strftime('%Y-%m-%dT%H:%M:%fZ', s.now / 1000.0, 'unixepoch') AS journal_as_of,
  m.generation, NOT m.swept AS rebuilding
FROM read_mark AS m JOIN shard AS s ON s.id = m.shard;
