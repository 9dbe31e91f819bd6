"""Code as a source of definitions: nodes that stand at lines of the user's Python.

The same readers and checks that a YAML file goes through read these nodes, so a flow is refused for
the same reasons, in the same words, at the line that wrote it.
"""

from typing import Any

from pawlflow.definition.finding import Place
from pawlflow.definition.read import Node
from pawlflow.definition.source import Source


class CodeSource(Source):
    """One place in the user's code: everything written there stands there."""

    def __init__(self, where: Place) -> None:
        super().__init__(where.file, "")
        self.where = where

    def place(self, index: int) -> Place:
        """The place itself, whatever the index."""
        return self.where

    def place_inside(self, start: int, end: int, value: str, offset: int) -> Place:
        """The place itself: how the text was put together cannot be told."""
        return self.where


def node_of(value: Any, source: CodeSource) -> Node:
    """A plain value as nodes at one place; what is a node already keeps its own."""
    if isinstance(value, Node):
        return value
    if isinstance(value, dict):
        inner = {key: node_of(each, source) for key, each in value.items()}
        return Node(inner, source, 0, 0, dict.fromkeys(value, 0))
    if isinstance(value, list):
        return Node([node_of(each, source) for each in value], source, 0, 0, {})
    return Node(value, source, 0, 0, {})
