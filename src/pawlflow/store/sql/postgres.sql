-- Every statement of the PostgreSQL store by name. `pawl.` stands for the schema that the URL names.

-- meta: Facts about the store.
SELECT name, value FROM pawl.meta;

-- meta_put: The same, written.
INSERT INTO pawl.meta (name, value) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- shard_add: Shards nobody has owned yet.
INSERT INTO pawl.shard (id, epoch, seq, hash, batch, now)
SELECT id, 0, 0, hash, '', 0 FROM unnest($1::int8[], $2::bytea[]) AS s (id, hash);

-- shards: Where these shards stand.
SELECT id, epoch, seq, hash, batch, now FROM pawl.shard WHERE id = ANY ($1::int8[]);

-- shards_held: The same; whoever is writing them ends first, and nobody begins.
SELECT id, epoch, seq, hash, batch, now FROM pawl.shard WHERE id = ANY ($1::int8[])
ORDER BY id FOR UPDATE;

-- shards_fence: Owners of an older version stop.
UPDATE pawl.shard SET epoch = epoch + 1;

-- shard_claim: A new owner.
UPDATE pawl.shard SET epoch = epoch + 1, owner = $2, link = $3 WHERE id = ANY ($1::int8[])
RETURNING id, epoch, seq, hash, batch, now;

-- shard_link: The owner has another connection; what it sent through the last one is over.
UPDATE pawl.shard AS s SET link = $3 FROM unnest($1::int8[], $2::int8[]) AS mine (id, epoch)
WHERE s.id = mine.id AND s.epoch = mine.epoch;

-- shard_free: Nobody owns these any more.
WITH gone AS (DELETE FROM pawl.node WHERE id = $1)
UPDATE pawl.shard SET owner = NULL WHERE owner = $1;

-- shards_free: Nobody owns some of these any more.
UPDATE pawl.shard SET owner = NULL WHERE owner = $1 AND id = ANY ($2::int8[]);

-- shards_unowned: Which of these has no owner who is alive, or this one?
SELECT id FROM pawl.shard WHERE id = ANY ($1::int8[])
  AND (owner IS NULL OR owner = $2 OR owner NOT IN (SELECT id FROM pawl.node_alive));

-- node_put: Who owns them, for as long as the lease runs; those without a shard are forgotten.
WITH gone AS (
  DELETE FROM pawl.node
  WHERE id <> $1 AND NOT EXISTS (SELECT 1 FROM pawl.shard WHERE owner = node.id)
    AND (NOT shares OR lease_until < clock_timestamp() - interval '1 minute'))
INSERT INTO pawl.node (id, lock, said, lease_until, shares)
VALUES ($1, $2, $3, clock_timestamp() + interval '5 seconds', $4)
ON CONFLICT (id) DO UPDATE SET lease_until = excluded.lease_until;

-- node_view: Say that this node is alive, unless it is not sure. Was its lease running, who else is
-- alive and shares, until when at least, and who of those alive owns which shard?
WITH renewed AS (
  INSERT INTO pawl.node (id, lock, said, lease_until, shares)
  SELECT $1, $2, $3, clock_timestamp() + interval '5 seconds', true WHERE $4::boolean
  ON CONFLICT (id) DO UPDATE SET lease_until = excluded.lease_until)
SELECT EXISTS (SELECT 1 FROM pawl.node_alive WHERE id = $1),
  ARRAY(SELECT id FROM pawl.node_alive WHERE shares AND id <> $1 ORDER BY id),
  (SELECT extract(epoch FROM min(lease_until) - clock_timestamp())::float8
   FROM pawl.node_alive WHERE shares AND id <> $1),
  ARRAY(SELECT CASE WHEN owner = $1 OR owner IN (SELECT id FROM pawl.node_alive) THEN owner END
        FROM pawl.shard ORDER BY id);

-- node_lease: The lease runs on, for who has no connection to be known by.
UPDATE pawl.node SET lease_until = clock_timestamp() + interval '5 seconds' WHERE id = $1;

-- node_listens: The lock says from now on whether it is alive.
UPDATE pawl.node SET lease_until = '-infinity' WHERE id = $1;

-- node_alive: Who owns shards now, and is alive.
SELECT id, said FROM pawl.node_alive AS node
WHERE EXISTS (SELECT 1 FROM pawl.shard WHERE owner = node.id) LIMIT 1;

-- frames_last: The last frame of each of these shards, whose journals end there.
SELECT s.id, f.pos / 32, f.last, f.prev, f.root, f.hash, f.epoch, f.now
FROM unnest($1::int8[], $2::int8[]) AS s (id, seq)
CROSS JOIN LATERAL (
  SELECT * FROM pawl.frame WHERE pos <= s.seq * 32 + s.id AND pos % 32 = s.id
  ORDER BY pos DESC LIMIT 1) AS f;

-- hashes_at: The hashes of entries by their places.
SELECT pos, hash FROM pawl.entry WHERE pos = ANY ($1::int8[]);

-- frames_on: Some frames of a shard, one after the other, from the position of the first.
WITH RECURSIVE f (pos, last, prev, root, hash, epoch, now) AS (
  SELECT * FROM pawl.frame WHERE pos = $1
  UNION ALL
  SELECT next.* FROM f JOIN pawl.frame AS next ON next.pos = (f.last + 1) * 32 + f.pos % 32
)
SELECT pos, last, prev, root, hash, epoch, now FROM f LIMIT $2;

-- entries_on: The entries of a shard from one position to another, in order.
SELECT e.ref, e.number, e.data, e.hash, e.beside
FROM generate_series($1::int8, $2::int8, 32) AS at JOIN pawl.entry AS e ON e.pos = at
ORDER BY e.pos;

-- plainly: Follow the indexes, whatever is known of the tables yet.
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
  set_config('enable_mergejoin', 'off', true), set_config('enable_bitmapscan', 'off', true);

-- heads_by_address: The cells with these ids in their tenants.
SELECT head.* FROM unnest($1::text[], $2::text[]) AS a (tenant, key)
JOIN pawl.head ON head.tenant = a.tenant COLLATE "C" AND head.key = a.key COLLATE "C";

-- snapshots_of: The states that were kept of these cells.
SELECT s.ref, s.turn, s.hash, s.data, s.beside
FROM unnest($1::text[], $2::text[]) AS a (tenant, key)
JOIN pawl.cell AS c ON c.tenant = a.tenant COLLATE "C" AND c.key = a.key COLLATE "C"
JOIN pawl.snapshot AS s ON s.ref = c.ref;

-- turns_back: The turns of these cells, from the last one back to a number, or to the state kept.
WITH RECURSIVE turn (first, prev, ref, number, data, hash, beside) AS (
  SELECT coalesce($3::int8, s.turn, 1), e.prev, e.ref, e.number, e.data, e.hash, e.beside
  FROM unnest($1::text[], $2::text[]) AS a (tenant, key)
  JOIN pawl.cell AS c ON c.tenant = a.tenant COLLATE "C" AND c.key = a.key COLLATE "C"
  JOIN pawl.pulse AS p ON p.ref = c.ref
  JOIN pawl.entry AS e ON e.pos = p.last
  LEFT JOIN pawl.snapshot AS s ON s.ref = c.ref
  WHERE e.number >= coalesce($3::int8, 1)
  UNION ALL
  SELECT turn.first, e.prev, e.ref, e.number, e.data, e.hash, e.beside
  FROM turn JOIN pawl.entry AS e ON e.pos = turn.prev AND e.number < turn.number
  WHERE turn.number > turn.first
)
SELECT ref, number, data, hash, beside FROM turn ORDER BY ref, number;

-- blobs_of: The large payloads these cells mention, as far as they were not erased.
SELECT m.ref, b.addr, b.data
FROM unnest($1::text[], $2::text[]) AS a (tenant, key)
JOIN pawl.cell AS c ON c.tenant = a.tenant COLLATE "C" AND c.key = a.key COLLATE "C"
JOIN pawl.cell_blob AS m ON m.ref = c.ref
JOIN pawl.blob AS b ON b.addr = m.addr;

-- heads_at: Cells by their refs.
SELECT head.* FROM unnest($1::int8[]) AS at (ref) JOIN pawl.head ON head.ref = at.ref;

-- heads_after: Cells by ref.
SELECT * FROM pawl.head WHERE ref > $1 ORDER BY ref LIMIT $2;

-- heads_due: Cells with a deadline, earliest first.
SELECT head.* FROM (
  SELECT p.ref, p.due_at FROM pawl.pulse AS p JOIN pawl.cell AS c ON c.ref = p.ref
  WHERE p.due_at IS NOT NULL AND (p.due_at, p.ref) > ($1, $2) AND c.shard = ANY ($3::int8[])
  ORDER BY p.due_at, p.ref LIMIT $4) AS due
JOIN pawl.head ON head.ref = due.ref ORDER BY due.due_at, due.ref;

-- heads_in_flight: Cells with calls in flight, by ref.
SELECT head.* FROM (
  SELECT p.ref FROM pawl.pulse AS p JOIN pawl.cell AS c ON c.ref = p.ref
  WHERE p.calls > 0 AND p.ref > $1 AND c.shard = ANY ($2::int8[]) ORDER BY p.ref LIMIT $3) AS open
JOIN pawl.head ON head.ref = open.ref ORDER BY open.ref;

-- heads_broken: Cells whose last turn is not there.
SELECT ref FROM pawl.head WHERE turn IS NULL ORDER BY ref LIMIT 100;

-- heads_of_system: System cells of one kind by key, highest first: their keys begin with it.
SELECT head.* FROM (
  SELECT ref, key FROM pawl.cell
  WHERE tenant = $1 AND key >= $2 AND key < $3 AND workflow = $2 ORDER BY key DESC LIMIT $4) AS c
JOIN pawl.head ON head.ref = c.ref ORDER BY c.key DESC;

-- kinds: Every workflow and state that instances of a tenant have, found by leaps in the index.
WITH RECURSIVE kind (workflow, state) AS (
  (SELECT workflow, state FROM pawl.cell WHERE tenant = $1 AND left(workflow, 1) <> '$'
   ORDER BY workflow, state LIMIT 1)
  UNION ALL
  SELECT next.workflow, next.state FROM kind CROSS JOIN LATERAL (
    SELECT workflow, state FROM pawl.cell
    WHERE tenant = $1 AND left(workflow, 1) <> '$'
      AND (workflow, state) > (kind.workflow, kind.state)
    ORDER BY workflow, state LIMIT 1) AS next
)
SELECT workflow, state FROM kind;

-- places_of_kind: Instances of one workflow in one state by age, newest first.
SELECT created_at, ref FROM pawl.cell
WHERE tenant = $1 AND workflow = $2 AND state = $3 AND left(workflow, 1) <> '$'
  AND (created_at, ref) > ($4, $5) AND (created_at, ref) < ($6, $7)
ORDER BY created_at DESC, ref DESC LIMIT $8;

-- places_closed: Instances that were over between two times.
SELECT created_at, ref FROM pawl.cell
WHERE tenant = $1 AND closed_at IS NOT NULL AND closed_at BETWEEN $2 AND $3 LIMIT $4;

-- places_delayed: Instances that began between two times, and later than they were created.
SELECT created_at, ref FROM pawl.cell
WHERE tenant = $1 AND started_at BETWEEN $2 AND $3 AND started_at > created_at LIMIT $4;

-- places_found: Instances by an attribute: highest value first, then newest first.
SELECT at, ref FROM pawl.search
WHERE tenant = $1 AND name = $2
  AND (kind, number, text, at, ref) > ($3, $4::numeric, $5::bytea, $6, $7)
  AND (kind, number, text, at, ref) < ($8, $9::numeric, $10::bytea, $11, $12)
ORDER BY kind DESC, number DESC, text DESC, at DESC, ref DESC LIMIT $13;

-- attributes_of: All that some instances may be found by.
SELECT ref, data FROM pawl.attributes WHERE ref = ANY ($1::int8[]);

-- attribute_names: Every name that instances of a tenant may be found by, found by leaps.
WITH RECURSIVE known (name) AS (
  (SELECT name FROM pawl.search WHERE tenant = $1 ORDER BY name LIMIT 1)
  UNION ALL
  SELECT next.name FROM known CROSS JOIN LATERAL (
    SELECT name FROM pawl.search WHERE tenant = $1 AND name > known.name ORDER BY name LIMIT 1
  ) AS next
)
SELECT name FROM known;

-- reviews: What waits in a tenant, oldest first.
SELECT ref, step, tenant, workflow, key, kind, role, since, due_at, show, claimed_by
FROM pawl.review WHERE tenant = $1 ORDER BY since, ref, step;

-- published: Every name and version of a tenant, newest first.
SELECT tenant, name, version, definition, at FROM pawl.published
WHERE tenant = $1 ORDER BY name, version DESC;

-- definitions: Definitions by their hashes.
SELECT hash, data FROM pawl.definition WHERE hash = ANY ($1::bytea[]);

-- dispositions: Refused and dead inputs of a tenant, newest first.
SELECT e.pos, e.ref, e.number, e.data, e.hash, e.beside FROM (
  SELECT id, pos FROM pawl.disposition WHERE tenant = $1 ORDER BY id DESC LIMIT $2) AS d
JOIN pawl.entry AS e ON e.pos = d.pos ORDER BY d.id DESC;

-- mail: Mail of some shards after an id, oldest first, and what was not yet to be seen when it was
-- looked at last; with the moment of this look.
WITH waits AS (
  (SELECT * FROM pawl.mailbox WHERE id > $1 AND shard = ANY ($2::int8[]) ORDER BY id LIMIT $3)
  UNION ALL
  (SELECT * FROM pawl.mailbox
   WHERE xid >= pg_snapshot_xmin($4::pg_snapshot) AND id <= $1 AND shard = ANY ($2::int8[])
     AND NOT pg_visible_in_snapshot(xid, $4::pg_snapshot) AND NOT id = ANY ($5::int8[])
   ORDER BY id LIMIT $3)
)
SELECT look.moment, m.id, m.shard, m.tenant, m.workflow, m.key, m.input, m.beside, m.dedupe
FROM (SELECT pg_current_snapshot()::text AS moment) AS look
LEFT JOIN (SELECT * FROM waits ORDER BY id LIMIT $3) AS m ON true ORDER BY m.id;

-- mail_lines: Whose mail it is: the same, without what it says.
WITH waits AS (
  (SELECT id, tenant FROM pawl.mailbox WHERE id > $1 AND shard = ANY ($2::int8[])
   ORDER BY id LIMIT $3)
  UNION ALL
  (SELECT id, tenant FROM pawl.mailbox
   WHERE xid >= pg_snapshot_xmin($4::pg_snapshot) AND id <= $1 AND shard = ANY ($2::int8[])
     AND NOT pg_visible_in_snapshot(xid, $4::pg_snapshot) AND NOT id = ANY ($5::int8[])
   ORDER BY id LIMIT $3)
)
SELECT look.moment, m.id, m.tenant
FROM (SELECT pg_current_snapshot()::text AS moment) AS look
LEFT JOIN (SELECT * FROM waits ORDER BY id LIMIT $3) AS m ON true ORDER BY m.id;

-- mail_by_id: Mail of some shards by its ids.
SELECT id, shard, tenant, workflow, key, input, beside, dedupe FROM pawl.mailbox
WHERE id = ANY ($1::int8[]) AND shard = ANY ($2::int8[]) ORDER BY id;

-- mail_posted: How much mail of a tenant waits whose key begins so.
SELECT count(*) FROM (
  SELECT 1 FROM pawl.mailbox
  WHERE tenant = $1 AND dedupe >= $2::bytea AND dedupe < $2::bytea || '\xff'::bytea
  LIMIT $3) AS waits;

-- answer: Does this mail wait, was it refused, and what is the highest id that was ever given?
SELECT EXISTS (SELECT 1 FROM pawl.mailbox WHERE id = $1), refusal.code, refusal.detail,
  (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM pawl.mailbox_id_seq)
FROM (SELECT 1) AS one LEFT JOIN pawl.refusal ON refusal.mail = $1;

-- poke: Tell whoever owns these shards, or any, that there is mail.
SELECT pg_notify($1, $2);

-- answers: The same of many.
SELECT asked.id, EXISTS (SELECT 1 FROM pawl.mailbox WHERE id = asked.id), refusal.code,
  refusal.detail
FROM unnest($1::int8[]) AS asked (id) LEFT JOIN pawl.refusal ON refusal.mail = asked.id;

-- append: The journal's part of a flush.
pawl.append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19,
  $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38,
  $39, $40, $41, $42, $43, $44, $45);

-- take: Mail is consumed.
pawl.take($1, $2, $3, $4);

-- post: Mail, unless mail of the tenant with the same key waits.
pawl.post($1, $2, $3, $4, $5, $6, $7);

-- reviews_put: Decisions wait.
INSERT INTO pawl.review (ref, step, tenant, workflow, key, kind, role, since, due_at, show,
  claimed_by)
SELECT * FROM unnest($1::int8[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[],
  $7::bytea[], $8::int8[], $9::int8[], $10::bytea[], $11::bytea[])
ON CONFLICT (ref, step) DO UPDATE SET tenant = excluded.tenant, workflow = excluded.workflow,
  key = excluded.key, kind = excluded.kind, role = excluded.role, since = excluded.since,
  due_at = excluded.due_at, show = excluded.show, claimed_by = excluded.claimed_by;

-- reviews_drop: They no longer do.
DELETE FROM pawl.review AS r USING unnest($1::int8[], $2::text[]) AS gone (ref, step)
WHERE r.ref = gone.ref AND r.step = gone.step COLLATE "C";

-- attributes_add: All that new instances may be found by.
INSERT INTO pawl.attributes (ref, data) SELECT * FROM unnest($1::int8[], $2::bytea[]);

-- search_add: Ways to find them.
INSERT INTO pawl.search (tenant, name, kind, number, text, at, ref)
SELECT s.tenant, s.name, s.kind, s.number::numeric, s.text, s.at, s.ref
FROM unnest($1::text[], $2::text[], $3::int8[], $4::text[], $5::bytea[], $6::int8[], $7::int8[])
  AS s (tenant, name, kind, number, text, at, ref);

-- published_put: Definitions under their names.
INSERT INTO pawl.published (tenant, name, version, definition, at)
SELECT * FROM unnest($1::text[], $2::text[], $3::int8[], $4::bytea[], $5::int8[])
ON CONFLICT (tenant, name, version) DO UPDATE SET definition = excluded.definition,
  at = excluded.at;

-- definitions_add: Definitions, each once.
INSERT INTO pawl.definition (hash, data) SELECT * FROM unnest($1::bytea[], $2::bytea[])
ON CONFLICT DO NOTHING;

-- blobs_add: Large payloads, each once; whoever removes some waits, or is waited for.
WITH held AS MATERIALIZED (
  SELECT pg_advisory_xact_lock_shared(
    1348564845, 'pawl.blob'::regclass::oid::int8::bit(32)::int4))
INSERT INTO pawl.blob (addr, data)
SELECT b.addr, b.data FROM held, unnest($1::bytea[], $2::bytea[]) AS b (addr, data)
ON CONFLICT DO NOTHING;

-- mentions_add: Cells mention large payloads.
INSERT INTO pawl.cell_blob (ref, addr) SELECT * FROM unnest($1::int8[], $2::bytea[])
ON CONFLICT DO NOTHING;

-- expiry_put: Closed cells are kept until then.
INSERT INTO pawl.expiry (ref, until) SELECT * FROM unnest($1::int8[], $2::int8[])
ON CONFLICT (ref) DO UPDATE SET until = excluded.until;

-- expiry_fill: Those that closed before it counted, by definition and outcome.
INSERT INTO pawl.expiry (ref, until)
SELECT c.ref, c.closed_at + r.ms
FROM unnest($1::bytea[], $2::text[], $3::int8[]) AS r (definition, state, ms)
JOIN pawl.cell AS c ON c.definition = r.definition AND c.state = r.state COLLATE "C"
WHERE c.closed_at IS NOT NULL ON CONFLICT DO NOTHING;

-- definitions_all: Every definition.
SELECT hash, data FROM pawl.definition;

-- expiring: Closed cells by until when they are kept.
SELECT due.until, head.* FROM (
  SELECT x.ref, x.until FROM pawl.expiry AS x JOIN pawl.cell AS c ON c.ref = x.ref
  WHERE (x.until, x.ref) > ($1, $2) AND c.shard = ANY ($3::int8[])
  ORDER BY x.until, x.ref LIMIT $4) AS due
JOIN pawl.head ON head.ref = due.ref ORDER BY due.until, due.ref;

-- removed: The last entry that says that a cell with this id was removed.
SELECT e.pos, e.ref, e.number, e.data, e.hash, e.beside
FROM pawl.removed AS r JOIN pawl.entry AS e ON e.pos = r.pos
WHERE r.tenant = $1 AND r.key = $2 ORDER BY r.pos DESC LIMIT 1;

-- beside: The dispositions of a cell, oldest first.
SELECT e.pos, e.ref, e.number, e.data, e.hash, e.beside FROM pawl.entry AS e
WHERE e.number = 0 AND e.ref = $1 ORDER BY e.pos;

-- frame_with: The frame of a shard that may hold a position.
SELECT f.pos, f.last, f.prev, f.root, f.hash, f.epoch, f.now FROM pawl.frame AS f
WHERE f.pos <= $1 AND f.pos % 32 = $2 ORDER BY f.pos DESC LIMIT 1;

-- remove: All that cells can be asked for goes, and the bytes of their entries.
pawl.remove($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

-- snapshots_put: The states of cells after a turn.
INSERT INTO pawl.snapshot (ref, turn, hash, data, beside)
SELECT * FROM unnest($1::int8[], $2::int8[], $3::bytea[], $4::bytea[], $5::bytea[])
ON CONFLICT (ref) DO UPDATE SET turn = excluded.turn, hash = excluded.hash, data = excluded.data,
  beside = excluded.beside;

-- facts: What an operator may want to know.
SELECT current_setting('server_version'), current_database(), current_setting('fsync'),
  current_setting('synchronous_commit'), current_setting('full_page_writes'),
  current_setting('synchronous_standby_names'), (SELECT count(*) FROM pg_stat_replication),
  (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::int8
   FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
   WHERE n.nspname = $1 AND c.relkind = 'r');
