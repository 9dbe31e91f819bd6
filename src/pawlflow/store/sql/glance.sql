-- Names for completion at a terminal: each statement is answered by an index, or from the end of a table.

-- newest_ids: Instances that were made last.
SELECT key FROM (SELECT tenant, workflow, key, ref FROM cell ORDER BY ref DESC LIMIT 2000)
WHERE tenant = ?1 AND substr(workflow, 1, 1) <> '$' ORDER BY ref DESC LIMIT ?4;

-- ids: Instances by the beginning of their ids.
SELECT key FROM cell WHERE tenant = ?1 AND key >= ?2 AND key < ?3 AND substr(workflow, 1, 1) <> '$'
ORDER BY key LIMIT ?4;

-- system: System cells of a kind, by the beginning of their keys.
SELECT key FROM cell WHERE tenant = ?1 AND key >= ?2 AND key < ?3 ORDER BY key LIMIT ?4;

-- workflow: Workflows by the beginning of their names.
SELECT DISTINCT name FROM published WHERE tenant = ?1 AND name >= ?2 AND name < ?3
ORDER BY name LIMIT ?4;

-- review: Open reviews, oldest first.
SELECT key || '/' || step FROM review
WHERE tenant = ?1 AND key || '/' || step >= ?2 AND key || '/' || step < ?3 ORDER BY since LIMIT ?4;

-- role: Roles that open reviews ask for.
SELECT DISTINCT role FROM review WHERE tenant = ?1 AND role >= ?2 AND role < ?3
ORDER BY role LIMIT ?4;

-- tenant: Tenants that have published something.
SELECT DISTINCT tenant FROM published WHERE tenant >= ?2 AND tenant < ?3 ORDER BY tenant LIMIT ?4;

-- definition: What an instance runs under.
SELECT definition.data FROM cell JOIN definition ON definition.hash = cell.definition
WHERE cell.tenant = ?1 AND cell.key = ?2;

-- policy: The turns of the cell that knows a tenant's policies, newest first, each by its key.
WITH RECURSIVE turn (prev, number, data) AS (
  SELECT entry.prev, entry.number, entry.data
  FROM cell JOIN pulse ON pulse.ref = cell.ref JOIN entry ON entry.id = pulse.last
  WHERE cell.tenant = ?1 AND cell.key = '$policies'
  UNION ALL
  SELECT entry.prev, entry.number, entry.data
  FROM turn JOIN entry ON entry.id = turn.prev AND entry.number < turn.number
)
SELECT data FROM turn;
