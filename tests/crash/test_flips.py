"""Bits that flip and files that are cut short: a right answer, or trouble that says where."""

import asyncio
import random
from pathlib import Path
from typing import Any

import apsw
import pytest

from pawlflow.embedded import Pawl
from pawlflow.model.ids import Tenant
from pawlflow.projections.history import history
from pawlflow.projections.proof import verify_store
from pawlflow.projections.reading import story_of
from pawlflow.projections.show import show
from pawlflow.store.port import SHARDS, Filter, StoreError
from pawlflow.store.sqlite import SqliteStore
from tests.crash.stores import register, sqlite_file

TENANT = Tenant("default")
FLIPS = 300
CUTS = 40
TINY = """
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: tiny}
spec:
  timeout: 1h
  steps:
    - {name: one, run: work, with: {n: 1}}
    - {name: two, approval: {role: editor}, dependsOn: [one]}
"""


def answers(path: Path) -> Any:
    """Everything somebody can ask of a file; None if it says itself that something is wrong."""
    try:
        store = SqliteStore(path)
    except StoreError:
        return None
    try:
        if verify_store(store).differences:
            return None
        return told(store)
    except StoreError:
        return None
    finally:
        store.close()


def told(store: SqliteStore) -> list[Any]:
    """What a store says of its instances, and whom it asks."""
    heads = list(store.refs())
    listed = store.instances(Filter(tenant=TENANT))
    stories = [story_of(store, TENANT, head.cell.key) for head in listed]
    ends = [(head.seq, head.hash, head.now) for head in store.heads(range(SHARDS))]
    every = range(SHARDS)
    return [
        heads,
        listed,
        [show(story) for story in stories],
        [history(story) for story in stories],
        store.load([(TENANT, head.cell.key) for head in heads]),
        ends,
        store.due(every, (-1, 0), 100),
        store.in_flight(every, 0, 100),
        store.reviews(TENANT),
        store.published(TENANT),
        store.dispositions(TENANT, 100),
        store.mail(every, 0, 100),
    ]


def altered(path: Path, data: bytes) -> Path:
    """A file with these bytes, and no log beside it."""
    for end in ("-wal", "-shm", "-journal"):
        path.with_name(path.name + end).unlink(missing_ok=True)
    path.write_bytes(data)
    return path


def flipped(data: bytes, at: int, bit: int) -> bytes:
    """The same bytes but for one bit."""
    return data[:at] + bytes([data[at] ^ (1 << bit)]) + data[at + 1 :]


async def run_tiny(path: Path) -> None:
    """One instance, open at a gate."""
    source = path.with_suffix(".yaml")
    source.write_text(TINY)
    pawl = Pawl(f"sqlite:///{path}")
    register(pawl)
    pawl.load(source)
    async with pawl:
        run = await pawl.start("tiny", {}, id="tiny-1")
        async for told_ in run.events():
            if told_["eventType"] == "ApprovalRequested":
                return


def tiny_file(path: Path) -> Path:
    """The smallest store with something in it: pages of 512 bytes, and few of them."""
    asyncio.run(run_tiny(path))
    db = apsw.Connection(str(path))
    db.pragma("journal_mode", "delete")
    db.pragma("page_size", 512)
    db.execute("VACUUM")
    db.close()
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one of everything."""
    return sqlite_file(tmp_path_factory.mktemp("flips") / "whole.db")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with next to nothing."""
    return tiny_file(tmp_path_factory.mktemp("flips") / "tiny.db")


@pytest.mark.parametrize("seed", range(3))
def test_a_flipped_bit_gives_no_wrong_answer(tiny, tmp_path, seed):
    """Unnoticed only where nobody reads: every answer is right, or something is said."""
    data, right = tiny.read_bytes(), answers(tiny)
    assert right is not None
    chance = random.Random(seed)
    noticed = 0
    for _ in range(FLIPS // 3):
        at, bit = chance.randrange(len(data)), chance.randrange(8)
        found = answers(altered(tmp_path / "flip.db", flipped(data, at, bit)))
        assert found in (None, right), (at, bit)
        noticed += found is None
    assert noticed > FLIPS // 30


def test_a_bit_in_every_page_gives_no_wrong_answer(whole, tmp_path):
    """A store with one of everything: a bit in the head of each page, and one anywhere in it."""
    data, right = whole.read_bytes(), answers(whole)
    chance = random.Random(9)
    for page in range(0, len(data), 4096):
        for at in (page + chance.randrange(12), page + chance.randrange(4096)):
            found = answers(altered(tmp_path / "flip.db", flipped(data, at, chance.randrange(8))))
            assert found in (None, right), at


def test_a_file_that_is_cut_short_gives_no_wrong_answer(tiny, tmp_path):
    """Cut anywhere, on a page or inside one."""
    data, right = tiny.read_bytes(), answers(tiny)
    chance = random.Random(5)
    lengths = [0, 1, 99, 100, 511, len(data) - 1, *chance.sample(range(len(data)), CUTS)]
    lengths += chance.sample(range(512, len(data), 512), CUTS)
    for length in lengths:
        found = answers(altered(tmp_path / "cut.db", data[:length]))
        assert found in (None, right) or length == 0, length


@pytest.mark.slow
def test_no_flipped_bit_gives_a_wrong_answer(tiny, tmp_path):
    """A bit in every single byte of a small file."""
    data, right = tiny.read_bytes(), answers(tiny)
    chance = random.Random(1)
    for at in range(len(data)):
        found = answers(altered(tmp_path / "flip.db", flipped(data, at, chance.randrange(8))))
        assert found in (None, right), at


@pytest.mark.parametrize(
    ("index", "change"),
    [
        ("pulse_due", "UPDATE pulse SET due_at = due_at + 60000"),
        ("pulse_due", "UPDATE pulse SET due_at = NULL"),
        ("pulse_calls", "UPDATE pulse SET calls = 0"),
    ],
)
def test_an_index_that_is_not_of_its_table_is_found(tiny, tmp_path, index, change):
    """A deadline or a call that is found where it is not: its cell is named."""
    path = altered(tmp_path / "lags.db", tiny.read_bytes())
    behind(path, index, "UPDATE pulse SET calls = 1", change)
    store = SqliteStore(path)
    every = range(SHARDS)
    with pytest.raises(StoreError, match=r"tiny-1|registry"):
        store.due(every, (-1, 0), 100) if index == "pulse_due" else store.in_flight(every, 0, 100)
    store.close()


def behind(path: Path, index: str, before: str, change: str) -> None:
    """Change a table while SQLite does not know of one of its indexes."""
    kept: list[Any] = []
    for forget in (True, False):
        db = apsw.Connection(str(path))
        if forget:
            db.execute(before)
        db.pragma("writable_schema", 1)
        if forget:
            named = "FROM sqlite_schema WHERE name = ?"
            kept = db.execute(f"SELECT * {named}", (index,)).fetchall()
            db.execute(f"DELETE {named}", (index,))
        else:
            db.executemany("INSERT INTO sqlite_schema VALUES (?, ?, ?, ?, ?)", kept)
        db.pragma("schema_version", db.pragma("schema_version") + 1)
        db.close()
        if forget:
            db = apsw.Connection(str(path))
            db.execute(change)
            db.close()
