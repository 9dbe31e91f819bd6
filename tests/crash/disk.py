"""A disk that can lose power, fail a flush, or run full: a model under SQLite's own file system.

What was written lies in the page cache, where every reader sees it. Only a flush brings it to the
platter, kept here as FILE.platter. A flush that fails drops what it should have written, as Linux
does: a later flush says yes and does not bring it back. A cut of the power leaves the platter, and
of what was not flushed any part, torn at sectors of 512 bytes.
"""

import os
import pickle
import random
from collections.abc import Callable
from pathlib import Path

import apsw

SECTOR = 512
ENDS = ("", "-wal", "-journal")
Asked = Callable[[str, str, str], None]  # operation, file, "before" or "after"; raises, or kills


def kind_of(name: str) -> str:
    """Which of SQLite's files this is."""
    for end in ("wal", "journal", "shm"):
        if name.endswith("-" + end):
            return end
    return "main"


class Platter:
    """What of one file would survive."""

    def __init__(self, path: str) -> None:
        self.at = Path(path + ".platter")
        self.pending = Path(path + ".pending")  # the writes since the last flush, for the power cut
        self.writes: list[tuple[int, bytes | None]] = []  # offset and bytes; None: cut there
        self.fresh = not Path(path).exists()

    def wrote(self, offset: int, data: bytes | None) -> None:
        """Into the cache."""
        self.writes.append((offset, data))
        with self.pending.open("ab") as file:
            pickle.dump((offset, data), file)

    def flushed(self) -> None:
        """Everything goes to the platter."""
        if self.fresh:  # a new file takes the place of one that was deleted
            self.at.write_bytes(b"")
            self.fresh = False
        with self.at.open("r+b" if self.at.exists() else "w+b") as file:
            for write in self.writes:
                apply(file.fileno(), *write)
        self.lost()

    def lost(self) -> None:
        """The cache forgets that it is dirty."""
        self.writes.clear()
        self.pending.unlink(missing_ok=True)


def apply(fd: int, offset: int, data: bytes | None) -> None:
    """Repeat a write."""
    if data is None:
        os.ftruncate(fd, offset)
    else:
        os.pwrite(fd, data, offset)


class Disk(apsw.VFS):
    """The file system of a process. `asked` is told before and after each operation."""

    def __init__(self, asked: Asked, *, power: bool) -> None:
        self.asked = asked
        self.power = power
        self.platters: dict[str, Platter] = {}
        self.deleted: list[Path] = []  # and may come back, until something is flushed
        super().__init__("disk", "unix", makedefault=True)

    def xOpen(self, name, flags):  # noqa: N802
        """Open a file."""
        return DiskFile(self, name, flags)

    def xDelete(self, name, syncdir):  # noqa: N802
        """Delete a file. A folder that is not flushed may bring it back."""
        self.asked("delete", kind_of(name), "before")
        super().xDelete(name, syncdir)
        platter = self.platters.pop(name, None)
        if platter is not None:
            platter.lost()
            self.deleted.append(platter.at)
        if syncdir:
            self.folder_flushed()
        self.asked("delete", kind_of(name), "after")

    def folder_flushed(self) -> None:
        """What was deleted stays so: any flush commits what the folder was told before it."""
        for gone in self.deleted:
            gone.unlink(missing_ok=True)
        self.deleted.clear()

    def platter(self, path: str) -> Platter | None:
        """The platter under a file; all who have it open share it."""
        if not self.power or kind_of(path) == "shm":
            return None
        if path not in self.platters:
            self.platters[path] = Platter(path)
        return self.platters[path]


class DiskFile(apsw.VFSFile):
    """One open file."""

    def __init__(self, disk: Disk, name, flags) -> None:
        self.disk = disk
        self.path = (name.filename() if isinstance(name, apsw.URIFilename) else name) or ""
        self.kind = kind_of(self.path)
        platter = disk.platter(self.path)  # before the file is made
        super().__init__("unix", name, flags)
        self.has_platter = platter is not None

    @property
    def platter(self) -> Platter | None:
        """What would survive."""
        return self.disk.platter(self.path) if self.has_platter else None

    def xRead(self, amount, offset):  # noqa: N802
        """Read, from the cache."""
        self.disk.asked("read", self.kind, "before")
        return super().xRead(amount, offset)

    def xWrite(self, data, offset):  # noqa: N802
        """Write into the cache."""
        self.disk.asked("write", self.kind, "before")
        super().xWrite(data, offset)
        if self.platter:
            self.platter.wrote(offset, bytes(data))
        self.disk.asked("write", self.kind, "after")

    def xTruncate(self, size):  # noqa: N802
        """Cut the file."""
        self.disk.asked("truncate", self.kind, "before")
        super().xTruncate(size)
        if self.platter:
            self.platter.wrote(size, None)

    def xSync(self, flags):  # noqa: N802
        """Bring the cache to the platter, or fail and forget."""
        try:
            self.disk.asked("sync", self.kind, "before")
        except apsw.Error:
            if self.platter:
                self.platter.lost()
            raise
        if self.platter:
            self.disk.folder_flushed()
            self.platter.flushed()
        else:
            super().xSync(flags)
        self.disk.asked("sync", self.kind, "after")


def cut_power(path: Path, chance: random.Random) -> None:
    """What a machine finds when it comes up again: the platter, and some of what was on its way."""
    path.with_name(path.name + "-shm").unlink(missing_ok=True)
    for end in ENDS:
        file = path.with_name(path.name + end)
        platter = Path(str(file) + ".platter")
        pending = Path(str(file) + ".pending")
        file.unlink(missing_ok=True)
        if platter.exists():
            file.write_bytes(platter.read_bytes())
            tear(file, pending, chance)
            platter.write_bytes(file.read_bytes())
        pending.unlink(missing_ok=True)


def tear(file: Path, pending: Path, chance: random.Random) -> None:
    """Let some sectors of the writes that were not flushed arrive, in any order."""
    writes = []
    if pending.exists():
        with pending.open("rb") as log:
            while log.peek(1):
                writes.append(pickle.load(log))
    share = chance.choice([0.0, 0.5, 1.0])
    sectors = [
        (offset + at, data[at : at + SECTOR])
        for offset, data in writes
        if data is not None
        for at in range(0, len(data), SECTOR)
        if chance.random() < share
    ]
    chance.shuffle(sectors)
    with file.open("r+b") as opened:
        for offset, data in sectors:
            os.pwrite(opened.fileno(), data, offset)
