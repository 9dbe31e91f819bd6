-- Every statement about the read models of a SQLite store by name.

-- made: Are they there?
SELECT count(*) FROM sqlite_schema WHERE name = 'read_mark';

-- format: In which format are they?
SELECT min(format) FROM read_mark;

-- drop: Away with them.
DROP VIEW IF EXISTS workflow_watermark;
DROP VIEW IF EXISTS workflow_step;
DROP VIEW IF EXISTS workflow_instance;
DROP TABLE IF EXISTS read_step;
DROP TABLE IF EXISTS read_instance;
DROP TABLE IF EXISTS read_mark;

-- mark_add: The watermark of a shard of which nothing was read.
INSERT INTO read_mark (shard, generation, seq, hash, at, swept, format)
VALUES (?, 1, 0, ?, 0, 1, ?);

-- standings: How far every shard is, and where its journal ends.
SELECT m.shard, m.generation, m.seq, m.hash, m.at, m.swept, s.seq, s.hash
FROM read_mark AS m JOIN shard AS s ON s.id = m.shard ORDER BY m.shard;

-- page: Frames one after the other from a position on, until so many entries, with the entries.
WITH RECURSIVE f (pos, last, at, prev, hash, now, entries) AS (
  SELECT pos, last, at, prev, hash, now, last - pos / 32 + 1 FROM frame WHERE pos = ?1
  UNION ALL
  SELECT n.pos, n.last, n.at, n.prev, n.hash, n.now, f.entries + n.last - n.pos / 32 + 1
  FROM f JOIN frame AS n ON n.pos = (f.last + 1) * 32 + ?1 % 32 WHERE f.entries < ?2
)
SELECT f.pos / 32, f.last, f.prev, f.hash, f.now, e.ref, e.number, e.data, e.hash, e.beside
FROM f JOIN entry AS e ON e.id >= f.at AND e.id <= f.at + f.last - f.pos / 32 ORDER BY f.pos, e.id;

-- turns: As of which turn the row of an instance is.
SELECT ref, turn FROM read_instance WHERE ref = ? AND generation = ?;

-- mark_move: The watermark, if it is still where it was.
UPDATE read_mark SET seq = ?1, hash = ?2, at = ?3
WHERE shard = ?4 AND generation = ?5 AND seq = ?6 RETURNING shard;

-- instance_put: An instance.
INSERT OR REPLACE INTO read_instance VALUES
(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- step_put: A step, an item or an undo.
INSERT OR REPLACE INTO read_step VALUES
(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- gone_steps: The steps of an instance that was removed.
DELETE FROM read_step WHERE ref = ?;

-- gone_instance: The instance itself.
DELETE FROM read_instance WHERE ref = ?;

-- restart: From the beginning, as another building of the rows.
UPDATE read_mark SET generation = generation + 1, seq = 0, hash = ?2, at = 0, swept = 0
WHERE shard = ?1;

-- sweep_steps: Some of what an earlier building left of a shard.
DELETE FROM read_step WHERE rowid IN (
  SELECT rowid FROM read_step WHERE shard = ? AND generation < ? LIMIT ?) RETURNING ref;

-- sweep_instances: The same of instances.
DELETE FROM read_instance WHERE ref IN (
  SELECT ref FROM read_instance WHERE shard = ? AND generation < ? LIMIT ?) RETURNING ref;

-- swept: Nothing of it is left.
UPDATE read_mark SET swept = 1 WHERE shard = ? AND generation = ?;

-- instance: The row of an instance.
SELECT * FROM read_instance WHERE ref = ?;

-- steps: Those of its steps.
SELECT * FROM read_step WHERE ref = ? ORDER BY place, direction;

-- stray_instance: A row of an instance that there is none of; one that was removed after the
-- watermark has its row still.
SELECT i.id FROM read_instance AS i LEFT JOIN cell ON cell.ref = i.ref
WHERE substr(cell.workflow, 1, 1) = '$' OR cell.ref IS NULL AND NOT EXISTS (
    SELECT 1 FROM entry AS e WHERE e.number = 0 AND e.ref = i.ref
      AND e.pos / 32 > (SELECT seq FROM read_mark WHERE read_mark.shard = i.shard))
ORDER BY i.ref LIMIT 1;

-- stray_step: A row of a step without its instance.
SELECT s.name || ' of cell ' || s.ref FROM read_step AS s
WHERE NOT EXISTS (SELECT 1 FROM read_instance AS i WHERE i.ref = s.ref) ORDER BY s.ref LIMIT 1;

-- count: How many rows there are.
SELECT (SELECT count(*) FROM read_instance), (SELECT count(*) FROM read_step);
