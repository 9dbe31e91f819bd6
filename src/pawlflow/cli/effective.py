"""Which settings hold for a verb: as typed, then the environment, then `pawl.toml`, or none."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

import click
from click.core import ParameterSource

from pawlflow.cli.settings import KEYS, NOTHING, Settings, SettingsError, load

USAGE: Final = 2
OPTIONS: Final = {"json": "as_json"}  # where an option's name differs from the setting's
TRUE: Final = ("1", "true", "yes", "on", "y", "t")


def use_settings(
    ctx: click.Context,
    verb: str,
    command: click.Command,
    words: Sequence[str],
    *,
    anyway: bool = False,
) -> None:
    """Let the file of this folder give the defaults of a verb. Ends with 2 if it is not valid.

    Help, and verbs that are for finding out what is wrong, are given anyway.
    """
    try:
        ctx.obj = load()
    except SettingsError as error:
        if anyway or any(word in ("-h", "--help") for word in words):
            return
        before = ["--json"] if ctx.params.get("as_json") else []
        refuse(error, as_json=asks_for_json([*before, *words], NOTHING))
    ctx.default_map = {verb: defaults_of(command, ctx.obj.values)}


def defaults_of(command: click.Command, values: dict[str, Any]) -> dict[str, Any]:
    """The defaults of a verb's options, and of the verbs below it."""
    found: dict[str, Any] = {}
    for option in command.params:
        name = setting_of(command, option)
        if name in values:
            found[str(option.name)] = values[name]
    inner = command.commands if isinstance(command, click.Group) else {}
    return found | {name: defaults_of(each, values) for name, each in inner.items()}


def setting_of(command: click.Command, option: click.Parameter) -> str:
    """The setting that an option stands for; nothing if it is none.

    A role is what somebody decides in: it filters no list, and binds nobody to a ladder's rung.
    """
    for name in KEYS:
        if f"--{name}" in option.opts and option.name == OPTIONS.get(name, name):
            return "" if name == "role" and command.name == "ls" else name
    return ""


def with_environment(command: click.Command) -> None:
    """Let the environment give the options of a verb that are settings."""
    for option in command.params:
        name = setting_of(command, option)
        if name and option.envvar is None:
            option.envvar = KEYS[name].environment
            setattr(option, "show_envvar", True)  # noqa: B010  # arguments have none


def refuse(error: SettingsError, *, as_json: bool) -> NoReturn:
    """Say what is wrong with the file, as with any other, and end."""
    from pawlflow.cli.output import print_findings, print_json
    from pawlflow.definition.finding import Finding

    near = error.path.parent == Path.cwd()
    shown = error.path.name if near else str(error.path)
    findings = [
        Finding(
            file=shown,
            line=e.line,
            column=e.column,
            severity="error",
            code=e.code,
            message=e.message,
            hint=e.hint,
        )
        for e in error.troubles
    ]
    if as_json:
        first = findings[0]
        message = f"{shown}:{first.line}:{first.column}: {first.message}"
        print_json({"error": {"code": first.code, "message": message, "findings": findings}})
    else:
        print_findings(findings, {shown: error.source})
    sys.exit(USAGE)


def asks_for_json(words: Sequence[str], settings: Settings | None = None) -> bool:
    """Is JSON wanted by somebody whose words could not be read? The last one said counts."""
    said = [word for word in words if word in ("--json", "--no-json")]
    if said:
        return said[-1] == "--json"
    if "PAWL_JSON" in os.environ:
        return os.environ["PAWL_JSON"].lower() in TRUE
    try:
        found = load() if settings is None else settings
    except SettingsError:
        return False
    return bool(found.values.get("json"))


def in_effect(ctx: click.Context) -> list[dict[str, Any]]:
    """Every setting with its value, and where that comes from."""
    settings: Settings = ctx.find_root().obj or NOTHING
    return [effective(ctx, settings, name) for name in KEYS]


def effective(ctx: click.Context, settings: Settings, name: str) -> dict[str, Any]:
    """One setting: as typed, from the environment, from the file, or by default."""
    key = KEYS[name]
    typed = typed_value(ctx, OPTIONS.get(name, name))
    said = os.environ.get(key.environment) if key.environment else None
    if typed is not None:
        return told(name, typed, "flag", f"--{name}")
    if said:
        value = said.lower() in TRUE if name == "json" else said
        return told(name, value, "environment", key.environment)
    if name in settings.values:
        where = f"{settings.path}:{settings.lines[name]}"
        return told(name, settings.values[name], "file", where)
    return told(name, key.default, "default", "")


def told(name: str, value: Any, source: str, where: str) -> dict[str, Any]:
    """A setting for machines, and for anybody: the URL of a store may hold a password."""
    from pawlflow.store.postgres_url import masked

    value = masked(value) if isinstance(value, str) else value
    return {"name": name, "value": value, "source": source, "where": where}


def typed_value(ctx: click.Context | None, name: str) -> Any:
    """What was typed for an option, after the verb or before it."""
    while ctx is not None:
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            return ctx.params.get(name)
        ctx = ctx.parent
    return None
