"""What a reader of the mailbox remembers, so that it misses nothing.

Ids are drawn before their transaction commits: one may become visible after a higher one. A reader
therefore remembers the moment of its last look, and asks also for what was not visible then.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from pawlflow.model.ids import Tenant
from pawlflow.store.port import Mail
from pawlflow.store.postgres_link import Connection, run
from pawlflow.store.postgres_rows import ints, mail_from
from pawlflow.store.rows import Row

T = TypeVar("T")


class Mailbox:
    """The looks of one reader, one after the other."""

    def __init__(self, sql: Mapping[str, str]) -> None:
        self.sql = sql
        self.moment: str | None = None  # of the last look: which transactions were visible
        self.given: set[int] = set()  # since then, of what had not been visible
        self.floor: int | None = None  # read on from here, whatever was read before

    def forget(self) -> None:
        """Read everything again: another server may have forgotten what this one had shown."""
        self.moment, self.given, self.floor = None, set(), 0

    def look(self, db: Connection, shards: Sequence[int], after: int, limit: int) -> list[Mail]:
        """Mail of these shards with a higher id, and late mail with a lower one; oldest first."""
        return self._look(db, "mail", mail_from, (shards, after, limit))

    def lines(
        self, db: Connection, shards: Sequence[int], after: int, limit: int
    ) -> list[tuple[int, Tenant]]:
        """The same, without what it says."""
        return self._look(db, "mail_lines", line_from, (shards, after, limit))

    def _look(
        self,
        db: Connection,
        name: str,
        make: Callable[[Row], T],
        wanted: tuple[Sequence[int], int, int],
    ) -> list[T]:
        shards, after, limit = wanted
        since = after if self.floor is None else min(after, self.floor)
        asked = (since, ints(shards), limit, self.moment, ints(sorted(self.given)))
        rows = run(db, self.sql[name], asked)
        ids = [row[1] for row in rows if row[1] is not None]
        full = len(ids) >= limit
        if full and ids and ids[-1] <= since:
            self.given.update(ids)  # there may be more that came late
        else:
            self.moment, self.given = rows[0][0], set()
        if self.floor is not None:
            self.floor = ids[-1] if full and ids else None
        return [make(row[1:]) for row in rows if row[1] is not None]


def line_from(row: Row) -> tuple[int, Tenant]:
    """Whose mail it is, from a row."""
    return row[0], Tenant(row[1])
