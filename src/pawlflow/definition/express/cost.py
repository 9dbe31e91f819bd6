"""What an evaluation may spend. The meter is the last entry of its Env."""

# Closures are made by the thousand: unevaluated annotations spare each a tuple of its own.
from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from pawlflow.definition.express.errors import ExpressionError

# An Env holds the values of the refs, then the variables of macros, then the units left. Refs
# count from the front and the others from the back, so that a path reads an Env and the bare
# values that a caller passes in the same way.
Env: TypeAlias = list[Any]
Run: TypeAlias = Callable[[Env], Any]

COST_MAX = 1_000_000  # units; measured: 0.1 s of loops, at the very worst 1 s of patterns
CHARS_PER_UNIT = 16  # so the text an evaluation makes is at most 16 MiB, as is a payload
COST_CODE = "expression.cost"


def charge(env: Env, units: int) -> None:
    """Spend units, or end the evaluation."""
    left = env[-1] - units
    if left < 0:
        message = f"evaluating this costs more than {COST_MAX} units"
        hint = "use shorter lists and texts, or do this work in a step"
        raise ExpressionError(COST_CODE, message, hint=hint)
    env[-1] = left


def charge_text(env: Env, length: int) -> None:
    """Pay for reading or copying this many characters or bytes; short ones are free."""
    if length >= CHARS_PER_UNIT:
        charge(env, length // CHARS_PER_UNIT)
