"""Commands as they can be pasted: with the store, the tenant and the worker that were typed.

What came from the environment is left out: it is there for the next command too. A password is
left out as well: what is pasted is also logged, copied and shown to others.
"""

import re
from collections.abc import Mapping
from shlex import quote
from typing import Any, Final

import click
from click.core import ParameterSource

from pawlflow.store.postgres_url import masked

GLOBAL: Final = {"db": "--db", "tenant": "--tenant"}
DRIVING: Final = {"worker": "--worker", "stubs": "--stubs"}
# Verbs that look at no store: what was typed for another would be noise.
STORELESS: Final = frozenset({"check", "explain", "import", "new", "schema", "test", "version"})
COMMAND: Final = re.compile(r"\bpawl (?=([a-z]+))")


def typed_options(wanted: Mapping[str, str]) -> str:
    """Options of this command as they were typed, each with a space before it."""
    found: dict[str, str] = {}
    ctx = click.get_current_context(silent=True)
    while ctx is not None:
        for name, option in wanted.items():
            if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
                given = ctx.params[name]
                values = given if isinstance(given, tuple) else (given,)
                said = "".join(f" {option} {quote(masked(str(value)))}" for value in values)
                found.setdefault(name, said)
        ctx = ctx.parent
    return "".join(found[name] for name in wanted if name in found)


def typed(text: str) -> str:
    """A text whose commands are about the same store and tenant as this one."""
    ctx = click.get_current_context(silent=True)
    options = typed_options(GLOBAL)
    if ctx is None or not options:
        return text
    root = ctx.find_root()
    group = root.command
    verbs = set(group.list_commands(root)) if isinstance(group, click.Group) else set()

    def with_options(match: re.Match[str]) -> str:
        about = match[1] in verbs - STORELESS
        return f"pawl{options} " if about else match[0]

    return COMMAND.sub(with_options, text)


def wait_command(key: str, otherwise: str = "") -> str:
    """How to go on with an instance: with the same worker or stubs, if some were typed."""
    return f"pawl wait {key}{typed_options(DRIVING) or otherwise}"


def typed_hints(told: Mapping[str, Any]) -> dict[str, Any]:
    """The object of `why`, and of its children, with hints that can be pasted."""
    hints = [typed(hint) for hint in told["hints"]]
    inside = [typed_hints(child) for child in told["children"]]
    first = {"hint": hints[0]} if "hint" in told else {}
    return {**told, **first, "hints": hints, "children": inside}


def typed_waiting(shown: Mapping[str, Any]) -> dict[str, Any]:
    """The object of `show`, and of its family, with hints that can be pasted."""
    if not typed_options(GLOBAL):
        return dict(shown)
    waiting = [{**wait, "hint": typed(wait["hint"])} for wait in shown["waiting"]]
    family = {key: typed_waiting(child) for key, child in shown.get("family", {}).items()}
    return {**shown, "waiting": waiting, **({"family": family} if "family" in shown else {})}
