"""`pawl archive`: closed instances as journal files that can be verified by themselves."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import click
from msgspec.structs import replace

from pawlflow.archiving import Archive
from pawlflow.cli.choosing import STATE, WHERE, WORKFLOW, chose, filter_in
from pawlflow.cli.output import USAGE, count, note, print_json
from pawlflow.cli.screen import progress_bar
from pawlflow.cli.session import Session, head_of, reading, session
from pawlflow.projections.plain import time_told
from pawlflow.removing import loops_of
from pawlflow.retaining import ARCHIVE
from pawlflow.store.port import Head, Store

PAGE: Final = 500  # instances looked up together


@click.command(help="Write closed instances as journal files; they stay in the store.")
@click.argument("keys", metavar="[ID]...", nargs=-1)
@click.option(
    "--to",
    type=click.Path(path_type=Path, file_okay=False),
    envvar=ARCHIVE,
    show_envvar=True,
    required=True,
    metavar="DIR",
    help="The folder; each file is TENANT/DAY/ID.HASH.journal in it.",
)
@click.option("--closed-before", metavar="TIME", help="All that were over then: -30d, 2026-01-01.")
@WHERE
@STATE
@WORKFLOW
def command(keys: tuple[str, ...], to: Path, closed_before: str | None, **options: Any) -> None:
    """Those that are named, or those that a filter finds."""
    here = session(options)
    many = closed_before is not None or chose(options)
    if bool(keys) == many:
        ways = "name instances, or say which with --closed-before, --where, --state or --workflow"
        here.end("cli.usage", ways, USAGE)
    archive = Archive(to)
    rows: list[dict[str, Any]] = []
    with reading(here) as store, progress_bar("archiving") as progress:
        heads = found(here, store, closed_before, options) if many else named(here, store, keys)
        for head in heads:
            loops = archive.keep(store, list(loops_of(store, head)), head)
            [path] = archive.keep(store, [head])
            rows.append(told(head, path, loops))
            if not here.as_json:
                click.echo(str(path))
            if progress is not None:
                progress(len(rows), len(rows) if many else len(keys))
    if here.as_json:
        print_json(rows)
    else:
        way = (
            f"; `pawl journal verify {to}` decides them again" if rows else ", nothing was written"
        )
        note(f"{count(len(rows), 'instance')}{way}")


def named(here: Session, store: Store, keys: tuple[str, ...]) -> Iterator[Head]:
    """Instances by their ids; an open one would be an archive of half a story."""
    for key in keys:
        head = head_of(here, store, key)
        if head.closed_at is None:
            message = f"{key} is {head.state}: an instance is archived once it is closed"
            here.end("archive.open", message)
        yield head


def found(
    here: Session, store: Store, before: str | None, options: Mapping[str, Any]
) -> Iterator[Head]:
    """Closed instances that a filter finds, newest first."""
    where = list(options["where"])
    if before is not None:
        where.append(f"closed_at < {before!r}")
    wanted = replace(filter_in(here, store, {**options, "where": where}), limit=PAGE)
    while heads := store.instances(wanted):
        yield from (head for head in heads if head.closed_at is not None)
        wanted = replace(wanted, before=(heads[-1].created_at, heads[-1].ref))


def told(head: Head, path: Path, loops: list[Path]) -> dict[str, Any]:
    """An archive as --json has it."""
    return {
        "id": head.cell.key,
        "workflow": head.cell.workflow,
        "state": head.state,
        "closed_at": time_told(head.closed_at),
        "turns": head.turn,
        "hash": head.hash.hex(),
        "file": str(path),
        "checkpoints": [str(each) for each in loops],
    }
