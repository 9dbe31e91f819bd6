"""Retention among nodes: each lets go of what is in its shards, those it takes over included."""

import asyncio

import pytest

from pawlflow.nodes import Node
from pawlflow.projections.proof import verify_store
from pawlflow.store.port import SHARDS
from tests.nodes.test_node import ids_of, until
from tests.testing.lab_kit import workflow

QUICK = workflow("quick", "retention: {completed: 1ms}", steps=("name: a, run: x.a, timeout: 1m",))
MANY = 40
pytestmark = pytest.mark.req("R218")


async def done():
    """What the step does."""
    return "done"


def node_on(url, **more):
    """A node that carries the step out."""
    node = Node(url, **more)
    node.effect("x.a")(done)
    node.add(QUICK)
    return node


async def gone_from(node):
    """Wait until no instance is left, in whatever state: one that still runs is not gone."""
    async with asyncio.timeout(30):
        while node.list(limit=1):  # noqa: ASYNC110
            await asyncio.sleep(0)


def test_each_node_lets_go_of_what_is_its_own(url):
    """Together they remove everything, once, and the store verifies."""

    async def main():
        async with node_on(url) as one, node_on(url) as two:
            for node in (one, two):
                await node.start_many("quick", [{}] * MANY)
            await asyncio.gather(gone_from(one), gone_from(two))
            return verify_store(one.reader)

    report = asyncio.run(main())
    assert (report.differences, report.removed) == ([], 2 * MANY)


def test_who_takes_shards_over_finds_what_is_over_there(url):
    """One keeps everything and leaves; the other had nothing to remove until then."""

    async def main():
        async with node_on(url) as stays:
            async with node_on(url, retention=False) as leaves:
                await until(lambda: len(leaves.held) == len(stays.held) == SHARDS // 2)
                for key in ids_of(leaves, MANY):
                    await (await leaves.start("quick", id=key)).result(timeout="20s")
                kept = len(stays.list(state="completed", limit=MANY + 1))
            await gone_from(stays)
            return kept, verify_store(stays.reader)

    kept, report = asyncio.run(main())
    assert kept == MANY
    assert (report.differences, report.removed) == ([], MANY)
