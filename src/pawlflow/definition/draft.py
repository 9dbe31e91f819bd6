"""A workflow while it is read: the fields that were readable, beside the nodes they came from."""

from typing import Any

import msgspec

from pawlflow.definition.read import Node
from pawlflow.definition.shape import StepKind


class StepDraft(msgspec.Struct, eq=False, gc=False):
    """One step. What could not be read is missing from `fields`, and has been reported."""

    name: str
    kind: StepKind | None
    node: Node
    fields: dict[str, Any]

    def part(self, *path: str) -> Node:
        """The node of a field, or of a field inside one."""
        return self.node.at(path)


class Draft(msgspec.Struct, eq=False):
    """A whole workflow. `index` finds steps by name; the first of a duplicate wins."""

    ioa: bool
    spec: Node
    fields: dict[str, Any]
    steps: list[StepDraft]
    index: dict[str, int]
    parents: list[list[int]] = []
    order: list[int] = []
    compensated: set[str] = set()

    @property
    def sound(self) -> bool:
        """Does every step have its place in an order (no cycles)?"""
        return len(self.order) == len(self.steps)
