-- What a move asks of a PostgreSQL store, by name. `pawl.` stands for the schema that the URL names.
-- Pages go by key: the values of the last one, a limit.

-- meta_held: A fact about the store that nobody else changes meanwhile.
SELECT value FROM pawl.meta WHERE name = $1 FOR UPDATE;

-- meta_drop: A fact about the store is none any more.
DELETE FROM pawl.meta WHERE name = $1;

-- mover: This transaction is that of who moves the store.
SELECT set_config('pawlflow.mover', 'yes', true);

-- guard_function: Nobody posts to a store that is moved. Mail would wait there for ever.
CREATE OR REPLACE FUNCTION pawl.refuse_moved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('pawlflow.mover', true) IS DISTINCT FROM 'yes' THEN
    RAISE EXCEPTION 'the store is moved' USING ERRCODE = 'PW003',
      DETAIL = (SELECT value FROM pawl.meta WHERE name = 'move');
  END IF;
  RETURN NULL;
END
$$;

-- guard_drop: Mail is welcome again.
DROP TRIGGER IF EXISTS moved ON pawl.mailbox;

-- guard_put: It is not. Whoever posts at this moment ends first.
CREATE TRIGGER moved BEFORE INSERT ON pawl.mailbox
FOR EACH STATEMENT EXECUTE FUNCTION pawl.refuse_moved();

-- guard_forget: Nor is the function of any use.
DROP FUNCTION IF EXISTS pawl.refuse_moved();

-- sizes: How much there is.
SELECT (SELECT count(*) FROM pawl.frame) AS frames,
  (SELECT coalesce(sum(seq), 0)::int8 FROM pawl.shard) AS entries,
  (SELECT count(*) FROM pawl.definition) AS definitions,
  (SELECT count(*) FROM pawl.published) AS published,
  (SELECT count(*) FROM pawl.blob) AS blobs, (SELECT count(*) FROM pawl.cell_blob) AS mentions,
  (SELECT count(*) FROM pawl.cell) AS cells, (SELECT count(*) FROM pawl.attributes) AS attributes,
  (SELECT count(*) FROM pawl.review) AS reviews, (SELECT count(*) FROM pawl.snapshot) AS snapshots,
  (SELECT count(*) FROM pawl.mailbox) AS mail, (SELECT count(*) FROM pawl.refusal) AS refusals,
  (SELECT count(*) FROM pawl.expiry) AS expiries, (SELECT count(*) FROM pawl.removed) AS removed,
  (SELECT count(*) FROM pawl.disposition) AS dispositions;

-- search_count: Ways to find instances.
SELECT count(*) FROM pawl.search;

-- turns_loose: Turns that do not lead to the one before them.
SELECT count(*) FROM pawl.entry AS e LEFT JOIN pawl.entry AS before
ON before.pos = e.prev AND before.ref = e.ref AND before.number = e.number - 1
WHERE e.number > 1 AND before.pos IS NULL;

-- mail_last: The highest number that mail was ever given.
SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM pawl.mailbox_id_seq;

-- definitions_heavy: The sizes of the next definitions.
SELECT octet_length(data)::int8 FROM pawl.definition WHERE hash > $1 ORDER BY hash LIMIT $2;

-- definitions_page: Definitions.
SELECT hash, data FROM pawl.definition WHERE hash > $1 ORDER BY hash LIMIT $2;

-- definitions_write: The same, written.
INSERT INTO pawl.definition (hash, data) SELECT * FROM unnest($1::bytea[], $2::bytea[]);

-- published_page: Definitions under their names.
SELECT tenant, name, version, definition, at FROM pawl.published
WHERE (tenant, name, version) > ($1, $2, $3) ORDER BY tenant, name, version LIMIT $4;

-- published_write: The same, written.
INSERT INTO pawl.published (tenant, name, version, definition, at)
SELECT * FROM unnest($1::text[], $2::text[], $3::int8[], $4::bytea[], $5::int8[]);

-- blobs_heavy: The sizes of the next large payloads.
SELECT octet_length(data)::int8 FROM pawl.blob WHERE addr > $1 ORDER BY addr LIMIT $2;

-- blobs_page: Large payloads.
SELECT addr, data FROM pawl.blob WHERE addr > $1 ORDER BY addr LIMIT $2;

-- blobs_write: The same, written.
INSERT INTO pawl.blob (addr, data) SELECT * FROM unnest($1::bytea[], $2::bytea[]);

-- mentions_page: Who mentions them.
SELECT ref, addr FROM pawl.cell_blob WHERE (ref, addr) > ($1, $2) ORDER BY ref, addr LIMIT $3;

-- mentions_write: The same, written.
INSERT INTO pawl.cell_blob (ref, addr) SELECT * FROM unnest($1::int8[], $2::bytea[]);

-- frames_write: Frames.
INSERT INTO pawl.frame (pos, last, prev, root, hash, epoch, now)
SELECT w.first * 32 + w.shard, w.last, w.prev, w.root, w.hash, w.epoch, w.now
FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::bytea[], $5::bytea[], $6::bytea[], $7::int8[],
  $8::int8[]) AS w (shard, first, last, prev, root, hash, epoch, now);

-- entries_write: Entries. Where the turn before is not known, the cell knows it.
INSERT INTO pawl.entry (pos, prev, ref, number, data, hash, beside)
SELECT e.pos, coalesce(e.prev, p.last), e.ref, e.number, e.data, e.hash, e.beside
FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[], $5::bytea[], $6::bytea[], $7::bytea[])
  AS e (pos, prev, ref, number, data, hash, beside)
LEFT JOIN pawl.pulse AS p ON e.prev IS NULL AND p.ref = e.ref;

-- ends_write: The last turns of cells so far.
INSERT INTO pawl.pulse (ref, last, due_at, calls)
SELECT ref, last, NULL, 0 FROM unnest($1::int8[], $2::int8[]) AS e (ref, last)
ON CONFLICT (ref) DO UPDATE SET last = excluded.last;

-- cells_page: Heads.
SELECT * FROM pawl.head WHERE ref > $1 ORDER BY ref LIMIT $2;

-- cells_write: Heads, whose turns are there.
WITH c AS (
  SELECT * FROM unnest($1::int8[], $2::text[], $3::text[], $4::text[], $5::int8[], $6::int8[],
    $7::bytea[], $8::bytea[], $9::int8[], $10::text[], $11::text[], $12::int8[], $13::int8[],
    $14::int8[], $15::int8[], $16::int8[], $17::int8[])
  AS c (ref, tenant, workflow, key, shard, turn, hash, definition, version, state, rollback,
    created_at, started_at, closed_at, due_at, calls, quarantined)),
pulses AS (
  UPDATE pawl.pulse AS p SET due_at = c.due_at, calls = c.calls FROM c WHERE p.ref = c.ref)
INSERT INTO pawl.cell (ref, tenant, workflow, key, shard, definition, version, state, rollback,
  created_at, started_at, closed_at, quarantined)
SELECT ref, tenant, workflow, key, shard, definition, version, state, rollback, created_at,
  started_at, closed_at, quarantined <> 0 FROM c;

-- attributes_page: What instances may be found by.
SELECT a.ref, c.tenant, c.created_at, a.data FROM pawl.attributes AS a
JOIN pawl.cell AS c ON c.ref = a.ref WHERE a.ref > $1 ORDER BY a.ref LIMIT $2;

-- reviews_page: Decisions that wait.
SELECT ref, step, tenant, workflow, key, kind, role, since, due_at, show, claimed_by
FROM pawl.review WHERE (ref, step) > ($1, $2) ORDER BY ref, step LIMIT $3;

-- reviews_write: The same, written.
INSERT INTO pawl.review (ref, step, tenant, workflow, key, kind, role, since, due_at, show,
  claimed_by)
SELECT * FROM unnest($1::int8[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[],
  $7::bytea[], $8::int8[], $9::int8[], $10::bytea[], $11::bytea[]);

-- snapshots_heavy: The sizes of the next states.
SELECT (octet_length(data) + octet_length(beside))::int8 FROM pawl.snapshot
WHERE ref > $1 ORDER BY ref LIMIT $2;

-- snapshots_page: States after a turn.
SELECT ref, turn, hash, data, beside FROM pawl.snapshot WHERE ref > $1 ORDER BY ref LIMIT $2;

-- snapshots_write: The same, written.
INSERT INTO pawl.snapshot (ref, turn, hash, data, beside)
SELECT * FROM unnest($1::int8[], $2::int8[], $3::bytea[], $4::bytea[], $5::bytea[]);

-- expiries_page: Until when closed instances are kept.
SELECT ref, until FROM pawl.expiry WHERE ref > $1 ORDER BY ref LIMIT $2;

-- expiries_write: The same, written.
INSERT INTO pawl.expiry (ref, until) SELECT * FROM unnest($1::int8[], $2::int8[]);

-- removed_page: Where it says that instances were removed.
SELECT r.tenant, r.key, r.pos, e.ref FROM pawl.removed AS r JOIN pawl.entry AS e ON e.pos = r.pos
WHERE (r.tenant, r.key, r.pos) > ($1, $2, $3) ORDER BY r.tenant, r.key, r.pos LIMIT $4;

-- removed_write: The same, written.
INSERT INTO pawl.removed (tenant, key, pos)
SELECT r.tenant, r.key, r.pos
FROM unnest($1::text[], $2::text[], $3::int8[], $4::int8[]) AS r (tenant, key, pos, ref);

-- mail_heavy: The sizes of the next inputs that wait.
SELECT (octet_length(input) + octet_length(beside))::int8 FROM pawl.mailbox
WHERE id > $1 ORDER BY id LIMIT $2;

-- mail_page: Inputs that wait.
SELECT id, shard, tenant, workflow, key, input, beside, dedupe FROM pawl.mailbox
WHERE id > $1 ORDER BY id LIMIT $2;

-- mail_write: The same, written, with the number it has.
INSERT INTO pawl.mailbox (id, shard, tenant, workflow, key, input, beside, dedupe)
SELECT * FROM unnest($1::int8[], $2::int8[], $3::text[], $4::text[], $5::text[], $6::bytea[],
  $7::bytea[], $8::bytea[]);

-- refusals_page: What senders are told.
SELECT id, mail, code, detail FROM pawl.refusal WHERE id > $1 ORDER BY id LIMIT $2;

-- refusals_write: The same, written.
INSERT INTO pawl.refusal (id, mail, code, detail)
SELECT * FROM unnest($1::int8[], $2::int8[], $3::bytea[], $4::bytea[]);

-- dispositions_page: Refused and dead inputs.
SELECT tenant, id, pos FROM pawl.disposition
WHERE (tenant, id) > ($1, $2) ORDER BY tenant, id LIMIT $3;

-- dispositions_write: The same, written, in the order they had.
INSERT INTO pawl.disposition (tenant, id, pos)
SELECT * FROM unnest($1::text[], $2::int8[], $3::int8[]);

-- shards_settle: Where shards stand.
UPDATE pawl.shard AS s SET epoch = greatest(s.epoch, h.epoch), seq = h.seq, hash = h.hash,
  batch = h.batch, now = h.now
FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::bytea[], $5::bytea[], $6::int8[])
  AS h (id, epoch, seq, hash, batch, now) WHERE s.id = h.id;

-- pulses_drop: Turns of cells that are no longer there lead to no head.
DELETE FROM pawl.pulse AS p WHERE NOT EXISTS (SELECT 1 FROM pawl.cell AS c WHERE c.ref = p.ref);

-- mail_put_last: The highest number of mail is said anew.
SELECT setval('pawl.mailbox_id_seq', greatest($1::int8, 1), $1::int8 > 0);

-- numbers_put: So are those of refusals and dispositions.
SELECT setval('pawl.refusal_id_seq', greatest(m.refusal, 1), m.refusal > 0),
  setval('pawl.disposition_id_seq', greatest(m.disposition, 1), m.disposition > 0)
FROM (SELECT (SELECT coalesce(max(id), 0) FROM pawl.refusal) AS refusal,
  (SELECT coalesce(max(id), 0) FROM pawl.disposition) AS disposition) AS m;

-- shards_clear: Nothing was ever written there.
UPDATE pawl.shard AS s SET epoch = s.epoch + 1, seq = 0, hash = h.hash, batch = '', now = 0,
  owner = NULL FROM unnest($1::int8[], $2::bytea[]) AS h (id, hash) WHERE s.id = h.id;

-- tables_clear: All that was copied goes.
TRUNCATE pawl.frame, pawl.entry, pawl.disposition, pawl.cell, pawl.pulse, pawl.attributes,
  pawl.search, pawl.review, pawl.definition, pawl.published, pawl.blob, pawl.cell_blob,
  pawl.snapshot, pawl.expiry, pawl.removed, pawl.mailbox, pawl.refusal RESTART IDENTITY;
