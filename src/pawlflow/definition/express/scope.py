"""Names: which ones an expression may use, and where their values stand in its Env."""

# Closures are made by the thousand: unevaluated annotations spare each a tuple of its own.
from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from pawlflow.definition.express.errors import ExpressionError, did_you_mean
from pawlflow.definition.express.parse import DEPTH_MAX, too_deep

Ref: TypeAlias = tuple[str, ...]
Path: TypeAlias = tuple[str | int, ...]

ALIASES = {"payload": "event"}
WRONG_MAX = 200  # told of one text; a hostile one has any number, each with a suggestion


class Table:
    """What one compilation collects: refs with their first mention, and the room it needs."""

    def __init__(self, roots: frozenset[str], fallback: str | None) -> None:
        self.roots = roots
        self.fallback = fallback
        self.refs: dict[Ref, int] = {}
        self.places: list[tuple[Path, int]] = []
        self.path: Path = ()  # of the string that is being compiled, in a template
        self.slots = 0  # macro variables alive at once, at most
        self.metered = False  # whether anything here spends units
        self.nodes = 0  # compiled so far; a macro's body costs what it adds
        self.wrong: dict[str, ExpressionError] | None = None  # by message, while all are wanted

    @contextmanager
    def compiling(self) -> Iterator[None]:
        """Go on after an unknown name, and raise in the end: the first of all that is wrong.

        Whoever compiles without this is told the first at once.
        """
        self.wrong = wrong = {}
        try:
            yield
        except ExpressionError as error:
            wrong[error.message] = error
        self.wrong = None
        for each in wrong.values():
            each.path = self.path
        if wrong:
            first, *first.more = wrong.values()
            offsets = (offset for _, offset in self.places)
            first.refs = list(zip(self.refs, offsets, strict=True))
            raise first

    def is_told(self, message: str) -> bool:
        """Is this one of several that are told in the end, or are they enough?"""
        return self.wrong is not None and (message in self.wrong or len(self.wrong) >= WRONG_MAX)

    def refuse(self, error: ExpressionError) -> None:
        """Raise an error, or keep it while all are wanted."""
        if self.wrong is None:
            raise error
        self.wrong.setdefault(error.message, error)

    def index(self, ref: Ref, offset: int) -> int:
        """Where this ref's value stands in the Env."""
        if ref not in self.refs:
            self.places.append((self.path, offset))
        return self.refs.setdefault(ref, len(self.refs))


@dataclass(frozen=True, slots=True)
class Scope:
    """What is in sight at one point of the tree, and how deep that point is."""

    table: Table
    variables: Mapping[str, int] = field(default_factory=dict)
    depth: int = 0

    def inside(self) -> Scope:
        """The same names, one level further in."""
        return replace(self, depth=self.depth + 1)

    def check_depth(self, offset: int) -> None:
        """Refuse chains of calls that the parser, reading them in a loop, let pass."""
        if self.depth > DEPTH_MAX:
            raise too_deep(offset)

    def bind(self, variable: str) -> tuple[Scope, int]:
        """The scope with one more variable, and the variable's place from the end of the Env."""
        slot = -2 - len(self.variables)
        self.table.slots = max(self.table.slots, -1 - slot)
        return replace(self, variables={**self.variables, variable: slot}), slot

    def is_steps(self, name: str) -> bool:
        """Whether a name stands for all steps: their results are bound one by one."""
        return name == "steps" and name in self.table.roots and name not in self.variables

    def resolve(self, name: str, offset: int) -> tuple[str, str | None]:
        """The root a name stands for; with a fallback, also the member it then means.

        A name that stands for nothing is refused: at once, or in the end of `Table.compiling`.
        """
        root = ALIASES.get(name, name)
        if name in self.table.roots:
            return name, None
        if root in self.table.roots:
            return root, None
        if self.table.fallback is not None:
            return self.table.fallback, name
        message = f"{name!r} is not a name that can be used here"
        if not self.table.is_told(message):
            hint = did_you_mean(name, {*self.table.roots, *self.variables})
            error = ExpressionError("expression.unknown_name", message, offset=offset, hint=hint)
            self.table.refuse(error)
        return name, None
