"""`pawl move --to URL`: carry the store elsewhere, byte by byte, instances in flight included."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import click

from pawlflow.app import is_there, open_store, shown
from pawlflow.cli.output import NOT_FOUND, USAGE, count, note, print_json, warn
from pawlflow.cli.screen import progress_bar
from pawlflow.cli.session import Session, session, told
from pawlflow.engine.clock import SystemClock
from pawlflow.moving import agreed, move, undo
from pawlflow.sides import side_of
from pawlflow.store.moves import Side

TOLD = {  # what is said of a store, and in which words
    "entries": "entry",
    "frames": "frame",
    "cells": "cell",
    "definitions": "definition",
    "blobs": "large payload",
    "reviews": "open review",
    "mail": "input that waits",
}


@click.command(help="Carry the store to another place; verified before it is let go.")
@click.option("--to", metavar="URL", help="The new place: an empty one, or where a move stopped.")
@click.option("--dry-run", is_flag=True, help="Look at both stores, count, and change nothing.")
@click.option("--undo", "back", is_flag=True, help="Use the old store again, or give a move up.")
@click.option("--force", is_flag=True, help="With --undo: whatever happened at the new place.")
def command(to: str | None, dry_run: bool, back: bool, force: bool, **options: Any) -> None:
    """Nobody may own either store meanwhile; a second time goes on where the first has stopped."""
    here = session(options)
    if to is None and not back:
        here.end("cli.usage", "name the new place: pawl move --to URL", USAGE)
    if (force and not back) or (dry_run and back):
        here.end("cli.usage", "--force goes with --undo, and --dry-run without it", USAGE)
    with told(here), source_side(here) as source:
        if back:
            take_back(here, source, to, force=force)
        elif dry_run:
            look(here, source, to or "")
        else:
            carry(here, source, to or "")


@contextmanager
def source_side(here: Session) -> Iterator[Side]:
    """The store that is there. Nothing is made."""
    if not is_there(here.url):
        where = shown(here.url).removeprefix("sqlite:///")
        message = f"there is no store at {where}: --db or PAWL_DB names another"
        here.end("store.missing", message, NOT_FOUND)
    with closing(side_of(here.url)) as source:
        yield source


def carry(here: Session, source: Side, to: str) -> None:
    """Move it; a source that is owned is refused before anything is made."""
    source.hold()
    with closing(side_of(to)) as target, progress_bar("moving") as progress:
        moved = move(source, target, SystemClock(), progress)
    if here.as_json:
        names = {"from": moved.source, "to": moved.target, "verified": True}
        more = {"resumed": moved.resumed, "already": moved.already, "counts": moved.sizes}
        print_json({**names, **more})
        return
    word = "was moved already" if moved.already else "moved and verified"
    click.echo(f"{moved.target}: {word}: {counted(moved.sizes)}")
    note(f"{moved.source} is kept and can be read; `pawl move --undo --to URL` takes it back")


def look(here: Session, source: Side, to: str) -> None:
    """Could it be moved, and how much would that be?"""
    plan = "new"
    if is_there(to):
        with closing(side_of(to)) as target:
            plan = agreed(source, target)
            where = target.told
    else:
        where = shown(to)
    mark = source.mark()
    if mark is not None and plan == "new" and mark.other != where:
        here.end("store.moving", f"{source.told} is being moved to {mark.other} already")
    sizes, owned = source.sizes(), owned_now(here.url, to) if plan != "already" else []
    if here.as_json:
        names = {"from": source.told, "to": where, "plan": plan, "counts": sizes}
        print_json({**names, "owned": owned})
        return
    words = {"new": "would be moved", "resumed": "would go on", "already": "was moved already"}
    click.echo(f"{source.told} -> {where}: {words[plan]}: {counted(sizes)}")
    for url in owned:
        warn(f"{url} has an owner now: a move would be refused until it is stopped [store.owned]")


def owned_now(*urls: str) -> list[str]:
    """Those of these stores that somebody owns, as they may be shown. Nothing is made."""
    found: list[str] = []
    for url in filter(is_there, urls):
        with closing(open_store(url)) as store:
            if store.facts()["owner"] is not None:
                found.append(shown(url))
    return found


def take_back(here: Session, source: Side, to: str | None, *, force: bool) -> None:
    """Let the old store be used again."""
    if to is None:
        done = undo(source, None, SystemClock(), force=force)
    else:
        with closing(side_of(to)) as target:
            done = undo(source, target, SystemClock(), force=force)
    if here.as_json:
        print_json({"store": source.told, "move": done})
    else:
        click.echo(f"{source.told}: the move was {done}; this store is used again")


def counted(sizes: dict[str, int]) -> str:
    """What there is, in a line."""
    plural = {"entry": "entries", "input that waits": "inputs that wait"}
    found = [(sizes[name], word) for name, word in TOLD.items() if sizes[name]]
    said = [
        f"{number:,} {plural[word]}" if number != 1 and word in plural else count(number, word)
        for number, word in found
    ]
    return ", ".join(said) or "nothing"
