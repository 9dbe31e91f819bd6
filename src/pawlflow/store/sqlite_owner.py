"""One owner per file: a lock that the kernel takes back when its process dies, however it dies.

Or several processes that share the file: they hold the same lock together, and no owner gets it.
"""

import fcntl
import json
import os
import socket
import sys
import time
from pathlib import Path
from typing import Final

from pawlflow.store.held import held, let_go
from pawlflow.store.port import StoreError
from pawlflow.store.sqlite_errors import read_only
from pawlflow.store.sqlite_seats import seats

TRIES_MAX: Final = 1_000  # against those who only look; each holds the lock for microseconds
MOMENT_S: Final = 2.0  # how long somebody may own a file just to commit something
LOOK_S: Final = 0.01


class Ownership:
    """The lock on a store's file, held until `release`."""

    def __init__(self, path: Path, *, shared: bool = False) -> None:
        """Take the lock, or raise StoreError("store.owned") if another has it.

        At once, unless it is to be shared: an owner for a moment is waited for then.
        """
        self._path = path
        try:
            self._fd = held(beside(path))
        except OSError as trouble:
            raise read_only(path, f"claiming: {trouble}") from trouble
        if not (_shared(self._fd) if shared else _locked(self._fd, path)):
            holder = _sharer(path) or _holder(self._fd)
            let_go(self._fd)
            raise owned(path, holder)
        if shared:
            return
        note = {"pid": os.getpid(), "host": socket.gethostname(), "command": sys.argv[:1]}
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, json.dumps(note).encode(), 0)

    def release(self) -> None:
        """Let the next one in. The lock file stays: to remove it could cut off who waits for it."""
        if self._fd >= 0:
            let_go(self._fd)
            self._fd = -1


def owner(path: Path) -> int | None:
    """The process that owns this store now, or one that shares it; 0 if it has not said yet."""
    try:
        fd = os.open(beside(path), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _holder(fd)
    else:
        return _sharer(path)
    finally:
        os.close(fd)


def beside(path: Path) -> Path:
    """Where the lock of a store lies, by whatever name it is known."""
    return Path(f"{os.path.realpath(path)}.owner")


def owned(path: Path, pid: int) -> StoreError:
    """Somebody else owns the store."""
    return StoreError(
        "store.owned",
        f"{path} is owned by process {pid}: stop that one first, or work through it "
        "(reading and posting need no ownership)",
    )


def _shared(fd: int) -> bool:
    """Take the lock together with others."""
    until = time.monotonic() + MOMENT_S
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                return False
            time.sleep(LOOK_S)
        else:
            return True


def _locked(fd: int, path: Path) -> bool:
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
            if _sharer(path) is not None:
                return False
            os.sched_yield()
            break
        else:
            return False
    return False


def _sharer(path: Path) -> int | None:
    """One of the processes that share the file."""
    return next((each.pid for each in seats(path).values()), None)


def _holder(fd: int) -> int:
    try:
        note = json.loads(os.pread(fd, 4096, 0))
        return int(note["pid"])
    except (ValueError, KeyError, TypeError):
        return 0
