"""Functions that are out of time: what follows waits until they are over, or their grace is."""

import asyncio
import threading
from contextlib import suppress

import pytest

from pawlflow import Pawl, WorkflowFailed
from tests.effects.kit import run, written

BOOKING = """
  failurePolicy: compensate
  steps:
    - {name: fly, run: fly.book, timeout: 1m, undo: {run: fly.free}}
    - {name: stay, run: stay.book, dependsOn: [fly], timeout: 20ms, grace: GRACE,
       undo: {run: stay.free, timeout: 1m}}
"""
pytestmark = pytest.mark.req("R106", "R112", "R113")


class Desk:
    """What was done and undone, and by whom it may go on."""

    def __init__(self, pawl):
        self.done = []
        self.told = asyncio.Event()
        self.go = asyncio.Event()
        for name in ("fly.book", "fly.free", "stay.free"):
            pawl.effect(name)(self.doing(name))

    def doing(self, name):
        async def do(ctx):
            self.done.append(name)

        return do

    async def deaf(self, ctx):
        """Books all the same, after it was told that nobody wants it."""
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.told.set()
            await self.go.wait()
        self.done.append("stay.book")
        return {"room": 7}

    async def deafer(self, ctx):
        """The same, though whoever leaves the engine tells it once more."""
        with suppress(asyncio.CancelledError):
            await self.deaf(ctx)
        await self.go.wait()
        self.done.append("stay.book")
        return {"room": 7}


def booking(tmp_path, grace):
    return written(tmp_path, "trip", BOOKING.replace("GRACE", grace))


async def failed(started):
    with pytest.raises(WorkflowFailed) as raised:
        await started.result(timeout="20s")
    return raised.value


def test_nothing_is_undone_beside_a_function_that_is_at_work(tmp_path):
    """It is told to stop, and books all the same: that is undone too, and first."""

    async def main():
        async with Pawl("memory:") as pawl:
            desk = Desk(pawl)
            pawl.effect("stay.book")(desk.deaf)
            pawl.load(booking(tmp_path, "1h"))
            started = await pawl.start("trip", id="t-1")
            await desk.told.wait()
            before = (list(desk.done), started.show()["state"])
            desk.go.set()
            return before, (await failed(started)).rollback, desk.done

    before, rollback, done = run(main())
    assert before == (["fly.book"], "running")
    assert (rollback, done) == ("full", ["fly.book", "stay.book", "stay.free", "fly.free"])


def test_who_ends_when_told_is_not_waited_for(tmp_path):
    """The receipt of the stop is enough, however long the grace."""

    async def main():
        async with Pawl("memory:") as pawl:
            desk = Desk(pawl)
            pawl.effect("stay.book")(asyncio.Event().wait)
            pawl.load(booking(tmp_path, "1h"))
            return (await failed(await pawl.start("trip"))).rollback, desk.done

    assert run(main()) == ("full", ["fly.book", "fly.free"])


def test_after_the_grace_it_goes_on_without_it(tmp_path):
    """What it did after all, somebody has to look at."""

    async def main():
        async with Pawl("memory:") as pawl:
            desk = Desk(pawl)
            pawl.effect("stay.book")(desk.deaf)
            pawl.load(booking(tmp_path, "30ms"))
            started = await pawl.start("trip", id="t-1")
            rollback = (await failed(started)).rollback
            desk.go.set()
            async with asyncio.timeout(20):
                while not (reviews := pawl.reader.reviews("default")):  # noqa: ASYNC110
                    await asyncio.sleep(0)
            return rollback, desk.done, [each.kind for each in reviews]

    rollback, done, kinds = run(main())
    assert (rollback, kinds) == ("full", ["effect.orphaned"])
    assert done == ["fly.book", "fly.free", "stay.book"]


def test_a_thread_is_waited_for_too(tmp_path):
    """It cannot be interrupted: it ends when it ends."""
    go, began = threading.Event(), threading.Event()

    def book():
        began.set()
        go.wait()
        return 7

    async def main():
        async with Pawl("memory:") as pawl:
            desk = Desk(pawl)
            pawl.effect("stay.book")(book)
            pawl.load(booking(tmp_path, "1h"))
            started = await pawl.start("trip", id="t-1")
            async with asyncio.timeout(20):
                while started.show()["steps"]["stay"]["state"] != "failed":  # noqa: ASYNC110
                    await asyncio.sleep(0)
            before = list(desk.done)
            go.set()
            return before, (await failed(started)).rollback, desk.done

    before, rollback, done = run(main())
    assert began.is_set()
    assert (before, rollback) == (["fly.book"], "full")
    assert done == ["fly.book", "stay.free", "fly.free"]


async def left_behind(url, tmp_path, *, ends):
    """Leave the engine while a booking that nobody waits for is at work; it may end meanwhile."""
    async with Pawl(url) as pawl:
        desk = Desk(pawl)
        pawl.effect("stay.book")(desk.deafer if ends else desk.deaf)
        pawl.load(booking(tmp_path, "1h"))
        await pawl.start("trip", id="t-1")
        await desk.told.wait()
        if ends:
            asyncio.get_running_loop().call_later(0.05, desk.go.set)
    return desk.done


async def found_again(url):
    """Whoever comes next: what becomes of it."""
    async with Pawl(url) as pawl:
        desk = Desk(pawl)
        pawl.effect("stay.book")(desk.deaf)
        return (await failed(pawl.run("t-1"))).rollback, desk.done


def test_what_is_done_while_the_engine_is_left_counts(tmp_path):
    """It has a few seconds to end, and its success is kept: it is undone by whoever comes next."""
    url = f"sqlite:///{tmp_path}/pawl.db"

    before, (rollback, after) = run(left_behind(url, tmp_path, ends=True)), run(found_again(url))

    assert before[:2] == ["fly.book", "stay.book"]
    assert (rollback, [*before[2:], *after]) == ("full", ["stay.free", "fly.free"])


def test_who_died_with_the_engine_is_not_waited_for(tmp_path):
    """Another process asks again whether it is over; here nobody knows of it, so it is."""
    url = f"sqlite:///{tmp_path}/pawl.db"

    assert run(left_behind(url, tmp_path, ends=False)) == ["fly.book"]
    assert run(found_again(url)) == ("full", ["fly.free"])
