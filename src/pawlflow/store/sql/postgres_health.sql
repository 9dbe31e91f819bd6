-- What `pawl doctor` asks of a PostgreSQL store, by name. `pawl.` stands for the schema.

-- clock: The time of the server, in milliseconds since 1970.
SELECT (extract(epoch FROM clock_timestamp()) * 1000)::int8;

-- backend: Who answers; a pooler gives its clients numbers of its own.
SELECT pg_backend_pid();

-- connections: How many there are, and may be.
SELECT (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
  current_setting('max_connections')::int8
    - current_setting('superuser_reserved_connections')::int8;

-- slots: Replicas that went away, for whom the server keeps its log.
SELECT slot_name::text FROM pg_replication_slots WHERE NOT active ORDER BY 1;

-- nodes: Who owns shards, how many, and for how many more milliseconds by its lease.
SELECT node.said, (SELECT count(*) FROM pawl.shard WHERE owner = node.id),
  CASE WHEN isfinite(lease_until)
    THEN greatest(0, extract(epoch FROM lease_until - clock_timestamp()) * 1000)::int8 ELSE 0 END,
  lease_until > clock_timestamp() OR EXISTS (
    SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND classid = 1348564844
      AND objid = node.lock::oid AND objsubid = 2 AND granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
FROM pawl.node WHERE EXISTS (SELECT 1 FROM pawl.shard WHERE owner = node.id) ORDER BY node.id;
