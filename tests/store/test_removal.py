"""Stores of older versions: what closed before retention counted is kept as long as any other."""

import apsw
import pytest

from pawlflow.definition.canonical import definition_bytes, hash_of_bytes
from pawlflow.store.port import SHARDS
from pawlflow.store.postgres import PostgresStore
from pawlflow.store.postgres_link import connect
from pawlflow.store.postgres_schema import MIGRATIONS as SERVER
from pawlflow.store.postgres_schema import bring_up
from pawlflow.store.postgres_url import where_of
from pawlflow.store.removal import rules_of
from pawlflow.store.sqlite import SqliteStore
from pawlflow.store.sqlite_schema import MIGRATIONS as FILE
from pawlflow.store.sqlite_schema import opened
from pawlflow.testing.conformance_kit import Scribe, cell
from tests.testing.lab_kit import workflow

STEP = ("name: a, run: x.a, timeout: 1m",)
KEPT = definition_bytes(workflow("kept", "retention: {completed: 1s, failed: 2s}", steps=STEP))
PLAIN = definition_bytes(workflow("plain", steps=STEP))
DEFINITIONS = [(hash_of_bytes(data), data) for data in (KEPT, PLAIN)]
EVERY = tuple(range(SHARDS))
pytestmark = pytest.mark.req("R218")

STATES = {
    "done": (KEPT, "completed", 10_000, 11_000),
    "stopped": (KEPT, "cancelled", 10_000, 12_000),
    "failed": (KEPT, "failed", 10_000, 12_000),
    "open": (KEPT, "running", None, None),
    "always": (PLAIN, "completed", 10_000, None),
}


def write(store):
    """Instances as a version wrote them that knew nothing of retention."""
    scribe = Scribe(store)
    for key, (data, state, closed_at, _) in STATES.items():
        facts = {"definition": hash_of_bytes(data), "state": state, "closed_at": closed_at}
        scribe.turn(cell(key, workflow="kept"), **facts)
    scribe.commit(definitions=DEFINITIONS)


def kept(store):
    """Until when they are kept."""
    found = store.expiring(EVERY, (-1, 0), 9)
    return {head.cell.key: until for until, head in found}


EXPECTED = {key: until for key, (*_, until) in STATES.items() if until is not None}


def test_a_file_of_version_3_counts_for_those_that_closed_before(tmp_path):
    """One pass when it is migrated; a copy of the old file is kept."""
    path = tmp_path / "old.db"
    store = SqliteStore(path)
    write(store)
    store.close()
    db = apsw.Connection(str(path))  # back to what version 3 was
    for table in ("expiry", "removed"):
        db.execute(f"DROP TABLE {table}")
    for index in ("entry_beside", "cell_blob_addr"):
        db.execute(f"DROP INDEX {index}")
    db.pragma("user_version", 3)
    db.close()
    opened(path, busy_ms=100, migrations=FILE[:3]).close()

    store = SqliteStore(path)
    assert kept(store) == EXPECTED
    assert store.facts()["version"] == FILE[-1][0]
    store.close()
    assert (tmp_path / "old.db.v3.bak").exists()


def test_a_server_of_version_1_counts_for_those_that_closed_before(postgres):
    """The same, in the transaction of the migration; who owned it is fenced."""
    url = postgres.fresh()
    store = PostgresStore(url)
    write(store)
    schema = where_of(url).schema
    postgres.execute(f"DROP TABLE {schema}.expiry, {schema}.removed")
    postgres.execute(f"DROP INDEX {schema}.entry_beside, {schema}.disposition_pos")
    postgres.execute(f"DROP INDEX {schema}.cell_blob_addr")
    postgres.execute(f"DROP FUNCTION {schema}.remove")
    postgres.execute(f"UPDATE {schema}.meta SET value = '1' WHERE name = 'version'")
    epochs = [head.epoch for head in store.heads(EVERY)]
    store.close()
    with connect(where_of(url)) as db:
        bring_up(db, where_of(url), SERVER[:1])

    store = PostgresStore(url)
    assert kept(store) == EXPECTED
    assert [head.epoch for head in store.heads(EVERY)] == [epoch + 1 for epoch in epochs]
    store.close()


def test_a_definition_that_cannot_be_read_keeps_its_instances():
    """A migration is no place to stumble over damage: `pawl doctor` tells of it."""
    broken = [(b"1", b"\xff"), (b"2", b"\xa0"), *DEFINITIONS]
    assert sorted(rules_of(broken)) == sorted(rules_of(DEFINITIONS))
    assert [(state, ms) for _, state, ms in rules_of(DEFINITIONS)] == [
        ("completed", 1_000),
        ("failed", 2_000),
        ("cancelled", 2_000),
    ]
