"""`pawl retain`: instances whose time is over, listed, or removed where no engine runs all day."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click

from pawlflow.app import outcome_of, settle
from pawlflow.archiving import Archive
from pawlflow.cli.output import CONFLICT, USAGE, count, note, print_json, setting
from pawlflow.cli.screen import Progress, progress_bar
from pawlflow.cli.session import Session, person, reading, session
from pawlflow.engine.actions import Accepted
from pawlflow.engine.clock import SystemClock
from pawlflow.engine.places import mail_of
from pawlflow.kernel.draft import Rejected
from pawlflow.model.ids import TimeMs
from pawlflow.projections.plain import time_told
from pawlflow.removing import FIRST, PORTION, Answers, Asked, Due, Removal, due_in, removing
from pawlflow.retaining import ARCHIVE, Asking, further
from pawlflow.store.port import SHARDS, Head, Kept, Store

PAGE: Final = 1_000  # looked at together
LISTED: Final = 20  # of many, where a person looks
EVERY: Final = tuple(range(SHARDS))


@click.command(help="List the instances whose time is over, or remove them now.")
@click.option("--now", "go", is_flag=True, help="Remove them.")
@click.option("--dry-run", is_flag=True, help="Only list them; so it is without --now.")
@click.option(
    "--archive",
    type=click.Path(path_type=Path, file_okay=False),
    envvar=ARCHIVE,
    show_envvar=True,
    metavar="DIR",
    help="Keep each as a journal file in this folder first.",
)
def command(go: bool, dry_run: bool, archive: Path | None, **options: Any) -> None:
    """Of all tenants, or of the one that is named."""
    here = session(options)
    if go and dry_run:
        here.end("cli.usage", "--now removes, --dry-run does not: say one of them", USAGE)
    only = setting("tenant", options.get("tenant"))
    with reading(here) as store:
        if go:
            remove(here, store, only, archive)
        else:
            show_due(here, store, only)


def over(store: Store, now: TimeMs, only: str | None) -> Iterator[Kept]:
    """Every instance whose time is over, the longest first."""
    after = FIRST
    while found := store.expiring(EVERY, after, PAGE):
        for until, head in found:
            if until > now:
                return
            if only in (None, head.cell.tenant):
                yield until, head
        after = (found[-1][0], found[-1][1].ref)


def show_due(here: Session, store: Store, only: str | None) -> None:
    """How many there are, and the first of them; nothing is done."""
    now = SystemClock().now()
    found = list(over(store, now, only))
    coming = next(iter(store.expiring(EVERY, (now, 0), 1)), None)
    next_at = None if coming is None else time_told(coming[0])
    if here.as_json:
        rows = [told(until, head) for until, head in found]
        print_json({"over": len(found), "instances": rows, "next_at": next_at, "dry_run": True})
        return
    for until, head in found[:LISTED]:
        closed = time_told(head.closed_at)
        click.echo(f"{head.cell.key}  {head.state} at {closed}, kept until {time_told(until)}")
    if len(found) > LISTED:
        click.echo(f"and {len(found) - LISTED:,} more")
    later = f"; the next one's is at {next_at}" if next_at else ""
    note(f"the time of {count(len(found), 'instance')} is over{later}")
    if found:
        note("`pawl retain --now` removes them; an engine that runs does so by itself")


def told(until: TimeMs, head: Head) -> dict[str, Any]:
    """An instance as --json has it."""
    return {
        "id": head.cell.key,
        "tenant": head.cell.tenant,
        "workflow": head.cell.workflow,
        "state": head.state,
        "closed_at": time_told(head.closed_at),
        "kept_until": time_told(until),
    }


# Removing


def remove(here: Session, store: Store, only: str | None, archive: Path | None) -> None:
    """Remove what is over, by mail to the owner, or as the owner; ends with 5 if some stay."""
    now = SystemClock().now()
    total = sum(1 for _ in over(store, now, only))
    done: list[Removal] = []
    with progress_bar("removing") as progress:
        for part in portions(store, now, only):
            kept = None if archive is None else Archive(archive)
            done += let_go(store, part, kept)
            went_on(progress, len(done), total)
    stayed = [each for each in done if each.refused is not None]
    if here.as_json:
        print_json(result_told(done, archive))
    else:
        for each in stayed:
            assert each.refused is not None
            click.echo(f"{each.head.cell.key}: kept, {each.refused.detail} [{each.refused.code}]")
        where = f", each archived under {archive}" if archive is not None and done else ""
        click.echo(f"{count(len(done) - len(stayed), 'instance')} removed{where}")
    sys.exit(CONFLICT if stayed else 0)


def portions(store: Store, now: TimeMs, only: str | None) -> Iterator[list[Head]]:
    """What is over in portions; those that stay are passed by."""
    due = Due([], FIRST, now)
    while due.next_at is not None and due.next_at <= now:
        due = due_in(store, EVERY, now, due.last, PORTION)
        part = [head for head in due.heads if only in (None, head.cell.tenant)]
        if part:
            yield part


def let_go(store: Store, heads: list[Head], archive: Archive | None) -> list[Removal]:
    """One portion, step by step."""
    steps, answers = removing(store, heads, archive, person()), None
    while isinstance(asked := further(steps, answers), Asking):
        answers = hand_in(store, asked.inputs)
    return asked


def hand_in(store: Store, inputs: Asked) -> Answers:
    """Post them, and wait until the owner has answered each, or be the owner meanwhile."""
    numbers = store.post([mail_of(cell, incoming) for cell, incoming in inputs])
    waiting = dict.fromkeys(numbers)

    def look() -> tuple[bool, int]:
        for number in [each for each in waiting if store.answer(each) is not None]:
            del waiting[number]
        return not waiting, len(numbers) - len(waiting)

    settle(store, look)
    found: list[Accepted | Rejected] = []
    for number, (cell, _) in zip(numbers, inputs, strict=True):
        taken = store.answer(number)
        assert taken is not None, "it was answered a moment ago"
        found.append(outcome_of(taken, cell.key))
    return found


def went_on(progress: Progress | None, done: int, total: int) -> None:
    """Tell who watches how far it is."""
    if progress is not None:
        progress(done, max(done, total))


def result_told(done: list[Removal], archive: Path | None) -> dict[str, Any]:
    """What became of all, as --json has it."""
    gone = [each for each in done if each.refused is None]
    return {
        "removed": len(gone),
        "instances": [
            {
                "id": each.head.cell.key,
                "tenant": each.head.cell.tenant,
                "hash": each.head.hash.hex(),
                "archive": None if each.archive is None else str(each.archive),
            }
            for each in gone
        ],
        "kept": [
            {
                "id": each.head.cell.key,
                "tenant": each.head.cell.tenant,
                "code": each.refused.code,
                "detail": each.refused.detail,
            }
            for each in done
            if each.refused is not None
        ],
        "archive": None if archive is None else str(archive),
        "dry_run": False,
    }
