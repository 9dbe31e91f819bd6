"""The reference pages of the command line, of definitions and of settings, made from the code."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

import pawlflow
from pawlflow.cli.main import GLOBALS, SECTIONS, VERBS, main
from pawlflow.cli.settings import KEYS
from pawlflow.definition import readers, schedule, spec_fields, step_fields
from pawlflow.definition.fields import Table

SRC = Path(pawlflow.__file__).parent
MADE = "<!-- Made from the code by tests/reference_kit.py; not edited by hand. -->"

# The command line


def cli_page() -> str:
    """Every verb with its arguments and options."""
    lines = [
        *("# The command line", "", MADE, ""),
        "Every verb with its options. What they are for, exit codes and JSON: [cli.md](../cli.md).",
        *("", "## Options of every verb", ""),
        "They may stand before or after the verb.",
        *("", *options_table(list(GLOBALS))),
    ]
    shared = {option.name for option in GLOBALS}
    context = click.Context(main, info_name="pawl")
    for section, verbs in SECTIONS.items():
        lines += ["", f"## {section}"]
        for verb in verbs:
            command = main.get_command(context, verb)
            assert command is not None
            lines += verb_entry(command, f"pawl {verb}", VERBS[verb][1], shared)
    return "\n".join(lines) + "\n"


def verb_entry(
    command: click.Command, path: str, about: str, shared: set[str | None]
) -> Iterator[str]:
    """One verb; of a group, those inside it."""
    words = " ".join((command.help or about).split())
    arguments = [each for each in command.params if isinstance(each, click.Argument)]
    usage = " ".join([path, *(each.make_metavar(click.Context(command)) for each in arguments)])
    if isinstance(command, click.Group):
        usage += " VERB"
    yield from ("", f"### `{usage}`", "", words)
    own = [
        each
        for each in command.params
        if isinstance(each, click.Option) and each.name not in shared and not each.hidden
    ]
    if own:
        yield from ("", *options_table(own))
    if isinstance(command, click.Group):
        for name, inner in sorted(command.commands.items()):
            yield from verb_entry(inner, f"{path} {name}", "", shared)


def options_table(options: list[click.Option]) -> Iterator[str]:
    """Options, and what they mean."""
    yield from ("| option | means |", "|---|---|")
    for option in options:
        names = ", ".join((*option.opts, *option.secondary_opts))
        takes = "" if option.is_flag or option.count else f" {metavar(option)}"
        env = f" (`{option.envvar}`)" if isinstance(option.envvar, str) else ""
        more = " More than one may be given." if option.multiple else ""
        words = f"{' '.join((option.help or '').split())}{more}"
        yield f"| `{cell(names + takes)}`{env} | {cell(words)} |"


def metavar(option: click.Option) -> str:
    """What stands for the value."""
    if option.metavar:
        return option.metavar
    if isinstance(option.type, click.Choice):
        return "|".join(map(str, option.type.choices))
    return {"path": "PATH", "integer": "N", "integer range": "N"}.get(option.type.name, "TEXT")


def cell(text: str) -> str:
    """Text in a table."""
    return text.replace("|", "\\|")


# Definitions


def fields_page() -> str:
    """Every field of every part of a document."""
    lines = [
        *("# Fields of definitions", "", MADE, ""),
        "Every field that a definition may have, part by part; those in **bold** are required.",
        "What they mean together: [definitions.md](../definitions.md). For editors:",
        "`pawl schema workflow`.",
    ]
    for title, tables in {
        "Workflow": (spec_fields, ("METADATA", "SPEC", "TRIGGER", "CONCURRENCY", "RATE", "BUDGET")),
        "More of a workflow": (spec_fields, ("BOUND", "RUNG", "RETENTION", "COMPENSATION")),
        "Step": (step_fields, ("STEP", "GATE", "WAIT", "UNDO", "POLICY", "COST")),
        "More of a step": (readers, ("RETRY", "EDGE")),
        "Schedule": (schedule, ("METADATA", "SPEC")),
    }.items():
        module, names = tables
        lines += ["", f"## {title}"]
        for name in names:
            lines += table_entry(getattr(module, f"{name}_TABLE"))
    return "\n".join(lines) + "\n"


def table_entry(table: Table) -> Iterator[str]:
    """One part of a document."""
    yield from ("", f"### {table.part}", "", "| field | value | means |", "|---|---|---|")
    for name, field in table.fields.items():
        shown = f"**`{name}`**" if field.required else f"`{name}`"
        yield f"| {shown} | {cell(value_of(field.reader.schema))} | {cell(field.doc)} |"


def value_of(schema: dict[str, Any]) -> str:
    """What a JSON Schema allows, in a few words."""
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return ", ".join(f"`{word}`" for word in schema["enum"])
    for how in ("oneOf", "anyOf"):
        if how in schema:
            return " or ".join(dict.fromkeys(value_of(each) for each in schema[how]))
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {value_of(schema.get('items', {}))}"
    kinds = kind if isinstance(kind, list) else [kind]
    bounds = [str(schema[name]) for name in ("minimum", "maximum") if name in schema]
    known = {"object": "mapping", "string": "text", "any": "any value", "boolean": "true, false"}
    words = " or ".join(known.get(each, each) for each in kinds)
    return f"{words} {' to '.join(bounds)}" if len(bounds) == 2 else words


# Settings


def settings_page() -> str:
    """Every key of pawl.toml, and every variable of the environment."""
    lines = [
        *("# Settings", "", MADE, ""),
        "Keys of `pawl.toml`, with their variables. Flags go before the environment, the",
        "environment before the file, and the file before defaults: [settings.md](../settings.md).",
        *("", "| key | environment | default | means |", "|---|---|---|---|"),
    ]
    for name, key in KEYS.items():
        variable = f"`{key.environment}`" if key.environment else ""
        default = "" if key.default is None else f"`{str(key.default).lower()}`"
        about = key.schema.get("description", "")
        takes = cell(f"{about} Takes {key.expected}.")
        lines.append(f"| `{name}` | {variable} | {default} | {takes} |")
    known = {key.environment for key in KEYS.values()}
    others = sorted(variables() - known)
    lines += ["", "Read in other places:", "", "| variable | read by |", "|---|---|"]
    lines += [f"| `{name}` | {', '.join(readers_of(name))} |" for name in others]
    return "\n".join(lines) + "\n"


def variables() -> set[str]:
    """Every variable of ours that the source names."""
    return {
        name for text in sources().values() for name in re.findall(r"[\"'](PAWL_[A-Z]+)[\"']", text)
    }


def readers_of(name: str) -> list[str]:
    """The files that name a variable."""
    return [f"`{path}`" for path, text in sources().items() if f'"{name}"' in text]


def sources() -> dict[str, str]:
    """The source, by its path in the package."""
    return {str(path.relative_to(SRC)): path.read_text() for path in sorted(SRC.rglob("*.py"))}
