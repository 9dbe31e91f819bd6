"""How a PostgreSQL store finds instances: the same ways as SQLite's, some pages at a time.

Every question costs a round trip, so heads and attributes of the next places are read together.
"""

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import islice
from typing import Any, Final

from pawlflow.model.codec import decode
from pawlflow.model.ids import InstanceId
from pawlflow.store.find import HIGH, LOW, NUMBER, TEXT, Span, Way, key_of
from pawlflow.store.port import Filter, Head, Place, Ref, Scalar, Term
from pawlflow.store.postgres_link import Connection, run
from pawlflow.store.postgres_rows import asked, ints
from pawlflow.store.rows import Row, head_of
from pawlflow.store.ways import Stretch, ways_of

ALL: Final = HIGH  # as a limit: none
PAGES: Final = (128, 4_096)  # places read at once: first, and at most
LOWEST: Final = ("-Infinity", b"", LOW, LOW)
TEXT_BYTES_MAX: Final = 512  # of a text in the index: what is longer is compared after it was found


class PostgresRows:
    """What `find` asks for, inside a transaction that somebody else opened."""

    def __init__(self, db: Connection, sql: dict[str, str], wanted: Filter) -> None:
        self.db = db
        self.sql = sql
        self.asks = any(not term.builtin for terms in wanted.where for term in terms)
        self.heads: dict[Ref, Head] = {}
        self.values: dict[Ref, dict[str, Scalar]] = {}

    def ways(self, wanted: Filter, terms: Sequence[Term]) -> list[Way]:
        """The ways that lead to what is wanted."""
        return ways_of(self, wanted, terms)

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

    def named(self, wanted: Filter, ids: list[str]) -> list[Head]:
        """The instances with these ids."""
        addresses = asked((wanted.tenant, InstanceId(key)) for key in ids)
        return [head_of(row) for row in self.rows("heads_by_address", addresses)]

    def kinds(self, wanted: Filter) -> Sequence[Any]:
        """Every workflow and state."""
        return self.rows("kinds", (wanted.tenant,))

    def edges(self, span: Span) -> Stretch:
        """A span as the statement takes it."""
        return edges(span)

    def whole(self, name: str, given: Stretch) -> Iterable[Any]:
        """Every place of a stretch."""
        return self.rows(name, (*given, ALL))

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

    def stretch(self, name: str, given: Stretch, end: int) -> Iterator[Place]:
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

    def count(self, name: str, given: Stretch, most: int) -> int:
        """How many places a stretch has."""
        text = f"SELECT count(*) FROM ({self.sql[name]}) AS places"
        return sum(row[0] for row in run(self.db, text, (*given, most)))


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


def read_attributes(rows: Iterable[Row]) -> Iterator[tuple[Ref, dict[str, Scalar]]]:
    """What instances may be found by, from their rows."""
    for ref, data in rows:
        yield ref, decode(data)


def search_key(value: Scalar) -> tuple[int, str, bytes]:
    """A value as it stands in the index: its kind, an exact number, or the start of a text."""
    kind, key = key_of(value)
    if kind == TEXT:
        return kind, "0", key.encode()[:TEXT_BYTES_MAX]
    return kind, str(Decimal(key) if kind == NUMBER else key), b""
