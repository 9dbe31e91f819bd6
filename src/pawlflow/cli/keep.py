"""`pawl backup TO` and `pawl restore FROM`: a copy of the store, and the way back."""

from pathlib import Path
from typing import Any

import click

from pawlflow.app import backup_store, file_of, restore_store
from pawlflow.cli.output import CONFLICT, NOT_FOUND, note, print_json
from pawlflow.cli.screen import progress_bar
from pawlflow.cli.session import Session, reading, session, told

FORCE = click.option("--force", is_flag=True, help="Replace what is there.")


@click.command(help="Copy the store into a file, while it is at work.")
@click.argument("to", type=click.Path(path_type=Path))
@FORCE
def backup(to: Path, force: bool, **options: Any) -> None:
    """The copy is of one moment, and there only once it is whole."""
    here = session(options)
    with reading(here):
        refuse_existing(here, to, force=force)
        with progress_bar("copying") as progress:
            backup_store(here.url, to, progress)
    size = to.stat().st_size
    if here.as_json:
        print_json({"file": str(to), "bytes": size})
    else:
        click.echo(f"{to}: {size:,} bytes")


@click.command(help="Put a backup in the place of the store; nobody may own it meanwhile.")
@click.argument("source", metavar="FROM", type=click.Path(path_type=Path))
@FORCE
def restore(source: Path, force: bool, **options: Any) -> None:
    """What was there before is kept beside it."""
    here = session(options)
    if not source.is_file():
        here.end("cli.not_found", f"no such file: {source}", NOT_FOUND)
    with told(here):
        path = file_of(here.url)
        refuse_existing(here, path, force=force)
        kept = restore_store(here.url, source)
    if here.as_json:
        print_json({"file": str(path), "kept": None if kept is None else str(kept)})
        return
    click.echo(f"{path}: restored from {source}")
    if kept is not None:
        note(f"what was there is kept in {kept}")


def refuse_existing(here: Session, path: Path, *, force: bool) -> None:
    """Nothing is replaced by accident."""
    if path.exists() and not force:
        message = f"{path} exists: name another file, or replace it with --force"
        here.end("cli.exists", message, CONFLICT)
