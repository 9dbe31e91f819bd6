-- Every statement of the SQLite store by name. Sets of shards are the bits of one number, so that
-- the texts never change and each is prepared once.

-- meta: A fact about the store.
SELECT value FROM meta WHERE name = ?;

-- meta_put: The same, written.
INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?);

-- shards: Where every shard stands.
SELECT id, epoch, seq, hash, batch, now FROM shard ORDER BY id;

-- shards_fenced: Where these stand: most batches are of all of them, or of one.
SELECT id, epoch, seq, hash, batch, now FROM shard WHERE (?1 >> id) & 1;

-- shard_add: A shard nobody has owned yet.
INSERT INTO shard (id, epoch, seq, hash, batch, now) VALUES (?, ?, ?, ?, ?, ?);

-- shard_move: Where a shard stands after a batch.
UPDATE shard SET seq = ?, hash = ?, batch = ?, now = ? WHERE id = ?;

-- shard_claim: A new owner.
UPDATE shard SET epoch = epoch + 1 WHERE id = ?;

-- frame_add: A frame at the position of its first entry.
INSERT INTO frame (pos, last, at, prev, root, hash, epoch, now) VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- frame_at: The frame that begins here.
SELECT last, at, prev, root, hash, epoch, now FROM frame WHERE pos = ?;

-- frame_last: The last frame of a shard that begins at or below a position.
SELECT pos FROM frame WHERE pos <= ?1 AND pos % ?2 = ?3 ORDER BY pos DESC LIMIT 1;

-- entry_last: The last entry of all.
SELECT max(id) FROM entry;

-- entry_add: An entry. Where the turn before it is not known, the cell knows it.
INSERT INTO entry (id, prev, ref, number, data, hash, beside, pos, tenant)
VALUES (?1, coalesce(?2, (SELECT last FROM pulse WHERE ref = ?3)), ?3, ?4, ?5, ?6, ?7, ?8, ?9);

-- entries: Entries that lie one after the other.
SELECT ref, number, data, hash, beside FROM entry WHERE id >= ? AND id < ? ORDER BY id;

-- turns_back: The turns of a cell, from its last one back to a number.
WITH RECURSIVE turn (prev, ref, number, data, hash, beside) AS (
  SELECT prev, ref, number, data, hash, beside FROM entry
  WHERE id = (SELECT last FROM pulse WHERE ref = ?1)
  UNION ALL
  SELECT entry.prev, entry.ref, entry.number, entry.data, entry.hash, entry.beside
  FROM turn JOIN entry ON entry.id = turn.prev AND entry.number < turn.number
  WHERE turn.number > ?2
)
SELECT ref, number, data, hash, beside FROM turn;

-- dispositions: Refused and dead inputs of a tenant, newest first.
SELECT pos, ref, number, data, hash, beside FROM entry
WHERE number = 0 AND tenant = ? ORDER BY id DESC LIMIT ?;

-- beside: The dispositions of a cell, oldest first.
SELECT pos, ref, number, data, hash, beside FROM entry WHERE number = 0 AND ref = ? ORDER BY id;

-- cell_put: A new cell, or what has changed of one.
INSERT INTO cell (ref, tenant, workflow, key, shard, definition, version, state, rollback,
  created_at, started_at, closed_at, quarantined)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (ref) DO UPDATE SET definition = excluded.definition, version = excluded.version,
  state = excluded.state, rollback = excluded.rollback, started_at = excluded.started_at,
  closed_at = excluded.closed_at, quarantined = excluded.quarantined
WHERE (definition, version, state, rollback, started_at, closed_at, quarantined) IS NOT
  (excluded.definition, excluded.version, excluded.state, excluded.rollback, excluded.started_at,
   excluded.closed_at, excluded.quarantined);

-- pulse_put: A cell took a turn.
INSERT INTO pulse (ref, last, due_at, calls) VALUES (?, ?, ?, ?)
ON CONFLICT (ref) DO UPDATE SET last = excluded.last, due_at = excluded.due_at,
  calls = excluded.calls;

-- pulse_touch: A cell changed without a turn.
UPDATE pulse SET due_at = ?2, calls = ?3 WHERE ref = ?1 RETURNING ref;

-- head_by_address: The cell with this id in its tenant.
SELECT * FROM head WHERE tenant = ? AND key = ?;

-- head_at: The cell with this ref.
SELECT * FROM head WHERE ref = ?;

-- heads_after: Cells by ref.
SELECT * FROM head WHERE ref > ? ORDER BY ref LIMIT ?;

-- heads_due_at: Cells with this very deadline, by ref. Apart from the later ones: with
-- (due_at, ref) > (?, ?) every page would read all cells of one deadline again. The deadline that
-- the index has stands behind each: should it differ, one of them is damaged.
SELECT head.*, pulse.due_at FROM pulse JOIN head ON head.ref = pulse.ref
WHERE pulse.due_at = ? AND pulse.ref > ? AND (? >> shard) & 1 ORDER BY pulse.ref LIMIT ?;

-- heads_due_after: Cells with a later deadline, earliest first.
SELECT head.*, pulse.due_at FROM pulse JOIN head ON head.ref = pulse.ref
WHERE pulse.due_at > ? AND (? >> shard) & 1 ORDER BY pulse.due_at, pulse.ref LIMIT ?;

-- heads_in_flight: Cells with calls in flight, by ref.
SELECT head.* FROM pulse JOIN head ON head.ref = pulse.ref
WHERE pulse.calls > 0 AND pulse.ref > ? AND (? >> shard) & 1 ORDER BY pulse.ref LIMIT ?;

-- heads_broken: Cells whose last turn is not there.
SELECT ref FROM head WHERE turn IS NULL;

-- kinds: Every workflow and state that instances of a tenant have, found by leaps in the index.
WITH RECURSIVE kind (workflow, state) AS (
  SELECT * FROM (
    SELECT workflow, state FROM cell
    WHERE tenant = ?1 AND substr(workflow, 1, 1) <> '$'
    ORDER BY workflow, state LIMIT 1)
  UNION ALL
  SELECT next.workflow, next.state FROM kind JOIN cell AS next ON next.ref = coalesce(
    (SELECT ref FROM cell
     WHERE tenant = ?1 AND workflow = kind.workflow AND state > kind.state
       AND substr(workflow, 1, 1) <> '$' ORDER BY state LIMIT 1),
    (SELECT ref FROM cell
     WHERE tenant = ?1 AND workflow > kind.workflow AND substr(workflow, 1, 1) <> '$'
     ORDER BY workflow, state LIMIT 1))
)
SELECT workflow, state FROM kind;

-- places_of_kind: Instances of one workflow in one state by age, newest first.
SELECT created_at, ref FROM cell
WHERE tenant = ? AND workflow = ? AND state = ? AND substr(workflow, 1, 1) <> '$'
  AND (created_at, ref) > (?, ?) AND (created_at, ref) < (?, ?)
ORDER BY created_at DESC, ref DESC LIMIT ?;

-- places_closed: Instances that were over between two times.
SELECT created_at, ref FROM cell WHERE tenant = ? AND closed_at BETWEEN ? AND ? LIMIT ?;

-- places_delayed: Instances that began between two times, and later than they were created.
SELECT created_at, ref FROM cell
WHERE tenant = ? AND started_at BETWEEN ? AND ? AND started_at > created_at LIMIT ?;

-- places_found: Instances by an attribute: highest value first, then newest first.
SELECT at, ref FROM search
WHERE tenant = ? AND name = ? AND kind = ? AND (value, at, ref) > (?, ?, ?)
  AND (value, at, ref) < (?, ?, ?)
ORDER BY value DESC, at DESC, ref DESC LIMIT ?;

-- search_add: One more way to find an instance.
INSERT INTO search (tenant, name, kind, value, at, ref) VALUES (?, ?, ?, ?, ?, ?);

-- attributes_add: All that an instance may be found by.
INSERT INTO attributes (ref, data) VALUES (?, ?);

-- attributes_of: The same, read.
SELECT data FROM attributes WHERE ref = ?;

-- attribute_names: Every name that instances of a tenant may be found by, found by leaps.
WITH RECURSIVE known (name) AS (
  SELECT (SELECT min(name) FROM search WHERE tenant = ?1)
  UNION ALL
  SELECT (SELECT min(name) FROM search WHERE tenant = ?1 AND name > known.name) FROM known
  WHERE known.name IS NOT NULL
)
SELECT name FROM known WHERE name IS NOT NULL;

-- heads_of_system: System cells of one kind by key, highest first: their keys begin with it.
SELECT head.* FROM cell JOIN head ON head.ref = cell.ref
WHERE cell.tenant = ? AND cell.key >= ? AND cell.key < ? AND cell.workflow = ?
ORDER BY cell.key DESC LIMIT ?;

-- review_put: A decision waits.
INSERT OR REPLACE INTO review (ref, step, tenant, workflow, key, kind, role, since, due_at, show,
  claimed_by)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- review_drop: It no longer does.
DELETE FROM review WHERE ref = ? AND step = ?;

-- reviews: What waits in a tenant, oldest first.
SELECT ref, step, tenant, workflow, key, kind, role, since, due_at, show, claimed_by FROM review
WHERE tenant = ? ORDER BY since, ref, step;

-- published_put: A definition under its name.
INSERT OR REPLACE INTO published (tenant, name, version, definition, at) VALUES (?, ?, ?, ?, ?);

-- published: Every name and version of a tenant, newest first.
SELECT tenant, name, version, definition, at FROM published
WHERE tenant = ? ORDER BY name, version DESC;

-- definition_add: A definition, once.
INSERT OR IGNORE INTO definition (hash, data) VALUES (?, ?);

-- definition: A definition by its hash.
SELECT hash, data FROM definition WHERE hash = ?;

-- blob_add: A large payload, once.
INSERT OR IGNORE INTO blob (addr, data) VALUES (?, ?);

-- mention_add: A cell mentions a large payload.
INSERT OR IGNORE INTO cell_blob (ref, addr) VALUES (?, ?);

-- blobs_of: The large payloads a cell mentions, as far as they were not erased.
SELECT blob.addr, blob.data FROM cell_blob JOIN blob ON blob.addr = cell_blob.addr
WHERE cell_blob.ref = ?;

-- snapshot_put: The state of a cell after a turn.
INSERT OR REPLACE INTO snapshot (ref, turn, hash, data, beside) VALUES (?, ?, ?, ?, ?);

-- snapshot_of: The same, read.
SELECT ref, turn, hash, data, beside FROM snapshot WHERE ref = ?;

-- expiry_put: A closed cell is kept until then.
INSERT OR REPLACE INTO expiry (ref, until) VALUES (?, ?);

-- expiring_at: Cells that are kept until this very time, by ref; apart as deadlines are.
SELECT expiry.until, head.* FROM expiry JOIN head ON head.ref = expiry.ref
WHERE expiry.until = ? AND expiry.ref > ? AND (? >> shard) & 1 ORDER BY expiry.ref LIMIT ?;

-- expiring_after: Cells that are kept until a later time, earliest first.
SELECT expiry.until, head.* FROM expiry JOIN head ON head.ref = expiry.ref
WHERE expiry.until > ? AND (? >> shard) & 1 ORDER BY expiry.until, expiry.ref LIMIT ?;

-- closed_all: Every instance that is over, for the migration that counts how long they are kept.
SELECT ref, definition, state, closed_at FROM cell WHERE closed_at IS NOT NULL;

-- definitions_all: Every definition, for the same.
SELECT hash, data FROM definition;

-- removed_add: An entry says that a cell was removed.
INSERT INTO removed (tenant, key, entry) VALUES (?, ?, ?);

-- removed: The last entry that says so of an id.
SELECT entry.pos, entry.ref, entry.number, entry.data, entry.hash, entry.beside
FROM removed JOIN entry ON entry.id = removed.entry
WHERE removed.tenant = ? AND removed.key = ? ORDER BY removed.entry DESC LIMIT 1;

-- remove_turns: Take the bytes out of the turns of a cell; their hashes stay.
UPDATE entry SET data = x'', beside = x'' WHERE id IN (
  WITH RECURSIVE turn (id, prev, number) AS (
    SELECT id, prev, number FROM entry WHERE id = (SELECT last FROM pulse WHERE ref = ?1)
    UNION ALL
    SELECT entry.id, entry.prev, entry.number
    FROM turn JOIN entry ON entry.id = turn.prev AND entry.number < turn.number
  )
  SELECT id FROM turn);

-- remove_beside: The same of what lies beside them; it is nobody's any more.
UPDATE entry SET data = x'', beside = x'', tenant = NULL WHERE number = 0 AND ref = ?1;

-- remove_blobs: Take out the large payloads that only this cell mentions.
DELETE FROM blob WHERE addr IN (
  SELECT addr FROM cell_blob AS mine WHERE mine.ref = ?1 AND NOT EXISTS (
    SELECT 1 FROM cell_blob AS other WHERE other.addr = mine.addr AND other.ref <> ?1));

-- remove_search: One way less to find it.
DELETE FROM search
WHERE tenant = ? AND name = ? AND kind = ? AND value = ? AND at = ? AND ref = ?;

-- remove_mentions: It mentions nothing any more.
DELETE FROM cell_blob WHERE ref = ?1;

-- remove_snapshot: Its state goes.
DELETE FROM snapshot WHERE ref = ?1;

-- remove_attributes: What it is found by goes.
DELETE FROM attributes WHERE ref = ?1;

-- remove_reviews: Nobody is asked about it any more.
DELETE FROM review WHERE ref = ?1;

-- remove_expiry: Its time is over.
DELETE FROM expiry WHERE ref = ?1;

-- remove_pulse: Its last turn is nobody's.
DELETE FROM pulse WHERE ref = ?1;

-- remove_cell: It is no more.
DELETE FROM cell WHERE ref = ?1;

-- mail_add: Mail, unless mail of the tenant with the same key waits.
INSERT INTO mailbox (shard, tenant, workflow, key, input, beside, dedupe)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7
WHERE ?7 IS NULL OR NOT EXISTS (SELECT 1 FROM mailbox WHERE tenant = ?2 AND dedupe = ?7)
RETURNING id;

-- mail_by_key: The mail with this key that waits.
SELECT id FROM mailbox WHERE tenant = ? AND dedupe = ?;

-- mail_after: Mail of some shards, oldest first.
SELECT id, shard, tenant, workflow, key, input, beside, dedupe FROM mailbox
WHERE id > ? AND (? >> shard) & 1 ORDER BY id LIMIT ?;

-- mail_lines: Whose mail it is, oldest first.
SELECT id, tenant FROM mailbox WHERE id > ? AND (? >> shard) & 1 ORDER BY id LIMIT ?;

-- mail_by_id: Mail of some shards by its ids.
SELECT id, shard, tenant, workflow, key, input, beside, dedupe FROM mailbox
WHERE id IN (SELECT value FROM json_each(?)) AND (? >> shard) & 1 ORDER BY id;

-- mail_posted: How much mail of a tenant waits whose key lies between two.
SELECT count(*) FROM (
  SELECT 1 FROM mailbox WHERE tenant = ? AND dedupe >= ? AND dedupe < ? LIMIT ?);

-- mail_take: Mail is consumed.
DELETE FROM mailbox WHERE id = ? RETURNING id, shard;

-- mail_waits: Does this mail wait?
SELECT 1 FROM mailbox WHERE id = ?;

-- mail_last: The highest id that was ever given.
SELECT seq FROM sqlite_sequence WHERE name = 'mailbox';

-- refusal_add: What the sender is to be told.
INSERT INTO refusal (mail, code, detail) VALUES (?, ?, ?);

-- refusal_prune: Only the last ones are kept.
DELETE FROM refusal WHERE id <= (SELECT max(id) FROM refusal) - ?;

-- refusal: What the sender of this mail is told.
SELECT mail, code, detail FROM refusal WHERE mail = ?;

-- restore_tables: What a restore replaces.
SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\';

-- restore_highest: Remember the epochs and the last mail of the store that goes.
CREATE TEMP TABLE before AS
SELECT id, epoch, (SELECT max(seq) FROM main.sqlite_sequence WHERE name = 'mailbox') AS mail
FROM main.shard;

-- restore_raise: Rise over both stores: owners of either are fenced, and no mail id comes again.
UPDATE main.shard SET epoch = 1 + max(epoch, (SELECT epoch FROM before WHERE before.id = shard.id));
DELETE FROM main.sqlite_sequence WHERE name = 'mailbox';
INSERT INTO main.sqlite_sequence (name, seq)
SELECT 'mailbox', max(coalesce((SELECT max(mail) FROM before), 0),
  coalesce((SELECT max(seq) FROM part.sqlite_sequence WHERE name = 'mailbox'), 0));
DROP TABLE before;

-- restore_leap: Rise over the epochs of owners that nobody can ask any more.
UPDATE shard SET epoch = epoch + ?;
