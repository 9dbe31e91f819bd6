"""A transaction of a SQLite store, whoever writes: the owner, a sender of mail, or a move.

And whose turn it is to write, where several processes share the file.
"""

import fcntl
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

import apsw

from pawlflow.store.held import held, let_go
from pawlflow.store.sqlite_errors import odd, told, unknown
from pawlflow.store.sqlite_seats import folder_of

PEN: Final = "pen"  # its file, among those of the nodes
PEN_S_MAX: Final = 2.0  # to wait for it, for who is no node
LOOK_S: Final = 0.001


@contextmanager
def writing(db: apsw.Connection, path: Path, place: str) -> Iterator[None]:
    """All of it durable at the end, or nothing of it; an end that fails is of unknown outcome."""
    try:
        db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            roll_back(db)
            raise
    except apsw.Error as trouble:
        raise told(trouble, path, place) from trouble
    try:
        db.execute("COMMIT")
    except apsw.Error as trouble:
        roll_back(db)
        raise unknown(trouble, path) from trouble


def roll_back(db: apsw.Connection) -> None:
    """Give up a transaction; SQLite may have done so by itself."""
    if db.in_transaction:
        db.execute("ROLLBACK")


@contextmanager
def reading(db: apsw.Connection, path: Path, place: str) -> Iterator[None]:
    """Several statements that read one moment of the store."""
    try:
        db.execute("BEGIN")
        try:
            yield
        finally:
            roll_back(db)
    except apsw.Error as trouble:
        raise told(trouble, path, f"reading {place}") from trouble
    except (LookupError, TypeError, ValueError) as trouble:
        raise odd(path, place, trouble) from trouble


class Pen:
    """Who has it writes: a lock that wakes who waits for it, as SQLite's own does not.

    SQLite looks again after milliseconds, and two who write by turns would mostly wait.
    """

    def __init__(self, path: Path, *, patient: bool = False) -> None:
        """For a store that is shared; where nobody ever shared it there is nothing to wait for.

        Nodes wait for as long as it takes; others see then what SQLite says.
        """
        self._patient = patient
        try:
            self._fd = held(folder_of(path) / PEN)
        except OSError:
            self._fd = -1

    def around(self, work: AbstractContextManager[None]) -> AbstractContextManager[None]:
        """Wait for it, do the work, and give it back."""
        return work if self._fd < 0 else self._around(work)

    @contextmanager
    def _around(self, work: AbstractContextManager[None]) -> Iterator[None]:
        if self._patient:
            fcntl.flock(self._fd, fcntl.LOCK_EX)
        else:
            self._try()
        try:
            with work:
                yield
        finally:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def _try(self) -> None:
        """Wait for a while: a process that was stopped may hold it for hours."""
        until = time.monotonic() + PEN_S_MAX
        while time.monotonic() < until:
            try:
                return fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(LOOK_S)
        return None

    def close(self) -> None:
        """Write no more."""
        if self._fd >= 0:
            let_go(self._fd)
            self._fd = -1
