"""Templates: plain values whose strings may hold `${ expressions }`."""

# Closures are made by the thousand: unevaluated annotations spare each a tuple of its own.
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pawlflow.definition.express.compile import Program, compile_node, constant, entry
from pawlflow.definition.express.cost import Env, Run, charge_text
from pawlflow.definition.express.errors import ExpressionError
from pawlflow.definition.express.functions import interpolate
from pawlflow.definition.express.parse import DEPTH_MAX, parse_braced, too_deep
from pawlflow.definition.express.scope import Path, Scope, Table

SECRET = "$secret"


@dataclass(frozen=True, slots=True, eq=False)
class Template(Program):
    """A compiled template."""

    ref_places: tuple[tuple[Path, int], ...]  # the string and the offset in it, for each
    constant: bool  # nothing in it is evaluated


def compile_template(value: Any, *, roots: frozenset[str], fallback: str | None = None) -> Template:
    """Check and compile. Raises ExpressionError with the path of the string and an offset."""
    table = Table(roots, fallback)
    filled, run = compile_value(value, (), table)
    whole = run or constant(filled)
    return Template(
        refs=tuple(table.refs),
        evaluate=entry(whole, table),
        run=whole,
        slots=table.slots,
        ref_places=tuple(table.places),
        constant=run is None,
    )


def compile_value(value: Any, path: Path, table: Table) -> tuple[Any, Run | None]:
    """The value with its constant strings in place, and a closure if that is not all of it."""
    if type(value) is str:
        return compile_text(value, path, table)
    if type(value) in (list, dict) and not is_secret(value):
        return compile_holder(value, path, table)
    return value, None


def is_secret(value: Any) -> bool:
    """Whether this is a reference to a secret, which only an executor may resolve."""
    return type(value) is dict and value.keys() == {SECRET}


def compile_holder(value: Any, path: Path, table: Table) -> tuple[Any, Run | None]:
    """A list or map: copied when evaluated, its constant parts shared."""
    if len(path) >= DEPTH_MAX:
        error = too_deep(0)
        error.path = path
        raise error
    filled = value.copy()
    dynamic: list[tuple[str | int, Run]] = []
    for key, item in enumerate(value) if type(value) is list else value.items():
        filled[key], run = compile_value(item, (*path, key), table)
        if run:
            dynamic.append((key, run))

    def fill(env: Env) -> Any:
        result = filled.copy()
        for key, run in dynamic:
            try:
                result[key] = run(env)
            except ExpressionError as error:
                error.path = (key, *error.path)
                raise
        return result

    return filled, fill if dynamic else None


def compile_text(text: str, path: Path, table: Table) -> tuple[str | None, Run | None]:
    """A string: one expression keeps its type, several or with text between become text."""
    table.path = path
    with table.compiling():
        parts = compile_parts(text, table)
    if all(isinstance(part, str) for part in parts):
        return "".join(map(str, parts)), None
    if len(parts) == 1 and not isinstance(parts[0], str):
        return None, parts[0]
    table.metered = True
    return None, joined(parts)


def compile_parts(text: str, table: Table) -> list[str | Run]:
    """The pieces of a string, in order; `$${` stands for `${`."""
    parts: list[str | Run] = []
    at = 0
    while (start := text.find("${", at)) >= 0:
        if start > at and text[start - 1] == "$":
            parts.append(text[at : start - 1] + "${")
            at = start + 2
            continue
        if start > at:
            parts.append(text[at:start])
        node, at = parse_braced(text, start + 2)
        parts.append(compile_node(node, Scope(table)))
    if at < len(text):
        parts.append(text[at:])
    return parts


def joined(parts: list[str | Run]) -> Run:
    """Mixed text, at the price of writing it."""

    def run(env: Env) -> str:
        texts = [part if isinstance(part, str) else interpolate(env, part(env)) for part in parts]
        charge_text(env, sum(map(len, texts)))
        return "".join(texts)

    return run
