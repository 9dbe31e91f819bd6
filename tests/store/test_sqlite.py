"""What only the SQLite store promises: files it opens, refuses, and finds damaged or full."""

import re

import apsw
import pytest

from pawlflow.store.port import StoreFullError, StoreUnknownError
from pawlflow.store.sqlite import SqliteStore
from pawlflow.store.sqlite_errors import told
from pawlflow.store.sqlite_schema import APPLICATION_ID, MIGRATIONS
from pawlflow.testing.conformance_kit import ACME, Scribe, cell, letter, refused
from tests.store.kit import filled, tamper, unprivileged

ORDER = (ACME, "order-1")


@pytest.fixture
def path(tmp_path):
    """Where the store of a test lies."""
    return tmp_path / "pawl.db"


@pytest.fixture
def store(path):
    """A store, closed at the end."""
    store = SqliteStore(path)
    yield store
    store.close()


def test_a_missing_file_is_made_with_its_folders(tmp_path):
    """`pawl dev` in an empty folder just works."""
    path = tmp_path / "a" / "b" / "pawl.db"
    SqliteStore(path).close()
    assert path.stat().st_size > 0


def test_an_empty_file_is_filled(path):
    """As `touch` or `mktemp` leave it."""
    path.touch()
    store = SqliteStore(path)
    assert len(store.claim()) == 32
    store.close()


def test_the_file_says_what_it_is(store):
    """Other tools can tell it by its application id, and every commit is flushed."""
    db = store._db
    assert db.pragma("application_id") == APPLICATION_ID
    assert db.pragma("user_version") == MIGRATIONS[-1][0]
    assert db.pragma("journal_mode") == "wal"
    assert db.pragma("synchronous") == 2
    facts = store.facts()
    assert (facts["kind"], facts["path"], facts["owner"]) == ("sqlite", str(store.path), None)
    assert facts["size"] > 0


@pytest.mark.parametrize("content", [b"hello", b"x" * 10_000, b"SQLite format 3\x00"])
def test_a_file_of_another_kind_is_refused_and_left_alone(path, content):
    """No byte of it changes, and nothing is left beside it."""
    path.write_bytes(content)
    trouble = refused("store.not_ours", lambda: SqliteStore(path))
    assert str(path) in str(trouble)
    assert path.read_bytes() == content
    assert [each.name for each in path.parent.iterdir()] == ["pawl.db"]


@pytest.mark.parametrize("application", [0, 77])
def test_a_database_of_another_application_is_refused_and_left_alone(path, application):
    """Also one without an id, and one in WAL mode."""
    db = apsw.Connection(str(path))
    db.execute("CREATE TABLE theirs (x)")
    db.pragma("application_id", application)
    db.pragma("journal_mode", "wal")
    db.close()
    before = path.read_bytes()
    refused("store.not_ours", lambda: SqliteStore(path))
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == ["pawl.db"]


def test_a_creation_that_was_cut_short_is_made_good(tmp_path, path):
    """Beside a rollback journal the bytes of a file say nothing yet."""
    torn = tmp_path / "torn.db"
    db = apsw.Connection(str(torn))
    db.pragma("cache_size", 5)
    db.execute("BEGIN; CREATE TABLE t (x); INSERT INTO t VALUES (zeroblob(500000))")
    db.cache_flush()
    path.write_bytes(torn.read_bytes())
    journal = path.with_name("pawl.db-journal")
    journal.write_bytes(torn.with_name("torn.db-journal").read_bytes())
    db.close()
    assert path.stat().st_size > 0
    store = SqliteStore(path)
    assert len(store.heads(range(32))) == 32
    store.close()


def test_a_newer_store_is_refused(path):
    """The message names both versions."""
    filled(path)
    tamper(path, "PRAGMA user_version = 99")
    trouble = refused("store.newer", lambda: SqliteStore(path))
    known = MIGRATIONS[-1][0]
    assert re.search(rf"version 99, .* up to {known}\b.*upgrade pawlflow", str(trouble))


def test_a_store_of_other_shards_is_refused(path):
    """Positions would mean something else."""
    filled(path)
    tamper(path, "UPDATE meta SET value = '64'")
    refused("store.shards", lambda: SqliteStore(path))


def test_what_may_not_be_written_can_still_be_read():
    """A read-only file is read; to write it is refused, and the message says what to do."""
    with unprivileged() as folder:
        path = filled(folder / "pawl.db")
        path.chmod(0o444)
        store = SqliteStore(path)
        assert store.load([ORDER])[ORDER].head.turn == 3
        trouble = refused("store.read_only", lambda: store.post([letter(cell("order-1"))]))
        assert str(path) in str(trouble)
        refused("store.read_only", store.claim)
        store.close()


def test_a_folder_that_may_not_be_written_is_refused():
    """Neither a new file nor a log can be made there."""
    with unprivileged() as folder:
        path = filled(folder / "inner" / "pawl.db")
        path.parent.chmod(0o555)
        refused("store.read_only", lambda: SqliteStore(path))
        refused("store.read_only", lambda: SqliteStore(folder / "inner" / "other.db"))
        refused("store.read_only", lambda: SqliteStore(folder / "inner" / "more" / "pawl.db"))
        path.parent.chmod(0o755)
        path.chmod(0)
        refused("store.read_only", lambda: SqliteStore(path))


def test_a_full_disk_loses_nothing(store):
    """The batch is not there, everything before it is, and it can be written once there is room."""
    scribe = Scribe(store)
    scribe.turn(cell("order-1"))
    scribe.commit()
    pages = store._db.pragma("page_count")
    store._db.pragma("max_page_count", pages)
    scribe.turn(cell("order-1"), data=b"large" * 10_000)
    trouble = refused("store.full", scribe.commit)
    assert isinstance(trouble, StoreFullError)
    assert store.load([ORDER])[ORDER].head.turn == 1
    store._db.pragma("max_page_count", pages + 1_000)
    scribe.commit()
    assert store.load([ORDER])[ORDER].head.turn == 2


def test_a_writer_that_stays_too_long_is_not_waited_for(path, store):
    """After `busy_ms` the way out is to try again."""
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    hasty = SqliteStore(path, busy_ms=1)
    refused("store.busy", lambda: hasty.post([letter(cell("order-1"))]))
    other.execute("ROLLBACK")
    assert len(hasty.post([letter(cell("order-1"))])) == 1
    hasty.close()
    other.close()


class FlakyFile(apsw.VFSFile):
    """A file whose disk fails when it is told to."""

    def __init__(self, vfs, name, flags):
        self.vfs = vfs
        super().__init__("", name, flags)

    def xSync(self, flags):  # noqa: N802
        """Fail to flush."""
        if self.vfs.broken == "sync":
            raise apsw.IOError("the disk is gone")
        super().xSync(flags)

    def xRead(self, amount, offset):  # noqa: N802
        """Fail to read, or read something else."""
        if self.vfs.broken == "read":
            raise apsw.IOError("the disk is gone")
        if self.vfs.broken == "garble":
            return b"\xab" * amount
        return super().xRead(amount, offset)


class FlakyDisk(apsw.VFS):
    """The real files, until `broken` says otherwise."""

    broken = ""

    def __init__(self):
        super().__init__("flaky", "")

    def xOpen(self, name, flags):  # noqa: N802
        """Open a file that may fail."""
        return FlakyFile(self, name, flags)


@pytest.fixture
def disk():
    """A disk that can be broken."""
    disk = FlakyDisk()
    yield disk
    disk.unregister()


def test_a_failed_flush_has_an_unknown_outcome(path, disk):
    """Whether the batch is durable is told by the heads; then the engine goes on from there."""
    store = SqliteStore(path, vfs="flaky")
    scribe = Scribe(store)
    scribe.turn(cell("order-1"))
    disk.broken = "sync"
    trouble = refused("store.unknown", scribe.commit)
    assert isinstance(trouble, StoreUnknownError)
    disk.broken = ""
    assert store.heads([0])[0].seq == 0
    scribe.commit()
    assert store.heads([0])[0].seq == 1
    store.close()


def test_a_failed_read_names_the_disk(path, disk):
    """Nothing was written, and it is not our file that is wrong."""
    filled(path)
    store = SqliteStore(path, vfs="flaky")
    disk.broken = "read"
    refused("store.io", lambda: store.story(ORDER))
    disk.broken = ""
    assert store.story(ORDER) is not None
    store.close()


def test_other_errors_are_told_as_they_are(path):
    """No error of SQLite gets lost."""
    assert told(apsw.NoMemError("none"), path, "reading").code == "store.trouble"


def smashed(path, size=4096):
    """Overwrite every page but the first."""
    with path.open("r+b") as file:
        file.seek(size)
        file.write(b"\xab" * (path.stat().st_size - size))
    return path


def test_a_damaged_file_is_named(path):
    """Opening says which file it is, and does not take it for another's."""
    smashed(filled(path, turns=50))
    assert str(path) in str(refused("store.damaged", lambda: SqliteStore(path)))


def test_damage_below_an_open_store_is_named(path):
    """Found when the pages are read; the place and the way out are in the message."""
    filled(path, turns=200)
    store = SqliteStore(path)
    keep = store._db.execute("SELECT pageno FROM dbstat WHERE name = 'entry'").fetchall()
    store.close()
    with path.open("r+b") as file:
        for (page,) in keep:
            file.seek((page - 1) * 4096)
            file.write(b"\xab" * 4096)
    store = SqliteStore(path)
    trouble = refused("store.damaged", lambda: store.story(ORDER))
    assert str(path) in str(trouble)
    assert "table entry" in str(trouble)
    assert "pawl restore" in str(trouble)
    refused("store.damaged", store.claim)
    assert store.quick_check() != []
    assert store.integrity() != []
    store.close()


def test_a_check_tells_what_the_disk_gives(path, disk):
    """The doctor reports what it finds, and raises only if it cannot look."""
    filled(path)
    store = SqliteStore(path, vfs="flaky")
    disk.broken = "garble"
    assert store.quick_check() != []
    disk.broken = ""
    store.close()
    refused("store.closed", store.quick_check)
