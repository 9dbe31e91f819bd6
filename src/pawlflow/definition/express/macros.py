"""Macros and logic: closures that evaluate a body for each item, or only as far as needed.

`&&`, `||`, `all` and `exists` absorb errors as CEL does: one operand that decides the result is
enough, whatever became of the others. Only an evaluation over its budget ends at once.
"""

# Closures are made by the thousand: unevaluated annotations spare each a tuple of its own.
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from pawlflow.definition.express.cost import COST_CODE, Env, Run, charge
from pawlflow.definition.express.errors import ExpressionError, type_error


class Loop(NamedTuple):
    """What a macro goes through, where its variable stands, and what each pass costs."""

    name: str
    subject: Run
    slot: int
    weight: int

    def items(self, env: Env) -> Iterator[Any]:
        """Bind the variable to each item. All passes are paid for before the first."""
        subject = self.subject(env)
        if type(subject) not in (list, dict):
            raise type_error(f"{self.name}()", "a list or a map", subject)
        charge(env, len(subject) * self.weight)
        # Maps go in key order: how a map was built must not show in a result.
        for item in subject if type(subject) is list else sorted(subject):
            env[self.slot] = item
            yield item


def absorb(env: Env, runs: Iterable[Run], what: str, *, verdict: bool) -> bool:
    """The verdict if any run gives it; otherwise the first error, or else the opposite."""
    trouble: ExpressionError | None = None
    for run in runs:
        try:
            value = run(env)
        except ExpressionError as error:
            if error.code == COST_CODE:
                raise
            trouble = trouble or error
            continue
        if type(value) is not bool:
            trouble = trouble or type_error(what, "bools", value)
        elif value == verdict:
            return verdict
    if trouble:
        raise trouble
    return not verdict


def truth(what: str, value: Any) -> bool:
    """The value, which must be a bool."""
    if type(value) is not bool:
        raise type_error(what, "a bool", value)
    return value


def all_of(loop: Loop, body: Run) -> Run:
    """`x.all(i, body)`."""

    def run(env: Env) -> bool:
        return absorb(env, (body for _ in loop.items(env)), "all()", verdict=False)

    return run


def any_of(loop: Loop, body: Run) -> Run:
    """`x.exists(i, body)`."""

    def run(env: Env) -> bool:
        return absorb(env, (body for _ in loop.items(env)), "exists()", verdict=True)

    return run


def one_of(loop: Loop, body: Run) -> Run:
    """`x.exists_one(i, body)`; errors are not absorbed, as they may hide a second one."""

    def run(env: Env) -> bool:
        return sum(truth("exists_one()", body(env)) for _ in loop.items(env)) == 1

    return run


def kept(loop: Loop, body: Run) -> Run:
    """`x.filter(i, body)`."""

    def run(env: Env) -> list[Any]:
        return [item for item in loop.items(env) if truth("filter()", body(env))]

    return run


def mapped(loop: Loop, *bodies: Run) -> Run:
    """`x.map(i, value)` and `x.map(i, condition, value)`."""
    *conditions, body = bodies

    def run(env: Env) -> list[Any]:
        return [
            body(env)
            for _ in loop.items(env)
            if all(truth("map()", condition(env)) for condition in conditions)
        ]

    return run


class Macro(NamedTuple):
    """How a macro is built, and how many arguments it takes with its variable."""

    build: Callable[..., Run]
    arguments: tuple[int, ...] = (2,)


MACROS: dict[str, Macro] = {
    "all": Macro(all_of),
    "exists": Macro(any_of),
    "exists_one": Macro(one_of),
    "filter": Macro(kept),
    "map": Macro(mapped, (2, 3)),
}
