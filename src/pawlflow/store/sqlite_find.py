"""How a SQLite store finds instances: by kind and age, by when they ended, by their attributes."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import apsw

from pawlflow.model.codec import decode, encode
from pawlflow.store.find import HIGH, LOW, NULL, NUMBER, TEXT, TRUTH, Span, Way, key_of
from pawlflow.store.port import Batch, Filter, Head, Place, Ref, Scalar, Term
from pawlflow.store.rows import head_of
from pawlflow.store.sqlite_rows import SQL
from pawlflow.store.ways import Stretch, ways_of

ALL: Final = -1  # as a limit: none
# The ends of a kind: infinities around numbers, and no text is below the empty one or above bytes.
LOWEST: Final[dict[int, Any]] = {NULL: 0, TRUTH: 0, NUMBER: float("-inf"), TEXT: ""}
HIGHEST: Final[dict[int, Any]] = {NULL: 0, TRUTH: 1, NUMBER: float("inf"), TEXT: b""}


class SqliteRows:
    """What `find` asks for, inside a transaction that somebody else opened."""

    def __init__(self, db: apsw.Connection) -> None:
        self.db = db

    def ways(self, wanted: Filter, terms: Sequence[Term]) -> list[Way]:
        """The ways that lead to what is wanted."""
        return ways_of(self, wanted, terms)

    def look(self, ref: Ref) -> Head:
        """The head of an instance."""
        return head_of(self.db.execute(SQL["head_at"], (ref,)).fetchall()[0])

    def attributes_of(self, ref: Ref) -> dict[str, Scalar]:
        """What it may be found by."""
        return read_attributes(self.db, ref) or {}

    # For the ways

    def named(self, wanted: Filter, ids: list[str]) -> list[Head]:
        """The instances with these ids."""
        asked = ((wanted.tenant, key) for key in ids)
        rows = (self.db.execute(SQL["head_by_address"], each).fetchone() for each in asked)
        return [head_of(row) for row in rows if row is not None]

    def kinds(self, wanted: Filter) -> Sequence[Any]:
        """Every workflow and state."""
        return self.db.execute(SQL["kinds"], (wanted.tenant,)).fetchall()

    def edges(self, span: Span) -> Stretch:
        """A span as the statement takes it."""
        low = span.low or (LOWEST[span.kind], LOW, LOW)
        high = span.high or (HIGHEST[span.kind], HIGH, HIGH)
        return span.kind, *low, *high

    def whole(self, name: str, given: Stretch) -> Iterable[Any]:
        """Every place of a stretch."""
        return self.db.execute(SQL[name], (*given, ALL))

    def stretch(self, name: str, given: Stretch, _: int) -> Iterable[Any]:
        """The same: the statement gives them in order, one by one."""
        return self.whole(name, given)

    def count(self, name: str, given: Stretch, most: int) -> int:
        """How many places a stretch has."""
        return sum(1 for _ in self.db.execute(SQL[name], (*given, most)))

    def seen(self, places: Iterator[Place]) -> Iterator[Place]:
        """As they are: each is read when it is looked at."""
        return places


# Writing and reading attributes


def write_attributes(db: apsw.Connection, batch: Batch) -> None:
    """Let new instances be found by what they say of themselves."""
    heads = {head.ref: head for head in batch.heads}
    rows: list[tuple[Any, ...]] = []
    for each in batch.attributes:
        head = heads[each.ref]
        tenant, at = head.cell.tenant, head.created_at
        rows += [
            (tenant, name, *key_of(value), at, each.ref) for name, value in each.values.items()
        ]
        db.execute(SQL["attributes_add"], (each.ref, encode(each.values)))
    db.executemany(SQL["search_add"], rows)


def read_attributes(db: apsw.Connection, ref: Ref) -> dict[str, Scalar] | None:
    """What an instance may be found by."""
    row = db.execute(SQL["attributes_of"], (ref,)).fetchone()
    if row is None:
        return None
    values: dict[str, Scalar] = decode(row[0])
    return values
