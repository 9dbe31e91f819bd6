"""`pawl journal show|verify FILE`: a journal file, in words or decided again."""

import sys
from pathlib import Path
from typing import Any

import click

from pawlflow.cli.output import (
    CONFLICT,
    count,
    fail,
    find_journals,
    print_json,
    read_file,
    setting,
)
from pawlflow.cli.session import Session, reading, session
from pawlflow.projections.archive import held_against
from pawlflow.projections.journal_file import DOCUMENT_BYTES_MAX, JournalError, read_journal
from pawlflow.testing.journals import Verdict, tell_file, verify_file


@click.command(help="Show a journal file in words, or verify it by deciding every turn again.")
@click.argument("action", type=click.Choice(["show", "verify"]))
@click.argument("files", nargs=-1, required=True)
@click.option("--store", "against", is_flag=True, help="Hold archives against the store, too.")
def command(action: str, files: tuple[str, ...], against: bool, **options: Any) -> None:
    """Do it for each file; the first that is not right ends with exit 5."""
    json = bool(setting("as_json", options.get("as_json")))
    told: list[dict[str, Any]] = []
    for path in find_journals(files, as_json=json):
        data = read_file(path, as_json=json, bytes_max=DOCUMENT_BYTES_MAX)
        try:
            if action == "verify":
                told.append(judged(path, verify_file(data), as_json=json))
            else:
                told.append(shown(path, list(tell_file(data)), as_json=json))
            if against:
                hold_against(session(options), data)
        except JournalError as error:
            fail(error.code, f"{path}: {error}", exit_code=CONFLICT, as_json=json)
    if json:
        print_json(told)
    sys.exit(0 if all(found.get("same", True) for found in told) else CONFLICT)


def hold_against(here: Session, data: bytes) -> None:
    """The frames of a store keep their hashes, whatever it has removed. Raises JournalError."""
    journal = read_journal(data)
    if not journal.parts:
        raise JournalError("journal.elsewhere", 0, "only archives can be held against a store")
    with reading(here) as store:
        for error in held_against(store, journal):
            raise error


def shown(path: Path, lines: list[str], *, as_json: bool) -> dict[str, Any]:
    """One journal in words."""
    if not as_json:
        click.echo("\n".join(lines))
    return {"file": str(path), "lines": lines}


def judged(path: Path, verdict: Verdict, *, as_json: bool) -> dict[str, Any]:
    """One verdict, told."""
    found = verdict.difference
    if not as_json and found is None:
        mark = click.style("SAME", fg="green")
        turns, instances = count(verdict.turns, "turn"), count(verdict.instances, "instance")
        click.echo(f"{mark} {path}: {turns} of {instances}")
    elif not as_json and found is not None:
        mark = click.style("DIFFERENT", fg="red")
        click.echo(f"{mark} {path}: turn {found.turn}, {found.where}")
        click.echo(f"  recorded: {found.recorded}\n  derived:  {found.derived}")
    return {
        "file": str(path),
        "same": found is None,
        "instances": verdict.instances,
        "turns": verdict.turns,
        "head": verdict.head.hex(),
        "difference": found,
    }
