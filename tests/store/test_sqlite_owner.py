"""One owner per file, while everybody else reads and posts."""

import fcntl
import os
import subprocess
import sys

import pytest

from pawlflow.store.sqlite import SqliteStore
from pawlflow.store.sqlite_owner import Ownership, beside, owner
from pawlflow.testing.conformance_kit import ACME, Scribe, cell, letter, refused
from tests.store.kit import OtherProcess, filled, unprivileged

pytestmark = pytest.mark.req("R228")


@pytest.fixture
def path(tmp_path):
    """Where the store lies."""
    return tmp_path / "pawl.db"


@pytest.fixture
def other(path):
    """Another process that owns the store."""
    other = OtherProcess(path)
    yield other
    other.finish()


def test_a_second_process_cannot_claim(path, other):
    """It is told who owns the store."""
    store = SqliteStore(path)
    trouble = refused("store.owned", store.claim)
    assert str(other.pid) in str(trouble)
    assert owner(path) == other.pid
    assert store.facts()["owner"] == other.pid
    store.close()


def test_a_second_process_reads_and_posts(path, other):
    """Beside an owner that writes, with no lock in the way."""
    store = SqliteStore(path)
    [mail] = store.post([letter(cell("order-1"))])
    other.turn("order-1")
    other.turn("order-2")
    assert [head.cell.key for head in store.refs()] == ["order-1", "order-2"]
    assert [each.id for each in store.mail(range(32), 0, 10)] == [mail]
    assert store.answer(mail) is None
    assert store.load([(ACME, "order-1")])[ACME, "order-1"].head.turn == 1
    store.close()


READER = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute('SELECT 1 FROM entry')"


@pytest.mark.req("R151")
def test_a_program_of_somebody_else_takes_no_log_away(path):
    """Any SQLite may read beside an owner, however many handles that has, and hang up.

    The last to hang up empties the log and removes it. That an owner is there it learns by a lock,
    which a process loses when it closes the file by any way but SQLite's.
    """
    store = SqliteStore(path)
    scribe = Scribe(store)
    scribe.turn(cell("order-1"))
    scribe.commit()
    second = SqliteStore(path)
    log = path.with_name("pawl.db-wal")
    before = log.stat().st_ino

    subprocess.run([sys.executable, "-c", f"{READER}; db.close()", str(path)], check=True)

    assert log.stat().st_ino == before
    scribe.turn(cell("order-2"))
    scribe.commit()
    assert [head.cell.key for head in second.refs()] == ["order-1", "order-2"]
    second.close()
    store.close()


@pytest.mark.req("R151")
def test_a_killed_owner_does_not_block_the_next(path, other):
    """The kernel takes the lock back; what was committed is there, and the epoch is higher."""
    other.turn("order-1")
    other.kill()
    assert owner(path) is None
    store = SqliteStore(path)
    heads = store.claim()
    assert (heads[0].epoch, heads[0].seq) == (2, 1)
    assert owner(path) == os.getpid()
    store.close()


def test_closing_gives_the_file_back(path):
    """In the same process too; what is not held cannot be given back twice."""
    first, second = SqliteStore(path), SqliteStore(path)
    first.claim()
    refused("store.owned", second.claim)
    first.claim()
    first.close()
    first.close()
    assert owner(path) is None
    assert second.claim()[0].epoch == 3
    second.close()


@pytest.mark.req("R151")
def test_a_stale_owner_writes_nothing(path):
    """Even one that lost its file and did not notice: its fence is old."""
    stale = SqliteStore(path)
    scribe = Scribe(stale)
    scribe.turn(cell("order-1"))
    stale._owning.release()
    store = SqliteStore(path)
    store.claim()
    refused("store.fenced", scribe.commit)
    assert list(store.refs()) == []
    store.close()
    stale.close()


def test_a_lock_that_may_not_be_opened_is_named():
    """It was made by another user: who may write to the store must be let in there too."""
    with unprivileged() as folder:
        path = filled(folder / "pawl.db")
        beside(path).chmod(0)
        store = SqliteStore(path)
        assert "claiming" in str(refused("store.read_only", store.claim))
        store.close()


def test_who_looks_is_nobody(path):
    """A file without a lock, or with a note that nobody wrote, has no owner that can be named."""
    assert owner(path) is None
    filled(path)
    assert owner(path) is None
    held = Ownership(path)
    beside(path).write_bytes(b"")
    assert owner(path) == 0
    trouble = refused("store.owned", lambda: Ownership(path))
    assert "process 0" in str(trouble)
    held.release()


def test_who_looks_does_not_keep_an_owner_out(path, monkeypatch):
    """A look holds the lock for a moment, shared; the owner tries again."""
    filled(path)
    looking = os.open(beside(path), os.O_RDONLY)
    fcntl.flock(looking, fcntl.LOCK_SH)
    monkeypatch.setattr(os, "sched_yield", lambda: os.close(looking))
    held = Ownership(path)
    assert owner(path) == os.getpid()
    held.release()


BUSY_OWNER = """
import sys
from pathlib import Path
from pawlflow.store.sqlite import SqliteStore
from pawlflow.testing.conformance_kit import Scribe, cell
scribe = Scribe(SqliteStore(Path(sys.argv[1])))
for number in range(100_000):
    scribe.turn(cell("order-1"), data=b"x" * 2_000)
    scribe.turn(cell(f"order-{number % 7}"), shard=number % 7, data=b"y" * 3_000)
    scribe.commit()
    print(number, flush=True)
"""


@pytest.mark.parametrize("seen", [1, 40, 333])
def test_what_was_committed_survives_a_kill(path, seen):
    """Killed in the middle of its writing: all that it had told is there, and sound."""
    command = [sys.executable, "-c", BUSY_OWNER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for _ in range(seen):
            told = int(process.stdout.readline())
        process.kill()
    store = SqliteStore(path)
    store.claim()
    assert store.story((ACME, "order-1")).head.turn > told
    assert store.integrity() == []
    store.close()
