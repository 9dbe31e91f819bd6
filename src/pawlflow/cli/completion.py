"""`pawl completion bash|zsh|fish`: a script that completes verbs, options, ids and names."""

import json
from importlib import resources
from typing import Any, Final

import click

from pawlflow.cli.new import TEMPLATES

SHELLS: Final = ("bash", "zsh", "fish")
# What stands in the place of an argument or option, by its name; where that matters, by verb, or by
# the verb below it.
KINDS: Final = {
    "key": "id",
    "step": "step",
    "workflow": "workflow",
    "code": "code",
    "tenant": "tenant",
    "role": "role",
    "acting": "role",
    "after": "id",
    **dict.fromkeys(("files", "paths", "file", "to", "source", "worker", "stubs"), "file"),
    **dict.fromkeys(("path", "journals", "output", "folder"), "file"),
}
KINDS_IN: Final[dict[str, dict[str, str | list[str]]]] = {
    "review": {"key": "review"},
    "batches": {"key": "batch", "after": "batch"},
    "schedules": {"name": "schedule"},
    "policy": {"name": "policy"},
    "policy retire": {"name": "policy in force"},
    "reassign": {"role": ""},
    "new": {"template": list(TEMPLATES)},
}


@click.command(
    help="Print a script that completes verbs, options, ids and names: "
    'eval "$(pawl completion bash)" in ~/.bashrc.'
)
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str, **_: Any) -> None:
    """The script holds the verbs and options of this version; names come from the store."""
    click.echo(script(shell, click.get_current_context().find_root().command), nl=False)


def script(shell: str, main: click.Command) -> str:
    """The script of a shell, with what there is to complete in it."""
    folder = resources.files("pawlflow.cli") / "completions"
    text = (folder / f"pawl.{shell}").read_text()
    table = json.dumps(table_of(main), ensure_ascii=True, separators=(",", ":"))
    return text.replace("@TABLE@", quoted(shell, table))


def quoted(shell: str, text: str) -> str:
    """A text in single quotes, as the shell reads them."""
    if shell == "fish":
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return "'" + text.replace("'", "'\\''") + "'"


def table_of(main: click.Command) -> dict[str, dict[str, Any]]:
    """Every verb by its path: its verbs, its options with their values, its arguments."""
    table: dict[str, dict[str, Any]] = {}
    add(table, main, "")
    return table


def add(table: dict[str, dict[str, Any]], command: click.Command, path: str) -> None:
    """One verb, and those below it. Options that stand everywhere are told once, at the top."""
    ctx = click.Context(command, info_name=path or "pawl")
    entry: dict[str, Any] = {"options": {}}
    table[path] = entry
    for param in command.get_params(ctx):
        if isinstance(param, click.Option):
            about = (param.help or "").split(". ")[0].rstrip(".")
            takes = None if param.is_flag or param.count else kind_of(param, path)
            everywhere = table[""]["options"] if path else {}
            for name in (*param.opts, *param.secondary_opts):
                if everywhere.get(name) != [about, takes]:
                    entry["options"][name] = [about, takes]
    arguments = [each for each in command.params if isinstance(each, click.Argument)]
    if arguments:
        entry["arguments"] = [kind_of(each, path) for each in arguments]
        entry["many"] = arguments[-1].nargs != 1
    if isinstance(command, click.Group):
        entry["verbs"] = {}
        for name in command.list_commands(ctx):
            inner = command.get_command(ctx, name)
            assert inner is not None
            entry["verbs"][name] = inner.get_short_help_str(limit=80).rstrip(".")
            add(table, inner, f"{path} {name}".strip())


def kind_of(param: click.Parameter, path: str) -> str | list[str]:
    """What a value is: one of a list, a path, or something the store knows; or unknown."""
    if isinstance(param.type, click.Choice):
        return [str(choice) for choice in param.type.choices]
    verb, name = path.partition(" ")[0], str(param.name)
    found = KINDS | KINDS_IN.get(verb, {}) | KINDS_IN.get(path, {})
    return found.get(name, "")
