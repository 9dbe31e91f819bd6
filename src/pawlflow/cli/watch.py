"""`pawl watch ID`: an instance live, until it is closed. Watching drives nothing."""

import time
from collections.abc import Iterator
from typing import Any, Final

import click
import msgspec

from pawlflow.cli.family import Family
from pawlflow.cli.look import story_in
from pawlflow.cli.output import note, undriven, warn
from pawlflow.cli.screen import Screen, screen_for
from pawlflow.cli.session import CLOSED, Session, head_of, reading, session
from pawlflow.projections.alerts import alert_words, alerts_said
from pawlflow.projections.cloudevents import cloud_events
from pawlflow.projections.history import Teller
from pawlflow.projections.reading import catch_up
from pawlflow.projections.story import Story
from pawlflow.store.port import Store

LOOK_S: Final = (0.1, 0.5)  # between two looks: after a move, and when nothing moves
BREATH: Final = 5  # looking takes a sixth of the time
BREATH_S_MAX: Final = 2.0  # but nobody waits longer: a look costs only what came since the last one


@click.command(help="Watch an instance live, until it is closed. With --json: one event a line.")
@click.argument("key", metavar="ID")
@click.option("--cloudevents", is_flag=True, help="One CloudEvent a line: structured JSON.")
def command(key: str, cloudevents: bool, **options: Any) -> None:
    """A tree on a terminal, plain lines elsewhere; Ctrl-C leaves, and changes nothing."""
    here = session(options)
    with reading(here) as store:
        if here.as_json or cloudevents:
            watch_events(here, store, key, cloudevents=cloudevents)
            return
        if store.facts()["owner"] is None and head_of(here, store, key).closed_at is None:
            note(undriven(key))
        for alert in alerts_said(store, here.tenant).alerts:
            warn(alert_words(alert))
        with screen_for(err=False) as screen:
            watch_family(Family(store, story_in(here, store, key)), screen)


def watch_family(family: Family, screen: Screen) -> None:
    """Show every move of an instance and its children, until it is closed."""
    wait = LOOK_S[0]
    while True:
        began = time.perf_counter()
        shown = family.look()
        if shown is not None:
            screen.update(shown)
            wait = breath(time.perf_counter() - began)
            if shown["state"] in CLOSED:
                return
        time.sleep(wait)
        wait = min(max(wait, LOOK_S[1]), 2 * wait)


def breath(took: float) -> float:
    """How long to wait after a look that took so long."""
    return max(LOOK_S[0], min(BREATH * took, BREATH_S_MAX))


def watch_events(here: Session, store: Store, key: str, *, cloudevents: bool) -> None:
    """Every published event as a line of JSON, those still to come included."""
    teller: Teller | None = None
    for story in moves(here, store, key):
        teller = teller or Teller(story)
        told = teller.tell(story)
        for event in cloud_events(told, story.cell.workflow) if cloudevents else told:
            click.echo(msgspec.json.encode(event))


def moves(here: Session, store: Store, key: str) -> Iterator[Story]:
    """The story of an instance each time it has moved, until it is closed.

    Each look reads what came since the last one; where nothing moves, twice a second.
    """
    story, turn, wait = story_in(here, store, key), -1, LOOK_S[0]
    while True:
        began = time.perf_counter()
        head = catch_up(store, story)
        if len(story.turns) != turn:
            turn = len(story.turns)
            yield story
            if head.closed_at is not None:
                return
            wait = breath(time.perf_counter() - began)
        time.sleep(wait)
        wait = min(max(wait, LOOK_S[1]), 2 * wait)
