"""`pawl ls`, `show`, `history`, `why` and `trace`: looking changes nothing."""

from typing import Any, Final, get_args

import click

from pawlflow.app import DEFAULT_URL
from pawlflow.cli.lines import history_lines, trace_lines
from pawlflow.cli.output import count, note, print_json, undriven
from pawlflow.cli.session import CLOSED, Session, head_of, reading, session, unknown_instance
from pawlflow.engine.clock import SystemClock
from pawlflow.kernel.summary import InstanceState
from pawlflow.model.ids import InstanceId
from pawlflow.projections.history import history as history_of
from pawlflow.projections.plain import time_told
from pawlflow.projections.reading import UnknownInstanceError, story_of
from pawlflow.projections.show import show as show_of
from pawlflow.projections.story import Story
from pawlflow.projections.trace import trace as trace_of
from pawlflow.projections.why import why as why_of
from pawlflow.store.port import Filter, Head, Store

STATES: Final = get_args(InstanceState)
LENSES: Final = ("control-plane", "kernel", "ioa", "ores")
LIMIT: Final = 50  # instances on a page


@click.command(help="List instances, newest first.")
@click.option("--state", "states", multiple=True, type=click.Choice(STATES), help="Only in it.")
@click.option("--workflow", metavar="NAME", help="Only of this workflow.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=LIMIT, show_default=True)
@click.option("--after", metavar="ID", help="Go on below this one.")
def ls(
    states: tuple[str, ...], workflow: str | None, limit: int, after: str | None, **options: Any
) -> None:
    """One page; the store finds it by an index."""
    here = session(options)
    with reading(here) as store:
        wanted = Filter(
            tenant=here.tenant,
            states=states,
            workflow=workflow,
            limit=limit,
            before=None if after is None else head_of(here, store, after).ref,
        )
        heads = store.instances(wanted)
    rows = [row_of(head) for head in sorted(heads, key=age)]
    if here.as_json:
        print_json(rows)
        return
    if not rows:
        note(f"no instance of tenant {here.tenant!r} is like that")
        return
    from pawlflow.cli.render import instances_table
    from pawlflow.cli.screen import draw

    draw(instances_table(rows))
    if len(rows) == limit:
        lowest = min(heads, key=lambda head: head.ref)
        note(f"there may be more: pawl ls --after {lowest.cell.key}")


def age(head: Head) -> tuple[int, int]:
    """Newest first. The store's own order is that of places in the journals, which is only near."""
    return -head.created_at, -head.ref


def row_of(head: Head) -> dict[str, Any]:
    """An instance in a list."""
    return {
        "id": head.cell.key,
        "workflow": head.cell.workflow,
        "version": head.version,
        "tenant": head.cell.tenant,
        "state": head.state,
        "rollback": head.rollback,
        "started_at": time_told(head.started_at),
        "closed_at": time_told(head.closed_at),
    }


def story_in(here: Session, store: Store, key: str) -> Story:
    """The story of an instance; ends with 4 if there is none."""
    if key.startswith("$"):
        unknown_instance(here, store, key)
    try:
        return story_of(store, here.tenant, InstanceId(key))
    except UnknownInstanceError:
        unknown_instance(here, store, key)


@click.command(help="Show an instance, as it is or as it was after any turn.")
@click.argument("key", metavar="ID")
@click.option("--at", type=click.IntRange(1), metavar="TURN", help="As it was after this turn.")
@click.option("--lens", type=click.Choice(LENSES), help="Name its state in this vocabulary too.")
def show(key: str, at: int | None, lens: str | None, **options: Any) -> None:
    """The tree, or the object of `show --json`."""
    here = session(options)
    with reading(here) as store:
        shown = show_of(story_in(here, store, key), at)
    if here.as_json:
        print_json(shown)
        return
    from pawlflow.cli.render import instance_tree
    from pawlflow.cli.screen import draw

    draw(instance_tree(shown, None if at else SystemClock().now()))
    if lens is not None:
        click.echo(f"\n{lens}: {shown['lens'][lens]}")


@click.command(help="List the published events of an instance.")
@click.argument("key", metavar="ID")
def history(key: str, **options: Any) -> None:
    """One line for each; whole envelopes with --json."""
    here = session(options)
    with reading(here) as store:
        envelopes = history_of(story_in(here, store, key))
    if here.as_json:
        print_json(envelopes)
        return
    for line in history_lines(envelopes):
        click.echo(line)
    note(f"{count(len(envelopes), 'event')}; --json has each whole")


@click.command(help="Say why an instance is where it is, and what comes next.")
@click.argument("key", metavar="ID")
def why(key: str, **options: Any) -> None:
    """The chain of causes, what is awaited, and the next command."""
    here = session(options)
    with reading(here) as store:
        told = with_store(here, why_of(story_in(here, store, key), SystemClock().now()))
        undrives = told["state"] not in CLOSED and store.facts()["owner"] is None
    if here.as_json:
        print_json(told)
        return
    from pawlflow.cli.render import why_text
    from pawlflow.cli.screen import draw

    draw(why_text(told))
    if undrives:
        note(undriven(key))


def with_store(here: Session, told: dict[str, Any]) -> dict[str, Any]:
    """Hints as they can be typed: with the store they are about."""
    if here.url == DEFAULT_URL:
        return told
    said = f"pawl --db {here.url} "
    hints = [hint.replace("pawl ", said, 1) for hint in told["hints"]]
    return told | {"hint": told["hint"].replace("pawl ", said, 1), "hints": hints}


@click.command(help="List every turn of an instance with its cause, its calls and their keys.")
@click.argument("key", metavar="ID")
def trace(key: str, **options: Any) -> None:
    """Receipts are tied to calls by the identity of the intent."""
    here = session(options)
    with reading(here) as store:
        entries = trace_of(story_in(here, store, key))
    if here.as_json:
        print_json(entries)
        return
    for line in trace_lines(entries):
        click.echo(line)
