"""Endpoints that do their work later, and processes that die while one is asked."""

import asyncio
import subprocess
import sys
from uuid import UUID

import pytest

from pawlflow import NotFound, Pawl, PawlError, Refused, WorkflowFailed
from pawlflow.testing import Lab, assert_replays
from tests.effects.http_kit import LOCAL, RETRY, Server, one_step
from tests.effects.kit import run

CHILD = """
import asyncio, sys
from pawlflow import Pawl

async def main(url, db, path):
    pawl = Pawl(db)
    pawl.load(path)
    pawl.http("payment.charge", url, allow=["127.0.0.1"])
    async with pawl:
        run = await pawl.start("one", {"amount": 5}, id="order-1")
        print(await run.result(timeout="60s"))

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture
def server():
    made = Server()
    made.tell("/", (202, {}))
    yield made
    made.close()


TIMED = "timeout: 300ms\n      "


def engine_for(tmp_path, url, more="", mode="sync", db="memory:"):
    """An engine that calls an endpoint for its one step."""
    pawl = Pawl(db)
    pawl.load(one_step(tmp_path, more))
    pawl.http("payment.charge", url, allow=LOCAL, mode=mode)
    return pawl


async def taken(server, count=1):
    """The key of a request that was taken and answered."""
    await asyncio.to_thread(server.wait_for, count)
    return server.keys("/")[-1]


@pytest.mark.parametrize(("mode", "status"), [("sync", 202), ("async", 202), ("async", 200)])
@pytest.mark.parametrize("named", [True, False])
def test_a_completion_is_the_receipt(tmp_path, server, mode, status, named):
    """202 leaves the attempt open; with mode async every success only says that it was taken."""
    server.tell("/", (status, {"ignored": True}))

    async def main():
        async with engine_for(tmp_path, f"{server.url}/", mode=mode) as pawl:
            started = await pawl.start("one", {"amount": 5}, id="order-1")
            key = await taken(server)
            await pawl.complete(key, {"charge": "ch-1"}, instance="order-1" if named else None)
            assert await started.result(timeout="20s") == {"charge": "ch-1"}
            assert_replays(started)
            with pytest.raises(Refused) as twice:  # which changes nothing
                await pawl.complete(key, {"charge": "ch-2"}, instance="order-1")
            assert twice.value.code == "instance.closed"
            with pytest.raises(NotFound) as unnamed:
                await pawl.complete(key, {"charge": "ch-2"})
            assert unnamed.value.code == "receipt.unknown"
            assert started.show()["output"] == {"charge": "ch-1"}

    run(main())
    assert len(server.asked) == 1


def test_a_failure_is_a_completion_too(tmp_path, server):
    """By its class, as a function would have raised it; the next attempt is another request."""

    async def main():
        async with engine_for(tmp_path, f"{server.url}/", RETRY) as pawl:
            started = await pawl.start("one", {"amount": 5}, id="order-1")
            key = await taken(server)
            await pawl.complete(key, fail="transient", message="the bank is closed", attempt=1)
            again = await taken(server, 2)
            assert again == key
            with pytest.raises(Refused) as late:  # of the attempt before: it failed already
                await pawl.complete(key, fail="transient", attempt=1)
            assert late.value.code == "receipt.not_awaited"
            await pawl.complete(key, fail="terminal", message="no such card", usage={"usd": 0.5})
            with pytest.raises(WorkflowFailed, match="no such card") as failed:
                await started.result(timeout="20s")
            assert (failed.value.failure_class, failed.value.attempts) == ("terminal", 2)
            assert started.show()["steps"]["charge"]["ladder"][0]["message"] == "the bank is closed"

    run(main())
    assert [body["attempt"] for _, _, body in server.asked] == [1, 2]


def test_a_completion_for_nobody_is_refused(tmp_path, server):
    """Unknown keys, keys that are none, classes that are none: said clearly, nothing changes."""
    nobody = str(UUID(int=7))

    async def main():
        async with engine_for(tmp_path, f"{server.url}/") as pawl:
            started = await pawl.start("one", {"amount": 5}, id="order-1")
            key = await taken(server)
            for more, code, words in [
                ({}, "receipt.unknown", "no open instance"),
                ({"instance": "order-1"}, "receipt.unknown", "no attempt with key"),
                ({"instance": "order-9"}, "instance.unknown", "order-9"),
            ]:
                with pytest.raises(NotFound, match=words) as refused:
                    await pawl.complete(nobody, {}, **more)
                assert refused.value.code == code
            for given, more, code in [
                ("charge", {}, "receipt.key"),
                (None, {}, "receipt.key"),
                (key, {"fail": "sorry"}, "receipt.class"),
                (key, {"fail": "terminal", "result": {}}, "receipt.class"),
            ]:
                with pytest.raises(PawlError) as wrong:
                    await pawl.complete(given, **more)
                assert wrong.value.code == code
            with pytest.raises(NotFound):
                await pawl.complete(key, {}, tenant="acme")
            assert started.show()["steps"]["charge"]["state"] == "running"
            await pawl.complete(key)
            assert await started.result(timeout="20s") is None

    run(main())


def test_an_attempt_that_is_left_open_still_times_out(tmp_path, server):
    """The endpoint never says anything: the step's own timeout ends it."""

    async def main():
        async with engine_for(tmp_path, f"{server.url}/", TIMED + "grace: 50ms") as pawl:
            started = await pawl.start("one", {"amount": 5}, id="order-1")
            with pytest.raises(WorkflowFailed) as failed:
                await started.result(timeout="20s")
            assert failed.value.failure_class == "timeout"

    run(main())


@pytest.mark.req("R106", "R112")
def test_who_has_taken_a_request_that_timed_out_may_complete_it_within_the_grace(tmp_path, server):
    """The end waits for that; it is a late success then."""

    async def main():
        async with engine_for(tmp_path, f"{server.url}/", TIMED + "grace: 1h") as pawl:
            started = await pawl.start("one", {"amount": 5}, id="order-1")
            key = await taken(server)
            async for event in started.events():
                if event["eventType"] == "WorkflowStepTimedOut":
                    break
            assert started.show()["state"] == "running"
            await pawl.complete(key, {"id": 7})
            with pytest.raises(WorkflowFailed):
                await started.result(timeout="20s")
            assert pawl.reader.reviews("default")[0].kind == "effect.orphaned"

    run(main())


def test_an_attempt_that_is_left_open_can_be_cancelled(tmp_path, server):
    """An answer that does not come is waited for until the grace is over."""

    async def main():
        async with engine_for(tmp_path, f"{server.url}/", "grace: 50ms") as pawl:
            started = await pawl.start("one", {"amount": 5}, id="order-1")
            await taken(server)
            await pawl.cancel("order-1")
            with pytest.raises(WorkflowFailed):
                await started.result(timeout="20s")
            assert started.show()["state"] == "cancelled"

    run(main())


def test_blocking_programs_complete_too(tmp_path, server):
    """The same words without an event loop."""
    with Pawl.blocking("memory:") as pawl:
        pawl.load(one_step(tmp_path))
        pawl.http("payment.charge", f"{server.url}/", allow=LOCAL)
        started = pawl.start("one", {"amount": 5}, id="order-1")
        server.wait_for(1)
        pawl.complete(server.keys("/")[0], {"ok": 1})
        assert started.result(timeout="20s") == {"ok": 1}


@pytest.mark.req("R27", "R143")
@pytest.mark.parametrize("first", ["hold", 202])
def test_killed_while_it_asks_it_asks_again_under_the_same_key(tmp_path, server, first):
    """A kill -9 in the middle of a request, or while one is left open: never another key."""
    db = f"sqlite:///{tmp_path}/pawl.db"
    path = one_step(tmp_path)
    server.tell("/", (first, 200), (200, {"charge": "ch-1"}))
    command = [sys.executable, "-c", CHILD, f"{server.url}/", db, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        server.wait_for(1)
        child.kill()
        child.wait()
    server.held.set()

    async def main():
        async with engine_for(tmp_path, f"{server.url}/", db=db) as pawl:
            started = pawl.run("order-1")
            result = await started.result(timeout="20s")
            assert_replays(started)
            return result, started.show()["steps"]["charge"]["attempts"]

    assert run(main()) == ({"charge": "ch-1"}, 1)
    first_key, second_key = server.keys("/")
    assert first_key == second_key
    assert [body["attempt"] for _, _, body in server.asked] == [1, 1]


def test_a_silent_endpoint_is_asked_again_under_the_same_key(tmp_path, server):
    """After 30 seconds, then at doubling distances: one that is done may answer with the result."""
    server.tell("/", (202, {}), (202, {}), (200, {"ok": 1}))

    async def main():
        async with Lab() as lab:
            lab.load(one_step(tmp_path))
            lab.http("payment.charge", f"{server.url}/", allow=LOCAL)
            started = await lab.start("one", {"amount": 5})
            counts = [len(server.asked)]
            for span in ("29s", "3s", "55s", "10s"):
                await lab.skip(span)
                counts.append(len(server.asked))
            return counts, await started.result()

    assert run(main()) == ([1, 1, 2, 2, 3], {"ok": 1})
    assert len(set(server.keys("/"))) == 1
    assert [body["attempt"] for _, _, body in server.asked] == [1, 1, 1]
