"""Whole files: migrations, backups, and what comes back from them."""

import apsw
import pytest

from pawlflow.store.port import Taken
from pawlflow.store.sqlite import SqliteStore
from pawlflow.store.sqlite_backup import EPOCH_LEAP, backup, restore
from pawlflow.store.sqlite_rows import SQL
from pawlflow.store.sqlite_schema import MIGRATIONS, opened
from pawlflow.testing.conformance_kit import ACME, Scribe, cell, letter, refused
from tests.store.kit import OtherProcess, filled, tamper, unprivileged

ORDER = (ACME, "order-1")
NOW = MIGRATIONS[-1][0]
NEXT = (*MIGRATIONS, (NOW + 1, "CREATE TABLE more (x); INSERT INTO more VALUES (1)"))
AFTER = (*NEXT, (NOW + 2, "ALTER TABLE more ADD COLUMN y"))
BROKEN = (*NEXT, (NOW + 2, "ALTER TABLE missing ADD COLUMN y"))


@pytest.fixture
def path(tmp_path):
    """A store with an order of three turns, closed."""
    return filled(tmp_path / "pawl.db")


def version(path):
    """The version a file says it has."""
    db = apsw.Connection(str(path))
    found = db.pragma("user_version")
    db.close()
    return found


def turns(path):
    """How many turns the order in a store has."""
    store = SqliteStore(path)
    image = store.load([ORDER])[ORDER]
    store.close()
    return image.head.turn


def names(path):
    """What lies beside a store, without the lock."""
    return sorted(each.name for each in path.parent.iterdir() if each.suffix != ".owner")


def test_an_older_store_is_brought_to_the_newest(path):
    """Over every version between, with a copy of the old file beside it."""
    db = opened(path, busy_ms=100, migrations=AFTER)
    assert db.execute("SELECT x, y FROM more").fetchall() == [(1, None)]
    db.close()
    assert version(path) == NOW + 2
    kept = path.with_name(f"pawl.db.v{NOW}.bak")
    assert version(kept) == NOW
    assert turns(kept) == 3
    opened(path, busy_ms=100, migrations=AFTER).close()


def test_reviews_of_version_1_are_claimed_by_nobody(tmp_path):
    """What waited for a human still does; states in the older format are no longer kept."""
    path = tmp_path / "pawl.db"
    old = opened(path, busy_ms=100, migrations=MIGRATIONS[:1])
    row = (32, "gate", ACME, "order", "order-1", "approval", "Lead", 10, 20, b"shown")
    old.execute(f"INSERT INTO review VALUES ({', '.join('?' * len(row))})", row)
    old.execute("INSERT INTO snapshot VALUES (32, 1, x'00', x'00', x'00')")
    old.close()
    assert version(path) == 1

    store = SqliteStore(path)
    [kept] = store.reviews(ACME)
    store.close()

    assert (kept.ref, kept.step, kept.role, kept.since, kept.due_at) == (32, "gate", "Lead", 10, 20)
    assert (kept.show, kept.claimed_by) == (b"shown", None)
    db = apsw.Connection(str(path))
    assert db.execute("SELECT count(*) FROM snapshot").get == 0
    db.close()


def test_a_new_store_takes_every_migration(tmp_path):
    """Without a copy: there was nothing."""
    path = tmp_path / "new" / "pawl.db"
    opened(path, busy_ms=100, migrations=NEXT).close()
    assert version(path) == NOW + 1
    assert names(path) == ["pawl.db"]


def test_a_migration_that_fails_changes_nothing(path):
    """All of them or none: the store still opens as what it was."""
    refused("store.trouble", lambda: opened(path, busy_ms=100, migrations=BROKEN))
    assert version(path) == NOW
    assert turns(path) == 3


def test_nobody_migrates_under_an_owner(path):
    """The owner writes as its version knows: it must be stopped first."""
    store = SqliteStore(path)
    store.claim()
    refused("store.owned", lambda: opened(path, busy_ms=100, migrations=NEXT))
    store.close()
    assert version(path) == NOW


def test_a_read_only_store_is_not_migrated():
    """It says that it would have to be."""
    with unprivileged() as folder:
        path = filled(folder / "pawl.db")
        path.chmod(0o444)
        trouble = refused("store.read_only", lambda: opened(path, busy_ms=100, migrations=NEXT))
        assert f"from version {NOW} to {NOW + 1}" in str(trouble)


def test_two_that_create_at_once_make_one(tmp_path):
    """The later one finds the work done."""
    path = tmp_path / "pawl.db"
    first = apsw.Connection(str(path))
    first.execute("BEGIN IMMEDIATE")
    refused("store.busy", lambda: SqliteStore(path, busy_ms=1))
    first.execute("ROLLBACK")
    first.close()
    SqliteStore(path).close()


def test_a_backup_is_one_moment_of_a_store_at_work(path):
    """The owner goes on while pages are copied; the copy is whole, and as it was at its start."""
    store = SqliteStore(path)
    scribe = Scribe(store)
    for number in range(300):
        scribe.turn(cell(f"large-{number}"), data=b"x" * 20_000)
    scribe.commit()
    seen = []

    def progress(done, total):
        seen.append((done, total))
        scribe.turn(cell(f"during-{len(seen)}"))
        scribe.commit()

    to = path.with_name("copy.db")
    store.backup(to, progress)
    assert len(seen) > 1
    assert seen[-1][0] == seen[-1][1]
    assert len(list(store.refs())) == 301 + len(seen)
    store.close()
    copied = SqliteStore(to)
    assert len(list(copied.refs())) == 301
    assert copied.integrity() == []
    copied.close()
    assert names(path) == ["copy.db", "pawl.db"]


def test_a_backup_can_be_made_beside_an_owner(path):
    """By another process, again and again to the same name."""
    other = OtherProcess(path)
    to = path.with_name("copy.db")
    backup(path, to)
    other.turn("order-2")
    backup(path, to)
    other.finish()
    store = SqliteStore(to)
    assert [head.cell.key for head in store.refs()] == ["order-1", "order-2"]
    store.close()


def test_a_backup_is_not_put_over_a_store_in_use(path):
    """Not over itself, nor over a database that has its log beside it."""
    refused("store.target", lambda: backup(path, path))
    other = filled(path.with_name("other.db"))
    store = SqliteStore(other)
    store.claim()
    refused("store.target", lambda: backup(path, other))
    store.close()
    backup(path, other)
    refused("store.read_only", lambda: backup(path, path.with_name("none") / "copy.db"))
    refused("store.not_ours", lambda: backup(_text(path), path.with_name("copy.db")))


def _text(path):
    """A file that is no store."""
    text = path.with_name("text.txt")
    text.write_text("hello")
    return text


def test_a_restore_puts_the_backup_in_place(path):
    """The old store is kept whole, and every owner of either is fenced."""
    to = path.with_name("copy.db")
    backup(path, to)
    store = SqliteStore(path)
    scribe = Scribe(store)
    scribe.cells[32] = store.load([ORDER])[ORDER].head
    scribe.turn(cell("order-1"))
    posted = store.post([letter(cell("order-1"))] * 5)
    scribe.commit(taken=[Taken(posted[0])])
    scribe.turn(cell("order-1"))
    late = scribe.batch()
    store.close()
    kept = restore(to, path)
    assert kept == path.with_name("pawl.db.before-restore")
    assert (turns(path), turns(kept)) == (3, 4)
    store = SqliteStore(path)
    assert store.heads([0])[0].epoch == 3
    refused("store.fenced", lambda: store.append(late))
    assert store.post([letter(cell("order-1"))])[0] > posted[-1]
    assert store.integrity() == []
    store.close()
    assert restore(kept, path) == path.with_name("pawl.db.before-restore-2")
    assert turns(path) == 4
    assert names(path) == [
        *("copy.db", "pawl.db", "pawl.db.before-restore", "pawl.db.before-restore-2")
    ]


def test_who_has_the_store_open_sees_what_was_restored(path):
    """A restore is a transaction like others: what is posted after it is in the store."""
    to = path.with_name("copy.db")
    backup(path, to)
    beside = SqliteStore(path)
    beside.post([letter(cell("order-1"))])
    kept = restore(to, path)
    assert beside.mail(range(32), 0, 10) == []
    beside.post([letter(cell("order-1"))])
    beside.close()
    for each in (path, kept):
        store = SqliteStore(each)
        assert len(store.mail(range(32), 0, 10)) == 1
        store.close()


def test_a_restore_to_nowhere_makes_the_store(path):
    """Another machine, an empty disk: nothing is kept, for nothing was there."""
    target = path.with_name("new") / "folder" / "pawl.db"
    assert restore(path, target) is None
    store = SqliteStore(target)
    assert store.heads([0])[0].epoch == 2
    store.close()
    assert turns(target) == 3


@pytest.mark.parametrize("start", [4096, 100])
def test_a_damaged_store_is_put_aside(path, start):
    """As it is, byte for byte; the epochs leap over those it can no longer tell."""
    to = path.with_name("copy.db")
    backup(path, to)
    with path.open("r+b") as file:
        file.seek(start)
        file.write(b"\xab" * (path.stat().st_size - start))
    bytes_before = path.read_bytes()
    kept = restore(to, path)
    assert kept.read_bytes() == bytes_before
    assert turns(path) == 3
    store = SqliteStore(path)
    assert store.claim()[0].epoch > EPOCH_LEAP
    store.close()


def test_damage_that_shows_late_is_put_aside_too(path):
    """Opening went well, copying the rows did not."""
    to = path.with_name("copy.db")
    backup(path, to)
    smash(path, "sqlite_sequence")
    assert restore(to, path) == path.with_name("pawl.db.before-restore")
    assert turns(path) == 3


def test_an_older_backup_is_brought_up(path, monkeypatch):
    """A backup of an older version is restored as the newest."""
    to = path.with_name("copy.db")
    backup(path, to)
    monkeypatch.setattr("pawlflow.store.sqlite_schema.MIGRATIONS", NEXT)
    monkeypatch.setitem(opened.__kwdefaults__, "migrations", NEXT)
    restore(to, path)
    assert (version(path), version(to)) == (NOW + 1, NOW)
    assert f"pawl.db.v{NOW}.bak" in names(path)
    assert not [name for name in names(path) if "restore-" in name and "before" not in name]


def smash(path, table):
    """Overwrite the pages of a table or an index."""
    db = apsw.Connection(str(path))
    pages = db.execute("SELECT pageno FROM dbstat WHERE name = ?", (table,)).fetchall()
    db.close()
    with path.open("r+b") as file:
        for (page,) in pages:
            file.seek((page - 1) * 4096)
            file.write(b"\xab" * 4096)
    return path


def test_a_log_is_put_aside_with_its_file(path):
    """What lies there and is not yet in the damaged file may still be wanted."""
    to = path.with_name("copy.db")
    backup(path, to)
    smash(path, "shard")
    beside = apsw.Connection(str(path))
    beside.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    assert path.with_name("pawl.db-wal").exists()
    restore(to, path)
    assert path.with_name("pawl.db.before-restore-wal").exists()
    assert turns(path) == 3
    beside.close()
    assert turns(path) == 3


def test_a_restore_that_fails_changes_nothing(path, monkeypatch):
    """Whatever goes wrong on the way, the store is as it was."""
    to = path.with_name("copy.db")
    backup(path, to)
    tamper(path, "UPDATE shard SET epoch = 40")
    monkeypatch.setitem(SQL, "restore_raise", "UPDATE missing SET x = 1")
    refused("store.trouble", lambda: restore(to, path))
    store = SqliteStore(path)
    assert store.heads([0])[0].epoch == 40
    assert store.integrity() == []
    store.close()


def test_where_nothing_may_be_written_nothing_is_restored():
    """Neither into a folder that is shut nor into one that cannot be made."""
    with unprivileged() as folder:
        source = filled(folder / "source.db")
        target = filled(folder / "shut" / "pawl.db")
        target.parent.chmod(0o555)
        refused("store.read_only", lambda: restore(source, target))
        refused("store.read_only", lambda: restore(source, target.parent / "new" / "pawl.db"))
        target.parent.chmod(0o755)


def test_a_damaged_store_has_no_backup(path):
    """A copy that cannot be read is none."""
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xab" * 3_996)
    refused("store.damaged", lambda: backup(path, path.with_name("copy.db")))
    assert "copy.db" not in "".join(names(path))


def test_a_restore_is_refused_for_a_reason(path):
    """Owned, not there, not ours, newer, damaged: nothing is changed by any of them."""
    to = path.with_name("copy.db")
    backup(path, to)
    store = SqliteStore(path)
    store.claim()
    refused("store.owned", lambda: restore(to, path))
    store.close()
    refused("store.not_ours", lambda: restore(path.with_name("none.db"), path))
    refused("store.not_ours", lambda: restore(_text(path), path))
    refused("store.not_ours", lambda: restore(to, _text(path)))
    newer = path.with_name("newer.db")
    backup(path, newer)
    tamper(newer, "PRAGMA user_version = 9")
    assert "newer.db has version 9" in str(refused("store.newer", lambda: restore(newer, path)))
    refused("store.newer", lambda: restore(to, newer))
    assert turns(path) == 3


@pytest.mark.parametrize("table", ["sqlite_schema", "meta", "shard", "entry", "cell_address"])
def test_a_damaged_backup_is_not_restored(path, table):
    """Wherever the damage is; the store stays."""
    hurt = path.with_name("hurt.db")
    backup(path, hurt)
    smash(hurt, table)
    trouble = refused(
        "store.not_ours" if table == "sqlite_schema" else "store.damaged",
        lambda: restore(hurt, path),
    )
    assert "hurt.db is" in str(trouble)
    assert turns(path) == 3
    assert not [name for name in names(path) if "restore" in name]
