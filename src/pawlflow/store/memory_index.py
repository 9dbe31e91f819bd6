"""What the reference store finds instances by: keys in order, and the ways over them."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import islice
from typing import Any, Generic, TypeVar

from pawlflow.model.ids import Tenant, TimeMs
from pawlflow.store.find import (
    HIGH,
    LOW,
    Range,
    Span,
    Way,
    ids_of,
    key_of,
    newest_first,
    range_of,
    spans_of,
)
from pawlflow.store.port import Address, Filter, Head, Place, Ref, Scalar, Term

Key = TypeVar("Key", int, str, tuple[int, int], Place, tuple[Any, ...])


class Ordered(Generic[Key]):
    """Keys in order. Adding at the end is cheap, anywhere else a memory move."""

    def __init__(self) -> None:
        self.keys: list[Key] = []

    def add(self, key: Key) -> None:
        """Put a key in its place; it must not be there."""
        insort(self.keys, key)

    def remove(self, key: Key) -> None:
        """Take a key out; it must be there."""
        del self.keys[bisect_left(self.keys, key)]

    def after(self, key: Key) -> Iterator[Key]:
        """The keys above this one, rising."""
        return islice(self.keys, bisect_right(self.keys, key), None)

    def between(self, low: Key, high: Key) -> range:
        """The places of the keys above one and below another."""
        return range(bisect_right(self.keys, low), bisect_left(self.keys, high))


class Index:
    """The instances of every tenant by their places, and by what they may be found by."""

    def __init__(self, cells: Mapping[Ref, Head], addresses: Mapping[Address, Ref]) -> None:
        self.cells = cells
        self.addresses = addresses
        self.instances: dict[Tenant, Ordered[Place]] = {}
        self.values: dict[tuple[Tenant, str], Ordered[tuple[Any, ...]]] = {}
        self.attributes: dict[Ref, dict[str, Scalar]] = {}
        self.systems: dict[tuple[Tenant, str], Ordered[str]] = {}

    def add(self, head: Head) -> None:
        """A new cell."""
        cell = head.cell
        if cell.workflow.startswith("$"):
            self.systems.setdefault((cell.tenant, cell.workflow), Ordered()).add(cell.key)
        else:
            self.instances.setdefault(cell.tenant, Ordered()).add((head.created_at, head.ref))

    def describe(self, head: Head, values: dict[str, Scalar]) -> None:
        """What a new instance may be found by."""
        self.attributes[head.ref] = values
        for name, value in values.items():
            line = self.values.setdefault((head.cell.tenant, name), Ordered())
            line.add((*key_of(value), head.created_at, head.ref))

    def drop(self, head: Head) -> None:
        """A cell that is no more."""
        cell = head.cell
        if cell.workflow.startswith("$"):
            self.systems[cell.tenant, cell.workflow].remove(cell.key)
            return
        self.instances[cell.tenant].remove((head.created_at, head.ref))
        for name, value in self.attributes.pop(head.ref, {}).items():
            line = self.values[cell.tenant, name]
            line.remove((*key_of(value), head.created_at, head.ref))
            if not line.keys:
                del self.values[cell.tenant, name]

    def names(self, tenant: Tenant) -> list[str]:
        """The names of a tenant's attributes."""
        return sorted(name for whose, name in self.values if whose == tenant)

    def keys_of(self, tenant: Tenant, kind: str, before: str) -> Iterator[str]:
        """The keys of system cells of a kind, highest first."""
        keys = self.systems.get((tenant, kind), Ordered[str]()).keys
        end = bisect_left(keys, before) if before else len(keys)
        return (keys[at] for at in range(end - 1, -1, -1))

    # What `find` asks for

    def ways(self, wanted: Filter, terms: Sequence[Term]) -> list[Way]:
        """By id, by attributes, or past the instances of some time."""
        tenant, before = wanted.tenant, wanted.before
        ids = ids_of(terms)
        if ids is not None:
            named = [self.addresses.get((tenant, key)) for key in ids]  # type: ignore[arg-type]
            return [Places([self.place(ref) for ref in named if ref in self.cells])]
        found: list[Way] = [
            Lines(self.values.get((tenant, term.name)), spans)
            for term in terms
            if not term.builtin and (spans := spans_of(term, before)) is not None
        ]
        if found and not any(term.builtin for term in terms):
            return found
        created = range_of("created_at", terms)
        high = min(each.high for each in (created, *(range_of(n, terms) for n in LATER)))
        times = Range(created.low, high)
        return [*found, Ages(self.instances.get(tenant), times, before)]

    def look(self, ref: Ref) -> Head:
        """The head of an instance."""
        return self.cells[ref]

    def attributes_of(self, ref: Ref) -> dict[str, Scalar]:
        """What it may be found by."""
        return self.attributes.get(ref, {})

    def place(self, ref: Ref | None) -> Place:
        """The place of an instance."""
        assert ref is not None
        return self.cells[ref].created_at, ref


LATER = ("started_at", "closed_at")  # never before an instance was created


class Places:
    """Instances that are known by name."""

    def __init__(self, places: Iterable[Place]) -> None:
        self.places = list(places)

    def count(self, most: int) -> int:
        """All of them, counted."""
        return min(most, len(self.places))

    def walk(self) -> Iterator[Place]:
        """Newest first."""
        return newest_first(self.places)


class Ages:
    """All instances of a tenant from some time, whatever they are."""

    def __init__(self, line: Ordered[Place] | None, times: Range, before: Place | None) -> None:
        self.keys = [] if line is None else line.keys
        high = min((TimeMs(times.high), HIGH), before or (TimeMs(HIGH), HIGH))
        self.range = (line or Ordered[Place]()).between((TimeMs(times.low), LOW), high)

    def count(self, most: int) -> int:
        """How many there are."""
        return min(most, len(self.range))

    def walk(self) -> Iterator[Place]:
        """Newest first."""
        return (self.keys[at] for at in reversed(self.range))


class Lines:
    """Instances with an attribute in some spans."""

    def __init__(self, line: Ordered[tuple[Any, ...]] | None, spans: list[Span]) -> None:
        self.keys = [] if line is None else line.keys
        self.parts = [] if line is None else [(span, stretch(line, span)) for span in spans]

    def count(self, most: int) -> int:
        """How many there are."""
        return min(most, sum(len(part) for _, part in self.parts))

    def walk(self) -> Iterator[Place]:
        """Newest first; those of one value lie in that order."""
        found = (
            places if span.steady else newest_first(places)
            for span, part in self.parts
            for places in [(self.keys[at][2:] for at in reversed(part))]
        )
        return merge(*found, reverse=True)


def stretch(line: Ordered[tuple[Any, ...]], span: Span) -> range:
    """The part of a line that a span is; a shorter tuple comes before all that begin like it."""
    low = (span.kind,) if span.low is None else (span.kind, *span.low)
    high = (span.kind + 1,) if span.high is None else (span.kind, *span.high)
    return line.between(low, high)
