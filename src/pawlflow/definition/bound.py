"""Scope: where the names in an expression find their values.

An expression is bound once, when its plan is compiled: each name it mentions becomes a getter on
the state. Evaluating it costs what it mentions, never what the workflow holds.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

import msgspec

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
Source = int | Getter  # the step whose result it is, or how else the value is found
NOTHING: Final[Extra] = {}


class Bound(msgspec.Struct, frozen=True, gc=False):
    """An expression or template tied to its places in the state."""

    program: Expression | Template
    sources: tuple[Source, ...]  # numbers, where a closure would cost a plan its memory

    def evaluate(self, scope: Scope, extra: Extra = NOTHING) -> Any:
        """The value now. Raises ExpressionError."""
        values = [
            scope.result_of(source) if isinstance(source, int) else source(scope, extra)
            for source in self.sources
        ]
        return self.program.evaluate(values)


def bind(
    program: Expression | Template, index: Mapping[StepName, int], before: int | None = None
) -> Bound:
    """Tie every name the program mentions to its source; `steps` alone: those before a step."""
    return Bound(program, tuple(source_of(ref, index, before) for ref in program.refs))


def source_of(ref: Ref, index: Mapping[StepName, int], before: int | None) -> Source:
    """Where the value of one name is found."""
    if ref[0] != "steps":
        return ROOTS[ref[0]]
    if len(ref) == 1:
        return lambda scope, _: scope.results(before)
    return index[StepName(ref[1])]


def about(scope: Scope, _: Extra) -> dict[str, Any]:
    """The instance as expressions see it."""
    cell = scope.cell
    return {"id": cell.key, "tenant": cell.tenant, "started_by": scope.by}


ROOTS: Final[dict[str, Getter]] = {
    "input": lambda scope, _: scope.input.value,
    "instance": about,
    "event": lambda _, extra: extra.get("event"),
    "command": lambda _, extra: extra.get("command"),
    "result": lambda _, extra: extra.get("result"),
    "item": lambda _, extra: extra.get("item"),
    "index": lambda _, extra: extra.get("index"),
}
