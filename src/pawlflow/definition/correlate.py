"""Correlation: the part of a wait's `match` that lets its topic find it without asking.

Of `event.order.id == steps.place.id && ...` the path `order.id` and the value on the other side are
enough to look the wait up. Whether the whole `match` holds is still decided by the instance.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pawlflow.definition.bound import Bound, bind
from pawlflow.definition.express import Expression, ExpressionError, tree
from pawlflow.definition.express.compile import compile_node, entry
from pawlflow.definition.express.parse import parse_source
from pawlflow.definition.express.scope import Scope, Table
from pawlflow.model.ids import StepName

INT_MIN, INT_END = -(2**63), 2**64  # the integers that a payload may hold
EVENT_NAMES: Final = frozenset({"event", "payload"})
SCALARS: Final = (bool, int, float)
TEXT_MAX: Final = 1_024  # characters of a text that is looked up; a longer one is only compared


def correlation_of(
    match: str | None, roots: frozenset[str], index: Mapping[StepName, int], before: int
) -> tuple[str, Bound] | None:
    """The path into the event, and what must stand there; None if `match` says no such thing."""
    for left, right in [] if match is None else equations(parse_source(match)):
        for event_side, other_side in ((left, right), (right, left)):
            path = path_in_event(event_side)
            program = compile_without_event(other_side, roots) if path else None
            if program is not None:
                return path, bind(program, index, before)
    return None


def equations(node: tree.Node) -> Iterator[tuple[tree.Node, tree.Node]]:
    """The terms `a == b` without which the whole cannot be true."""
    rest = [node]
    while rest:
        node = rest.pop()
        if isinstance(node, tree.Logic) and node.operator == "&&":
            rest += reversed(node.terms)
        elif isinstance(node, tree.Chain) and [operator for operator, _ in node.rest] == ["=="]:
            yield node.first, node.rest[0][1]


def path_in_event(node: tree.Node) -> str:
    """`A.B` of `event.A.B`; empty for everything else."""
    keys: list[str] = []
    while isinstance(node, tree.Access):
        if not isinstance(node.key, tree.Literal) or type(node.key.value) is not str:
            return ""
        keys.append(node.key.value)
        node = node.base
    at_event = isinstance(node, tree.Name) and node.name in EVENT_NAMES
    return ".".join(reversed(keys)) if at_event and all(map(is_plain, keys)) else ""


def is_plain(key: str) -> bool:
    """Can this key be part of a path? One with a dot would be taken for two."""
    return key != "" and "." not in key


def compile_without_event(node: tree.Node, roots: frozenset[str]) -> Expression | None:
    """A side of an equation that can be evaluated before there is an event."""
    table = Table(roots, None)
    try:
        run = compile_node(node, Scope(table))
    except ExpressionError:
        return None
    offsets = tuple(offset for _, offset in table.places)
    return Expression(
        refs=tuple(table.refs),
        evaluate=entry(run, table),
        run=run,
        slots=table.slots,
        source="",
        ref_offsets=offsets,
    )


def correlated(value: Any) -> Any:
    """The value by which two equal scalars are found equal; None where it cannot be looked up.

    1 and 1.0 are equal in CEL but not as bytes, so a whole double becomes an integer.
    """
    if type(value) is str:
        return value if len(value) <= TEXT_MAX else None
    if type(value) is float and value.is_integer() and INT_MIN <= value < INT_END:
        return int(value)
    return value if type(value) in SCALARS else None


def value_at(event: Any, path: str) -> Any:
    """What an event holds at a path; None where it holds nothing."""
    for key in path.split("."):
        if type(event) is not dict:
            return None
        event = event.get(key)
    return event
