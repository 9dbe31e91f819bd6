"""A workflow while it is read: the fields that were readable, beside the nodes they came from."""

from collections.abc import Collection
from typing import Any

import msgspec

from pawlflow.definition.fields import shown
from pawlflow.definition.read import Node
from pawlflow.definition.shape import StepKind


def name_shown(step: Node) -> str:
    """The name of a step as it is written, well or not; empty if it has none."""
    name = step.value.get("name") if isinstance(step.value, dict) else None
    return "" if name is None or not isinstance(name.value, str | int | float) else shown(name)


class StepDraft(msgspec.Struct, eq=False, gc=False):
    """One step. What could not be read is missing from `fields`, and has been reported."""

    name: str
    kind: StepKind | None
    node: Node
    fields: dict[str, Any]
    written: Collection[str] = ()  # the fields it has, also unreadable and nearly named ones

    @property
    def shown(self) -> str:
        """Its name as messages say it."""
        return name_shown(self.node) or "without a name"

    def unread(self, field: str, to: str) -> bool:
        """Does it have a field whose value is not known?"""
        return field in self.written and to not in self.fields

    def part(self, *path: str) -> Node:
        """The node of a field, or of a field inside one."""
        return self.node.at(path)


class Draft(msgspec.Struct, eq=False):
    """A whole workflow. `index` finds steps by name; the first of a duplicate wins."""

    ioa: bool
    spec: Node
    fields: dict[str, Any]
    steps: list[StepDraft] = []
    index: dict[str, int] = {}
    written: Collection[str] = ()
    parents: list[list[int]] = []
    order: list[int] = []
    compensated: set[str] = set()

    placed: frozenset[int] = frozenset()  # the steps in `order`: not on a cycle, nor behind one
    unclear: frozenset[int] = frozenset()  # steps that may depend on more than could be read
