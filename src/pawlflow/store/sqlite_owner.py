"""One owner per file: a lock that the kernel takes back when its process dies, however it dies."""

import fcntl
import json
import os
import socket
import sys
from pathlib import Path
from typing import Final

from pawlflow.store.port import StoreError
from pawlflow.store.sqlite_errors import read_only

TRIES_MAX: Final = 1_000  # against those who only look; each holds the lock for microseconds


class Ownership:
    """The lock on a store's file, held until `release`."""

    def __init__(self, path: Path) -> None:
        """Take the lock, or raise StoreError("store.owned") at once if another has it."""
        self._path = path
        try:
            self._fd = os.open(beside(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as trouble:
            raise read_only(path, f"claiming: {trouble}") from trouble
        if not _locked(self._fd):
            holder = _holder(self._fd)
            os.close(self._fd)
            raise owned(path, holder)
        note = {"pid": os.getpid(), "host": socket.gethostname(), "command": sys.argv[:1]}
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, json.dumps(note).encode(), 0)

    def release(self) -> None:
        """Let the next one in. The lock file stays: to remove it could cut off who waits for it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def owner(path: Path) -> int | None:
    """The process that owns this store now; 0 if it has not said yet who it is."""
    try:
        fd = os.open(beside(path), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _holder(fd)
    else:
        return None
    finally:
        os.close(fd)


def beside(path: Path) -> Path:
    """Where the lock of a store lies."""
    return path.with_name(path.name + ".owner")


def owned(path: Path, pid: int) -> StoreError:
    """Somebody else owns the store."""
    return StoreError(
        "store.owned",
        f"{path} is owned by process {pid}: stop that one first, or work through it "
        "(reading and posting need no ownership)",
    )


def _locked(fd: int) -> bool:
    """Take the lock. One who looks holds it shared, so a shared lock tells lookers from owners."""
    for _ in range(TRIES_MAX):
        for kind in (fcntl.LOCK_EX, fcntl.LOCK_SH):
            try:
                fcntl.flock(fd, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            if kind == fcntl.LOCK_EX:
                return True
            fcntl.flock(fd, fcntl.LOCK_UN)
            os.sched_yield()
            break
        else:
            return False
    return False


def _holder(fd: int) -> int:
    try:
        note = json.loads(os.pread(fd, 4096, 0))
        return int(note["pid"])
    except (ValueError, KeyError, TypeError):
        return 0
