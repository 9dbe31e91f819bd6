"""A transaction of a SQLite store, whoever writes: the owner, a sender of mail, or a move."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from pawlflow.store.sqlite_errors import told, unknown


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
