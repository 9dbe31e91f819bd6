"""A copy of a SQLite database under a name of its own: whole, or not there."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import apsw

PAGES_AT_ONCE: Final = 1_024  # 4 MiB between two reports of progress
Progress = Callable[[int, int], object]


def copy(source: apsw.Connection, to: Path, progress: Progress | None = None) -> None:
    """Copy a database, as it is at this moment, into `to`: durable when this returns."""
    part = to.with_name(f"{to.name}.part-{os.getpid()}")
    part.unlink(missing_ok=True)
    try:
        target = apsw.Connection(str(part))
        try:
            _copy_pages(source, target, progress)
            # A database in WAL mode could not be opened from a folder that is read-only.
            target.pragma("journal_mode", "delete")
        finally:
            target.close()
        flush(part)
        part.replace(to)
    finally:
        part.unlink(missing_ok=True)
    flush(to.parent)


def _copy_pages(
    source: apsw.Connection, target: apsw.Connection, progress: Progress | None
) -> None:
    """Copy from one moment of the source.

    The moment is held by a reading transaction: writers go on beside it, and without it every
    batch they write would make the copy begin again.
    """
    source.execute("BEGIN")
    try:
        source.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()
        with target.backup("main", source, "main") as pages:
            while not pages.done:
                pages.step(PAGES_AT_ONCE)
                if progress is not None:
                    progress(pages.page_count - pages.remaining, pages.page_count)
    finally:
        source.execute("ROLLBACK")


def flush(path: Path) -> None:
    """Make a file's bytes, or a folder's names, durable."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, each durable: a file is lost with the folder it is in."""
    if not folder.exists():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        flush(folder.parent)
