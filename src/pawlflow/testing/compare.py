"""Expected against actual: what does not hold, in words a person can act on."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from pawlflow.definition.fields import duration_text
from pawlflow.testing.scenario import Expect

# What an item is that never came to be, or a step of a child: they have no row of their own.
ABSENT: Final = {"steps": "nothing of this name", "undo": "none"}


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
    if expect.elapsed_ms is not msgspec.UNSET:
        found += same(
            "elapsed", duration_text(expect.elapsed_ms), duration_text(actual["elapsed_ms"])
        )
    for field in ("steps", "undo", "attempts", "lens", "feedback", "spent"):
        wanted = getattr(expect, field)
        for name, value in (wanted or {}).items() if wanted is not msgspec.UNSET else ():
            absent = ABSENT.get(field, 0)
            found += same(f"{field}.{name}", value, actual[field].get(name, absent))
    found += called_with(expect.params, actual["params"])
    for field in ("order", "events"):
        found += in_order(field, getattr(expect, field), actual[field])
    return found


def same(field: str, expected: Any, actual: Any) -> Iterator[Mismatch]:
    """Equal, if anything was expected."""
    if expected is not msgspec.UNSET and expected != actual:
        message = f"{field}: expected {shown(expected)}, got {shown(actual)}"
        yield Mismatch(field, expected, actual, message)


def called_with(expected: Any, actual: Mapping[str, Any]) -> Iterator[Mismatch]:
    """Attempts were made, with these parameters."""
    for label, value in expected.items() if expected is not msgspec.UNSET else ():
        if label in actual:
            yield from same(f"params.{label}", value, actual[label])
        else:
            message = f"params.{label}: there was no such attempt"
            yield Mismatch(f"params.{label}", value, None, message)


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
    """Say which one is missing, and show both lists with the place where they part."""
    name = expected[place]
    if place and name in actual:
        why = f"{name} does not come after {expected[place - 1]}"
    else:
        why = f"{name} never came"
    wanted = [*expected[:place], f"[{name}]", *expected[place + 1 :]]
    return "\n".join(
        [f"{field}: {why}", *listed("expected", wanted), *listed("actual", list(actual))]
    )


def listed(label: str, names: list[str]) -> list[str]:
    """A list under its label, in lines that fit a terminal."""
    return textwrap.wrap(
        ", ".join(names) or "(nothing)",
        width=96,
        initial_indent=f"  {label + ':':<10}",
        subsequent_indent=" " * 12,
        break_long_words=False,
        break_on_hyphens=False,
    )


def shown(value: Any) -> str:
    """A value as a scenario would write it."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
