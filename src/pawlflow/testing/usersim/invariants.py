"""Invariants of a user: expressions over the end of an instance, or Python functions."""

import inspect
import re
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePath
from types import ModuleType
from typing import Any, Final, Protocol

import msgspec

from pawlflow.definition.codes import CODES
from pawlflow.definition.express import Expression, ExpressionError, tree
from pawlflow.definition.express.compile import compile_node, entry
from pawlflow.definition.express.errors import did_you_mean, type_name
from pawlflow.definition.express.parse import parse_source
from pawlflow.definition.express.scope import Scope, Table
from pawlflow.definition.finding import Finding
from pawlflow.definition.shape import Workflow
from pawlflow.testing.runner import ITEM
from pawlflow.testing.usersim.ended import Run

SCOPE: Final[dict[str, Callable[[Run], Any]]] = {
    "id": lambda run: run.id,
    "state": lambda run: run.state,
    "rollback": lambda run: run.rollback,
    "input": lambda run: run.input,
    "output": lambda run: run.output,
    "error": lambda run: run.error,
    "elapsed": lambda run: run.elapsed_ms,
    "waiting": lambda run: run.waiting,
    "order": lambda run: run.order,
    "done_order": lambda run: run.done_order,
    "undo_order": lambda run: run.undo_order,
    "events": lambda run: run.events,
    "steps": lambda run: {name: plain(step) for name, step in run.steps.items()},
    "runs": lambda run: [brief(each) for each in run.all],
}
COUNTS: Final = ("executed", "undone", "doubled")  # functions of a step's name
COUNTED: Final = "$counts"  # a name that nobody can write
Counts = dict[str, tuple[str, str]]  # text -> function and step
FUNCTION: Final = re.compile(r"[\w./\\-]+:[A-Za-z_]\w*\Z")
VALUE_MAX: Final = 160


class BadInvariantError(Exception):
    """An invariant that cannot be used, and where."""

    def __init__(self, finding: Finding) -> None:
        self.finding = finding
        super().__init__(finding.message)


class Broken(msgspec.Struct, frozen=True):
    """An invariant that does not hold."""

    invariant: str
    why: str
    values: tuple[tuple[str, str], ...] = ()


class Invariant(Protocol):
    """Something that must hold of every instance that has ended."""

    text: str  # as the user wrote it

    def broken(self, run: Run) -> Broken | None:
        """How it does not hold, if it does not."""
        ...


class Stated:
    """An invariant as an expression."""

    def __init__(self, text: str, known: Mapping[str, None], where: "Where") -> None:
        self.text = text
        try:
            self.counts: Counts = {}
            self.tree = rewritten(parse_source(text), known, self.counts)
            self.program = compiled(self.tree, text)
            check_steps(self.program, known)
        except ExpressionError as error:
            raise BadInvariantError(where.finding(error)) from error
        self.mentioned = list(dict.fromkeys(mentions(self.tree)))

    def broken(self, run: Run) -> Broken | None:
        """It must be true; what is neither true nor false is no invariant."""
        try:
            found = evaluated(self.program, run, self.counts)
        except ExpressionError as error:
            return Broken(self.text, f"it cannot be evaluated: {error.message}", self.values(run))
        if found is True:
            return None
        why = "it is false" if found is False else f"it is {shown(found)}, {type_name(found)}"
        return Broken(self.text, why, self.values(run))

    def values(self, run: Run) -> tuple[tuple[str, str], ...]:
        """What the names in it stood for."""
        found = []
        for node in self.mentioned:
            try:
                value = evaluated(compiled(node, self.text), run, self.counts)
            except ExpressionError:
                continue  # a macro's variable means nothing outside of it
            found.append((written(node), shown(value)))
        return tuple(found)


class Written:
    """An invariant as a Python function."""

    def __init__(self, text: str, function: Callable[[Run], Any]) -> None:
        self.text = text
        self.function = function

    def broken(self, run: Run) -> Broken | None:
        """It must return, and not False."""
        values = tuple((name, shown(SCOPE[name](run))) for name in ("state", "rollback", "input"))
        try:
            found = self.function(run)
        except Exception as error:  # noqa: BLE001  # users' code raises anything
            last = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{PurePath(last.filename).name}:{last.lineno}"
            words = str(error) or (last.line or "")
            kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
            return Broken(self.text, f"{kind}{words} ({where})", values)
        return Broken(self.text, "it returned False", values) if found is False else None


class Where(msgspec.Struct, frozen=True):
    """Where an invariant is written."""

    file: str
    line: int = 1
    column: int = 1

    def finding(self, error: ExpressionError) -> Finding:
        """What is wrong with it, at its place."""
        return Finding(
            file=self.file,
            line=self.line,
            column=self.column + (error.offset or 0),
            severity="error",
            code=error.code,
            message=error.message,
            hint=error.hint or CODES[error.code][1],
        )


def is_function(text: str) -> bool:
    """MODULE:function, or FILE.py:function, rather than an expression."""
    return FUNCTION.match(text) is not None


def functions_of(module: ModuleType, where: str) -> list[Invariant]:
    """Every public function that a file of invariants defines."""
    found = [
        (name, each)
        for name, each in vars(module).items()
        if inspect.isfunction(each)
        and each.__module__ == module.__name__
        and not name.startswith("_")
    ]
    return [Written(f"{where}:{name}", function) for name, function in found]


def lines_of(text: str) -> Iterator[tuple[int, int, str]]:
    """The expressions of a file: one to a line, `#` begins a comment line."""
    for number, line in enumerate(text.splitlines(), start=1):
        bare = line.strip()
        if bare and not bare.startswith("#"):
            yield number, len(line) - len(line.lstrip()) + 1, bare


def names_in(workflows: Iterable[Workflow]) -> dict[str, None]:
    """The steps that may be named: those of the workflow, and PARENT/STEP of its children."""
    known = {workflow.name: workflow for workflow in workflows}
    first = next(iter(known.values()))
    found: dict[str, None] = {}

    def add(workflow: Workflow, path: str, above: tuple[str, ...]) -> None:
        for step in workflow.steps:
            found[f"{path}{step.name}"] = None
            child = known.get(step.target) if step.kind == "workflow" else None  # type: ignore[call-overload]
            if child is not None and child.name not in above:
                add(child, f"{path}{step.name}/", (*above, child.name))

    add(first, "", (first.name,))
    return found


# Expressions


def rewritten(node: Any, known: Mapping[str, None], counts: Counts) -> Any:
    """The tree with executed('a'), undone('a') and doubled('a') as members of what was counted."""
    if isinstance(node, tree.Call) and node.function in COUNTS and node.receiver is None:
        return counted(node, known, counts)
    if isinstance(node, tuple):
        parts = [rewritten(part, known, counts) for part in node]
        return type(node)(*parts) if hasattr(node, "_fields") else tuple(parts)
    return node


def counted(node: tree.Call, known: Mapping[str, None], counts: Counts) -> tree.Access:
    """How often something was truly done."""
    [argument] = node.arguments if len(node.arguments) == 1 else [None]
    if not isinstance(argument, tree.Literal) or type(argument.value) is not str:
        message = f"{node.function}() takes the name of a step, as in {node.function}('charge')"
        raise ExpressionError("expression.arguments", message, offset=node.offset)
    check_name(argument.value, argument.offset, known)
    text = f"{node.function}({argument.value!r})"
    counts[text] = (node.function, argument.value)
    base = tree.Name(COUNTED, node.offset)
    return tree.Access(base, tree.Literal(text, node.offset), node.offset)


def check_name(name: str, offset: int, known: Mapping[str, None]) -> None:
    """It is a step of the workflow."""
    if ITEM.sub("", name) not in known:
        message = f"{name!r} is not a step; steps are: {', '.join(known)}"
        hint = did_you_mean(name, known)
        raise ExpressionError("expression.unknown_step", message, offset=offset, hint=hint)


def compiled(node: Any, source: str) -> Expression:
    """A tree as a program."""
    table = Table(frozenset((*SCOPE, COUNTED)), None)
    run = compile_node(node, Scope(table))
    return Expression(
        refs=tuple(table.refs),
        evaluate=entry(run, table),
        run=run,
        slots=table.slots,
        source=source,
        ref_offsets=tuple(offset for _, offset in table.places),
    )


def check_steps(program: Expression, known: Mapping[str, None]) -> None:
    """The steps it names exist."""
    for ref, offset in zip(program.refs, program.ref_offsets, strict=True):
        if ref[0] == "steps" and len(ref) > 1:
            check_name(ref[1], offset, known)


def evaluated(program: Expression, run: Run, counts: Counts) -> Any:
    """Its value for a run."""
    return program.evaluate([value_of(ref, run, counts) for ref in program.refs])


def value_of(ref: tuple[str, ...], run: Run, counts: Counts) -> Any:
    """What a name stands for."""
    if ref[0] == COUNTED:
        return {text: getattr(run, name)(step) for text, (name, step) in counts.items()}
    if ref[0] == "steps" and len(ref) > 1:
        found = run.steps.get(ref[1])
        return None if found is None else plain(found)
    return SCOPE[ref[0]](run)


def plain(step: Any) -> dict[str, Any]:
    """A step as a map."""
    found: dict[str, Any] = msgspec.structs.asdict(step)
    return found


def brief(run: Run) -> dict[str, Any]:
    """Another instance of the same world."""
    return {name: SCOPE[name](run) for name in ("id", "state", "rollback", "input", "output")}


def mentions(node: Any) -> Iterator[Any]:
    """The names and paths that an expression reads, as they stand in it."""
    if isinstance(node, tree.Name | tree.Access):
        yield node
    elif isinstance(node, tree.Call):
        yield from mentions(node.receiver)
        yield from mentions(node.arguments)
    elif isinstance(node, tuple):
        for part in node:
            yield from mentions(part)


def written(node: Any) -> str:
    """A path as one would write it."""
    if isinstance(node, tree.Name):
        return node.name
    if isinstance(node, tree.Access) and isinstance(node.key, tree.Literal):
        base, key = written(node.base), node.key.value
        if base == COUNTED:
            return str(key)
        bare = isinstance(key, str) and key.isidentifier()
        return f"{base}.{key}" if bare else f"{base}[{key!r}]"
    return "..."


def shown(value: Any) -> str:
    """A value as JSON, not too long."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= VALUE_MAX else f"{text[: VALUE_MAX - 3]}..."
