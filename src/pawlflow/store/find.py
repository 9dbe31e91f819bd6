"""Finding: the instances a filter means, and the cheapest of the ways that lead to them.

Every store finds them by this one plan, so that all give the same answer. A store offers ways (an
index with bounds); the way that leads past the fewest is walked, and what stands on it is checked.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import merge
from operator import attrgetter, eq, ge, gt, le, lt
from typing import Any, Final, Protocol

import msgspec

from pawlflow.store.port import Filter, Head, Place, Ref, Scalar, Term

NULL, TRUTH, NUMBER, TEXT = range(4)  # kinds of values: a comparison never leaves its kind
OPS: Final[dict[str, Callable[[Any, Any], bool]]] = {"==": eq, "<": lt, "<=": le, ">": gt, ">=": ge}
BUILTINS: Final[dict[str, Callable[[Head], Scalar]]] = {
    "id": attrgetter("cell.key"),
    "workflow": attrgetter("cell.workflow"),
    "version": attrgetter("version"),
    "state": attrgetter("state"),
    "rollback": attrgetter("rollback"),
    "created_at": attrgetter("created_at"),
    "started_at": attrgetter("started_at"),
    "closed_at": attrgetter("closed_at"),
}
TIMES: Final = ("created_at", "started_at", "closed_at")
PROBE: Final = 64  # counted of each way at first; then eight times as many, until one has fewer
PROBE_GROWTH: Final = 8
LOW: Final = -1  # below every time and ref
HIGH: Final = 2**62  # above every time and ref

Bound = tuple[Any, int, int]  # a value, a time, a ref: where a span begins or ends, without itself


class Span(msgspec.Struct, frozen=True):
    """A stretch of an index over values, times and refs. None: as far as its kind goes."""

    kind: int
    low: Bound | None
    high: Bound | None
    steady: bool = False  # of one value, so that places come in order


class Way(Protocol):
    """A way to some instances: all that a filter means are on it, and others may be."""

    def count(self, most: int) -> int:
        """How many are on it, counted up to so many."""
        ...

    def walk(self) -> Iterator[Place]:
        """The places on it, newest first; one may come twice in a row."""
        ...


class Rows(Protocol):
    """What a store must offer."""

    def ways(self, wanted: Filter, terms: Sequence[Term]) -> list[Way]:
        """The ways to instances of a tenant that pass all these terms; at least one."""
        ...

    def look(self, ref: Ref) -> Head:
        """The head of an instance."""
        ...

    def attributes_of(self, ref: Ref) -> dict[str, Scalar]:
        """What an instance may be found by."""
        ...


def find(rows: Rows, wanted: Filter) -> list[Head]:
    """One page of the instances that a filter means, newest first."""
    ways = [shortest(rows.ways(wanted, terms)) for terms in wanted.where or [()]]
    asks = any(not term.builtin for terms in wanted.where for term in terms)
    found: list[Head] = []
    last: Place | None = None
    for place in merge(*(way.walk() for way in ways), reverse=True):
        if len(found) >= wanted.limit:
            break
        if place == last or (wanted.before is not None and place >= wanted.before):
            continue
        last = place
        head = rows.look(place[1])
        if means(wanted, head, rows.attributes_of(head.ref) if asks else {}):
            found.append(head)
    return found


def shortest(ways: Sequence[Way]) -> Way:
    """The way with the fewest on it, at the cost of counting about as many on each other."""
    most = PROBE
    while len(ways) > 1:
        counts = [way.count(most) for way in ways]
        if min(counts) < most:
            return ways[counts.index(min(counts))]
        most *= PROBE_GROWTH
    return ways[0]


# What a filter means


def means(wanted: Filter, head: Head, attributes: dict[str, Scalar]) -> bool:
    """Does a filter mean this cell? Never one of the system."""
    if head.cell.workflow.startswith("$"):
        return False
    if wanted.states and head.state not in wanted.states:
        return False
    if wanted.workflow not in (None, head.cell.workflow):
        return False
    if not wanted.where:
        return True
    return any(all(passes(term, head, attributes) for term in terms) for terms in wanted.where)


def passes(term: Term, head: Head, attributes: dict[str, Scalar]) -> bool:
    """Does an instance pass a comparison? Without the attribute it does not, whatever is asked."""
    if term.builtin:
        return holds(term, BUILTINS[term.name](head))
    return term.name in attributes and holds(term, attributes[term.name])


def holds(term: Term, value: Scalar) -> bool:
    """Does a comparison hold for a value? Values of two kinds are unequal, and neither is less."""
    if term.op == "!=":
        return all(key_of(value) != key_of(each) for each in term.values)
    compare, (kind, key) = OPS[term.op], key_of(value)
    others = (key_of(each) for each in term.values)
    return any(kind == other and compare(key, each) for other, each in others)


def key_of(value: Scalar) -> tuple[int, Any]:
    """A value as it stands in an index: its kind, and something to compare by. True is not 1."""
    if value is None:
        return NULL, 0
    if isinstance(value, bool):
        return TRUTH, int(value)
    return (TEXT if isinstance(value, str) else NUMBER), value


# Spans of an index


def spans_of(term: Term, before: Place | None) -> list[Span] | None:
    """Where the values lie that pass a term; None if they may lie anywhere."""
    if term.op == "!=":
        return None
    each = {key_of(value): value for value in term.values}  # true is not 1, though Python thinks so
    return [span_of(term.op, value, before) for value in each.values()]


def span_of(op: str, value: Scalar, before: Place | None) -> Span:
    """Where the values lie that compare like this with one."""
    kind, key = key_of(value)
    first, last = (key, LOW, LOW), (key, HIGH, HIGH)
    match op:
        case "==":
            return Span(kind, first, last if before is None else (key, *before), steady=True)
        case "<":
            return Span(kind, None, first)
        case "<=":
            return Span(kind, None, last)
        case ">":
            return Span(kind, last, None)
        case _:
            return Span(kind, first, None)


class Range(msgspec.Struct, frozen=True):
    """Times from `low` to `high`, both of them too."""

    low: int = LOW
    high: int = HIGH

    @property
    def narrow(self) -> bool:
        """Is anything left out?"""
        return self != Range()


def range_of(name: str, terms: Iterable[Term]) -> Range:
    """The times that pass all terms about one; those with several values or `!=` leave out none."""
    low, high = LOW, HIGH
    for term in terms:
        if not term.builtin or term.name != name or len(term.values) != 1:
            continue
        [at] = term.values
        if not isinstance(at, int):
            continue
        if term.op in ("==", ">", ">="):
            low = max(low, at + (term.op == ">"))
        if term.op in ("==", "<", "<="):
            high = min(high, at - (term.op == "<"))
    return Range(low, high)


def is_indexed(term: Term) -> bool:
    """Does a store need not look at every instance for this term?"""
    if not term.builtin:
        return term.op != "!="
    if term.name in TIMES:
        return range_of(term.name, [term]).narrow
    return term.name in ("workflow", "state") or (term.name == "id" and term.op == "==")


def kinds_passing(
    wanted: Filter, terms: Sequence[Term], kinds: Iterable[tuple[str, str]]
) -> list[tuple[str, str]]:
    """The workflows and states that a filter leaves, of those there are."""
    named = [term for term in terms if term.builtin and term.name in ("workflow", "state")]
    return [
        (workflow, state)
        for workflow, state in kinds
        if wanted.workflow in (None, workflow)
        and (not wanted.states or state in wanted.states)
        and all(holds(term, workflow if term.name == "workflow" else state) for term in named)
    ]


def newest_first(places: Iterable[Place]) -> Iterator[Place]:
    """Places that were found in another order."""
    return iter(sorted(places, reverse=True))


def ids_of(terms: Sequence[Term]) -> list[str] | None:
    """The ids that a filter names, if it does."""
    named = [t for t in terms if t.builtin and t.name == "id" and t.op == "=="]
    return [str(each) for each in named[0].values] if named else None
