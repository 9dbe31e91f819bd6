-- Read models in a PostgreSQL store, format 1. They follow from the journal: another format is made by
-- dropping all of this and reading the journal again. `pawl.` stands for the schema that the URL names.

CREATE TABLE pawl.read_mark (
  shard int8 PRIMARY KEY,
  generation int8 NOT NULL,
  seq int8 NOT NULL,
  hash bytea NOT NULL,
  at int8 NOT NULL,
  swept boolean NOT NULL,
  format int8 NOT NULL
);

CREATE TABLE pawl.read_instance (
  shard int8 NOT NULL,
  ref int8 PRIMARY KEY,
  generation int8 NOT NULL,
  turn int8 NOT NULL,
  tenant text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  uuid uuid NOT NULL,
  workflow text COLLATE "C" NOT NULL,
  version int8 NOT NULL,
  definition text COLLATE "C" NOT NULL,
  state text COLLATE "C" NOT NULL,
  status text COLLATE "C" NOT NULL,
  rollback text COLLATE "C" NOT NULL,
  paused boolean NOT NULL,
  current_step_index integer NOT NULL DEFAULT 0,
  step_count integer NOT NULL DEFAULT 0,
  request_json text NOT NULL,
  result_json text NOT NULL,
  error_step text COLLATE "C" NOT NULL,
  error_class text COLLATE "C" NOT NULL,
  error_code text COLLATE "C" NOT NULL,
  error_message text NOT NULL,
  started_by text COLLATE "C" NOT NULL,
  parent_id text COLLATE "C" NOT NULL,
  parent_step text COLLATE "C" NOT NULL,
  created_at timestamptz,
  started_at timestamptz,
  closed_at timestamptz,
  last_event_at timestamptz
);
CREATE INDEX read_instance_id ON pawl.read_instance (id, tenant);
CREATE INDEX read_instance_state ON pawl.read_instance (state, workflow);
CREATE INDEX read_instance_workflow ON pawl.read_instance (workflow, created_at);
CREATE INDEX read_instance_last ON pawl.read_instance (last_event_at);
CREATE INDEX read_instance_built ON pawl.read_instance (shard, generation);

CREATE TABLE pawl.read_step (
  shard int8 NOT NULL,
  ref int8 NOT NULL,
  place int8 NOT NULL,
  direction text COLLATE "C" NOT NULL,
  generation int8 NOT NULL,
  key uuid NOT NULL,
  called boolean NOT NULL,
  name text COLLATE "C" NOT NULL,
  step text COLLATE "C" NOT NULL,
  item integer,
  step_index integer NOT NULL,
  kind text COLLATE "C" NOT NULL,
  state text COLLATE "C" NOT NULL,
  status text COLLATE "C" NOT NULL,
  superseded boolean NOT NULL,
  attempt integer NOT NULL,
  round integer NOT NULL,
  role text COLLATE "C" NOT NULL,
  waits_for text COLLATE "C" NOT NULL,
  command_subject text COLLATE "C" NOT NULL DEFAULT '',
  command_json text NOT NULL DEFAULT '',
  command_published_at timestamptz,
  response_json text NOT NULL,
  compensation_subject text COLLATE "C" NOT NULL DEFAULT '',
  compensation_json text NOT NULL DEFAULT '',
  failure_class text COLLATE "C" NOT NULL,
  failure_code text COLLATE "C" NOT NULL,
  error_message text NOT NULL,
  ready_at timestamptz,
  started_at timestamptz,
  completed_at timestamptz,
  last_event_at timestamptz,
  PRIMARY KEY (ref, place, direction)
);
CREATE INDEX read_step_key ON pawl.read_step (key);
CREATE INDEX read_step_built ON pawl.read_step (shard, generation);
CREATE INDEX read_step_open ON pawl.read_step (state, last_event_at)
WHERE state IN ('pending', 'in_progress');

-- A time as the journal tells it.
CREATE FUNCTION pawl.read_time(at timestamptz) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
$$;

CREATE VIEW pawl.workflow_instance AS
SELECT tenant AS tenant_id, id, uuid, workflow, version, definition AS definition_hash,
  state, status, rollback, paused, current_step_index, step_count, request_json, result_json,
  error_step, error_class, error_code, error_message, started_by, parent_id, parent_step,
  created_at, started_at, closed_at, last_event_at, turn AS turns, shard
FROM pawl.read_instance;

-- What no event touched since it was sent back ends with its instance.
CREATE VIEW pawl.workflow_step AS
SELECT i.tenant AS tenant_id, i.id AS workflow_instance_id, i.workflow, s.key AS id,
  s.step_index, s.name, s.step, s.item, s.direction, s.kind, s.state,
  CASE WHEN s.status = 'pending' AND s.direction = 'do' AND i.closed_at IS NOT NULL
    THEN 'cancelled' ELSE s.status END AS status,
  s.superseded, s.attempt, s.round, s.role, s.waits_for,
  s.command_json AS request_json, s.response_json, s.command_subject, s.command_json,
  s.command_published_at, CASE WHEN s.called THEN s.key::text ELSE '' END AS idempotency_key,
  s.compensation_subject, s.compensation_json, s.failure_class, s.failure_code, s.error_message,
  s.ready_at, s.started_at, s.completed_at, s.last_event_at
FROM pawl.read_step AS s JOIN pawl.read_instance AS i ON i.ref = s.ref;

-- How far the rows are: `behind` entries of a shard's journal are not in them yet.
CREATE VIEW pawl.workflow_watermark AS
SELECT m.shard, m.seq AS position, s.seq AS journal_position, s.seq - m.seq AS behind,
  timestamptz 'epoch' + m.at * interval '1 millisecond' AS as_of,
  timestamptz 'epoch' + s.now * interval '1 millisecond' AS journal_as_of,
  m.generation, NOT m.swept AS rebuilding
FROM pawl.read_mark AS m JOIN pawl.shard AS s ON s.id = m.shard;
