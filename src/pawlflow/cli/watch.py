"""`pawl watch ID`: an instance live, until it is closed. Watching drives nothing."""

import time
from collections.abc import Iterator
from typing import Any, Final

import click
import msgspec

from pawlflow.cli.look import story_in
from pawlflow.cli.output import note, undriven
from pawlflow.cli.screen import screen_for
from pawlflow.cli.session import CLOSED, Session, head_of, reading, session
from pawlflow.projections.history import history
from pawlflow.projections.show import show
from pawlflow.projections.story import Story
from pawlflow.store.port import Store

LOOK_S: Final = (0.1, 0.5)  # between two looks: after a move, and when nothing moves
BREATH: Final = 5  # looking takes at most a sixth of the time


@click.command(help="Watch an instance live, until it is closed. With --json: one event a line.")
@click.argument("key", metavar="ID")
def command(key: str, **options: Any) -> None:
    """A tree on a terminal, plain lines elsewhere; Ctrl-C leaves, and changes nothing."""
    here = session(options)
    with reading(here) as store:
        if here.as_json:
            watch_events(here, store, key)
            return
        if store.facts()["owner"] is None and head_of(here, store, key).closed_at is None:
            note(undriven(key))
        with screen_for(err=False) as screen:
            for story in moves(here, store, key):
                screen.update(show(story))


def watch_events(here: Session, store: Store, key: str) -> None:
    """Every published event as a line of JSON, those still to come included."""
    told = 0
    for story in moves(here, store, key):
        envelopes = history(story)
        for envelope in envelopes[told:]:
            click.echo(msgspec.json.encode(envelope))
        told = len(envelopes)


def moves(here: Session, store: Store, key: str) -> Iterator[Story]:
    """The story of an instance each time it has moved, until it is closed.

    Between moves only its head is read, twice a second.
    """
    turn, wait = -1, LOOK_S[0]
    while True:
        head = head_of(here, store, key)
        if head.turn != turn:
            began = time.perf_counter()
            story = story_in(here, store, key)
            turn = len(story.turns)
            yield story
            if show(story)["state"] in CLOSED:
                return
            wait = max(LOOK_S[0], BREATH * (time.perf_counter() - began))
        time.sleep(wait)
        wait = min(max(wait, LOOK_S[1]), 2 * wait)
