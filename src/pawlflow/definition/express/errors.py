"""The one error of the expression language, and the sentences several rooms share."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any


class ExpressionError(Exception):
    """What is wrong with an expression, at check time (with an offset) or at run time."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        offset: int | None = None,
        hint: str = "",
        path: tuple[str | int, ...] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.offset = offset
        self.hint = hint
        self.path = path
        self.more: list[ExpressionError] = []  # what else is wrong, at check time
        self.refs: list[tuple[tuple[str, ...], int]] = []  # what was read until then, and where


def syntax_error(message: str, offset: int, hint: str = "") -> ExpressionError:
    """The text is not an expression."""
    return ExpressionError("expression.syntax", message, offset=offset, hint=hint)


def type_error(what: str, wanted: str, *values: Any) -> ExpressionError:
    """An operator, function or macro was given values of kinds it does not take."""
    found = " and ".join(type_name(value) for value in values)
    hint = "a missing member is null; test for it with has() or == null" if None in values else ""
    return ExpressionError("expression.type", f"{what} takes {wanted}, not {found}", hint=hint)


def overflow_error(what: str) -> ExpressionError:
    """A number left the range that can be written down: 64-bit integers and finite doubles."""
    return ExpressionError("expression.overflow", f"{what} is outside the range of its type")


def convert_error(what: str, wanted: str) -> ExpressionError:
    """A value has the right kind, but does not stand for what it should be turned into."""
    return ExpressionError("expression.convert", f"{what} cannot be converted to {wanted}")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The nearest known name as a hint, or else all of them."""
    names = sorted(known)
    near = get_close_matches(name, names, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(names)}"


def type_name(value: Any) -> str:
    """The name users know a value's type by."""
    return TYPE_NAMES.get(type(value), type(value).__name__)


TYPE_NAMES: dict[type, str] = {
    type(None): "null",
    bool: "bool",
    int: "int",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    dict: "map",
}
