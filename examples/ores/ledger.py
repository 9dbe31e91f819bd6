"""What the services have in their tables, for whoever plays or tests: no service reads this way."""

from typing import Any

import psycopg
from examples.ores.stage import SERVICES
from psycopg.rows import dict_row

TABLES = """
SELECT table_schema AS service, table_name AS name FROM information_schema.tables
WHERE table_schema = ANY(%s) AND table_name NOT IN ('change', 'pawl_worker_commands')
ORDER BY array_position(%s, table_schema::text), table_name
"""
CHANGES = "SELECT step_id::text, instance, action, result, xact::text FROM {}.change"
HIDDEN = ("salt", "password")


def changes_of(database: str, instance: str | None = None) -> list[dict[str, Any]]:
    """What services did, in the order in which the database saw it; of one instance, or all."""
    rows: list[dict[str, Any]] = []
    with psycopg.connect(database, row_factory=dict_row) as db:
        for each in SERVICES:
            if db.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (each,)).fetchone():
                rows += [{"service": each, **row} for row in db.execute(CHANGES.format(each))]
    wanted = [each for each in rows if instance is None or each["instance"] == instance]
    ordered = sorted(wanted, key=lambda each: int(each["xact"]))
    return [{key: each[key] for key in each if key != "xact"} for each in ordered]


def tables_of(database: str) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Every table of every service, but for the ledgers of changes; what is secret is left out."""
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    names = list(SERVICES)
    with psycopg.connect(database, row_factory=dict_row) as db:
        for each in db.execute(TABLES, (names, names)).fetchall():
            rows = db.execute(f"SELECT * FROM {each['service']}.{each['name']} ORDER BY 1")
            kept = [{key: row[key] for key in row if key not in HIDDEN} for row in rows.fetchall()]
            found.setdefault(each["service"], {})[each["name"]] = kept
    return found
