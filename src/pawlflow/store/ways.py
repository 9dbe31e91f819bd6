"""Ways through the indexes of a SQL store: by id, by an attribute, by an end, by kind and age.

The stores differ in how a stretch of an index is asked for; which stretches there are is the same.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from heapq import merge
from typing import Any, Protocol

from pawlflow.store.find import (
    HIGH,
    LOW,
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
from pawlflow.store.port import Filter, Head, Place, Term

Stretch = tuple[Any, ...]  # what a statement is given, but for its limit


class Index(Protocol):
    """How a store asks its indexes. Statements are known by name."""

    def named(self, wanted: Filter, ids: list[str]) -> list[Head]:
        """The instances with these ids, as far as they exist."""
        ...

    def kinds(self, wanted: Filter) -> Sequence[Any]:
        """Every workflow and state that instances of the tenant have."""
        ...

    def edges(self, span: Span) -> Stretch:
        """Where a span of an attribute begins and ends."""
        ...

    def whole(self, name: str, given: Stretch) -> Iterable[Any]:
        """Every place of a stretch."""
        ...

    def stretch(self, name: str, given: Stretch, end: int) -> Iterable[Any]:
        """The same, newest first; at `end` of what is given stands the place it goes on below."""
        ...

    def count(self, name: str, given: Stretch, most: int) -> int:
        """How many places a stretch has, up to so many."""
        ...

    def seen(self, places: Iterator[Place]) -> Iterator[Place]:
        """Places, with whatever must be read before they are looked at."""
        ...


def ways_of(index: Index, wanted: Filter, terms: Sequence[Term]) -> list[Way]:
    """By id; else by each attribute, by when they ended, and by kind and age if that helps."""
    ids = ids_of(terms)
    if ids is not None:
        return [Named(index, wanted, ids)]
    found: list[Way] = [
        Found(index, wanted, term.name, spans)
        for term in terms
        if not term.builtin and (spans := spans_of(term, wanted.before)) is not None
    ]
    closed = range_of("closed_at", terms)
    if closed.narrow:
        found.append(Closed(index, wanted, closed))
    helps = wanted.states or wanted.workflow or any(t.builtin and is_indexed(t) for t in terms)
    if helps or not found:
        found.append(Listed(index, wanted, terms))
    return found


class Named:
    """Instances by their ids."""

    def __init__(self, index: Index, wanted: Filter, ids: list[str]) -> None:
        self.index = index
        self.places = [(head.created_at, head.ref) for head in index.named(wanted, ids)]

    def count(self, most: int) -> int:
        """All of them, counted."""
        return min(most, len(self.places))

    def walk(self) -> Iterator[Place]:
        """Newest first."""
        return self.index.seen(newest_first(self.places))


class Found:
    """Instances with an attribute in some spans."""

    def __init__(self, index: Index, wanted: Filter, name: str, spans: list[Span]) -> None:
        self.index = index
        self.spans = [(span, (wanted.tenant, name, *index.edges(span))) for span in spans]

    def count(self, most: int) -> int:
        """How many there are, by the index alone."""
        return counted(self.index, "places_found", [given for _, given in self.spans], most)

    def walk(self) -> Iterator[Place]:
        """Newest first; those of one value lie in that order."""
        found = (
            self.index.stretch("places_found", given, len(given) - 2)
            if span.steady
            else newest_first(self.index.whole("places_found", given))
            for span, given in self.spans
        )
        return self.index.seen(merge(*found, reverse=True))


class Closed:
    """Instances that ended in some time."""

    def __init__(self, index: Index, wanted: Filter, times: Range) -> None:
        self.index = index
        self.given = (wanted.tenant, times.low, times.high)

    def count(self, most: int) -> int:
        """How many there are, by the index alone."""
        return counted(self.index, "places_closed", [self.given], most)

    def walk(self) -> Iterator[Place]:
        """Newest first, which is another order than that of their ends."""
        return self.index.seen(newest_first(self.index.whole("places_closed", self.given)))


class Listed:
    """Instances of some workflows, states and times: the newest of each kind, merged."""

    def __init__(self, index: Index, wanted: Filter, terms: Sequence[Term]) -> None:
        self.index = index
        self.wanted = wanted
        self.terms = terms
        created, started = range_of("created_at", terms), range_of("started_at", terms)
        ends = (created.high, started.high, range_of("closed_at", terms).high)
        # Nobody starts before being created, and few start later: those have an index of their own.
        self.low, self.high = max(created.low, started.low), min(ends)
        self.late = Range(started.low, started.high) if started.low > created.low else None

    @cached_property
    def kinds(self) -> list[Stretch]:
        """The stretches of the index, one for each kind."""
        wanted = self.wanted
        high = min(wanted.before or (HIGH, HIGH), (self.high, HIGH))
        return [
            (wanted.tenant, workflow, state, self.low, LOW, *high)
            for workflow, state in kinds_passing(wanted, self.terms, self.index.kinds(wanted))
        ]

    @property
    def delayed(self) -> list[Stretch]:
        """The stretch of those that started later than they were created, if one is asked for."""
        return [] if self.late is None else [(self.wanted.tenant, self.late.low, self.late.high)]

    def count(self, most: int) -> int:
        """How many there are, by the index alone."""
        found = counted(self.index, "places_of_kind", self.kinds, most)
        return min(most, found + counted(self.index, "places_delayed", self.delayed, most))

    def walk(self) -> Iterator[Place]:
        """Newest first."""
        kinds = [self.index.stretch("places_of_kind", kind, len(kind) - 2) for kind in self.kinds]
        late = [newest_first(self.index.whole("places_delayed", given)) for given in self.delayed]
        return self.index.seen(merge(*kinds, *late, reverse=True))


def counted(index: Index, name: str, stretches: list[Stretch], most: int) -> int:
    """How many places some stretches of an index have, up to so many."""
    found = 0
    for given in stretches:
        if found >= most:
            break
        found += index.count(name, given, most - found)
    return found
