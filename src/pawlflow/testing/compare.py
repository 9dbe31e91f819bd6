"""Expected against actual: what does not hold, in words a person can act on."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from pawlflow.testing.scenario import Expect


class Mismatch(msgspec.Struct, frozen=True):
    """One expectation that does not hold."""

    field: str
    expected: Any
    actual: Any
    message: str


def compare(expect: Expect, actual: Mapping[str, Any]) -> list[Mismatch]:
    """Every mismatch between what was expected and what was."""
    found: list[Mismatch] = []
    for field in ("state", "rollback", "output", "error"):
        found += same(field, getattr(expect, field), actual[field])
    found += same("elapsed", expect.elapsed_ms, actual["elapsed_ms"], unit=" ms")
    for field in ("steps", "undo", "attempts", "lens", "feedback"):
        wanted = getattr(expect, field)
        for name, value in (wanted or {}).items() if wanted is not msgspec.UNSET else ():
            found += same(f"{field}.{name}", value, actual[field].get(name, 0))
    for field in ("order", "events"):
        found += in_order(field, getattr(expect, field), actual[field])
    return found


def same(field: str, expected: Any, actual: Any, unit: str = "") -> Iterator[Mismatch]:
    """Equal, if anything was expected."""
    if expected is not msgspec.UNSET and expected != actual:
        message = f"{field}: expected {shown(expected)}{unit}, got {shown(actual)}{unit}"
        yield Mismatch(field, expected, actual, message)


def in_order(field: str, expected: Any, actual: Sequence[str]) -> Iterator[Mismatch]:
    """These in this order; others may lie between."""
    if expected is msgspec.UNSET:
        return
    rest = iter(actual)
    for place, name in enumerate(expected):
        if name not in rest:  # consumes what it passes
            yield Mismatch(
                field, list(expected), list(actual), missing(field, expected, place, actual)
            )
            return


def missing(field: str, expected: Sequence[str], place: int, actual: Sequence[str]) -> str:
    """Say which one is missing, and show both lists side by side in order."""
    name = expected[place]
    if place and name in actual:
        why = f"{name} does not come after {expected[place - 1]}"
    else:
        why = f"{name} never came"
    return f"{field}: {why}\n  expected: {', '.join(expected)}\n  actual:   {', '.join(actual)}"


def shown(value: Any) -> str:
    """A value as a scenario would write it."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
