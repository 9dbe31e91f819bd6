-- What a move asks of a SQLite store, by name. Pages go by key: the values of the last one, a limit.

-- meta_drop: A fact about the store is none any more.
DELETE FROM meta WHERE name = ?;

-- sizes: How much there is.
SELECT (SELECT count(*) FROM frame) AS frames,
  (SELECT coalesce(sum(seq), 0) FROM shard) AS entries,
  (SELECT count(*) FROM definition) AS definitions, (SELECT count(*) FROM published) AS published,
  (SELECT count(*) FROM blob) AS blobs, (SELECT count(*) FROM cell_blob) AS mentions,
  (SELECT count(*) FROM cell) AS cells, (SELECT count(*) FROM attributes) AS attributes,
  (SELECT count(*) FROM review) AS reviews, (SELECT count(*) FROM snapshot) AS snapshots,
  (SELECT count(*) FROM mailbox) AS mail, (SELECT count(*) FROM refusal) AS refusals,
  (SELECT count(*) FROM expiry) AS expiries, (SELECT count(*) FROM removed) AS removed,
  (SELECT count(*) FROM entry WHERE number = 0 AND tenant IS NOT NULL) AS dispositions;

-- search_count: Ways to find instances.
SELECT count(*) FROM search;

-- turns_loose: Turns that do not lead to the one before them.
SELECT count(*) FROM entry LEFT JOIN entry AS before
ON before.id = entry.prev AND before.ref = entry.ref AND before.number = entry.number - 1
WHERE entry.number > 1 AND before.id IS NULL;

-- definitions_page: Definitions.
SELECT hash, data FROM definition WHERE hash > ? ORDER BY hash LIMIT ?;

-- definitions_write: The same, written.
INSERT INTO definition (hash, data) VALUES (?, ?);

-- published_page: Definitions under their names.
SELECT tenant, name, version, definition, at FROM published
WHERE (tenant, name, version) > (?, ?, ?) ORDER BY tenant, name, version LIMIT ?;

-- published_write: The same, written.
INSERT INTO published (tenant, name, version, definition, at) VALUES (?, ?, ?, ?, ?);

-- blobs_page: Large payloads.
SELECT addr, data FROM blob WHERE addr > ? ORDER BY addr LIMIT ?;

-- blobs_write: The same, written.
INSERT INTO blob (addr, data) VALUES (?, ?);

-- mentions_page: Who mentions them.
SELECT ref, addr FROM cell_blob WHERE (ref, addr) > (?, ?) ORDER BY ref, addr LIMIT ?;

-- mentions_write: The same, written.
INSERT INTO cell_blob (ref, addr) VALUES (?, ?);

-- cells_page: Heads.
SELECT * FROM head WHERE ref > ? ORDER BY ref LIMIT ?;

-- cells_write: The part of a head that seldom changes; the values are those of a head.
INSERT INTO cell (ref, tenant, workflow, key, shard, definition, version, state, rollback,
  created_at, started_at, closed_at, quarantined)
VALUES (?1, ?2, ?3, ?4, ?5, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?17);

-- pulses_write: The part that changes with every turn.
UPDATE pulse SET due_at = ?15, calls = ?16 WHERE ref = ?1;

-- attributes_page: What instances may be found by.
SELECT attributes.ref, cell.tenant, cell.created_at, attributes.data
FROM attributes JOIN cell ON cell.ref = attributes.ref
WHERE attributes.ref > ? ORDER BY attributes.ref LIMIT ?;

-- attributes_write: The same, written.
INSERT INTO attributes (ref, data) VALUES (?1, ?4);

-- reviews_page: Decisions that wait.
SELECT ref, step, tenant, workflow, key, kind, role, since, due_at, show, claimed_by FROM review
WHERE (ref, step) > (?, ?) ORDER BY ref, step LIMIT ?;

-- reviews_write: The same, written.
INSERT INTO review (ref, step, tenant, workflow, key, kind, role, since, due_at, show, claimed_by)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- snapshots_page: States after a turn.
SELECT ref, turn, hash, data, beside FROM snapshot WHERE ref > ? ORDER BY ref LIMIT ?;

-- snapshots_write: The same, written.
INSERT INTO snapshot (ref, turn, hash, data, beside) VALUES (?, ?, ?, ?, ?);

-- expiries_page: Until when closed instances are kept.
SELECT ref, until FROM expiry WHERE ref > ? ORDER BY ref LIMIT ?;

-- expiries_write: The same, written.
INSERT INTO expiry (ref, until) VALUES (?, ?);

-- removed_page: Where it says that instances were removed.
SELECT removed.tenant, removed.key, entry.pos, entry.ref
FROM removed JOIN entry ON entry.id = removed.entry
WHERE (removed.tenant, removed.key, entry.pos) > (?, ?, ?)
ORDER BY removed.tenant, removed.key, entry.pos LIMIT ?;

-- removed_write: The same, written.
INSERT INTO removed (tenant, key, entry)
SELECT ?1, ?2, id FROM entry WHERE number = 0 AND ref = ?4 AND pos = ?3;

-- mail_page: Inputs that wait.
SELECT id, shard, tenant, workflow, key, input, beside, dedupe FROM mailbox
WHERE id > ? ORDER BY id LIMIT ?;

-- mail_write: The same, written, with the number it has.
INSERT INTO mailbox (id, shard, tenant, workflow, key, input, beside, dedupe)
VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- refusals_page: What senders are told.
SELECT id, mail, code, detail FROM refusal WHERE id > ? ORDER BY id LIMIT ?;

-- refusals_write: The same, written.
INSERT INTO refusal (id, mail, code, detail) VALUES (?, ?, ?, ?);

-- dispositions_page: Refused and dead inputs.
SELECT tenant, id, pos FROM entry
WHERE number = 0 AND (tenant, id) > (?, ?) ORDER BY tenant, id LIMIT ?;

-- shards_settle: Where a shard stands.
UPDATE shard SET epoch = max(epoch, ?), seq = ?, hash = ?, batch = ?, now = ? WHERE id = ?;

-- pulses_drop: Turns of cells that are no longer there lead to no head.
DELETE FROM pulse WHERE NOT EXISTS (SELECT 1 FROM cell WHERE cell.ref = pulse.ref);

-- mail_drop_last: The highest number of mail is said anew.
DELETE FROM sqlite_sequence WHERE name = 'mailbox';

-- mail_put_last: The same, written.
INSERT INTO sqlite_sequence (name, seq) VALUES ('mailbox', ?);

-- shards_clear: Nothing was ever written there.
UPDATE shard SET epoch = epoch + 1, seq = 0, hash = ?, batch = x'', now = 0 WHERE id = ?;

-- tables_clear: All that was copied goes.
DELETE FROM frame;
DELETE FROM entry;
DELETE FROM cell;
DELETE FROM pulse;
DELETE FROM attributes;
DELETE FROM search;
DELETE FROM review;
DELETE FROM definition;
DELETE FROM published;
DELETE FROM blob;
DELETE FROM cell_blob;
DELETE FROM snapshot;
DELETE FROM expiry;
DELETE FROM removed;
DELETE FROM mailbox;
DELETE FROM refusal;
