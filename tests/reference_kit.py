"""The reference pages, made from the code: signatures, options, fields and settings as they are.

Nothing is written by hand but the words around the tables, so nothing can be out of date;
tests/test_reference.py compares, and `--rewrite-golden` writes them anew.
"""

import ast
import importlib
import inspect
import textwrap
import typing
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pawlflow
import pawlflow.testing
from pawlflow.blocking import BlockingPawl, BlockingRun
from pawlflow.testing.lab_blocking import BlockingLab
from tests.reference_tables_kit import MADE, cli_page, fields_page, settings_page

WIDTH = 92  # of a signature in one line


def public(kind: type) -> list[str]:
    """What a class offers by itself: in the order it is written."""
    return [name for name in vars(kind) if not name.startswith("_")]


# An engine has many inner doors; its public face is what its blocking twin has.
MEMBERS: dict[str, list[str]] = {
    "Pawl": ["blocking", *public(BlockingPawl)],
    "Lab": ["blocking", *public(BlockingLab), "sleep"],
    "Run": public(BlockingRun),
    "Flow": ["workflow", "plan_hash", "built"],
    "Step": ["options"],
    "Loop": ["options", "workflow", "plan_hash"],
    "LoopContext": ["do", "all", "scope", "key_of", "kept", "cancelled", "offline"],
    "Ref": [],
    "FileSecrets": ["get"],
}
PARTS = {
    "What workflows are made of": ("flow", "step", "loop", "Retry"),
    "Words of a flow": (
        *("approval", "each", "sleep", "wait_for", "child", "agent", "effect", "emit"),
        *("text", "expr", "success", "secret"),
    ),
    "Running": ("Pawl", "Run", "Started", "BlockingPawl", "BlockingRun"),
    "Inside a function": ("Context", "LoopContext", "Transient", "Correctable", "Terminal"),
}


# Python


def python_page() -> str:
    """Everything in `pawlflow.__all__`."""
    left = [name for name in pawlflow.__all__ if not any(name in names for names in PARTS.values())]
    errors = [name for name in left if is_error(getattr(pawlflow, name))]
    rest = [name for name in left if name not in errors]
    parts = {**PARTS, "Errors": tuple(errors), "The rest": tuple(rest)}
    lines = [
        *("# Python", "", MADE, ""),
        "Everything that `pawlflow` offers: `from pawlflow import NAME`. What is not listed is",
        "free to change. How to use it: [flows.md](../flows.md), [python.md](../python.md),",
        "[loops.md](../loops.md).",
    ]
    for title, names in parts.items():
        lines += ["", f"## {title}"]
        for name in names:
            if name in pawlflow.__all__:
                lines += entry(pawlflow, name)
    return "\n".join(lines) + "\n"


def testing_page() -> str:
    """Everything in `pawlflow.testing.__all__`."""
    lines = [
        *("# The test kit", "", MADE, ""),
        "Everything that `pawlflow.testing` offers. The pytest plugin brings the fixtures `pawl`",
        "(a `Lab`, for `async def`) and `pawl_blocking` (a `BlockingLab`). How to use it:",
        "[testing.md](../testing.md).",
    ]
    for name in pawlflow.testing.__all__:
        lines += entry(pawlflow.testing, name)
    return "\n".join(lines) + "\n"


def is_error(thing: Any) -> bool:
    """Is it raised?"""
    return inspect.isclass(thing) and issubclass(thing, BaseException)


def entry(module: ModuleType, name: str) -> Iterator[str]:
    """One name, with its signature, its words and its members."""
    thing = getattr(module, name)
    yield from ("", f"### `{name}`", "")
    if inspect.isclass(thing):
        yield from class_entry(name, thing)
    elif callable(thing):
        yield from fenced(signature_of(thing, name))
        yield from words_of(thing)
    else:
        yield from words_of(type(thing))


def class_entry(name: str, kind: type) -> Iterator[str]:
    """A class: how it is made, or raised, and what it offers."""
    ours = [each for each in kind.__mro__ if each.__module__.startswith("pawlflow")]
    makers = [each for each in ours if "__init__" in vars(each) and "Struct" not in str(each)]
    if is_error(kind):
        yield from (f"Derives from `{kind.__bases__[0].__name__}`.", "")
    elif makers and not getattr(kind, "_is_protocol", False):
        yield from fenced(signature_of(vars(makers[0])["__init__"], name))
    yield from words_of(kind)
    yield from fields_of(kind)
    for member in MEMBERS.get(name, public(kind)):
        yield from member_entry(name, kind, member)


def fields_of(kind: type) -> Iterator[str]:
    """The fields of a record."""
    found = getattr(kind, "__struct_fields__", ())
    if found:
        yield from ("", f"Fields: {', '.join(f'`{field}`' for field in found)}.")


def member_entry(owner: str, kind: type, name: str) -> Iterator[str]:
    """A method or a property."""
    thing = inspect.getattr_static(kind, name)
    if name in getattr(kind, "__struct_fields__", ()) or inspect.ismemberdescriptor(thing):
        return
    wrapped = getattr(thing, "func", getattr(thing, "fget", getattr(thing, "__func__", thing)))
    if not callable(wrapped):
        return
    yield ""
    if isinstance(thing, property) or hasattr(thing, "func"):
        yield f"**`{owner}.{name}`**"
        yield ""
    else:
        yield from fenced(signature_of(wrapped, f"{owner}.{name}"))
    yield from words_of(wrapped)


def fenced(text: str) -> Iterator[str]:
    """A signature, as code that nobody runs."""
    yield from ("```text", text, "```", "")


def words_of(thing: Any) -> Iterator[str]:
    """The docstring, as it is."""
    words = inspect.cleandoc(thing.__doc__ or "")
    if words:
        yield words


def signature_of(fn: Callable[..., Any], name: str) -> str:
    """How it is called. Of several forms the one that says most: the others are shorthands."""
    forms = typing.get_overloads(fn) or [fn]
    nodes = [node_of(form) for form in forms]
    node = max(nodes, key=lambda each: len(each.args.args) + len(each.args.kwonlyargs))
    if node.args.args and node.args.args[0].arg in ("self", "cls"):
        node.args.args.pop(0)
    is_class = name[0].isupper() and "." not in name
    arrow = "" if is_class or node.returns is None else f" -> {type_of(node.returns)}"
    prefix = "await " if isinstance(node, ast.AsyncFunctionDef) and not is_generator(fn) else ""
    found = list(parameters(node.args))
    line = f"{prefix}{name}({', '.join(found)}){arrow}"
    if len(line) <= WIDTH:
        return line
    inner = ",\n".join(f"    {part}" for part in found)
    return f"{prefix}{name}(\n{inner},\n){arrow}"


def is_generator(fn: Callable[..., Any]) -> bool:
    """Is it iterated rather than awaited?"""
    return inspect.isasyncgenfunction(fn)


def node_of(fn: Callable[..., Any]) -> ast.FunctionDef | ast.AsyncFunctionDef:
    """The function as it is written."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(fn)))
    (node,) = tree.body
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    return node


def parameters(args: ast.arguments) -> Iterator[str]:
    """One parameter after the other."""
    plain = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(plain) - len(args.defaults)) + [*args.defaults]
    for number, (arg, default) in enumerate(zip(plain, defaults, strict=True)):
        yield parameter(arg, default)
        if args.posonlyargs and number == len(args.posonlyargs) - 1:
            yield "/"
    if args.vararg:
        yield f"*{ast.unparse(args.vararg)}"
    elif args.kwonlyargs:
        yield "*"
    for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        yield parameter(arg, default)
    if args.kwarg:
        yield f"**{ast.unparse(args.kwarg)}"


def parameter(arg: ast.arg, default: ast.expr | None) -> str:
    """One parameter, with its type and its default."""
    kind = "" if arg.annotation is None else f": {type_of(arg.annotation)}"
    return f"{arg.arg}{kind}" + ("" if default is None else f" = {ast.unparse(default)}")


def type_of(node: ast.expr) -> str:
    """A type, also one in quotes."""
    return str(node.value) if isinstance(node, ast.Constant) else ast.unparse(node)


def pages() -> dict[str, Callable[[], str]]:
    """Every page that is made, by its name."""
    importlib.import_module("pawlflow.embedded")
    return {
        "python.md": python_page,
        "testing.md": testing_page,
        "cli.md": cli_page,
        "fields.md": fields_page,
        "settings.md": settings_page,
    }
