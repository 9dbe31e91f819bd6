"""Opening a SQLite store: is it ours, which version is it, and bring it to the newest."""

import struct
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Final
from weakref import WeakKeyDictionary

import apsw

from pawlflow.store.check import genesis
from pawlflow.store.port import SHARDS, StoreError
from pawlflow.store.rows import FOLDER
from pawlflow.store.sqlite_copy import copy, make_folder
from pawlflow.store.sqlite_errors import newer, not_ours, odd, read_only, told
from pawlflow.store.sqlite_owner import Ownership
from pawlflow.store.sqlite_removal import fill_expiry
from pawlflow.store.sqlite_rows import SQL

RETENTION: Final = 4  # the version since which it counts how long instances are kept
APPLICATION_ID: Final = 0x5061776C  # "Pawl"; bytes 68 to 71 of the file
Migration = tuple[int, str]
MIGRATIONS: Final[Sequence[Migration]] = tuple(
    (number, (FOLDER / f"sqlite_{number}.sql").read_text()) for number in (1, 2, 3, 4)
)

# A checkpoint moves the log into the database, with two flushes: the rarer the better, but the log
# grows by it. Over 300,000 entries 1,000 pages gave 44,000 a second, 4,000 gave 67,000, 10,000 (40
# MiB of log) 71,000, and twice that no more; the batch that runs it takes 25 ms instead of 6.
CHECKPOINT_PAGES: Final = 10_000
CACHE_KIB: Final = 32 * 1024  # SQLite's own 2 MiB cost 8 % in pages that are read again
LOG_BYTES_MAX: Final = 64 * 1024 * 1024  # what is left of the log file after a long reader
_MAGIC: Final = b"SQLite format 3\x00"
_Identity = tuple[int, int]  # of a file, whatever its name: device and inode
_OPENED: Final = WeakKeyDictionary[apsw.Connection, _Identity]()  # of this process; some closed
_OPENED_LOCK: Final = Lock()


def opened(
    path: Path,
    *,
    busy_ms: int,
    vfs: str | None = None,
    migrations: Sequence[Migration] = MIGRATIONS,
    owning: Ownership | None = None,
) -> apsw.Connection:
    """Open a store; make it if it is missing, bring it to the newest version if it is old."""
    try:
        make_folder(path.parent)
    except OSError as trouble:
        raise read_only(path, trouble) from trouble
    check_header(path)
    try:
        db = connect(path, busy_ms=busy_ms, vfs=vfs)
        try:
            bring_up(db, path, migrations, owning)
            _tune(db, path)
            with _OPENED_LOCK:
                _OPENED[db] = _identity(path)
        except BaseException:
            db.close()
            raise
    except apsw.Error as trouble:
        raise told(trouble, path, "opening it") from trouble
    return db


def connect(
    path: Path, *, busy_ms: int, vfs: str | None = None, create: bool = True
) -> apsw.Connection:
    """A plain connection, without a look at what is in the file."""
    flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
    db = apsw.Connection(str(path), flags=flags, vfs=vfs)
    db.set_busy_timeout(busy_ms)
    return db


def check_header(path: Path) -> None:
    """Refuse a file that is not ours by reading its first bytes: SQLite might already write to it.

    Beside a rollback journal they mean nothing yet: a creation was cut short, or goes on. It may
    end between two looks, so a stranger is looked at twice.
    """
    if path.exists() and not path.is_file():
        raise not_ours(path, "no regular file")
    journal = path.with_name(path.name + "-journal")
    if _stranger(path) and not journal.exists() and (what := _stranger(path)):
        raise not_ours(path, what)


def _stranger(path: Path) -> str:
    """What a file is if it is not ours; nothing if it is, or is not there, or is empty.

    A file that this process has open is not looked into: closing it would give back every lock that
    SQLite holds on it here, and another process could take the log away under our hands.
    """
    try:
        with _OPENED_LOCK:
            known = list(_OPENED.items())
        here = _identity(path)
        if any(identity == here and _is_open(db) for db, identity in known):
            return ""
        with path.open("rb") as file:
            head = file.read(100)
    except FileNotFoundError:
        return ""
    except OSError as trouble:
        raise read_only(path, trouble) from trouble
    if not head:
        return ""
    if not head.startswith(_MAGIC) or len(head) < 100:
        return "no SQLite database"
    (application,) = struct.unpack_from(">I", head, 68)
    if application == APPLICATION_ID:
        return ""
    return f"a database of another application (id {application})"


def _identity(path: Path) -> _Identity:
    found = path.stat()
    return found.st_dev, found.st_ino


def _is_open(db: apsw.Connection) -> bool:
    """Is it open still? One that is busy on another thread is."""
    try:
        return bool(db.filename)
    except apsw.ConnectionClosedError:
        return False
    except apsw.ThreadingViolationError:
        return True


def version_of(db: apsw.Connection, path: Path, newest: int) -> int:
    """The version of a store, 0 if it is still empty. Raises StoreError if it is not for us.

    To be asked in a transaction: between two looks another process may have made the store.
    """
    version = int(db.pragma("user_version"))
    application = int(db.pragma("application_id"))
    if application != APPLICATION_ID:
        if application or db.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall():
            raise not_ours(path, f"a database of another application (id {application})")
        return 0
    if version > newest:
        raise newer(path, version, newest)
    if version < 1:
        raise odd(path, "its version", f"{version}, and versions begin with 1")
    return version


def bring_up(
    db: apsw.Connection, path: Path, migrations: Sequence[Migration], owning: Ownership | None
) -> None:
    """Create what is missing, or migrate, in one transaction after a backup."""
    newest = migrations[-1][0]
    with db:
        version = version_of(db, path, newest)
    if version == newest:
        return
    if db.readonly("main"):
        raise read_only(path, f"it must be brought from version {version} to {newest}")
    if version == 0:
        _migrate(db, path, migrations)
        return
    # An owner of the older version would go on writing as it knows: it must be gone first.
    lock = owning or Ownership(path)
    try:
        copy(db, path.with_name(f"{path.name}.v{version}.bak"))
        _migrate(db, path, migrations)
    finally:
        if owning is None:
            lock.release()


def _migrate(db: apsw.Connection, path: Path, migrations: Sequence[Migration]) -> None:
    newest = migrations[-1][0]
    db.execute("BEGIN EXCLUSIVE")
    try:
        version = version_of(db, path, newest)  # another process may have been faster
        for number, sql in migrations:
            if number > version:
                db.execute(sql)
        if version == 0:
            _fill(db)
        elif version < RETENTION <= newest:
            fill_expiry(db)
        db.pragma("application_id", APPLICATION_ID)
        db.pragma("user_version", newest)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _fill(db: apsw.Connection) -> None:
    db.execute(SQL["meta_put"], ("shards", str(SHARDS)))
    rows = [genesis(shard) for shard in range(SHARDS)]
    db.executemany(
        SQL["shard_add"],
        [(row.shard, row.epoch, row.seq, row.hash, row.batch, row.now) for row in rows],
    )


def _tune(db: apsw.Connection, path: Path) -> None:
    """WAL, and a flush in every commit: durable when it returns."""
    if not db.readonly("main"):
        db.pragma("journal_mode", "wal")
    # Without it a statement is prepared again for other values: 20 µs instead of 3 for a head.
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    db.pragma("synchronous", "full")
    db.pragma("foreign_keys", "off")
    db.pragma("temp_store", "memory")
    db.pragma("cache_size", -CACHE_KIB)
    db.pragma("journal_size_limit", LOG_BYTES_MAX)
    db.wal_autocheckpoint(CHECKPOINT_PAGES)
    shards = db.execute(SQL["meta"], ("shards",)).fetchall()
    if shards != [(str(SHARDS),)]:
        raise StoreError(
            "store.shards",
            f"{path} was not made with {SHARDS} shards but {shards}: use the pawlflow that made it",
        )
