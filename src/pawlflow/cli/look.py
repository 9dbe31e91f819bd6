"""`pawl ls`, `show`, `history`, `why` and `trace`: looking changes nothing."""

import sys
from typing import Any, Final

import click
from msgspec.structs import replace

from pawlflow.cli.attempts import step_lines
from pawlflow.cli.choosing import LISTED, PAUSED, WHERE, WORKFLOW, filter_in
from pawlflow.cli.family import Family
from pawlflow.cli.lines import history_lines, lens_lines
from pawlflow.cli.output import NOT_FOUND, count, note, print_json, undriven, warn
from pawlflow.cli.paused import paused_or
from pawlflow.cli.session import CLOSED, Session, head_of, reading, session, unknown_instance
from pawlflow.cli.system import standing_of
from pawlflow.cli.trace_lines import trace_lines
from pawlflow.cli.typed import typed, typed_hints, typed_options, typed_waiting
from pawlflow.definition.report import listing
from pawlflow.engine.clock import SystemClock
from pawlflow.kernel.units import ESCALATED, WAITING
from pawlflow.model.ids import InstanceId
from pawlflow.projections.alerts import alert_words, alerts_said
from pawlflow.projections.checkpoints import checkpoints
from pawlflow.projections.cloudevents import cloud_events
from pawlflow.projections.history import history as history_of
from pawlflow.projections.kin import Kin
from pawlflow.projections.lenses import LENSES
from pawlflow.projections.listing import rows_of
from pawlflow.projections.outlook import hints_for
from pawlflow.projections.reading import UnknownInstanceError, story_of
from pawlflow.projections.show import show as show_of
from pawlflow.projections.show import show_waiting
from pawlflow.projections.story import Story, state_at, tell
from pawlflow.projections.trace import trace as trace_of
from pawlflow.projections.why import why as why_of
from pawlflow.store.port import Store

LIMIT: Final = 50  # instances on a page
CHOOSING: Final = {
    "states": "--state",
    "workflow": "--workflow",
    "where": "--where",
    "limit": "--limit",
}


@click.command(help="List instances, newest first.")
@LISTED
@WORKFLOW
@WHERE
@click.option(
    "--limit",
    type=click.IntRange(1, 10_000),
    default=LIMIT,
    show_default=True,
    help="How many at most.",
)
@click.option("--after", metavar="ID", help="Go on below this one.")
def ls(limit: int, after: str | None, **options: Any) -> None:
    """One page; the store finds it by an index."""
    here = session(options)
    with reading(here) as store:
        states = [each for each in options["states"] if each != PAUSED]
        wanted = replace(filter_in(here, store, options | {"states": states}), limit=limit)
        if after is not None:
            last = head_of(here, store, after)
            wanted = replace(wanted, before=(last.created_at, last.ref))
        if PAUSED in options["states"]:
            found = paused_or(store, wanted, states)
            heads = [head for head, _ in found]
            marked = [{"paused": paused} for _, paused in found]
        else:
            heads = store.instances(wanted)
            marked = [{} for _ in heads]
        rows = [row | more for row, more in zip(rows_of(store, heads), marked, strict=True)]
        alerts = alerts_said(store, here.tenant).alerts
    for alert in alerts:
        warn(alert_words(alert))
    if here.as_json:
        print_json(rows)
        return
    if not rows:
        note(f"no instance of tenant {here.tenant!r} is like that")
        return
    put_instances(rows)
    if len(rows) == limit:
        same = typed_options(CHOOSING)
        note(f"there may be more: pawl ls{same} --after {heads[-1].cell.key}")


def put_instances(rows: list[dict[str, Any]]) -> None:
    """A table where somebody looks; elsewhere a line for each."""
    from pawlflow.cli.render import instance_lines, instances_table
    from pawlflow.cli.screen import console, draw

    if sys.stdout.isatty():
        draw(instances_table(rows, console().width))
    else:
        click.echo("\n".join(instance_lines(rows)))


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
            kept = checkpoints(store, state_at(story, at), step, then=at is not None)
            show_one(here, show_of(story, at), step, {"checkpoints": kept} | asked(story, at, step))
            return
        if here.as_json or at is not None:
            said = alerts_said(store, here.tenant).alerts
            shown = show_of(story, at, lens, Kin(store, here.tenant), said)
        else:
            family = Family(store, story)
            family.look()
            shown = family.whole(lens) | {"family": family.shown["family"]}
            shown["waiting"] += family.lacking()
    shown = typed_waiting(shown)
    if here.as_json:
        print_json(shown)
        return
    from pawlflow.cli.render import instance_tree
    from pawlflow.cli.screen import draw

    draw(instance_tree(shown, None if at else SystemClock().now()))
    if lens is not None:
        click.echo(f"\n{lens}: {shown['lens'][lens]}")
        click.echo("".join(f"{line}\n" for line in lens_lines(shown["lens_steps"])), nl=False)


def asked(story: Story, at: int | None, name: str) -> dict[str, Any]:
    """What an open step waits for from outside, and the commands that move it on now."""
    told = tell(story, at)
    unit = told.state.named(name)
    if unit is None or not (unit.held or unit.status in (WAITING, ESCALATED)):
        return {"waiting": None, "hints": []}
    hints = [] if at is not None else [typed(hint) for hint in hints_for(told, unit)]
    return {"waiting": show_waiting(told, unit), "hints": hints}


def show_one(here: Session, shown: dict[str, Any], name: str, more: dict[str, Any]) -> None:
    """One step: every attempt with its input, output, findings and cost, and every decision."""
    found = shown["steps"].get(name)
    if found is None:
        message = f"{shown['id']} has no step {name!r}; it has {listing(shown['steps'])}"
        here.end("step.unknown", message, NOT_FOUND)
    found |= more
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
        kin = Kin(store, here.tenant, driven=store.facts()["owner"] is not None)
        said = alerts_said(store, here.tenant)
        found = why_of(story, SystemClock().now(), standing, kin, alerts=said.alerts)
        told = typed_hints(found)
        undrives = told["state"] not in CLOSED and not kin.driven
    if here.as_json:
        print_json(told)
        return
    from pawlflow.cli.render import why_text
    from pawlflow.cli.screen import draw

    draw(why_text(told))
    if undrives:
        note(undriven(key))


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
