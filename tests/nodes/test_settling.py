"""Attempts that timed out, and whose shard goes to another node meanwhile."""

import asyncio

import pytest

from pawlflow.nodes import Node
from pawlflow.store.port import SHARDS
from tests.nodes.test_node import until
from tests.testing.lab_kit import workflow

TRIP = workflow(
    "trip",
    "failurePolicy: compensate",
    steps=(
        "name: fly, run: fly.book, timeout: 1m, undo: {run: fly.free}",
        "name: stay, run: stay.book, dependsOn: [fly], timeout: 20ms, grace: 1h,"
        " undo: {run: stay.free, timeout: 1m}",
    ),
)
MANY = 12


def node_on(url, told, go, done):
    """A node whose bookings end late, whatever they are told."""
    node = Node(url)
    for name in ("fly.book", "fly.free", "stay.free"):
        node.effect(name)(noting(name, done))

    @node.effect("stay.book")
    async def book():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            told.append("stay.book")
            await go.wait()
        done.append("stay.book")

    node.add(TRIP)
    return node


def noting(name, done):
    async def note():
        done.append(name)

    return note


@pytest.mark.req("R106", "R112", "R151")
def test_the_new_owner_waits_for_what_the_old_one_has_at_work(url):
    """It cannot know whether that is over, and hears of it by mail: it is undone then."""

    async def main():
        told, done, go = [], [], asyncio.Event()
        async with node_on(url, told, go, done) as one:
            await one.start_many("trip", [{}] * MANY)
            await until(lambda: len(told) == MANY)
            async with node_on(url, told, go, done) as two:
                await until(lambda: len(one.held) == len(two.held) == SHARDS // 2)
                before = sorted(set(done))
                go.set()
                await until(lambda: len(two.list(state="failed", limit=MANY)) == MANY)
        return before, {name: done.count(name) for name in ("stay.free", "fly.free")}

    assert asyncio.run(main()) == (["fly.book"], {"stay.free": MANY, "fly.free": MANY})
