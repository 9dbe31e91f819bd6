"""`pawl ls`, `show`, `history`, `why` and `trace`: looking changes nothing."""

import sys
from typing import Any, Final

import click
from msgspec.structs import replace

from pawlflow.app import DEFAULT_URL
from pawlflow.cli.attempts import step_lines
from pawlflow.cli.choosing import STATE, WHERE, WORKFLOW, filter_in
from pawlflow.cli.family import Family
from pawlflow.cli.lines import history_lines, lens_lines, trace_lines
from pawlflow.cli.output import NOT_FOUND, count, note, print_json, undriven
from pawlflow.cli.session import CLOSED, Session, head_of, reading, session, unknown_instance
from pawlflow.cli.system import standing_of
from pawlflow.definition.report import listing
from pawlflow.engine.clock import SystemClock
from pawlflow.model.ids import InstanceId
from pawlflow.projections.cloudevents import cloud_events
from pawlflow.projections.history import history as history_of
from pawlflow.projections.kin import Kin
from pawlflow.projections.lenses import LENSES
from pawlflow.projections.listing import rows_of
from pawlflow.projections.reading import UnknownInstanceError, story_of
from pawlflow.projections.show import show as show_of
from pawlflow.projections.story import Story
from pawlflow.projections.trace import trace as trace_of
from pawlflow.projections.why import why as why_of
from pawlflow.store.port import Store

LIMIT: Final = 50  # instances on a page


@click.command(help="List instances, newest first.")
@STATE
@WORKFLOW
@WHERE
@click.option("--limit", type=click.IntRange(1, 10_000), default=LIMIT, show_default=True)
@click.option("--after", metavar="ID", help="Go on below this one.")
def ls(limit: int, after: str | None, **options: Any) -> None:
    """One page; the store finds it by an index."""
    here = session(options)
    with reading(here) as store:
        wanted = replace(filter_in(here, store, options), limit=limit)
        if after is not None:
            last = head_of(here, store, after)
            wanted = replace(wanted, before=(last.created_at, last.ref))
        heads = store.instances(wanted)
        rows = rows_of(store, heads)
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
        note(f"there may be more: pawl ls --after {heads[-1].cell.key}")


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
@click.option(
    "--lens",
    type=click.Choice(list(LENSES)),
    help="Name its state, and those of its steps, in this vocabulary too.",
)
@click.option("--step", metavar="NAME", help="Only this step or item, attempt by attempt.")
def show(key: str, at: int | None, lens: str | None, step: str | None, **options: Any) -> None:
    """The tree, or the object of `show --json`."""
    here = session(options)
    with reading(here) as store:
        story = story_in(here, store, key)
        if step is not None:
            show_one(here, show_of(story, at), step)
            return
        if here.as_json or at is not None:
            shown = show_of(story, at, lens, Kin(store, here.tenant))
        else:
            family = Family(store, story)
            family.look()
            shown = family.whole(lens) | {"family": family.shown["family"]}
    if here.as_json:
        print_json(shown)
        return
    from pawlflow.cli.render import instance_tree
    from pawlflow.cli.screen import draw

    draw(instance_tree(shown, None if at else SystemClock().now()))
    if lens is not None:
        click.echo(f"\n{lens}: {shown['lens'][lens]}")
        click.echo("".join(f"{line}\n" for line in lens_lines(shown["lens_steps"])), nl=False)


def show_one(here: Session, shown: dict[str, Any], name: str) -> None:
    """One step: every attempt with its input, output, findings and cost, and every decision."""
    found = shown["steps"].get(name)
    if found is None:
        message = f"{shown['id']} has no step {name!r}; it has {listing(shown['steps'])}"
        here.end("step.unknown", message, NOT_FOUND)
    if here.as_json:
        print_json({"id": shown["id"], "step": name} | found)
        return
    put_lines(list(step_lines(name, found)))


@click.command(help="List the published events of an instance.")
@click.argument("key", metavar="ID")
@click.option("--cloudevents", is_flag=True, help="As CloudEvents 1.0: a batch of structured JSON.")
def history(key: str, cloudevents: bool, **options: Any) -> None:
    """One line for each; whole envelopes with --json."""
    here = session(options)
    with reading(here) as store:
        story = story_in(here, store, key)
    envelopes = history_of(story)
    if cloudevents:
        print_json(cloud_events(envelopes, story.cell.workflow))
        return
    if here.as_json:
        print_json(envelopes)
        return
    put_lines(history_lines(envelopes))
    note(f"{count(len(envelopes), 'event')}; --json has each whole")


@click.command(help="Say why an instance is where it is, and what comes next.")
@click.argument("key", metavar="ID")
def why(key: str, **options: Any) -> None:
    """The chain of causes, what is awaited, and the next command."""
    here = session(options)
    with reading(here) as store:
        story = story_in(here, store, key)
        standing = standing_of(here, store, story)
        kin = Kin(store, here.tenant)
        told = with_store(here, why_of(story, SystemClock().now(), standing, kin))
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
    inside = [with_store(here, child) for child in told["children"]]
    first = {"hint": hints[0]} if "hint" in told else {}
    return told | first | {"hints": hints, "children": inside}


@click.command(help="List every turn of an instance with its cause, its calls and their keys.")
@click.argument("key", metavar="ID")
def trace(key: str, **options: Any) -> None:
    """Receipts are tied to calls by the identity of the intent."""
    here = session(options)
    with reading(here) as store:
        entries = trace_of(story_in(here, store, key), Kin(store, here.tenant))
    if here.as_json:
        print_json(entries)
        return
    put_lines(trace_lines(entries))


def put_lines(lines: list[str]) -> None:
    """Lines as they are; where a terminal ends they are cut, for a broken line hides the next."""
    if not sys.stdout.isatty():
        click.echo("\n".join(lines))
        return
    from pawlflow.cli.render import lines_cut
    from pawlflow.cli.screen import draw

    draw(lines_cut(lines))
