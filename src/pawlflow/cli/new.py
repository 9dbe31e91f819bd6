"""`pawl new TEMPLATE [FOLDER]`: a small project to begin with, whose tests pass."""

import os
import re
from collections.abc import Iterator
from difflib import get_close_matches
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from pawlflow.cli.output import CONFLICT, NOT_FOUND, USAGE, count, fail, print_json, setting
from pawlflow.model.ids import WORKFLOW_NAME

# The files of a template are named like those they become, with this behind: what is a module, or
# hides files from git, must not be one here.
SUFFIX: Final = ".in"
PLACEHOLDER: Final = "@name@"
WORDS: Final = ("true", "false", "null")  # YAML reads them as something else
TEMPLATES: Final = {
    "saga": "Reserve, charge and ship; whatever fails, what was done is undone, last first.",
    "approval": "A release that two people must approve; what they approved cannot change.",
    "agent": "Agents draft and edit; results are checked and corrected, within a budget.",
    "python": "A workflow as a typed Python function, in a program and tests of your own.",
}


class Asked(NamedTuple):
    """What is to be made, and where."""

    template: str
    name: str
    folder: Path
    as_json: bool


@click.command(help="Begin a project from a template, in FOLDER. Without TEMPLATE: list them.")
@click.argument("template", required=False)
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option("--name", metavar="NAME", help="The workflow's name; default the folder's.")
@click.option("--list", "listing", is_flag=True, help="List the templates.")
def command(
    template: str | None,
    folder: Path | None,
    name: str | None,
    listing: bool,
    as_json: bool | None,
    **_: Any,
) -> None:
    """Nothing that is there is replaced: it makes all of its files, or none."""
    json = bool(setting("as_json", as_json))
    if template is None or listing:
        list_templates(as_json=json)
        return
    if template not in TEMPLATES:
        close = get_close_matches(template, TEMPLATES, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(TEMPLATES)}"
        message = f"there is no template {template!r}: {hint}"
        fail("cli.usage", message, exit_code=USAGE, as_json=json)
    place = folder if folder is not None else Path(name or template)
    called = name if name is not None else place.absolute().name
    asked = Asked(template, called, place, json)
    check_name(asked, given=name is not None)
    files = dict(files_of(asked))
    refuse_existing(asked, files)
    make(asked, files)
    tell(asked, list(files))


def list_templates(*, as_json: bool) -> None:
    """Every template, with a line each."""
    if as_json:
        print_json([{"name": name, "about": about} for name, about in TEMPLATES.items()])
        return
    for name, about in TEMPLATES.items():
        click.echo(f"{click.style(f'{name:<9}', bold=True)} {about}")
    click.echo("\npawl new TEMPLATE [FOLDER] [--name NAME]", err=True)


def check_name(asked: Asked, *, given: bool) -> None:
    """The name is that of a workflow, and of files: refuse others, and suggest one that will do."""
    if WORKFLOW_NAME.match(asked.name) and asked.name not in WORDS and asked.name[-1] not in "-_":
        return
    whose = "--name" if given else "the folder's name"
    rule = "a letter a-z, then up to 62 of a-z, digits, _ and -, not at its end; no word of YAML"
    message = (
        f"{whose} {asked.name!r} cannot be the name of a workflow ({rule}); "
        f"try --name {suggested(asked)}"
    )
    fail("cli.name", message, exit_code=USAGE, as_json=asked.as_json)


def suggested(asked: Asked) -> str:
    """A name that can be used, near to the one that cannot."""
    plain = re.sub(r"[^a-z0-9_]+", "-", asked.name.lower()).strip("-_")
    fits = plain[:1].isalpha() and plain not in WORDS
    return (plain if fits else f"{asked.template}-{plain}")[:63].rstrip("-_")


def files_of(asked: Asked) -> Iterator[tuple[Path, str]]:
    """The files of a template with the name in them, by where they go."""
    root = resources.files("pawlflow.cli") / "templates" / asked.template
    for path, file in walked(root, Path()):
        text = file.read_text().replace(PLACEHOLDER, asked.name)
        plain = str(path).removesuffix(SUFFIX).replace(PLACEHOLDER, asked.name)
        yield asked.folder / plain.replace("dot.", "."), text


def walked(folder: Traversable, above: Path) -> Iterator[tuple[Path, Traversable]]:
    """Every file of a template, in order of name."""
    for each in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if each.is_dir():
            yield from walked(each, above / each.name)
        elif each.name.endswith(SUFFIX):
            yield above / each.name, each


def refuse_existing(asked: Asked, files: dict[Path, str]) -> None:
    """Name whatever is in the way, before anything is written."""
    above = [asked.folder, *asked.folder.parents]
    blocked = [path for path in above if os.path.lexists(path) and not path.is_dir()]
    if blocked:
        message = f"{blocked[0]} is there already, and is no folder: name another one"
        fail("cli.exists", message, exit_code=CONFLICT, as_json=asked.as_json)
    there = [path for path in files if os.path.lexists(path)]
    inner = {path.parent for path in files} - {asked.folder}
    there += sorted(path for path in inner if os.path.lexists(path) and not path.is_dir())
    if there:
        names = ", ".join(str(path) for path in there)
        message = f"nothing was written: {names} would be replaced; name another folder"
        fail("cli.exists", message, exit_code=CONFLICT, as_json=asked.as_json)


def make(asked: Asked, files: dict[Path, str]) -> None:
    """Write all files. If one cannot be written, those that were made here are taken away again."""
    made: list[Path] = []
    try:
        for path, text in files.items():
            make_folders(path.parent, made)
            with path.open("x") as file:  # never one that came meanwhile, nor through a link
                made.append(path)
                file.write(text)
    except OSError as error:
        for path in reversed(made):
            path.rmdir() if path.is_dir() else path.unlink()
        where = error.filename or asked.folder
        code = "cli.exists" if isinstance(error, FileExistsError) else "cli.unwritable"
        exit_code = CONFLICT if code == "cli.exists" else NOT_FOUND
        message = f"cannot write {where}: {error.strerror}; nothing was left behind"
        fail(code, message, exit_code=exit_code, as_json=asked.as_json)


def make_folders(folder: Path, made: list[Path]) -> None:
    """Make a folder and those above it, as far as they are missing."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir()
        made.append(each)


def tell(asked: Asked, files: list[Path]) -> None:
    """What was made, and what to do next: as its README says."""
    commands = commands_in((asked.folder / "README.md").read_text())
    inside = [] if asked.folder.absolute() == Path.cwd() else [f"cd {asked.folder}"]
    if asked.as_json:
        names = [str(path.relative_to(asked.folder)) for path in files]
        about = {"template": asked.template, "name": asked.name, "folder": str(asked.folder)}
        print_json({**about, "files": names, "next": [*inside, *commands]})
        return
    for path in files:
        click.echo(path)
    click.echo(f"\n{count(len(files), 'file')}. Next:", err=True)
    for line in [*inside, *commands[:3]]:
        click.echo(f"  {line}", err=True)


def commands_in(readme: str) -> list[str]:
    """The commands of a README: the lines of its `sh` blocks."""
    blocks = re.findall(r"^```sh\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line]
