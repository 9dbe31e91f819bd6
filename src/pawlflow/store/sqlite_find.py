"""How a SQLite store finds instances: by kind and age, by when they ended, by their attributes."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from heapq import merge
from typing import Any, Final

import apsw

from pawlflow.model.codec import decode, encode
from pawlflow.store.find import (
    HIGH,
    LOW,
    NULL,
    NUMBER,
    TEXT,
    TRUTH,
    Range,
    Span,
    Way,
    ids_of,
    is_indexed,
    key_of,
    kinds_passing,
    newest_first,
    range_of,
    spans_of,
)
from pawlflow.store.port import Batch, Filter, Head, Place, Ref, Scalar, Term
from pawlflow.store.rows import head_of
from pawlflow.store.sqlite_rows import SQL

ALL: Final = -1  # as a limit: none
# The ends of a kind: infinities around numbers, and no text is below the empty one or above bytes.
LOWEST: Final[dict[int, Any]] = {NULL: 0, TRUTH: 0, NUMBER: float("-inf"), TEXT: ""}
HIGHEST: Final[dict[int, Any]] = {NULL: 0, TRUTH: 1, NUMBER: float("inf"), TEXT: b""}


class SqliteRows:
    """What `find` asks for, inside a transaction that somebody else opened."""

    def __init__(self, db: apsw.Connection) -> None:
        self.db = db

    def ways(self, wanted: Filter, terms: Sequence[Term]) -> list[Way]:
        """By id; else by each attribute, by when they ended, and by kind and age if that helps."""
        ids = ids_of(terms)
        if ids is not None:
            return [Named(self.db, wanted, ids)]
        found: list[Way] = [
            Found(self.db, wanted, term.name, spans)
            for term in terms
            if not term.builtin and (spans := spans_of(term, wanted.before)) is not None
        ]
        closed = range_of("closed_at", terms)
        if closed.narrow:
            found.append(Closed(self.db, wanted, closed))
        helps = wanted.states or wanted.workflow or any(t.builtin and is_indexed(t) for t in terms)
        if helps or not found:
            found.append(Listed(self.db, wanted, terms))
        return found

    def look(self, ref: Ref) -> Head:
        """The head of an instance."""
        return head_of(self.db.execute(SQL["head_at"], (ref,)).fetchall()[0])

    def attributes_of(self, ref: Ref) -> dict[str, Scalar]:
        """What it may be found by."""
        return read_attributes(self.db, ref) or {}


class Named:
    """Instances by their ids."""

    def __init__(self, db: apsw.Connection, wanted: Filter, ids: list[str]) -> None:
        rows = (db.execute(SQL["head_by_address"], (wanted.tenant, key)).fetchone() for key in ids)
        heads = (head_of(row) for row in rows if row is not None)
        self.places = [(head.created_at, head.ref) for head in heads]

    def count(self, most: int) -> int:
        """All of them, counted."""
        return min(most, len(self.places))

    def walk(self) -> Iterator[Place]:
        """Newest first."""
        return newest_first(self.places)


class Found:
    """Instances with an attribute in some spans."""

    def __init__(self, db: apsw.Connection, wanted: Filter, name: str, spans: list[Span]) -> None:
        self.db = db
        self.spans = [(span, (wanted.tenant, name, *edges(span))) for span in spans]

    def count(self, most: int) -> int:
        """How many there are, by the index alone."""
        return counted(self.db, "places_found", [given for _, given in self.spans], most)

    def walk(self) -> Iterator[Place]:
        """Newest first; those of one value lie in that order."""
        found = (
            places if span.steady else newest_first(places)
            for span, given in self.spans
            for places in [self.db.execute(SQL["places_found"], (*given, ALL))]
        )
        return merge(*found, reverse=True)


def edges(span: Span) -> tuple[Any, ...]:
    """A span as the statement takes it."""
    low = span.low or (LOWEST[span.kind], LOW, LOW)
    high = span.high or (HIGHEST[span.kind], HIGH, HIGH)
    return span.kind, *low, *high


class Closed:
    """Instances that ended in some time."""

    def __init__(self, db: apsw.Connection, wanted: Filter, times: Range) -> None:
        self.db = db
        self.given = (wanted.tenant, times.low, times.high)

    def count(self, most: int) -> int:
        """How many there are, by the index alone."""
        return counted(self.db, "places_closed", [self.given], most)

    def walk(self) -> Iterator[Place]:
        """Newest first, which is another order than that of their ends."""
        return newest_first(self.db.execute(SQL["places_closed"], (*self.given, ALL)))


class Listed:
    """Instances of some workflows, states and times: the newest of each kind, merged."""

    def __init__(self, db: apsw.Connection, wanted: Filter, terms: Sequence[Term]) -> None:
        self.db = db
        self.wanted = wanted
        self.terms = terms
        created, started = range_of("created_at", terms), range_of("started_at", terms)
        ends = (created.high, started.high, range_of("closed_at", terms).high)
        # Nobody starts before being created, and few start later: those have an index of their own.
        self.low, self.high = max(created.low, started.low), min(ends)
        self.late = Range(started.low, started.high) if started.low > created.low else None

    @cached_property
    def kinds(self) -> list[tuple[Any, ...]]:
        """The stretches of the index, one for each kind."""
        wanted = self.wanted
        rows: list[Any] = self.db.execute(SQL["kinds"], (wanted.tenant,)).fetchall()
        high = min(wanted.before or (HIGH, HIGH), (self.high, HIGH))
        return [
            (wanted.tenant, workflow, state, self.low, LOW, *high)
            for workflow, state in kinds_passing(wanted, self.terms, rows)
        ]

    @property
    def delayed(self) -> list[tuple[Any, ...]]:
        """The stretch of those that started later than they were created, if one is asked for."""
        return [] if self.late is None else [(self.wanted.tenant, self.late.low, self.late.high)]

    def count(self, most: int) -> int:
        """How many there are, by the index alone."""
        found = counted(self.db, "places_of_kind", self.kinds, most)
        return min(most, found + counted(self.db, "places_delayed", self.delayed, most))

    def walk(self) -> Iterator[Place]:
        """Newest first."""
        kinds = [self.db.execute(SQL["places_of_kind"], (*kind, ALL)) for kind in self.kinds]
        late = [
            newest_first(self.db.execute(SQL["places_delayed"], (*given, ALL)))
            for given in self.delayed
        ]
        return merge(*kinds, *late, reverse=True)


def counted(db: apsw.Connection, name: str, stretches: list[tuple[Any, ...]], most: int) -> int:
    """How many rows some stretches of an index have, up to so many."""
    found = 0
    for given in stretches:
        if found >= most:
            break
        found += sum(1 for _ in db.execute(SQL[name], (*given, most - found)))
    return found


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
