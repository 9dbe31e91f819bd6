-- Version 2 of a PostgreSQL store. Never edited once released: a change is a migration of its own.

-- Closed instances that are kept only until some time.
CREATE TABLE pawl.expiry (
  ref int8 PRIMARY KEY,
  until int8 NOT NULL
);
CREATE INDEX expiry_until ON pawl.expiry (until, ref);

-- The entries that say which instances were removed, by what they were called. The bytes of their
-- other entries are empty; the hashes stay.
CREATE TABLE pawl.removed (
  tenant text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  pos int8 NOT NULL,
  PRIMARY KEY (tenant, key, pos)
);

-- What lies beside the turns of a cell, and who else mentions a large payload.
CREATE INDEX entry_beside ON pawl.entry (ref, pos) WHERE number = 0;
CREATE INDEX disposition_pos ON pawl.disposition (pos);
CREATE INDEX cell_blob_addr ON pawl.cell_blob (addr);

-- Take out all that cells can be asked for (r), and the bytes of their entries; what they were found
-- by (s) and where it says so (r_pos) is known already. Whoever adds large payloads holds the same
-- advisory lock with others: a payload must not go while somebody begins to mention it.
CREATE FUNCTION pawl.remove(
  r_ref int8[], r_tenant text[], r_key text[], r_hash bytea[], r_pos int8[],
  s_tenant text[], s_name text[], s_kind int8[], s_number text[], s_text bytea[], s_at int8[],
  s_ref int8[]
) RETURNS void LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
  _wrong int8;
BEGIN
  PERFORM pg_advisory_xact_lock(1348564845, 'pawl.blob'::regclass::oid::int8::bit(32)::int4);
  SELECT min(r.ref) INTO _wrong
  FROM unnest(r_ref, r_tenant, r_key, r_hash) AS r (ref, tenant, key, hash)
  LEFT JOIN pawl.head ON head.ref = r.ref
  WHERE head.ref IS NULL OR head.hash <> r.hash
    OR head.tenant <> r.tenant COLLATE "C" OR head.key <> r.key COLLATE "C";
  IF _wrong IS NOT NULL THEN
    RAISE EXCEPTION 'cell % is removed, and is not as its head says', _wrong
    USING ERRCODE = 'PW002';
  END IF;
  WITH RECURSIVE turn (pos, prev, number) AS (
    SELECT e.pos, e.prev, e.number
    FROM unnest(r_ref) AS r (ref) JOIN pawl.pulse AS p ON p.ref = r.ref
    JOIN pawl.entry AS e ON e.pos = p.last
    UNION ALL
    SELECT e.pos, e.prev, e.number
    FROM turn JOIN pawl.entry AS e ON e.pos = turn.prev AND e.number < turn.number
  )
  UPDATE pawl.entry AS e SET data = '', beside = '' FROM turn WHERE e.pos = turn.pos;
  DELETE FROM pawl.disposition WHERE pos IN (
    SELECT e.pos FROM unnest(r_ref) AS r (ref) JOIN pawl.entry AS e ON e.ref = r.ref
    WHERE e.number = 0);
  UPDATE pawl.entry AS e SET data = '', beside = ''
  FROM unnest(r_ref) AS r (ref) WHERE e.ref = r.ref AND e.number = 0;
  DELETE FROM pawl.blob AS b USING (
    SELECT DISTINCT m.addr FROM unnest(r_ref) AS r (ref) JOIN pawl.cell_blob AS m ON m.ref = r.ref
    WHERE NOT EXISTS (
      SELECT 1 FROM pawl.cell_blob AS other
      WHERE other.addr = m.addr AND NOT other.ref = ANY (r_ref))) AS gone
  WHERE b.addr = gone.addr;
  DELETE FROM pawl.cell_blob WHERE ref = ANY (r_ref);
  DELETE FROM pawl.search AS old
  USING unnest(s_tenant, s_name, s_kind, s_number, s_text, s_at, s_ref)
    AS s (tenant, name, kind, number, text, at, ref)
  WHERE old.tenant = s.tenant COLLATE "C" AND old.name = s.name COLLATE "C" AND old.kind = s.kind
    AND old.number = s.number::numeric AND old.text = s.text AND old.at = s.at AND old.ref = s.ref;
  DELETE FROM pawl.attributes WHERE ref = ANY (r_ref);
  DELETE FROM pawl.snapshot WHERE ref = ANY (r_ref);
  DELETE FROM pawl.review WHERE ref = ANY (r_ref);
  DELETE FROM pawl.expiry WHERE ref = ANY (r_ref);
  DELETE FROM pawl.pulse WHERE ref = ANY (r_ref);
  DELETE FROM pawl.cell WHERE ref = ANY (r_ref);
  INSERT INTO pawl.removed (tenant, key, pos)
  SELECT r.tenant, r.key, r.pos FROM unnest(r_tenant, r_key, r_pos) AS r (tenant, key, pos);
END
$$;
