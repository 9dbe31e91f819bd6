"""Scope: where the names in an expression find their values.

An expression is bound once, when its plan is compiled: each name it mentions becomes a getter on
the state. Evaluating it costs what it mentions, never what the workflow holds.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from pawlflow.definition.express import Expression, Ref, Template
from pawlflow.model.ids import CellId, StepName
from pawlflow.model.payload import Payload


class Scope(Protocol):
    """What expressions may look at."""

    cell: CellId
    input: Payload
    by: str

    def result_of(self, step: int) -> Any:
        """The result of a step, or None."""
        ...

    def results(self, before: int | None) -> dict[str, Any]:
        """The results so far, by step name: of all steps, or of those that come before one."""
        ...


Extra = Mapping[str, Any]  # names that the place of an expression brings: event, command, result
Getter = Callable[[Scope, Extra], Any]
NOTHING: Final[Extra] = {}


class Bound:
    """An expression or template tied to its places in the state."""

    __slots__ = ("getters", "program")

    def __init__(self, program: Expression | Template, getters: tuple[Getter, ...]) -> None:
        self.program = program
        self.getters = getters

    def evaluate(self, scope: Scope, extra: Extra = NOTHING) -> Any:
        """The value now. Raises ExpressionError."""
        return self.program.evaluate([get(scope, extra) for get in self.getters])


def bind(
    program: Expression | Template, index: Mapping[StepName, int], before: int | None = None
) -> Bound:
    """Tie every name the program mentions to a getter; `steps` alone means those before a step."""
    return Bound(program, tuple(getter_of(ref, index, before) for ref in program.refs))


def getter_of(ref: Ref, index: Mapping[StepName, int], before: int | None) -> Getter:
    """The getter of one name."""
    if ref[0] != "steps":
        return ROOTS.get(ref[0]) or extra_getter(ref[0])
    if len(ref) == 1:
        return lambda scope, _: scope.results(before)
    step = index[StepName(ref[1])]
    return lambda scope, _: scope.result_of(step)


def extra_getter(name: str) -> Getter:
    """A name that only some places bring; null elsewhere."""
    return lambda _, extra: extra.get(name)


def about(scope: Scope, _: Extra) -> dict[str, Any]:
    """The instance as expressions see it."""
    cell = scope.cell
    return {"id": cell.key, "tenant": cell.tenant, "started_by": scope.by}


ROOTS: Final[dict[str, Getter]] = {"input": lambda scope, _: scope.input.value, "instance": about}
