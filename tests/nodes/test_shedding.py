"""Starts for another node: they are bounded on their way, and in its mailbox; nothing else is."""

from queue import SimpleQueue

import pytest
from msgspec.structs import replace

from pawlflow import requests
from pawlflow.app import open_store
from pawlflow.elsewhere import Elsewhere
from pawlflow.engine.actions import Forward
from pawlflow.shedding import BEGINS, WAITING_MAX, Room
from tests.engine.kit import CHAIN, starting

WAIT_S = 20


@pytest.fixture
def way(postgres):
    """The way to nodes that are not there, and what is answered to whom."""
    url = postgres.fresh()
    told = SimpleQueue()
    made = Elsewhere(open_store(url), told.put)
    store = open_store(url)
    yield made, store, told
    made.close()
    store.close()


def start(number, tenant="a"):
    return Forward(*starting(f"i-{number}", CHAIN, tenant, {}), number)


@pytest.mark.req("R214")
def test_starts_on_their_way_are_bounded_by_tenant(way):
    """A may have as many on their way as it leaves free; B's start goes, and so do signals."""
    elsewhere, store, told = way
    elsewhere.room = Room(4)
    for number in (1, 2, 3):
        elsewhere.take(start(number))
    refused = told.get(timeout=WAIT_S)
    elsewhere.take(start(4, "b"))
    cell = requests.instance_cell("a", "i-1")
    for number in range(10, 40):
        elsewhere.take(Forward(cell, requests.signal("x", {}, "a", "ann"), number))
    elsewhere.close()

    assert (refused.token, refused.outcome.code) == (3, "engine.overloaded")
    posted = store.mail(range(32), 0, 100)
    assert len(posted) == 33
    assert [store.posted(each, BEGINS, 9) for each in ("a", "b")] == [2, 1]


@pytest.mark.req("R214")
def test_a_full_mailbox_turns_starts_away_and_takes_the_rest(way):
    """What was there before counts: a start of A is told to come later, B's is posted."""
    elsewhere, store, told = way
    one = elsewhere.letter(start(0))
    store.post([replace(one, key=f"{BEGINS}{n}") for n in range(WAITING_MAX)])

    elsewhere.take(start(77))
    elsewhere.take(start(78, "b"))
    refused = told.get(timeout=WAIT_S)

    assert (refused.token, refused.outcome.code) == (77, "engine.overloaded")
    assert store.posted("a", BEGINS, 2 * WAITING_MAX) == WAITING_MAX
