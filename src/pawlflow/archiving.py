"""Archiving: the archives of cells as files in a folder, each durable before all that follows."""

import os
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Final
from urllib.parse import quote

from pawlflow.projections.archive import Archivist
from pawlflow.store.port import Head, Store
from pawlflow.trouble import PawlError

SUFFIX: Final = ".journal"
HASH_DIGITS: Final = 12  # of the last turn: two lives of one id never meet
DAY: Final = "%Y-%m-%d"
NAME_MAX: Final = 160  # characters of a name in a path: systems allow 255 with all that is added


class ArchiveError(PawlError):
    """An archive could not be written. What it was to hold is still in the store."""


class Archive:
    """A folder of archives: TENANT/DAY/ID.HASH.journal, by the day on which an instance closed."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).expanduser()

    def keep(self, store: Store, heads: list[Head], day: Head | None = None) -> list[Path]:
        """Write the archives of cells; durable when this returns. Raises ArchiveError, StoreError.

        Those of `day` lie beside it: checkpoints belong to their instance.
        """
        archivist = Archivist(store)
        places = [(each, self.path_of(each, day or each)) for each in heads]
        return [self.put(path, archivist.archive(each)) for each, path in places]

    def path_of(self, head: Head, day: Head) -> Path:
        """Where the archive of a cell lies. The same cell has the same place."""
        closed = datetime.fromtimestamp((day.closed_at or 0) / 1000, UTC).strftime(DAY)
        name = f"{plain(head.cell.key)}.{head.hash.hex()[:HASH_DIGITS]}{SUFFIX}"
        return self.folder / plain(head.cell.tenant) / closed / name

    def put(self, path: Path, data: bytes) -> Path:
        """Write a file: whole under its name, or not there."""
        part = path.with_name(f"{path.name}.part-{os.getpid()}")
        try:
            make_folder(path.parent)
            with part.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
            flush(path.parent)
        except OSError as error:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            message = f"{path}: {error.strerror}: nothing is removed that cannot be archived first"
            raise ArchiveError("archive.failed", message) from error
        return path


def plain(name: str) -> str:
    """A name as one part of a path, whatever it is."""
    quoted = quote(name, safe="$:")
    if len(quoted) > NAME_MAX:
        quoted = f"{quoted[:NAME_MAX]}~{sha256(name.encode()).hexdigest()[:HASH_DIGITS]}"
    return quoted.replace(".", "%2E") if set(quoted) == {"."} else quoted


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, each durable: a file is lost with the folder it is in."""
    if not folder.exists():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        flush(folder.parent)


def flush(folder: Path) -> None:
    """Make the names in a folder durable."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
