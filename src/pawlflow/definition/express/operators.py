"""Operators on values. int and double mix; a bool is not a number; nothing overflows silently."""

# Closures are made by the thousand: unevaluated annotations spare each a tuple of its own.
from __future__ import annotations

import math
from collections.abc import Callable
from operator import ge, gt, le, lt, mul, sub
from typing import Any

from pawlflow.definition.express.cost import Env, charge, charge_text
from pawlflow.definition.express.errors import ExpressionError, overflow_error, type_error
from pawlflow.definition.express.parse import INT_MAX, INT_MIN

NUMBERS = (int, float)  # compared by exact type: bool is a subclass of int
ORDERED = (str, bytes, bool)


def add(env: Env, left: Any, right: Any) -> Any:
    """Numbers add; strings, bytes and lists join, at the price of the copy."""
    if type(left) in NUMBERS and type(right) in NUMBERS:
        return in_range("+", left + right)
    kind = type(left)
    if kind is not type(right) or kind not in (str, bytes, list):
        raise type_error("'+'", "two numbers, strings, bytes or lists", left, right)
    if kind is list:
        charge(env, len(left) + len(right))
    else:
        charge_text(env, len(left) + len(right))
    return left + right


def arithmetic(symbol: str, compute: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """An operator on two numbers."""

    def run(_: Env, left: Any, right: Any) -> Any:
        need_numbers(symbol, left, right)
        return in_range(symbol, compute(left, right))

    return run


def divide(_: Env, left: Any, right: Any) -> Any:
    """The quotient of two numbers; that of two integers is cut toward zero."""
    need_numbers("/", left, right)
    if right == 0:
        raise divide_by_zero()
    if type(left) is int and type(right) is int:
        quotient = abs(left) // abs(right)
        return in_range("/", quotient if (left < 0) == (right < 0) else -quotient)
    return in_range("/", left / right)


def remainder(_: Env, left: Any, right: Any) -> Any:
    """The remainder of two integers, with the sign of the first."""
    if type(left) is not int or type(right) is not int:
        raise type_error("'%'", "two ints", left, right)
    if right == 0:
        raise divide_by_zero()
    if left == INT_MIN and right == -1:  # The quotient would overflow: CEL refuses both.
        raise overflow_error("the result of '%'")
    rest = abs(left) % abs(right)
    return rest if left >= 0 else -rest


def negate(value: Any) -> Any:
    """The number with the other sign."""
    if type(value) not in NUMBERS:
        raise type_error("'-'", "a number", value)
    return in_range("-", -value)


def need_numbers(operator: str, left: Any, right: Any) -> None:
    """Refuse anything but two numbers."""
    if type(left) not in NUMBERS or type(right) not in NUMBERS:
        raise type_error(f"'{operator}'", "two numbers", left, right)


def in_range(operator: str, value: Any) -> Any:
    """The value, if a 64-bit integer or a finite double can hold it."""
    if INT_MIN <= value <= INT_MAX if type(value) is int else math.isfinite(value):
        return value
    raise overflow_error(f"the result of '{operator}'")


def divide_by_zero() -> ExpressionError:
    """Division by zero, of doubles too: infinity is no value here."""
    return ExpressionError("expression.divide_by_zero", "division by zero")


def ordering(symbol: str, holds: Callable[[Any, Any], bool]) -> Callable[..., bool]:
    """An operator that compares numbers with numbers, and otherwise like with like."""

    def compare(env: Env, left: Any, right: Any) -> bool:
        if type(left) not in NUMBERS or type(right) not in NUMBERS:
            if type(left) is not type(right) or type(left) not in ORDERED:
                wanted = "two numbers, strings, bytes or bools"
                raise type_error(f"'{symbol}'", wanted, left, right)
            if type(left) is not bool:
                charge_text(env, min(len(left), len(right)))
        return holds(left, right)

    return compare


def equal(env: Env, left: Any, right: Any) -> bool:
    """Equality of any two values; unlike kinds differ. A walk without recursion: data nests."""
    if type(left) not in (list, dict):
        return equal_scalar(env, left, right)
    pairs = [(left, right)]
    while pairs:
        left, right = pairs.pop()
        if type(left) is list and type(right) is list:
            if len(left) != len(right):
                return False
            charge(env, 1 + len(left))
            pairs.extend(zip(left, right, strict=True))
        elif type(left) is dict and type(right) is dict:
            charge(env, 2 + 2 * len(left))
            if left.keys() != right.keys():
                return False
            # In key order, so that the cost does not depend on how a map was built.
            pairs.extend((left[key], right[key]) for key in sorted(left))
        elif not equal_scalar(env, left, right):
            return False
    return True


def equal_scalar(env: Env, left: Any, right: Any) -> bool:
    """Equality of two values of which at most one is a list or map."""
    if type(left) is type(right):
        if type(left) in (str, bytes) and len(left) == len(right):
            charge_text(env, len(left))
        return bool(left == right)
    return type(left) in NUMBERS and type(right) in NUMBERS and bool(left == right)


def unequal(env: Env, left: Any, right: Any) -> bool:
    """The opposite of `equal`."""
    return not equal(env, left, right)


def contained(env: Env, left: Any, right: Any) -> bool:
    """Whether a list holds the value, or a map the key."""
    if type(right) is dict:
        return type(left) is str and left in right
    if type(right) is not list:
        raise type_error("'in'", "a list or a map on its right", right)
    charge(env, len(right))
    return any(equal(env, left, item) for item in right)


OPERATORS: dict[str, Callable[..., Any]] = {
    "+": add,
    "-": arithmetic("-", sub),
    "*": arithmetic("*", mul),
    "/": divide,
    "%": remainder,
    "==": equal,
    "!=": unequal,
    "<": ordering("<", lt),
    "<=": ordering("<=", le),
    ">": ordering(">", gt),
    ">=": ordering(">=", ge),
    "in": contained,
}
