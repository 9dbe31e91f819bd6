"""Seats: the processes of one machine that share a file, and which shards each of them owns.

A node has a file of its own in a folder beside the store, and holds a lock on it that the kernel
takes back when its process dies, however it dies. So there are no leases, and no clock is trusted.
"""

import errno
import fcntl
import os
import secrets
import socket
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import RLock
from typing import Final

import msgspec

from pawlflow.store.held import held, let_go
from pawlflow.store.poke import pokes_name
from pawlflow.store.port import StoreError
from pawlflow.store.sqlite_errors import read_only

NOTE_BYTES: Final = 512  # always as many, so that a note is written over the one before at once


class Seated(msgspec.Struct, frozen=True):
    """A node that is alive, as it says itself."""

    pid: int
    host: str
    shards: Sequence[int] = ()


class Seat:
    """The place of this process among those that share a file."""

    def __init__(self, path: Path) -> None:
        """Take a seat. Raises StoreError where the folder cannot be written."""
        self.node = secrets.token_hex(8)
        self.shards: set[int] = set()
        self._path = path
        self._fd = -1
        self._lock = RLock()  # one thread claims, another one looks
        self.take()

    def take(self) -> None:
        """Be alive. Who was taken for dead, or whose file is gone, begins with nothing."""
        with self._lock:
            if self._fd >= 0 and os.fstat(self._fd).st_nlink:
                return
            self.leave()
            place = seat_of(self._path, self.node)
            try:
                place.parent.mkdir(exist_ok=True)
                self._fd = locked(place)
                self._note(())
            except OSError as trouble:
                self.leave()
                raise failed(trouble, self._path) from trouble

    def own(self, shards: Collection[int]) -> bool:
        """These are this node's now; False if it is not alive. Only in a transaction."""
        with self._lock:
            if self._fd < 0:
                return False
            try:
                self._note(shards)
            except OSError as trouble:
                raise failed(trouble, self._path) from trouble
            self.shards = set(shards)
            return True

    def drop(self, shards: Iterable[int]) -> None:
        """Another one has these, whatever this one said."""
        with self._lock:
            if not self.shards.isdisjoint(given := set(shards)):
                self.own(self.shards - given)

    def leave(self) -> None:
        """Be alive no longer: what it owned is anybody's."""
        with self._lock:
            if self._fd >= 0:
                sweep(self._path, self.node)
                let_go(self._fd)
                self._fd, self.shards = -1, set()

    def _note(self, shards: Collection[int]) -> None:
        seated = Seated(os.getpid(), socket.gethostname(), sorted(set(shards)))
        os.pwrite(self._fd, msgspec.json.encode(seated).ljust(NOTE_BYTES), 0)


def locked(place: Path) -> int:
    """A new file with our lock on it; one who looks may have swept it away before it had one."""
    while True:
        fd = held(place)
        fcntl.flock(fd, fcntl.LOCK_EX)  # who looks holds it for microseconds
        if os.fstat(fd).st_nlink:
            return fd
        let_go(fd)


def seats(path: Path) -> dict[str, Seated]:
    """The nodes that are alive, by name. What dead ones left is swept away."""
    return {node: found for node in names(path) if (found := seated(path, node)) is not None}


def names(path: Path) -> list[str]:
    """Who has a file there, alive or not. Raises StoreError if it cannot be told."""
    try:
        return sorted(each.stem for each in folder_of(path).iterdir() if each.suffix == ".node")
    except FileNotFoundError:
        return []
    except OSError as trouble:
        raise failed(trouble, path) from trouble


def seated(path: Path, node: str) -> Seated | None:
    """What a node says of itself; None if it is dead. Raises StoreError if it cannot be told."""
    try:
        fd = os.open(seat_of(path, node), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as trouble:
        raise failed(trouble, path) from trouble
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return read_note(os.pread(fd, NOTE_BYTES, 0))
    else:
        sweep(path, node)
        return None
    finally:
        os.close(fd)


def read_note(note: bytes) -> Seated:
    """A note; one who has just come has not written it yet."""
    try:
        return msgspec.json.decode(note, type=Seated)
    except msgspec.DecodeError:
        return Seated(0, "")


def sweep(path: Path, node: str) -> None:
    """Take the files of a node away, its lock last; who may not leaves it to others."""
    for place in (pokes_name(path, node), pokes_name(path, node, "look"), seat_of(path, node)):
        with suppress(FileNotFoundError, PermissionError):
            place.unlink()


def failed(trouble: OSError, path: Path) -> StoreError:
    """Why a file among those of the nodes could not be used."""
    if trouble.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return read_only(path, f"sharing: {trouble}")
    said = f"{path} cannot be shared: {trouble}"
    if trouble.errno == errno.ENOSPC:
        return StoreError("store.full", f"{said}; free space on the disk, and try again")
    return StoreError("store.io", f"{said}; look at what this process may open (ulimit -n)")


def folder_of(path: Path) -> Path:
    """Where the nodes of a store have their files, by whatever name it is known."""
    return Path(f"{os.path.realpath(path)}.nodes")


def seat_of(path: Path, node: str) -> Path:
    """The file of a node."""
    return folder_of(path) / f"{node}.node"
