"""Backup and restore of a SQLite store, beside owners and senders that go on working."""

import os
from glob import escape as glob_escape
from itertools import count
from pathlib import Path
from typing import Final

import apsw

from pawlflow.store.port import StoreError
from pawlflow.store.sqlite_copy import Progress, copy, flush, make_folder
from pawlflow.store.sqlite_errors import not_ours, read_only, told
from pawlflow.store.sqlite_owner import Ownership
from pawlflow.store.sqlite_rows import SQL
from pawlflow.store.sqlite_schema import MIGRATIONS, check_header, connect, opened, version_of
from pawlflow.store.sqlite_views import VIEWS

BUSY_MS: Final = 5_000
EPOCH_LEAP: Final = 1_000_000  # over the epochs of a store too damaged to tell them


def backup(path: Path, to: Path, progress: Progress | None = None) -> None:
    """Copy a store to another file while it is at work; `to` is replaced when the copy is whole."""
    _check_target(path, to)
    check_header(path)
    try:
        with _Closing(connect(path, busy_ms=BUSY_MS, create=False)) as source:
            copy(source, to, progress)
    except apsw.Error as trouble:
        raise told(trouble, path, f"copying it to {to}") from trouble
    except OSError as trouble:
        raise read_only(to, trouble) from trouble


def _check_target(path: Path, to: Path) -> None:
    """A log beside the target belongs to a database that is open, and would be read into ours."""
    logs = [to.with_name(to.name + end) for end in ("-wal", "-journal")]
    if to.exists() and path.exists() and to.samefile(path):
        raise StoreError("store.target", f"{to} is the store itself: name another file")
    if any(log.exists() for log in logs):
        raise StoreError("store.target", f"{to} is a database that is open: name another file")


def restore(source: Path, path: Path) -> Path | None:
    """Put a backup in the place of a store that nobody owns. Gives where the old one is kept.

    The backup must be ours, of a version we know, and intact. A store that is still readable gets
    the rows of the backup in one transaction: whoever posts meanwhile waits for it, and no mail
    falls between the two. Epochs and mail ids rise over both, so that they are never given twice.
    """
    if not source.exists():
        raise not_ours(source, "not there")
    check_header(source)
    try:
        make_folder(path.parent)
    except OSError as trouble:
        raise read_only(path, trouble) from trouble
    owning = Ownership(path)
    part = path.with_name(f"{path.name}.restore-{os.getpid()}")
    try:
        _checked_copy(source, part, owning)
        return _put(part, path, owning)
    except apsw.Error as trouble:
        raise told(trouble, path, f"restoring it from {source}") from trouble
    except OSError as trouble:
        raise read_only(path, trouble) from trouble
    finally:
        for left in path.parent.glob(f"{glob_escape(part.name)}*"):
            left.unlink(missing_ok=True)
        owning.release()


def _checked_copy(source: Path, part: Path, owning: Ownership) -> None:
    """Copy the backup, bring the copy to the newest version, and look at every page of it."""
    backup(source, part)
    try:
        with _Closing(connect(part, busy_ms=BUSY_MS)) as db, db:
            version_of(db, source, MIGRATIONS[-1][0])
        with _Closing(opened(part, busy_ms=BUSY_MS, owning=owning)) as db:
            found = [str(row[0]) for row in db.execute("PRAGMA integrity_check(3)")]
            db.pragma("journal_mode", "delete")
    except apsw.CorruptError as trouble:
        found = [str(trouble)]
    except StoreError as trouble:
        if trouble.code != "store.damaged":
            raise
        found = ["it cannot be opened"]
    if found != ["ok"]:
        raise StoreError(
            "store.damaged",
            f"{source} is damaged: {'; '.join(found)}; nothing was restored: take another backup",
        )


def _put(part: Path, path: Path, owning: Ownership) -> Path | None:
    """Put the copy in place: into the store that is there if it is sound, else instead of it."""
    if not path.exists() or path.stat().st_size == 0:
        _place(part, path)
        return None
    kept = _free_name(path)
    try:
        with _Closing(opened(path, busy_ms=BUSY_MS, owning=owning)) as db:
            if db.execute("PRAGMA quick_check(1)").get == "ok":
                _refill(db, part, kept)
                return kept
    except apsw.CorruptError:
        kept = _free_name(path)
    except StoreError as trouble:
        if trouble.code != "store.damaged":
            raise
    _swap(part, path, kept)
    return kept


def _refill(db: apsw.Connection, part: Path, kept: Path) -> None:
    """Keep a copy of the old rows, and replace them, all under one write lock."""
    db.execute("ATTACH ? AS part", (str(part),))
    db.execute("BEGIN IMMEDIATE")
    try:
        with _Closing(connect(Path(db.filename), busy_ms=BUSY_MS, create=False)) as reader:
            copy(reader, kept)
        db.execute(SQL["restore_highest"])
        db.execute(VIEWS["drop"])  # they follow from the journal, and that is another one now
        for (table,) in db.execute(SQL["restore_tables"]).fetchall():
            db.execute(f'DELETE FROM main."{table}"')
            db.execute(f'INSERT INTO main."{table}" SELECT * FROM part."{table}"')
        db.execute(SQL["restore_raise"])
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _swap(part: Path, path: Path, kept: Path) -> None:
    """Put a damaged file aside with its log, and the backup in its place."""
    for end in ("-wal", "-shm"):
        if path.with_name(path.name + end).exists():
            path.with_name(path.name + end).replace(kept.with_name(kept.name + end))
    os.link(path, kept)
    with _Closing(connect(part, busy_ms=BUSY_MS)) as db:
        db.execute(SQL["restore_leap"], (EPOCH_LEAP,))
    part.replace(path)
    flush(path.parent)


def _place(part: Path, path: Path) -> None:
    """Put the backup where nothing is, or an empty file."""
    with _Closing(connect(part, busy_ms=BUSY_MS)) as db:
        db.execute(SQL["restore_leap"], (1,))
    flush(part)
    part.replace(path)
    flush(path.parent)


def _free_name(path: Path) -> Path:
    """Where the old file is kept: never over another that was kept before."""
    names = (
        path.with_name(f"{path.name}.before-restore{'' if n == 1 else f'-{n}'}") for n in count(1)
    )
    return next(name for name in names if not name.exists())


class _Closing:
    """A connection that is closed at the end of its block."""

    def __init__(self, db: apsw.Connection) -> None:
        self.db = db

    def __enter__(self) -> apsw.Connection:
        return self.db

    def __exit__(self, *_: object) -> None:
        self.db.close()
