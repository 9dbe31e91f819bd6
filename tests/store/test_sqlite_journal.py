"""What was written is what is read, or it is said which part is not."""

import re
from pathlib import Path

import pytest

from pawlflow.store import sqlite_rows
from pawlflow.store.memory import MemoryStore
from pawlflow.store.port import Entry, Snapshot
from pawlflow.store.sqlite import SqliteStore
from pawlflow.store.sqlite_rows import SQL
from pawlflow.testing.conformance_kit import ACME, Scribe, cell, digest, refused
from tests.store.kit import filled, tamper

ORDER = (ACME, "order-1")

pytestmark = pytest.mark.req("R20")


@pytest.fixture
def path(tmp_path):
    """A store with an order of three turns, closed."""
    return filled(tmp_path / "pawl.db")


@pytest.fixture
def opened():
    """Open stores that are closed at the end."""
    stores = []

    def opening(path):
        stores.append(SqliteStore(path))
        return stores[-1]

    yield opening
    for store in stores:
        store.close()


CHANGES = [
    "UPDATE shard SET hash = zeroblob(32) WHERE id = 0",
    "UPDATE shard SET seq = 2 WHERE id = 0",
    "UPDATE frame SET root = zeroblob(32) WHERE last = 3",
    "UPDATE frame SET prev = zeroblob(32) WHERE last = 3",
    "UPDATE entry SET hash = zeroblob(32) WHERE number = 3",
]


@pytest.mark.parametrize("change", CHANGES)
def test_claiming_looks_at_the_end_of_each_journal(path, opened, change):
    """A head that its last frame does not lead to stops the shard before anything is added."""
    tamper(path, change)
    store = opened(path)
    trouble = refused("store.chain", store.claim)
    assert re.search(r"shard 0 is broken at sequence [23]\b", str(trouble))
    assert store.claim([1, 2])[0].epoch == 2
    assert store.heads([0])[0].epoch == 1


def test_a_claim_that_fails_owns_nothing(path, opened):
    """The lock is given back, so that a restore can take it."""
    tamper(path, CHANGES[0])
    store = opened(path)
    refused("store.chain", store.claim)
    assert store.facts()["owner"] is None


GAPS = [
    ("DELETE FROM entry WHERE number = 3", 3),
    ("DELETE FROM entry WHERE number = 2", 2),
    ("DELETE FROM frame WHERE last = 2", 2),
    ("DELETE FROM frame WHERE last = 3", 3),
]


@pytest.mark.parametrize(("change", "seq"), GAPS)
def test_a_gap_is_named(path, opened, change, seq):
    """Frames are read from the beginning up to the gap, and no further."""
    tamper(path, change)
    store = opened(path)
    found = []
    trouble = refused("store.gap", lambda: found.extend(store.frames(0)))
    assert [written.frame.last for written in found] == [*range(1, seq)]
    assert f"shard 0 has a gap at sequence {seq}" in str(trouble)
    assert any(f"sequence {seq}" in each for each in store.integrity())


HARM = [
    ("UPDATE entry SET data = x'00' WHERE number = 2", "turn 2 does not give the hash"),
    ("UPDATE entry SET hash = zeroblob(32) WHERE number = 1", "turn 1 does not give the hash"),
    ("DELETE FROM entry WHERE number = 1", "turn 1 is missing"),
    ("DELETE FROM entry WHERE number = 3", "its last turn is missing"),
    ("DELETE FROM pulse", "its last turn is missing"),
]


@pytest.mark.parametrize(("change", "words"), HARM)
def test_a_cell_that_was_changed_is_not_given_out(path, opened, change, words):
    """Every turn is held against the chain when it is read."""
    tamper(path, change)
    store = opened(path)
    for read in (lambda: store.load([ORDER]), lambda: store.story(ORDER)):
        trouble = refused("store.damaged", read)
        assert words in str(trouble)
        assert "acme/order/order-1" in str(trouble)


def test_a_broken_chain_in_the_middle_is_found_by_integrity(path, opened):
    """Claiming looks at the end alone; the doctor reads it all."""
    tamper(path, "UPDATE frame SET prev = zeroblob(32) WHERE last = 2")
    store = opened(path)
    store.claim()
    [found] = store.integrity()
    assert "shard 0 is broken at sequence 2: it does not follow on 1" in found
    tamper(path, "DELETE FROM pulse")
    assert any("has no last turn" in each for each in store.integrity())


def test_a_sound_store_has_no_complaints(path, opened):
    """Neither at a glance nor after reading everything."""
    store = opened(path)
    assert store.quick_check() == []
    assert store.integrity() == []


def test_a_long_history_is_read_from_its_snapshot(tmp_path, opened):
    """Only the turns after it are touched, however many came before."""
    store = opened(tmp_path / "pawl.db")
    scribe = Scribe(store)
    heads = [scribe.turn(cell("order-1")) for _ in range(2_000)]
    at = heads[1_989]
    kept = Snapshot(ref=at.ref, turn=at.turn, hash=at.hash, data=b"state", beside=b"")
    scribe.commit(snapshots=[kept])
    tamper(store.path, "DELETE FROM entry WHERE number < 1990")
    image = store.load([ORDER])[ORDER]
    assert [entry.number for entry in image.entries] == list(range(1_991, 2_001))


@pytest.mark.parametrize("make", [MemoryStore, None])
def test_what_is_no_disposition_is_refused(tmp_path, opened, make):
    """An entry with number 0 says whose it is; a turn without a past cannot follow one."""
    store = make() if make else opened(tmp_path / "pawl.db")
    scribe = Scribe(store)
    scribe.refuse(cell("order-1"))
    scribe._staged[0] = [Entry(0, 0, b"\x00", digest(1))]
    refused("store.batch", scribe.commit)
    scribe.forget()
    scribe.turn(cell("order-1"))
    scribe.turn(cell("order-1"))
    del scribe._staged[0][0]
    refused("store.batch", scribe.commit)
    assert list(store.refs()) == []


def test_statements_find_their_rows_by_an_index(path, opened):
    """No question reads a whole table that grows; only those that must read everything do."""
    store = opened(path)
    everything = {"heads_broken", "closed_all", "definitions_all"}  # two for a migration
    for name, sql in SQL.items():
        if name.startswith("restore_") or name in everything:
            continue
        numbered = [int(number) for number in re.findall(r"\?(\d+)", sql)]
        values = (0,) * (max(numbered) if numbered else sql.count("?"))
        plan = [row[3] for row in store._db.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
        tables = r"\bSCAN (cell|pulse|entry|frame|mailbox|blob|snapshot|refusal|review|head)\b"
        assert not [step for step in plan if re.search(tables, step)], (name, plan)


def test_every_statement_is_used():
    """What no code calls by its name is retired and goes."""
    folder = Path(sqlite_rows.__file__).parent
    code = "".join(file.read_text() for file in (*folder.glob("sqlite*.py"), folder / "ways.py"))
    assert [name for name in SQL if f'"{name}"' not in code] == []
