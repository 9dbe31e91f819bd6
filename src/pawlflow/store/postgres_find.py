"""How a PostgreSQL store finds instances: the same ways as SQLite's, some pages at a time.

Every question costs a round trip, so heads and attributes of the next places are read together.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from heapq import merge
from itertools import islice
from typing import Any, Final

from pawlflow.model.codec import decode
from pawlflow.model.ids import InstanceId
from pawlflow.store.find import (
    HIGH,
    LOW,
    TEXT,
    Range,
    Span,
    Way,
    ids_of,
    is_indexed,
    kinds_passing,
    newest_first,
    range_of,
    spans_of,
)
from pawlflow.store.port import Filter, Head, Place, Ref, Scalar, Term
from pawlflow.store.postgres_link import Connection, run
from pawlflow.store.postgres_rows import asked, ints
from pawlflow.store.postgres_write import TEXT_BYTES_MAX, search_key
from pawlflow.store.rows import Row, head_of

ALL: Final = HIGH  # as a limit: none
PAGES: Final = (128, 4_096)  # places read at once: first, and at most
LOWEST: Final = ("-Infinity", b"", LOW, LOW)


class PostgresRows:
    """What `find` asks for, inside a transaction that somebody else opened."""

    def __init__(self, db: Connection, sql: dict[str, str], wanted: Filter) -> None:
        self.db = db
        self.sql = sql
        self.asks = any(not term.builtin for terms in wanted.where for term in terms)
        self.heads: dict[Ref, Head] = {}
        self.values: dict[Ref, dict[str, Scalar]] = {}

    def ways(self, wanted: Filter, terms: Sequence[Term]) -> list[Way]:
        """By id; else by each attribute, by when they ended, and by kind and age if that helps."""
        ids = ids_of(terms)
        if ids is not None:
            return [Named(self, wanted, ids)]
        found: list[Way] = [
            Found(self, wanted, term.name, spans)
            for term in terms
            if not term.builtin and (spans := spans_of(term, wanted.before)) is not None
        ]
        closed = range_of("closed_at", terms)
        if closed.narrow:
            found.append(Closed(self, wanted, closed))
        helps = wanted.states or wanted.workflow or any(t.builtin and is_indexed(t) for t in terms)
        if helps or not found:
            found.append(Listed(self, wanted, terms))
        return found

    def look(self, ref: Ref) -> Head:
        """The head of an instance; it was read with its place."""
        return self.heads[ref]

    def attributes_of(self, ref: Ref) -> dict[str, Scalar]:
        """What it may be found by."""
        return self.values.get(ref, {})

    # For the ways

    def rows(self, name: str, values: Sequence[Any]) -> list[Row]:
        """The rows of a statement."""
        return run(self.db, self.sql[name], values)

    def seen(self, places: Iterable[Place]) -> Iterator[Place]:
        """Places, with what stands there read some at a time before they are given."""
        size = PAGES[0]
        rest = iter(places)
        while page := list(islice(rest, size)):
            fresh = ints([ref for _, ref in page if ref not in self.heads])
            self.heads |= {row[0]: head_of(row) for row in self.rows("heads_at", (fresh,))}
            if self.asks:
                self.values |= dict(read_attributes(self.rows("attributes_of", (fresh,))))
            yield from page
            size = min(2 * size, PAGES[1])

    def stretch(self, name: str, given: tuple[Any, ...], end: int) -> Iterator[Place]:
        """The places of a stretch of an index, newest first, a page at a time.

        `given` ends with the place it goes on below, at `end`.
        """
        size = PAGES[0]
        while True:
            page: list[Any] = self.rows(name, (*given, size))
            yield from page
            if len(page) < size:
                return
            given = (*given[:end], *page[-1], *given[end + 2 :])
            size = min(2 * size, PAGES[1])

    def counted(self, name: str, stretches: list[tuple[Any, ...]], most: int) -> int:
        """How many rows some stretches of an index have, up to so many."""
        found = 0
        for given in stretches:
            if found >= most:
                break
            text = f"SELECT count(*) FROM ({self.sql[name]}) AS places"
            found += sum(row[0] for row in run(self.db, text, (*given, most - found)))
        return found


class Named:
    """Instances by their ids."""

    def __init__(self, rows: PostgresRows, wanted: Filter, ids: list[str]) -> None:
        self.base = rows
        named = asked((wanted.tenant, InstanceId(key)) for key in ids)
        heads = [head_of(row) for row in rows.rows("heads_by_address", named)]
        self.places = [(head.created_at, head.ref) for head in heads]

    def count(self, most: int) -> int:
        """All of them, counted."""
        return min(most, len(self.places))

    def walk(self) -> Iterator[Place]:
        """Newest first."""
        return self.base.seen(newest_first(self.places))


class Found:
    """Instances with an attribute in some spans."""

    def __init__(self, rows: PostgresRows, wanted: Filter, name: str, spans: list[Span]) -> None:
        self.base = rows
        self.spans = [(span, (wanted.tenant, name, *edges(span))) for span in spans]

    def count(self, most: int) -> int:
        """How many there are, by the index alone."""
        return self.base.counted("places_found", [given for _, given in self.spans], most)

    def walk(self) -> Iterator[Place]:
        """Newest first; those of one value lie in that order."""
        found = (
            self.base.stretch("places_found", given, 10)
            if span.steady
            else newest_first(self.base.rows("places_found", (*given, ALL)))
            for span, given in self.spans
        )
        return self.base.seen(merge(*found, reverse=True))


def edges(span: Span) -> tuple[Any, ...]:
    """A span as the statement takes it: where it begins, and where it ends.

    A text that is too long for the index stands for all that begin like it.
    """
    low: tuple[Any, ...] = (span.kind, *LOWEST)
    high: tuple[Any, ...] = (span.kind + 1, *LOWEST)
    if span.low is not None:
        cut = is_cut(span, span.low[0]) and not span.steady
        low = (*key_in(span, span.low[0]), *((LOW, LOW) if cut else span.low[1:]))
    if span.high is not None:
        cut = is_cut(span, span.high[0]) and not span.steady
        high = (*key_in(span, span.high[0]), *((HIGH, HIGH) if cut else span.high[1:]))
    return *low, *high


def key_in(span: Span, key: Any) -> tuple[int, str, bytes]:
    """A bound as it stands in the index: a truth value is a number there."""
    return span.kind, *search_key(key)[1:]


def is_cut(span: Span, key: Any) -> bool:
    """Is this text, or one that begins with it, not whole in the index?"""
    return span.kind == TEXT and len(key.encode()) >= TEXT_BYTES_MAX


class Closed:
    """Instances that ended in some time."""

    def __init__(self, rows: PostgresRows, wanted: Filter, times: Range) -> None:
        self.base = rows
        self.given = (wanted.tenant, times.low, times.high)

    def count(self, most: int) -> int:
        """How many there are, by the index alone."""
        return self.base.counted("places_closed", [self.given], most)

    def walk(self) -> Iterator[Place]:
        """Newest first, which is another order than that of their ends."""
        places: list[Any] = self.base.rows("places_closed", (*self.given, ALL))
        return self.base.seen(newest_first(places))


class Listed:
    """Instances of some workflows, states and times: the newest of each kind, merged."""

    def __init__(self, rows: PostgresRows, wanted: Filter, terms: Sequence[Term]) -> None:
        self.base = rows
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
        rows: list[Any] = self.base.rows("kinds", (wanted.tenant,))
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
        found = self.base.counted("places_of_kind", self.kinds, most)
        return min(most, found + self.base.counted("places_delayed", self.delayed, most))

    def walk(self) -> Iterator[Place]:
        """Newest first."""
        kinds = [self.base.stretch("places_of_kind", kind, 5) for kind in self.kinds]
        late = [
            newest_first(self.base.rows("places_delayed", (*given, ALL))) for given in self.delayed
        ]
        return self.base.seen(merge(*kinds, *late, reverse=True))


def read_attributes(rows: Iterable[Row]) -> Iterator[tuple[Ref, dict[str, Scalar]]]:
    """What instances may be found by, from their rows."""
    for ref, data in rows:
        yield ref, decode(data)
