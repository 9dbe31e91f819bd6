"""Functions on values: reading members, sizes, texts and conversions."""

# Closures are made by the thousand: unevaluated annotations spare each a tuple of its own.
from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from pawlflow.definition.express.cost import Env, charge, charge_text
from pawlflow.definition.express.errors import (
    ExpressionError,
    convert_error,
    overflow_error,
    type_error,
)
from pawlflow.definition.express.parse import INT_MAX, INT_MIN
from pawlflow.definition.express.regex import Regex

JSON_DEPTH_MAX = 128  # levels; the encoder recurses, and the interpreter stops it at about 1,000
INT_TEXT = re.compile(r"([+-]?)0*([0-9]{1,19})", re.ASCII)
DOUBLE_TEXT = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)


def look_up(value: Any, key: Any) -> Any:
    """`value[key]`: null where there is nothing, and null again below a null."""
    kind = type(value)
    if value is None:
        return None
    if kind is dict:  # Its keys are strings: no other value is one of them.
        return value.get(key) if type(key) is str else None
    if kind is list:
        index = list_index(value, key)
        return None if index is None else value[index]
    raise no_member(value, key)


def present(value: Any, key: Any) -> bool:
    """`has(value[key])`: whether there is such a member, be it null."""
    if value is None:
        return False
    if type(value) is dict:
        return type(key) is str and key in value
    if type(value) is list:
        return list_index(value, key) is not None
    raise no_member(value, key)


def list_index(value: list[Any], key: Any) -> int | None:
    """The position a key means, or None outside the list. 1.0 is 1: int and double mix."""
    if type(key) not in (int, float) or key != math.floor(key):
        raise no_member(value, key)
    return int(key) if 0 <= key < len(value) else None


def no_member(value: Any, key: Any) -> ExpressionError:
    """The value has no members, or is a list that is asked for something by name."""
    if type(value) is not list:
        return type_error("reading a member", "a map or a list", value)
    error = type_error("a list", "an int as index", key)
    if type(key) is str:
        error.hint = "take one item, as in x[0], or go through all with x.map(i, ...)"
    return error


def size(_: Env, value: Any) -> int:
    """Characters, bytes, items or entries."""
    if type(value) not in (str, bytes, list, dict):
        raise type_error("size()", "a string, bytes, list or map", value)
    return len(value)


def text_test(name: str, holds: Callable[[str, str], bool]) -> Callable[..., bool]:
    """A function that asks a text about a part of it."""

    def run(env: Env, value: Any, part: Any) -> bool:
        need_strings(name, value, part)
        charge_text(env, len(value) + len(part))
        return holds(value, part)

    return run


def matches(env: Env, value: Any, pattern: Any) -> bool:
    """Whether a pattern that is known only now matches anywhere in a text."""
    need_strings("matches", value, pattern)
    regex = Regex(pattern)
    charge(env, len(pattern) + regex.size)
    return search(env, value, regex)


def search(env: Env, value: Any, regex: Regex) -> bool:
    """Whether the pattern matches anywhere in a text, at the price of the worst case."""
    if type(value) is not str:
        raise type_error("matches()", "a string", value)
    charge(env, regex.cost(value))
    return regex.search(value)


def lower_ascii(env: Env, value: Any) -> str:
    """A to Z in lower case; other letters stay, so no Unicode version matters."""
    return recode(env, "lowerAscii", value, bytes.lower)


def upper_ascii(env: Env, value: Any) -> str:
    """The same the other way."""
    return recode(env, "upperAscii", value, bytes.upper)


def recode(env: Env, name: str, value: Any, change: Callable[[bytes], bytes]) -> str:
    """Change the bytes of a text: `bytes.lower` and `bytes.upper` know ASCII only."""
    need_strings(name, value)
    charge_text(env, len(value))
    return change(value.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


def need_strings(name: str, *values: Any) -> None:
    """Refuse anything but strings."""
    if any(type(value) is not str for value in values):
        raise type_error(f"{name}()", "strings", *values)


def to_int(env: Env, value: Any) -> int:
    """An int from a number, cut toward zero, or from decimal text."""
    if type(value) is str:
        charge_text(env, len(value))
        found = INT_TEXT.fullmatch(value)
        if not found:
            raise convert_error(f"the text {value[:40]!r}", "an int")
        value = int(found[1] + found[2])
    elif type(value) not in (int, float):
        raise type_error("int()", "a number or a string", value)
    number: int = math.trunc(value)
    if not INT_MIN <= number <= INT_MAX:
        raise overflow_error("the result of int()")
    return number


def to_double(env: Env, value: Any) -> float:
    """A finite double from a number or from decimal text."""
    if type(value) is str:
        charge_text(env, len(value))
        if not DOUBLE_TEXT.fullmatch(value):
            raise convert_error(f"the text {value[:40]!r}", "a double")
    elif type(value) not in (int, float):
        raise type_error("double()", "a number or a string", value)
    number = float(value)
    if not math.isfinite(number):
        raise overflow_error("the result of double()")
    return number


def to_string(env: Env, value: Any) -> str:
    """Text of a scalar, as CEL writes it."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return double_text(value)
        case bytes():
            charge_text(env, len(value))
            try:
                return value.decode()
            except UnicodeDecodeError:
                raise convert_error("bytes that are not UTF-8", "a string") from None
        case _:
            raise type_error("string()", "a string, number, bool or bytes", value)


def double_text(value: float) -> str:
    """The shortest digits that read back as this double; with an exponent from 1e6 on, as in C."""
    text = repr(value).removesuffix(".0")
    if "e" in text or abs(value) < 1e6:
        return text
    sign = "-" if value < 0 else ""
    whole, _, fraction = text.removeprefix("-").partition(".")
    rest = (whole[1:] + fraction).rstrip("0")
    return f"{sign}{whole[0]}{'.' if rest else ''}{rest}e+{len(whole) - 1:02}"


def interpolate(env: Env, value: Any) -> str:
    """Text of any value inside other text: lists and maps as compact JSON with sorted keys."""
    if value is None:
        return "null"
    return to_json(env, value) if type(value) in (list, dict) else to_string(env, value)


def to_json(env: Env, value: Any) -> str:
    """Compact JSON, measured and paid for before it is written."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > JSON_DEPTH_MAX:
            message = f"a value nested more than {JSON_DEPTH_MAX} levels cannot be put into text"
            raise ExpressionError("expression.too_deep", message)
        level = [item for holder in level for item in measure(env, holder)]
    try:
        return json.dumps(
            value, ensure_ascii=False, separators=(",", ":"), sort_keys=True, allow_nan=False
        )
    except (TypeError, ValueError):
        raise convert_error("a value that JSON has no form for", "text") from None


def measure(env: Env, value: Any) -> Iterable[Any]:
    """Pay for writing a value without what it holds, and give that to be measured next."""
    if type(value) is str:
        charge_text(env, len(value))
    elif type(value) is list:
        charge(env, len(value))
        return value
    elif type(value) is dict:
        charge(env, len(value))
        charge_text(env, sum(map(len, value)))
        return value.values()
    return ()


class Function(NamedTuple):
    """A function: what it does with its values, how many there are, and how it is written."""

    run: Callable[..., Any]
    arity: int
    bare: bool  # f(x, y)
    method: bool  # x.f(y)


FUNCTIONS: dict[str, Function] = {
    "size": Function(size, 1, bare=True, method=True),
    "matches": Function(matches, 2, bare=True, method=True),
    "startsWith": Function(text_test("startsWith", str.startswith), 2, bare=False, method=True),
    "endsWith": Function(text_test("endsWith", str.endswith), 2, bare=False, method=True),
    "contains": Function(text_test("contains", str.__contains__), 2, bare=False, method=True),
    "lowerAscii": Function(lower_ascii, 1, bare=False, method=True),
    "upperAscii": Function(upper_ascii, 1, bare=False, method=True),
    "int": Function(to_int, 1, bare=True, method=False),
    "double": Function(to_double, 1, bare=True, method=False),
    "string": Function(to_string, 1, bare=True, method=False),
}
