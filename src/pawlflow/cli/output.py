"""What the command line says: settings, exit codes, errors, findings with their source line."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

import click
import msgspec
from click.core import ParameterSource

from pawlflow.cli.settings import NOTHING, Settings
from pawlflow.cli.typed import typed, wait_command
from pawlflow.definition.finding import Finding
from pawlflow.definition.read import NODES_MAX, Limits
from pawlflow.trouble import BUSY, RETRY_AFTER_S

FAILED: Final = 1
USAGE: Final = 2
INVALID: Final = 3
NOT_FOUND: Final = 4
CONFLICT: Final = 5
DENIED: Final = 6
UNREACHABLE: Final = 69
TRY_AGAIN: Final = 75
INTERRUPTED: Final = 130
UNITS: Final = ("bytes", "KiB", "MiB", "GiB", "TiB")
STEP_NODES: Final = 20  # values of a step in a file, at most and on average


def setting(name: str, given: Any) -> Any:
    """A global option: as typed after the verb, else before it; then the environment."""
    ctx: click.Context | None = click.get_current_context()
    found = [given]
    while ctx is not None:
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            return ctx.params.get(name)
        found.append(ctx.params.get(name))
        ctx = ctx.parent
    return next((value for value in found if value is not None), None)


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def fail(code: str, message: str, *, exit_code: int, as_json: bool = False) -> NoReturn:
    """End with an error that names the thing and the way out."""
    message = typed(message)
    if as_json:
        later = {"retry_after_s": RETRY_AFTER_S} if code in BUSY else {}
        print_json({"error": {"code": code, "message": message, **later}})
    else:
        click.echo(f"{click.style('error', fg='red', bold=True)}: {message} [{code}]", err=True)
        click.echo(f"  pawl explain {code}", err=True)
    sys.exit(exit_code)


def note(words: str) -> None:
    """A word to the person, beside what a verb prints."""
    click.echo(f"{click.style('note', fg='cyan')}: {typed(words)}", err=True)


def warn(words: str) -> None:
    """A word that somebody should act on, beside what a verb prints."""
    click.echo(f"{click.style('alert', fg='red', bold=True)}: {words}", err=True)


def undriven(key: str) -> str:
    """The note where nobody drives a store."""
    return f"nobody drives this store now: `{wait_command(key, ' --worker MODULE')}` does"


def print_findings(findings: Iterable[Finding], sources: dict[str, str]) -> None:
    """Findings as a compiler prints them: place, words, line, caret, hint."""
    for found in findings:
        if found.code.startswith("cli."):  # about a path, not about a place in it
            click.echo(f"{click.style('error', fg='red', bold=True)}: {found.message}", err=True)
            continue
        color = "red" if found.severity == "error" else "yellow"
        place = click.style(f"{found.file}:{found.line}:{found.column}", bold=True)
        word = click.style(found.severity, fg=color, bold=True)
        click.echo(f"{place}: {word}: {found.message} [{found.code}]", err=True)
        for line in excerpt(sources.get(found.file, ""), found.line, found.column):
            click.echo(line, err=True)
        if found.hint:
            click.echo(f"  {click.style('hint', fg='cyan')}: {found.hint}", err=True)


def excerpt(source: str, line: int, column: int) -> list[str]:
    """The source line with a caret under the place. Long lines are cut around it."""
    lines = source.split("\n")
    if not 0 < line <= len(lines):
        return []
    start = max(0, column - 1 - 60)
    text = lines[line - 1].rstrip("\r")[start : start + 120]
    shown = "".join(char if char.isprintable() else " " for char in text)
    number = f"{line:>5} | "
    return [number + shown, " " * (len(number) - 2) + "| " + " " * (column - 1 - start) + "^"]


def count(n: int, noun: str, many: str = "") -> str:
    """`1 file`, `2 files`."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {many or noun + 's'}"


def sized(amount: int) -> str:
    """A number of bytes, by the unit that suits it."""
    scaled = float(amount)
    for unit in UNITS:
        if scaled < 1024 or unit == UNITS[-1]:
            return f"{scaled:,.0f} {unit}" if unit == "bytes" else f"{scaled:,.1f} {unit}"
        scaled /= 1024
    return f"{amount:,} bytes"


def find_journals(paths: Sequence[str], *, as_json: bool) -> list[Path]:
    """The files named, and the journals in the folders named."""
    found: list[Path] = []
    for given in paths:
        path = Path(given)
        found += sorted(path.rglob("*.journal")) if path.is_dir() else [path]
        if not path.exists():
            fail("cli.not_found", f"no such file: {given}", exit_code=NOT_FOUND, as_json=as_json)
    return found


def find_files(paths: Sequence[str], *, as_json: bool) -> list[Path]:
    """The files named, and all YAML files under the folders named, in order of name."""
    found: list[Path] = []
    for given in paths:
        path = Path(given)
        if path.is_dir():
            found += sorted(p for p in path.rglob("*") if is_yaml(p))
        elif path.exists():
            found.append(path)
        else:
            fail("cli.not_found", f"no such file: {given}", exit_code=NOT_FOUND, as_json=as_json)
    unique = list(dict.fromkeys(found))
    if not unique:
        message = f"no .yaml, .yml or .json file under {', '.join(paths)}"
        fail("cli.nothing", message, exit_code=NOT_FOUND, as_json=as_json)
    return unique


def is_yaml(path: Path) -> bool:
    """A file that may hold documents; hidden folders are left alone."""
    hidden = any(part.startswith(".") for part in path.parts if part not in (".", ".."))
    return path.suffix in (".yaml", ".yml", ".json") and not hidden and path.is_file()


def file_limits() -> Limits:
    """How large a definition may be: as pawl.toml says, or as large as by default."""
    ctx = click.get_current_context(silent=True)
    settings: Settings = (None if ctx is None else ctx.find_root().obj) or NOTHING
    steps = settings.limit("steps")
    nodes = max(NODES_MAX, steps * STEP_NODES)
    return Limits(bytes_max=settings.limit("bytes"), steps_max=steps, nodes_max=nodes)


def waiting_limit() -> int:
    """How many starts of a tenant may wait for the owner of the store."""
    ctx = click.get_current_context(silent=True)
    settings: Settings = (None if ctx is None else ctx.find_root().obj) or NOTHING
    return settings.limit("waiting")


def read_file(path: Path, *, as_json: bool, bytes_max: int | None = None) -> bytes:
    """The bytes of a file, at most one more than may be read; or a clear end."""
    most = file_limits().bytes_max if bytes_max is None else bytes_max
    if not path.is_file():
        message = f"{path} is not a regular file"
        fail("cli.unreadable", message, exit_code=NOT_FOUND, as_json=as_json)
    try:
        with path.open("rb") as file:
            return file.read(most + 1)
    except OSError as error:
        message = f"cannot read {path}: {error.strerror}"
        fail("cli.unreadable", message, exit_code=NOT_FOUND, as_json=as_json)
