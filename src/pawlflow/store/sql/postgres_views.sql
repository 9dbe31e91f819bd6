-- Every statement about the read models of a PostgreSQL store by name.

-- made: Are they there?
SELECT count(*) FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relname = 'read_mark';

-- format: In which format are they?
SELECT min(format) FROM pawl.read_mark;

-- lock: Who holds it makes them; the others find it done.
SELECT pg_advisory_xact_lock($1);

-- lightly: Rows and watermark are lost together, and the journal has both: no flush is waited for.
SET LOCAL synchronous_commit = off;

-- drop: Away with them.
DROP VIEW IF EXISTS pawl.workflow_watermark, pawl.workflow_step, pawl.workflow_instance;
DROP TABLE IF EXISTS pawl.read_step, pawl.read_instance, pawl.read_mark;
DROP FUNCTION IF EXISTS pawl.read_time(timestamptz);

-- marks_add: The watermarks of shards of which nothing was read.
INSERT INTO pawl.read_mark (shard, generation, seq, hash, at, swept, format)
SELECT shard, 1, 0, hash, 0, true, $3 FROM unnest($1::int8[], $2::bytea[]) AS m (shard, hash);

-- standings: How far every shard is, and where its journal ends.
SELECT m.shard, m.generation, m.seq, m.hash, m.at, m.swept, s.seq, s.hash
FROM pawl.read_mark AS m JOIN pawl.shard AS s ON s.id = m.shard ORDER BY m.shard;

-- page: Frames one after the other from a position on, until so many entries, with the entries.
WITH RECURSIVE f (pos, last, prev, hash, now, entries) AS (
  SELECT pos, last, prev, hash, now, last - pos / 32 + 1 FROM pawl.frame WHERE pos = $1
  UNION ALL
  SELECT n.pos, n.last, n.prev, n.hash, n.now, f.entries + n.last - n.pos / 32 + 1
  FROM f JOIN pawl.frame AS n ON n.pos = (f.last + 1) * 32 + $1 % 32 WHERE f.entries < $2
)
SELECT f.pos / 32, f.last, f.prev, f.hash, f.now, e.ref, e.number, e.data, e.hash, e.beside
FROM f CROSS JOIN LATERAL generate_series(f.pos, f.last * 32 + $1 % 32, 32) AS at
JOIN pawl.entry AS e ON e.pos = at ORDER BY e.pos;

-- turns: As of which turn the rows of these instances are.
SELECT ref, turn FROM pawl.read_instance WHERE ref = ANY ($1::int8[]) AND generation = $2;

-- mark_move: The watermark, if it is still where it was.
UPDATE pawl.read_mark SET seq = $1, hash = $2, at = $3
WHERE shard = $4 AND generation = $5 AND seq = $6 RETURNING shard;

-- instances_drop: The rows that are replaced.
DELETE FROM pawl.read_instance WHERE ref = ANY ($1::int8[]);

-- instances_put: Instances.
INSERT INTO pawl.read_instance
SELECT * FROM json_populate_recordset(NULL::pawl.read_instance, $1::text::json);

-- steps_drop: The rows that are replaced.
DELETE FROM pawl.read_step AS s
USING unnest($1::int8[], $2::int8[], $3::text[]) AS gone (ref, place, direction)
WHERE s.ref = gone.ref AND s.place = gone.place AND s.direction = gone.direction;

-- steps_put: Steps, items and undos.
INSERT INTO pawl.read_step
SELECT * FROM json_populate_recordset(NULL::pawl.read_step, $1::text::json);

-- restart: From the beginning, as another building of the rows.
UPDATE pawl.read_mark AS m SET generation = generation + 1, seq = 0, hash = b.hash, at = 0,
  swept = false
FROM unnest($1::int8[], $2::bytea[]) AS b (shard, hash) WHERE m.shard = b.shard;

-- sweep_steps: Some of what an earlier building left of a shard.
DELETE FROM pawl.read_step WHERE ctid IN (
  SELECT ctid FROM pawl.read_step WHERE shard = $1 AND generation < $2 LIMIT $3) RETURNING ref;

-- sweep_instances: The same of instances.
DELETE FROM pawl.read_instance WHERE ctid IN (
  SELECT ctid FROM pawl.read_instance WHERE shard = $1 AND generation < $2 LIMIT $3) RETURNING ref;

-- swept: Nothing of it is left.
UPDATE pawl.read_mark SET swept = true WHERE shard = $1 AND generation = $2;

-- instances: The rows of these instances.
SELECT shard, ref, generation, turn, tenant, id, uuid::text, workflow, version, definition, state,
  status, rollback, paused, current_step_index, step_count, request_json, result_json, error_step,
  error_class, error_code, error_message, started_by, parent_id, parent_step,
  pawl.read_time(created_at), pawl.read_time(started_at), pawl.read_time(closed_at),
  pawl.read_time(last_event_at)
FROM pawl.read_instance WHERE ref = ANY ($1::int8[]);

-- steps: Those of their steps.
SELECT shard, ref, place, direction, generation, key::text, called, name, step, item, step_index,
  kind, state, status, superseded, attempt, round, role, waits_for, command_subject, command_json,
  pawl.read_time(command_published_at), response_json, compensation_subject, compensation_json,
  failure_class, failure_code, error_message, pawl.read_time(ready_at),
  pawl.read_time(started_at), pawl.read_time(completed_at), pawl.read_time(last_event_at)
FROM pawl.read_step WHERE ref = ANY ($1::int8[]) ORDER BY ref, place, direction;

-- stray_instance: A row of an instance that there is none of; one that was removed after the
-- watermark has its row still.
SELECT i.id FROM pawl.read_instance AS i LEFT JOIN pawl.cell AS c ON c.ref = i.ref
WHERE left(c.workflow, 1) = '$' OR c.ref IS NULL AND NOT EXISTS (
    SELECT 1 FROM pawl.entry AS e WHERE e.number = 0 AND e.ref = i.ref
      AND e.pos / 32 > (SELECT m.seq FROM pawl.read_mark AS m WHERE m.shard = i.shard))
ORDER BY i.ref LIMIT 1;

-- gone_steps: The steps of instances that were removed.
DELETE FROM pawl.read_step WHERE ref = ANY ($1::int8[]);

-- stray_step: A row of a step without its instance.
SELECT s.name || ' of cell ' || s.ref FROM pawl.read_step AS s
WHERE NOT EXISTS (SELECT 1 FROM pawl.read_instance AS i WHERE i.ref = s.ref) ORDER BY s.ref LIMIT 1;

-- count: How many rows there are.
SELECT (SELECT count(*) FROM pawl.read_instance), (SELECT count(*) FROM pawl.read_step);
