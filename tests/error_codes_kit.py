"""Finds every error code that the source gives, by reading it: no list is kept by hand.

A text such as `"receipt.unknown"` is a code unless where it stands says that it is something else:
the tag of a record, the name of an effect, an event of the log, a mark, a file. So a code that is
given in a new way is found too, and what is no code must say why.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SRC = Path(__file__).parent.parent / "src" / "pawlflow"
CODE = re.compile(r"[a-z]+\.[a-z_0-9]+")
# Where the words stand; a code that is only here is given by nobody.
TABLES = re.compile(r"errors\.py|(.*[/_])?codes\.py")
# Faults and sites of the simulators, effects of the demo: theirs are no errors of anybody.
PLAYED = ("testing/sim/", "testing/usersim/", "cli/demo")
FILES = re.compile(r".*\.(db|sql|yaml|journal|md|py)")
MODULES = re.compile(r"pawl(flow)?\..*")
# Of a call: a record's tag, an effect or setting by name.
KEYWORDS = {"tag", "name", "target", "key"}
# What the first argument of these is: a log event, a mark, a label of a place, an attribute.
CALLS = {"tell", "reached", "buggify", "attrgetter", "Text", "getLogger"}
NO_CODES = {
    *("limits.bytes", "limits.steps", "limits.waiting"),  # settings
    "refused.code",  # of a store's own test: any text will do
}
# Codes that are put together, and what they can be; none: it is something else.
FORMED = {
    "workflow.{}": ("workflow.failed", "workflow.cancelled"),
    "type.unknown_{}": ("type.unknown_field", "type.unknown_tag"),
    "search.{}": (),  # the label of an expression
    "input.{}": (),  # an expression
    "steps.{}": (),  # an expression, or a path in `show`
}


class Given(NamedTuple):
    """A code in the source."""

    code: str
    place: str
    gives: bool  # rather than asks for it: `error.code == "store.owned"`


def codes_in(text: str, name: str) -> Iterator[Given]:
    """Every code of a file."""
    tree = ast.parse(text)
    above = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if CODE.fullmatch(node.value) and not is_something_else(node, above):
                place = f"{name}:{node.lineno}"
                yield Given(node.value, place, not asks(node, above))
        elif isinstance(node, ast.JoinedStr) and (form := form_of(node)) in FORMED:
            for code in FORMED[form]:
                yield Given(code, f"{name}:{node.lineno}", gives=True)


def is_something_else(node: ast.Constant, above: dict[ast.AST, ast.AST]) -> bool:
    """Does the place say that this is no code?"""
    if FILES.fullmatch(node.value) or MODULES.fullmatch(node.value) or node.value in NO_CODES:
        return True
    here: ast.AST = node
    while isinstance(above.get(here), ast.IfExp):
        here = above[here]
    parent = above.get(here)
    if isinstance(parent, ast.JoinedStr):
        return True
    if isinstance(parent, ast.keyword):
        return parent.arg in KEYWORDS
    return isinstance(parent, ast.Call) and called(parent) in CALLS and here is not parent.func


def called(call: ast.Call) -> str:
    """The name of what is called, without what it hangs on."""
    return ast.unparse(call.func).rpartition(".")[2]


def asks(node: ast.AST, above: dict[ast.AST, ast.AST]) -> bool:
    """Is a code compared with, or looked up by, rather than given?"""
    here: ast.AST | None = node
    while here is not None and not isinstance(here, ast.stmt):
        parent = above.get(here)
        if isinstance(parent, ast.Compare | ast.MatchValue):
            return True
        if isinstance(parent, ast.Dict) and here in parent.keys:
            return True
        here = parent
    targets = here.targets if isinstance(here, ast.Assign) else [getattr(here, "target", None)]
    return any(isinstance(each, ast.Name) and each.id == "EXITS" for each in targets)


def form_of(node: ast.JoinedStr) -> str:
    """A text that is put together, with its holes."""
    return "".join(v.value if isinstance(v, ast.Constant) else "{}" for v in node.values)


def forms_in(text: str) -> set[str]:
    """Texts that are put together and look like codes: of a family, with a hole behind the dot."""
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.JoinedStr)]
    return {form for form in map(form_of, nodes) if re.fullmatch(r"[a-z]+\.[a-z_]*\{\}", form)}


def files() -> Iterator[tuple[str, str]]:
    """The files that may give codes, by name, with their text."""
    for path in sorted(SRC.rglob("*.py")):
        name = str(path.relative_to(SRC))
        if not TABLES.fullmatch(name) and not name.startswith(PLAYED):
            yield name, path.read_text()
