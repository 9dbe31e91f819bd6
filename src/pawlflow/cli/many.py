"""Acts on many: a verb with `--where` is one batch, asked about first, followed to its end."""

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import click

from pawlflow.app import settle
from pawlflow.batches import (
    Operation,
    batch_of,
    inputs_of,
    result_of,
    results_of,
    targets_of,
    told,
    where_told,
)
from pawlflow.cli.choosing import chose, filter_in
from pawlflow.cli.output import CONFLICT, INTERRUPTED, USAGE, count, note, print_json
from pawlflow.cli.session import Session, reading
from pawlflow.engine.clock import SystemClock, time_ordered_id
from pawlflow.engine.places import mail_of
from pawlflow.kernel.system.batch import Batch
from pawlflow.model.batches import batch_cell
from pawlflow.store.port import Head, Store, StoreError
from pawlflow.trouble import NotFound

FIRST: Final = 10  # ids of a dry run, and before a question
REFUSED_MAX: Final = 20  # told one by one where a person watches


def act_on_many(here: Session, options: Mapping[str, Any], asked: Operation) -> None:
    """Find them, ask, hand in the batch, and follow it; ends with 5 if some were refused."""
    with reading(here) as store:
        targets = targets_of(store, filter_in(here, store, options), asked)
        where = where_told(options["where"], options["states"], options["workflow"])
        if not targets or options["dry_run"]:
            tell_targets(here, asked, where, targets, dry=options["dry_run"])
            return
        if not options["yes"]:
            confirm(here, asked, targets)
        clock = SystemClock()
        id_ = time_ordered_id(clock.now(), clock.entropy())
        cell = batch_cell(here.tenant, id_)
        store.post([mail_of(cell, each) for each in inputs_of(asked, where, targets, here.tenant)])
        follow(here, store, id_)


def tell_targets(
    here: Session, asked: Operation, where: str, targets: list[Head], *, dry: bool
) -> None:
    """How many it would be, and the first of them; nothing was done."""
    ids = [head.cell.key for head in targets]
    if here.as_json:
        shown = {"batch": None, "act": asked.act, "where": where, "matched": len(ids)}
        nothing = {"done": 0, "refused": 0, "gone": 0, "results": []}
        print_json(shown | nothing | {"dry_run": dry, "first": ids[:FIRST]})
    elif not ids:
        note(f"no open instance of tenant {here.tenant!r} is like that: nothing to {asked.verb}")
    else:
        click.echo(f"{asked.act} would reach {count(len(ids), 'instance')}:")
        click.echo("".join(f"  {each}\n" for each in first_of(ids)), nl=False)


def first_of(ids: Sequence[str]) -> Sequence[str]:
    """The first ids, and how many more there are."""
    more = len(ids) - FIRST
    return [*ids[:FIRST], f"and {more:,} more"] if more > 0 else ids


def confirm(here: Session, asked: Operation, targets: list[Head]) -> None:
    """Ask whoever is there; where nobody can be asked, --yes must say so."""
    ids = [head.cell.key for head in targets]
    many = count(len(ids), "instance")
    if here.as_json or not sys.stdin.isatty():
        message = f"{asked.act} would reach {many}: say --yes, or look first with --dry-run"
        here.end("batch.unconfirmed", message, USAGE)
    click.echo("".join(f"  {each}\n" for each in first_of(ids)), nl=False, err=True)
    if not click.confirm(f"{asked.act} {many}?", err=True):
        note("nothing was done")
        sys.exit(INTERRUPTED)


# Following


def follow(here: Session, store: Store, id_: str) -> None:
    """Look on, or drive, until every instance has answered; then say what became of it."""
    from pawlflow.cli.screen import progress_bar

    batch: Batch | None = None
    with progress_bar("answered") as progress:
        say = None if here.as_json or progress is not None else Lines()

        def look() -> tuple[bool, int]:
            nonlocal batch
            try:
                batch = batch_of(store, here.tenant, id_)
            except NotFound:  # the owner has not taken it from its mailbox yet
                return False, -1
            if progress is not None:
                progress(batch.answered, len(batch.line))
            if say is not None:
                say(batch)
            return batch.closed is not None, batch.answered

        goes_on(partial(settle, store, look), id_)
    assert batch is not None
    end_with(here, batch, lines=progress is None)


def goes_on(work: Callable[[], None], id_: str) -> None:
    """Whoever leaves early is told that the batch does not."""
    try:
        work()
    except (KeyboardInterrupt, StoreError):
        ways = f"`pawl batches show {id_}`, or `pawl batches wait {id_}`"
        note(f"the batch goes on without you: {ways}")
        raise


class Lines:
    """A line for each answer, as they come."""

    def __init__(self) -> None:
        self.said: set[str] = set()

    def __call__(self, batch: Batch) -> None:
        """Say what is new."""
        for _, key in batch.line:
            code = batch.codes[key]
            if code is not None and key not in self.said:
                self.said.add(key)
                click.echo(line_of(result_of(key, code)))


def line_of(result: Mapping[str, Any]) -> str:
    """One answer in words: `o-1: done`, `o-2: refused instance.closed`."""
    code = f" {result['code']}" if result["result"] == "refused" else ""
    return f"{result['id']}: {result['result']}{code}"


def end_with(here: Session, batch: Batch, *, lines: bool) -> None:
    """What became of a batch; 5 if some were refused."""
    shown, results = told(batch), results_of(batch)
    if here.as_json:
        shown["batch"] = shown.pop("id")
        print_json(shown | {"results": results, "dry_run": False})
    else:
        refused = [each for each in results if each["result"] == "refused"]
        for each in () if lines else refused[:REFUSED_MAX]:
            click.echo(line_of(each))
        counts = ", ".join(f"{shown[name]:,} {name}" for name in ("done", "refused", "gone"))
        click.echo(f"{shown['act']}: {counts} of {shown['matched']:,} (batch {batch.id})")
    if shown["refused"]:
        sys.exit(CONFLICT)


# The words of a verb that is for one instance, or for many


def one_of(here: Session, verb: str, key: str | None, options: Mapping[str, Any]) -> str | None:
    """The id of the one instance; None if a filter says which are meant."""
    if chose(options):
        if key is not None:
            message = f"{verb} takes an ID, or --where, --state and --workflow, not both"
            here.end("cli.usage", message, USAGE)
        return None
    if key is None:
        here.end("cli.usage", f"{verb} takes an ID, or --where EXPR for many", USAGE)
    for option in ("dry_run", "yes"):
        if options[option]:
            said = f"--{option.replace('_', '-')}"
            here.end("cli.usage", f"{said} goes with --where, --state or --workflow", USAGE)
    return key


def two_of(
    here: Session, verb: str, words: tuple[str | None, str | None], options: Mapping[str, Any]
) -> tuple[str | None, str]:
    """The id of the one instance, and what comes after it; with a filter only the latter."""
    first, second = words
    if chose(options):
        if second is not None:
            one_of(here, verb, first, options)
        return None, first or ""
    one_of(here, verb, first, options)
    return first, second or ""
