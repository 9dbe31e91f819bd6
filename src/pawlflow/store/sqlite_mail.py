"""A handle on a SQLite store: how it reads and writes, and its mailbox."""

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar

import apsw

from pawlflow.model.ids import Tenant
from pawlflow.store.check import mask_of
from pawlflow.store.mailbox import Mail
from pawlflow.store.rows import Row, mail_of
from pawlflow.store.sqlite_errors import odd, told
from pawlflow.store.sqlite_rows import SQL
from pawlflow.store.sqlite_work import Pen, reading, writing

T = TypeVar("T")


class SqliteMail:
    """A handle, and what waits for the owner of the store."""

    path: Path
    _db: apsw.Connection
    _pen: Pen

    def mail(self, shards: Sequence[int], after: int, limit: int) -> list[Mail]:
        """Mail of these shards, oldest first."""
        return self._made(mail_of, "mail_after", after, mask_of(shards), limit)

    def mail_lines(self, shards: Sequence[int], after: int, limit: int) -> list[tuple[int, Tenant]]:
        """Whose mail it is."""
        return self._made(tuple, "mail_lines", after, mask_of(shards), limit)

    def mail_by_id(self, shards: Sequence[int], ids: Sequence[int]) -> list[Mail]:
        """Mail by its ids."""
        return self._made(mail_of, "mail_by_id", json.dumps(list(ids)), mask_of(shards))

    def posted(self, tenant: Tenant, prefix: str, most: int) -> int:
        """Count keys that begin so, by their index."""
        above = prefix[:-1] + chr(ord(prefix[-1]) + 1)  # the first that does not
        [count] = self._made(lambda row: int(row[0]), "mail_posted", tenant, prefix, above, most)
        return count

    def _rows(self, name: str, *values: int | str) -> list[Row]:
        """Every row of one statement: a statement alone reads one moment of the store."""
        try:
            return self._db.execute(SQL[name], values).fetchall()
        except apsw.Error as trouble:
            raise told(trouble, self.path, f"reading {name}") from trouble

    def _made(self, make: Callable[[Row], T], name: str, *values: int | str) -> list[T]:
        """What the rows of a statement stand for."""
        return self._all(make, self._rows(name, *values))

    def _all(self, make: Callable[[Row], T], rows: Sequence[Row]) -> list[T]:
        """What rows stand for; rows of another shape mean that the schema was changed."""
        try:
            return [make(row) for row in rows]
        except (LookupError, TypeError, ValueError) as trouble:
            raise odd(self.path, "its rows", trouble) from trouble

    def _reading(self, place: str) -> AbstractContextManager[None]:
        """Several statements that read one moment of the store."""
        return reading(self._db, self.path, place)

    def _writing(self, place: str) -> AbstractContextManager[None]:
        """A transaction: all of it durable at the end, or nothing of it."""
        return self._pen.around(writing(self._db, self.path, place))
